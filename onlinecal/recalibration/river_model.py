"""Recalibration in river's protocol: `predict_proba_one` and `learn_one`, with labels that may come late."""

import inspect
import pickle
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from onlinecal.core.errors import InvalidData, InvalidParameter, lacking
from onlinecal.core.validation import number
from onlinecal.recalibration.methods import DEFAULT
from onlinecal.recalibration.recalibrator import Asked, Recalibrator

try:
    from river import base
except ImportError as error:
    raise InvalidParameter(lacking("RiverRecalibrator", "river", "river", error)) from None


#: the largest weight
MOST = 10**4


class BaseForecast(base.Classifier):
    """The classifier that repeats a feature: a forecast that comes with the data, a number in [0, 1]."""

    def __init__(self, feature: str = "forecast") -> None:
        self.feature = feature

    def learn_one(self, x: Mapping[Any, Any], y: Any) -> None:
        """Learns nothing."""

    def predict_proba_one(self, x: Mapping[Any, Any], **more: Any) -> dict[Any, float]:
        """The feature as a probability; nothing where it is missing."""
        p = x.get(self.feature)
        return {} if p is None else {False: 1.0 - p, True: float(p)}

    @classmethod
    def _unit_test_params(cls) -> Any:
        yield {"feature": "ip_in_url"}


class RiverRecalibrator(base.Wrapper["base.Classifier"], base.Classifier):
    """A binary classifier of river with probabilities that are recalibrated as labels come.

    Each label teaches the recalibrator with the probability that the classifier had for it before, and then the
    classifier. Labels may come late, and in any order. A question of `predict_proba_one` or `predict_one` waits, with
    its probability, for `learn_one` with the same x. A label without a question is forecast when it comes. A label of
    weight `w` is told w times. Where w is not whole the rest goes to the next labels.

    Notes: Probabilities are means of the forecaster's laws: of one that randomises they are not the draws of its
    guarantees.

    Parameters
    ----------
    classifier : river.base.Classifier
        `BaseForecast` where the forecasts come with the data.
    forecaster, bins, seed
        As for `onlinecal.Recalibrator`.
    positive, negative : default True and False
        The label that is forecast, and the other one.
    open_at_most : int, default 100_000
        How many questions wait; beyond, the oldest is forgotten.

    Examples
    --------
    >>> model = RiverRecalibrator(BaseForecast("p"), "calibeating")
    >>> for y in (True, False, False):
    ...     model.learn_one({"p": 0.8}, y)
    >>> round(model.predict_proba_one({"p": 0.8})[True], 3)
    0.45
    """

    def __init__(
        self,
        classifier: Any,
        forecaster: Any = DEFAULT,
        bins: int | None = None,
        seed: int = 0,
        positive: Any = True,
        negative: Any = False,
        open_at_most: int = 100_000,
    ) -> None:
        self.classifier, self.forecaster, self.bins, self.seed = classifier, forecaster, bins, seed
        self.positive, self.negative, self.open_at_most = positive, negative, open_at_most
        self._recalibrator = Recalibrator(forecaster, bins=bins, seed=seed)
        self._open: OrderedDict[Any, Asked] = OrderedDict()
        self._rest = 0.5  # what is left of weights that are no whole number

    @property
    def _wrapped_model(self) -> Any:
        return self.classifier

    @property
    def _multiclass(self) -> bool:
        return False

    @property
    def _raw_memory_usage(self) -> int:
        """Bytes of the classifier and of the state; compiled code, which all models share, is not counted."""
        return int(self.classifier._raw_memory_usage) + len(pickle.dumps((self._recalibrator, self._open)))

    @classmethod
    def _unit_test_params(cls) -> Any:
        from river import linear_model

        yield {"classifier": linear_model.LogisticRegression()}

    def predict_proba_one(self, x: Mapping[Any, Any], **more: Any) -> dict[Any, float]:
        """The recalibrated probabilities of both labels."""
        p = self._base(x, more)
        key = _key(x)
        if key not in self._open:
            self._open[key] = asked = self._recalibrator.ask(p)
            while len(self._open) > self.open_at_most:
                self._open.popitem(last=False)
            mean = asked.mean
        else:
            mean = self._recalibrator.mean(p)
        return {self.negative: 1.0 - mean, self.positive: mean}

    def learn_one(self, x: Mapping[Any, Any], y: Any, w: float = 1.0, **more: Any) -> None:
        """The label of x, which counts w times; the classifier is given w if it takes it."""
        if y != self.positive and y != self.negative:
            raise InvalidData(f"y = {y!r}; expected {self.positive!r} or {self.negative!r}")
        weight = number("learn_one", "w", w, 0.0, MOST) + self._rest
        asked = self._open.pop(_key(x), None)
        base = self._base(x, more) if asked is None else asked.base
        for _ in range(int(weight)):
            self._recalibrator.tell(asked or self._recalibrator.ask(base), int(y == self.positive))
            asked = None
        self._rest = weight % 1.0
        if w != 1.0 and "w" in inspect.signature(self.classifier.learn_one).parameters:
            more["w"] = w
        if w > 0.0:
            self.classifier.learn_one(x, y, **more)

    def _base(self, x: Mapping[Any, Any], more: Mapping[str, Any]) -> float:
        """The probability of the classifier; 1/2 where it has none yet."""
        said = self.classifier.predict_proba_one(x, **more)
        if not said:
            return 0.5
        # The labels of forecasts that come with the data are True and False, whatever those of y are.
        label = True if isinstance(self.classifier, BaseForecast) else self.positive
        return min(max(float(said.get(label, 0.0)), 0.0), 1.0)


def _key(x: Mapping[Any, Any]) -> Any:
    """A key of x, in whatever order its features come."""
    try:
        key = frozenset(x.items())
        hash(key)
    except TypeError:
        return repr(sorted(map(repr, x.items())))
    return key
