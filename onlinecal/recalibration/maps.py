"""Maps of recalibration that are fitted once: isotonic, Platt, smooth and Venn–Abers; kept in files of JSON."""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import scipy  # its parts are loaded when they are first used
from numpy.typing import ArrayLike

from onlinecal.core.errors import InvalidData, InvalidParameter, StoreError
from onlinecal.core.joint import Floats, JointDistribution, samples
from onlinecal.core.samples import Words, with_ours
from onlinecal.core.validation import choice
from onlinecal.core.writing import whole
from onlinecal.logs.regression import isotonic
from onlinecal.recalibration.smoothing import forecasts_of, mean_values, smooth_recalibration

Points = list[tuple[float, float]]

#: of the file; raised with the meaning of its numbers
VERSION = 1


@dataclass(frozen=True, eq=False)
class RecalibrationMap:
    """A map of forecasts to recalibrated ones, fitted once by `onlinecal.fit_recalibration`.

    Attributes
    ----------
    method : str
        "isotonic", "platt", "smooth" or "venn_abers".
    numbers : mapping of str to (N,) floats
        Parameters. "isotonic": `points` and `values`, between which the map is linear. "platt": `slope` and `shift`
        of the log odds. "smooth": as of `smooth_recalibration`. "venn_abers": `points`, the forecasts. Its `lower` is
        p0 before the first point and from each on. Its `upper` is p1 up to each point and after the last.

    Examples
    --------
    >>> fitted = fit_recalibration([0.2, 0.2, 0.4, 0.4, 0.8], [0, 1, 0, 0, 1], "venn_abers")
    >>> p0, p1 = fitted.interval([0.4])
    >>> p0.round(3), p1.round(3), fitted([0.4]).round(3)
    (array([0.2]), array([0.4]), array([0.333]))
    """

    method: str
    numbers: Mapping[str, Floats]

    def __call__(self, p: ArrayLike) -> Floats:
        """(n,) recalibrated forecasts; of "venn_abers" p1/(1 − p0 + p1), of "smooth" the mean without a draw."""
        base, given = forecasts_of(p), self.numbers
        if self.method == "isotonic":
            found = np.interp(base, given["points"], given["values"])
        elif self.method == "platt":
            found = scipy.special.expit(given["slope"] * _log_odds(base) + given["shift"])
            # The nearest number to a sigmoid may be 0 or 1, of which a surprise would cost an infinite log loss.
            found = np.clip(found, np.nextafter(0.0, 1.0), np.nextafter(1.0, 0.0))
        elif self.method == "smooth":
            found = np.interp(base, given["points"], self._means)
        else:
            lower, upper = self.interval(base)
            found = upper / (1.0 - lower + upper)
        return np.clip(found, 0.0, 1.0)

    @cached_property
    def _means(self) -> Floats:
        return mean_values(float(self.numbers["sigma"][0]), self.numbers["values"])

    def interval(self, p: ArrayLike) -> tuple[Floats, Floats]:
        """(p0, p1) of "venn_abers": isotonic regression's values at p if its outcome were known as 0, and as 1.

        If rows and the new one are exchangeable, the one of both that belongs to the outcome is perfectly calibrated.
        """
        if self.method != "venn_abers":
            raise InvalidParameter(f"interval of {self.method!r}; expected a map fitted by 'venn_abers'")
        base, points = forecasts_of(p), self.numbers["points"]
        lower = self.numbers["lower"][np.searchsorted(points, base, "right")]
        return lower, self.numbers["upper"][np.searchsorted(points, base, "left")]

    def inverse(self, q: ArrayLike) -> tuple[Floats, Floats]:
        """The least and the largest forecast that are mapped to each of q, to the next float.

        They are equal or neighbours where the map is strictly increasing. They are apart on flat parts, where all
        forecasts between them are mapped to q. Where the map jumps over q both are at the jump. NaN
        where q is below or above all values.

        Raises
        ------
        InvalidParameter
            For "smooth", and for "platt" with a slope below 0, which need not increase.
        """
        wanted = forecasts_of(q)
        if self.method == "smooth" or (self.method == "platt" and self.numbers["slope"][0] < 0.0):
            raise InvalidParameter(
                f"the inverse of {self.method!r} is not known, since this map need not increase; expected one of "
                "'isotonic' or 'venn_abers', or 'platt' with a slope of at least 0"
            )
        first = _least(lambda p: self(p) >= wanted, len(wanted))
        after = _least(lambda p: self(p) > wanted, len(wanted))
        last = np.where(self(np.ones(1)) <= wanted, 1.0, np.nextafter(after, -1.0))
        there = (self(np.zeros(1)) <= wanted) & (wanted <= self(np.ones(1)))
        lower, upper = np.minimum(first, last), np.maximum(first, last)
        return np.where(there, lower, np.nan), np.where(there, upper, np.nan)

    def save(self, path: str | Path, overwrite: bool = False) -> None:
        """Writes a file of JSON that `onlinecal.load_recalibration` reads."""
        said = {"version": VERSION, "method": self.method}
        said |= {"numbers": {name: values.tolist() for name, values in self.numbers.items()}}
        text = json.dumps({"onlinecal": "recalibration", **said, "sha256": _digest(said)})
        with whole(Path(path), overwrite) as new:
            new.write_text(text + "\n", "utf-8")


