"""Rounds that are kept: order, times and context reach a measure that asks for them, and no other."""

from __future__ import annotations

import numpy as np
import pytest

import onlinecal as oc
from onlinecal.core.errors import InvalidData, InvalidParameter
from onlinecal.core.strategy import strategy_key
from onlinecal.core.streams import Stream
from onlinecal.core.transcript import of_rounds
from onlinecal.engine.seats import Round
from onlinecal.forecasters import ForecastHedging
from onlinecal.natures import Bernoulli, Drift, Nature, Streams
from onlinecal.schedules import Geometric, Schedule
from tests.engine.games import played, same

T, RUNS = 120, 3
KINDS = [f"group {i}" for i in range(4)]


class Groups(Nature):
    """Fair coins; each question belongs to some of four groups, which need not be the same in all runs."""

    reveals = frozenset({*KINDS, "weather"})

    def start(self, horizon, stream):
        return _Groups(stream)


class _Groups:
    def __init__(self, stream):
        self.uniforms = stream.block(4 * T).reshape(T, 4)

    def context(self, round):
        uniforms = self.uniforms[round.number - 1]
        groups = {kind: int(u > 0.5) for kind, u in zip(KINDS, uniforms, strict=True)}
        return {"weather": uniforms[0], **groups}

    def probability(self):
        return 0.5


@of_rounds(needs=KINDS[:1])
def bias(rounds, power=1):
    """|bias| in the first group, to a power."""
    mine = rounds.context[KINDS[0]] == 1
    return abs((rounds.outcomes - rounds.forecasts)[mine].sum()) ** power / rounds.weight


@of_rounds()
def late(rounds):
    """Mean time from question to outcome."""
    return float((rounds.known - rounds.asked).mean())


@of_rounds()
def count(rounds):
    return rounds.weight


@of_rounds()
def broken(rounds):
    return rounds.context["nothing"]


def test_what_is_kept_is_what_was_told(seed):
    """And changes nothing; of which rounds it is, is beside plain Python in test_game.py."""
    options = {"runs": range(RUNS), "seed": seed, "schedule": Schedule(delays=Geometric(5))}
    game, plain = (played(ForecastHedging(), Groups(), T, keeps=keeps, **options) for keeps in (KINDS, None))
    assert same(game.gammas(), plain.gammas())
    for run in range(RUNS):
        stream = Stream(seed, ("nature", strategy_key(Groups()), f"T={T}"), range(run, run + 1))
        kept, player = game.transcripts.of(run), Groups().start(T, stream)
        said = [player.context(Round("", int(number), 0.0)) for number in kept.numbers]
        shown = {kind: values.tolist() for kind, values in kept.context.items()}
        assert shown == {kind: [each[kind] for each in said] for kind in KINDS}
        with pytest.raises(ValueError, match="read-only"):
            kept.forecasts[0] = 1.0


def test_a_measure_of_rounds_in_a_study(seed):
    study = oc.play(
        oc.forecasters.Constant(0.5), Groups(), horizon=T, runs=RUNS, seed=seed, delays=[0, 4],
        measures=["ece", bias, {"name": bias, "power": 2}, late],
    )  # fmt: skip
    assert study.measures[:3] == ["ece", "bias", "bias(power=2)"]
    for cell in study.cells:
        one, two = (cell.totals[name] for name in ("bias", "bias(power=2)"))
        assert np.allclose(one**2, two)
        assert one.any()
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


def play(measure):
    oc.play(ForecastHedging(), Drift(), horizon=10, runs=1, measures=[measure])


@pytest.mark.parametrize(
    ("make", "error", "said"),
    [
        (lambda: play(bias), InvalidParameter, "group 0 is to be kept with the rounds; nature 'drift'"),
        (lambda: play(broken), InvalidData, "measure .broken. failed: KeyError: .nothing..* after round 10 of"),
        (lambda: of_rounds(needs=[3]), InvalidParameter, r"needs = \[3\]"),
        (lambda: oc.evaluate([0.5, 0.5], [0, 1], measures=[late]), InvalidParameter, "'late' is a measure of rounds"),
    ],
)  # fmt: skip
def test_what_cannot_be_kept_or_read_is_refused(make, error, said):
    with pytest.raises(error, match=said):
        make()
