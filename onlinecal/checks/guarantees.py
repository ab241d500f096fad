"""The guarantee report: every promise of every strategy, measured where it applies."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from onlinecal.checks.conformance import Finding, conformance
from onlinecal.checks.facts import playable
from onlinecal.checks.proofs import ROUNDING, Proof
from onlinecal.checks.worlds import bounds_in_world
from onlinecal.core.errors import LIST, InvalidParameter, OnlinecalError, UnknownName, failure, in_one_line
from onlinecal.core.guarantee import Guarantee, OnGrid
from onlinecal.core.modules import locate
from onlinecal.core.progress import Progress
from onlinecal.core.strategy import required, strategy_label
from onlinecal.engine.game import Game
from onlinecal.engine.horizon import check_horizon, checkpoints
from onlinecal.forecasters import FORECASTERS, Forecaster
from onlinecal.growth.outgrowth import outgrowth
from onlinecal.naming import STRATEGIES, foreign, kind_of, named
from onlinecal.natures import NATURES, Nature
from onlinecal.rounds.protocol import check_specification, start
from onlinecal.study.panel import Panel
from onlinecal.worlds.base import World

#: false-failure rate of the check of one expected bound
RATE = 1e-9
#: false-failure rate of the check of one rate
TREND_RATE = 1e-6
#: A rate speaks of T → ∞. Terms of lower order bend a total at finite T, so a ratio that grows like T to this power
#: is not held against it.
BEND = 0.1
#: from how many times shorter games the growth of a ratio is measured, and how many times the runs it takes: noise is
#: what hides a growth
SHORTER, MORE = 16, 4


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
    """What `onlinecal check` found."""

    guarantees: tuple[GuaranteeCheck, ...]
    findings: tuple[tuple[str, Finding], ...]
    remarks: tuple[str, ...] = ()

    @property
    def good(self) -> bool:
        """Whether nothing failed."""
        return all(v.holds is not False for v in self.guarantees) and not any(
            f.fault for _, f in self.findings
        )

    def rows(self) -> dict[str, list[dict[str, Any]]]:
        """For JSON: the guarantees and the conformance checks."""
        return {
            "guarantees": [
                {
                    "strategy": v.strategy,
                    "guarantee": v.guarantee.short,
                    "kind": v.guarantee.kind,
                    "opponent": v.opponent,
                    "ratio": v.ratio,
                    "round": v.at,
                    "holds": v.holds,
                    "trend": None if v.trend is None else v.trend[0],
                    "trend_above": None if v.trend is None else v.trend[1],
                    "trend_below": None if v.trend is None else v.trend[2],
                    "step": None if math.isnan(v.step) else v.step,
                }
                for v in self.guarantees
            ],
            "conformance": [
                {"strategy": name, "check": f.check, "fault": f.fault} for name, f in self.findings
            ],
        }


def report(
    names: Sequence[str], *, horizon: int, runs: int, seed: int, progress: bool | None = None
) -> Report:
    """Checks the named strategies, or all that can be played with their default parameters."""
    check_horizon(horizon)
    forecasters, natures = _playable(FORECASTERS), _playable(NATURES)
    findings: list[tuple[str, Finding]] = []
    if names:
        chosen = [_named(name) for name in names]
        mine = (
            [s for s in chosen if isinstance(s, Forecaster)],
            [s for s in chosen if isinstance(s, Nature) and not isinstance(s, World)],
        )
        pairs = [(f, n) for f in mine[0] for n in [*natures, *mine[1]]]
        pairs += [(f, n) for n in mine[1] for f in forecasters]
    else:
        chosen, pairs = [], [(f, n) for f in forecasters for n in natures]
    with Progress(len(pairs) * horizon * runs, shown=progress) as bar:
        for name, strategy in zip(names, chosen, strict=True):
            bar.describe(f"conformance of {name}")
            findings += [(name, finding) for finding in conformance(strategy, seed, name=name)]
            if isinstance(strategy, World) and not any(f.fault for who, f in findings if who == name):
                findings.append((name, bounds_in_world(forecasters, strategy, horizon, runs, seed)))
        checked: list[GuaranteeCheck] = []
        for forecaster, nature in pairs:
            bar.describe(f"{strategy_label(forecaster)} against {strategy_label(nature)}")
            try:
                checked += check(
                    [forecaster], [nature], horizon=horizon, runs=runs, seed=seed, of=chosen or None
                )
            except OnlinecalError as error:
                whose = [n for n, s in zip(names, chosen, strict=True) if s is forecaster or s is nature]
                if not whose:
                    raise
                # Told once: who breaks a rule may do so in every game.
                if not {name for name, finding in findings if finding.fault}.intersection(whose):
                    findings += [(name, Finding("plays to the end", str(error))) for name in whose]
            bar.advance(horizon * runs)
        for name, strategy in zip(names, chosen, strict=True):
            if not isinstance(strategy, World) and strategy_label(strategy) not in {
                who for v in checked for who in (v.strategy, v.opponent)
            }:
                findings.append((name, _plays_on(strategy, pairs, horizon, seed)))
    remarks = [
        _remark(name, strategy, checked)
        for name, strategy in zip(names, chosen, strict=True)
        if not isinstance(strategy, World)
    ]
    return Report(tuple(checked), tuple(findings), tuple(filter(None, remarks)))


def _plays_on(strategy: Any, pairs: Sequence[tuple[Forecaster, Nature]], horizon: int, seed: int) -> Finding:
    """Whether one of which no game was played, since no guarantee applies, comes to the end of one."""
    fault = "nobody can be played against it"
    for forecaster, nature in pairs:
        if strategy in (forecaster, nature) and forecaster.needs <= nature.reveals:
            try:
                _play(forecaster, nature, playable(horizon, forecaster, nature), 1, seed, None)
                fault = ""
            except OnlinecalError as error:
                fault = str(error)
            break
    return Finding("plays to the end", fault)


def _remark(name: str, strategy: Any, checked: Sequence[GuaranteeCheck]) -> str:
    """What is to be said of a strategy of which no guarantee was measured; "" of another."""
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


def _playable(known: Mapping[str, type]) -> list[Any]:
    """Those that need no parameters."""
    return [cls() for cls in known.values() if not required(cls)]


def _named(name: str) -> Any:
    if name in STRATEGIES["nature"]:
        return named("nature", name)
    if name in FORECASTERS:
        return named("forecaster", name)
    if not foreign(name):
        raise UnknownName.of(
            "strategy", name, [name for known in STRATEGIES.values() for name in known], LIST
        )
    return named(kind_of(locate("strategy", name)) or "forecaster", name)


def check(
    forecasters: Iterable[Forecaster],
    natures: Iterable[Nature],
    *,
    horizon: int,
    runs: int,
    seed: int,
    of: Sequence[Any] | None = None,
) -> Iterator[GuaranteeCheck]:
    """Plays every pair to which a guarantee applies."""
    whom = list(natures)
    for forecaster in forecasters:
        for nature in whom:
            check_specification("forecaster", forecaster)
            check_specification("nature", nature)
            if forecaster.needs <= nature.reveals:
                size = playable(horizon, forecaster, nature), runs, seed
                yield from _pair(forecaster, nature, *size, [forecaster, nature] if of is None else of)


def _pair(
    forecaster: Forecaster, nature: Nature, horizon: int, runs: int, seed: int, of: Sequence[Any]
) -> Iterator[GuaranteeCheck]:
    stated = [_guarantees(who) if any(who is each for each in of) else () for who in (forecaster, nature)]
    mine = [g for g in stated[0] if g.binds(forecaster, nature)]
    theirs = [g for g in stated[1] if _forces(g, forecaster, nature, horizon)]
    if not mine and not theirs:
        return
    names = strategy_label(forecaster), strategy_label(nature)
    panel = _panel(mine + theirs)
    times, totals, steps = _play(forecaster, nature, horizon, runs, seed, panel, proved=mine + theirs)
    for g, step in zip(mine, steps, strict=False):
        if g.kind == "deterministic":
            yield _deterministic(g, *names, times, totals[g.measure], horizon)
        elif g.kind == "expected":
            yield _expected(g, names, totals[g.measure][-1], horizon, step)
        else:
            yield _rate(g, forecaster, nature, horizon, runs, seed, panel, totals[g.measure][-1].mean())
    for g, step in zip(theirs, steps[len(mine) :], strict=True):
        if g.kind == "expected":
            yield _expected(g, (names[1], names[0]), totals[g.measure][-1], horizon, step)
        else:
            yield _deterministic(g, names[1], names[0], times, totals[g.measure], horizon)


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


def _guarantees(strategy: Any) -> tuple[Guarantee, ...]:
    """What a strategy states, which may be anything in a plug-in; `InvalidParameter` where it is none."""
    try:
        stated = tuple(strategy.guarantees)
    except Exception as error:
        raise InvalidParameter(
            f"{strategy_label(strategy)} cannot say what it guarantees: {failure(error)}"
        ) from error
    for g in stated:
        if not isinstance(g, Guarantee):
            raise InvalidParameter(
                f"{strategy_label(strategy)} states {in_one_line(g)}; expected a Guarantee"
            )
    return stated


def _bound(g: Guarantee, strategy: str, horizon: int) -> float:
    """The value of a bound; `InvalidParameter` where it is none."""
    try:
        value = float(g.bound(horizon))
    except Exception as error:
        raise InvalidParameter(
            f"{strategy}: {g.short} has no value at T = {horizon}: {failure(error)}"
        ) from error
    if math.isnan(value) or (g.upper and value <= 0.0):
        raise InvalidParameter(
            f"{strategy}: {g.short} is {value} at T = {horizon}; expected a number above 0"
        )
    return value


def _rate(
    g: Guarantee,
    forecaster: Forecaster,
    nature: Nature,
    horizon: int,
    runs: int,
    seed: int,
    panel: Panel | None,
    mean: float,
) -> GuaranteeCheck:
    """The check of a rate: `mean` is that of the totals at the horizon, and more games tell how it came to grow."""
    growth, kept = None, None
    times = [horizon // SHORTER, horizon]
    if times[0] >= SHORTER:
        totals = [
            _play(forecaster, nature, t, runs * many, seed, panel, [t])[1][g.measure][-1]
            for t, many in zip(times, (MORE * SHORTER, MORE), strict=True)
        ]
        estimate, low, high = outgrowth(times, totals, g.bound, TREND_RATE)
        if not math.isnan(estimate):
            growth = estimate, low, high
            kept = True if estimate <= BEND else None if low <= BEND else False
    names = strategy_label(forecaster), strategy_label(nature)
    return GuaranteeCheck(*names, g, mean / _bound(g, names[0], horizon), horizon, kept, growth)


def _deterministic(
    g: Guarantee, strategy: str, opponent: str, times: Sequence[int], totals: Any, horizon: int
) -> GuaranteeCheck:
    # A bound for a player that is tuned to T holds before T too, since what it bounds was smaller then; a bound on what
    # nature forces, and one that needs no tuning, hold at each time by themselves.
    bounds = np.array([_bound(g, strategy, t if g.anytime or not g.upper else horizon) for t in times])
    ratios = totals / bounds[:, None]
    worst = ratios.max(axis=1) if g.upper else -ratios.min(axis=1)
    i = int(np.argmax(worst))
    ratio = float(abs(worst[i]))
    return GuaranteeCheck(
        strategy, opponent, g, ratio, times[i], ratio <= 1 + ROUNDING if g.upper else ratio >= 1 - ROUNDING
    )


def _play(
    forecaster: Forecaster,
    nature: Nature,
    horizon: int,
    runs: int,
    seed: int,
    panel: Panel | None,
    times: list[int] | None = None,
    *,
    proved: Sequence[Guarantee] = (),
) -> tuple[list[int], dict[str, Any], list[float]]:
    """Times; totals of every column, (times, runs); and of each guarantee the `step` of its check."""
    game = Game(forecaster, nature, horizon=horizon, runs=range(runs), seed=seed)
    rows: dict[str, list[Any]] = {}
    proofs = [Proof(g) for g in proved]
    times = times or checkpoints(horizon)
    for t in times:
        game.advance(t)
        gammas = game.gammas()
        if panel is not None:
            columns = np.array([panel.read(gamma) for gamma in gammas]).T
            for name, column in zip(panel.names, columns, strict=True):
                rows.setdefault(name, []).append(column)
        for name, column in game.certificates().items():
            rows.setdefault(name, []).append(column)
        for proof in proofs:
            proof.look(game, gammas)
    return (
        times,
        {name: np.array(values, dtype=float) for name, values in rows.items()},
        [p.step for p in proofs],
    )


def _panel(guarantees: Sequence[Guarantee]) -> Panel | None:
    """The measures and tasks that the guarantees speak of; certificates come from the player."""
    measures: dict[str, Any] = {}
    tasks: dict[str, None] = {}
    for column in (g.column for g in guarantees):
        if column.of_task:
            tasks[column.task] = None
        elif column.kind != "certificate":
            measures[column.name] = {"name": column.measure, **dict(column.options)}
    return Panel.of(measures.values(), list(tasks)) if measures or tasks else None
