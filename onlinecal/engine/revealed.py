"""What nature reveals before the forecast: kept for the round, shown to who needs it, and which stream it says."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from onlinecal.core.arrays import Rows
from onlinecal.natures.base import NatureRound
from onlinecal.rounds.law import Unplayable, brief


class Revealed:
    """Context of the rounds of a game.

    Parameters
    ----------
    needs : iterable of str
        The kinds that the forecaster is shown.
    streams : int
        How many streams there are; 0 where nature has none.
    runs : int
    keeps : iterable of str
        The kinds that are kept with the rounds, whether the forecaster is shown them or not.

    Attributes
    ----------
    kinds : list of str
        Those that nature is asked for, in the order of their names.
    stream : int
        Of the last question.
    kept : dict of str to array
        What is kept of it.
    """

    def __init__(self, needs: Iterable[str], streams: int, runs: int, keeps: Iterable[str] = ()) -> None:
        self.needs, self.keeps, self.streams, self.runs = frozenset(needs), frozenset(keeps), streams, runs
        self.kinds = sorted(self.needs | self.keeps | ({"stream"} if streams else frozenset()))
        self.stream = 0
        self.kept: dict[str, Any] = {}
        self._rows: dict[str, Rows] = {}

    def show(self, nature: Any, face: NatureRound) -> dict[str, Any]:
        """Asks nature, and gives what the forecaster is shown: kind → an array of its own."""
        said = nature.context(face)
        shown = {}
        for kind in self.kinds:
            values = np.asarray(said[kind])
            if kind in self.needs | self.keeps:
                rows = self._rows.get(kind)
                if rows is None or rows.shape != values.shape or rows.dtype != values.dtype:
                    rows = self._rows[kind] = self._form(kind, values)
                shown[kind] = rows.keep(values)
        self.kept = {kind: shown[kind] for kind in self.keeps}
        if self.streams:
            self.stream = self._stream_of(np.asarray(said["stream"]))
        return {kind: values for kind, values in shown.items() if kind in self.needs}

    def _form(self, kind: str, values: Any) -> Rows:
        """Where context of this form is kept."""
        if values.ndim < 1 or len(values) != self.runs or values.dtype.kind not in "fiub":
            what = f"revealed {kind} = {brief(values)}"
            raise Unplayable(what, f"an array of numbers with a row for each of the {self.runs} runs")
        before = self._rows.get(kind)
        if kind in self.keeps and before is not None and before.shape != values.shape:
            raise Unplayable(
                f"revealed {kind} of shape {values.shape}, before of shape {before.shape}",
                "one shape, as it is kept with the rounds",
            )
        return Rows(values.shape, values.dtype)

    def _stream_of(self, streams: Any) -> int:
        whole = streams.dtype.kind in "iu" and streams.size > 0
        first, last = (streams.min(), streams.max()) if whole else (-1, -1)
        if not 0 <= first == last < self.streams:
            what = f"revealed stream = {brief(streams)}"
            raise Unplayable(what, f"one of the numbers 0 to {self.streams - 1}, the same for all runs")
        return int(first)
