"""The compiled loop plays what the event loop plays, byte for byte, and stops and names who states nonsense."""

import importlib
import os
import pickle
import re
import signal
import time
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from onlinecal import forecasters as f
from onlinecal import natures as n
from onlinecal.checks.conformance import conformance
from onlinecal.checks.facts import playable
from onlinecal.core.errors import InvalidForecast, InvalidParameter
from onlinecal.engine import kernels
from onlinecal.engine.game import BLOCK, Game
from onlinecal.rounds.players import CompiledForecaster, CompiledNature
from onlinecal.report.catalogue import entry
from onlinecal.rounds.steps import (
    Memory,
    floats,
    hear,
    ints,
    law,
    law_atoms,
    law_values,
    law_weights,
    learn,
    move,
)
from tests import examples


def in_python(strategy):
    """Whether it is one that has no steps: copies that are replaced."""
    return getattr(strategy, "slots", None) is not None


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("examples")


@pytest.fixture(scope="module")
def pairs(folder):
    """All pairs for which both loops exist."""
    return [
        (forecaster, nature)
        for forecaster in examples.forecasters(folder)
        for nature in examples.natures(folder)
        if forecaster.needs <= nature.reveals and not in_python(forecaster)
    ]


def came_to(game):
    """All that a game came to: Γ of each run, and what the forecaster certifies."""
    gammas = [
        b"".join(getattr(gamma, part).tobytes() for part in ("predictions", "counts", "positives"))
        for gamma in game.gammas()
    ]
    return gammas, {name: totals.tobytes() for name, totals in game.certificates().items()}


def played(pair, runs, until, loop, seed, horizon=None):
    game = Game(*pair, horizon=horizon or until, runs=runs, seed=seed, loop=loop)
    game.advance(until)
    return game


def test_who_is_made_of_steps(folder):
    """All but those named above."""
    coin, constant = n.Bernoulli(), f.Constant()
    for forecaster in examples.forecasters(folder):
        (nature, *_) = [m for m in [coin, *examples.natures(folder)] if forecaster.needs <= m.reveals]
        game = Game(forecaster, nature, horizon=100, runs=range(1))
        assert game.compiled is not in_python(forecaster), forecaster
    for nature in examples.natures(folder):
        game = Game(constant, nature, horizon=100, runs=range(1))
        assert game.compiled, nature


def test_the_loops_give_the_same_bytes(pairs, seed):
    assert len(pairs) > 250
    for pair in pairs:
        whole = came_to(played(pair, range(2), 90, "event", seed, horizon=100))
        assert came_to(played(pair, range(2), 90, "compiled", seed, horizon=100)) == whole, pair


def record(round):
    """All that a resolved round says."""
    law = round.law
    arrays = [law.mean, round.atom, round.forecast, round.outcome]
    # How wide a law's arrays are is nobody's concern.
    used = [[v[w > 0].tobytes(), w[w > 0].tobytes()] for v, w in zip(law.support, law.weights, strict=True)]
    context = {kind: values.tobytes() for kind, values in round.context.items()}
    return used, [array.tobytes() for array in arrays], round.number, round.time, round.resolved, context


def in_flight(pair, seed, horizon, flying, stop=False):
    """All records of a game with rounds that wait for others, and what it came to."""
    game = Game(*pair, horizon=horizon, runs=range(3), seed=seed, loop="event")
    waiting, records = [], []
    while game.resolved < horizon:
        if game.asked < horizon:
            waiting.append(game.ask(time=game.asked + 0.5))
        if len(waiting) > flying or game.asked == horizon:
            open = waiting.pop(7 * game.resolved % len(waiting))
            game.resolve(open, time=horizon + 1.0)
            records.append(record(open.round))
        if stop and game.asked % 20 == 0:
            game, waiting = pickle.loads(pickle.dumps((game, waiting)))
    return records, came_to(game)


TWO = f.ExpertMixture((f.ForecastHedging(), f.EmpiricalMean()))
NESTED = f.ExpertMixture(
    (f.Doubling(f.Rounded(f.PerturbedLeader(), 5, "random"), first=1), f.EmpiricalMean(), f.ForecastHedging())
)
TRUE = f.ExpertMixture((f.Tempered(2.0), f.ForecastHedging(), f.Rounded(f.Truthful(), 4)))


