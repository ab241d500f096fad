"""Every strategy that has `begin` plays as on the engine of today, to the bit, in all ways.

A strategy is in the table as soon as it and all its parts have `begin`. Its parameters are in tests/examples.py.
"""

from __future__ import annotations

import math
import pickle
import re
from functools import cache
from itertools import pairwise, product
from pathlib import Path
from tempfile import mkdtemp

import pytest

from onlinecal.core.errors import InvalidForecast
from onlinecal.engine.game import Game as Today
from onlinecal.engine2 import game as module
from onlinecal.engine2.game import Game
from onlinecal.forecasters import FosterVohra
from onlinecal.natures import Contrarian
from onlinecal.schedules import ByOutcome, Constant, Pareto, Poisson, Schedule
from tests import examples

T, CUTS = 120, (20.0, 55.5, 90.0)
SCHEDULES = {
    "none": Schedule(),
    "delay": Schedule(delays=Constant(7)),
    "random": Schedule(Poisson(2), Pareto()),
    "by outcome": Schedule(delays=ByOutcome(0, 9)),
}


def begins(strategy):
    """Whether a strategy and its parts can be played here."""
    return hasattr(strategy, "begin") and all(map(begins, getattr(strategy, "_parts", {}).values()))


@cache
def table():
    """The pairs of every strategy with some others, then those of all with all; each names its index."""
    folder = Path(mkdtemp())
    fast = [pair for pair in examples.pairs(folder) if all(map(begins, pair))]
    forecasters = [each for each in examples.forecasters(folder) if begins(each)]
    natures = [each for each in examples.natures(folder) if begins(each)]
    # The fast ones meet a nature that sees the law, or only its side of 1/2, too.
    fast += [(f, Contrarian()) for f in forecasters if not f.needs]
    every = [(f, n) for f, n in product(forecasters, natures) if f.needs <= n.reveals]
    seen = {repr(pair) for pair in fast}
    return fast, [pair for pair in every if repr(pair) not in seen]


def label(*case):
    """The name of a case, without the folder of a recording, which each process has for itself."""
    return re.sub(r"/[^']*/", "", " ".join(map(str, case)))[:150]


def cases():
    """The pairs with a schedule. One in turn is fast; its others and all other pairs are slow."""
    fast, others = table()
    names = list(SCHEDULES)
    for i, (mine, theirs) in enumerate(fast):
        for name in names:
            slow = name != names[i % len(names)]
            yield pytest.param(
                mine, theirs, name, marks=[pytest.mark.slow] * slow, id=label(mine, theirs, name)
            )
    for i, (mine, theirs) in enumerate(others):
        name = names[i % len(names)]
        yield pytest.param(mine, theirs, name, marks=pytest.mark.slow, id=label(mine, theirs, name))


def bits(gammas):
    """All of some Γ."""
    return [[getattr(g, part).tobytes() for part in ("predictions", "counts", "positives")] for g in gammas]


def came_to(game, streams):
    """Γ of a game of this engine: of all rounds, of streams and of stretches; and what it certifies."""
    found = {}
    ends = (-math.inf, *CUTS, math.inf)
    for stream in (None, *range(streams)):
        for since, until in {(-math.inf, math.inf), *pairwise(ends)}:
            found[stream, since, until] = bits(game.known(stream, since, until))
    return found, {name: totals.tolist() for name, totals in game.certificates().items()}


def has_other_digits(strategy):
    """Whether today's weights are others in their last digits, so that games fork; test_led.py holds the laws.

    Today's Foster–Vohra on all pairs eliminates more than 16 points in two stages. Its games are then held among
    each other.
    """
    return type(strategy) is FosterVohra and strategy.swaps == "all" and strategy.steps_at(T) > 15


