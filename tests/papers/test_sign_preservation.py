"""The script of the sign preservation game: its table is that of the rules, and its nature plays by them."""

import functools

from tests.experiments import script
from tests.pages import ROOT

game = script("sign_preservation", ROOT / "scenarios")


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


def test_the_script(capsys):
    study = game.main(5)
    lines = capsys.readouterr().out.splitlines()
    for n, line in enumerate(lines[1:6], 1):
        values = [by_the_rules((0,) * n, left, True) for left in game.ROUNDS]
        assert [int(each) for each in line.split()] == [n, *values, by_the_rules((0,) * n, n, False)]
    assert [line.partition(":")[0] for line in lines[6:]] == [
        f"{c.forecaster}, T = {c.horizon}" for c in study.cells
    ]
    # A forecaster that states the mean of the coin, and coins that fall as the second player wants.
    for sides in range(64):
        nature, row, epochs = game.SignPreservation(1000, cells=5, rounds=6), (0,) * 5, 0
        while nature.cell is not None:
            cell, sign, begun = nature.cell, 1 if sides >> epochs % 6 & 1 else -1, nature.t
            while nature.row == row and nature.t < nature.horizon:
                nature.update(nature.probability(), (sign + 1) // 2)
            assert nature.t - begun < nature.longest  # |B| ≥ √L comes first
            row, epochs = write(row, cell, sign, True), epochs + 1
            assert nature.row == row
        assert nature.t <= nature.horizon
        assert sum(mark != 0 for mark in row) >= by_the_rules((0,) * 5, 6, True)
