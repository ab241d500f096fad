"""All measures of forecasts of K classes in a table, class by class too, with how far chance alone explains them."""

import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from onlinecal.core.arrays import Floats, Ints
from onlinecal.core.classes import ClassDistribution
from onlinecal.core.errors import InvalidData
from onlinecal.core.progress import Progress
from onlinecal.core.samples import with_ours
from onlinecal.core.simplex import Label
from onlinecal.core.validation import check_same_rows, integer, number
from onlinecal.core.words import number_of
from onlinecal.logs.class_draws import Events, Joint, drawn, drawn_of_clusters, sets_of
from onlinecal.logs.clusters import FEWEST, cluster_means, labels_of
from onlinecal.logs.evaluation import MOST, evaluated
from onlinecal.logs.inference import with_holm
from onlinecal.logs.intervals import mean_interval
from onlinecal.logs.resampling import FEW, share_of
from onlinecal.logs.table import WIDTH, Evaluation, Value, aligned, span
from onlinecal.measures import classes as measures
from onlinecal.measures.base import Ends, ends
from onlinecal.measures.classes.sums import MOST_PAIRS

if TYPE_CHECKING:
    import pandas as pd

#: levels up to which linear programs are solved here; they take some seconds
PROGRAMS = 100
#: sets of classes times levels up to which what happened is measured for all sets
SETS = 5_000_000
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


@dataclass(frozen=True)
class ClassGroup:
    """Some of the rows, such as those of one site."""

    name: str
    rows: int
    ece: float
    brier: float
    worst: str  # the event with the least p-value; without draws the one with the largest `cutoff_ce`
    lowest: float  # the forecasts of that event with the largest error
    highest: float
    bias: float  # the mean of y − v there
    p_value: float | None  # of calibration, for all classes and the top label at once
    adjusted: float | None = None  # the same for all groups at once (Holm)


@dataclass(frozen=True, eq=False)
class ClassEvaluation:
    """Measures of forecasts of K classes, printed as two tables; `table()` and `by_class()` are DataFrames."""

    gamma: ClassDistribution
    rows: tuple[ClassRow, ...]
    classes: tuple[OneClass, ...]  # the last is of the top label
    cautions: tuple[str, ...]
    draws: int
    level: float
    events: tuple[Evaluation, ...]  # of each class, and of the top label
    groups: tuple[ClassGroup, ...] = ()  # of some rows each

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


