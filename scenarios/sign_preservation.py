"""The sign preservation game, solved; and a nature that plays it with the forecaster's biases.

python scenarios/sign_preservation.py 8          # the table for up to 8 cells, and a study; half a minute
natures = ["sign_preservation.py:SignPreservation"]       # in a scenario of this folder

There are cells in a row, all empty. In each round the first player points at an empty cell, or ends the game; the
second writes + or − into it. Then every − to the left of the cell and every + to its right is taken away. In the end
the first player gets the number of signs that are left. Without reuse no cell is pointed at twice; with it, cells that
have lost their signs are empty again.

In the calibration game cells are probabilities. Nature tosses coins of one of them for a while, and the forecaster
chooses the sign of its bias Σ (y − p). Outcomes of a larger mean repair negative biases to the left, others positive
ones to the right. The forecaster cannot repair the rest.

Source: Qiao and Valiant 2021, "Stronger calibration lower bounds via sidestepping", without reuse and Ω(T^0.528);
Dagan et al. 2025, "Breaking the T^{2/3} barrier for sequential calibration", with reuse and Ω(T^0.54389). This was
built from the papers' abstracts: the rules are derived from the calibration game as told above, and were not compared
with the full texts. No bound is claimed.
"""

from __future__ import annotations

import math
import sys
from functools import cache

import onlinecal as oc

#: the columns of the table
ROUNDS = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 20)

#: cells from the left: 1 and −1 for signs, 0 for an empty one
Row = tuple[int, ...]


@cache
def solve(row: Row, left: int, reuse: bool = True) -> tuple[int, int | None]:
    """The signs that are left under optimal play of the rounds left, and the cell to point at now; None for none."""
    best: tuple[int, int | None] = len(row) - row.count(0), None
    for cell in (i for i, sign in enumerate(row) if sign == 0 and left > 0):
        value = min(solve(written(row, cell, sign, reuse), left - 1, reuse)[0] for sign in (1, -1))
        if value > best[0]:
            best = value, cell
    return best


def written(row: Row, cell: int, sign: int, reuse: bool = True) -> Row:
    """The row with one more sign; without reuse, cells that lose theirs are left out, as they do not count any more."""
    lost = [(i < cell and mark == -1) or (i > cell and mark == 1) for i, mark in enumerate(row)]
    after = [
        sign if i == cell else 0 if gone else mark
        for i, (mark, gone) in enumerate(zip(row, lost, strict=True))
    ]
    return tuple(mark for mark, gone in zip(after, lost, strict=True) if reuse or not gone)


class SignPreservation:
    """Plays the game with reuse optimally, with the forecaster's biases as signs; outcomes must not be late.

    [1/4, 3/4] is cut into `cells`. An epoch plays Bernoulli(θ), θ the middle of the cell to point at. It adds up
    B = Σ (y − p) over its forecasts within half a cell's width of θ, and ends after L = ⌈T/rounds⌉ rounds, or as soon
    as |B| ≥ √L. Then the cell gets the sign of B, none if |B| < √L. Rounds of the game are epochs of L rounds. Where
    the first player ends the game, θ is the border between the cells with + and those with −.
    """

    def __init__(self, horizon: int, cells: int = 7, rounds: int = 16) -> None:
        self.horizon, self.rounds, self.longest = horizon, rounds, -(-horizon // rounds)
        self.row, self.t = (0,) * cells, 0
        self._begin()

    def _begin(self) -> None:
        left = min(-(-(self.horizon - self.t) // self.longest), self.rounds)
        self.cell, self.bias, self.played = solve(self.row, left)[1], 0.0, 0
        last = max((i + 1 for i, sign in enumerate(self.row) if sign == 1), default=0)
        first = min((i for i, sign in enumerate(self.row) if sign == -1), default=len(self.row))
        place = (last + first) / 2 if self.cell is None else self.cell + 0.5
        self.theta = 0.25 + 0.5 * place / len(self.row)

    def probability(self) -> float:
        return self.theta

    def update(self, forecast: float, outcome: int) -> None:
        self.t, self.played = self.t + 1, self.played + 1
        if abs(forecast - self.theta) <= 0.25 / len(self.row):
            self.bias += outcome - forecast
        signed = abs(self.bias) >= math.sqrt(self.longest)
        if self.cell is not None and (signed or self.played == self.longest):
            if signed:
                self.row = written(self.row, self.cell, 1 if self.bias > 0 else -1)
            self._begin()


def table(cells: int) -> list[list[int]]:
    """For 1, 2, … cells their number, the signs that are left after `ROUNDS`, and those without reuse."""
    return [
        [n, *(solve((0,) * n, left)[0] for left in ROUNDS), solve((0,) * n, n, False)[0]]
        for n in range(1, cells + 1)
    ]


def main(cells: int) -> oc.Study:
    """Prints the table, and the totals of some forecasters against the nature."""
    for line in (["n", *ROUNDS, "no reuse"], *table(cells)):
        print(" ".join(f"{each:>3}" for each in line))
    study = oc.play(
        ["forecast_hedging", "empirical_mean", "defensive_forecasting"], SignPreservation,
        horizon=[1000, 8000], measures=["ece"], runs=4,
    )  # fmt: skip
    for cell in study.cells:
        print(f"{cell.forecaster}, T = {cell.horizon}: T·ECE {cell.totals['ece'][-1].mean():.1f}")
    return study


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 8)
