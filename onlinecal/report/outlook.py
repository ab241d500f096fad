"""For the terminal: the cells of a run before it begins, and how long it may take."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from onlinecal.core.words import number_of
from onlinecal.report.tables import print_json, say
from onlinecal.study.outlook import Outlook, outlook
from onlinecal.study.planning import Plan
from onlinecal.study.store import Store

#: bytes from which disk and memory are worth a word
LARGE = 10**8
#: seconds for measuring
BUDGET = 3.0


def print_outlook(plan: Plan, path: Path, *, resume: bool, as_json: bool) -> None:
    """Prints the answer of `run --dry-run`; with `resume` the results file counts."""
    there = {}
    if resume and path.exists():
        with Store.open(path) as store:
            there = store.runs()
    found = outlook(plan, BUDGET, there)
    if as_json:
        print_json({"results": str(path), **found.as_json()})
        return
    for line in lines(found):
        say(line)
    if path.exists() and not resume:
        say(f"{path} exists; --dry-run --resume counts what is in it")


def lines(found: Outlook) -> Iterator[str]:
    """The lines of the answer."""
    parts = f"{number_of(found.cells, 'cell')}: {found.new:,} new"
    if found.begun:
        parts += f", {found.begun:,} of which some runs are there"
    if found.finished:
        parts += f", {found.finished:,} in the results file already"
    yield parts
    late = f" by {found.schedules:,} schedules" if found.schedules > 1 else ""
    yield (
        f"{number_of(found.forecasters, 'forecaster')} × {number_of(found.natures, 'nature')}{late}: "
        f"{number_of(found.pairs, 'pair')}"
        + (f"; {found.incompatible:,} cannot play each other" if found.incompatible else "")
    )
    horizons = found.horizons
    shown = ", ".join(f"{t:,}" for t in horizons) if len(horizons) <= 10 else (
        f"{len(horizons)} from {horizons[0]:,} to {horizons[-1]:,}"
    )  # fmt: skip
    yield f"T = {shown}; {number_of(found.runs, 'run')}"
    yield f"{found.run_rounds:,} run-rounds to be played"
    if found.listed:
        width = max(len(who) for who, *_ in found.listed)
        for who, whom, loop in found.listed:
            yield f"  {loop:8}  {who:{width}}  {whom}"
    else:
        yield "loops: " + ", ".join(
            f"{loop} for {number_of(count, 'pair')}" for loop, count in found.loops.items()
        )
    if found.seconds is None:
        yield "nothing is to be played" if not found.run_rounds else "time: nothing could be measured"
    else:
        low, middle, high = map(_duration, found.seconds.values())
        yield f"time: {middle if low == high else f'about {middle} ({low} to {high})'}, {found.how}"
    if found.disk >= LARGE:
        yield f"results file: about {_bytes(found.disk)}"
    if found.memory >= LARGE:
        yield f"memory: up to {_bytes(found.memory)} for a batch of runs"


def _bytes(count: int) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"


def _duration(seconds: float) -> str:
    """Two digits of the unit that fits."""
    if seconds < 0.95:
        return "less than 1 s"
    for unit, size, most in (("s", 1.0, 100), ("min", 60.0, 100), ("h", 3600.0, 48), ("days", 86400.0, 1000)):
        if seconds < most * size:
            return f"{seconds / size:.2g} {unit}" if seconds < 10 * size else f"{seconds / size:.0f} {unit}"
    return f"{seconds / 86400 / 365.25:.2g} years"
