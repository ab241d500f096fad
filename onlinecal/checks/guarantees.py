"""The guarantee report: every promise of every strategy, measured where it applies, and rounds against proofs."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from onlinecal.checks.conformance import Finding, conformance
from onlinecal.checks.facts import playable
from onlinecal.core.errors import InvalidParameter, OnlinecalError, failure, in_one_line
from onlinecal.core.guarantee import Guarantee, OnGrid, Potential
from onlinecal.core.joint import JointDistribution
from onlinecal.core.levels import LevelSets
from onlinecal.core.progress import Progress
from onlinecal.core.strategy import classes_of, required, strategy_label
from onlinecal.engine.game import Game
from onlinecal.engine.horizon import check_horizon, checkpoints
from onlinecal.engine.start import check_specification, same_outcomes, start
from onlinecal.forecasters import FORECASTERS, Forecaster
from onlinecal.growth.outgrowth import outgrowth
from onlinecal.naming import found, strategy_of
from onlinecal.natures import NATURES, Drift, GroupContrarian, Grouped, Nature
from onlinecal.study.panel import Panel
from onlinecal.study.planning import Entry, plan
from onlinecal.study.promises import promises
from onlinecal.study.run import play_cell
from onlinecal.worlds.base import World

#: false-failure rates of the check of one expected bound, and of one rate
RATE, TREND_RATE = 1e-9, 1e-6
#: A rate speaks of T → ∞. Terms of lower order bend a total at finite T, so ratios may grow like T to this power.
BEND = 0.1
#: the growth of a ratio is measured from games this many times shorter, with this many times the runs
SHORTER, MORE = 16, 4
#: standard errors by which a mean may be beyond a bound in a world; of 10^5 such checks one errs
ERRORS = 4.5
#: what rounding may add to a ratio that is at most 1
ROUNDING = 1e-9
#: how many runs are held against the potential of a bound from above, which looks at each law by itself
LOOKED_AT = 4
#: natures for those who play for groups; all of them have parameters
WITH_GROUPS = (
    Grouped(Drift(), {"odd": 0.5, "rare": 0.1}, {"odd": 0.2}),
    GroupContrarian({"odd": 0.5, "rare": 0.1}, {"odd": 0.7, "all": 0.3}),
)


@dataclass(frozen=True)
class GuaranteeCheck:
    """One guarantee against one opponent."""

    strategy: str
    opponent: str
    guarantee: Guarantee
    ratio: float
    at: int
    holds: bool | None
    trend: tuple[float, float, float] | None = None
    step: float = math.nan


@dataclass(frozen=True)
class Report:
    """The findings of `onlinecal check`."""

    guarantees: tuple[GuaranteeCheck, ...]
    findings: tuple[tuple[str, Finding], ...]
    remarks: tuple[str, ...] = ()

    @property
    def good(self) -> bool:
        return all(v.holds is not False for v in self.guarantees) and not any(
            f.fault for _, f in self.findings
        )

    def rows(self) -> dict[str, list[dict[str, Any]]]:
        """For JSON: the guarantees and the conformance checks."""
        trends = ("trend", "trend_above", "trend_below")
        return {
            "guarantees": [
                {"strategy": v.strategy, "guarantee": v.guarantee.short, "kind": v.guarantee.kind,
                 "opponent": v.opponent, "ratio": v.ratio, "round": v.at, "holds": v.holds,
                 **dict(zip(trends, v.trend or (None,) * 3, strict=True)),
                 "step": None if math.isnan(v.step) else v.step}
                for v in self.guarantees
            ],
            "conformance": [{"strategy": name, **asdict(f)} for name, f in self.findings],
        }  # fmt: skip


@dataclass(frozen=True)
class _Size:
    """The size of games."""

    horizon: int
    runs: int
    seed: int


def report(
    names: Sequence[str], *, horizon: int, runs: int, seed: int, progress: bool | None = None
) -> Report:
    """Checks the named strategies, or all that can be played with their default parameters."""
    check_horizon(horizon)
    forecasters, natures = _playable(FORECASTERS), [*_playable(NATURES), *WITH_GROUPS]
    findings: list[tuple[str, Finding]] = []
    mine = {name: strategy_of(found("strategy", name)[0] or "forecaster", name) for name in names}
    own = [s for s in mine.values() if isinstance(s, Nature) and not isinstance(s, World)]
    who = [s for s in mine.values() if isinstance(s, Forecaster)] if mine else forecasters
    # Groups are there for those who play for them.
    pairs = [(f, n) for f in who for n in natures if n not in WITH_GROUPS or f.facing(n) is not f]
    pairs += [(f, n) for f in [*who, *forecasters] for n in own]
    pairs = [pair for pair in pairs if same_outcomes(*pair)]
    with Progress(len(pairs) * horizon * runs, shown=progress) as bar:
        for name, strategy in mine.items():
            bar.describe(f"conformance of {name}")
            findings += [(name, finding) for finding in conformance(strategy, seed, name=name)]
            if isinstance(strategy, World) and not any(f.fault for who, f in findings if who == name):
                able = [each for each in forecasters if not each.of_classes]
                findings.append((name, bounds_in_world(able, strategy, horizon, runs, seed)))
        checked: list[GuaranteeCheck] = []
        for pair in pairs:
            bar.describe(f"{strategy_label(pair[0])} against {strategy_label(pair[1])}")
            whose = [name for name, strategy in mine.items() if any(strategy is each for each in pair)]
            try:
                whom = list(mine.values()) or None
                checked += check(pair[:1], pair[1:], horizon=horizon, runs=runs, seed=seed, of=whom)
            except OnlinecalError as error:
                if not whose:
                    raise
                # Told once: a rule may be broken in every game.
                if not {name for name, finding in findings if finding.fault}.intersection(whose):
                    findings += [(name, Finding("plays to the end", str(error))) for name in whose]
            bar.advance(horizon * runs)
        for name, strategy in mine.items():
            if not isinstance(strategy, World) and strategy_label(strategy) not in {
                who for v in checked for who in (v.strategy, v.opponent)
            }:
                findings.append((name, _plays_on(strategy, pairs, _Size(horizon, 1, seed))))
    remarks = (_remark(name, s, checked) for name, s in mine.items() if not isinstance(s, World))
    return Report(tuple(checked), tuple(findings), tuple(filter(None, remarks)))


def check(
    forecasters: Iterable[Forecaster], natures: Iterable[Nature], *, horizon: int, runs: int, seed: int,
    of: Sequence[Any] | None = None,
) -> Iterator[GuaranteeCheck]:  # fmt: skip
    """Plays every pair to which a guarantee applies, of these strategies or (None) of both."""
    for forecaster, nature in product(forecasters, natures):
        check_specification("forecaster", forecaster)
        check_specification("nature", nature)
        if not (forecaster.needs <= nature.reveals and same_outcomes(forecaster, nature)):
            continue
        size = _Size(playable(horizon, forecaster, nature), runs, seed)
        told = forecaster.facing(nature) if isinstance(forecaster, Forecaster) else forecaster
        stated = [
            _guarantees(own) if any(who is each for each in of or (forecaster, nature)) else ()
            for who, own in ((forecaster, told), (nature, nature))
        ]
        mine = [g for g in stated[0] if g.binds(told, nature)]
        theirs = [g for g in stated[1] if _forces(g, forecaster, nature, size.horizon)]
        if not mine and not theirs:
            continue
        panel = _panel(mine + theirs, classes_of(nature) > 0)
        times, totals, steps = _play(forecaster, nature, size, panel, proved=mine + theirs)
        names = strategy_label(forecaster), strategy_label(nature)
        for i, (g, step) in enumerate(zip(mine + theirs, steps, strict=True)):
            who = names if i < len(mine) else (names[1], names[0])
            column = totals[g.measure]
            if g.kind == "expected":
                yield _expected(g, who, column[-1], size.horizon, step)
            elif g.kind == "deterministic":
                yield _deterministic(g, who, times, column, size.horizon)
            else:
                yield _rate(g, forecaster, nature, size, panel, column[-1].mean())


def bounds_in_world(
    forecasters: Iterable[Forecaster], world: Any, horizon: int, runs: int, seed: int
) -> Finding:
    """Plays the forecasters that have a bound for open questions in a world, and compares totals with bounds."""
    kept, faults = [], []
    for forecaster in forecasters:
        own = forecaster.facing(world).guarantees
        names = {g.column.measure for g in own if g.column.kind == "measure" and g.kind != "rate"}
        longest = forecaster.length or horizon
        if not names or longest < horizon or not forecaster.needs <= world.reveals:
            continue
        entries = [Entry.of(forecaster)], [Entry.of(world)]
        (cell,) = plan(*entries, horizons=[horizon], runs=runs, seed=seed, panel=Panel.of(sorted(names)))
        if not promises(cell):
            continue
        played = play_cell(cell)
        for promise in played.promises:
            totals, sign = played.totals[promise.measure][-1], 1.0 if promise.upper else -1.0
            slack = 1e-9 * (1.0 + abs(promise.bound))
            if promise.kind == "expected":
                totals, slack = np.mean(totals), slack + ERRORS * np.std(totals) / math.sqrt(max(1, runs - 1))
            if promise.kind != "rate":
                kept.append(promise)
                if np.any(sign * (totals - promise.bound) > slack):
                    faults.append(f"{cell.forecaster.label}: {promise.text}: {totals} > {promise.bound:.6g}")
    return Finding(f"bounds for open questions ({len(kept)} apply)", "; ".join(faults))


def _plays_on(strategy: Any, pairs: Sequence[tuple[Forecaster, Nature]], size: _Size) -> Finding:
    """Whether one of which no game was played, since no guarantee applies, comes to the end of one."""
    fault = "nobody can be played against it"
    for forecaster, nature in pairs:
        if strategy in (forecaster, nature) and forecaster.needs <= nature.reveals:
            try:
                _play(forecaster, nature, replace(size, horizon=playable(size.horizon, forecaster, nature)))
                fault = ""
            except OnlinecalError as error:
                fault = str(error)
            break
    return Finding("plays to the end", fault)


def _remark(name: str, strategy: Any, checked: Sequence[GuaranteeCheck]) -> str:
    """A remark on a strategy of which no guarantee was measured; "" of another."""
    if any(v.strategy == strategy_label(strategy) for v in checked):
        return ""
    try:
        guarantees = _guarantees(strategy)
    except InvalidParameter:  # which is among the findings
        return ""
    if not guarantees:
        return f"{name} states no guarantee, so there is none to measure."
    stated = "; ".join(g.short for g in guarantees)
    return f"{name} states {stated}: not of a kind, or not against opponents, that are measured here."


def _playable(known: Mapping[str, Any]) -> list[Any]:
    """Those that need no parameters."""
    return [cls() for cls in known.values() if not required(cls)]


def _forces(g: Guarantee, forecaster: Forecaster, nature: Nature, horizon: int) -> bool:
    """Whether a nature's bound is measured here, says something at this T, and speaks of this forecaster."""
    if g.kind == "rate":
        return False
    if isinstance(g.against, OnGrid):
        player = start("forecaster", forecaster, horizon, range(1), 0)
        against = g.against.fits(getattr(player, "grid", None))
    else:
        against = g.binds(forecaster, nature)
    return against and _bound(g, strategy_label(nature), horizon) > 0.0


