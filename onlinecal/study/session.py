"""Playing a plan into its results file, from the beginning or from where it stopped."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

import onlinecal
from onlinecal.errors import StoreError
from onlinecal.progress import Progress
from onlinecal.study.curves import Study
from onlinecal.study.plan import Cell
from onlinecal.study.run import play_cells
from onlinecal.study.store import Store


class Session:
    """A plan with its results file open; a context manager."""

    def __init__(self, cells: Sequence[Cell], store: Store) -> None:
        self._cells = cells
        self._store = store

    @classmethod
    def open(
        cls,
        cells: Sequence[Cell],
        meta: Mapping[str, str],
        path: Path,
        *,
        resume: bool = False,
        overwrite: bool = False,
    ) -> Session:
        """A new file, or an existing one if `resume` or `overwrite` says what to do with it.

        Parameters
        ----------
        cells : sequence of Cell
        meta : mapping
            What the file says of itself: name, title, scenario.
        path : Path

        Raises
        ------
        StoreError
            The file exists and neither was said, or both were; it is locked, or not one of ours; or `resume` would
            mix results of another scenario or version into it.
        """
        if resume and overwrite:
            raise StoreError(
                "--resume keeps what is there and --overwrite destroys it; expected one of the two"
            )
        meta = {**meta, "version": onlinecal.__version__, "cells": str(len(cells))}
        if not path.exists():
            return cls(cells, Store.create(path, meta))
        # Opening it comes first: a file that is not ours is neither continued nor replaced.
        with contextlib.ExitStack() as stack:
            store = stack.enter_context(Store.open(path, write=True))
            if overwrite:
                stack.close()
                path.unlink()
                return cls(cells, Store.create(path, meta))
            if not resume:
                raise StoreError(
                    f"{path} exists; --resume goes on with it, --overwrite starts anew, --output FILE leaves it"
                )
            cls._check_same(cells, store)
            store.adopt(meta, {c.key: (i, c.forecaster.label, c.nature.label) for i, c in enumerate(cells)})
            stack.pop_all()
        return cls(cells, store)

    @staticmethod
    def _check_same(cells: Sequence[Cell], store: Store) -> None:
        version = store.meta.get("version")
        way_out = "--overwrite starts anew, --output FILE leaves it"
        if version != onlinecal.__version__:
            raise StoreError(
                f"{store.path} was made by onlinecal {version} and this is {onlinecal.__version__}; {way_out}"
            )
        foreign = store.keys() - {cell.key for cell in cells}
        if foreign:
            raise StoreError(
                f"{store.path} holds {len(foreign)} cells that the scenario no longer has; {way_out}"
            )

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._store.__exit__(kind, error, trace)

    @property
    def finished(self) -> int:
        """How many cells are in the file."""
        return len(self._store.keys())

    def play(self) -> None:
        """Plays what is missing; each cell is in the file before the next begins."""
        there = self._store.keys()
        places = {cell.key: i for i, cell in enumerate(self._cells)}
        missing = [cell for cell in self._cells if cell.key not in there]
        with Progress(sum(cell.work for cell in missing)) as progress:
            for cell, played in play_cells(missing, progress):
                self._store.add(cell.key, places[cell.key], played)

    def study(self) -> Study:
        """All that is finished."""
        return self._store.study()
