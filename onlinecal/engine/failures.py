"""What is said where a player fails or cannot play: who it was, in which round and run, and what was expected."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onlinecal.core.errors import InvalidForecast, InvalidParameter, failure, in_one_line
from onlinecal.rounds.law import Unplayable, brief


def check_loop(loop: str, names: Sequence[str], able: Sequence[bool]) -> None:
    """Refuses a loop that there is not, and the compiled one where a player is not made of steps."""
    if loop not in ("auto", "event", "compiled"):
        raise InvalidParameter(f"loop = {loop!r}; expected 'auto', 'event' or 'compiled'")
    if loop == "compiled" and not all(able):
        who = [repr(name) for name, steps in zip(names, able, strict=True) if not steps]
        raise InvalidParameter(f"{' and '.join(who)} cannot be played by the compiled loop")


def no_probability(stated: Any, runs: int, run: int | None = None) -> Unplayable:
    """Nature stated something else than probabilities."""
    return Unplayable(
        f"stated q = {brief(stated)}", f"a probability in [0, 1], or one for each of the {runs} runs", run
    )


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
        run = "" if error.run is None else f", run {runs[error.run]}"
        return InvalidForecast(f"{who} {error.what} in round {number}{run}; expected {error.expected}")
    run = "" if place is None else f", run {runs[place]}"
    return InvalidForecast(f"{who} failed in round {number}{run}: {failure(error)}")