@pytest.mark.parametrize(
    ("spec", "nature"),
    [
        (TWO, n.Drift()),
        (f.Doubling(f.CDLMinimiser()), n.Greedy()),
        (f.Doubling(f.DefensiveForecasting(), first=3), n.Bernoulli()),
        (f.Rounded(f.CDLMinimiser(), 10, "random"), n.Contrarian()),
        (f.Rounded(f.PerturbedLeader(), 7, "down"), n.Bernoulli()),
        (NESTED, n.Bernoulli()),
        (f.Doubling(NESTED, first=1), n.Contrarian("draw")),
        (f.Rounded(NESTED, 3), n.Bernoulli()),
        (TRUE, n.UniformTruth()),
        (f.ExpertAggregation((f.AlmostOneStepAhead(), f.EmpiricalMean(), f.Constant(0.0))), n.Contrarian()),
    ],
    ids=repr,
)
def test_compositions_of_steps_are_those_of_players(spec, nature, seed, monkeypatch):
    """Of forecasters that are made of steps; all others are played by players that call theirs."""
    pair = spec, nature
    whole = came_to(played(pair, range(3), 150, "compiled", seed))
    assert came_to(played(pair, range(3), 150, "event", seed)) == whole
    waiting = in_flight(pair, seed, 70, 6)
    assert in_flight(pair, seed, 70, 6, stop=True) == waiting
    for module in ("composed", "aggregated"):
        monkeypatch.setattr(f"onlinecal.forecasters.{module}.of_steps", lambda players: False)
    assert not Game(*pair, horizon=5, runs=range(1)).compiled
    assert came_to(played(pair, range(3), 150, "event", seed)) == whole
    assert in_flight(pair, seed, 70, 6) == waiting


MIXED = n.Mixture((n.Greedy(), n.Bernoulli(0.3), n.RandomWalk(), n.Contrarian("draw")), (1, 2, 3, 1))


@pytest.mark.parametrize(
    ("forecaster", "nature"),
    [
        (f.CDLMinimiser(), MIXED),
        (f.PerturbedLeader(), n.Mixture((n.Markov(), n.Drift()))),
        (f.DefensiveForecasting(), n.Switch(n.Greedy(), MIXED, "T/3")),
        (f.UniformRandom(), n.Switch(n.Mixture((n.KinkApproach(), n.SparseBias())), n.Markov(), 60)),
        (TRUE, n.Switch(n.UniformTruth(), n.Switch(n.UniformTruth(), n.UniformTruth()))),
        (f.EmpiricalMean(), n.Switch(n.Drift(), n.Sidestepping(), 0)),
    ],
    ids=repr,
)
def test_compositions_of_natures_of_steps_are_those_of_players(forecaster, nature, seed, monkeypatch):
    pair = forecaster, nature
    whole = came_to(played(pair, range(3), 150, "compiled", seed))
    assert came_to(played(pair, range(3), 150, "event", seed)) == whole
    waiting = in_flight(pair, seed, 70, 6)
    assert in_flight(pair, seed, 70, 6, stop=True) == waiting
    monkeypatch.setattr("onlinecal.natures.composed.of_steps", lambda *given: False)
    assert not Game(*pair, horizon=5, runs=range(1)).compiled
    assert came_to(played(pair, range(3), 150, "event", seed)) == whole
    assert in_flight(pair, seed, 70, 6) == waiting


@pytest.mark.parametrize("loop", ["event", "compiled"])
def test_a_part_of_a_nature_that_states_nonsense_stops_the_whole(loop):
    for nature in (n.Mixture((n.Drift(), Asking(q=1.5))), n.Switch(Asking(), Asking(q=1.5), 0)):
        game = Game(f.Constant(), nature, horizon=20, runs=range(5, 8), loop=loop)
        assert type(game.nature) is CompiledNature
        with pytest.raises(InvalidForecast, match=r"nature .* stated q = 1\.5.* in round 6, run 5"):
            game.advance(20)
    game = Game(f.Constant(), n.Mixture((Asking(deaf=True),)), horizon=20, runs=range(5, 8), loop=loop)
    with pytest.raises((InvalidForecast, InvalidParameter), match="round 7"):
        game.advance(20)


