"""Playing a plan into its results file, from the beginning or from where it stopped."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import TracebackType

import onlinecal
from onlinecal.core.content import differences
from onlinecal.core.errors import StoreError
from onlinecal.core.progress import Progress
from onlinecal.core.sight import Sight
from onlinecal.study.database import FORMAT, format_of
from onlinecal.study.entries import Planned
from onlinecal.study.executors import Executor, Serial
from onlinecal.study.executors.base import Fault
from onlinecal.study.lock import writing
from onlinecal.study.plan import Cell, Plan
from onlinecal.study.played import Results
from onlinecal.study.playing import play_groups
from onlinecal.study.run import promises
from onlinecal.study.store import Store

_WAY_OUT = "--overwrite starts anew, --output FILE leaves it"


class Session:
    """A plan with its results file open, which nobody else writes meanwhile; a context manager.

    Attributes
    ----------
    remarks : list of str
        What was found in the file that no longer fits the plan, and what becomes of it; a line each.
    """

    def __init__(self, cells: Sequence[Cell], store: Store) -> None:
        self._cells = cells
        self._store = store
        self._stack = ExitStack()
        self.remarks: list[str] = []

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

        With `resume`, cells that are in the file with the very content of the plan's (`Cell.key`) are kept, whatever
        their labels and order. The others are played, those of which some runs are there in the further runs only.
        What the file holds beyond the plan is not shown any more and goes when everything has been played; until then
        the plan of before finds it again.

        Parameters
        ----------
        cells : sequence of Cell
        meta : mapping
            What the file says of itself: name, title, scenario.
        path : Path
            An empty file is as good as none.

        Raises
        ------
        StoreError
            The file exists and neither was said, or both were; another process writes it; it cannot be written, is not
            one of ours, or damaged; or none of what `resume` finds in it fits the plan.
        """
        if resume and overwrite:
            raise StoreError(
                "--resume keeps what is there and --overwrite destroys it; expected one of the two"
            )
        columns = [column.as_json() for column in dict.fromkeys(c for cell in cells for c in cell.columns)]
        meta = {**meta, "version": onlinecal.__version__, "columns": json.dumps(columns)}
        if isinstance(cells, Plan) and cells.incompatible:
            meta["incompatible"] = json.dumps(cells.incompatible)
        # All cells have the same decision makers.
        if labels := [tenure.label for cell in cells[:1] for tenure in cell.people.tenures]:
            meta["people"] = json.dumps(labels)
        plan = [
            Planned(
                c.key,
                c.forecaster.label,
                c.nature.label,
                c.schedule.label,
                int(c.horizon),
                int(c.runs),
                bool(c.nature.strategy.recorded),
                Sight(c.nature.strategy.sight),
                promises(c),
            )
            for c in cells
        ]
        if os.path.isdir(path):
            raise StoreError(f"{path}: not a file")
        with ExitStack() as stack:
            stack.enter_context(writing(path))
            there = path.exists() and (path.stat().st_size > 0 or not path.is_file())
            if there and not overwrite:
                session = cls(cells, stack.enter_context(Store.open(path, write=True)))
                if not resume:
                    raise StoreError(f"{path} exists; --resume goes on with it, {_WAY_OUT}")
                session._adopt(meta, plan)
            else:
                if there:
                    _check_replaceable(path)
                session = cls(cells, stack.enter_context(Store.create(path, meta, plan)))
            session._stack = stack.pop_all()
        return session

    def _adopt(self, meta: Mapping[str, str], plan: Sequence[Planned]) -> None:
        """Puts the plan in place of the one in the file, and remarks on what does not fit any more."""
        store, wanted = self._store, {cell.key for cell in plan}
        damaged = store.damaged()
        good = store.runs().keys() - damaged
        try:
            before = [cell for cell in store.finished() if cell.key in good - wanted]
        except StoreError as error:
            before = []
            self.remarks.append(str(error))
        # What takes their place under their labels may be there, under others.
        new = {cell[1:5]: cell.key for cell in plan if cell.key not in good}
        changed = [cell for cell in before if cell[1:5] in new]
        contents = store.contents({cell.key for cell in changed})
        reasons: dict[str, None] = {}
        for cell in changed:
            now = next(c.content for c in self._cells if c.key == new[cell[1:5]])
            reasons |= dict.fromkeys(_reason(cell, path) for path in differences(contents[cell.key], now))
        why = _some(list(reasons))
        if good and not good & wanted:
            raise StoreError(
                f"{store.path}: nothing that is in it fits the scenario any more{why and f' ({why})'}; {_WAY_OUT}"
            )
        for count, what in (
            (len(changed), f"played anew, as the scenario or what it names has changed ({why})"),
            (len(before) - len(changed), "not shown any more, as the scenario has them no longer"),
            (len(damaged & wanted), "played anew, as something else has changed their numbers"),
        ):
            if count:
                self.remarks.append(f"{what}: {count} finished cell{'s' * (count > 1)}")
        store.forget(damaged)
        store.put_plan(meta, plan)

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    @property
    def finished(self) -> int:
        """How many cells of the plan are in the file."""
        return len(self._store.finished())

    def play(self, executor: Executor | None = None) -> list[tuple[Cell, Fault]]:
        """Plays what is missing; each cell is in the file as soon as it is finished.

        Parameters
        ----------
        executor : Executor, optional
            Within its context. Default: this process.

        Returns
        -------
        list of (Cell, Fault)
            Cells that could not be played, and why; `Session.open` with `resume` plays them again.
        """
        failed = []
        there = self._store.runs()
        cells = {cell.key: cell for cell in self._cells}
        missing = [cell for key, cell in cells.items() if there.get(key, 0) < cell.runs]
        todo = [replace(cell, first=there.get(cell.key, 0)) for cell in missing]
        with Progress(sum(cell.work for cell in todo)) as progress:
            # The key is that of before the game, whatever becomes of a plug-in's source meanwhile.
            whole = {id(rest): cell for rest, cell in zip(todo, missing, strict=True)}
            for group in play_groups(todo, progress, executor or Serial()):
                with self._store.together():
                    for rest, played in group:
                        cell = whole[id(rest)]
                        if isinstance(played, Fault):
                            self._store.fail(cell.key, played.text)
                            failed.append((cell, played))
                        else:
                            self._store.add(
                                cell.key, json.dumps(cell.content, sort_keys=True), played, rest.first
                            )
        if not failed:
            self._store.forget((there.keys() | self._store.failures().keys()) - cells.keys())
        return failed

    def results(self) -> Results:
        """All that is finished."""
        return self._store.results()


