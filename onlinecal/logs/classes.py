"""All measures of forecasts of K classes in a table, class by class too, with how far chance alone explains them."""

import itertools
import math
import textwrap
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import cdist

from onlinecal.core.arrays import Floats
from onlinecal.core.classes import ClassDistribution
from onlinecal.core.errors import InvalidData
from onlinecal.core.progress import Progress
from onlinecal.core.samples import with_ours
from onlinecal.core.simplex import Label
from onlinecal.core.validation import integer, number
from onlinecal.core.words import number_of
from onlinecal.logs.evaluation import MOST, evaluated
from onlinecal.logs.intervals import mean_interval
from onlinecal.logs.resampling import FEW, Resample
from onlinecal.logs.table import WIDTH, Value, aligned, span
from onlinecal.measures import classes as measures
from onlinecal.measures.base import Ends, ends
from onlinecal.measures.classes.sums import MOST_CLASSES, MOST_PAIRS

if TYPE_CHECKING:
    import pandas as pd

#: levels up to which linear programs are solved here; they take some seconds
PROGRAMS = 100
#: levels up to which all pairs of drawn outcomes are added
PAIRS = 4000
#: sets of classes times levels up to which drawn outcomes, and what happened, are measured for all sets
DRAWN_SETS, SETS = 200_000, 5_000_000
#: rows of a block of pairs where there are too many levels for all
BLOCK = 1000
#: the name of the event that the likeliest class happens
TOP = "top label"


@dataclass(frozen=True)
class ClassRow:
    """One measure of all classes together."""

    name: str
    value: Value
    interval: Ends | None = None  # of the population value
    # mean of the measure where every outcome is drawn with the probabilities forecast
    if_calibrated: float | None = None
    p_value: float | None = None  # how often such outcomes give a value at least as large


@dataclass(frozen=True)
class OneClass:
    """One class against the rest, or that the likeliest class happens."""

    name: str
    label: Label  # None of the top label
    share: float  # of the rows in which it happens
    forecast: float  # the mean
    smooth_ce: float
    interval: Ends | None  # of the population's smooth_ce
    how: str  # how the interval was made, or why it is missing
    cutoff_ce: float  # the largest |E (y − v)| of forecasts in an interval
    lowest: float  # that interval
    highest: float
    bias: float  # the mean of y − v there
    p_value: float | None  # of calibration, by `cutoff_ce`
    adjusted: float | None  # the same for all classes and the top label at once


@dataclass(frozen=True, eq=False)
class ClassEvaluation:
    """Measures of forecasts of K classes, printed as two tables; `table()` and `by_class()` are DataFrames."""

    gamma: ClassDistribution
    rows: tuple[ClassRow, ...]
    classes: tuple[OneClass, ...]  # the last is of the top label
    cautions: tuple[str, ...]
    draws: int
    level: float

    @property
    def p_value(self) -> float | None:
        """The least p-value of a class or the top label, for all of them at once."""
        return min((one.adjusted for one in self.classes if one.adjusted is not None), default=None)

    @property
    def worst(self) -> OneClass:
        """The class, or top label, with the least p-value; without draws the one with the largest `cutoff_ce`."""
        return min(self.classes, key=lambda one: (one.adjusted or 0.0, -one.cutoff_ce))

    def table(self) -> "pd.DataFrame":
        """One row per measure: `value` (NaN of a bracket), `lower`, `upper`, its interval and p-value."""
        import pandas as pd

        rows = [
            {
                "measure": row.name, "value": low if low == high else math.nan, "lower": low, "upper": high,
                "interval_lower": (row.interval or (math.nan,))[0], "interval_upper": (row.interval or (math.nan,))[-1],
                "if_calibrated": row.if_calibrated, "p_value": row.p_value,
            }
            for row in self.rows
            for low, high in (ends(row.value),)
        ]  # fmt: skip
        numbers = pd.DataFrame(rows).set_index("measure")
        return numbers.astype(float)

    def by_class(self) -> "pd.DataFrame":
        """One row per class, and one of the top label, with the fields of `OneClass`."""
        import pandas as pd

        return pd.DataFrame([vars(one) for one in self.classes]).set_index("name")

    def cells(self, most: int | None = None) -> tuple[list[list[str]], list[list[str]]]:
        """The texts of both tables, headings first; of more than `most` classes those with the least p-values."""
        drawn = self.draws > 0
        head = ["measure", "value", *["interval", "if calibrated", "p"] * drawn]
        rows = [head]
        for row in self.rows:
            line = [row.name, span(ends(row.value), ".4g")]
            line += [_interval(row.interval), _number(row.if_calibrated), _number(row.p_value)] * drawn
            rows.append(line)
        head = ["class", "share", "smooth_ce", *["interval"] * drawn, "cutoff_ce"]
        each = [head + ["p", "p (all)"] * drawn]
        *singles, top = self.classes
        if most is not None and len(singles) > most:
            first = sorted(singles, key=lambda one: (one.adjusted or 0.0, -one.cutoff_ce))[:most]
            singles = [one for one in singles if one in first]
        for one in (*singles, top):
            line = [one.name, _number(one.share), _number(one.smooth_ce)]
            line += [_interval(one.interval)] * drawn
            line += [_number(one.cutoff_ce), *[_number(one.p_value), _number(one.adjusted)] * drawn]
            each.append(line)
        return rows, each

    def __str__(self) -> str:
        both = [line for cells in self.cells() for line in ("", *aligned(cells))]
        said = [line for text in self.cautions for line in textwrap.wrap(f"caution: {text}", WIDTH)]
        return "\n".join([repr(self.gamma), *said, *both])

    __repr__ = __str__


