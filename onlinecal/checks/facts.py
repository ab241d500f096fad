"""Measures the facts that strategies state of themselves (`onlinecal.core.strategy`): what is not so is found."""

import copy
import pickle
import sys
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import cloudpickle
import numpy as np

from onlinecal.core.content import own_modules
from onlinecal.core.simplex import grid_points
from onlinecal.core.strategy import counts_open, memory_at
from onlinecal.engine.game import Game, Question
from onlinecal.engine.play import BLOCK
from onlinecal.engine.steps import Player
from onlinecal.forecasters import ClassMean, EmpiricalMean
from onlinecal.forecasters.base import Forecaster
from onlinecal.natures import Nature

#: beyond a block of uniforms, of the engine's and of the natures'
HORIZON = BLOCK + 100
RUNS = range(3)
#: horizons that are compared, over the rounds of the shorter one
SHORT, MIDDLE, LONG = 64, 256, 2**15
#: how many rounds are looked at where each takes its time
LATE = 48
#: rounds of the games in which the state is measured; the largest growth, over that stated
SMALL, LARGE, SLACK = 256, 4096, 1.5
#: bytes a run that are nothing, and bytes a round
FEW, TRIFLE = 64, 0.5

#: a check: "" or what is wrong in this game with the forecaster or the nature, whichever the role says
Measure = Callable[[str, Forecaster, Nature, int], str]


def playable(horizon: int, *players: Any) -> int:
    """The horizon, or the most rounds that all of them can play."""
    return min([horizon, *(player.length for player in players if player.length is not None)])


def stated_facts(strategy: Any) -> Iterator[tuple[str, Measure]]:
    """Statements of a forecaster or nature that a game can refute: label and measurement."""
    if getattr(strategy, "deterministic", None) is True:
        yield "it is deterministic, as it declares", certainty
    if isinstance(strategy, Forecaster) and strategy.steps_at(HORIZON) is not None:
        yield "its forecasts are on the grid of m steps that it states", grid
    if strategy.needs_horizon is False:
        yield "it plays the same at every horizon, as it declares", horizon
    if strategy.safe_under_delay is True and not counts_open(strategy):
        yield "it may be told late and in any order, as it declares", delay
    if strategy.memory is not None:
        yield f"its state grows like {strategy.memory} at most, as it declares", memory


def certainty(role: str, forecaster: Forecaster, nature: Nature, seed: int) -> str:
    """Whether every law is a single point."""
    for number, laws in _laws(forecaster, nature, seed):
        if any(len(law) > 1 for law in laws):
            return f"it declares itself deterministic, but its law of round {number} has several points"
    return ""


def grid(role: str, forecaster: Forecaster, nature: Nature, seed: int) -> str:
    """Whether all that the laws of a game hold is one of 0, 1/m, …, 1."""
    m = forecaster.facing(nature).steps_at(HORIZON) or 1
    for number, laws in _laws(forecaster, nature, seed):
        for value in np.ravel([value for law in laws for value in law]):
            if value != round(value * m) / m:
                return f"its law of round {number} holds {value:.17g}, which is none of 0, 1/{m}, …, 1"
    return ""


def _laws(
    forecaster: Forecaster, nature: Nature, seed: int
) -> Iterator[tuple[int, list[dict[float, float]]]]:
    """The first rounds of a game: each with the laws of all runs."""
    game = Game(forecaster, nature, horizon=HORIZON, runs=RUNS, seed=seed)
    for number in range(1, 201):
        question = game.ask()
        game.resolve(question)
        yield number, question.laws


def horizon(role: str, forecaster: Forecaster, nature: Nature, seed: int) -> str:
    """Whether players that are started with different horizons state the same; their streams are the same."""
    for short, long in ((SHORT, MIDDLE), (MIDDLE, playable(LONG, forecaster, nature))):
        games = [_started(role, forecaster, nature, seed, length) for length in (short, long)]
        for number in range(1, short + 1):
            questions = [game.ask() for game in games]
            for game, question in zip(games, questions, strict=True):
                game.resolve(question)
            if not _same(*(_stated(role, question) for question in questions)):
                return (
                    f"started with T = {short} and with T = {long} it states different {_what(role)} in round "
                    f"{number}"
                )
    return ""


def delay(role: str, forecaster: Forecaster, nature: Nature, seed: int) -> str:
    """Whether the order of a question and of another outcome matters for a later round, with up to seven open."""
    game, waiting = Game(forecaster, nature, horizon=HORIZON, runs=RUNS, seed=seed), []
    rng = np.random.default_rng(seed % 2**32)
    while game.asked < LATE:
        waiting.append(game.ask())
        while len(waiting) > rng.integers(8):
            k = int(rng.integers(len(waiting)))
            answers = []
            for question_first in (False, True):
                try:
                    twin, open = copy.deepcopy((game, waiting))
                except (pickle.PicklingError, AttributeError, TypeError) as error:
                    return f"its state cannot be copied, so what rounds told late do to it cannot be told: {error}"
                if question_first:
                    twin.ask()
                twin.resolve(open[k])
                if not question_first:
                    twin.ask()
                answers.append(_stated(role, twin.ask()))
            if not _same(*answers):
                return (
                    f"its {_what(role)} of round {game.asked + 2} depends on whether round {game.asked + 1} was asked "
                    f"before or after round {waiting[k].number} was told; what a player needs of a round belongs "
                    "into the round's memo"
                )
            game.resolve(waiting.pop(k))
    return ""