def _check_replaceable(path: Path) -> None:
    """Refuses to replace what is not ours, what a later version has made, and what is protected."""
    if not path.is_file():
        raise StoreError(f"{path}: not a file")
    found = format_of(path)
    if found is None:
        raise StoreError(f"{path} is not a results file of onlinecal; --output chooses another file")
    if found > FORMAT:
        with Store.open(path):  # says so
            pass
    if not os.access(path, os.W_OK):
        raise StoreError(f"{path} is read-only; make it writable, or choose another file with --output")


def _reason(cell: Planned, path: tuple[str, ...]) -> str:
    """What differs, in words: ``forecaster 'mine': source of own``."""
    part, *rest = path
    name = {"forecaster": repr(cell.forecaster), "nature": repr(cell.nature)}.get(part)
    if name is None and part in ("measures", "tasks"):
        part, name = part.removesuffix("s"), repr(rest.pop(0))
    if "source" in rest:
        rest = [f"source of {rest[-1]}"]
    inner = " ".join(key for key in rest if key not in ("parameters", "options", "what", "state", "make"))
    return " ".join(filter(None, (part, name))) + (f": {inner}" if inner else "")


def _some(reasons: Sequence[str]) -> str:
    return ", ".join(reasons[:3]) + (f", and {len(reasons) - 3} more" if len(reasons) > 3 else "")
