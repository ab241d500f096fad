"""Γ of K classes: the joint distribution of predictions in the simplex and labels, the argument of their measures."""

import inspect
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cached_property, wraps
from typing import Any, Concatenate, NamedTuple, ParamSpec, Protocol, TypeVar, cast, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from onlinecal.core.arrays import Floats, Ints, locked
from onlinecal.core.errors import InvalidData, InvalidParameter, in_one_line
from onlinecal.core.joint import JointDistribution, OnLevels
from onlinecal.core.samples import ours, with_ours
from onlinecal.core.simplex import (
    Label,
    added,
    in_simplex,
    labels_of,
    level_of_rows,
    matrix,
    names_of,
    places,
    probabilities,
)
from onlinecal.core.validation import (
    check_lengths,
    check_names,
    check_same_rows,
    check_weights,
    vector,
)
from onlinecal.core.words import number_of

PARTS = ("predictions", "counts", "tallies", "means")


class ClassRows(NamedTuple):
    """The rows of Γ: the level and class of each, its weight if there are any, and which of all rows these are."""

    level: Ints
    y: Ints
    weights: Floats | None
    kept: NDArray[np.bool_]


@dataclass(frozen=True, eq=False, repr=False, init=False)
class ClassDistribution(OnLevels):
    """The distribution Γ of (v, y), v a vector of K probabilities and y one of K classes, reduced to its level sets.

    A level set is an exact vector of floating-point values. Build one with `from_samples`, `from_counts` or
    `from_levels`; the arrays are read-only. The order of the levels is that of their first classes.

    Attributes
    ----------
    predictions : (k, K) floats
        The distinct predictions v_1, …, v_k; each row sums to 1.
    counts : (k,) floats
        Weight of each level set: the number of rows that predicted v_i, where these have no weights.
    tallies : (k, K) floats
        Weight of each class among the outcomes of each level set.
    means : (k, K) floats
        Conditional means q_i: the share of each class given v_i.
    labels : tuple
        The names of the classes, in the order of the columns.

    Examples
    --------
    >>> gamma = ClassDistribution.from_samples([[0.5, 0.3, 0.2], [0.5, 0.3, 0.2], [0, 0, 1]], [0, 1, 2])
    >>> gamma.predictions.tolist(), gamma.counts.tolist(), gamma.means.tolist()
    ([[0.0, 0.0, 1.0], [0.5, 0.3, 0.2]], [1.0, 2.0], [[0.0, 0.0, 1.0], [0.5, 0.5, 0.0]])
    """

    predictions: Floats
    counts: Floats
    tallies: Floats
    means: Floats
    labels: tuple[Label, ...]

    @classmethod
    @with_ours
    def from_samples(
        cls,
        p: ArrayLike,
        y: ArrayLike,
        *,
        weights: ArrayLike | None = None,
        labels: Sequence[Label] | None = None,
    ) -> "ClassDistribution":
        """Γ of a list of predictions and outcomes.

        Parameters
        ----------
        p : (n, K) array_like
            A row of probabilities for each sample, K ≥ 2. A row sums to 1 within 10⁻⁶. If it misses 1 by more than
            rounding, it is divided by its sum. Then rows that are equal to the last bit are one level.
        y : (n,) array_like
            The column of what happened, 0 to K − 1; or its label.
        weights : (n,) array_like, optional
            Finite weights ≥ 0 with a positive sum; samples of weight 0 are dropped. Default: 1 each.
        labels : sequence of K, optional
            The labels of the columns, all different: scikit-learn's `classes_`. Default: the names of the columns of a
            data frame where `y` holds words; else 0 to K − 1.

        Returns
        -------
        ClassDistribution
            The order of the samples does not matter (with `weights`, up to rounding in the sums).

        Raises
        ------
        InvalidData
            Samples that are not forecasts and outcomes; the message names the first offending position.
        """
        return cls.with_rows(p, y, weights, labels)[0]

    @classmethod
    def with_rows(
        cls, p: ArrayLike, y: ArrayLike, weights: ArrayLike | None, labels: Sequence[Label] | None
    ) -> "tuple[ClassDistribution, ClassRows]":
        """Γ of samples as in `from_samples`, and the rows that it has."""
        check_same_rows({"p": p, "y": y, "weights": weights})
        columns = getattr(p, "columns", None)
        if labels is None and columns is not None and np.asarray(y).dtype.kind not in "biufc":
            labels = list(columns)
        table = in_simplex("p", probabilities("p", p))
        place = places("y", y, labels, table.shape[1])
        if len(place) != len(table):
            raise InvalidData(f"p has {len(table)} rows and y {len(place)} values; expected as many of each")
        w, kept = None, np.ones(len(table), dtype=bool)
        if weights is not None:
            w = vector("weights", weights)
            check_lengths({"p": table, "weights": w})
            check_weights("weights", w)
            kept = w > 0.0
            table, place, w = table[kept], place[kept], w[kept]
        size, level = table.shape[1], level_of_rows(table)
        many = int(level.max()) + 1
        predictions = np.empty((many, size))
        predictions[level] = table
        tallies = np.bincount(level * size + place, w, many * size).reshape(many, size).astype(np.float64)
        return cls._of_tallies(predictions, tallies, labels), ClassRows(level, place, w, kept)

    @classmethod
    def from_counts(
        cls, predictions: ArrayLike, tallies: ArrayLike, *, labels: Sequence[Label] | None = None
    ) -> "ClassDistribution":
        """Γ from the number of rows of each prediction and outcome.

        Parameters
        ----------
        predictions : (k, K) array_like
            Probabilities as in `from_samples`, in any order; equal ones are merged.
        tallies : (k, K) array_like
            Finite weights ≥ 0: how often each class happened. Levels without any are dropped.
        labels : sequence of K, optional
            Default: 0 to K − 1.
        """
        table, given = (
            in_simplex("predictions", probabilities("predictions", predictions)),
            matrix("tallies", tallies),
        )
        _check_shapes("tallies", given, table)
        for j in range(given.shape[1]):
            bad = ~((given[:, j] >= 0.0) & (given[:, j] < np.inf))
            if bad.any():
                i = int(np.argmax(bad))
                raise InvalidData(f"tallies[{i}, {j}] = {float(given[i, j])!r}; expected a finite number ≥ 0")
        check_weights("tallies", given.ravel())
        table, given = (each[given.sum(axis=1) > 0.0] for each in (table, given))
        level = level_of_rows(table)
        joined, merged = (np.zeros((int(level.max()) + 1, table.shape[1])) for _ in range(2))
        joined[level] = table
        np.add.at(merged, level, given)
        return cls._of_tallies(joined, merged, labels)

    @classmethod
    def from_levels(
        cls,
        predictions: ArrayLike,
        mass: ArrayLike,
        means: ArrayLike,
        *,
        labels: Sequence[Label] | None = None,
    ) -> "ClassDistribution":
        """Γ of a theoretical example: mass and conditional means of each prediction.

        Parameters
        ----------
        predictions : (k, K) array_like
            Distinct vectors of probabilities; each sums to 1 within 10⁻⁶, as in `from_samples`.
        mass : (k,) array_like
            Positive weights; their sum is the total weight (1 for a distribution).
        means : (k, K) array_like
            The share of each class, as `predictions`.
        labels : sequence of K, optional
            Default: 0 to K − 1.

        Examples
        --------
        >>> ClassDistribution.from_levels([[0.5, 0.3, 0.2]], [1], [[0.5, 0.25, 0.25]]).residuals.round(12)
        array([[ 0.  , -0.05,  0.05]])
        """
        v = in_simplex("predictions", probabilities("predictions", predictions))
        q = in_simplex("means", probabilities("means", means))
        w = vector("mass", mass)
        _check_shapes("means", q, v)
        check_lengths({"predictions": v, "mass": w})
        check_weights("mass", w)
        if not (w > 0).all():
            raise InvalidData(f"mass[{int(np.argmin(w > 0))}] is 0; expected positive masses")
        level = level_of_rows(v)
        if int(level.max()) + 1 < len(v):
            order = np.argsort(level, kind="stable")
            i = int(order[int(np.argmin(np.diff(level[order]))) + 1])
            raise InvalidData(f"predictions[{i}] is there twice; expected distinct levels")
        order = np.argsort(level)
        return cls._frozen([v[order], w[order], (w[:, None] * q)[order], q[order]], labels)

    @classmethod
    def _of_tallies(
        cls, predictions: Floats, tallies: Floats, labels: Sequence[Label] | None
    ) -> "ClassDistribution":
        counts = tallies.sum(axis=1)
        return cls._frozen([predictions, counts, tallies, tallies / counts[:, None]], labels)

    @classmethod
    def _frozen(cls, arrays: Sequence[Floats], labels: Sequence[Label] | None) -> "ClassDistribution":
        """Γ of these arrays, which have no other owner: read-only from here on."""
        gamma = object.__new__(cls)
        vars(gamma).update(zip(PARTS, map(locked, arrays), strict=True))
        vars(gamma)["labels"] = names_of(labels, arrays[0].shape[1])
        return gamma

    def __reduce__(self) -> Any:
        return _restored, (tuple(np.asarray(getattr(self, part)) for part in PARTS), self.labels)

    @property
    def classes(self) -> int:
        """K, the number of classes."""
        return len(self.labels)

    @cached_property
    def residuals(self) -> Floats:
        """r_i = w_i (q_i − v_i), (k, K); exactly 0 where the level is calibrated to the last digit."""
        return cast(Floats, locked((self.means - self.predictions) * self.mass[:, None]))

    @cached_property
    def base_rates(self) -> Floats:
        """The share of each class among the outcomes, (K,)."""
        return cast(Floats, locked(self.tallies.sum(axis=0) / self.weight))

    @property
    def top(self) -> Ints:
        """The column with the largest probability of each level; of equal ones the first."""
        return self.predictions.argmax(axis=1)

    def place(self, label: Label) -> int:
        """The column of a class."""
        if label not in self.labels:
            raise InvalidParameter(
                f"class {in_one_line(label)} is not there; expected one of {labels_of(self.labels)}"
            )
        return self.labels.index(label)

    def binary(self, classes: Collection[Label]) -> JointDistribution:
        """Γ of the event that the outcome is one of these classes, predicted with the sum of their probabilities.

        Parameters
        ----------
        classes : collection of labels
            At least one, and not all of them.
        """
        if isinstance(classes, str) or not isinstance(classes, Collection):
            raise InvalidParameter(
                f"classes = {in_one_line(classes)}; expected a collection, such as {{0, 2}}"
            )
        columns = sorted({self.place(label) for label in classes})
        if not 0 < len(columns) < self.classes:
            raise InvalidParameter(
                f"classes = {in_one_line(classes)}; expected at least one of {labels_of(self.labels)}, and not all"
            )
        s, q = (each[:, columns].sum(axis=1) for each in (self.tallies, self.means))
        return self._event(added(self.predictions, columns), s, q)

    def merge(self, *others: "ClassDistribution") -> "ClassDistribution":
        """Γ of all the rows together: total weights add, equal levels join; all have the same labels."""
        parts = (self, *others)
        if any(other.labels != self.labels for other in others):
            raise InvalidData("merge: Γ of other labels; expected the same classes in one order")
        v, s = (
            np.concatenate([getattr(part, name) for part in parts]) for name in ("predictions", "tallies")
        )
        return self.from_counts(v, s, labels=self.labels)

    def classwise(self, label: Label) -> JointDistribution:
        """Γ of the event that the outcome is this class, predicted with its probability."""
        return self.binary([label])

    def toplabel(self) -> JointDistribution:
        """Γ of the event that the outcome is the class with the largest probability, predicted with this (confidence).

        Of classes with equal probabilities it is the first.
        """
        v, s, q = (self._at_top(each) for each in (self.predictions, self.tallies, self.means))
        return self._event(v, s, q)

    def toplabels(self) -> dict[Label, JointDistribution]:
        """The same for each class that is the likeliest one in some level; total weights are theirs."""
        v, s, q = (self._at_top(each) for each in (self.predictions, self.tallies, self.means))
        found = ((label, self.top == k) for k, label in enumerate(self.labels))
        return {label: self._event(v, s, q, there) for label, there in found if there.any()}

    def _at_top(self, values: Floats) -> Floats:
        return np.take_along_axis(values, self.top[:, None], axis=1)[:, 0]

    def _event(self, v: Floats, s: Floats, q: Floats, some: Any = slice(None)) -> JointDistribution:
        """Γ of an event from its probability, weight and share in each level; sums are rounded."""
        v, n, s, q = v[some], self.counts[some], s[some], np.minimum(q, 1.0)[some]
        order = np.argsort(v, kind="stable")
        return JointDistribution.from_sorted_levels(v[order], n[order], np.minimum(s, n)[order], q[order])

    def __repr__(self) -> str:
        levels = number_of(self.levels, "level")
        return f"ClassDistribution({levels}, {self.classes} classes, weight {self.weight:g})"