@pytest.mark.parametrize("loop", ["event", "compiled"])
@pytest.mark.parametrize(
    ("made", "said"),
    [
        (f.Doubling, r"stated the forecasts (\[1\.5|\[nan)"),
        (lambda part: f.ExpertMixture((f.Constant(), part)), r"stated the forecasts (\[1\.5|\[nan)"),
        (lambda part: f.Rounded(part, 3), r"stated the forecasts \[nan"),
    ],
)
@pytest.mark.parametrize("part", [{"value": 1.5}, {"value": 7, "grid": True}, {"size": 0}])
def test_a_part_that_states_nonsense_stops_the_whole(made, said, part, loop):
    game = Game(made(Stating(**part)), n.Bernoulli(), horizon=20, runs=range(5, 8), loop=loop)
    assert type(game.forecaster) is CompiledForecaster
    said = "stated a law of 0 atoms" if "size" in part else said
    with pytest.raises(InvalidForecast, match=f"forecaster .* {said}.* in round 3, run 6"):
        game.advance(20)


def test_a_part_that_raises_or_refuses_stops_the_whole():
    for made in (f.Doubling, lambda part: f.ExpertMixture((part,))):
        game = Game(made(Stating(refuses=True)), n.Bernoulli(), horizon=20, runs=range(5, 8))
        with pytest.raises(InvalidForecast, match="refused a round"):
            game.advance(20)


@pytest.mark.slow
def test_the_loops_give_the_same_bytes_in_longer_games(pairs, seed, full):
    """Beyond a block of uniforms, and where states have grown."""
    for pair in pairs if full else pairs[seed % 7 :: 7]:
        until = playable(3 * BLOCK + 7, *pair)
        whole = came_to(played(pair, range(3), until, "event", seed))
        assert came_to(played(pair, range(3), until, "compiled", seed)) == whole, pair


def test_neither_batches_nor_pauses_nor_pickling_change_a_byte(pairs, seed):
    for pair in pairs[seed % 5 :: 5]:
        gammas, _ = came_to(played(pair, range(7), 120, "compiled", seed))
        alone = [came_to(played(pair, range(r, r + 1), 120, "compiled", seed))[0][0] for r in (0, 3, 6)]
        assert [gammas[r] for r in (0, 3, 6)] == alone, pair
        game = Game(*pair, horizon=120, runs=range(7), seed=seed)
        for until in (1, 2, 64, 100, 120):
            game.advance(until)
            game = pickle.loads(pickle.dumps(game))
        assert came_to(game)[0] == gammas, pair


def test_the_loop_is_compiled_once_for_all_histories():
    """Who waits for it waits once: with a grid and without, exact and moved, its arrays are of the same types."""
    for forecaster in (f.ForecastHedging(), f.EmpiricalMean(), f.DefensiveForecasting()):
        for history in ("exact", 64):
            game = Game(
                forecaster, n.Contrarian(), horizon=20, runs=range(3), history=history, loop="compiled"
            )
            game.advance(20)
    assert len(kernels.play_runs.signatures) == 1


def test_threads_change_no_byte(pairs, seed, monkeypatch):
    monkeypatch.setattr("onlinecal.engine.loop.LEAST", 50)
    for pair in pairs[seed % 5 :: 5]:
        whole = came_to(played(pair, range(5), 100, "compiled", seed))
        for threads in (2, 3, 8):
            game = Game(*pair, horizon=100, runs=range(5), seed=seed, threads=threads)
            game.advance(60)
            game.advance(100)
            assert came_to(game) == whole, pair


def test_with_threads_too_the_first_run_that_stops_is_named(monkeypatch):
    monkeypatch.setattr("onlinecal.engine.loop.LEAST", 1)
    said = set()
    for threads in (1, 2, 4):
        game = Game(Stating(value=np.nan), Asking(), horizon=20, runs=range(5, 13), threads=threads)
        with pytest.raises(InvalidForecast) as caught:
            game.advance(20)
        said.add(str(caught.value))
    (message,) = said
    assert "in round 3, run 6" in message


@learn
def _refuse_at(run, number, size, drawn, outcome):
    return -1 if number == ints(run)[0] else 0


@dataclass(frozen=True)
class Leaving(f.Forecaster):
    """Run r of the batch refuses round rounds[r]."""

    rounds: tuple[int, ...] = (0,)

    def start(self, horizon, runs, stream):
        memory = Memory(runs, ints=1, floats=[0.5, 1.0, 1.0])
        memory.ints[:, 0] = self.rounds
        return CompiledForecaster(_state, _refuse_at, memory, size=1)


@pytest.mark.parametrize(
    ("rounds", "run", "number"),
    [((9, 2, 3, 1), 5, 9), ((0, 8, 2, 1), 6, 8), ((0, 0, 7, 4), 7, 7), ((0, 0, 0, 4), 8, 4)],
)
def test_of_runs_that_are_played_in_turn_the_first_that_stops_is_named(rounds, run, number):
    """Also where one behind it stops in an earlier round."""
    game = Game(Leaving(rounds), n.Bernoulli(), horizon=20, runs=range(5, 9), loop="compiled")
    with pytest.raises(InvalidForecast, match=f"in round {number}, run {run}"):
        game.advance(20)