def _number(x: float | None) -> str:
    return "–" if x is None else f"{x:.3g}"


def _interval(interval: Ends | None) -> str:
    return "–" if interval is None else "[{:.3g}, {:.3g}]".format(*interval)


class _Events:
    """The event of each class, and that of the top label, with the levels in the order of their probabilities."""

    def __init__(self, gamma: ClassDistribution) -> None:
        self.gamma = gamma
        top = np.take_along_axis(gamma.predictions, gamma.top[:, None], axis=1)
        self.v = np.concatenate((gamma.predictions, top), axis=1)
        self.order = [np.argsort(column, kind="stable") for column in self.v.T]
        self.values = [column[order] for column, order in zip(self.v.T, self.order, strict=True)]
        # Levels with one probability of an event are one level of it.
        self.starts = [np.flatnonzero(np.diff(values, prepend=-1.0)) for values in self.values]
        variance = (gamma.counts[:, None] * self.v * (1.0 - self.v)).sum(axis=0)
        self.scale = np.sqrt(variance) / gamma.weight

    def errors(self, tallies: Floats) -> Floats:
        """The mass times y − v of each level and event."""
        gamma = self.gamma
        errors = np.empty(self.v.shape)
        errors[:, :-1] = tallies
        errors[:, -1] = np.take_along_axis(tallies, gamma.top[:, None], axis=1)[:, 0]
        return (errors - gamma.counts[:, None] * self.v) / gamma.weight

    def read(self, errors: Floats) -> tuple[Floats, Floats]:
        """The cutoff calibration error and the ECE of each event."""
        cutoff, ece = np.empty(errors.shape[1]), np.empty(errors.shape[1])
        for j, (order, starts) in enumerate(zip(self.order, self.starts, strict=True)):
            parts = np.add.reduceat(errors[order, j], starts)
            sums = np.cumsum(parts)
            cutoff[j], ece[j] = max(sums.max(), 0.0) - min(sums.min(), 0.0), np.abs(parts).sum()
        return cutoff, ece

    def where(self, errors: Floats, j: int) -> tuple[float, float, float]:
        """The ends of the interval with the largest error of an event, and the mean of y − v in it."""
        order, values = self.order[j], self.values[j]
        parts = np.add.reduceat(errors[order, j], self.starts[j])
        sums = np.concatenate(([0.0], np.cumsum(parts)))
        first, last = sorted((int(sums.argmin()), int(sums.argmax())))
        if first == last:
            return float(values[0]), float(values[-1]), 0.0
        levels = values[self.starts[j]]
        weight = np.add.reduceat(self.gamma.mass[order], self.starts[j])[first:last].sum()
        return float(levels[first]), float(levels[last - 1]), float((sums[last] - sums[first]) / weight)


class _Joint:
    """Measures of all classes together of the errors of levels, by their names."""

    def __init__(self, gamma: ClassDistribution) -> None:
        self.gamma, self.k = gamma, gamma.classes
        self.near: Floats | None = None
        if gamma.levels <= PAIRS:
            self.near = np.exp(-0.5 * cdist(gamma.predictions, gamma.predictions, "cityblock"))

    @cached_property
    def sets(self) -> list[tuple[list[int], Any]]:
        """Sets of classes without the first one, each with the place of each level among the sums."""
        v = self.gamma.predictions
        found = itertools.chain.from_iterable(
            itertools.combinations(range(1, self.k), size) for size in range(1, self.k)
        )
        return [([*each], np.unique(v[:, [*each]].sum(axis=1), return_inverse=True)[1]) for each in found]

    def read(self, errors: Floats, ece: Floats) -> dict[str, float]:
        own = errors[:, : self.k]
        found = {
            "ece": 0.5 * float(np.abs(own).sum()), "classwise ece, largest": float(ece[:-1].max()),
            "classwise ece, mean": float(ece[:-1].mean()), "toplabel ece": float(ece[-1]),
        }  # fmt: skip
        if _sets(self.gamma) <= DRAWN_SETS:
            parts = (np.bincount(place, own[:, each].sum(axis=1)) for each, place in self.sets)
            found["setwise ece"] = max(float(np.abs(part).sum()) for part in parts)
        if self.near is not None:
            found["kernel_ce"] = max(0.5 * float((own * (self.near @ own)).sum()), 0.0) ** 0.5
        return found


