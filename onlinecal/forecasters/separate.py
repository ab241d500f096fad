"""Forecasters for natures that mix several streams of questions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from onlinecal.core.streams import Stream
from onlinecal.forecasters._copies import Begin, OfCopies, of_copies, settle_before, state_next
from onlinecal.forecasters.base import Forecaster
from onlinecal.rounds.law import Unplayable
from onlinecal.rounds.parts import first_above
from onlinecal.rounds.players import CompiledForecaster
from onlinecal.rounds.steps import context, law, shared


@dataclass(frozen=True)
class Separate(OfCopies):
    """A copy of a forecaster for each stream of questions, which plays the rounds of its stream and no others.

    Parameters
    ----------
    of : Forecaster
        The one that is copied. A copy begins when its stream is first seen, counts the rounds of its stream from 1, and
        is tuned to T.

    Guarantee
    ---------
    In the rounds of each stream those of `of`, by their value at T. Over all rounds totals that add up
    (see `Delayed`) are at most the sum over the streams; how many there are is nature's choice, so it is not one of
    the table's.

    Information
    -----------
    As the copies, which are told late what comes late. Needs the context ``stream``, the same in all runs. Time of one
    copy a round, memory of all. Certificates of distance and kernel error are the sums of the copies'.

    Source
    ------
    None: the obvious way to be calibrated on each stream.
    """

    of: Forecaster

    @property
    def needs(self) -> frozenset[str]:  # type: ignore[override]
        return super().needs | {"stream"}

    def steps_at(self, horizon: int) -> int | None:
        return self.of.steps_at(horizon)

    def start(self, horizon: int, stream: Stream) -> CompiledForecaster:
        begin, needs = Begin(self.of, horizon, stream), sorted(self.needs)
        form = begin("stream 0")
        return of_copies(begin, form, _state_own, _prepare, needs, shared=[needs.index("stream")])


@law
def _state_own(run, number):
    """Has the copy of the stream state the law: which one it is, is listed in the order of the streams."""
    settle_before(run, number)
    count = len(shared(run)) // 2
    streams, copies, stream = (
        shared(run)[1 : 1 + count],
        shared(run)[1 + count :],
        context(run)[int(shared(run)[0])],
    )
    i = first_above(streams, stream) - 1
    return state_next(run, int(copies[i]), number) if i >= 0 and streams[i] == stream else 0


def _prepare(memory: Any, asked: int, open: int, streams: Mapping[int, int]) -> None:
    """Begins the copies of streams that were not there before."""
    at, *known = memory.shared.tolist()
    count = len(known) // 2
    copies = dict(zip(map(int, known[:count]), map(int, known[count:]), strict=True))
    new = [stream for stream in streams if stream not in copies]
    if new:
        if max(map(abs, new)) > 2**53:
            raise Unplayable(f"is asked a question of stream {max(new, key=abs)}", "a number up to 2^53")
        memory.add(*((f"stream {stream}",) for stream in new))
        copies |= {stream: count + i for i, stream in enumerate(new)}
        memory.shared = np.array([at, *sorted(copies), *(copies[stream] for stream in sorted(copies))])
    for stream, most in streams.items():
        memory.players[copies[stream]].prepare(asked, most, {stream: most})
