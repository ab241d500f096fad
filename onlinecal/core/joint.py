"""The argument of measures: Γ, the joint distribution of predictions and outcomes."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, Unpack, cast, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from onlinecal.core._compile import kernel
from onlinecal.core.arrays import Floats, locked
from onlinecal.core.errors import InvalidData, InvalidParameter
from onlinecal.core.samples import Words, ours, plain, with_ours
from onlinecal.core.validation import (
    check_lengths,
    check_names,
    check_outcomes,
    check_same_rows,
    check_total,
    check_unit,
    check_weights,
    integer,
    vector,
)
from onlinecal.core.words import number_of

#: the finest grid to which predictions are rounded, in steps of 1/m: beyond it they hardly move at all
FINEST = 2**50

#: levels that are worked on at a time where an array of all would be a copy
CHUNK = 2**16
#: the most levels at which arrays that can be computed again are kept
KEPT = 2**22

PARTS = ("predictions", "counts", "positives", "means")


def _kept(make: Callable[[Any], Floats]) -> Any:
    """A property that is computed once; where there are more than `KEPT` levels, each time, and no memory keeps it."""

    def get(self: Any) -> Floats:
        kept = vars(self).get(make.__name__)
        if kept is None:
            kept = locked(make(self))
            if self.levels <= KEPT:
                vars(self)[make.__name__] = kept
        return kept

    return property(get, doc=make.__doc__)


class OnLevels:
    """Base of Γ of two outcomes and of Γ of K classes: the weight and mass of its level sets."""

    predictions: Floats
    counts: Floats

    def __init__(self, *arguments: Any, **options: Any) -> None:
        expected = "from_samples, from_counts or from_levels"
        raise InvalidData(f"{type(self).__name__} is not built from its parts; expected {expected}")

    @property
    def levels(self) -> int:
        """k, the number of level sets."""
        return len(self.predictions)

    @cached_property
    def weight(self) -> float:
        """Total weight: T for a game of T rounds. The online total of a measure μ is weight · μ(Γ)."""
        return float(self.counts.sum())

    @_kept
    def mass(self) -> Floats:
        """w_i: share of the weight at each level; sums to 1."""
        return self.counts / self.weight


@dataclass(frozen=True, eq=False, repr=False, init=False)
class JointDistribution(OnLevels):
    """The distribution Γ of (v, y) on [0, 1] × {0, 1}, reduced to its level sets.

    A level set is an exact floating-point value of the prediction: 0.3 and 0.1 + 0.2 are two levels. Build one
    with `from_samples`, `from_counts` or `from_levels`; the arrays are read-only.

    Attributes
    ----------
    predictions : (k,) floats
        The distinct predictions v_1 < … < v_k.
    counts : (k,) floats
        Weight of each level set: the number of rounds that predicted v_i, where the samples have no weights.
    positives : (k,) floats
        Weight of the outcomes 1 in each level set.
    means : (k,) floats
        Conditional means q_i = E[y | v_i].

    Examples
    --------
    >>> gamma = JointDistribution.from_samples([0.2, 0.2, 0.7], [0, 1, 1])
    >>> gamma.predictions, gamma.means, gamma.weight
    (array([0.2, 0.7]), array([0.5, 1. ]), 3.0)
    """

    predictions: Floats
    counts: Floats
    positives: Floats
    means: Floats

    @classmethod
    @with_ours
    def from_samples(
        cls, p: ArrayLike, y: ArrayLike, *, weights: ArrayLike | None = None, **words: Unpack[Words]
    ) -> "JointDistribution":
        """Γ of a list of predictions and outcomes.

        Parameters
        ----------
        p : (n,) array_like
            Predictions in [0, 1]. Each is taken as the float64 that it is: a float32 0.3 is 0.30000001192…. Of two
            columns that sum to 1, as of scikit-learn's `predict_proba`, the second is taken.
        y : (n,) array_like
            Outcomes, each 0 or 1 (or a boolean), or labels.
        weights : (n,) array_like, optional
            Finite weights ≥ 0 with a positive sum; samples of weight 0 are dropped. Default: 1 each. Whole ones are
            added exactly; a sum of m others is rounded by at most m 2⁻⁵³ of itself.
        **words
            Of outcomes that are labels: `positive`, the one that counts as 1 (default: 1); `negative`, one or a list of
            those that count as 0 (default: the only other one); `drop`, those whose rows are left out. Of amounts:
            `above`, the number beyond which they count as 1.

        Returns
        -------
        JointDistribution
            The order of the samples does not matter (with `weights`, up to rounding in the sums).

        Raises
        ------
        InvalidData
            Samples that are not forecasts and outcomes; the message names the first offending position.

        Notes
        -----
        All functions of samples take scikit-learn's names for ours: `y_true`, `y_prob`, `sample_weight`, `pos_label`.
        Where there are bins, so are `n_bins` and the `strategy` "uniform".
        """
        p, y, *w = samples(p, y, weights, **words)
        if weights is None:
            # A double in [0, 1] has its two top bits clear. So (bits of p, y) fits one integer with the order of
            # (p, y). One plain sort is several times faster than sorting an index.
            keys = encode(p, y)
            del y  # a copy, where outcomes were given as whole numbers
            keys.sort()
            return cls.from_sorted_keys(keys)
        order = np.argsort(p, kind="stable")
        return cls.from_sorted_levels(p[order] + 0.0, w[0][order], (w[0] * y)[order])

    @classmethod
    def from_counts(
        cls, predictions: ArrayLike, counts: ArrayLike, positives: ArrayLike
    ) -> "JointDistribution":
        """Γ from the number of rounds, and of outcomes 1, for each prediction.

        Parameters
        ----------
        predictions : (k,) array_like
            Values in [0, 1], in any order; equal ones are merged.
        counts, positives : (k,) array_like
            Finite weights with 0 ≤ positives ≤ counts; levels of count 0 are dropped.
        """
        given = _vectors({"predictions": predictions, "counts": counts, "positives": positives})
        v, n, s = (each + 0.0 for each in given)
        check_unit("predictions", v)
        check_weights("counts", n)
        bad = ~((s >= 0) & (s <= n))
        if bad.any():
            i = int(np.argmax(bad))
            said = f"positives[{i}] = {float(s[i])!r} with counts[{i}] = {float(n[i])!r}"
            raise InvalidData(f"{said}; expected 0 ≤ positives ≤ counts")
        order = np.argsort(v, kind="stable")
        return cls.from_sorted_levels(v[order], n[order], s[order])

    @classmethod
    def from_levels(cls, predictions: ArrayLike, mass: ArrayLike, means: ArrayLike) -> "JointDistribution":
        """Γ of a theoretical example: mass and conditional mean of each prediction.

        Parameters
        ----------
        predictions : (k,) array_like
            Strictly increasing values in [0, 1].
        mass : (k,) array_like
            Positive weights; their sum is the total weight (1 for a distribution).
        means : (k,) array_like
            Conditional means in [0, 1], kept to the last digit.

        Examples
        --------
        >>> JointDistribution.from_levels([0.45], [1], [0.55]).residuals
        array([0.1])
        """
        v, w, q = _vectors({"predictions": predictions, "mass": mass, "means": means})
        check_unit("predictions", v)
        check_unit("means", q)
        check_weights("mass", w)
        if not (v[1:] > v[:-1]).all():
            raise InvalidData("predictions do not increase strictly; expected distinct sorted levels")
        if not (w > 0).all():
            raise InvalidData(f"mass[{int(np.argmin(w > 0))}] is 0; expected positive masses")
        return cls._frozen(v + 0.0, w.copy(), w * q, q + 0.0)

    @classmethod
    def from_sorted_keys(cls, keys: NDArray[np.int64]) -> "JointDistribution":
        """Γ of samples given as the sorted integers of `encode`. For histories; nothing is checked."""
        bits, n, s, _ = levels_of_rows(keys[None, :])
        # Of forecasts that are all distinct the means are the outcomes: one array.
        return cls._frozen(bits.view(np.float64), n, s, s if len(n) == len(keys) else s / n)

    @classmethod
    def from_sorted_levels(
        cls, v: Floats, n: Floats, s: Floats, q: Floats | None = None
    ) -> "JointDistribution":
        """Γ of weights with v ascending, ties and zero weights allowed; nothing is checked, nothing copied.

        Levels that stay alone keep their means q to the last digit, where these are given.
        """
        keep = n > 0
        if not keep.all():
            v, n, s = v[keep], n[keep], s[keep]
            q = None if q is None else q[keep]
        new = np.empty(len(v), dtype=bool)
        new[0] = True
        np.not_equal(v[1:], v[:-1], out=new[1:])
        if not new.all():
            starts = np.flatnonzero(new)
            v, n, s = v[starts], np.add.reduceat(n, starts), np.add.reduceat(s, starts)
            # Sums of weights are rounded; a level in which every outcome is 1 stays one.
            np.minimum(s, n, out=s)
            if q is not None:
                q = np.clip(s / n, np.minimum.reduceat(q, starts), np.maximum.reduceat(q, starts))
        return cls._frozen(v, n, s, s / n if q is None else q)

    @classmethod
    def _frozen(cls, *arrays: Floats) -> "JointDistribution":
        """Γ of these arrays, which have no other owner: read-only from here on."""
        gamma = object.__new__(cls)
        # A read-only array comes from another Γ, locked before.
        parts = (locked(array) if array.flags.writeable else array for array in arrays)
        vars(gamma).update(zip(PARTS, parts, strict=True))
        return gamma

    def __reduce__(self) -> Any:
        # Copies and pickles keep what cannot be computed again, and come back read-only.
        return _restored, tuple(np.asarray(getattr(self, part)) for part in PARTS)

    @_kept
    def residuals(self) -> Floats:
        """r_i = w_i (q_i − v_i); exactly 0 where the level is calibrated to the last digit."""
        errors = self.means - self.predictions
        for at in range(0, len(errors), CHUNK):  # without a copy of the masses, which may be large
            errors[at : at + CHUNK] *= self.counts[at : at + CHUNK] / self.weight
        return errors

    @cached_property
    def base_rate(self) -> float:
        """E[y]."""
        return float(self.positives.sum() / self.weight)

    def merge(self, *others: "JointDistribution") -> "JointDistribution":
        """Γ of all the rounds together: total weights add, equal levels join.

        A level of one part keeps its mean to the last digit; the mean of joined ones lies between theirs.
        """
        parts = (self, *others)
        for other in others:
            check_gamma("merge", other)
        check_total("merge: weights", sum(g.weight for g in parts))
        v, n, s, q = (np.concatenate([getattr(g, part) for g in parts]) for part in PARTS)
        order = np.argsort(v, kind="stable")
        return self.from_sorted_levels(v[order], n[order], s[order], q[order])

    def round(self, m: int) -> "tuple[JointDistribution, float]":
        """Γ with each prediction moved to the nearest i/m (ties to the even i), and the mean distance moved."""
        m = integer("round", "m", m, 1, FINEST)
        grid = np.rint(self.predictions * m) / m
        moved = float(self.mass @ np.abs(grid - self.predictions))
        return self.from_sorted_levels(grid, self.counts, self.positives, self.means), moved

    def flip(self) -> "JointDistribution":
        """Γ of 1 − v and 1 − y."""
        v, n, s, q = (getattr(self, part)[::-1] for part in PARTS)
        if ((v := 1.0 - v)[1:] > v[:-1]).all():
            return self._frozen(v, n.copy(), (n - s).copy(), 1.0 - q)
        return self.from_sorted_levels(v, n, n - s, 1.0 - q)

    def __repr__(self) -> str:
        levels, ends = number_of(self.levels, "level"), f"[{self.predictions[0]:g}, {self.predictions[-1]:g}]"
        rest = f"weight {self.weight:g}, base rate {self.base_rate:.4g}"
        return f"JointDistribution({levels} in {ends}, {rest})"


P = ParamSpec("P")
R = TypeVar("R", covariant=True)
#: inserted into the docstring of a function of Γ, below its first line
_TAKES = (
    "Takes Γ, or in its place predictions p and outcomes y as two arguments, with `weights` and all else of\n"
    "    `JointDistribution.from_samples`."
)
#: what is given in the place of Γ
_SAMPLES = ("p", "y", "weights", *Words.__annotations__)


class OfGamma(Protocol[P, R]):
    """A function of Γ, or of samples (p, y) in its place."""

    __name__: str

    @overload
    def __call__(self, gamma: JointDistribution, /, *arguments: P.args, **options: P.kwargs) -> R: ...
    @overload
    def __call__(self, p: ArrayLike, y: ArrayLike, /, *arguments: Any, **options: Any) -> R: ...
    @overload
    def __call__(self, **options: Any) -> R: ...


def check_gamma(where: str, gamma: Any) -> None:
    """Refuse what is not Γ; `where` names the function that it was given."""
    if not isinstance(gamma, JointDistribution):
        expected = "a JointDistribution, such as JointDistribution.from_samples(p, y)"
        raise InvalidData(f"{where}: {type(gamma).__name__} given; expected {expected}")


def of_gamma(function: Callable[Concatenate[JointDistribution, P], R]) -> OfGamma[P, R]:
    """A function of Γ that also takes samples (p, y), and refuses all else; its docstring says so."""

    @wraps(function)
    def checked(*given: Any, **options: Any) -> R:
        if options or not given or type(given[0]) is not JointDistribution:
            given, options = _with_gamma(function.__name__, given, options)
            check_names(function.__name__, function, options, _SAMPLES)
        return function(*given, **options)

    first, _, rest = (function.__doc__ or "").partition("\n\n")
    checked.__doc__ = f"{first}\n\n    {_TAKES}\n\n{rest}"
    return cast("OfGamma[P, R]", checked)


def _with_gamma(name: str, given: Any, options: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The same arguments with Γ in the place of samples."""
    first = given[0] if given else options.get("gamma")
    known = isinstance(first, JointDistribution)
    options = ours(name, options, () if known else _SAMPLES[: len(given)])
    rows = {key: options.pop(key) for key in _SAMPLES if key in options}
    if known:
        if rows:
            raise InvalidParameter(
                f"{name}: {next(iter(rows))} beside a JointDistribution; expected p and y with it"
            )
        return given, options
    rest = list(given)
    for key in ("p", "y"):
        if rest and hasattr(rest[0], "__len__") and not isinstance(rest[0], str):
            if key in rows:
                raise InvalidParameter(f"{name}: {key} is given twice; expected it once")
            rows[key] = rest.pop(0)
    if "p" not in rows or "y" not in rows:
        check_gamma(name, rows.get("p", first))
    return (JointDistribution.from_samples(**rows), *rest), options


