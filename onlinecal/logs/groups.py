"""Groups of rows, which may overlap: a table of them, the measures of all of them, and the worst one in words."""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from onlinecal.core.arrays import Floats, Ints
from onlinecal.core.columns import ALL, Column
from onlinecal.core.joint import JointDistribution
from onlinecal.core.memory import cores
from onlinecal.logs.clusters import Samples
from onlinecal.logs.evaluated import evaluated
from onlinecal.logs.intervals import Method
from onlinecal.logs.reference import Reference
from onlinecal.logs.resampling import Resample, replicates, share_of
from onlinecal.measures.cutoff import cutoff_ce
from onlinecal.measures.groups import OF_GROUPS, Family, Worst

if TYPE_CHECKING:
    import pandas as pd

#: a group with fewer rows is not called the worst
FEWEST = 20
#: the measures of all groups that are shown, with their options
SHOWN: tuple[tuple[str, dict[str, Any]], ...] = (
    ("multi_ece", {}), ("multi_ece", {"per": "root"}), ("multi_ece", {"per": "round"}), ("swap_multi_ece", {}),
    ("multi_linf", {}), ("multi_l2", {}), ("multiaccuracy", {}),
)  # fmt: skip
#: the measures of each group, with intervals
OF_EACH = "ece", "smooth_ce"


@dataclass(frozen=True)
class Group:
    """One group; None of one without rows, and for an interval that is missing."""

    name: str
    rows: int
    forecast: float | None = None  # the mean
    event: float | None = None  # the share of outcomes 1
    ece: float | None = None
    ece_interval: tuple[float, float] | None = None
    smooth_ce: float | None = None
    smooth_ce_interval: tuple[float, float] | None = None


class OfAll(NamedTuple):
    """A measure of all groups: its value, the group and the forecast that have it, and p-values of calibration."""

    name: str
    value: float
    group: str | None
    forecast: float | None
    if_calibrated: float | None  # the mean where each outcome is drawn as 1 with the probability forecast
    p_value: float | None  # how often such outcomes give a value at least as large


@dataclass(frozen=True)
class Groups:
    """The groups of a list of forecasts, ``all`` first, and the measures of all of them."""

    groups: tuple[Group, ...]
    measures: tuple[OfAll, ...]
    #: the worst group in a sentence, or that none is told from chance
    words: str
    #: with which all intervals hold together
    level: float
    #: why intervals are missing, of the first group without one
    missing: tuple[str, ...] = ()

    def table(self) -> "pd.DataFrame":
        """One row per group, indexed by name; NaN where nothing is known.

        Columns: `rows`, `forecast` (mean), `event` (rate), `ece`, `smooth_ce`, and of either `…_lower` and `…_upper`.
        All intervals hold together with `level`.
        """
        import pandas as pd

        rows = []
        for group in self.groups:
            row: dict[str, Any] = {"rows": group.rows, "forecast": group.forecast, "event": group.event}
            for name in OF_EACH:
                low, high = getattr(group, f"{name}_interval") or (math.nan, math.nan)
                row |= {name: getattr(group, name), f"{name}_lower": low, f"{name}_upper": high}
            rows.append({key: math.nan if value is None else value for key, value in row.items()})
        return pd.DataFrame(rows, index=pd.Index([group.name for group in self.groups], name="group"))

    def worst(self) -> "pd.DataFrame":
        """One row per measure of all groups, indexed by name, with the group and the forecast that have the value."""
        import pandas as pd

        return pd.DataFrame([one._asdict() for one in self.measures]).set_index("name")

    def lines(self, number: Callable[[float | None], str]) -> tuple[list[list[str]], list[list[str]]]:
        """The cells of both tables, the headings first; an interval has the digits of `number`."""

        def interval(ends: tuple[float, float] | None) -> str:
            return "none" if ends is None else f"[{', '.join(map(number, ends))}]"

        made = any(group.ece_interval or group.smooth_ce_interval for group in self.groups)
        groups = [
            [
                "group",
                "rows",
                "forecast",
                "event",
                "ECE",
                *["interval"] * made,
                "smooth CE",
                *["interval"] * made,
            ]
        ]
        for group in self.groups:
            cells = [f"{group.rows:,}", number(group.forecast), number(group.event), number(group.ece)]
            cells += [interval(group.ece_interval)] * made + [number(group.smooth_ce)]
            cells += [interval(group.smooth_ce_interval)] * made
            groups.append(
                [group.name, *(cells if group.rows else [cells[0], "empty", *[""] * (len(cells) - 2)])]
            )
        drawn = any(one.p_value is not None for one in self.measures)
        measures = [["measure", "value", *["if calibrated", "p"] * drawn, "worst group", "at the forecast"]]
        for one in self.measures:
            chance = [number(one.if_calibrated), number(one.p_value)] * drawn
            at = "" if one.forecast is None else number(one.forecast)
            measures.append([one.name, number(one.value), *chance, one.group or "of each forecast", at])
        return groups, measures

    @property
    def notes(self) -> list[str]:
        """The lines below the tables."""
        made = any(group.ece_interval or group.smooth_ce_interval for group in self.groups)
        together = f"intervals of groups hold together with {100.0 * self.level:.4g} % (Bonferroni)"
        return [self.words, *[together] * made, *self.missing]