def test_a_forked_process_plays_with_threads_of_its_own(monkeypatch):
    monkeypatch.setattr("onlinecal.engine.loop.LEAST", 1)
    game = Game(f.Constant(), n.Bernoulli(), horizon=20, runs=range(4), threads=2)
    game.advance(10)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of processes with threads that fork, as here
        child = os.fork()
    if child == 0:
        game.advance(20)
        os._exit(0 if game.resolved == 20 else 1)
    for _ in range(200):
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            break
        time.sleep(0.1)
    else:
        os.kill(child, signal.SIGKILL)
    assert (done, status) == (child, 0)


def test_rounds_by_hand_and_by_the_compiled_loop_mix(seed):
    for pair in ((f.CDLMinimiser(), n.Greedy()), (f.DefensiveForecasting(), n.Drift())):
        whole = came_to(played(pair, range(3), 200, "event", seed))
        game = Game(*pair, horizon=200, runs=range(3), seed=seed)
        game.advance(50)
        for _ in range(30):
            game.resolve(game.ask())
        waiting = [game.ask() for _ in range(1)]
        game.resolve(waiting.pop())
        game.advance(200)
        assert game.compiled
        assert came_to(game) == whole


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("forecast_hedging", "compiled, beside others that are"),
        ("contrarian", "compiled, beside others that are"),
        ("rounded", "depends on its parameters"),
        ("tests.engine.test_loop:Plain", "event loop"),
    ],
)
def test_show_says_which_loop(name, said):
    assert entry(name)["loop"] == said


class Plain:
    def forecast(self):
        return 0.5

    def update(self, forecast, outcome):
        pass


def test_a_loop_can_be_forced_only_where_it_exists():
    with pytest.raises(InvalidParameter, match=r"'rounded' cannot be played by the compiled loop"):
        Game(f.Rounded(f.Scalar(Plain), 3), n.Bernoulli(), horizon=5, runs=range(1), loop="compiled")
    with pytest.raises(InvalidParameter, match="'auto', 'event' or 'compiled'"):
        Game(f.Constant(), n.Bernoulli(), horizon=5, runs=range(1), loop="fast")
    assert not Game(f.Constant(), n.Bernoulli(), horizon=5, runs=range(1), loop="event").compiled


def test_a_player_with_a_method_of_its_own_is_not_passed_by():
    """Who wraps a method of a player that is made of steps is heard in every round."""

    @dataclass(frozen=True)
    class Counted(f.Constant):
        def start(self, horizon, runs, stream):
            player = super().start(horizon, runs, stream)
            told = player.update

            def update(round):
                count.append(round.number)
                told(round)

            player.update = update
            return player

    count = []
    game = Game(Counted(), n.Bernoulli(), horizon=5, runs=range(1))
    game.advance(5)
    assert not game.compiled
    assert count == [1, 2, 3, 4, 5]


