"""Every pair comes to the same in all ways: by the loop, in Python, paused, pickled, by hand, in threads.

The parameters of strategies are in tests/examples.py. That the numbers are those of before is in tests/golden.py.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import cycle, pairwise, product
from pathlib import Path
from tempfile import mkdtemp

import numpy as np
import pytest

from onlinecal import natures as n
from onlinecal.core.strategy import classes_of
from onlinecal.engine.game import Game
from onlinecal.engine.play import BLOCK
from onlinecal.engine.run import KEPT, NOTES
from onlinecal.schedules import Bursts, ByOutcome, Constant, Pareto, Poisson, Schedule
from tests import examples
from tests.engine.games import again, came_to, check_all_ways, refusal_of

SCHEDULES = {
    "none": Schedule(), "delay": Schedule(delays=Constant(7)), "random": Schedule(Poisson(2), Pareto()),
    "bursts": Schedule(Bursts(5), Constant(2.5)), "by outcome": Schedule(delays=ByOutcome(0, 9)),
}  # fmt: skip


@cache
def pairs():
    """The fast pairs, in which every forecaster and every nature is once, and all pairs."""
    folder = Path(mkdtemp())
    forecasters, natures = examples.forecasters(folder), examples.natures(folder)
    every = [(each, nature) for each, nature in product(forecasters, natures) if each.needs <= nature.reveals]
    # Those that see the law, nothing, and the law again; and where context is needed, those that reveal it.
    able = [each for each in forecasters if not each.needs]
    fast = list(zip(able, cycle((n.Contrarian(), n.Drift(), n.Greedy()))))
    for i, mine in enumerate(each for each in forecasters if each.needs):
        able = [pair for pair in every if pair[0] is mine]
        fast.append(able[i % len(able)])
    return [*fast, *zip(cycle(examples.FEW_FORECASTERS), natures)], every


def label(*case):
    """The name of a case, without the folder of a recording, which each process has for itself."""
    return re.sub(r"/[^']*/", "", " ".join(map(str, case)))[:150]


def cases():
    """The fast pairs with a schedule in turn, and slow one of every two kinds with another."""
    fast, every = pairs()
    found = {label(*pair): ((*pair, name), ()) for pair, name in zip(fast, cycle(SCHEDULES))}
    kinds = {tuple(map(type, pair)): pair for pair in every}
    for pair, name in zip(examples.class_pairs(), cycle(["none", "delay", "random", "bursts"])):
        found[f"{label(*pair)} {name}"] = (*pair, name), ()
    for pair, name in zip(kinds.values(), cycle([*SCHEDULES][::-1])):
        found.setdefault(f"{label(*pair)} {name}", ((*pair, name), pytest.mark.slow))
    return [pytest.param(*case, marks=marks, id=said) for said, (case, marks) in found.items()]


FAST = [pytest.param(*pair, id=label(*pair)) for pair in [*pairs()[0], *examples.class_pairs()]]


@pytest.mark.parametrize(("mine", "theirs", "name"), cases())
def test_a_game_is_the_same_in_all_ways(mine, theirs, name):
    check_all_ways(mine, theirs, SCHEDULES[name])


def events(schedule, until, seed):
    """The events up to question `until` + 1, from the definition: time, 0 or 1 for asked or known, number."""
    clock = schedule.clock(until, seed)
    times = [clock.times(number) for number in range(1, until + 1)]
    end = clock.times(until + 1)[0]
    asked = [(time, 0, number) for number, (time, _) in enumerate(times, 1)]
    # An outcome that becomes known when the next question is asked, does so after it.
    return sorted(asked + [(known, 1, number) for number, (_, known) in enumerate(times, 1) if known < end])


@pytest.mark.parametrize(("mine", "theirs"), FAST)
def test_questions_by_hand_in_the_order_of_the_schedule_are_the_same_game(mine, theirs):
    """With looks at the next law in between, and open questions that are pickled."""
    schedule, until = SCHEDULES["random"], 60
    given = {
        "horizon": until,
        "runs": range(2),
        "seed": 1,
        "schedule": schedule,
        "cuts": (20, 45),
        "keeps": None if classes_of(theirs) else (),
    }
    scheduled, hand, waiting = Game(mine, theirs, **given), Game(mine, theirs, **given), {}

    def by_hand():
        nonlocal hand, waiting
        for time, kind, number in events(schedule, until, 1):
            if kind == 0:
                laws = hand.laws() if number % 7 == 0 else None
                waiting[number] = hand.ask(time)
                assert laws in (None, waiting[number].laws)
            else:
                hand.resolve(waiting.pop(number), time)
            if number % 20 == 0:
                hand, waiting = again((hand, waiting))

    said = refusal_of(scheduled.advance, until)
    assert refusal_of(by_hand) == said
    assert said or came_to(hand) == came_to(scheduled)


def test_a_row_ends_with_the_notes_of_its_player():
    """Of all open questions and one more; that of a forecaster follows that of nature. Steps read it unchecked."""
    noted = set()
    for mine, theirs in pairs()[0]:
        game = Game(mine, theirs, horizon=60, runs=range(2), schedule=SCHEDULES["delay"])
        if game.compiled and not refusal_of(game.advance, 60):
            heads, ends = game.rows.view(np.int64), [0, game.mine_from, game.rows.shape[1]]
            for first, end in pairwise(ends):
                notes = (game.room + 1) * heads[:, first + KEPT]
                assert (heads[:, first + NOTES] + notes == end - first).all(), (mine, theirs)
                noted |= {(first > 0, bool(notes[0]))}
    assert len(noted) == 4  # of both players, with notes and without


@pytest.mark.slow
@pytest.mark.parametrize(("mine", "theirs"), FAST)
def test_longer_games_are_the_same_too(mine, theirs):
    """Beyond a block of uniforms, and where states have grown."""
    until = min(2 * BLOCK + 7, *(getattr(each, "length", None) or 10**9 for each in (mine, theirs)))
    whole, alone = (Game(mine, theirs, horizon=until, runs=runs, seed=2) for runs in (range(2), range(1, 2)))
    whole.advance(until)
    for stop in (BLOCK, BLOCK + 1, until):
        alone.advance(min(stop, until))
    assert came_to(alone, 0) == came_to(whole, 1)
