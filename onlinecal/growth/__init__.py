"""Growth of totals: the exponent of T with an interval, whether it changes, and whether totals outgrow a rate."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from onlinecal.core.arrays import Floats
from onlinecal.core.errors import InvalidParameter
from onlinecal.core.words import fixed

__all__ = ["Growth", "fit_growth", "trend"]

#: an interval that is wider says nothing of use
WIDE = 1.0
#: a bend that moves totals by less than this share of them is not worth a word
SMOOTH = 0.01
#: relative error of a total: nothing is concluded from differences as small as this
ROUNDING = 1e-9
#: of the totals of one game at s < t the correlation is taken to be (s/t)^MEMORY
MEMORY = 1 / 3
#: what to do where an exponent is not clear
MORE = "play more horizons or runs, such as with `onlinecal run SCENARIO --resume --runs 64`"


@dataclass(frozen=True)
class Growth:
    """The growth of a total over some T, from `fit_growth`.

    Attributes
    ----------
    value : float
        The mean growth exponent: the slope of the least-squares line through log(expected total) against log T. Of a
        power law c·T^α it is α; of another curve it is not the exponent of its limit.
    lower, upper : float
        An interval for `value` at the `level`, by itself: of many intervals some miss.
    level : float
    early, late : float
        Slopes over the first and the last half of these T.
    bend : float
        p-value of the test that the quadratic term in log T is 0.
    onward : tuple of two floats
        An interval for the slope at the largest T, by the parabola in log T.
    scatter : float
        Root of the mean squared distance from the line, in logarithms: 0.01 is 1 % of the totals.
    points, runs : int
    cut : bool
        Whether the early rounds of one game were left out (`Curve.tail`).
    """

    value: float
    lower: float
    upper: float
    level: float
    early: float
    late: float
    bend: float
    onward: tuple[float, float]
    scatter: float
    points: int
    runs: int
    cut: bool = field(default=False, repr=False, compare=False)

    @property
    def clear(self) -> bool:
        """Whether the interval is narrow enough to be of use."""
        return self.upper - self.lower <= WIDE

    @property
    def bent(self) -> bool:
        """Whether the slope changes over these T, by more than chance and 1 % of the totals."""
        return self.bend < 1.0 - self.level and self.scatter > SMOOTH

    def above(self, exponent: float) -> bool:
        """Whether the whole interval lies above another exponent: the totals grow faster over these T."""
        return self.lower > exponent + ROUNDING

    def below(self, exponent: float) -> bool:
        """Whether the whole interval lies below another exponent: the totals grow slower over these T."""
        return self.upper < exponent - ROUNDING

    def stays_above(self, exponent: float) -> bool:
        """Whether it is above, so is the slope at the largest T (`onward`), and no bend leads back."""
        back = self.bend < 1.0 - self.level and self.late < self.early
        return self.above(exponent) and self.onward[0] > exponent + ROUNDING and not back

    def stays_below(self, exponent: float) -> bool:
        """The same for `below`."""
        back = self.bend < 1.0 - self.level and self.late > self.early
        return self.below(exponent) and self.onward[1] < exponent - ROUNDING and not back

    @property
    def interval(self) -> str:
        """``[0.48, 0.52]``."""
        return f"[{fixed(self.lower)}, {fixed(self.upper)}]"

    @property
    def bow(self) -> str:
        """`early` and `late` with as many digits as tell them apart: ``0.65…0.57``."""
        pairs = [(fixed(self.early, digits), fixed(self.late, digits)) for digits in (2, 3, 4)]
        return "…".join(next((pair for pair in pairs if pair[0] != pair[1]), pairs[0]))

    @property
    def remark(self) -> str:
        """Cautions beside the interval, in words; empty for a straight line with a narrow interval."""
        parts = [f"no power law over these T: slopes {self.bow} over their first and last half"] * self.bent
        parts += [f"too few or too noisy totals to tell an exponent: {MORE}"] * (not self.clear)
        return "; ".join(parts)

    def as_json(self) -> dict[str, Any]:
        """The numbers under their names."""
        numbers = asdict(self)
        del numbers["cut"]
        return numbers | {"onward": list(self.onward), "remark": self.remark}

    def __repr__(self) -> str:
        return f"Growth({self})"

    def _repr_html_(self) -> str:
        return f"<p>T^α, α = <b>{self}</b>, with {self.level:.0%}</p>"

    def __str__(self) -> str:
        found = f"{fixed(self.value) if self.clear else '?'} {self.interval}"
        return found + f", bends {self.bow}" * self.bent


def check_level(level: float) -> None:
    if not 0.0 < level < 1.0:
        raise InvalidParameter(f"level = {level!r}; expected a number between 0 and 1")


class _Logs(NamedTuple):
    """Logarithms of mean totals, and of the means without each of the runs: (n,) and (n, runs)."""

    mean: Floats
    left_out: Floats
    #: of errors between the T
    correlation: Floats
    fresh: bool

    def spread(self, weights: Floats, basis: Floats) -> tuple[float, float]:
        """The variance of Σ weights·mean and its degrees of freedom: the larger of two estimates.

        One is the jackknife's, from what differs between runs. The other is from the distances to the span of a basis.
        """
        (n, k), runs = basis.shape, self.left_out.shape[1]
        found = []
        if n > k:
            apart = self.mean - basis @ (basis.T @ self.mean)
            rest = self.correlation - basis @ (basis.T @ self.correlation)
            # Both are n − k where errors are independent.
            trace, square = np.trace(rest), np.trace(rest @ rest)
            found.append((apart @ apart / trace * (weights @ self.correlation @ weights), trace**2 / square))
        if runs > 1:
            if not np.isfinite(self.left_out).all():
                return np.inf, 1.0
            parts = weights[:, None] * self.left_out
            own = (runs - 1) * (parts if self.fresh else parts.sum(axis=0, keepdims=True)).var(axis=1)
            # By Satterthwaite: at fresh T the runs are independent.
            squares = (own**2).sum()
            found.append((own.sum(), (runs - 1) * (own.sum() ** 2 / squares if squares else 1.0)))
        variance, freedom = max(found, default=(np.inf, 1.0))
        return float(variance + ROUNDING**2 * (weights @ weights)), float(freedom)

    def interval(self, weights: Floats, basis: Floats, level: float) -> tuple[float, float, float]:
        """Σ weights·mean with the ends of its interval, by Student's t."""
        from scipy.special import stdtrit

        value, (variance, freedom) = float(weights @ self.mean), self.spread(weights, basis)
        half = float(stdtrit(freedom, (1.0 + level) / 2) * np.sqrt(variance))
        return value, value - half, value + half


