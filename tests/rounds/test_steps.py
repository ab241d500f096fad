"""Steps are called by their addresses, without a look at what they get. What does not fit is refused before. What
they raise, or state without sense, stops the game in its round.
"""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onlinecal.core.errors import InvalidForecast, InvalidParameter
from onlinecal.forecasters import Constant, Delayed, Doubling, ExpertMixture, Forecaster, Rounded, Separate
from onlinecal.forecasters.baselines import nothing
from onlinecal.natures import Bernoulli, Drift, Mixture, Nature, Sight, Streams, Switch, UniformTruth
from onlinecal.rounds.players import CompiledForecaster, CompiledNature
from onlinecal.rounds.steps import Memory
from tests import careless_steps as steps
from tests.engine.games import game_of


def forecaster(law=steps.fair, learn=nothing, declares=(), memory=None, **options):
    @dataclass(frozen=True)
    class Made(Forecaster):
        needs = frozenset(declares)

        def start(self, horizon, stream):
            return CompiledForecaster(law, learn, Memory(**(memory or {})), **{"size": 1} | options)

    return Made()


def nature(move=steps.coin, sees=Sight.NOTHING, declares=(), memory=None, **options):
    class Made(Nature):
        sight: Any = sees
        reveals = frozenset(declares)

        def start(self, horizon, stream):
            return CompiledNature(move, Memory(**(memory or {})), **{"sight": sees} | options)

    return Made()


def stating(value=0.5, weight=1.0, size=1, grid=False):
    """From round 3 on this."""
    return forecaster(
        steps.state_on_grid if grid else steps.state, memory={"floats": [value, weight, size]}, size=2,
        grid=np.array([0.0, 0.5, 1.0]) if grid else None,
    )  # fmt: skip


class _Needs(Constant):
    """A constant that looks at the truth, so that it is revealed."""

    needs = frozenset({"truth"})


NEEDS = {"declares": ["truth"], "needs": ["truth"], "memory": {"context": 1}}
REVEALS = {"declares": ["truth"], "reveals": ["truth"], "memory": {"context": 1}}
REFUSING = forecaster(learn=steps.refuses_at, memory={"ints": [3]})
#: players of which one makes a mistake in round 3, and what is said of it
STOPS = [
    ((forecaster(steps.law_raises), Bernoulli()), "forecaster 'made' raised an error in its step law_raises"),
    ((forecaster(learn=steps.learn_raises), Bernoulli()), "forecaster 'made' .* step learn_raises"),
    ((Constant(), nature(steps.move_raises)), "nature 'made' .* step move_raises"),
    ((Constant(), nature(sees=Sight.HISTORY, hear=steps.hear_raises)), "nature 'made' .* step hear_raises"),
    ((forecaster(**NEEDS), nature(**REVEALS, reveal=steps.reveal_raises)), "nature 'made' .* step reveal_raises"),
    *(
        ((whole(REFUSING), Bernoulli()), f"forecaster '{name}' refused a round")
        for name, whole in (
            ("made", lambda x: x), ("doubling", Doubling), ("expert_mixture", lambda x: ExpertMixture((x,))),
        )
    ),
    *(
        ((Constant(), whole(nature(sees=Sight.HISTORY, hear=steps.deaf))), f"nature '{name}' refused a round")
        for name, whole in (("made", lambda x: x), ("mixture", lambda x: Mixture((x,))))
    ),
]  # fmt: skip


@pytest.mark.parametrize(("pair", "match"), STOPS)
def test_a_step_that_raises_or_refuses_is_stopped_in_its_round_and_named(pair, match, capfd):
    game = game_of(*pair, runs=range(4, 6))
    for again in (lambda: game.advance(6), lambda: game.advance(6), game.ask):
        with pytest.raises(InvalidForecast, match=match + r".* in round 3, run 4"):
            again()
    assert capfd.readouterr() == ("", "")


WRONG = [
    {"value": np.nan}, {"value": 1.5}, {"value": -1e-300}, {"weight": np.nan}, {"weight": 0.999}, {"weight": -1.0},
    {"size": 0}, {"size": 3}, {"size": -7}, {"value": 3, "grid": True}, {"value": -1, "grid": True},
    {"weight": 0.5, "value": 1, "grid": True},
]  # fmt: skip
WHOLES = [
    lambda x: x, Doubling, Delayed, lambda x: Rounded(x, 3), lambda x: ExpertMixture((Constant(), x)),
    lambda x: Separate(Delayed(x)),
]  # fmt: skip


@pytest.mark.parametrize(("whole", "threads"), [(whole, (4, 1)[i % 2]) for i, whole in enumerate(WHOLES)])
def test_nonsense_of_steps_is_named_with_the_first_run_that_stops(whole, threads, monkeypatch):
    monkeypatch.setattr("onlinecal.engine.loop.LEAST", 1)
    for wrong in WRONG:
        made = whole(stating(**wrong))
        other = Streams((Drift(), Drift())) if made.needs else Drift()
        game = game_of(made, other, 20, runs=range(5, 13), threads=threads)
        if whole is WHOLES[0]:  # the first run is as it should be
            game.forecaster.memory.floats[0] = 1.0 if "grid" in wrong else 0.5, 1.0, 1.0
        match = rf"forecaster .* stated .* in round \d+, run {5 + (whole is WHOLES[0])}"
        with pytest.raises(InvalidForecast, match=match):
            game.advance(20)


