"""Rounds that are kept: order, times and context reach a measure that asks for them, and nobody else."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import onlinecal as oc
from onlinecal.core.errors import InvalidData, InvalidForecast, InvalidParameter
from onlinecal.core.transcript import of_rounds
from onlinecal.engine.game import Game
from onlinecal.forecasters import DefensiveForecasting, ForecastHedging
from onlinecal.natures import Bernoulli, Drift, Nature, Streams
from onlinecal.schedules import Geometric, Poisson, Schedule

T, RUNS = 120, 3


@dataclass(frozen=True)
class Groups(Nature):
    """Fair coins; each question belongs to some of four groups, which need not be the same in all runs."""

    reveals = frozenset({"groups", "weather"})

    def start(self, horizon, runs, stream):
        return _Groups(stream, runs)


class _Groups:
    def __init__(self, stream, runs):
        self.uniforms = stream.block(4 * T).reshape(T, 4, runs)

    def context(self, round):
        return {
            "groups": (self.uniforms[round.number - 1].T > 0.5).astype(np.int64),
            "weather": self.uniforms[round.number - 1, 0].copy(),
        }

    def probability(self, round):
        return 0.5


@of_rounds(needs=["groups"])
def multicalibration(rounds, power=1):
    """Largest over the groups of the total |bias| of their forecasts, level by level, as an average."""
    worst = 0.0
    for group in range(rounds.context["groups"].shape[1]):
        mine = rounds.context["groups"][:, group] == 1
        p, y = rounds.forecasts[mine], rounds.outcomes[mine]
        worst = max(worst, sum(abs((y[p == v] - v).sum()) ** power for v in np.unique(p)))
    return worst / rounds.weight


@of_rounds()
def late(rounds):
    """Mean time from question to outcome."""
    return float((rounds.known - rounds.asked).mean())


@pytest.mark.parametrize("forecaster", [ForecastHedging(), DefensiveForecasting()], ids=["grid", "real"])
def test_what_is_kept_is_what_was_told(forecaster, seed):
    game = Game(
        forecaster, Groups(), horizon=T, runs=range(RUNS), seed=seed, schedule=Schedule(delays=Geometric(5)),
        keeps=["groups"],
    )  # fmt: skip
    told, resolve = [], game.resolve

    def watched(open, time=None):
        resolve(open, time)
        told.append(open.round)

    game.resolve = watched
    game.advance(T)
    player = Groups().start(T, RUNS, game_stream(seed))
    for run in range(RUNS):
        kept = game.transcripts.of(run)
        assert kept.numbers.tolist() == [round.number for round in told]
        assert kept.asked.tolist() == [round.time for round in told]
        assert kept.known.tolist() == [round.resolved for round in told]
        assert kept.forecasts.tolist() == [round.forecast[run] for round in told]
        assert kept.outcomes.tolist() == [round.outcome[run] for round in told]
        for round, groups in zip(told, kept.context["groups"], strict=True):
            assert (groups == player.context(round)["groups"][run]).all()
        assert set(kept.context) == {"groups"}
        gamma = oc.JointDistribution.from_samples(kept.forecasts, kept.outcomes)
        assert (gamma.counts == game.gammas()[run].counts).all()
        with pytest.raises(ValueError, match="read-only"):
            kept.forecasts[0] = 1.0
    assert all(dict(round.context) == {} for round in told)


def game_stream(seed):
    from onlinecal.core.strategy import strategy_key
    from onlinecal.core.streams import Stream

    return Stream(seed, ("nature", strategy_key(Groups()), f"T={T}"), range(RUNS))


def test_keeping_rounds_changes_nothing(seed):
    schedule = Schedule(Poisson(2), Geometric(3))
    plain, kept, event = (
        Game(
            ForecastHedging(),
            Drift(),
            horizon=T,
            runs=range(RUNS),
            seed=seed,
            schedule=schedule,
            keeps=keeps,
            loop=loop,
        )
        for keeps, loop in ((None, "auto"), ((), "auto"), ((), "event"))
    )
    for game in (plain, kept, event):
        game.advance(T // 3)
        game.advance(T)
    assert plain.compiled
    assert kept.compiled
    assert all((a.counts == b.counts).all() for a, b in zip(plain.gammas(), kept.gammas(), strict=True))
    for run in range(RUNS):
        mine, other = kept.transcripts.of(run), event.transcripts.of(run)
        for name in ("forecasts", "outcomes", "numbers", "asked", "known"):
            assert getattr(mine, name).tobytes() == getattr(other, name).tobytes()


def test_a_measure_of_rounds_in_a_study(seed):
    study = oc.play(
        [ForecastHedging(), oc.forecasters.Constant(0.5)], Groups(), horizon=T, runs=RUNS, seed=seed,
        measures=["ece", multicalibration, {"name": multicalibration, "power": 2}, late], delays=[0, 4],
    )  # fmt: skip
    assert study.measures[:3] == ["ece", "multicalibration", "multicalibration(power=2)"]
    constant = [cell for cell in study.cells if cell.forecaster.startswith("constant")]
    for cell in constant:
        assert (cell.totals["multicalibration"] > 0).any()
        resolved = T - (cell.open[-1] if cell.open else 0)
        wait = 4.0 if cell.schedule[1] == "delay 4" else 0.0
        assert (cell.totals["late"][-1] == wait * resolved).all()


def test_measures_of_rounds_by_stream(seed):
    nature = Streams((Bernoulli(0.2), Drift()), labels=("rain", "snow"))
    study = oc.play(ForecastHedging(), nature, horizon=T, runs=RUNS, seed=seed, measures=["ece", count])
    assert study.measures == ["ece", "count", "ece @ rain", "count @ rain", "ece @ snow", "count @ snow"]
    last = {name: totals[-1] for name, totals in study.cells[0].totals.items()}
    assert (last["count @ rain"] == (T // 2) ** 2).all()
    assert (last["count"] == T**2).all()
    assert (last["ece"] <= last["ece @ rain"] + last["ece @ snow"] + 1e-9).all()
    assert study.columns["ece @ rain"].stream == "rain"
    assert {p.measure for p in study.cells[0].promises} == {"ece"}


@of_rounds()
def count(rounds):
    return rounds.weight


def test_what_nature_does_not_reveal_is_refused():
    with pytest.raises(InvalidParameter, match="groups is to be kept with the rounds; nature 'drift'"):
        oc.play(ForecastHedging(), Drift(), horizon=10, measures=[multicalibration])
    with pytest.raises(InvalidParameter, match=r"needs = \[3\]"):
        of_rounds(needs=[3])


@of_rounds()
def broken(rounds):
    return rounds.context["nothing"]


def test_a_measure_of_rounds_that_fails_is_named():
    with pytest.raises(
        InvalidData, match=r"measure .broken. failed: KeyError: .nothing..* after round 10 of"
    ):
        oc.play(ForecastHedging(), Drift(), horizon=10, runs=1, measures=[broken])


def test_a_list_of_forecasts_has_no_rounds():
    with pytest.raises(InvalidParameter, match="'late' is a measure of rounds"):
        oc.evaluate([0.5, 0.5], [0, 1], measures=["ece", late])


@dataclass(frozen=True)
class Changing(Nature):
    """Reveals numbers that are of another kind or shape from round 2 on."""

    first: object = None
    later: object = None
    reveals = frozenset({"x"})

    def start(self, horizon, runs, stream):
        return self

    def context(self, round):
        return {"x": self.first if round.number == 1 else self.later}

    def probability(self, round):
        return 0.5


@of_rounds(needs=["x"])
def mean_x(rounds):
    return float(rounds.context["x"].mean())


@pytest.mark.parametrize(
    ("first", "later"),
    [(np.zeros(2, np.int64), np.full(2, 0.5)), (np.zeros(2, bool), np.full(2, 3)), (np.zeros(2), np.full(2, True))],
    ids=["int, float", "bool, int", "float, bool"],
)  # fmt: skip
def test_context_is_kept_as_it_was_whatever_numbers_came_first(first, later):
    """In more rounds than there is room for at first."""
    game = Game(ForecastHedging(), Changing(first, later), horizon=200, runs=range(2), keeps=["x"])
    game.advance(200)
    kept = game.transcripts.of(1).context["x"]
    assert kept.tolist() == [first[1]] + [later[1]] * 199


def test_context_of_another_shape_is_refused_when_it_is_kept():
    nature = Changing(np.zeros((2, 1)), np.zeros((2, 3)))
    with pytest.raises(
        InvalidForecast,
        match=r"revealed x of shape \(2, 3\), before of shape \(2, 1\) in round 2; expected one",
    ):
        oc.play(ForecastHedging(), nature, horizon=10, runs=2, measures=[mean_x])
