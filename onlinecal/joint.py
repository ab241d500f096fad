"""Γ, the joint distribution of predictions and outcomes: the only thing that a measure sees."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from onlinecal._compile import kernel
from onlinecal.errors import InvalidData

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class JointDistribution:
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

    # ---------------------------------------------------------------- construction

    @classmethod
    def from_samples(
        cls, p: ArrayLike, y: ArrayLike, *, weights: ArrayLike | None = None
    ) -> JointDistribution:
        """Γ of a list of predictions and outcomes.

        Parameters
        ----------
        p : (n,) array_like
            Predictions in [0, 1]. Each is taken as the float64 that it is: a float32 0.3 is 0.30000001192….
        y : (n,) array_like
            Outcomes, each 0 or 1 (or a boolean).
        weights : (n,) array_like, optional
            Finite weights ≥ 0 with a positive sum; samples of weight 0 are dropped. Default: 1 each.

        Returns
        -------
        JointDistribution
            In O(n log n); a sample's place in the list does not matter (with `weights`, up to rounding in the sums).

        Raises
        ------
        InvalidData
            Empty, of unequal lengths, not one-dimensional, missing values, p outside [0, 1], y not 0 or 1,
            weights negative, infinite or summing to 0. The message names the first offending position.
        """
        p, y = _vector("p", p), _vector("y", y)
        if len(p) == 0:
            raise InvalidData("no samples: p is empty; expected at least one prediction")
        if len(p) != len(y):
            raise InvalidData(f"p has {len(p)} values and y has {len(y)}; expected as many of each")
        _check_unit("p", p)
        _check_outcomes(p, y)
        if weights is None:
            # A double in [0, 1] has its two top bits clear, so (bits of p, y) fits one integer with the order of
            # (p, y): one plain sort, several times faster than sorting an index.
            keys = encode(p, y)
            keys.sort()
            return cls.from_sorted_keys(keys)
        w = _vector("weights", weights)
        if len(w) != len(p):
            raise InvalidData(f"weights has {len(w)} values and p has {len(p)}; expected as many of each")
        _check_weights("weights", w)
        order = np.argsort(p, kind="stable")
        return cls._from_ordered(p[order] + 0.0, w[order], (w * y)[order])

    @classmethod
    def from_counts(
        cls, predictions: ArrayLike, counts: ArrayLike, positives: ArrayLike
    ) -> JointDistribution:
        """Γ from the number of rounds, and of outcomes 1, for each prediction.

        Parameters
        ----------
        predictions : (k,) array_like
            Values in [0, 1], in any order; equal ones are merged.
        counts, positives : (k,) array_like
            Finite weights with 0 ≤ positives ≤ counts; levels of count 0 are dropped.

        Raises
        ------
        InvalidData
            As `from_samples`; also where positives exceed counts.
        """
        v, n = _vector("predictions", predictions), _vector("counts", counts).copy()
        s = _vector("positives", positives).copy()
        if not len(v) == len(n) == len(s):
            raise InvalidData(
                f"predictions, counts and positives have {len(v)}, {len(n)} and {len(s)} values; "
                "expected as many of each"
            )
        if len(v) == 0:
            raise InvalidData("no level sets: predictions is empty; expected at least one")
        _check_unit("predictions", v)
        _check_weights("counts", n)
        bad = ~((s >= 0) & (s <= n))
        if bad.any():
            i = int(np.argmax(bad))
            raise InvalidData(
                f"positives[{i}] = {s[i]!r} with counts[{i}] = {n[i]!r}; expected 0 ≤ positives ≤ counts"
            )
        if (v[1:] > v[:-1]).all():
            order: Any = slice(None)
        else:
            order = np.argsort(v, kind="stable")
        return cls._from_ordered(v[order] + 0.0, n[order], s[order])

    @classmethod
    def from_levels(cls, predictions: ArrayLike, mass: ArrayLike, means: ArrayLike) -> JointDistribution:
        """Γ of a theoretical example: mass and conditional mean of each prediction.

        Parameters
        ----------
        predictions : (k,) array_like
            Strictly increasing values in [0, 1].
        mass : (k,) array_like
            Positive weights; their sum is the total weight (1 for a distribution).
        means : (k,) array_like
            Conditional means in [0, 1], kept to the last digit.

        Raises
        ------
        InvalidData
            As `from_counts`; also where predictions do not increase or a mass is 0.

        Examples
        --------
        >>> JointDistribution.from_levels([0.45], [1], [0.55]).residuals
        array([0.1])
        """
        v, w, q = (
            _vector("predictions", predictions),
            _vector("mass", mass).copy(),
            _vector("means", means).copy(),
        )
        if not len(v) == len(w) == len(q):
            raise InvalidData(
                f"predictions, mass and means have {len(v)}, {len(w)} and {len(q)} values; expected as many of each"
            )
        if len(v) == 0:
            raise InvalidData("no level sets: predictions is empty; expected at least one")
        _check_unit("predictions", v)
        _check_unit("means", q)
        _check_weights("mass", w)
        if not (v[1:] > v[:-1]).all():
            raise InvalidData("predictions do not increase strictly; expected distinct sorted levels")
        if not (w > 0).all():
            raise InvalidData(f"mass[{int(np.argmin(w > 0))}] is 0; expected positive masses")
        return cls._frozen(v + 0.0, w, w * q, q)

    @classmethod
    def from_sorted_keys(cls, keys: NDArray[np.int64]) -> JointDistribution:
        """Γ of samples given as the sorted integers of `encode`. For ledgers; nothing is checked."""
        return cls._frozen(*_levels_of_keys(keys))

    @classmethod
    def _from_ordered(cls, v: Floats, n: Floats, s: Floats) -> JointDistribution:
        """From weights with v ascending, perhaps with ties and zero weights."""
        keep = n > 0
        if not keep.all():
            v, n, s = v[keep], n[keep], s[keep]
        new = np.empty(len(v), dtype=bool)
        new[0] = True
        np.not_equal(v[1:], v[:-1], out=new[1:])
        if not new.all():
            starts = np.flatnonzero(new)
            v, n, s = v[starts], np.add.reduceat(n, starts), np.add.reduceat(s, starts)
            # Sums of weights are rounded; a level in which every outcome is 1 stays one.
            np.minimum(s, n, out=s)
        return cls._frozen(v, n, s, s / n)

    @classmethod
    def _frozen(cls, *arrays: Floats) -> JointDistribution:
        for array in arrays:
            array.flags.writeable = False
        return cls(*arrays)

    # ---------------------------------------------------------------- what measures read

    @property
    def levels(self) -> int:
        """k, the number of level sets."""
        return len(self.predictions)

    @cached_property
    def weight(self) -> float:
        """Total weight: T for a game of T rounds. The online total of a measure μ is weight · μ(Γ)."""
        return float(self.counts.sum())

    @cached_property
    def mass(self) -> Floats:
        """w_i: share of the weight at each level; sums to 1."""
        return self.counts / self.weight

    @cached_property
    def residuals(self) -> Floats:
        """r_i = w_i (q_i − v_i); exactly 0 where the level is calibrated to the last digit."""
        return self.mass * (self.means - self.predictions)

    @cached_property
    def base_rate(self) -> float:
        """E[y]."""
        return float(self.positives.sum() / self.weight)

    # ---------------------------------------------------------------- new from old

    def merge(self, *others: JointDistribution) -> JointDistribution:
        """Γ of all the rounds together: total weights add, equal levels join."""
        parts = (self, *others)
        v = np.concatenate([g.predictions for g in parts])
        order = np.argsort(v, kind="stable")
        n = np.concatenate([g.counts for g in parts])[order]
        s = np.concatenate([g.positives for g in parts])[order]
        return self._from_ordered(v[order], n, s)

    def round(self, m: int) -> tuple[JointDistribution, float]:
        """Every prediction moved to the nearest i/m (ties to the even i), and the mean distance E|v − i/m| moved."""
        if m < 1:
            raise InvalidData(f"m = {m!r}; expected a grid of at least one step")
        grid = np.rint(self.predictions * m) / m
        moved = float(self.mass @ np.abs(grid - self.predictions))
        return self._from_ordered(grid, self.counts, self.positives), moved

    def flip(self) -> JointDistribution:
        """Γ under (v, y) → (1 − v, 1 − y)."""
        v = 1.0 - self.predictions[::-1]
        if (v[1:] > v[:-1]).all():
            q = 1.0 - self.means[::-1]
            return self._frozen(v, self.counts[::-1].copy(), (self.counts - self.positives)[::-1].copy(), q)
        return self._from_ordered(v, self.counts[::-1], (self.counts - self.positives)[::-1])

    def __repr__(self) -> str:
        return (
            f"JointDistribution({self.levels} levels in [{self.predictions[0]:g}, {self.predictions[-1]:g}], "
            f"weight {self.weight:g}, base rate {self.base_rate:.4g})"
        )


def encode(p: Floats, y: Floats) -> NDArray[np.int64]:
    """One integer per sample, ordered as (p, y): the bits of p, then y. Needs 0 ≤ p ≤ 1."""
    keys = np.asarray(p + 0.0).view(np.int64) << 1  # + 0.0 turns −0.0 into 0.0
    keys |= y != 0
    return keys


@kernel
def _levels_of_keys(keys):
    """Levels, counts, positives and means of sorted keys."""
    k = 0
    last = np.int64(-1)
    for key in keys:
        if key >> 1 != last:
            last = key >> 1
            k += 1
    bits = np.empty(k, np.int64)
    n = np.zeros(k)
    s = np.zeros(k)
    i = -1
    last = np.int64(-1)
    for key in keys:
        if key >> 1 != last:
            last = key >> 1
            i += 1
            bits[i] = last
        n[i] += 1.0
        s[i] += key & 1
    return bits.view(np.float64), n, s, s / n


def _vector(name: str, values: ArrayLike) -> Floats:
    """A float64 vector, shared with the caller where it is one already; or the reason why not."""
    if np.iscomplexobj(values):
        raise InvalidData(f"{name} holds complex numbers; expected real ones")
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidData(
            f"{name} holds something that is not a number ({error}); expected numbers"
        ) from None
    if array.ndim != 1:
        raise InvalidData(f"{name} has shape {array.shape}; expected one dimension")
    return array


def _check_unit(name: str, values: Floats) -> None:
    # min and max carry a NaN, so two passes without a temporary settle the good case.
    low, high = values.min(), values.max()
    if low >= 0.0 and high <= 1.0:
        return
    i = int(np.argmin((values >= 0.0) & (values <= 1.0)))
    what = "a missing value" if np.isnan(values[i]) else "outside [0, 1]"
    raise InvalidData(f"{name}[{i}] = {float(values[i])!r} is {what}; expected a probability in [0, 1]")


def _check_outcomes(p: Floats, y: Floats) -> None:
    good = (y == 0.0) | (y == 1.0)
    if good.all():
        return
    i = int(np.argmin(good))
    hint = ""
    if ((p == 0.0) | (p == 1.0)).all():
        hint = " (arguments are (p, y): predictions first; these look swapped)"
    what = "a missing value" if np.isnan(y[i]) else "not an outcome"
    raise InvalidData(f"y[{i}] = {float(y[i])!r} is {what}; expected 0 or 1{hint}")


def _check_weights(name: str, weights: Floats) -> None:
    bad = ~((weights >= 0.0) & (weights < np.inf))
    if bad.any():
        i = int(np.argmax(bad))
        raise InvalidData(f"{name}[{i}] = {float(weights[i])!r}; expected a finite number ≥ 0")
    with np.errstate(over="ignore"):
        total = float(weights.sum())
    if not 0.0 < total < np.inf:
        raise InvalidData(f"{name} sum to {total!r}; expected a positive finite total")