def _expected(g: Guarantee, names: tuple[str, str], totals: Any, horizon: int, step: float) -> GuaranteeCheck:
    mean, bound = float(totals.mean()), _bound(g, names[0], horizon)
    slack = 0.0 if g.slack is None else g.slack(horizon, len(totals), RATE)
    beyond = mean - bound if g.upper else bound - mean
    # Beyond the bound by what chance may do, it neither holds nor fails.
    kept = True if beyond <= 0.0 else None if g.slack is None or beyond <= slack else False
    kept = False if step > 1.0 + ROUNDING else kept
    return GuaranteeCheck(*names, g, mean / bound, horizon, kept, step=step)


def _deterministic(
    g: Guarantee, names: tuple[str, str], times: Sequence[int], totals: Any, horizon: int
) -> GuaranteeCheck:
    # A bound for a player that is tuned to T holds before T too, since its total was smaller then. Bounds that nature
    # forces, or without tuning, hold at each time by themselves.
    bounds = np.array([_bound(g, names[0], t if g.anytime or not g.upper else horizon) for t in times])
    ratios = totals / bounds[:, None]
    worst = ratios.max(axis=1) if g.upper else -ratios.min(axis=1)
    i = int(np.argmax(worst))
    ratio = float(abs(worst[i]))
    return GuaranteeCheck(
        *names, g, ratio, times[i], ratio <= 1 + ROUNDING if g.upper else ratio >= 1 - ROUNDING
    )