def groups_of(
    samples: Samples,
    resample: Resample | None,
    members: Mapping[str, Ints],
    many: Mapping[str, int],
    draws: int,
    times: int,
    level: float,
    seed: int,
    method: Method = "bootstrap",
) -> Groups:
    """The groups of rows, each given by its row numbers; `many` is how many rows of the user these are."""
    mass = samples.mass
    every = {ALL: np.arange(len(mass)), **members}
    there = {name: rows[mass[rows] > 0.0] for name, rows in every.items()}
    # Each interval of k groups holds with 1 − (1 − level)/k (Bonferroni). As many more draws are made, so that as many
    # are beyond its ends.
    k = sum(len(rows) > 0 for rows in there.values())
    within = 1.0 - (1.0 - level) / k
    groups, missing = list[Group](), dict[str, str]()
    for name, rows in there.items():
        if not len(rows):
            groups.append(Group(name, 0))
            continue
        some = samples.of(rows)
        gamma = some.gamma
        found = evaluated(gamma, some.resample(gamma), OF_EACH, draws * k, 0, within, method, seed)
        ece, smooth = found.rows
        if draws or method != "bootstrap":
            for row in (row for row in found.rows if row.interval is None):
                why = row.interval_by.removeprefix("none: ")
                missing.setdefault(row.name, f"no interval for {row.name} of {name!r}: {why}")
        forecast = float(gamma.mass @ gamma.predictions)
        groups.append(
            Group(
                name, many[name], forecast, gamma.base_rate, ece.ends[1], ece.interval, smooth.ends[1],
                smooth.interval,
            )
        )  # fmt: skip
    large = [group.name for group in groups if group.rows >= FEWEST and group.name != ALL]
    functions = {
        Column("measure", name, tuple(options.items())).name: partial(_of_all, name, options)
        for name, options in SHOWN
    } | {"": partial(furthest, large=large)}
    families = Families(samples, there)
    worst = [function(families.observed) for function in functions.values()]
    means: list[float | None] = [None] * len(worst)
    shares = means
    if times and resample is not None and not resample.too_few:
        against = Reference(resample)
        families = Families(samples, there, against) if against.grouped else families
        compared = np.array([function(families.observed).value for function in functions.values()])
        values = [(name, partial(_value, function)) for name, function in functions.items()]
        draw = partial(families.drawn, resample)
        drawn = replicates(values, draw, times, np.random.default_rng([seed, 7]), cores())[..., 0]
        shares = share_of(drawn, compared).tolist()
        # Values at groups of levels are others, as in `evaluated`.
        means = means if against.grouped else drawn.mean(axis=0).tolist()
    rows = [
        OfAll(name, one.value, one.group, one.level, mean, share)
        for name, one, mean, share in zip(functions, worst, means, shares, strict=True)
    ]
    words = _words(rows[-1], groups, level)
    return Groups(tuple(groups), tuple(rows[:-1]), words, level, tuple(missing.values()))


