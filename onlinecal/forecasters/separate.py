"""Forecasters for natures that mix several streams of questions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onlinecal.core.facts import memory_of
from onlinecal.core.streams import Stream
from onlinecal.forecasters._copies import CopiesPlayer, certified
from onlinecal.forecasters._parts import check_forecasters
from onlinecal.forecasters.base import Forecaster, Player
from onlinecal.rounds.law import Unplayable, brief
from onlinecal.rounds.record import Round


@dataclass(frozen=True)
class Separate(Forecaster):
    """A copy of a forecaster for each stream of questions, which plays the rounds of its stream and no others.

    Against it stands the plain forecaster, which makes no difference between streams and learns from all of them.

    Parameters
    ----------
    of : Forecaster
        The one that is copied. A copy begins when its stream is first seen, counts the rounds of its stream from 1, and
        is tuned to T, since nobody knows how many rounds will fall to it.

    Guarantee
    ---------
    In the rounds of each stream those of `of`, by their value at T. Over all rounds totals that add up
    (see `Delayed`) are at most the sum over the streams; how many there are is nature's choice, so it is not one of
    the table's.

    Information
    -----------
    As the copies, which are told late what comes late. Needs the context ``stream``, the same in all runs. Time of one
    copy a round, memory of all. Certificates of distance and kernel error are the sums of the copies'. Played by the
    event loop, as all games with streams are.

    Source
    ------
    None: the obvious way to be calibrated on each stream. Deviations: none.
    """

    of: Forecaster

    def __post_init__(self) -> None:
        check_forecasters("of", (self.of,))

    @property
    def needs(self) -> frozenset[str]:  # type: ignore[override]
        """The stream, and what the copied one needs."""
        return self.of.needs | {"stream"}

    @property
    def certifies(self) -> frozenset[str]:  # type: ignore[override]
        """What the copies prove together."""
        return certified(self.of)

    @property
    def deterministic(self) -> bool | None:  # type: ignore[override]
        """Whether the copied one is."""
        return self.of.deterministic

    @property
    def needs_horizon(self) -> bool | None:  # type: ignore[override]
        """Where the copied one does."""
        return self.of.needs_horizon

    @property
    def safe_under_delay(self) -> bool | None:  # type: ignore[override]
        """Where the copied one is."""
        return self.of.safe_under_delay

    @property
    def memory(self) -> str | None:  # type: ignore[override]
        """That of each copy; they are as many as streams."""
        return memory_of({"of": self.of})

    def steps_at(self, horizon: int) -> int | None:
        """Those of each copy."""
        return self.of.steps_at(horizon)

    def start(self, horizon: int, runs: int, stream: Stream) -> Player:
        """A player without copies, which begin with their streams."""
        return _SeparatePlayer(self.of, horizon, runs, stream)


class _SeparatePlayer(CopiesPlayer):
    def _whose(self, round: Round) -> int:
        streams = round.context["stream"]
        if streams.shape != (self.runs,) or streams.dtype != np.int64 or streams.min() != streams.max():
            raise Unplayable(
                f"is asked a question of the streams {brief(streams)}",
                f"one whole number for all of the {self.runs} runs",
            )
        key = int(streams[0])
        if key not in self.copies:
            self.copies[key] = self._start(f"stream {key}")
        return key