def test_the_example_of_the_docs(tmp_path, monkeypatch, seed):
    page = (Path(__file__).parents[2] / "docs" / "engine.md").read_text()
    (code,) = re.findall(r"```python\n(from dataclasses.*?)```", page, re.DOTALL)
    (tmp_path / "smoothing_example.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    smoothing = importlib.import_module("smoothing_example").Smoothing(0.25)
    loops = [
        came_to(played((smoothing, n.Drift()), range(3), 50, loop, seed)) for loop in ("event", "compiled")
    ]
    assert loops[0] == loops[1]
    game = Game(smoothing, n.Bernoulli(1.0), horizon=3, runs=range(1))
    game.advance(3)
    assert game.gammas()[0].predictions.tolist() == [0.5, 0.625, 0.71875]
    assert [finding for finding in conformance(smoothing, seed) if finding.fault] == []


def test_memory_of_a_number_of_numpy_has_so_many_entries():
    """As an array of one entry it would be written beyond its end."""
    memory = Memory(3, ints=np.int64(6), floats=np.int32(7), scratch=np.int64(5))
    assert (memory.ints.shape, memory.floats.shape, memory.room.shape) == ((3, 6), (3, 7), (5,))
    assert Memory(2, ints=[4, 5], floats=[0.5]).ints.tolist() == [[4, 5], [4, 5]]


# ---------------------------------------------------------------- steps that state what makes no sense


@law
def _state(run, number):
    """What the state says: from round 3 on a value, a weight and a size."""
    value, weight, size = floats(run)
    law_values(run)[0], law_weights(run)[0] = 0.5, 1.0
    if number < 3:
        return 1
    law_values(run)[0], law_weights(run)[0] = value, weight
    return int(size)


@law
def _state_on_grid(run, number):
    value, weight, size = floats(run)
    law_atoms(run)[0], law_weights(run)[0] = 1, 1.0
    if number < 3:
        return 1
    law_atoms(run)[0], law_weights(run)[0] = int(value), weight
    return int(size)


@learn
def _forget(run, number, size, drawn, outcome):
    return 0


@learn
def _refuse(run, number, size, drawn, outcome):
    return -1 if number == 4 else 0


@move
def _ask(run, number, size, forecast):
    return floats(run)[0] if number == 6 else 0.5


@hear
def _deaf(run, number, size, forecast, outcome):
    return -1 if number == 7 else 0


@dataclass(frozen=True)
class Stating(f.Forecaster):
    value: float = 0.5
    weight: float = 1.0
    size: int = 1
    grid: bool = False
    refuses: bool = False

    def start(self, horizon, runs, stream):
        memory = Memory(runs, floats=[self.value, self.weight, self.size])
        memory.floats[0] = 1.0 if self.grid else 0.5, 1.0, 1.0  # the first run is as it should be
        return CompiledForecaster(
            _state_on_grid if self.grid else _state,
            _refuse if self.refuses else _forget,
            memory,
            size=2,
            grid=np.array([0.0, 0.5, 1.0]) if self.grid else None,
        )


@dataclass(frozen=True)
class Asking(n.Nature):
    q: float = 0.5
    deaf: bool = False
    sight = n.Sight.HISTORY

    def start(self, horizon, runs, stream):
        return CompiledNature(
            _ask, Memory(runs, floats=[self.q]), sight=self.sight, hear=_deaf if self.deaf else None
        )


WRONG = [
    (Stating(value=np.nan), Asking(), "forecaster 'stating' stated .* in round 3, run 6"),
    (Stating(value=1.5), Asking(), r"forecaster 'stating' stated the forecasts \[1.5.* in round 3, run 6"),
    (Stating(value=-1e-300), Asking(), "forecaster 'stating' stated .* in round 3, run 6"),
    (Stating(weight=np.nan), Asking(), "forecaster 'stating' stated .* in round 3, run 6"),
    (Stating(weight=0.999), Asking(), "forecaster 'stating' stated .* in round 3, run 6"),
    (Stating(weight=-1.0), Asking(), "forecaster 'stating' stated .* in round 3, run 6"),
    (Stating(size=0), Asking(), "forecaster 'stating' stated a law .* in round 3, run 6"),
    (Stating(size=3), Asking(), "forecaster 'stating' stated a law .* in round 3, run 6"),
    (Stating(size=-7), Asking(), "forecaster 'stating' stated a law .* in round 3, run 6"),
    (Stating(value=3, grid=True), Asking(), "forecaster 'stating' stated .* in round 3, run 6"),
    (Stating(value=-1, grid=True), Asking(), "forecaster 'stating' stated .* in round 3, run 6"),
    (Stating(weight=0.5, value=1, grid=True), Asking(), "forecaster 'stating' stated .* in round 3, run 6"),
    (Stating(), Asking(q=1.0000001), "nature 'asking' stated q = 1.0000001 in round 6, run 5"),
    (Stating(), Asking(q=np.nan), "nature 'asking' stated q = nan in round 6, run 5"),
    (Stating(refuses=True), Asking(), "(?i)round.*4|not a round that this player forecast"),
    (Stating(), Asking(deaf=True), "round 7"),
]


@pytest.mark.parametrize("loop", ["event", "compiled"])
@pytest.mark.parametrize(("forecaster", "nature", "said"), WRONG)
def test_who_states_nonsense_is_stopped_and_named(forecaster, nature, said, loop):
    game = Game(forecaster, nature, horizon=20, runs=range(5, 8), loop=loop)
    with pytest.raises((InvalidForecast, InvalidParameter), match=said):
        game.advance(20)
    if loop == "compiled":
        # Some runs have played on; the game says so again instead of going on wrongly.
        with pytest.raises(InvalidForecast, match=said):
            game.advance(20)
        with pytest.raises(InvalidForecast, match=said):
            game.ask()