def _of_all(name: str, options: Mapping[str, Any], family: Family) -> Worst:
    """A measure of all groups."""
    worst: Worst = OF_GROUPS[name].function.worst(family, **options)  # type: ignore[attr-defined]
    return worst


def furthest(family: Family, large: Collection[str]) -> Worst:
    """The largest cutoff calibration error of a large group, times √(n_g/n): chance makes it as large in each."""
    found = [
        Worst(math.sqrt(share) * cutoff_ce(gamma), name)
        for (name, gamma), share in zip(family.items(), family.shares, strict=True)
        if name in large
    ]
    return max(found, key=lambda one: one.value, default=Worst(0.0, None))


def _value(function: Callable[[Family], Worst], family: Family) -> float:
    return function(family).value


class Families:
    """Γ of each group of some rows, with the outcomes seen or drawn; where `against` has fewer levels, at those."""

    def __init__(self, samples: Samples, there: Mapping[str, Ints], against: Reference | None = None) -> None:
        self.samples, mass = samples, samples.mass
        gamma = samples.gamma
        level = np.searchsorted(gamma.predictions, samples.p)
        self.levels = gamma.predictions
        if against is not None:
            level = np.searchsorted(against.starts, level, side="right") - 1
            self.levels = against.gamma.predictions
        self.mass = mass
        # Of each group its rows, its levels and the place of each row among them.
        self.groups = {
            name: (rows, *np.unique(level[rows], return_inverse=True))
            for name, rows in there.items()
            if len(rows)
        }

    @property
    def observed(self) -> Family:
        """With the outcomes of the rows."""
        return self._of(self.mass * self.samples.y)

    def drawn(self, resample: Resample, generator: np.random.Generator) -> Family:
        """With each outcome drawn as 1 with the probability forecast."""
        if resample.weights is None:
            counts = 1 if self.samples.counts is None else self.samples.counts.astype(np.int64)
            return self._of(generator.binomial(counts, self.samples.p, len(self.mass)).astype(np.float64))
        ones = np.zeros(len(self.mass))
        ones[self.mass > 0.0] = resample.outcomes(generator)
        return self._of(self.mass * ones)

    def _of(self, ones: Floats) -> Family:
        found = Family()
        for name, (rows, levels, place) in self.groups.items():
            counts = np.bincount(place, self.mass[rows]).astype(np.float64)
            positives = np.bincount(place, ones[rows]).astype(np.float64)
            found[name] = JointDistribution.from_sorted_levels(self.levels[levels], counts, positives)
        return found


def _words(worst: OfAll, groups: Sequence[Group], level: float) -> str:
    """The worst group in a sentence."""
    few, share = [group.name for group in groups if 0 < group.rows < FEWEST], worst.p_value
    left = f" Groups with fewer than {FEWEST} rows are left out: {', '.join(map(repr, few))}." if few else ""
    if worst.group is None:
        return f"No group has {FEWEST} rows, so none is called the worst.{left}"
    group = next(group for group in groups if group.name == worst.group)
    event, forecast, smooth, ece = (
        f"{x:.3g}" for x in (group.event, group.forecast, group.smooth_ce, group.ece)
    )
    what = f"{group.name!r} ({group.rows:,} rows): events {event} at forecasts of {forecast} on average, "
    what += f"smooth CE {smooth}, ECE {ece}"
    if share is None:
        return f"Worst group: {what}. It is not tested against chance.{left}"
    chance = f"p = {share:.3g} for the worst of all groups"
    if share > 1.0 - level:
        return f"No group is told from chance ({chance}); the worst is {what}.{left}"
    return f"Worst group: {what}; {chance}.{left}"
