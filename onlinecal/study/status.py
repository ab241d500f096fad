"""The state of a study: cells that are done, failed or left, and the process that writes them."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onlinecal.study.entries import Incompatible, Planned
from onlinecal.study.lock import writer
from onlinecal.study.store import Store


@dataclass(frozen=True)
class Status:
    """The state of a file of `results`; `failed` cells with why and when, `left` ones, the `writer` of it now or "".

    `go_on` is the command that plays what is left, or "" where nothing is, or it is being played.
    """

    results: str
    name: str
    title: str
    cells: int
    done: int
    failed: tuple[tuple[Planned, str, str], ...]
    incompatible: tuple[Incompatible, ...]
    left: int
    run_rounds_left: int
    writer: str
    go_on: str

    @classmethod
    def of(cls, path: Path) -> "Status":
        """The state of a file."""
        with Store.open(path) as store:
            meta, plan, held, failures = store.meta, store.plan(), store.held(), store.failures()
            go_on = store.go_on
        failed, left = [], 0
        rounds: dict[str, int] = {}
        for cell in plan:
            # In merged files cells of one game may differ in their columns and runs.
            missing = cell.runs - cell.done(held.get(cell.key, {}))
            rounds[cell.key] = max(rounds.get(cell.key, 0), cell.horizon * missing)
            if missing and cell.key in failures:
                failed.append((cell, *failures[cell.key]))
            elif missing:
                left += 1
        incompatible = tuple(Incompatible(*each) for each in json.loads(meta.get("incompatible", "[]")))
        done, by = len(plan) - len(failed) - left, writer(path)
        return cls(
            str(path), meta["name"], meta["title"], len(plan), done, tuple(failed), incompatible, left,
            sum(rounds.values()), by, "" if by or done == len(plan) else go_on,
        )  # fmt: skip

    def as_json(self) -> dict[str, Any]:
        """As data."""
        names = "forecaster", "nature", "schedule", "horizon"
        failed = [
            {name: getattr(cell, name) for name in names} | {"error": error, "at": at}
            for cell, error, at in self.failed
        ]
        pairs = [pair._asdict() for pair in self.incompatible]
        now = {"writer": self.writer or None, "go_on": self.go_on or None}
        return vars(self) | {"failed": failed, "incompatible": pairs} | now

    def lines(self) -> Iterator[str]:
        """In words."""
        yield self.title or self.name
        yield f"{self.done} of {self.cells} cells are done, {len(self.failed)} failed, {self.left} are left"
        if self.run_rounds_left:
            failed = ", those of failed cells among them" if self.failed else ""
            yield f"{self.run_rounds_left:,} run-rounds are to be played yet{failed}"
        yield f"being written by {self.writer}" if self.writer else "no process writes it now"
        for cell, error, at in self.failed:
            yield f"failed: {cell}, on {at}: {error}"
        for pair in self.incompatible:
            yield f"cannot be played: {pair.forecaster!r} against {pair.nature!r}: {pair.reason}"