@pytest.mark.parametrize("q", [1.0000001, np.nan, -1e-300])
def test_a_q_that_is_none_is_named(q):
    wild = nature(steps.asks, memory={"floats": [q]})
    parts = Mixture((Drift(), wild)), Switch(nature(), wild, 4), Streams((wild, Drift()))
    for made, number in zip((wild, *parts), (6, 6, 10, 11), strict=True):
        game = game_of(Constant(), made, 20, runs=range(5, 8))
        with pytest.raises(InvalidForecast, match=rf"nature .* stated q = {q} in round {number}, run 5"):
            game.advance(20)


@pytest.mark.parametrize(
    ("rounds", "run", "number"),
    [((9, 2, 3, 1), 5, 9), ((0, 8, 2, 1), 6, 8), ((0, 0, 7, 4), 7, 7), ((0, 0, 0, 4), 8, 4)],
)
def test_of_runs_that_are_played_in_turn_the_first_that_stops_is_named(rounds, run, number):
    """Also where one behind it stops in an earlier round."""
    game = game_of(forecaster(learn=steps.refuses_at, memory={"ints": 1}), Bernoulli(), 20, runs=range(5, 9))
    game.forecaster.memory.ints[:, 0] = rounds
    with pytest.raises(InvalidForecast, match=f"in round {number}, run {run}"):
        game.advance(20)


@pytest.mark.parametrize(
    ("pair", "match"),
    [
        # It would be shown what it does not declare.
        ((Constant(), nature(steps.asks, Sight.HISTORY, sight=Sight.DRAW)), "sight DRAW, but .* declares HISTORY"),
        ((Constant(), nature(hear=steps.deaf)), "with a step `hear`; expected HISTORY"),
        ((Constant(), nature(reveal=steps.reveal_raises)), "expected kinds of context and a step `reveal`, or neither"),
        ((Constant(), nature(reveals=["truth"])), "expected kinds of context and a step `reveal`, or neither"),
        ((Constant(), nature(grows_with="forecasts")), "grows_with = 'forecasts'; expected 'rounds' or 'levels'"),
        ((_Needs(), nature(**REVEALS | {"memory": {}}, reveal=steps.reveal_raises)), "expected room for 1: truth"),
        ((_Needs(), nature(**REVEALS | {"reveals": ["base"]}, reveal=steps.reveal_raises)), "does not reveal truth"),
        ((forecaster(needs=["truth"], memory={"context": 1}), UniformTruth()), "truth, which .* does not declare"),
        ((forecaster(declares=["truth"], needs=["truth"]), UniformTruth()), "expected room for 1: truth"),
        ((forecaster(nothing), Bernoulli()), "expected a function marked as the step `law`"),
        ((forecaster(learn=steps.fair), Bernoulli()), "expected a function marked as the step `learn`"),
        ((forecaster(learn=lambda *_: 0), Bernoulli()), "expected a function marked as the step `learn`"),
        ((Constant(), nature(steps.deaf)), "expected a function marked as the step `move`"),
        ((Constant(), nature(sees=Sight.HISTORY, hear=steps.coin)), "expected a function marked as the step `hear`"),
        ((_Needs(), nature(**REVEALS, reveal=steps.coin)), "expected a function marked as the step `reveal`"),
        ((forecaster(size=0), Bernoulli()), "size = 0; expected"),
        ((forecaster(certificates=lambda memory: {}), Bernoulli()), "its player proves totals; the specification says"),
    ],
)  # fmt: skip
def test_what_does_not_fit_its_specification_or_its_steps_is_refused(pair, match):
    with pytest.raises(InvalidParameter, match=match):
        game_of(*pair)


def test_a_step_with_a_function_within_is_refused_in_one_line():
    with pytest.raises(
        InvalidParameter, match=r"^within \(.*careless_steps.py:\d+\): a function .*expected a loop.*$"
    ):
        game_of(forecaster(steps.within), Bernoulli()).advance(1)


def test_memory_of_a_number_of_numpy_has_so_many_entries():
    """As an array of one entry it would be written beyond its end."""
    memory = Memory(ints=np.int64(6), floats=np.int32(7), scratch=np.int64(5))
    memory.spread(range(3))
    assert (memory.ints.shape, memory.floats.shape, memory.room.shape) == ((3, 6), (3, 7), (5,))
    memory = Memory(ints=[4, 5], floats=[0.5])
    memory.spread(range(2))
    assert memory.ints.tolist() == [[4, 5], [4, 5]]


def test_an_index_out_of_range_is_found_with_checks_compiled_in(tmp_path):
    code = (
        "from tests.rounds.test_steps import *; "
        "game_of(forecaster(steps.beyond, memory={'scratch': 5}), Bernoulli()).advance(6)"
    )
    root = str(Path(__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=root, capture_output=True, text=True,
        env=os.environ | {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": root},
    )  # fmt: skip
    assert "forecaster 'made' raised an error in its step beyond" in done.stderr
    assert "in round 3, run 0" in done.stderr