def _rate(
    g: Guarantee, forecaster: Forecaster, nature: Nature, size: _Size, panel: Panel | None, mean: float
) -> GuaranteeCheck:
    """The check of a rate; `mean` is that of the totals at the horizon, and more games tell their growth."""
    growth, kept = None, None
    times = [size.horizon // SHORTER, size.horizon]
    if times[0] >= SHORTER:
        totals = [
            _play(forecaster, nature, _Size(t, size.runs * many, size.seed), panel, [t])[1][g.measure][-1]
            for t, many in zip(times, (MORE * SHORTER, MORE), strict=True)
        ]
        estimate, low, high = outgrowth(times, totals, g.bound, TREND_RATE)
        if not math.isnan(estimate):
            growth = estimate, low, high
            kept = True if estimate <= BEND else None if low <= BEND else False
    names = strategy_label(forecaster), strategy_label(nature)
    return GuaranteeCheck(*names, g, mean / _bound(g, names[0], size.horizon), size.horizon, kept, growth)


def _guarantees(strategy: Any) -> tuple[Guarantee, ...]:
    """The guarantees that a strategy states; `InvalidParameter` where a plug-in states something else."""
    who = strategy_label(strategy)
    try:
        stated = tuple(strategy.guarantees)
    except Exception as error:
        raise InvalidParameter(f"{who} cannot say what it guarantees: {failure(error)}") from error
    for g in stated:
        if not isinstance(g, Guarantee):
            raise InvalidParameter(f"{who} states {in_one_line(g)}; expected a Guarantee")
    return stated


def _bound(g: Guarantee, strategy: str, horizon: int) -> float:
    """The value of a bound; `InvalidParameter` where it has no good one."""
    try:
        value = float(g.bound(horizon))
    except Exception as error:
        raise InvalidParameter(f"{strategy}: {g.short} at T = {horizon}: {failure(error)}") from error
    if math.isnan(value) or (g.upper and value <= 0.0):
        raise InvalidParameter(f"{strategy}: {g.short} is {value} at T = {horizon}; expected a number > 0")
    return value


def _play(
    forecaster: Forecaster, nature: Nature, size: _Size, panel: Panel | None = None, times: list[int] | None = None,
    proved: Sequence[Guarantee] = (),
) -> tuple[list[int], dict[str, Any], list[float]]:  # fmt: skip
    """Times; totals of every column, (times, runs); and of each guarantee the `step` of its check."""
    game = Game(forecaster, nature, horizon=size.horizon, runs=range(size.runs), seed=size.seed)
    rows: dict[str, list[Any]] = {}
    before: list[Any] = [math.nan] * len(proved)
    steps = [math.nan] * len(proved)
    times, parts = times or checkpoints(size.horizon), (nature.streams, nature.group_names)
    for t in times:
        game.advance(t)
        gammas = game.gammas()
        columns = dict(game.certificates())
        if panel is not None:
            read = panel.read_parts(partial(_levels, game), *parts, f"after round {t}", game.runs)
            columns |= {c.name: read[:, j] for j, c in enumerate(panel.columns_of(*parts))}
        for name, column in columns.items():
            rows.setdefault(name, []).append(column)
        for i, g in enumerate(proved):
            if g.potential is not None and g.upper:
                steps[i] = float(np.fmax(steps[i], _next_step(g.potential, game, gammas)))
            elif g.potential is not None:
                now = np.array([g.potential.of(gamma, game.horizon) for gamma in gammas])
                steps[i], before[i] = float(np.fmax(steps[i], (before[i] / now).max())), now
    return times, {name: np.array(values, float) for name, values in rows.items()}, steps


def _levels(game: Game, part: int | None) -> Iterator[tuple[range, LevelSets, None]]:
    """The places of some runs and their level sets, of the rounds of a stream or group, or (None) of all."""
    for first, sets in game.levels_of(part):
        yield range(first, first + len(sets)), sets, None


def _panel(guarantees: Sequence[Guarantee], classes: bool) -> Panel | None:
    """The measures and tasks that the guarantees speak of; certificates come from the player."""
    measures: dict[str, Any] = {}
    tasks: dict[str, None] = {}
    for column in (g.column for g in guarantees):
        if column.of_task:
            tasks[column.task] = None
        elif column.kind != "certificate":
            measures[replace(column, stream="").name] = {"name": column.measure, **dict(column.options)}
    return Panel.of(measures.values(), list(tasks), classes=classes) if measures or tasks else None


def _next_step(potential: Potential, game: Game, gammas: Sequence[JointDistribution]) -> float:
    """The growth in the round that comes, over what the proof of a bound from above allows."""
    if game.asked == game.horizon:
        return math.nan
    laws = zip(game.laws()[:LOOKED_AT], gammas, strict=False)
    return max(step(potential, gamma, list(law), list(law.values()), game.horizon) for law, gamma in laws)


def step(potential: Potential, gamma: JointDistribution, values: Any, weights: Any, horizon: int) -> float:
    """Growth of a potential's mean over a law, for the worse outcome, relative to the growth that its proof allows."""
    assert potential.growth is not None  # of a bound from above
    before = potential.of(gamma, horizon)
    played = [(float(v), float(w)) for v, w in zip(values, weights, strict=True) if w > 0.0]
    allowed = sum(w * potential.growth(gamma, v, horizon) for v, w in played)
    # Rounds that may follow: forecasts, the share that each has of the round, and how likely the round is.
    rounds: list[Any] = [(v, 1.0, w) for v, w in played]
    if potential.linear:
        rounds = [(*zip(*played, strict=True), 1.0)]
    worst = -math.inf
    for y in (0.0, 1.0):
        growth = 0.0
        for v, share, chance in rounds:
            counts = np.append(gamma.counts, share)
            positives = np.append(gamma.positives, np.multiply(share, y))
            after = JointDistribution.from_counts(np.append(gamma.predictions, v), counts, positives)
            growth += chance * (potential.of(after, horizon) - before)
        # The rounding of two large numbers that are nearly equal is not growth.
        worst = max(worst, growth - ROUNDING * abs(before))
    return worst / allowed
