"""Recalibration as an estimator of scikit-learn."""

import copy
import inspect
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlinecal.core.arrays import Floats, Ints
from onlinecal.core.errors import InvalidParameter, lacking
from onlinecal.core.validation import check_lengths, check_weights, integer, vector
from onlinecal.recalibration.methods import DEFAULT
from onlinecal.recalibration.recalibrator import Recalibrator

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, clone
    from sklearn.model_selection import cross_val_predict
    from sklearn.naive_bayes import GaussianNB
    from sklearn.utils.metaestimators import available_if
    from sklearn.utils.multiclass import check_classification_targets, type_of_target
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError as error:
    raise InvalidParameter(
        lacking("RecalibratedClassifier", "scikit-learn 1.6 or later", "sklearn", error)
    ) from None


#: the largest sum of weights: each row is told as often as it counts; and the least mean weight for `fit`
MOST, LEAST = 10**7, 0.1
#: rows for which the classifier's forecasts are made at a time when it learns on the way
CHUNK = 256


class RecalibratedClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn states no types
    """A binary classifier with probabilities that a forecaster recalibrates, row after row.

    Notes: `fit` forecasts rows by cross-validation and tells them to the recalibrator, in a random order. Rows that are
    sorted by class would be forgotten one class after the other. With `shuffle=False` their own order is taken. There
    are at most as many folds as the smaller class has rows. A class of one row is forecast by the classifier that has
    seen all. `partial_fit` takes rows in their order. It forecasts at most 256 rows, tells the recalibrator their
    outcomes, and then the classifier. Forecasts of the first rows are 1/2. `predict_proba` gives means of laws; of a
    forecaster that randomises they are not the draws of its guarantees. A row of `sample_weight` k is told k times.
    Where k is not whole the rest goes to the next rows. So `fit` refuses weights with a mean below 0.1. The classifier
    is given the weights if its method takes them.

    Parameters
    ----------
    estimator : classifier, "passthrough" or None, default None
        One with `predict_proba`. "passthrough": the only column of X is a forecast of the second class, in [0, 1].
        None: `GaussianNB`.
    forecaster, bins, seed
        As for `onlinecal.Recalibrator`.
    cv : int, default 5
        Folds, for `fit`; at least 2.
    shuffle : bool, default True
        Whether `fit` takes rows in a random order, which `seed` determines; False for rows in the order of time.

    Attributes
    ----------
    classes_ : (2,) array
        Or (1,) after one class only, which then has the probability 1.
    estimator_ : classifier or "passthrough"
    recalibrator_ : Recalibrator
    n_features_in_ : int

    Examples
    --------
    >>> import numpy as np
    >>> forecasts = np.repeat([0.2, 0.8], 50)[:, None]
    >>> outcomes = np.tile([0, 1], 50)                      # both happen half of the time
    >>> model = RecalibratedClassifier("passthrough").fit(forecasts, outcomes)
    >>> model.predict_proba([[0.2], [0.8]])[:, 1].round(2)
    array([0.48, 0.51])
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        forecaster: Any = DEFAULT,
        bins: int | None = None,
        seed: int = 0,
        cv: int = 5,
        shuffle: bool = True,
    ) -> None:
        self.estimator, self.forecaster, self.bins, self.seed, self.cv = estimator, forecaster, bins, seed, cv
        self.shuffle = shuffle

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "RecalibratedClassifier":
        """Fits the classifier to all rows, and the recalibrator to forecasts of rows that were not seen."""
        X, y = validate_data(self, X, y)
        X, y, weights = _weighted(X, y, sample_weight)
        self._start(y)
        outcomes = (y == self.classes_[-1]).astype(int)
        integer("RecalibratedClassifier", "cv", self.cv, 2)
        if weights is not None and weights.sum() < LEAST * len(y):
            raise ValueError(
                f"sample_weight sums to {weights.sum():.3g} of {len(y)} rows; expected at least {LEAST * len(y):.3g}: "
                "it counts rows, so multiply all by one number"
            )
        if len(self.classes_) == 1:
            self.estimator_: Any = self._base()
            return self
        rows, base = int(np.bincount(outcomes).min()), self._base()
        if isinstance(base, str):
            forecasts = _column(X)
        elif rows < 2:
            forecasts = _second(base.fit(X, y, **_taken(base.fit, weights)), X)
        else:
            folds = min(rows, self.cv)
            params = _taken(base.fit, weights)
            forecasts = cross_val_predict(clone(base), X, y, cv=folds, method="predict_proba", params=params)[
                :, 1
            ]
        order = self._told(len(y), weights)
        if self.shuffle:
            np.random.default_rng(self.seed).shuffle(order)
        self._teach(forecasts[order], outcomes[order])
        self.estimator_ = base if isinstance(base, str) else base.fit(X, y, **_taken(base.fit, weights))
        return self

    @available_if(
        lambda self: isinstance(self.estimator, str | None) or hasattr(self.estimator, "partial_fit")
    )
    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None
    ) -> "RecalibratedClassifier":
        """Goes on with more rows; `classes` are all labels, at the first call."""
        first = not hasattr(self, "classes_")
        X, y = validate_data(self, X, y, reset=first)
        X, y, weights = _weighted(X, y, sample_weight)
        if first:
            self._start(y if classes is None else np.asarray(classes))
            self.estimator_ = self._base()
        unknown = np.setdiff1d(y, self.classes_)
        if len(unknown):
            raise ValueError(f"y holds {unknown[0]!r}, which is not among the classes {list(self.classes_)}")
        outcomes = (y == self.classes_[-1]).astype(int)
        for at in range(0, len(X), CHUNK):
            part = slice(at, at + CHUNK)
            own = None if weights is None else weights[part]
            if len(self.classes_) == 2:
                told = self._told(len(y[part]), own)
                self._teach(self._forecasts(X[part])[told], outcomes[part][told])
            if not isinstance(self.estimator_, str):
                learn = self.estimator_.partial_fit
                learn(X[part], y[part], classes=self.classes_, **_taken(learn, own))
                self.learnt_ = True
        return self

    def predict_proba(self, X: Any) -> Floats:
        """(n, 2) probabilities of the classes."""
        check_is_fitted(self, "estimator_")
        X = validate_data(self, X, reset=False)
        if len(self.classes_) == 1:
            return np.ones((len(X), 1))
        forecasts, where = np.unique(self._forecasts(X), return_inverse=True)
        means = np.array([self.recalibrator_.mean(float(p)) for p in forecasts])[where]
        return np.column_stack([1.0 - means, means])

    def predict(self, X: Any) -> NDArray[Any]:
        """(n,) the classes with the larger probabilities, of equal ones the first."""
        probabilities = self.predict_proba(X)
        return np.asarray(self.classes_[probabilities.argmax(axis=1)])

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if "recalibrator_" in state:
            # Arrays that come from a file that is mapped into memory cannot be written; the recalibrator's are.
            self.recalibrator_ = copy.deepcopy(state["recalibrator_"])

    def _start(self, y: Any) -> None:
        check_classification_targets(y)
        kind = type_of_target(y, input_name="y", raise_unknown=True)
        if kind != "binary":
            raise ValueError(
                f"Only binary classification is supported. The type of the target is {kind}; expected two classes"
            )
        self.classes_ = np.unique(y)
        self.learnt_, self.rest_ = False, 0.5
        self.recalibrator_ = Recalibrator(self.forecaster, bins=self.bins, seed=self.seed)

    def _base(self) -> Any:
        if self.estimator is None:
            return GaussianNB()
        if isinstance(self.estimator, str):
            if self.estimator != "passthrough":
                raise InvalidParameter(f"estimator = {self.estimator!r}; expected one, or 'passthrough'")
            return self.estimator
        return clone(self.estimator)

    def _forecasts(self, X: Any) -> Floats:
        if isinstance(self.estimator_, str):
            return _column(X)
        if not self.learnt_ and not hasattr(self.estimator_, "classes_"):
            return np.full(len(X), 0.5)
        return _second(self.estimator_, X)

    def _told(self, rows: int, weights: Floats | None) -> Ints:
        """The rows that are told, each as often as it counts. The rest of a weight goes to later rows."""
        if weights is None:
            return np.arange(rows)
        if (total := weights.sum()) > MOST:
            raise ValueError(f"sample_weight sums to {total:g}; expected at most {MOST:,}: it counts rows")
        sums = np.cumsum(weights) + self.rest_
        self.rest_ = float(sums[-1] % 1.0)
        return np.repeat(np.arange(rows), np.diff(np.floor(sums), prepend=0.0).astype(np.int64))

    def _teach(self, forecasts: Floats, outcomes: NDArray[Any]) -> None:
        mender = self.recalibrator_
        for p, y in zip(forecasts.tolist(), outcomes.tolist(), strict=True):
            mender.tell(mender.ask(p), y)


def _weighted(X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Floats | None]:
    """The rows that count, and their weights."""
    if sample_weight is None:
        return X, y, None
    weights = vector("sample_weight", sample_weight)
    check_lengths({"y": y, "sample_weight": weights})
    if not weights.any():
        raise ValueError("sample_weight is zero in all rows; expected a positive weight")
    check_weights("sample_weight", weights)
    there = weights > 0.0
    return X[there], y[there], weights[there]


def _taken(method: Any, weights: Floats | None) -> dict[str, Floats]:
    """The weights, if a classifier's method takes them."""
    known = weights is not None and "sample_weight" in inspect.signature(method).parameters
    return {"sample_weight": weights} if known else {}  # type: ignore[dict-item]


def _column(X: Any) -> Floats:
    """The forecasts in the only column."""
    if X.shape[1] != 1 or not ((X >= 0) & (X <= 1)).all():
        raise ValueError(
            f"X has {X.shape[1]} column(s) from {X.min():g} to {X.max():g}; 'passthrough' expects one of forecasts in "
            "[0, 1]"
        )
    return np.asarray(X[:, 0], np.float64)


def _second(classifier: Any, X: Any) -> Floats:
    """The probabilities of the second class; a classifier that met one class only has one column."""
    said = classifier.predict_proba(X)
    return np.clip(said[:, -1], 0.0, 1.0)