def encode(p: Floats, y: Floats) -> NDArray[np.int64]:
    """One integer per sample, ordered as (p, y): the bits of p, then y. Needs 0 ≤ p ≤ 1."""
    keys = np.asarray(p + 0.0).view(np.int64)  # + 0.0 turns −0.0 into 0.0
    keys <<= 1
    keys |= y != 0
    return keys


@kernel
def levels_of_rows(keys):
    """The bits of the levels, counts, positives of each row of sorted keys, one behind the other, and starts."""
    k = 0
    for b in range(len(keys)):
        for t in range(keys.shape[1]):
            k += t == 0 or keys[b, t] >> 1 != keys[b, t - 1] >> 1
    bits, n, s, starts = np.empty(k, np.int64), np.zeros(k), np.zeros(k), np.zeros(len(keys) + 1, np.int64)
    k = 0
    for b in range(len(keys)):
        for t in range(keys.shape[1]):
            if t == 0 or keys[b, t] >> 1 != keys[b, t - 1] >> 1:
                bits[k] = keys[b, t] >> 1
                k += 1
            n[k - 1] += 1.0
            s[k - 1] += keys[b, t] & 1
        starts[b + 1] = k
    return bits, n, s, starts


def _restored(*arrays: Floats) -> JointDistribution:
    return JointDistribution._frozen(*(array.copy() for array in arrays))


def samples(p: Any, y: Any, weights: Any = None, **words: Unpack[Words]) -> list[Floats]:
    """Predictions, outcomes and weights, if any, as vectors that are checked; the caller's memory."""
    rows = plain({"p": p, "y": y, "weights": weights}, **words)
    found = _vectors({name: rows[name] for name in ("p", "y", "weights")[: 2 + (weights is not None)]})
    check_unit("p", found[0])
    check_outcomes(*found[:2])
    if weights is not None:
        check_weights("weights", found[2])
    return found


def _vectors(rows: dict[str, Any]) -> list[Floats]:
    """The arrays given, by name, checked to be vectors of as many numbers; the caller's memory."""
    vectors = {name: vector(name, values) for name, values in rows.items()}
    check_lengths(vectors)
    check_same_rows(rows)
    return list(vectors.values())