def _logs(times: Floats, totals: Floats, *, fresh: bool) -> _Logs:
    """The logarithms of positive, finite means."""
    (n, runs), mean = totals.shape, totals.mean(axis=1)
    rest = (runs * mean[:, None] - totals) / (runs - 1) if runs > 1 else np.zeros((n, 0))
    # Identical runs have no spread, whatever rounding makes of their mean. The spread of a mean that rests on a single
    # run is unknown.
    rest = np.where(np.abs(rest - mean[:, None]) <= 1e-14 * mean[:, None], mean[:, None], rest)
    left_out = np.log(rest, out=np.full_like(rest, np.inf), where=rest > 0.0)
    apart = np.abs(np.log(times)[:, None] - np.log(times))
    return _Logs(np.log(mean), left_out, np.eye(n) if fresh else np.exp(-MEMORY * apart), fresh)


def _powers(times: Floats, columns: int) -> Floats:
    """Columns …, log² T, log T, 1, around the middle of log T."""
    logarithms = np.log(times)
    return np.vander(logarithms - logarithms.mean(), columns)


def slope(
    times: ArrayLike, totals: ArrayLike, *, fresh: bool, level: float = 0.95
) -> tuple[float, float, float]:
    """The slope of the least-squares line through log(mean total) against log T, and the ends of its interval.

    NaN where a mean is not positive and finite. Between two T the interval is of the runs alone.
    """
    t, y = np.asarray(times, np.float64), np.asarray(totals, np.float64)
    with np.errstate(invalid="ignore"):  # of what is infinite both ways
        mean = y.mean(axis=1)
    if not (np.isfinite(mean) & (mean > 0.0)).all():
        return np.nan, np.nan, np.nan
    line = _powers(t, 2)
    return _logs(t, y, fresh=fresh).interval(np.linalg.pinv(line)[0], np.linalg.qr(line)[0], level)


