"""Checks that must hold for every strategy, and for plug-ins: those of `onlinecal check`.

As a module it prints the digest of one game, for the check that another process plays the same.
"""

import contextlib
import hashlib
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from onlinecal.checks.facts import HORIZON, RUNS, Measure, stated_facts
from onlinecal.core.errors import OnlinecalError
from onlinecal.core.guarantee import Sight
from onlinecal.core.strategy import strategy_key
from onlinecal.core.streams import Stream
from onlinecal.engine.game import Game
from onlinecal.engine.play import BLOCK
from onlinecal.engine.seats import Round
from onlinecal.engine.start import check_specification
from onlinecal.engine.transcripts import FORECAST
from onlinecal.forecasters import AlmostOneStepAhead, ClassMean, Constant, ForecastHedging
from onlinecal.forecasters.base import Forecaster
from onlinecal.natures import Bernoulli, Categorical, Contrarian, ContrarianClasses, Nature, as_nature
from onlinecal.worlds.base import World
from onlinecal.worlds.run import Simulation


@dataclass(frozen=True)
class Finding:
    """The outcome of one check: what was checked, and what is wrong, or "" if nothing is."""

    check: str
    fault: str = ""


def play_game(
    forecaster: Forecaster, nature: Nature, seed: int, runs: range = RUNS, until: int = HORIZON
) -> Any:
    """A game of `HORIZON` rounds, played up to `until`; in a world, its simulation, which keeps the rounds."""
    told: Any = {"horizon": HORIZON, "runs": runs, "seed": seed}
    if isinstance(nature, World):
        game: Any = Simulation(forecaster, nature, keeps=nature.reveals, **told)
    else:
        game = Game(forecaster, nature, **told)
    game.advance(until)
    return game


def trace(game: Any) -> list[bytes]:
    """The result of a game: Γ of each run, as bytes; of a world also its rounds."""
    traced = [
        b"".join(getattr(gamma, part).tobytes() for part in ("predictions", "counts", "means"))
        for gamma in game.gammas()
    ]
    if game.transcripts is None:
        return traced
    return [gamma + course for gamma, course in zip(traced, _courses(game), strict=True)]


def _courses(game: Any) -> list[bytes]:
    """The rounds of each run, without their forecasts."""
    rounds = game.transcripts
    played = [row[:filled] for row, filled in zip(rounds.rows, rounds.filled, strict=True)]
    return [np.delete(row, FORECAST, axis=1).tobytes() for row in played]


def digest(traced: list[bytes]) -> str:
    return hashlib.sha256(b"|".join(traced)).hexdigest()


def conformance(strategy: Any, seed: int = 0, *, name: str | None = None) -> Iterator[Finding]:
    """Runs the checks on a forecaster or a nature, one after the other."""
    kind = "forecaster" if isinstance(strategy, Forecaster) else "nature"
    try:
        check_specification(kind, strategy)
    except OnlinecalError as error:
        yield Finding("what it declares", str(error))
        return
    opponents = _opponents(strategy)
    if not opponents:
        fault = "it needs context of a kind that no nature reveals, or is too short to be played"
        yield Finding("opponents", fault)
        return
    pairs = [_Pair(forecaster, nature, seed) for forecaster, nature in opponents]
    world = isinstance(strategy, World)
    for label, check in OF_WORLDS if world else CHECKS:
        yield Finding(label, _first_fault(check, pairs))
    for label, measure in () if world else stated_facts(strategy):
        yield Finding(label, _first_fault(partial(_fact, kind, measure), pairs))
    if name is not None:
        label = "a spawned process with another hash seed plays the same"
        yield Finding(label, _first_fault(lambda pair: _spawn(pair, kind, name), pairs[:1]))


class _Discloser:
    """Fair coins that reveal context of every kind, so that every forecaster can play."""

    reveals = frozenset({"truth", "features", "base", "stream"})
    streams = ("0", "1", "2")

    def __init__(self, horizon: int, stream: Stream) -> None:
        self.values = stream.block(horizon)[:, 0]

    def context(self, round: Round) -> dict[str, float]:
        said = dict.fromkeys(self.reveals, float(self.values[round.number - 1]))
        return said | {"stream": (round.number - 1) % 3}  # three streams in turn

    def streams_of(self, first: int, last: int) -> Any:
        return np.arange(first - 1, last) % 3

    def probability(self) -> float:
        return 0.5


def _opponents(strategy: Any) -> list[tuple[Forecaster, Nature]]:
    longest = strategy.length
    if longest is not None and longest < HORIZON:
        return []
    if isinstance(strategy, Forecaster):
        natures = [Bernoulli(0.3), Contrarian(), as_nature(_Discloser)]
        if strategy.of_classes:
            k = strategy.classes or 3
            natures = [Categorical((0.5, *[0.5 / (k - 1)] * (k - 1))), ContrarianClasses(k)]
        return [(strategy, nature) for nature in natures if strategy.needs <= nature.reveals]
    if strategy.of_classes:
        return [(ClassMean(), strategy), (ClassMean(7), strategy)]
    return [(forecaster, strategy) for forecaster in (ForecastHedging(), AlmostOneStepAhead())]


