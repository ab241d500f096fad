"""The nature that plays the sign preservation game as it is solved."""

from __future__ import annotations

from dataclasses import dataclass

from onlinecal.core._compile import kernel
from onlinecal.core.strategy import check_whole
from onlinecal.core.streams import Stream
from onlinecal.exact.signs import marked, sign_table, written
from onlinecal.natures.base import Nature, Sight
from onlinecal.rounds.players import CompiledNature
from onlinecal.rounds.steps import Memory, floats, hear, ints, memo, move, shared_ints

#: the state: cell, its rounds, number of the epoch, which cells have signs, how many of these are +, rounds so far
CELL, PLAYED, EPOCH, MASK, PLUS, DONE = range(6)
#: what all runs share: rounds of an epoch, cells, rounds of the sign game, T, rows of the table; and then the table
LONGEST, CELLS, ROUNDS, HORIZON, STATES, TABLE = range(6)


@dataclass(frozen=True)
class SignPreservation(Nature):
    """Plays the sign preservation game with reuse optimally, with the forecaster's biases as signs.

    [1/4, 3/4] is cut into `cells`. An epoch plays Bernoulli(θ), θ the middle of the cell that the optimal first player
    of `onlinecal.exact.sign_preservation` points at. It adds up B = Σ (y − p) over its forecasts within half a cell's
    width of θ, and ends after L = ⌈T/rounds⌉ rounds, or as soon as |B| ≥ √L. Then the cell gets the sign of B (none if
    |B| < √L), and loses it as in the game, of which as many rounds are left as epochs of L rounds, `rounds` at most.
    Where the first player ends the game, θ is the border between the cells with + and those with −.

    Parameters
    ----------
    cells : int, default 7
        From 1 to 10.
    rounds : int, default 16
        From 1 to 64.

    Guarantee
    ---------
    None proved. The value of the sign game says how many signs are left if every epoch ends with one.

    Information
    -----------
    Sees HISTORY. O(1) time a round, O(cells) at the end of an epoch; all runs share the solved game, 6 MB at most.

    Source
    ------
    Qiao and Valiant 2021, "Stronger calibration lower bounds via sidestepping"; Dagan et al. 2025 for the game with
    reuse. Deviations: few cells, played optimally; an epoch may end without a sign.
    """

    cells: int = 7
    rounds: int = 16
    sight = Sight.HISTORY
    needs_horizon, safe_under_delay, memory = True, True, "O(1)"

    def __post_init__(self) -> None:
        check_whole("cells", self.cells, 1, 10)
        check_whole("rounds", self.rounds, 1, 64)

    def start(self, horizon: int, stream: Stream) -> CompiledNature:
        cells, rounds = int(self.cells), int(self.rounds)
        table = sign_table(cells, rounds).tolist()
        states = (1 << cells) * (cells + 1)
        longest = -(-horizon // rounds)
        first = table[min(rounds, -(-horizon // longest)) * states]
        memory = Memory(
            ints=[first, 0, 0, 0, 0, 0],
            floats=[0.25 + 0.5 * (first + 0.5) / cells, 0.0],
            shared_ints=[longest, cells, rounds, horizon, states, *table],
            memo=1,
        )
        return CompiledNature(_toss, memory, sight=self.sight, hear=_go_on)


@move
def _toss(run, number, size, forecast):
    """θ and the bias near it are the numbers of the state."""
    # A round that is resolved after its epoch tells nothing of the next one.
    memo(run)[0] = ints(run)[EPOCH]
    return floats(run)[0]


@hear
def _go_on(run, number, size, forecast, outcome):
    state, numbers, game = ints(run), floats(run), shared_ints(run)
    state[DONE] += 1
    if memo(run)[0] != state[EPOCH] or state[CELL] < 0:
        return 0
    state[PLAYED] += 1
    if abs(forecast - numbers[0]) <= 0.25 / game[CELLS]:
        numbers[1] += outcome - forecast
    enough = game[LONGEST] ** 0.5
    if state[PLAYED] < game[LONGEST] and abs(numbers[1]) < enough:
        return 0
    if abs(numbers[1]) >= enough:
        cell = state[CELL]
        positive, negative = written(state[MASK], state[PLUS], cell)
        state[MASK] = positive | negative | 1 << cell
        state[PLUS] = marked(positive) + (1 if numbers[1] > 0.0 else 0)
    left = min((game[HORIZON] - state[DONE] + game[LONGEST] - 1) // game[LONGEST], game[ROUNDS])
    at = state[MASK] * (game[CELLS] + 1) + state[PLUS]
    state[CELL] = game[TABLE + max(left, 0) * game[STATES] + at]
    place = state[CELL] + 0.5 if state[CELL] >= 0 else _border(state[MASK], state[PLUS], game[CELLS])
    numbers[0], numbers[1] = 0.25 + 0.5 * place / game[CELLS], 0.0
    state[PLAYED] = 0
    state[EPOCH] += 1
    return 0


@kernel
def _border(mask, plus, cells):
    """The middle of what lies between the last + and the first −, in cells from the left."""
    low, high, seen = 0, cells, 0
    for i in range(cells):
        if mask >> i & 1:
            if seen < plus:
                low = i + 1
            elif high == cells:
                high = i
            seen += 1
    return 0.5 * (low + high)
