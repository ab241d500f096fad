"""Growth of totals: exponents with intervals, a test of straightness, and the forms that fit where it fails."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from onlinecal.core.arrays import Floats
from onlinecal.core.errors import InvalidParameter
from onlinecal.core.words import fixed
from onlinecal.growth.contrasts import ROUNDING, Contrasts, Fresh, Path, beside, orthonormal, two_heights
from onlinecal.growth.forms import CONSTANT, LOGARITHM, POWER, Fit, with_constant, with_logarithm

__all__ = ["CONSTANT", "LOGARITHM", "POWER", "Growth", "fit_growth", "simultaneous", "trend"]


#: an interval that is wider says nothing of use
WIDE = 1.0
#: less scatter, relative to the totals, is not worth a word; an interval holds it all the same
SMOOTH = 0.01


@dataclass(frozen=True)
class Growth:
    """The growth of a total over some T, from `fit_growth`.

    Attributes
    ----------
    value : float
        The mean growth exponent: the slope of the least-squares line through log(expected total) against log T. Of a
        power law c·T^α it is α; of another curve it is not the exponent of its limit.
    lower, upper : float
        An interval for `value` at the `level`.
    level : float
        0.95, or more where a table makes many statements (`simultaneous`).
    local : tuple of float
        Slopes between neighbouring T.
    early, late : float
        Slopes over the first and the last half of these T.
    onward : tuple of two floats
        An interval for `late`.
    bend : float
        p-value of the test that the quadratic term in log T is 0.
    rough : float
        p-value of the test that the runs explain the scatter around the line (of a single run: rounding). 1 for the
        prefixes of one game, where correlated noise looks like it.
    scatter : float
        Root of the mean squared distance from the line, in logarithms: 0.01 is 1 % of the totals.
    ceiling : float
        The total at T is at most ceiling·T.
    cut : bool
        Whether the early rounds of one game were left out (`Curve.tail`).
    """

    value: float
    lower: float
    upper: float
    level: float
    local: tuple[float, ...]
    early: float
    late: float
    onward: tuple[float, float]
    bend: float
    rough: float
    scatter: float
    points: int
    runs: int
    fresh: bool
    ceiling: float
    _data: tuple[Floats, Contrasts] = field(repr=False, compare=False)
    cut: bool = field(default=False, repr=False, compare=False)

    @property
    def straightness(self) -> float:
        """p-value of the test that the totals follow c·T^α: of `bend`, or Bonferroni's of `bend` and `rough`."""
        return self.bend if self.runs == 1 or not self.fresh else min(1.0, 2.0 * min(self.bend, self.rough))

    @cached_property
    def shape(self) -> str:
        """``"straight"``, ``"jagged"`` or ``"curved"``."""
        rate = 1.0 - self.level
        alone = self.runs == 1 or not self.fresh
        # A single run that follows another form to the last digits, as it does no line.
        other = self.runs == 1 and self.rough < rate and bool(self.fits)
        if self.straightness >= rate and not other:
            return "straight"
        if alone or 2.0 * self.bend < rate or self.fits:
            return "curved"
        return "jagged" if self.scatter > SMOOTH else "straight"

    @property
    def bent(self) -> bool:
        """Whether it is curved by more than 1 % of the totals."""
        return self.shape == "curved" and self.scatter > SMOOTH

    @cached_property
    def fits(self) -> dict[str, tuple[float, float]]:
        """The forms that fit within the noise of the runs, each with an interval for its *asymptotic* exponent."""
        from scipy.special import fdtrc

        logarithms, data = self._data
        left = self.points - 3
        if not isinstance(data, Fresh) or (self.runs == 1 and left == 0):
            return {}
        rate = 1.0 - self.level
        found = ((LOGARITHM, with_logarithm), (CONSTANT, with_constant))
        good = {form: fit for form, made in found if (fit := made(logarithms, data, rate)) is not None}
        if (self.rough if self.runs == 1 else 2.0 * self.rough) < rate:
            line = orthonormal(np.ones_like(logarithms), logarithms)
            squares, floor = float((beside(data.logs, line) ** 2).sum()), left * ROUNDING**2

            def better(fit: Fit) -> bool:
                return (
                    left > 0 and fdtrc(1, left, (squares - fit.squares) / (fit.squares + floor) * left) < rate
                )

            good = {form: fit for form, fit in good.items() if better(fit)}
        top = np.inf if np.isinf(self.ceiling) else 1.0
        return {form: (min(fit.lower, top), min(fit.upper, top)) for form, fit in good.items()}

    @property
    def limit(self) -> tuple[float, float] | None:
        """An interval for the asymptotic exponent, over all forms that fit; None without one.

        It covers the exponent at the `level` if the expected totals are of either form.
        """
        if not self.fits:
            return None
        return min(ends[0] for ends in self.fits.values()), max(ends[1] for ends in self.fits.values())

    def jumps(self, marked: NDArray[np.bool_]) -> float | None:
        """The factor by which the totals at the marked T lie off the others, where that is why they are jagged."""
        logarithms, data = self._data
        if self.shape != "jagged":
            return None
        height = two_heights(logarithms, data.logs, marked, 1.0 - self.level)
        return None if height is None else float(np.exp(height))

    @property
    def form(self) -> str:
        """The form of the expected totals over these T: ``T^α``, or the `fits` of a curve; empty without any."""
        return " or ".join(self.fits) if self.shape == "curved" else POWER

    @property
    def clear(self) -> bool:
        """Whether the interval is narrow enough to be of use."""
        return self.upper - self.lower <= WIDE

    @property
    def hasty(self) -> bool:
        """Whether it grows faster than T, which a total with a ceiling cannot do for ever."""
        return self.above(1.0) and bool(np.isfinite(self.ceiling))

    def above(self, exponent: float) -> bool:
        """Whether the whole interval lies above another exponent: the totals grow faster over these T."""
        return self.lower > exponent + ROUNDING

    def below(self, exponent: float) -> bool:
        """Whether the whole interval lies below another exponent: the totals grow slower over these T."""
        return self.upper < exponent - ROUNDING

    def stays_above(self, exponent: float) -> bool:
        """Whether this is above, and so are all forms that fit and a curve's slope over the last half."""
        return self.above(exponent) and all(lower > exponent + ROUNDING for lower, _ in self._ahead)

    def stays_below(self, exponent: float) -> bool:
        """The same for `below`."""
        return self.below(exponent) and all(upper < exponent - ROUNDING for _, upper in self._ahead)

    @property
    def _ahead(self) -> list[tuple[float, float]]:
        """Intervals for the slope at larger T."""
        limit = self.limit
        return ([] if self.shape == "straight" else [self.onward]) + ([] if limit is None else [limit])

    @property
    def remark(self) -> str:
        """Cautions beside the interval, in words; empty for a straight line with a narrow interval."""
        parts = []
        if self.shape == "curved":
            near = "" if self.bent else f", if by no more than {SMOOTH:.0%} of the totals"
            parts.append(f"no power law over these T{near}: slopes {self.bow} over their first and last half")
            parts += [f"if {f}, the asymptotic exponent is in {_ends(*e)}" for f, e in self.fits.items()]
        if self.shape == "jagged":
            parts.append("jagged: the totals scatter around the line by more than their runs do")
        if not self.clear:
            parts.append("too few or too noisy totals to tell an exponent")
        if self.hasty:
            parts.append(f"faster than T, which cannot last: a total is at most {self.ceiling:g}·T")
        return "; ".join(parts)

    def as_json(self) -> dict[str, Any]:
        """The numbers under their names."""
        names = (
            "value", "lower", "upper", "level", "straightness", "scatter", "shape", "early", "late", "form",
        )  # fmt: skip
        limit = None if self.limit is None else list(self.limit)
        return {name: getattr(self, name) for name in names} | {"limit": limit, "remark": self.remark}

    def __repr__(self) -> str:
        return f"Growth({self})"

    def _repr_html_(self) -> str:
        return f"<p>T^α, α = <b>{self}</b>, with {self.level:.0%}</p>"

    def __str__(self) -> str:
        if self.shape == "curved":
            found = "".join(f"; if {form}, α in {_ends(*ends)}" for form, ends in self.fits.items())
            return f"no power law: {self.bow}{found}"
        value = fixed(self.value) if self.clear else "?"
        return f"{value} {self.interval}" + (", jagged" if self.shape == "jagged" else "")

    @property
    def interval(self) -> str:
        """``[0.48, 0.52]``."""
        return _ends(self.lower, self.upper)

    @property
    def bow(self) -> str:
        """`early` and `late` with as many digits as tell them apart: ``0.65…0.57``."""
        pairs = [(fixed(self.early, digits), fixed(self.late, digits)) for digits in (2, 3, 4)]
        return "…".join(next((pair for pair in pairs if pair[0] != pair[1]), pairs[0]))


