"""The history of resolved rounds: Γ at any time, of all or some parts, is that of the same samples."""

from __future__ import annotations

import numpy as np
import pytest

from onlinecal.core.joint import JointDistribution
from onlinecal.engine.history import Counted, Each
from tests.engine.games import same

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
                assert (found is not None) is bool(taken)
                if taken:
                    assert same([found], [JointDistribution.from_samples(*zip(*taken, strict=True))])


def test_a_gamma_leaves_all_keys_in_order_and_there_is_room_for_all_rounds_and_no_more(seed):
    kept, said = Each(2, 1001, False), np.random.default_rng(seed).random(1001).tolist()
    for first, last in ((0, 1000), (1000, 1001)):
        for run in range(2):
            kept.extend(run, said[first:last], [1] * (last - first))
            assert kept.gamma(run).weight == last == kept.ordered[run]
            assert (np.diff(kept.keys[run, :last]) >= 0).all()
    assert kept.keys.shape == (2, 1001)
