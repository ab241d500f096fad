"""What is said where a player fails or cannot play: who it was, in which round and run, and what was expected."""

from __future__ import annotations

from onlinecal.core.errors import InvalidForecast, failure, in_one_line
from onlinecal.rounds.law import Unplayable


def failed(error: Exception, who: str, number: int, runs: range, place: int | None = None) -> InvalidForecast:
    """A player's own error, with its name, the round, and the run where it is of one of them.

    Nobody is named where there is no more memory: it is whoever asks next that gets none, be it the engine.
    """
    if isinstance(error, MemoryError):
        return InvalidForecast(
            f"there is no memory left for round {number} in {len(runs)} run(s): {in_one_line(error, str)}; expected "
            "fewer runs at a time or fewer rounds"
        )
    if isinstance(error, Unplayable):
        place = place if error.run is None else error.run
        run = "" if place is None else f", run {runs[place]}"
        return InvalidForecast(f"{who} {error.what} in round {number}{run}; expected {error.expected}")
    run = "" if place is None else f", run {runs[place]}"
    return InvalidForecast(f"{who} failed in round {number}{run}: {failure(error)}")