def check_level(level: float) -> None:
    if not 0.0 < level < 1.0:
        raise InvalidParameter(f"level = {level!r}; expected a number between 0 and 1")


def fit_growth(
    times: ArrayLike, totals: ArrayLike, *, fresh: bool, ceiling: float = np.inf, level: float = 0.95
) -> Growth | None:
    """Measure the growth of totals with T.

    The mean growth exponent is the slope of the least-squares line through log(mean total over runs) against log T. Its
    error comes from the differences between runs and the scatter around the line, in a random-effects model. Errors
    along one game are correlated. The interval is Student's. Of a single run it rests on the scatter alone.

    Parameters
    ----------
    times : (n,) array_like
        T, positive, ascending.
    totals : (n, runs) array_like
        T·μ at each time for each run.
    fresh : bool
        True: each T is a game with randomness of its own. False: the totals of one game, or on one recorded stream, at
        several T; a column is a run. Where all runs share a stream, give their mean as the only column.
    ceiling : float, optional
        No total is above ceiling·T, so that no asymptotic exponent is above 1. Default: none.
    level : float, default 0.95
        Of each interval and test; see `simultaneous` for many at once.

    Returns
    -------
    Growth or None
        None for fewer than 3 times, or a mean total that is 0, negative or infinite.

    Examples
    --------
    >>> t = np.array([1e3, 1e4, 1e5, 1e6])
    >>> print(fit_growth(t, [[31.6, 31.8], [100.2, 99.8], [316.4, 316.2], [999.0, 1001.5]], fresh=True))
    0.50 [0.50, 0.50]
    >>> print(fit_growth(t, np.sqrt(t)[:, None] + 30, fresh=True))
    no power law: 0.37…0.45; if a + b T^α, α in [0.50, 0.50]
    """
    from scipy.special import stdtr, stdtrit

    t, y = np.asarray(times, dtype=np.float64), np.asarray(totals, dtype=np.float64)
    if t.ndim != 1 or y.ndim != 2 or len(t) != len(y) or y.shape[1] == 0:
        said = f"times of shape {t.shape} and totals of shape {y.shape}"
        raise InvalidParameter(f"{said}; expected (n,) and (n, runs)")
    if not ((t > 0.0).all() and (np.diff(t) > 0.0).all()):
        raise InvalidParameter("times are not positive and ascending; expected rounds ≥ 1, each once")
    check_level(level)
    n, runs = y.shape
    with np.errstate(invalid="ignore"):  # of what is infinite both ways
        mean = y.mean(axis=1)
    if n < 3 or not (np.isfinite(mean) & (mean > 0.0)).all():
        return None
    logarithms = np.log(t)
    data: Contrasts = Fresh(y) if fresh else Path(logarithms, y)
    x, line, arc, quadratic = _design(logarithms.tobytes())

    def interval(weights: Floats, basis: Floats) -> tuple[float, float, float]:
        value = float(weights @ data.logs)
        variance, freedom = data.spread(weights, basis)
        half = float(stdtrit(freedom, (1.0 + level) / 2) * np.sqrt(variance))
        return value, value - half, value + half

    variance, freedom = data.spread(quadratic, arc)
    bend = float(2.0 * stdtr(freedom, -abs(quadratic @ data.logs) / np.sqrt(variance)))
    # A bend that is seen is no scatter: the mean exponent of a curve is known as well.
    value, lower, upper = interval(x / (x @ x), arc if n > 4 and 2.0 * bend < 1.0 - level else line)
    half, left = n // 2 + 1, beside(data.logs, line)
    late, *onward = interval(_slope(x, slice(n - half, n)), arc if n > 4 else line)
    rough = float(data.misfit(line, left)) if isinstance(data, Fresh) else 1.0
    local = tuple(map(float, np.diff(data.logs) / np.diff(x)))
    return Growth(
        value, lower, upper, level, local, early=float(_slope(x, slice(half)) @ data.logs), late=late,
        onward=(onward[0], onward[1]), bend=bend, rough=rough, scatter=float(np.sqrt((left**2).mean())), points=n,
        runs=runs, fresh=fresh, ceiling=ceiling, _data=(logarithms, data),
    )  # fmt: skip