def fit_growth(times: ArrayLike, totals: ArrayLike, *, fresh: bool, level: float = 0.95) -> Growth | None:
    """Measure the growth of totals with T.

    The mean growth exponent is the slope of the least-squares line through log(mean total over runs) against log T. Its
    standard error is the larger of two: the jackknife's over the runs, and that of the scatter around the line. The
    interval is Student's. Errors along one game are correlated. Of a single run it rests on the scatter alone.

    Parameters
    ----------
    times : (n,) array_like
        T, positive, ascending.
    totals : (n, runs) array_like
        T·μ at each time for each run.
    fresh : bool
        True: each T is a game with randomness of its own. False: the totals of one game, or on one recorded stream, at
        several T; a column is a run. Where all runs share a stream, give their mean as the only column.
    level : float, default 0.95
        The level of each interval and test.

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
    0.41 [0.31, 0.51]
    """
    from scipy.special import stdtr

    t, y = np.asarray(times, dtype=np.float64), np.asarray(totals, dtype=np.float64)
    if t.ndim != 1 or y.ndim != 2 or len(t) != len(y) or y.shape[1] == 0:
        said = f"times of shape {t.shape} and totals of shape {y.shape}"
        raise InvalidParameter(f"{said}; expected (n,) and (n, runs)")
    if not ((t > 0.0).all() and (np.diff(t) > 0.0).all()):
        raise InvalidParameter("times are not positive and ascending; expected rounds ≥ 1, each once")
    check_level(level)
    value, lower, upper = slope(t, y, fresh=fresh, level=level) if len(t) > 2 else (np.nan,) * 3
    if np.isnan(value):
        return None
    n, data = len(t), _logs(t, y, fresh=fresh)
    powers = _powers(t, 3)
    x, line, arc = powers[:, 1], np.linalg.qr(powers[:, 1:])[0], np.linalg.qr(powers)[0]
    quadratic, steep, _ = np.linalg.pinv(powers)
    variance, freedom = data.spread(quadratic, arc)
    bend = float(2.0 * stdtr(freedom, -abs(quadratic @ data.mean) / np.sqrt(variance)))
    _, *onward = data.interval(steep + 2.0 * x[-1] * quadratic, arc, level)
    half = n // 2 + 1
    early, late = (
        float(np.polyfit(x[part], data.mean[part], 1)[0]) for part in (slice(half), slice(n - half, n))
    )
    scatter = float(np.sqrt(((data.mean - line @ (line.T @ data.mean)) ** 2).mean()))
    return Growth(
        value, lower, upper, level, early, late, bend, (onward[0], onward[1]), scatter, n, y.shape[1]
    )


def trend(
    times: ArrayLike, totals: ArrayLike, bound: Callable[[float], float] | ArrayLike, *, fresh: bool = True,
    level: float = 0.95,
) -> Growth | None:  # fmt: skip
    """Measure whether the ratio of total to bound grows with T, for checks of rates, which have no constant.

    `above(0)` says that the ratio has grown over these T. `stays_above(0)` says that it still grows at the largest T,
    and that no bend leads back. As far as can be seen, the total breaks the rate O(bound). `below(0)` and
    `stays_below(0)` say the same of Ω(bound). That a rate is kept for ever cannot be measured.

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
