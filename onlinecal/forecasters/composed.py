"""Forecasters made of another: restarts and rounding; and how a whole reaches its parts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, Literal

import numpy as np

from onlinecal.core.expressions import depends_on_horizon
from onlinecal.core.specification import STEPS, allow, part, whole, word
from onlinecal.core.strategy import some
from onlinecal.core.streams import Stream
from onlinecal.engine import steps
from onlinecal.engine.parts import begin_part
from onlinecal.engine.steps import Run, drawn, inner, kernel, law, note, one_of, shared
from onlinecal.forecasters.base import Forecaster, OfOthers, OnGrid, grid_of
from onlinecal.forecasters.recalibration import cell_of

#: the shared numbers of each part: which of the different steps are its, and where its note begins
STEPS_OF, NOTE_AT, EACH = range(3)


def joined(players: Sequence[steps.Forecaster], before: int) -> tuple[Any, list[float], dict[str, Any]]:
    """The different steps of parts, the numbers of all parts, and what a whole with these parts is given.

    Their notes lie one behind the other, behind `before` numbers of the whole's own.
    """
    different: dict[Any, int] = {}
    numbers, needs = list[float](), dict[int, str]()
    for player in players:
        numbers += [different.setdefault((player.say, player.learn), len(different)), before]
        needs |= {before + place: kind for place, kind in player.needs.items()}
        before += player.note
    refusal = next((player.refusal for player in players if player.refusal), None)
    given = {"note": before, "needs": needs, "parts": players, "refusal": refusal}
    return tuple(zip(*different, strict=True)), numbers, given


@kernel
def part_of(run, k, atom):
    """The row of part k, with its law at that atom."""
    return inner(run, k, int(shared(run)[EACH * k + NOTE_AT]), atom)


@kernel
def steps_of(run, k):
    """Which of the different steps are those of part k."""
    return int(shared(run)[EACH * k + STEPS_OF])


@kernel
def is_law(part, size):
    """Whether a part has stated a law, of this many atoms."""
    return 1 <= size <= len(law(part)[0]) and drawn(law(part), size, 0.0) >= 0


@kernel
def pass_on(run, part, size):
    """States what a part stated, which is no law, so that the engine says what it was."""
    (values, weights), (own_values, own_weights) = law(run), law(part)
    if size > len(own_values):
        return 0
    for j in range(size):
        values[j], weights[j] = own_values[j], own_weights[j]
    return size


class Growing(steps.Forecaster):
    """A forecaster made of parts that begin one after the other; `begin(k)` is part k at its beginning."""

    begin: Callable[[int], Any]

    def reach(self, many: int) -> None:
        """Begins parts up to this number of them."""
        for k in range(len(self.parts), many):
            part = self.begin(k)
            part.spread(self.runs)
            self.parts.append(part)
            self.laid = False

    def restore(self, kept: dict[str, Any]) -> None:
        """As `Player.restore`, with the parts that had begun."""
        self.reach(len(kept["parts"]))
        super().restore(kept)


@dataclass(frozen=True)
class Doubling(OfOthers):
    """Makes a forecaster that is tuned to a horizon play without one: restarts it with first, 2·first, 4·first, ….

    Guarantee: If the restarted forecaster has a subadditive total of at most c·T^α, this one has c·T^α/(1 − 2^{−α})
    plus the first epoch's. Not one of the table's.

    Source: The doubling trick, Cesa-Bianchi et al. 1997.

    Parameters
    ----------
    of : Forecaster
        The one that is restarted.
    first : int, default 16
        Length of the first epoch, from 1 to 10^9.
    """

    needs_horizon: ClassVar[bool | None] = False
    allowed = allow(of=part("forecaster"), first=whole(1, 10**9))

    of: Forecaster
    first: int = 16

    def start(self, horizon: int, stream: Stream) -> steps.Forecaster:
        players: list[steps.Forecaster] = []
        end, length = 0, self.first
        while not players or end < horizon:
            players.append(begin_part("forecaster", self.of, length, stream.child(f"epoch of {length}")))
            end, length = end + length, 2 * length
        return Epochs(players, self.first)


class Epochs(Growing):
    """A forecaster that plays by a part for each epoch, of which the first has this many rounds."""

    def __init__(self, players: Sequence[steps.Forecaster], first: int) -> None:
        own, numbers, of_parts = joined(players, 0)
        size, self.first = max(player.size for player in players), first
        say, learn = epoch_steps(*own)
        super().__init__(say, learn, shared=[*numbers, first], size=size, **of_parts)
        # Those of epochs to come take no room.
        self.epochs, self.parts = players, []

    def begin(self, k: int) -> steps.Forecaster:
        """The part of an epoch."""
        return self.epochs[k]

    def make_room(self, coming: steps.Coming) -> None:
        """Makes each part fit for the rounds of its epoch."""
        before, length = 0, self.first
        for k in range(len(self.epochs)):
            if before < coming.asked:
                self.reach(k + 1)
                self.parts[k].make_room(coming._replace(asked=min(coming.asked - before, length)))
            before, length = before + length, 2 * length


@kernel
def epoch_of(run, number):
    """Which epoch a round belongs to, and how many rounds were before it."""
    k, before, length = 0, 0, int(shared(run)[-1])
    while number > before + length:
        k, before, length = k + 1, before + length, 2 * length
    return k, before


@cache
def epoch_steps(says: Any, learns: Any) -> Any:
    """The steps of a forecaster that is restarted; behind the numbers of parts it shares the first epoch's length."""
    say_one, learn_one = one_of(says), one_of(learns)

    def say(run: Run, number: int) -> int:
        k, before = epoch_of(run, number)
        return say_one(steps_of(run, k), part_of(run, k, 0), number - before)

    def learn(run: Run, place: int, forecast: float, outcome: int, number: int) -> int:
        k, before = epoch_of(run, number)
        of = steps_of(run, k), part_of(run, k, 0)
        return learn_one(*of, place, forecast, outcome, number - before)

    return say, learn