def varied(nature: Nature) -> Forecaster:
    """A forecaster that hardly says a number twice; of classes one of as many points at all T."""
    if not nature.of_classes:
        return EmpiricalMean()
    return ClassMean(next(m for m in count(1) if grid_points(m, nature.classes) > LARGE))


def memory(role: str, forecaster: Forecaster, nature: Nature, seed: int) -> str:
    """Whether the bytes of one more run grow faster with T and the rounds played than is stated."""
    if role == "nature":
        forecaster = varied(nature)
    strategy = forecaster.facing(nature) if role == "forecaster" else nature
    large = playable(LARGE, forecaster, nature)
    games = ((SMALL, SMALL), (playable(2 * LARGE, forecaster, nature), SMALL), (large, large))
    try:
        sizes = [max(state_bytes(role, forecaster, nature, seed, *game), FEW) for game in games]
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        return f"its state cannot be pickled, so how large it is cannot be told: {error}"
    stated = [max(memory_at(strategy, rounds, horizon), 1.0) for horizon, rounds in games]
    for (horizon, rounds), size, growth in zip(games, sizes, stated, strict=True):
        if size / sizes[0] > SLACK * growth / stated[0]:
            return (
                f"a run takes {sizes[0]:.0f} bytes after {SMALL} rounds with T = {SMALL}, and {size:.0f} after "
                f"{rounds} with T = {horizon}, which is more than {strategy.memory} grows"
            )
    if memory_at(strategy, SMALL, large) == memory_at(strategy, large, large):
        span = (playable(5 * SMALL, forecaster, nature) - SMALL) // 2
        if (more := shared_bytes(role, forecaster, nature, seed, span) / span) > TRIFLE:
            return (
                f"it keeps {more:.1f} bytes more with each round in what its runs share, which is more than "
                f"{strategy.memory} grows"
            )
    return ""


def shared_bytes(role: str, forecaster: Forecaster, nature: Nature, seed: int, span: int) -> int:
    """Bytes by which a run's player and its users' classes grow: the smaller of two growths; 0 if not pickled."""
    strategy = forecaster if role == "forecaster" else nature
    whose = getattr(strategy, "origin", strategy)
    module = getattr(whose, "__module__", type(whose).__module__)
    own = [sys.modules[name] for name in own_modules(module) if name in sys.modules]
    own = [each for each in own if each.__name__.partition(".")[0] != "onlinecal"]
    game = Game(forecaster, nature, horizon=SMALL + 2 * span, runs=range(1), seed=seed)
    player, sizes = getattr(game, role), list[int]()
    if isinstance(player, Player) and not player.in_python:
        return 0  # Its numbers are those of the run.
    for each in own:
        cloudpickle.register_pickle_by_value(each)
    try:
        for until in (SMALL, SMALL + span, SMALL + 2 * span):
            game.advance(until)
            sizes.append(len(cloudpickle.dumps(state_of(role, game))))
    except (pickle.PicklingError, AttributeError, TypeError, ValueError):
        return 0
    finally:
        for each in own:
            cloudpickle.unregister_pickle_by_value(each)
    return min(sizes[1] - sizes[0], sizes[2] - sizes[1])


def state_bytes(
    role: str, forecaster: Forecaster, nature: Nature, seed: int, horizon: int, rounds: int
) -> float:
    """Bytes of one more run: a player's state after some rounds, and its widest law if it is made of steps."""
    sizes, law = [], 0
    for runs in (1, 3):
        game = Game(forecaster, nature, horizon=horizon, runs=range(runs), seed=seed)
        game.advance(rounds)
        sizes.append(len(pickle.dumps(state_of(role, game))))
        if role == "forecaster":
            law = 16 * getattr(game.forecaster, "size", 0)
    return (sizes[1] - sizes[0]) / 2 + law


def state_of(role: str, game: Game) -> Any:
    """The part of a pickle that is a player: its numbers, or objects in plain Python."""
    player = getattr(game, role)
    return player.kept() if isinstance(player, Player) else player


def _started(role: str, forecaster: Forecaster, nature: Nature, seed: int, horizon: int) -> Game:
    """A game in which one of the players is started with another horizon and the same randomness."""
    pair: list[Any] = [forecaster.facing(nature), nature]
    pair[role == "nature"] = _Started(pair[role == "nature"], horizon)
    return Game(*pair, horizon=HORIZON, runs=RUNS, seed=seed)


class _Started:
    """A specification that starts with another horizon. It has one name at all horizons, and so the same streams."""

    name = "started"

    def __init__(self, strategy: Any, horizon: int) -> None:
        self.strategy, self.horizon = strategy, horizon

    def __getattr__(self, name: str) -> Any:
        return getattr(self.strategy, name)

    def start(self, horizon: int, stream: Any) -> Any:
        return self.strategy.start(self.horizon, stream)


def _stated(role: str, question: Question) -> Any:
    """Laws or probabilities of a question, one array a run."""
    if role == "nature":
        return [question.probability]
    laws = [np.column_stack([list(law), list(law.values())]) for law in question.laws]
    return [law[law[:, -1] > 1e-12] for law in laws]


def _what(role: str) -> str:
    return "laws" if role == "forecaster" else "probabilities"


def _same(one: Any, other: Any) -> bool:
    """Whether laws or probabilities are equal up to rounding: what is kept to save time may be added up otherwise."""
    return len(one) == len(other) and all(
        a.shape == b.shape and np.allclose(a, b, rtol=0.0, atol=1e-9) for a, b in zip(one, other, strict=True)
    )