def load_recalibration(path: str | Path) -> RecalibrationMap:
    """The map in a file of `RecalibrationMap.save`, which gives the same bytes.

    Raises
    ------
    StoreError
        If there is no such file. If it is of another version or kind, changed, or cut off.
    """
    try:
        said = json.loads(Path(path).read_text("utf-8"))
        if said.pop("onlinecal") != "recalibration":
            raise ValueError
        version, digest = said["version"], said.pop("sha256")
    except FileNotFoundError:
        raise StoreError(f"{path}: no such file; expected one of `RecalibrationMap.save`") from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise StoreError(
            f"{path} is no file of a recalibration, or is cut off; expected one of `RecalibrationMap.save` or "
            "`onlinecal recalibrate --save`"
        ) from None
    if version != VERSION:
        raise StoreError(
            f"{path} is of version {version!r}, not {VERSION}; fit and save it again with this onlinecal"
        )
    if digest != _digest(said):
        raise StoreError(f"{path} is damaged: its checksum differs; fit and save it again")
    if said["method"] not in FITS:
        raise StoreError(
            f"{path} has a map of the method {said['method']!r}; expected one of {', '.join(FITS)}"
        )
    return RecalibrationMap(said["method"], {k: np.array(v, np.float64) for k, v in said["numbers"].items()})


@with_ours
def fit_recalibration(
    p: ArrayLike,
    y: ArrayLike,
    method: str = "isotonic",
    *,
    weights: ArrayLike | None = None,
    **words: Unpack[Words],
) -> RecalibrationMap:
    """Fits a map of recalibration to forecasts and outcomes, in whatever order.

    Source: Vovk and Petej 2014, "Venn–Abers predictors"; Vovk, Petej and Fedorova 2015, Section 4, for the merged
    probability. Platt 1999, with his targets (n₁ + 1)/(n₁ + 2) and 1/(n₀ + 2); Lin, Lin and Weng 2007, by Newton's
    method. It is scikit-learn's `CalibratedClassifierCV(method="sigmoid")` of a decision function that is the log odds
    of p. Where the log odds do not tell the slope from the shift, both are the least ones.

    Parameters
    ----------
    p, y : (n,) array_like
        Forecasts in [0, 1], and outcomes 0 or 1, or labels, of both kinds.
    method : {"isotonic", "platt", "smooth", "venn_abers"}, default "isotonic"
        Isotonic regression with one imagined outcome, Platt scaling, or the mean of `smooth_recalibration`.
        "venn_abers": isotonic regression with the new forecast among the rows, its outcome taken as 0 and as 1 (p0
        and p1). `recalibrate` fits each of them again and again as "isotonic_refitted", "platt_refitted", and so on.
    weights : (n,) array_like, optional
        How often each row counts, finite numbers ≥ 0. What is imagined beside the rows counts once.
    **words
        `positive`, `negative` and `drop`, as in `JointDistribution.from_samples`.

    Returns
    -------
    RecalibrationMap
        A function of new forecasts, with `interval`, `inverse` and `save`.

    Examples
    --------
    >>> fitted = fit_recalibration([0.2, 0.2, 0.8, 0.8], [0, 1, 1, 1], "venn_abers")
    >>> fitted([0.2, 0.5, 0.8]).round(3)
    array([0.5 , 0.6 , 0.75])
    """
    forecasts, outcomes, *given = samples(p, y, weights, **words)
    counts = given[0] if given else np.ones(len(forecasts))
    forecasts, outcomes, counts = (part[counts > 0.0] for part in (forecasts, outcomes, counts))
    if outcomes.min() == outcomes.max():
        raise InvalidData(f"all {len(outcomes)} outcomes are {outcomes[0]:g}; expected some 0 and some 1")
    return FITS[choice("fit_recalibration", "method", method, tuple(FITS))](forecasts, outcomes, counts)


def _isotonic(p: Floats, y: Floats, n: Floats) -> RecalibrationMap:
    weights = np.append(n, [0.5, 0.5])
    gamma = JointDistribution.from_samples(
        np.append(p, [0.0, 1.0]), np.append(y, [1.0, 0.0]), weights=weights
    )
    values = isotonic(gamma)
    # Between points with its own value a point says nothing.
    steps = np.concatenate(([True], np.diff(values) != 0.0, [True]))
    told = steps[:-1] | steps[1:]
    return RecalibrationMap("isotonic", {"points": gamma.predictions[told], "values": values[told]})


