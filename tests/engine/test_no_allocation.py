"""No strategy allocates per round.

What is asserted of every registered forecaster and nature: from round 121 to 144 a game of 3072 runs, the engine
included, never has `ROOM` bytes more than before. An array with one bool a run would be 3 KiB, with one number a run
24 KiB; the Python objects of a stretch (records of rounds, views, integers) are some 1.5 KiB. The stretch contains
round 129, in which the engine's blocks of uniforms, which are of 128 rounds here, are used up and filled anew, as are
those of the players, whose lengths divide 128.

Records of rounds are written to fresh arrays, which are allocated for many rounds at a time. Here the blocks are as
long as the stretch, and begin before it (a game comes out of a pickle with new ones). The copies that readers of a
round are handed are left out.

The compiled loop makes its few arrays when it begins, and a round makes none: it is one kernel, whose source is looked
at like that of the others. What is measured is the event loop.

Before that stretch, laws may widen and blocks are drawn for the first time. Two strategies keep growing: `Doubling` of
players in Python starts one anew when an epoch ends, and `Greedy` without `cells` doubles its table when half of it is
full. They allocate in few rounds, and the last test says in how many. (`DefensiveForecasting` and the history of
forecasters without a grid have room for the whole horizon from the start.) Responses act on Γ at a checkpoint, never in
a round, and `Scalar`, which plays anybody's Python objects, is not registered.

tracemalloc sees what Python and NumPy allocate, and not what compiled code does; that is looked for in the source.
"""

import importlib
import math
import pickle
import pkgutil
import tracemalloc
from dataclasses import dataclass

import numpy as np
import pytest
from numba.core.dispatcher import Dispatcher

import onlinecal.core.arrays
import onlinecal.engine.game
import onlinecal.engine.loop
import onlinecal.rounds.law
import onlinecal.rounds.record
from onlinecal import forecasters as f
from onlinecal import natures as n
from onlinecal.core.strategy import strategy_key
from onlinecal.engine.game import Game
from onlinecal.forecasters import FORECASTERS, Constant, ForecastHedging
from onlinecal.natures import NATURES, Nature
from onlinecal.rounds.steps import Step
from tests import examples

RUNS = 3072
#: rounds of a block of the engine's uniforms; what blocks do does not depend on how long they are
BLOCK = 128
FIRST, LAST, HORIZON = BLOCK - 8, BLOCK + 16, BLOCK + 44
#: between what Python objects take, and that with an array of one bool a run
ROOM = 3072
#: of those that say of what stream a question is, in whole numbers which steps do not have: one array of these in each
#: round of the event loop
STREAM = 8 * RUNS
#: of `delayed`, which asks in each round of the event loop how many copies it needs
COPIES = 1024


@dataclass(frozen=True)
class FewCoins(Nature):
    """Fair coins in the first 64 runs, which are enough to widen a law; elsewhere always 1, which takes less time."""

    def start(self, horizon, runs, stream):
        q = np.ones(runs)
        q[:64] = 0.5
        return FewCoinsPlayer(q)


@dataclass
class FewCoinsPlayer:
    q: object

    def probability(self, round):
        return self.q


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("examples")


@pytest.fixture(autouse=True)
def traced(monkeypatch):
    monkeypatch.setattr(onlinecal.engine.game, "BLOCK", BLOCK)
    for module in (onlinecal.core.arrays, onlinecal.rounds.law):
        monkeypatch.setattr(module, "rows_for", lambda size: 2 * (LAST - FIRST))
    for module in (onlinecal.rounds.law, onlinecal.rounds.record):
        # What is read of a round is a copy, which is the round's and not the strategy's.
        monkeypatch.setattr(module, "own", lambda array: array)
    yield
    tracemalloc.stop()


def surplus(game, until):
    """How many bytes more than now there are at the worst moment before the end of round `until`."""
    tracemalloc.reset_peak()
    before, _ = tracemalloc.get_traced_memory()
    game.advance(until)
    return tracemalloc.get_traced_memory()[1] - before


def measured(forecaster, nature):
    """The surplus in rounds FIRST + 1 to LAST."""
    tracemalloc.stop()
    game = Game(forecaster, nature, horizon=HORIZON, runs=range(RUNS), loop="event")
    game.advance(FIRST - 4)
    game = pickle.loads(pickle.dumps(game))
    for player in (game.forecaster, game.nature):
        if getattr(player, "grows", False):
            # A state that grows with the rounds is doubled now and then, which is no allocation per round.
            player.reserve(2 * HORIZON)
    game.advance(FIRST - 2)  # into new blocks of records
    # What was there before is not traced, so that who lets go of an array and makes another is found out.
    tracemalloc.start()
    game.advance(FIRST)  # Python's own caches
    return surplus(game, LAST)


