"""When questions are asked and their outcomes become known, as plain data: bars from the one to the other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from onlinecal.core.errors import InvalidData, InvalidParameter
from onlinecal.core.validation import count
from onlinecal.engine.horizon import check_horizon
from onlinecal.rounds.law import Floats
from onlinecal.schedules import Schedule

#: questions of one picture, in which a bar can be told from the next
MOST = 200


@dataclass(frozen=True)
class Bars:
    """The first questions of a game, as they stand when the next one would be asked.

    Attributes
    ----------
    schedule : Schedule
    horizon : int
        T of the game.
    asked, known : (n,) floats
        On the game's clock; the outcome is known at infinity if never.
    end : float
        When question n + 1 would be asked; at the last question of a file, when everything is known.
    open : (n,) bools
        Whose outcome is not known before `end`.
    outcomes : (n,) ints, optional
        0 or 1.
    """

    schedule: Schedule
    horizon: int
    asked: Floats
    known: Floats
    end: float
    open: NDArray[np.bool_]
    outcomes: NDArray[np.int64] | None

    @property
    def never(self) -> NDArray[np.bool_]:
        """Whose outcome never becomes known."""
        return np.isinf(self.known)

    def count(self) -> tuple[Floats, NDArray[np.int64]]:
        """When the number of open questions changes, and how many there are from then on.

        Of one time it is what is left after its questions and outcomes.
        """
        done = self.known[~self.open]
        times = np.unique(np.concatenate([self.asked, done]))
        asked = np.searchsorted(self.asked, times, side="right")
        return times, asked - np.searchsorted(np.sort(done), times, side="right")


def question_bars(
    schedule: Schedule, horizon: int, seed: int = 0, outcomes: ArrayLike | None = None, first: int = MOST
) -> Bars:
    """When the questions of a game are asked and become known.

    Parameters
    ----------
    schedule : Schedule
    horizon, seed : int
        Of the game: its times depend on both.
    outcomes : (n,) ints, optional
        0 or 1, of one run, for as many questions as are drawn.
    first : int, default 200
        No more than so many questions; at most 200.

    Raises
    ------
    InvalidParameter
        A horizon or number of questions out of range; more questions than the schedule has.
    InvalidData
        Outcomes that are not so many numbers 0 and 1.
    """
    check_horizon(horizon)
    number = min(count("first", first, most=MOST), horizon)
    length = schedule.length
    if length is not None and horizon > length:
        raise InvalidParameter(
            f"horizon = {horizon}, but the schedule has {length} questions; expected at most {length}"
        )
    clock = schedule.clock(horizon, seed)
    asked, known = np.array([clock.times(n) for n in range(1, number + 1)]).T
    end = clock.times(number + 1)[0]
    if np.isinf(end):
        # The last question of a file: the game ends when all is known that ever will be.
        end = float(max(asked[-1], known[np.isfinite(known)].max(initial=-np.inf)))
        open = np.isinf(known)
    else:
        open = known >= end
    given = None
    if outcomes is not None:
        given = np.asarray(outcomes)
        if given.shape != (number,) or not np.isin(given, (0, 1)).all():
            raise InvalidData(
                f"outcomes of shape {given.shape}; expected {number} numbers 0 or 1, one for each question"
            )
        given = given.astype(np.int64)
    return Bars(schedule, horizon, asked, known, float(end), open, given)
