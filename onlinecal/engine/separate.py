"""Runs that are in different rounds, since each has questions or outcomes at times of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.joint import JointDistribution
from onlinecal.core.validation import count


class Separate:
    """Runs of one horizon, each a `Game` or `Course`, played one after the other and read as a `Game`.

    `asked` is the number of questions of each run that are read now. `compiled`: all players are made of steps.
    """

    def __init__(self, parts: list[Any]) -> None:
        self.parts, self.horizon, self.asked = parts, parts[0].horizon, 0
        self.runs = range(parts[0].runs[0], parts[-1].runs[-1] + 1)
        self.compiled = all(part.compiled for part in parts)

    def advance(self, until: int, progress: Callable[[int], None] | None = None) -> None:
        """Plays each run until its question `until` + 1 would be asked; errors are those of the runs.

        `progress` is told the number of questions asked in each run since it was last told, on average.
        """
        if count("until", until, least=0) > self.horizon:
            raise InvalidParameter(f"question {until} is beyond the horizon {self.horizon}")
        if until <= self.asked:
            return
        new, told = until - self.asked, 0
        for i, part in enumerate(self.parts, 1):
            part.advance(until)
            if progress is not None:
                progress(new * i // len(self.parts) - told)
                told = new * i // len(self.parts)
        self.asked = until

    @property
    def resolved(self) -> int:
        """The outcomes that are known in the run with the fewest."""
        return min(part.resolved for part in self.parts)

    def known(self, stream: int | None = None) -> list[JointDistribution]:
        """Γ of each run in which an outcome is known."""
        return [gamma for part in self.parts for sets in part.each(stream) for gamma in sets]

    def gammas(self, stream: int | None = None) -> list[JointDistribution]:
        """Γ of each run; needs a known outcome in each."""
        gammas = self.known(stream)
        if len(gammas) < len(self.parts):
            raise InvalidParameter("a run has no known outcome; Γ needs one")
        return gammas