@with_ours
def evaluate_classes(
    p: ArrayLike | ClassDistribution,
    y: ArrayLike | None = None,
    *,
    weights: ArrayLike | None = None,
    clusters: ArrayLike | None = None,
    labels: Any = None,
    in_time: bool = False,
    draws: int = 200,
    level: float = 0.95,
    seed: int = 0,
) -> ClassEvaluation:
    """Measures of your own forecasts of K classes: all together, each class against the rest, and the top label.

    Outcomes drawn at these very predictions give p-values of calibration, right for every n. Those of classes are by
    `cutoff_ce`. Those of all classes and the top label at once are by the largest of these errors, each over its
    standard deviation. `smooth_ce` of a class has the interval of `evaluate`, and `brier` that of a mean of losses.
    Other measures have no interval. With `clusters`, only rows of different clusters are independent, and measures of
    all classes together have no p-value.

    Parameters
    ----------
    p : (n, K) array_like or ClassDistribution
        A row of probabilities for each sample, as in `ClassDistribution.from_samples`; or Γ, without y.
    y : (n,) array_like
        The column of what happened, or its label.
    weights : (n,) array_like, optional
        As in `ClassDistribution.from_samples`.
    clusters : (n,) array_like, optional
        A label for each row, number or string: at least 15 for intervals and p-values. Default: each row by itself.
    labels : sequence of K, optional
        The labels of the columns.
    in_time : bool, default False
        Whether rows are in order of time. Where errors of a class near each other are alike, blocks are independent.
    draws : int, default 200
        For intervals and for p-values; 0 for neither, and at most 10^6. With draws, a Γ is of rows without weights.
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
        if any(each is not None for each in (y, labels, weights, clusters)):
            raise InvalidData(
                "evaluate_classes: y, labels, weights or clusters beside a ClassDistribution; expected it alone"
            )
        events = Events(p)
    elif y is None:
        raise InvalidData("evaluate_classes: y is missing; expected the outcomes of the predictions p")
    else:
        check_same_rows({"p": p, "clusters": clusters})
        events = events_of(p, y, weights, clusters, labels, in_time)
    gamma, rows = events.gamma, events.rows
    if draws and rows is None and (gamma.tallies != np.rint(gamma.tallies)).any():
        raise InvalidData(
            "evaluate_classes: Γ is of rows with weights; expected p, y and weights themselves, or draws = 0"
        )
    joint = Joint(gamma)
    resamples: Any = events.resamples if draws or rows is not None else [None] * (gamma.classes + 1)
    test = tested(events, joint, draws, seed)
    table = []
    for name, value in joint.read(test.errors, test.ece).items():
        chance: tuple[float | None, float | None] = None, None
        if name in test.measured:
            chance = float(test.measured[name].mean()), float(share_of(test.measured[name], value))
        table.append(ClassRow(name, value, None, *chance))
    interval = _brier_interval(events, draws, level, seed) if draws else None
    table += _others(gamma, {row.name for row in table}, interval, seed)
    singles = [*zip(map(str, gamma.labels), gamma.labels, strict=True), (TOP, None)]
    each, evaluations = [], []
    with Progress(len(singles), unit="classes", ticks=True) as progress:
        for j, (name, label) in enumerate(singles):
            progress.describe(name)
            event = gamma.toplabel() if label is None else gamma.classwise(label)
            one = evaluated(event, resamples[j], ["smooth_ce"], draws, 0, level, "bootstrap", seed)
            (row,) = one.rows
            evaluations.append(one)
            each.append(
                OneClass(
                    name, label, event.base_rate, float(event.mass @ event.predictions), row.ends[0], row.interval,
                    row.interval_by, float(test.cutoff[j]), *events.where(test.errors, j), *test.p_values[j],
                )
            )  # fmt: skip
            progress.advance(1)
    said = tuple(_cautions(events, draws))
    return ClassEvaluation(gamma, tuple(table), tuple(each), said, draws, level, tuple(evaluations))


def events_of(p: ArrayLike, y: ArrayLike, weights: Any, clusters: Any, labels: Any, in_time: bool) -> Events:
    """The events of these rows; of rows without weights, clusters and times, Γ tells all."""
    gamma, rows = ClassDistribution.with_rows(p, y, weights, labels)
    if clusters is None:
        return Events(gamma, None if weights is None and not in_time else rows, in_time=in_time)
    every = labels_of(clusters, len(rows.kept), "evaluate_classes")
    return Events(gamma, rows, np.unique(every[rows.kept], return_inverse=True)[1], in_time)


def by_group(
    p: Floats,
    y: Ints,
    groups: Mapping[str, Ints],
    labels: Sequence[str],
    weights: Floats | None,
    clusters: Ints | None,
    in_time: bool,
    draws: int,
    seed: int,
) -> tuple[ClassGroup, ...]:
    """Each group of rows, given by their numbers, tested by itself; rows of weight 0 are none."""
    found = list[ClassGroup]()
    for name, there in groups.items():
        w, c = (None if each is None else each[there] for each in (weights, clusters))
        if w is not None and not w.any():
            continue
        events = events_of(p[there], y[there], w, c, None, in_time)
        joint = Joint(events.gamma)
        test = tested(events, joint, draws, seed)
        adjusted = [among for _, among in test.p_values]
        worst = min(range(len(adjusted)), key=lambda j: (adjusted[j] or 0.0, -test.cutoff[j]))
        found.append(
            ClassGroup(
                name, len(there), joint.read(test.errors, test.ece)["ece"], measures.brier(events.gamma),
                [*labels, TOP][worst], *events.where(test.errors, worst), adjusted[worst],
            )
        )  # fmt: skip
    return tuple(with_holm(found))


class Tested(NamedTuple):
    """Errors of each event, the top label last, and of all classes, beside those of outcomes drawn as forecast."""

    errors: Floats  # of levels and events
    cutoff: Floats
    ece: Floats
    p_values: list[
        tuple[float | None, float | None]
    ]  # of each event by itself, and among all; None without draws
    measured: dict[str, Floats]  # measures of all classes of drawn outcomes


def tested(events: Events, joint: Joint, draws: int, seed: int) -> Tested:
    """The errors of some rows, compared with those of drawn outcomes unless there are too few clusters."""
    errors = events.errors(events.gamma.tallies)
    cutoff, ece = events.read(errors)
    if not draws or events.too_few:
        return Tested(errors, cutoff, ece, [(None, None)] * len(cutoff), {})
    scale, measured = events.scale, dict[str, Floats]()
    if not events.clustered:
        found, measured = drawn(events, joint, draws, seed)
    else:
        found = drawn_of_clusters(events, draws, seed)
        scale = np.vstack((found, cutoff)).mean(axis=0)
    # The largest error over its standard deviation, of certain forecasts over nothing.
    with np.errstate(divide="ignore", invalid="ignore"):
        most = np.nan_to_num(found / scale, posinf=np.inf).max(axis=1, initial=0.0)
        own = np.nan_to_num(cutoff / scale, posinf=np.inf)
    alone, among = (share_of(each, value).tolist() for each, value in ((found, cutoff), (most[:, None], own)))
    return Tested(errors, cutoff, ece, [*zip(alone, among, strict=True)], measured)


def _brier_interval(events: Events, draws: int, level: float, seed: int) -> Ends | None:
    """The interval of half of the mean squared distance of the unit vector e_y from v."""
    gamma, rows, within = events.gamma, events.rows, (0.0, 1.0)
    losses = 0.5 * ((gamma.predictions**2).sum(axis=1, keepdims=True) + 1.0) - gamma.predictions
    if rows is None:
        there = gamma.tallies > 0.0
        loss, mass = losses[there], gamma.tallies[there]
        squares = mass
    else:
        loss = losses[rows.level, rows.y]
        mass = np.ones(len(loss)) if rows.weights is None else rows.weights
        squares = mass**2
        labels, wider, too_few = events.units(mass * (loss - mass @ loss / mass.sum()))
        if labels is not None:
            loss, mass, squares, within = cluster_means(labels, mass, loss, rows.y, gamma.classes, 1.0)
            squares = wider * squares
            if too_few or mass.sum() ** 2 / squares.sum() < FEWEST - 1e-9:
                return None
    return mean_interval(loss, mass, squares, within, draws, level, seed)


def _others(gamma: ClassDistribution, known: set[str], interval: Ends | None, seed: int) -> list[ClassRow]:
    """The measures that have no p-value."""
    rows = []
    if "setwise ece" not in known and sets_of(gamma) <= SETS:
        rows.append(ClassRow("setwise ece", measures.setwise(gamma).value))
    few = gamma.levels <= PROGRAMS
    for name in ("smooth_ce", "cdl", "u_calibration"):
        name += "" if few else "_bracket"
        rows.append(ClassRow(name, getattr(measures, name)(gamma)))
    whole = (gamma.tallies == np.rint(gamma.tallies)).all()
    if gamma.levels > MOST_PAIRS and whole:
        rows.append(ClassRow("kernel_ce_squared", measures.kernel_ce_squared(gamma, block=BLOCK, seed=seed)))
    elif "kernel_ce" not in known and gamma.levels <= MOST_PAIRS:
        rows.append(ClassRow("kernel_ce", measures.kernel_ce(gamma)))
    rows.append(ClassRow("brier", measures.brier(gamma), interval))
    rows.append(ClassRow("log_loss", measures.log_loss(gamma)))
    return rows


def _cautions(events: Events, draws: int) -> list[str]:
    """What the numbers do not tell."""
    said, gamma, rows = [], events.gamma, events.rows
    if draws and (few := events.too_few):
        what = (
            "no intervals and p-values"
            if len(few) > gamma.classes
            else "no p-values, and some intervals lack"
        )
        said.append(f"{what}: {few[0].removeprefix('none: ')}")
    elif draws and events.in_time and events.clustered:
        said.append("errors near each other in time are alike: blocks of rows are taken as independent")
    rare = float(gamma.mass[gamma.counts**2 / events.squares < FEW - 1e-9].sum())
    if rare > 0.05:
        said.append(
            f"{rare:.0%} of rows are on levels with fewer than {FEW}: ece, setwise ece and cdl are mostly chance"
        )
    never = gamma.predictions == 0.0
    impossible = gamma.tallies[never].sum() if rows is None else never[rows.level, rows.y].sum()
    if impossible:
        said.append(
            f"log_loss is infinite: probability 0 in {number_of(round(float(impossible)), 'row')} that happened"
        )
    absent = [str(label) for label, share in zip(gamma.labels, gamma.base_rates, strict=True) if share == 0.0]
    if absent:
        said.append(f"in no row happens: {', '.join(map(repr, absent[:3]))}" + ", …" * (len(absent) > 3))
    if sets_of(gamma) > SETS:
        said.append(f"sets of {gamma.classes} classes are not measured: there are too many")
    return said