def _platt(p: Floats, y: Floats, n: Floats) -> RecalibrationMap:
    """By Newton's method, with steps halved until the loss does not grow (Lin, Lin and Weng 2007)."""
    features, targets = np.column_stack((_log_odds(p), np.ones(len(p)))), _targets(y, n)

    def loss(at: Floats) -> float:
        odds = features @ at
        return float((n * (np.logaddexp(0.0, odds) - targets * odds)).sum())

    found = np.zeros(2)
    now = loss(found)
    for _ in range(100):
        said = scipy.special.expit(features @ found)
        curvature = features.T @ (features * (n * said * (1.0 - said))[:, None])
        # The least step, where all forecasts are equal and nothing tells the slope.
        step = np.linalg.lstsq(curvature, features.T @ (n * (said - targets)), rcond=1e-12)[0]
        while (there := loss(found - step)) > now * (1.0 + 1e-12):
            step = 0.5 * step
        found, now = found - step, there
        if np.abs(step).max() <= 1e-10 * (1.0 + np.abs(found).max()):
            break
    return RecalibrationMap("platt", {"slope": found[:1], "shift": found[1:]})


def _smooth(p: Floats, y: Floats, n: Floats) -> RecalibrationMap:
    found = smooth_recalibration(JointDistribution.from_counts(p, n, n * _targets(y, n)))
    return RecalibrationMap(
        "smooth", {"sigma": np.array([found.sigma]), "points": found.points, "values": found.values}
    )


def _venn_abers(p: Floats, y: Floats, n: Floats) -> RecalibrationMap:
    points, place = np.unique(p, return_inverse=True)
    both: Any = np.bincount(place, n), np.bincount(place, n * y)
    if (n == np.rint(n)).all():  # then all sums are exact
        both = (sums.astype(np.int64) for sums in both)
    counts, ones = (sums.tolist() for sums in both)
    upper = [up / across for across, up in _with_a_one(counts, ones)]
    zeros = [n - k for n, k in zip(counts, ones, strict=True)]
    lower = [(across - up) / across for across, up in _with_a_one(counts[::-1], zeros[::-1])][::-1]
    # Ends ascend; of weights that are not whole, up to rounding.
    ends = {"lower": [0.0, *lower], "upper": [*upper, 1.0]}
    ascending = {name: np.maximum.accumulate(values) for name, values in ends.items()}
    return RecalibrationMap("venn_abers", {"points": points, **ascending})


#: the fit of each kind
FITS: dict[str, Callable[[Floats, Floats, Floats], RecalibrationMap]] = {
    "isotonic": _isotonic, "platt": _platt, "smooth": _smooth, "venn_abers": _venn_abers,
}  # fmt: skip


def _with_a_one(counts: list[float], ones: list[float]) -> Points:
    """For each level, isotonic regression's value there with one more 1 in it, as (count, ones) of its block."""
    # The value is a slope of the greatest convex minorant of the cumulative sums. Those before the level are moved by
    # (−1, −1). From level to level one point moves, and the corners to the right of it stay a stack. All takes
    # O(levels) steps (Vovk, Petej and Fedorova 2015, Algorithms 1 and 2).
    sums: Points = [(0, 0)]
    for count, one in zip(counts, ones, strict=True):
        sums.append((sums[-1][0] + count, sums[-1][1] + one))
    corners: Points = []
    for point in sums[:0:-1]:
        _drop(corners, point)
        corners.append(point)
    start: tuple[float, float] = (-1, -1)
    _drop(corners, start)
    found: Points = []
    for point in sums[1:]:
        end = corners[-1]
        found.append((end[0] - start[0], end[1] - start[1]))
        moved = (point[0] - 1, point[1] - 1)
        if end == point:
            corners.pop()
        elif _turn(start, end, moved) >= 0:  # on the chord or above it: no corner
            continue
        start = moved
        _drop(corners, start)
    return found


def _drop(corners: Points, start: tuple[float, float]) -> None:
    """Removes corners that a minorant from `start` does not have."""
    while len(corners) > 1 and _turn(start, corners[-2], corners[-1]) >= 0:
        corners.pop()


def _turn(start: tuple[float, float], end: tuple[float, float], point: tuple[float, float]) -> float:
    """Above 0 where the point is above the line from start to end, 0 on it."""
    (x, y), (u, v) = (end[0] - start[0], end[1] - start[1]), (point[0] - start[0], point[1] - start[1])
    return x * v - y * u


def _targets(y: Floats, n: Floats) -> Floats:
    """Platt's targets in the place of outcomes, of which none is 0 or 1: (n₁ + 1)/(n₁ + 2) for 1, 1/(n₀ + 2) for 0."""
    ones = float((n * y).sum())
    return np.where(y == 1.0, (ones + 1.0) / (ones + 2.0), 1.0 / (float(n.sum()) - ones + 2.0))


def _log_odds(p: Floats) -> Floats:
    inner = np.clip(p, 1e-6, 1.0 - 1e-6)
    return np.asarray(np.log(inner) - np.log1p(-inner))


def _least(true: Callable[[Floats], Any], size: int) -> Floats:
    """The least float in [0, 1] at which a condition holds that then goes on to hold; 1 where it holds nowhere."""
    # Floats from 0 on have the order of their bits, read as whole numbers.
    low, high = np.full(size, -1), np.full(size, np.float64(1.0).view(np.int64))
    while (high - low > 1).any():
        middle = (low + high + 1) // 2
        holds = true(middle.view(np.float64))
        low, high = np.where(holds, low, middle), np.where(holds, middle, high)
    return high.view(np.float64)


def _digest(said: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()