def _restored(arrays: tuple[Floats, ...], labels: tuple[Label, ...]) -> ClassDistribution:
    return ClassDistribution._frozen([array.copy() for array in arrays], labels)


def _check_shapes(name: str, given: Floats, predictions: Floats) -> None:
    if given.shape != predictions.shape:
        raise InvalidData(
            f"{name} have shape {given.shape}; expected {predictions.shape}, that of predictions"
        )


P = ParamSpec("P")
R = TypeVar("R", covariant=True)
#: inserted into the docstring of a function of Γ, below its first line
_TAKES = (
    "Takes Γ of K classes, or in its place predictions p (n, K) and outcomes y as two arguments, with `weights` and\n"
    "    `labels` of `ClassDistribution.from_samples`."
)


class OfClasses(Protocol[P, R]):
    """A function of Γ of K classes, or of samples (p, y)."""

    __name__: str

    @overload
    def __call__(self, gamma: ClassDistribution, *args: P.args, **kwargs: P.kwargs) -> R: ...
    @overload
    def __call__(self, *args: Any, **kwargs: Any) -> R: ...


def of_classes(function: Callable[Concatenate[ClassDistribution, P], R]) -> OfClasses[P, R]:
    """A function of Γ of K classes that also takes samples (p, y), and refuses all else; its docstring says so."""

    name, expected = function.__name__, "expected a ClassDistribution, or p of K columns and y"
    of_measure = "measure" in inspect.signature(function).parameters

    @wraps(function)
    def checked(*given: Any, **options: Any) -> R:
        # A binary measure may stand first: setwise("smooth_ce", gamma).
        if (
            of_measure
            and given
            and "measure" not in options
            and (isinstance(given[0], str) or callable(given[0]))
        ):
            given, options = given[1:], {"measure": given[0], **options}
        alone = isinstance(given[0], ClassDistribution) if given else False
        taken = ("gamma",) if alone or (len(given) == 1 and "y" not in options) else ("p", "y")
        if len(given) > len(taken):
            raise InvalidParameter(f"{name}: {len(given)} arguments; {expected}, and options by their names")
        options = dict(zip(taken, given, strict=False)) | ours(name, options, taken[: len(given)])
        rows = {key: options.pop(key) for key in ("p", "y", "weights", "labels") if key in options}
        gamma = options.pop("gamma", None)
        if "p" in rows and "y" in rows and gamma is None:
            gamma = ClassDistribution.from_samples(**rows)
        elif rows or not isinstance(gamma, ClassDistribution):
            raise InvalidData(f"{name}: {', '.join(rows) or type(gamma).__name__} given; {expected}")
        check_names(name, function, options)
        return cast(Any, function)(gamma, **options)

    first, _, rest = (function.__doc__ or "").partition("\n\n")
    checked.__doc__ = f"{first}\n\n    {_TAKES}\n\n{rest}"
    return cast("OfClasses[P, R]", checked)
