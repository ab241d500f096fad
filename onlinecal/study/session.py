"""Playing a plan into its results file, from the beginning or from where it stopped."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Mapping, Sequence, Set
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import onlinecal
from onlinecal.core.columns import Held
from onlinecal.core.content import differences
from onlinecal.core.errors import StoreError
from onlinecal.core.guarantee import Sight
from onlinecal.core.progress import Progress
from onlinecal.core.words import number_of
from onlinecal.study.again import computable, missing, missing_of_played, read_again
from onlinecal.study.entries import Planned
from onlinecal.study.executors import Executor, Serial
from onlinecal.study.executors.base import Fault
from onlinecal.study.lock import writing
from onlinecal.study.plan import Cell, Plan
from onlinecal.study.played import Played, Results
from onlinecal.study.playing import play_groups
from onlinecal.study.promises import promises, steps
from onlinecal.study.store import Store, check_replaceable

_WAY_OUT = "--overwrite starts anew, --output FILE leaves it"
_CHANGED = "as the scenario or what it names has changed"
_LEFT = "not shown any more, as the scenario has them no longer"


class Session:
    """A plan with its results file open, and locked for other writers; a context manager.

    `remarks` says what in the file no longer fits the plan, and what becomes of it, a line each.
    """

    def __init__(self, cells: Sequence[Cell], store: Store) -> None:
        self._cells, self._store, self._stack = cells, store, ExitStack()
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
        """A new file (an empty one counts as none), or an existing one if `resume` or `overwrite` allows it.

        With `resume`, cells that are in the file with the very content of the plan's (`Cell.key`) are kept, whatever
        their labels and order. The others are played, those of which some runs are there in the further runs only.
        What the file holds beyond the plan is not shown any more and goes when everything has been played; until then
        the plan of before finds it again. `meta` is what the file says of itself: name, title, scenario.
        """
        if resume and overwrite:
            raise StoreError(
                "--resume keeps what is there and --overwrite destroys it; expected one of the two"
            )
        meta = {**meta, "version": onlinecal.__version__}
        if isinstance(cells, Plan) and cells.incompatible:
            meta["incompatible"] = json.dumps(cells.incompatible)
        # All cells have the same decision makers.
        if labels := [tenure.label for cell in cells[:1] for tenure in cell.people.tenures]:
            meta["people"] = json.dumps(labels)
        plan = [_planned(cell) for cell in cells]
        with ExitStack() as stack:
            stack.enter_context(writing(path))
            there = path.exists() and (path.stat().st_size > 0 or not path.is_file())
            if there and not overwrite:
                if not resume:
                    with Store.open(path):
                        raise StoreError(f"{path} exists; --resume goes on with it, {_WAY_OUT}")
                session = cls(cells, stack.enter_context(Store.open(path, write=True)))
                session._adopt(meta, plan)
            else:
                if there:
                    check_replaceable(path)
                session = cls(cells, stack.enter_context(Store.create(path, meta, plan)))
            session._stack = stack.pop_all()
        return session

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.__exit__(*error)  # type: ignore[arg-type]

    # ---------------------------------------------------------------- what is there

    def _adopt(self, meta: Mapping[str, str], plan: Sequence[Planned]) -> None:
        """Puts the plan in place of the one in the file, and remarks on what does not fit any more."""
        before, now = (each.get("options") or "no options" for each in (self._store.meta, meta))
        options = (
            "" if before == now else f"the scenario was played with {before} before, and is now with {now}"
        )
        damaged = self._compare(plan, options)
        if options:
            self.remarks.append(options)
        self._store.forget(damaged)
        if not self._store.has_plan(meta, plan):
            self._store.put_plan(meta, plan)

    def _compare(self, plan: Sequence[Planned], options: str) -> set[str]:
        """Remarks on what does not fit the plan, and refuses a plan that nothing fits; the keys of damaged games."""
        store, wanted = self._store, {cell.key for cell in plan}
        damaged = store.damaged()
        good = store.runs().keys() - damaged
        try:
            finished = [cell for cell in store.finished() if cell.key in good]
        except StoreError as error:
            finished = []
            self.remarks.append(str(error))
        before = [cell for cell in finished if cell.key not in wanted]
        # What takes their place under their labels may be there, under others.
        new = {cell[1:5]: cell.key for cell in plan if cell.key not in good}
        changed = [cell for cell in before if cell[1:5] in new]
        contents = store.contents({cell.key for cell in changed})
        cells = {c.key: c for c in self._cells}
        why = _some(
            _reason(cell, path)
            for cell in changed
            for path in differences(contents.get(cell.key), cells[new[cell[1:5]]].content)
        )
        # Decision makers are part of the games: to ask for some where there were none is no mistake.
        added = why == "decision_makers" and not any("decision_makers" in told for told in contents.values())
        why = "; ".join(filter(None, (why, options)))
        if good and not good & wanted and not added:
            raise StoreError(
                f"{store.path}: nothing that is in it fits the scenario any more{why and f' ({why})'}; {_WAY_OUT}"
            )
        self._remark(f"played anew, {_CHANGED} ({why})", len(changed))
        self._remark(_LEFT, len(before) - len(changed))
        self._remark("played anew, as something else has changed their numbers", len(damaged & wanted))
        self._compare_columns(plan, finished)
        self._compare_gammas(good)
        return damaged

    def _remark(self, what: str, count: int) -> None:
        if count:
            self.remarks.append(f"{what}: {number_of(count, 'finished cell')}")

    def _compare_columns(self, plan: Sequence[Planned], finished: Sequence[Planned]) -> None:
        """Remarks on measures and tasks of games that are still wanted: those that have changed, or are gone."""
        wanted = {cell.key: {held.column: held for held in cell.columns} for cell in plan}
        reasons: list[str] = []
        gone: list[str] = []
        count = 0
        for cell in finished:
            if (now := wanted.get(cell.key)) is not None:
                other = [(old, now[old.column]) for old in cell.columns if now.get(old.column, old) != old]
                reasons += [reason for pair in other for reason in _reasons_of_column(*pair)]
                gone += [repr(old.column.name) for old in cell.columns if old.column not in now]
                count += bool(other)
        self._remark(f"measured anew, {_CHANGED} ({_some(reasons)})", count)
        if gone:
            self.remarks.append(f"{_LEFT}: {_some(gone)}")

    def _compare_gammas(self, good: Set[str]) -> None:
        """Remarks on what has to be played again, as it cannot be computed from what is kept."""
        held = self._store.held()
        found: dict[str, tuple[list[str], set[str]]] = {}
        for cell in self._cells:
            if cell.key in good and missing_of_played(cell, held[cell.key]):
                for why, names in computable(cell, held[cell.key], self._store.gammas(cell.key))[1].items():
                    what, keys = found.setdefault(why, ([], set()))
                    what += map(repr, names)
                    keys.add(cell.key)
        for why, (what, keys) in found.items():
            self._remark(f"played again for {_some(what)}, since {why}", len(keys))

    # ---------------------------------------------------------------- what is played

    @property
    def finished(self) -> int:
        """How many cells of the plan are in the file."""
        return len(self._store.finished())

    def play(self, executor: Executor | None = None) -> list[tuple[Cell, Fault]]:
        """Computes what is missing from level sets that are kept, where it can; plays what is missing then.

        Each cell is in the file as soon as it is finished. Returns those that could not be played, and why;
        `Session.open` with `resume` plays them again. The executor is within its context; by default this process.
        """
        cells = {cell.key: cell for cell in self._cells}
        failed = self._read_again(cells.values())
        there = self._store.held()
        # What fails of Γ that is kept would fail again where it is played.
        left = cells.keys() - {cell.key for cell, _ in failed}
        # Of a cell that is played in several parts each continues the one before, whichever is finished first.
        parts = {key: deque(missing(cells[key], there.get(key, {}))) for key in cells if key in left}
        todo = [rest for queue in parts.values() for rest in queue]
        keys = {id(rest): key for key, queue in parts.items() for rest in queue}
        finished: dict[int, Played | Fault] = {}
        with Progress(sum(rest.work for rest in todo)) as progress:
            for group in play_groups(todo, progress, executor or Serial()):
                finished |= {id(rest): found for rest, found in group}
                with self._store.together():
                    for key in dict.fromkeys(keys[id(rest)] for rest, _ in group):
                        cell, queue = cells[key], parts[key]
                        while queue and id(queue[0]) in finished:
                            rest = queue.popleft()
                            found = finished.pop(id(rest))
                            if isinstance(found, Fault):
                                self._store.fail(key, found.text)
                                failed.append((cell, found))
                                queue.clear()
                            else:
                                # Key and contents are those of before the game, whatever becomes of a plug-in's source.
                                self._store.add(key, cell.content, cell.held, found, rest.first)
        if not failed:
            self._store.forget((there.keys() | self._store.failures().keys()) - cells.keys())
            self._store.forget_replaced()
        return failed

    def _read_again(self, cells: Iterable[Cell]) -> list[tuple[Cell, Fault]]:
        """Computes what was asked for later; the cells of which that cannot be, and why."""
        held, failed = self._store.held(), []
        late = [cell for cell in cells if missing_of_played(cell, held.get(cell.key, {}))]
        with Progress(sum(cell.horizon * cell.runs for cell in late)) as progress:
            for cell in late:
                progress.describe(
                    f"{cell.forecaster.label} vs {cell.nature.label}, T = {cell.horizon:,}, from Γ"
                )
                parts = self._store.gammas(cell.key)
                for piece in computable(cell, held[cell.key], parts)[0]:
                    try:
                        totals = read_again(cell, piece, parts)
                    except (Exception, SystemExit) as error:  # measures may be any code
                        fault = Fault.of(error)
                        self._store.fail(cell.key, fault.text)
                        failed.append((cell, fault))
                        break
                    self._store.add_columns(cell.key, totals, piece.first)
                progress.advance(cell.horizon * cell.runs)
        return failed

    def results(self) -> Results:
        """All that is finished."""
        return self._store.results()


def _planned(cell: Cell) -> Planned:
    return Planned(
        cell.key,
        cell.forecaster.label,
        cell.nature.label,
        cell.schedule.label,
        int(cell.horizon),
        int(cell.runs),
        bool(cell.nature.strategy.recorded),
        Sight(cell.nature.strategy.sight),
        promises(cell),
        tuple(cell.held.values()),
        steps(cell),
    )


def _reason(cell: Planned, path: tuple[str, ...]) -> str:
    """The difference in words: ``forecaster 'mine': source of own``."""
    part, *rest = path or ("content",)
    return _in_words(part, {"forecaster": repr(cell.forecaster), "nature": repr(cell.nature)}.get(part), rest)


def _reasons_of_column(old: Held, new: Held) -> list[str]:
    """The same of a column: ``measure 'bias': source of gauges``."""
    column = new.column
    name = ", ".join(filter(None, (column.task, column.response)))
    name = repr(name or replace(column, end="", stream="").name)
    paths = differences(json.loads(old.content), json.loads(new.content))
    return [_in_words("task" if column.of_task else "measure", name, list(path)) for path in paths]


def _in_words(part: str, name: str | None, rest: list[str]) -> str:
    if "source" in rest:
        rest = [f"source of {rest[-1]}"]
    inner = " ".join(key for key in rest if key not in ("parameters", "options", "what", "state", "make"))
    return " ".join(filter(None, (part, name))) + (f": {inner}" if inner else "")


def _some(reasons: Iterable[str]) -> str:
    each = list(dict.fromkeys(reasons))
    return ", ".join(each[:3]) + (f", and {len(each) - 3} more" if len(each) > 3 else "")
