"""How far a study is: what is done, what failed, what cannot be played, what is left, and who writes it now."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onlinecal.core.columns import Held
from onlinecal.study.entries import Planned
from onlinecal.study.lock import writer
from onlinecal.study.plan import Incompatible
from onlinecal.study.store import Store


@dataclass(frozen=True)
class Status:
    """Of a results file, at one time; others may be writing it.

    Attributes
    ----------
    path : Path
    name, title : str
    cells, done : int
        How many there are in the plan, and how many of them are finished.
    failed : tuple of (Planned, str, str)
        Cells that could not be played, why, and when that was last tried.
    incompatible : tuple of Incompatible
        Pairs that are not in the plan.
    left : int
        Cells that are neither done nor failed.
    run_rounds_left : int
        Of all that are not done; what several cells share counts once.
    writer : str
        Who writes it now; "" for nobody.
    """

    path: Path
    name: str
    title: str
    cells: int
    done: int
    failed: tuple[tuple[Planned, str, str], ...]
    incompatible: tuple[Incompatible, ...]
    left: int
    run_rounds_left: int
    writer: str

    @classmethod
    def of(cls, path: Path) -> Status:
        """Reads it from the file.

        Raises
        ------
        StoreError
            It cannot be read, or is none of ours.
        """
        with Store.open(path) as store, store.at_once() as (meta, plan, held, failures):
            none: dict[Held, int] = {}
            # A cell is done when all its columns are there; what of them is missing may not have to be played. In
            # merged files cells of one game may differ in their columns and runs.
            runs = [
                min((held.get(cell.key, none).get(c, 0) for c in cell.columns), default=0) for cell in plan
            ]
            open_ = [cell for cell, there in zip(plan, runs, strict=True) if there < cell.runs]
            failed = tuple((cell, *failures[cell.key]) for cell in open_ if cell.key in failures)
            rounds: dict[str, int] = {}
            for cell, there in zip(plan, runs, strict=True):
                rounds[cell.key] = max(rounds.get(cell.key, 0), cell.horizon * (cell.runs - there))
            return cls(
                path,
                meta["name"],
                meta["title"],
                len(plan),
                len(plan) - len(open_),
                failed,
                tuple(Incompatible(*each) for each in json.loads(meta.get("incompatible", "[]"))),
                len(open_) - len(failed),
                sum(rounds.values()),
                writer(path),
            )

    def as_json(self) -> dict[str, Any]:
        """As data."""
        return {
            "results": str(self.path),
            "name": self.name,
            "title": self.title,
            "cells": self.cells,
            "done": self.done,
            "failed": [
                {
                    "forecaster": cell.forecaster,
                    "nature": cell.nature,
                    "schedule": cell.schedule,
                    "horizon": cell.horizon,
                    "error": error,
                    "at": at,
                }
                for cell, error, at in self.failed
            ],
            "incompatible": [pair._asdict() for pair in self.incompatible],
            "left": self.left,
            "run_rounds_left": self.run_rounds_left,
            "writer": self.writer or None,
        }

    def lines(self) -> Iterator[str]:
        """For people."""
        yield self.title or self.name
        yield f"{self.done} of {self.cells} cells are done, {len(self.failed)} failed, {self.left} are left"
        if self.run_rounds_left:
            failed = ", those of failed cells among them" if self.failed else ""
            yield f"{self.run_rounds_left:,} run-rounds are to be played yet{failed}"
        yield f"being written by {self.writer}" if self.writer else "nobody writes it now"
        for cell, error, at in self.failed:
            yield f"failed: {cell}, on {at}: {error}"
        for pair in self.incompatible:
            yield f"cannot be played: {pair.forecaster!r} against {pair.nature!r}: {pair.reason}"
        if not self.writer and self.done < self.cells:
            yield "go on with: onlinecal run SCENARIO --resume"