def came_to_today(game, streams):
    """The same of today's."""
    if isinstance(game, Game):
        return came_to(game, streams)
    found = {}
    ends = (-math.inf, *CUTS, math.inf)
    for stream in (None, *range(streams)):
        for since, until in {(-math.inf, math.inf), *pairwise(ends)}:
            found[stream, since, until] = bits(game.ledger.gammas(stream, since, until) or ())
    return found, {name: totals.tolist() for name, totals in game.certificates().items()}


def refusal_of(play, *given):
    """The error that stops a game, as copies in too few slots do; "" for none."""
    try:
        play(*given)
    except InvalidForecast as error:
        return str(error)
    return ""


@pytest.mark.parametrize(("mine", "theirs", "name"), list(cases()))
def test_gammas_are_those_of_today(mine, theirs, name, monkeypatch):
    schedule, streams = SCHEDULES[name], max(1, len(theirs.streams))
    # Today's engine plays one run at a time where delays depend on outcomes.
    runs = range(2, 3) if name == "by outcome" else range(2, 4)
    given = {"horizon": T, "runs": runs, "seed": 9, "schedule": schedule, "cuts": CUTS}
    if said := refusal_of(Today(mine, theirs, **given).advance, T):
        in_python = Game(mine, theirs, **given)
        in_python.hand_over()
        assert refusal_of(Game(mine, theirs, **given).advance, T) == refusal_of(in_python.advance, T) == said
        return
    today = (Game if has_other_digits(mine) else Today)(mine, theirs, **given)
    today.advance(T // 3)
    third = came_to_today(today, streams)
    today.advance(T)
    expected = came_to_today(today, streams)

    def again(game):
        return pickle.loads(pickle.dumps(game))

    at_once = Game(mine, theirs, **given)
    assert at_once.compiled
    at_once.advance(T)
    assert came_to(at_once, streams) == expected

    paused = Game(mine, theirs, **given)
    paused.advance(T // 3)
    assert came_to(paused, streams) == third
    paused = again(paused)
    paused.advance(T // 2)
    paused = again(paused)
    paused.advance(T)
    assert came_to(paused, streams) == expected

    monkeypatch.setattr(module, "THREAD", 1)
    threads = Game(mine, theirs, threads=2, **given)
    threads.advance(T)
    assert came_to(threads, streams) == expected

    in_python = Game(mine, theirs, **given)
    in_python.hand_over()
    in_python.advance(T // 3)
    assert came_to(in_python, streams) == third
    in_python.advance(T)
    assert came_to(in_python, streams) == expected

    handed = Game(mine, theirs, **given)
    handed.advance(T // 3)
    handed.hand_over()
    handed.advance(T // 2)
    handed = again(handed)
    handed.advance(T)
    assert came_to(handed, streams) == expected


def by_hand(game, moment):
    """Asks and resolves some questions by hand, then lets the schedule play on."""
    game.advance(10)
    open = []
    for t in range(30):
        open.append(game.ask())
        if t == 10:
            game, open = moment(game, open)
        if t % 3 == 2:
            for i, told in ((1, None), (0, 1 if t == 5 else None)):
                game.resolve(open.pop(i), outcome=told)
    laws = game.laws()
    game.advance(T)
    return game, laws


@pytest.mark.parametrize(("mine", "theirs"), [pytest.param(*pair, id=label(*pair)) for pair in table()[0]])
def test_a_game_by_hand_is_that_of_today(mine, theirs):
    given = {"horizon": T, "runs": range(2), "seed": 1, "cuts": CUTS}
    engine = Game if has_other_digits(mine) else Today
    alone = engine(mine, theirs, **given), lambda *both: both
    if said := refusal_of(by_hand, *alone):
        assert refusal_of(by_hand, Game(mine, theirs, **given), alone[1]) == said
        return
    today, expected = by_hand(engine(mine, theirs, **given), alone[1])
    game, laws = by_hand(Game(mine, theirs, **given), lambda *both: pickle.loads(pickle.dumps(both)))
    streams = max(1, len(theirs.streams))
    assert laws == expected
    assert came_to(game, streams) == came_to_today(today, streams)


def test_something_is_played():
    assert len(table()[0]) > 10