@dataclass(frozen=True)
class _Pair:
    """Two players, and the result of a game of theirs without interruption, played when it is first asked for."""

    forecaster: Forecaster
    nature: Nature
    seed: int

    def game(self) -> Any:
        """A game of theirs before its first round."""
        return play_game(self.forecaster, self.nature, self.seed, until=0)

    def again(self, runs: range = RUNS) -> list[bytes]:
        return trace(play_game(self.forecaster, self.nature, self.seed, runs))

    @cached_property
    def straight(self) -> list[bytes]:
        """The trace of one game, with which all others are compared."""
        return self.again()


def _first_fault(check: Callable[[_Pair], str], pairs: list[_Pair]) -> str:
    for pair in pairs:
        try:
            fault = check(pair)
        except OnlinecalError as error:
            fault = str(error)
        if fault:
            return f"{strategy_key(pair.forecaster)} against {strategy_key(pair.nature)}: {fault}"
    return ""


def _fact(kind: str, measure: Measure, pair: _Pair) -> str:
    return measure(kind, pair.forecaster, pair.nature, pair.seed)


def _purity(pair: _Pair) -> str:
    game = pair.game()
    for until in (1, 2, 3, 50, 200, 600, BLOCK - 1, BLOCK, HORIZON - 1):
        game.advance(until)
        if game.laws() != game.laws():
            return f"asked twice in round {until + 1} it states two different laws"
    return ""


def _repeat(pair: _Pair) -> str:
    if pair.again() == pair.straight:
        return ""
    return "two games of the same seed differ; randomness must come from `stream` alone"


def _open(pair: _Pair) -> str:
    """Compares games in which the next law is asked for between question and outcome in some rounds, and is not."""
    game = pair.game()
    for first in (0, HORIZON // 2, BLOCK - 24):
        game.advance(first)
        while game.asked < first + 48:
            open = game.ask()
            game.laws()
            game.resolve(open)
    game.advance(HORIZON)
    if trace(game) == pair.straight:
        return ""
    return (
        "it goes on differently when the next law is asked for while a round is open; what a player needs of a round "
        "belongs into the round's memo, and no forecast may change the player"
    )


def _split(pair: _Pair) -> str:
    parts = [alone for run in RUNS for alone in pair.again(range(run, run + 1))]
    return "" if pair.straight == parts else "a run's course depends on the runs that are played beside it"


def _pickle(pair: _Pair) -> str:
    straight = pair.straight
    game = pair.game()
    try:
        for until in (0, 1, HORIZON // 3, BLOCK, HORIZON):
            game = pickle.loads(pickle.dumps(game))
            game.advance(until)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        return f"it cannot be pickled: {error}"
    return "" if trace(game) == straight else "after pickling it goes on differently"


#: checks of all strategies, whatever they say of themselves
CHECKS: tuple[tuple[str, Callable[[_Pair], str]], ...] = (
    ("probabilities sum to 1, and asking twice changes nothing", _purity),
    ("the same seed gives the same trace", _repeat),
    ("split runs are joined runs", _split),
    ("a question asked while a round is open changes nothing", _open),
    ("pickled in the middle it goes on identically", _pickle),
)


def _blind(pair: _Pair) -> str:
    """Compares the outcomes of two forecasters, in a world that says that it does not use the forecasts."""
    if pair.nature.sight != Sight.NOTHING:
        return ""
    courses = {tuple(_courses(play_game(Constant(p), pair.nature, pair.seed))) for p in (0.0, 0.4, 1.0)}
    return "" if len(courses) == 1 else "it says sight = NOTHING, but its course depends on the forecasts"


#: the same of worlds, where questions come at any time, and which are not pickled
OF_WORLDS = (
    *(check for check in CHECKS if check[1] not in (_purity, _open, _pickle)),
    ("it sees no more than it says", _blind),
)


def _spawn(pair: _Pair, kind: str, name: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "onlinecal.checks.conformance", kind, name, str(pair.seed)],
        env=os.environ | {"PYTHONHASHSEED": "4711"},
        capture_output=True,
        check=False,
    )
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        return f"the other process failed: {said[-1] if said else f'status {done.returncode}'}"
    same = done.stdout.decode(errors="replace").split()[-1] == digest(pair.straight)
    return "" if same else "the other process plays another game"


def _main(kind: str, name: str, seed: str) -> None:
    from onlinecal.naming import strategy_of

    # The output of a class is no part of its play.
    with contextlib.redirect_stdout(sys.stderr):
        pair = _opponents(strategy_of(kind, name))[0]
        there = digest(trace(play_game(*pair, int(seed))))
    print(f"\n{there}")


if __name__ == "__main__":
    _main(*sys.argv[1:])
