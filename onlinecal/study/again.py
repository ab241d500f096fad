"""What was asked for later: computed from the level sets that are kept, where they are, and played where not."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from onlinecal.core.columns import Column, Held
from onlinecal.core.errors import InvalidData, OnlinecalError
from onlinecal.study.gammas import Kept, exact_runs, runs_of, unpacked
from onlinecal.study.panel import Panel
from onlinecal.study.plan import Cell
from onlinecal.study.played import Floats

Parts = Sequence[tuple[int, bytes]]


class Piece(NamedTuple):
    """Some measures and tasks of a cell, in its runs from `first` up to, not including, `last`."""

    panel: Panel
    first: int
    last: int


def missing(cell: Cell, held: Mapping[Held, int]) -> list[Cell]:
    """What is to be played of a cell, so that every column that is there in some runs is played in the others only."""
    if all(held.get(h, 0) >= cell.runs for h in cell.held.values()):
        return []
    there = {c: min(held.get(h, 0), cell.runs) for c, h in cell.held.items()}
    marks = sorted({*there.values(), cell.runs})
    return [
        replace(cell, panel=_only(cell, [c for c, n in there.items() if n <= first]), first=first, runs=last)
        for first, last in pairwise(marks)
    ]


def missing_of_played(cell: Cell, held: Mapping[Held, int]) -> bool:
    """Whether the game has been played in runs in which some of the columns are not there."""
    played = min(cell.runs, max(held.values(), default=0))
    return any(held.get(h, 0) < played for h in cell.held.values())


def computable(
    cell: Cell, held: Mapping[Held, int], parts: Parts
) -> tuple[list[Piece], dict[str, list[str]]]:
    """What of a cell's missing columns can be computed from Γ that is kept; and why the rest of it cannot.

    Parameters
    ----------
    cell : Cell
    held : mapping
        What is there of the same game: column → how many runs.
    parts : sequence of (int, bytes)
        Its packed level sets, as in `Gammas`.

    Returns
    -------
    pieces : list of Piece
    reasons : dict
        Reason → names of measures and tasks, of runs that have been played.
    """
    there = {c: min(held.get(h, 0), cell.runs) for c, h in cell.held.items()}
    played = min(cell.runs, max(held.values(), default=0))
    late = {c: n for c, n in there.items() if n < played}
    if not late:
        return [], {}
    exact = {run for start, packed in parts for run in _usable(cell, packed, start)}
    pieces: list[Piece] = []
    reasons: dict[str, list[str]] = {}
    for first in sorted(set(late.values())):
        panel = _only(cell, [c for c, n in late.items() if n == first])
        of_gamma, of_rounds = panel.of_gamma(), panel.of_rounds()
        if of_rounds is not None:
            reasons.setdefault("the rounds are read one by one", []).extend(
                a.name for a in of_rounds.measures
            )
        last = first
        while last < played and last in exact:
            last += 1
        if of_gamma is None:
            continue
        if last > first:
            pieces.append(Piece(of_gamma, first, last))
        if last < played:
            why = "their level sets are not kept exactly"
            names = [asked.name for asked in of_gamma.measures] + [task.name for task in of_gamma.tasks]
            reasons.setdefault(why, []).extend(names)
    return pieces, reasons


def _usable(cell: Cell, packed: bytes, start: int) -> Sequence[int]:
    """Of which runs of a part the numbers can be computed as playing gives them: where the game itself has moved the
    predictions, that is all.
    """
    return range(start, start + runs_of(packed)) if cell.panel.moved else exact_runs(packed, start)


def read_again(cell: Cell, piece: Piece, parts: Parts) -> dict[Column, Floats]:
    """The totals of a piece of a cell, (n, runs) each, from level sets that are all kept exactly."""
    streams = ("", *cell.nature.strategy.streams)
    whom = f"{cell.forecaster.label!r} against {cell.nature_label!r}"

    def read(kept: Kept) -> list[float]:
        assert kept.gamma is not None
        return piece.panel.read(kept.gamma, None, kept.moved)

    own = piece.panel.columns
    totals = read_levels(
        read, len(own), parts, range(piece.first, piece.last), cell.times, len(streams), whom
    )
    columns = [replace(column, stream=stream) if stream else column for stream in streams for column in own]
    return {column: totals[:, :, j].copy() for j, column in enumerate(columns)}


def read_levels(
    read: Callable[[Kept], Sequence[float]],
    width: int,
    parts: Parts,
    runs: range,
    times: Sequence[int],
    streams: int,
    whom: str,
) -> Floats:
    """What is read of the level sets that are kept of these runs, (n, runs, width × streams).

    Parameters
    ----------
    read : callable
        Gives `width` totals.
    parts : sequence of (int, bytes)
        In which all of the runs are.
    times : sequence of int
        The n checkpoints.
    streams : int
        How many parts of the rounds there are, the first of which is all of them.
    whom : str
        Who played, for messages.
    """
    totals = np.zeros((len(times), len(runs), width * streams))
    todo = set(runs)
    for start, packed in parts:
        mine = sorted(todo & set(range(start, start + runs_of(packed))))
        todo -= set(mine)
        for i, table in enumerate(unpacked(packed) if mine else ()):
            for place, there in enumerate(table):
                for run in mine:
                    kept = there[run - start]
                    if kept.gamma is None:
                        continue  # no outcome is known yet: totals are the empty sum
                    try:
                        values = read(kept)
                    except OnlinecalError as error:
                        raise InvalidData(f"{error}; after round {times[i]} of {whom}, run {run}") from error
                    totals[i, run - runs[0], place * width : (place + 1) * width] = values
    return totals


def _only(cell: Cell, columns: Sequence[Column]) -> Panel:
    """The measures and tasks of these columns, whichever stream they are of."""
    return cell.panel.only({replace(column, stream="") if column.stream else column for column in columns})
