"""Every strategy plays the same by the loop as by the definition of a game, to the bit, in all ways.

The parameters of the strategies are in tests/examples.py.
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
from onlinecal.engine2 import game as module
from onlinecal.engine2.game import Game
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


@cache
def table():
    """The pairs of every strategy with some others, then those of all with all; each names its index."""
    folder = Path(mkdtemp())
    fast, forecasters, natures = (
        of(folder) for of in (examples.pairs, examples.forecasters, examples.natures)
    )
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
    """Γ of a game: of all rounds, of streams and of stretches; and what it certifies."""
    found = {}
    ends = (-math.inf, *CUTS, math.inf)
    for stream in (None, *range(streams)):
        for since, until in {(-math.inf, math.inf), *pairwise(ends)}:
            found[stream, since, until] = bits(game.known(stream, since, until))
    return found, {name: totals.tolist() for name, totals in game.certificates().items()}


def refusal_of(play, *given):
    """The error that stops a game, as copies in too few slots do; "" for none."""
    try:
        play(*given)
    except InvalidForecast as error:
        return str(error)
    return ""


@pytest.mark.parametrize(("mine", "theirs", "name"), list(cases()))
def test_all_ways_to_play_come_to_the_same(mine, theirs, name, monkeypatch):
    schedule, streams = SCHEDULES[name], max(1, len(theirs.streams))
    given = {"horizon": T, "runs": range(2, 4), "seed": 9, "schedule": schedule, "cuts": CUTS}
    in_python = Game(mine, theirs, **given)
    in_python.hand_over()
    at_once = Game(mine, theirs, **given)
    assert at_once.compiled
    if said := refusal_of(in_python.advance, T // 3):
        assert refusal_of(at_once.advance, T) == said
        return
    third = came_to(in_python, streams)
    in_python.advance(T)
    expected = came_to(in_python, streams)

    def again(game):
        return pickle.loads(pickle.dumps(game))

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
def test_a_game_by_hand_goes_on_by_the_loop(mine, theirs):
    given = {"horizon": T, "runs": range(2), "seed": 1, "cuts": CUTS}

    def played(in_python, moment):
        game = Game(mine, theirs, **given)
        if in_python:
            game.hand_over()
        return by_hand(game, moment)

    if said := refusal_of(played, True, lambda *both: both):
        assert refusal_of(played, False, lambda *both: both) == said
        return
    expected, laws = played(True, lambda *both: both)
    game, own = played(False, lambda *both: pickle.loads(pickle.dumps(both)))
    streams = max(1, len(theirs.streams))
    assert own == laws
    assert came_to(game, streams) == came_to(expected, streams)


def test_something_is_played():
    assert len(table()[0]) > 10