@with_ours
def evaluate_classes(
    p: ArrayLike | ClassDistribution,
    y: ArrayLike | None = None,
    *,
    labels: Any = None,
    draws: int = 200,
    level: float = 0.95,
    seed: int = 0,
) -> ClassEvaluation:
    """Measures of your own forecasts of K classes: all together, each class against the rest, and the top label.

    Outcomes drawn at these very predictions give p-values of calibration, right for every n. Those of classes are by
    `cutoff_ce`. Those of all classes and the top label at once are by the largest of these errors, each over its
    standard deviation. `smooth_ce` of a class has the interval of `evaluate`, and `brier` that of a mean of losses. All
    of this takes rows as independent. Other measures have no interval.

    Parameters
    ----------
    p : (n, K) array_like or ClassDistribution
        A row of probabilities for each sample, as in `ClassDistribution.from_samples`; or Γ, without y.
    y : (n,) array_like
        The column of what happened, or its label.
    labels : sequence of K, optional
        The labels of the columns.
    draws : int, default 200
        For intervals and for p-values; 0 for neither, and at most 10^6. With draws, Γ is of rows without weights.
    level : float, default 0.95
        Of the intervals.
    seed : int, default 0
        Of all draws.

    Returns
    -------
    ClassEvaluation

    Source: Bröcker & Smith 2007 (outcomes drawn as forecast); Westfall & Young 1993 (all classes at once). docs/
    intervals.md for intervals.

    Examples
    --------
    >>> found = evaluate_classes([[0.8, 0.1, 0.1], [0.2, 0.3, 0.5]] * 50, [0, 2] * 50, draws=99)
    >>> [(one.name, round(one.cutoff_ce, 2), one.adjusted) for one in found.classes]
    [('0', 0.1, 0.05), ('1', 0.2, 0.01), ('2', 0.25, 0.01), ('top label', 0.35, 0.01)]
    """
    draws = integer("evaluate_classes", "draws", draws, 0, MOST)
    level = number("evaluate_classes", "level", level, 0.0, 1.0)
    seed = integer("evaluate_classes", "seed", seed, 0)
    if isinstance(p, ClassDistribution):
        if y is not None or labels is not None:
            raise InvalidData("evaluate_classes: y or labels beside a ClassDistribution, which holds them")
        gamma = p
    elif y is None:
        raise InvalidData("evaluate_classes: y is missing; expected the outcomes of the predictions p")
    else:
        gamma = ClassDistribution.from_samples(p, y, labels=labels)
    if draws and (gamma.tallies != np.rint(gamma.tallies)).any():
        raise InvalidData("evaluate_classes: rows have weights; expected rows without, or draws = 0")
    events, joint = _Events(gamma), _Joint(gamma)
    errors = events.errors(gamma.tallies)
    cutoff, ece = events.read(errors)
    values = joint.read(errors, ece)
    drawn, measured = _drawn(events, joint, draws, seed)
    rows = [
        ClassRow(
            name, value,
            if_calibrated=float(measured[name].mean()) if draws else None,
            p_value=_share(measured[name], value) if draws else None,
        )
        for name, value in values.items()
    ]  # fmt: skip
    rows += _others(gamma, {row.name for row in rows}, draws, level, seed)
    # The largest error over its standard deviation, of certain forecasts over nothing.
    with np.errstate(divide="ignore", invalid="ignore"):
        most = np.nan_to_num(drawn / events.scale, posinf=np.inf).max(axis=1, initial=0.0)
        own = np.nan_to_num(cutoff / events.scale, posinf=np.inf)
    singles = [*zip(map(str, gamma.labels), gamma.labels, strict=True), (TOP, None)]
    each = []
    with Progress(len(singles), unit="classes", ticks=True) as progress:
        for j, (name, label) in enumerate(singles):
            progress.describe(name)
            event = gamma.toplabel() if label is None else gamma.classwise(label)
            resample = Resample(event, None) if draws else None
            (row,) = evaluated(event, resample, ["smooth_ce"], draws, 0, level, "bootstrap", seed).rows
            p_value = _share(drawn[:, j], cutoff[j]) if draws else None
            each.append(
                OneClass(
                    name, label, event.base_rate, float(event.mass @ event.predictions), row.ends[0], row.interval,
                    row.interval_by, float(cutoff[j]), *events.where(errors, j), p_value,
                    _share(most, own[j]) if draws else None,
                )
            )  # fmt: skip
            progress.advance(1)
    return ClassEvaluation(gamma, tuple(rows), tuple(each), tuple(_cautions(gamma)), draws, level)


