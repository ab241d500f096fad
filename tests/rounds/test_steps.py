"""Steps are called by their addresses, without a look at what they get: what does not fit is refused before, and an
error that one raises stops the game in its round.
"""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from onlinecal.core.errors import InvalidForecast, InvalidParameter
from onlinecal.engine.game import Game
from onlinecal.forecasters import Constant, Forecaster
from onlinecal.rounds.players import CompiledForecaster
from onlinecal.forecasters._steps import nothing
from onlinecal.natures import Bernoulli, Nature, Sight, UniformTruth
from onlinecal.rounds.players import CompiledNature
from onlinecal.rounds.steps import Memory
from tests import careless_steps as steps


def forecaster(law=steps.fair, learn=nothing, declares=(), runs=None, memory=None, **options):
    @dataclass(frozen=True)
    class Made(Forecaster):
        needs = frozenset(declares)

        def start(self, horizon, its_runs, stream):
            room = Memory(runs or its_runs, **(memory or {}))
            return CompiledForecaster(law, learn, room, **{"size": 1} | options)

    return Made()


def nature(move=steps.coin, sees=Sight.NOTHING, declares=(), runs=None, memory=None, **options):
    class Made(Nature):
        sight: Any = sees
        reveals = frozenset(declares)

        def start(self, horizon, its_runs, stream):
            room = Memory(runs or its_runs, **(memory or {}))
            return CompiledNature(move, room, **{"sight": sees} | options)

    return Made()


class _Needs(Constant):
    """A constant that looks at the truth, so that it is revealed."""

    needs = frozenset({"truth"})


NEEDS = {"declares": ["truth"], "needs": ["truth"], "memory": {"context": 1}}
REVEALS = {"declares": ["truth"], "reveals": ["truth"], "memory": {"context": 1}}


@pytest.mark.parametrize(
    ("pair", "match"),
    [
        ((forecaster(steps.law_raises), Bernoulli()), "forecaster 'made' raised an error in its step law_raises"),
        ((forecaster(learn=steps.learn_raises), Bernoulli()), "forecaster 'made' .* step learn_raises"),
        ((Constant(), nature(steps.move_raises)), "nature 'made' .* step move_raises"),
        ((Constant(), nature(sees=Sight.HISTORY, hear=steps.hear_raises)), "nature 'made' .* step hear_raises"),
        ((forecaster(**NEEDS), nature(**REVEALS, reveal=steps.reveal_raises)), "nature 'made' .* step reveal_raises"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("loop", ["event", "compiled"])
def test_a_step_that_raises_an_error_is_stopped_in_its_round_and_named(pair, match, loop, capfd):
    game = Game(*pair, horizon=6, runs=range(4, 6), loop=loop)
    with pytest.raises(InvalidForecast, match=match + r" \(.*careless_steps.py:\d+\) in round 3, run 4"):
        game.advance(6)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("loop", ["event", "compiled"])
@pytest.mark.parametrize(
    ("pair", "match"),
    [
        ((forecaster(runs=3), Bernoulli()), r"memory is for 3 run\(s\); expected 2"),
        ((forecaster(runs=1), Bernoulli()), r"memory is for 1 run\(s\); expected 2"),
        ((Constant(), nature(runs=1)), r"memory is for 1 run\(s\); expected 2"),
        ((Constant(), nature(runs=3)), r"memory is for 3 run\(s\); expected 2"),
        # In the compiled loop it would have been shown what it does not declare.
        ((Constant(), nature(steps.peek, Sight.HISTORY, sight=Sight.DRAW)), "sight DRAW, but .* declares HISTORY"),
        ((Constant(), nature(hear=steps.listen)), "with a step `hear`; expected HISTORY"),
        ((Constant(), nature(reveal=steps.reveal_raises)), "expected kinds of context and a step `reveal`, or neither"),
        ((Constant(), nature(reveals=["truth"])), "expected kinds of context and a step `reveal`, or neither"),
        ((_Needs(), nature(**REVEALS | {"memory": {}}, reveal=steps.reveal_raises)), "expected room for 1: truth"),
        ((_Needs(), nature(**REVEALS | {"reveals": ["base"]}, reveal=steps.reveal_raises)), "does not reveal truth"),
        ((forecaster(needs=["truth"], memory={"context": 1}), UniformTruth()), "truth, which .* does not declare"),
        ((forecaster(declares=["truth"], needs=["truth"]), UniformTruth()), "expected room for 1: truth"),
        ((forecaster(nothing), Bernoulli()), "expected a function marked as the step `law`"),
        ((forecaster(learn=steps.fair), Bernoulli()), "expected a function marked as the step `learn`"),
        ((forecaster(learn=lambda *_: 0), Bernoulli()), "expected a function marked as the step `learn`"),
        ((Constant(), nature(steps.listen)), "expected a function marked as the step `move`"),
        ((Constant(), nature(sees=Sight.HISTORY, hear=steps.coin)), "expected a function marked as the step `hear`"),
        ((_Needs(), nature(**REVEALS, reveal=steps.coin)), "expected a function marked as the step `reveal`"),
        ((forecaster(size=0), Bernoulli()), "size = 0; expected"),
    ],
)  # fmt: skip
def test_what_does_not_fit_its_specification_or_its_steps_is_refused(pair, match, loop):
    with pytest.raises(InvalidParameter, match=match):
        Game(*pair, horizon=6, runs=range(2), loop=loop)


def test_what_fits_plays():
    for loop in ("event", "compiled"):
        for pair in (
            (forecaster(), nature()),
            (forecaster(**NEEDS), UniformTruth()),
            (Constant(), nature(steps.peek, Sight.DRAW, hear=steps.listen)),
        ):
            game = Game(*pair, horizon=6, runs=range(2), loop=loop)
            game.advance(6)
            assert game.resolved == 6


@pytest.mark.slow
def test_an_index_out_of_range_is_found_with_checks_compiled_in(tmp_path):
    code = (
        "from tests.rounds.test_steps import *; "
        "Game(forecaster(steps.beyond, memory={'scratch': 5}), Bernoulli(), horizon=6, runs=range(2)).advance(6)"
    )
    root = str(Path(__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=root, capture_output=True, text=True,
        env=os.environ | {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": root},
    )  # fmt: skip
    assert "forecaster 'made' raised an error in its step beyond" in done.stderr
    assert "in round 3, run 0" in done.stderr