def trend(
    times: ArrayLike, totals: ArrayLike, bound: Callable[[float], float] | ArrayLike, *, fresh: bool = True,
    level: float = 0.95,
) -> Growth | None:  # fmt: skip
    """Measure whether the ratio of total to bound grows with T, for checks of rates, which have no constant.

    `above(0)` says that the ratio has grown over these T. `stays_above(0)` says that no form that fits levels off. As
    far as can be seen, the total breaks the rate O(bound). `below(0)` and `stays_below(0)` say the same of Ω(bound).
    That a rate is kept for ever cannot be measured.

    Parameters
    ----------
    times, totals, fresh, level
        As for `fit_growth`.
    bound : callable or (n,) array_like
        T ↦ the bound, up to a constant, or its values at the times; positive.

    Examples
    --------
    >>> t = np.array([1e3, 1e4, 1e5, 1e6])
    >>> ratio = trend(t, np.sqrt(t)[:, None] * [3.0, 3.1], np.sqrt)
    >>> ratio.above(0), round(ratio.value, 6) + 0.0
    (False, 0.0)
    >>> trend(t, t[:, None] * [3.0, 3.1], np.sqrt).stays_above(0)
    True
    """
    t = np.asarray(times, dtype=np.float64)
    values = np.array([bound(float(x)) for x in t]) if callable(bound) else np.asarray(bound, np.float64)
    if values.shape != t.shape or not (np.isfinite(values) & (values > 0.0)).all():
        raise InvalidParameter(f"the bound is {values} at the times; expected a positive number at each")
    y = np.asarray(totals, dtype=np.float64)
    return fit_growth(t, y / values[:, None] if y.shape[:1] == t.shape else y, fresh=fresh, level=level)


def simultaneous(statements: int, level: float = 0.95) -> float:
    """The level of each of several intervals with which all of them hold together, however they depend (Bonferroni).

    >>> round(simultaneous(10), 6)
    0.995
    """
    return 1.0 - (1.0 - level) / max(statements, 1)


@lru_cache(maxsize=256)
def _design(logarithms: bytes) -> tuple[Floats, Floats, Floats, Floats]:
    """Some log T: centred, bases of lines and of parabolas, and the parabola beside the lines."""
    logs = np.frombuffer(logarithms)
    x, one = logs - logs.mean(), np.ones(len(logs))
    line = orthonormal(one, x)
    found = x, line, orthonormal(one, x, x**2), beside(x**2, line)
    for array in found:
        array.flags.writeable = False
    return found


def _slope(x: Floats, part: slice) -> Floats:
    """Weights of the least-squares slope over a part of the times."""
    weights = np.zeros_like(x)
    centred = x[part] - x[part].mean()
    weights[part] = centred / (centred @ centred)
    return weights


def _ends(lower: float, upper: float) -> str:
    return f"[{fixed(lower)}, {fixed(upper)}]"