def _drawn(events: _Events, joint: _Joint, draws: int, seed: int) -> tuple[Floats, dict[str, Floats]]:
    """Of outcomes drawn as forecast: the cutoff calibration error of each event, and the measures of `joint`."""
    gamma, generator = events.gamma, np.random.default_rng([seed, 5])
    found, measured = np.empty((draws, events.v.shape[1])), dict[str, list[float]]()
    counts = gamma.counts.astype(np.int64)
    with Progress(draws, unit="draws", ticks=True) as progress:
        for one in found:
            errors = events.errors(generator.multinomial(counts, gamma.predictions).astype(np.float64))
            one[:], ece = events.read(errors)
            for name, value in joint.read(errors, ece).items():
                measured.setdefault(name, []).append(value)
            progress.advance(1)
    return found, {name: np.array(values) for name, values in measured.items()}


def _sets(gamma: ClassDistribution) -> float:
    """The number of sets of classes times that of levels; infinite for more classes than `setwise` takes."""
    return math.inf if gamma.classes > MOST_CLASSES else (2 ** (gamma.classes - 1) - 1) * gamma.levels


def _share(drawn: Floats, value: float) -> float:
    """The share of draws that are as large, with the value itself among them; rounding makes no difference."""
    return (1 + int((drawn >= value * (1.0 - 1e-12) - 1e-15).sum())) / (1 + len(drawn))


def _others(gamma: ClassDistribution, known: set[str], draws: int, level: float, seed: int) -> list[ClassRow]:
    """The measures that have no p-value."""
    rows = []
    if "setwise ece" not in known and _sets(gamma) <= SETS:
        rows.append(ClassRow("setwise ece", measures.setwise(gamma).value))
    few = gamma.levels <= PROGRAMS
    for name in ("smooth_ce", "cdl", "u_calibration"):
        name += "" if few else "_bracket"
        rows.append(ClassRow(name, getattr(measures, name)(gamma)))
    whole = (gamma.tallies == np.rint(gamma.tallies)).all() and gamma.weight >= 2
    if gamma.levels > MOST_PAIRS and whole:
        rows.append(ClassRow("kernel_ce_squared", measures.kernel_ce_squared(gamma, block=BLOCK, seed=seed)))
    elif "kernel_ce" not in known and gamma.levels <= MOST_PAIRS:
        rows.append(ClassRow("kernel_ce", measures.kernel_ce(gamma)))
    interval = None
    if draws:
        # Half of the squared distance of the unit vector e_y from v.
        losses = 0.5 * ((gamma.predictions**2).sum(axis=1, keepdims=True) + 1.0) - gamma.predictions
        there = gamma.tallies > 0.0
        many = gamma.tallies[there]
        interval = mean_interval(losses[there], many, many, (0.0, 1.0), draws, level, seed)
    rows.append(ClassRow("brier", measures.brier(gamma), interval))
    rows.append(ClassRow("log_loss", measures.log_loss(gamma)))
    return rows


def _cautions(gamma: ClassDistribution) -> list[str]:
    """What the numbers do not tell."""
    said = []
    few = float(gamma.mass[gamma.counts < FEW].sum())
    if few > 0.05:
        said.append(
            f"{few:.0%} of rows are on levels with fewer than {FEW}: ece, setwise ece and cdl are mostly chance"
        )
    if impossible := float(gamma.tallies[gamma.predictions == 0.0].sum()):
        said.append(
            f"log_loss is infinite: probability 0 in {number_of(round(impossible), 'row')} that happened"
        )
    never = [str(label) for label, share in zip(gamma.labels, gamma.base_rates, strict=True) if share == 0.0]
    if never:
        said.append(f"in no row happens: {', '.join(map(repr, never[:3]))}" + ", …" * (len(never) > 3))
    if _sets(gamma) > SETS:
        said.append(f"sets of {gamma.classes} classes are not measured: there are too many")
    return said
