"""The sign preservation game: its values are those of a search of the whole tree by the rules as told."""

import functools

import pytest

from onlinecal.core.errors import InvalidParameter
from onlinecal.exact.signs import CELLS, STOP, sign_preservation


@functools.cache
def by_the_rules(row, left, reuse):
    """`row`: 1, −1, 0 for an empty cell, None for one that is not to be used again."""
    best = sum(1 for sign in row if sign)
    if left == 0:
        return best
    for i, mark in enumerate(row):
        if mark == 0:
            replies = (by_the_rules(write(row, i, sign, reuse), left - 1, reuse) for sign in (1, -1))
            best = max(best, min(replies))
    return best


def write(row, cell, sign, reuse):
    after = list(row)
    after[cell] = sign
    for i, mark in enumerate(row):
        if (i < cell and mark == -1) or (i > cell and mark == 1):
            after[i] = 0 if reuse else None
    return tuple(after)


@pytest.mark.parametrize("reuse", [True, False])
@pytest.mark.parametrize("cells", [1, 2, 3, 4, 5])
def test_values_by_the_rules(cells, reuse):
    found = sign_preservation(cells, 7, reuse=reuse)
    assert found.values.tolist() == [by_the_rules((0,) * cells, left, reuse) for left in range(8)]


@pytest.mark.parametrize("reuse", [True, False])
def test_the_strategy_attains_the_value_against_every_reply(reuse):
    """From the empty row on, every reply of the other player leads to a state that is worth no less."""
    game = sign_preservation(5, 8, reuse=reuse)

    def play(row, left):
        shown = [mark for mark in row if mark is not None]
        value, point = game.at(shown, left)
        assert value == by_the_rules(row, left, reuse)
        if left == 0 or point == STOP:
            assert value == sum(1 for mark in shown if mark)
            return
        cell = [i for i, mark in enumerate(row) if mark is not None][point]
        for sign in (1, -1):
            after = write(row, cell, sign, reuse)
            assert by_the_rules(after, left - 1, reuse) >= value
            play(after, left - 1)

    play((0,) * 5, 8)


def test_refusals():
    for cells, rounds in ((CELLS + 1, 3), (0, 3), (3, -1)):
        with pytest.raises(InvalidParameter):
            sign_preservation(cells, rounds)
    game = sign_preservation(3, 4)
    for signs, left, said in (([0, 0], 2, "every"), ([-1, 0, 1], 2, "every"), ([2, 0, 0], 2, "every 1 to the left"),
                              ([0, 0, 0], 5, "left = 5")):  # fmt: skip
        with pytest.raises(InvalidParameter, match=said):
            game.at(signs, left)
    with pytest.raises(ValueError, match="read-only"):
        game.values[0] = 3