@dataclass(frozen=True)
class Rounded(OfOthers, OnGrid):
    """Rounds another's forecasts to the grid 0, 1/m, …, 1; it is told what it said itself.

    Source: Bairaktari, Hu, Nguyen and Ullman 2026, Definition 3.1, for the random rounding.

    Parameters
    ----------
    of : Forecaster
    m : int or str
        Steps of the grid, rounded up; a number or an expression in T.
    how : {"nearest", "random", "down"}, default "nearest"
        To the nearest point, ties to the even one. At random to a neighbour, with the forecast as the mean. Or down.
    """

    allowed = allow(of=part("forecaster"), m=STEPS, how=word("nearest", "random", "down"))

    of: Forecaster
    m: int | str
    how: Literal["nearest", "random", "down"] = "nearest"

    @property
    def deterministic(self) -> bool | None:  # type: ignore[override]
        return False if self.how == "random" else self.of.deterministic

    @property
    def needs_horizon(self) -> bool | None:  # type: ignore[override]
        return some([depends_on_horizon(self.m), self.of.needs_horizon])

    def start(self, horizon: int, stream: Stream) -> steps.Forecaster:
        player, m = begin_part("forecaster", self.of, horizon, stream), self.steps_at(horizon)
        how = ("nearest", "random", "down").index(self.how)
        ((say_one,), (learn_one,)), numbers, of_parts = joined([player], player.size)
        say, learn = rounded_steps(say_one, learn_one)
        size = player.size * (2 if how == RANDOM else 1)
        return steps.Forecaster(say, learn, shared=[*numbers, how, m], size=size, grid=grid_of(m), **of_parts)


NEAREST, RANDOM, DOWN = range(3)


@cache
def rounded_steps(say_one: Any, learn_one: Any) -> Any:
    """The steps of a forecaster that rounds another. Shared, behind the part's numbers: how it rounds, and m.

    The note: the values of the part's law, then the part's note.
    """

    def say(run: Run, number: int) -> int:
        part, said, (values, weights) = part_of(run, 0, 0), note(run), law(run)
        size, how, m = say_one(part, number), int(shared(run)[-2]), int(shared(run)[-1])
        if not is_law(part, size):
            return pass_on(run, part, size)
        for j in range(size - 1, -1, -1):  # where there are two for each, they are written from the last on
            v = values[j] + 0.0
            said[j] = v
            if how == NEAREST:
                values[j] = np.rint(v * m) / m
            elif how == DOWN:
                values[j] = cell_of(v, m) / m
            else:
                i, weight = min(cell_of(v, m), m - 1), weights[j]
                low, high = i / m, (i + 1) / m
                up = min(1.0, max(0.0, (v - low) / (high - low)))
                values[2 * j], values[2 * j + 1] = low, high
                weights[2 * j], weights[2 * j + 1] = weight * (1.0 - up), weight * up
        return 2 * size if how == RANDOM else size

    def learn(run: Run, place: int, forecast: float, outcome: int, number: int) -> int:
        j = place >> 1 if shared(run)[-2] == RANDOM else place
        return learn_one(part_of(run, 0, 0), j, note(run)[j], outcome, number)

    return say, learn
