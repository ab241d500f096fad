"""The history of resolved rounds: Γ at any time, of all or some parts, is that of the same samples."""

from __future__ import annotations

import numpy as np
import pytest

from onlinecal.core.joint import JointDistribution
from onlinecal.engine.history import Counted, Each
from tests.engine.games import bits

POINTS = 11


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("make", [Each, Counted])
def test_gamma_is_that_of_the_samples_at_any_time(make, several, seed):
    random, runs = np.random.default_rng(seed), 2
    grid = np.arange(POINTS) / (POINTS - 1)
    kept = Each(runs, 1000, several) if make is Each else Counted(runs, grid, several)
    assert kept.gamma(0) is None
    rounds = [[] for _ in range(runs)]
    for _ in range(12):
        for run, of in enumerate(rounds):
            for _ in range(random.integers(1, 40)):
                part = int(random.integers(3)) if several else 0
                p, y = float(random.choice(grid)), int(random.integers(2))
                assert kept.add(run, part, p, y)
                of.append((part, p, y))
            if not several:
                kept.extend(run, [0.5, 1.0], [1, 0])
                of += [(0, 0.5, 1), (0, 1.0, 0)]
            assert kept.rounds(run) == len(of)
            for chosen in (None, {0}, {1, 2}, set()) if several else (None,):
                taken = [(p, y) for part, p, y in of if chosen is None or part in chosen]
                found = kept.gamma(run, None if chosen is None else chosen.__contains__)
                if taken:
                    assert bits([found]) == bits([JointDistribution.from_samples(*zip(*taken, strict=True))])
                else:
                    assert found is None


def test_keys_are_in_order_after_a_gamma():
    """A Γ leaves all keys in order in their place."""
    kept = Each(1, 10**6, False)
    kept.extend(0, np.random.default_rng(1).random(1000).tolist(), [1] * 1000)
    kept.gamma(0)
    ordered = kept.keys[0, :1000].copy()
    assert (np.diff(ordered) >= 0).all()
    kept.extend(0, [0.25], [0])
    kept.gamma(0)
    assert kept.ordered[0] == 1001
    assert (np.diff(kept.keys[0, :1001]) >= 0).all()


def test_there_is_room_for_all_rounds_of_a_game_and_for_no_more():
    kept, said = Each(2, 22, False), [0.5] * 12
    for rounds in (10, 12):
        for run in range(2):
            kept.extend(run, said[:rounds], [1] * rounds)
    assert kept.keys.shape == (2, 22)
    assert [kept.gamma(run).weight for run in range(2)] == [22.0, 22.0]