@pytest.mark.parametrize("name", FORECASTERS)
def test_no_forecaster_allocates(name, folder):
    for forecaster in examples.forecasters(folder):
        if type(forecaster) is FORECASTERS[name]:
            able = (x for x in (FewCoins(), *examples.natures(folder)) if forecaster.needs <= x.reveals)
            nature = next(able)
            more = STREAM if nature.streams else COPIES if type(forecaster) is f.Delayed else 0
            assert measured(forecaster, nature) < ROOM + more, (
                f"{strategy_key(forecaster)} against {strategy_key(nature)}"
            )


@pytest.mark.parametrize("name", NATURES)
def test_no_nature_allocates(name, folder):
    for nature in examples.natures(folder):
        if type(nature) is NATURES[name]:
            assert measured(ForecastHedging(), nature) < ROOM + (STREAM if nature.streams else 0), (
                strategy_key(nature)
            )


@dataclass(frozen=True)
class Wasteful(Constant):
    """A constant that makes an array in the rounds that `when` tells, and drops it at once."""

    dtype: type = bool
    when: object = None

    def start(self, horizon, runs, stream):
        return WastefulPlayer(super().start(horizon, runs, stream).law, runs, self.dtype, self.when)


@dataclass
class WastefulPlayer:
    law: object
    runs: int
    dtype: type
    when: object

    def forecast(self, round):
        return self.law

    def update(self, round):
        if self.when is None or self.when(round.number):
            np.empty(self.runs, self.dtype)


def begins_a_block(number):
    return number == BLOCK + 1


def test_who_allocates_is_found():
    assert measured(Constant(), FewCoins()) < ROOM
    assert measured(Wasteful(dtype=np.float64), FewCoins()) > ROOM + 8 * RUNS // 2
    assert measured(Wasteful(), FewCoins()) > ROOM
    # In a single round, that of the new block.
    assert measured(Wasteful(when=begins_a_block), FewCoins()) > ROOM


@pytest.mark.parametrize(
    ("pair", "a_time"),
    [
        # The table of levels, of which every round has a new one.
        ((f.EmpiricalMean(), n.Greedy()), 1),
        # At the end of an epoch a new player, and in the next round what its law needs; without a grid, whose values
        # a reader of the law would have as another array of its own.
        ((f.Doubling(f.EmpiricalMean()), n.Bernoulli()), 2),
    ],
    ids=["greedy", "doubling"],
)
def test_what_grows_allocates_a_few_times_for_each_doubling_of_the_rounds(pair, a_time, monkeypatch):
    monkeypatch.setattr("onlinecal.forecasters.composed.of_steps", lambda players: False)
    for module in (onlinecal.core.arrays, onlinecal.rounds.law):
        monkeypatch.setattr(module, "rows_for", lambda size: HORIZON)
    game = Game(*pair, horizon=HORIZON, runs=range(RUNS), loop="event")
    first = 20
    tracemalloc.start()
    game.advance(first)
    rounds = sum(surplus(game, t) >= ROOM for t in range(first + 1, BLOCK))
    assert rounds <= a_time * math.ceil(math.log2(BLOCK / first))


def test_kernels_of_a_round_allocate_nothing():
    makers = {
        "array",
        "arange",
        "concatenate",
        "copy",
        "empty",
        "empty_like",
        "full",
        "linspace",
        "ones",
        "tile",
    }
    makers |= {"append", "astype", "repeat", "where", "zeros", "zeros_like"}
    names = [
        "onlinecal.rounds.law",
        "onlinecal.rounds.record",
        "onlinecal.engine.history",
        "onlinecal.rounds.steps",
        "onlinecal.engine.kernels",
    ]
    for package in (f, n):
        names += [f"{package.__name__}.{module.name}" for module in pkgutil.iter_modules(package.__path__)]
    functions = set()
    for name in names:
        for thing in vars(importlib.import_module(name)).values():
            if isinstance(thing, Dispatcher):
                functions.add(thing.py_func)
            elif isinstance(thing, Step):
                functions.add(thing.function)
    assert len(functions) > 60
    for function in functions:
        assert not makers & set(function.__code__.co_names), function.__qualname__
