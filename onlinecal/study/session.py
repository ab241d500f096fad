"""Playing a plan into its results file, from the beginning or from where it stopped."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import onlinecal
from onlinecal.core.columns import Held
from onlinecal.core.content import differences
from onlinecal.core.errors import OnlinecalError, StoreError
from onlinecal.core.progress import Progress
from onlinecal.core.words import listed, number_of
from onlinecal.study.again import Missing, missing
from onlinecal.study.entries import Planned
from onlinecal.study.executors import Executor, Serial, fault, play_cells
from onlinecal.study.lock import writing
from onlinecal.study.planning import Cell, Plan
from onlinecal.study.played import Batch
from onlinecal.study.run import planned
from onlinecal.study.store import Store

_WAY_OUT = "--overwrite replaces it, --output FILE leaves it"
#: kinds of change since cells were finished
_PLAYED = "played again, as the scenario or what it names has changed"
_MEASURED = "measured again, as the scenario or what it names has changed"
_LEFT = "not shown any more, as the scenario has them no longer"
_TAKEN_OUT = "not shown any more, as the scenario has these measures no longer"


class Session:
    """A plan with its file open and locked, the `store`; `remarks` says what no longer fits, and what comes of it."""

    def __init__(self, cells: Sequence[Cell], store: Store) -> None:
        self._cells = {cell.key: cell for cell in cells}
        self.store = store
        self.remarks: list[str] = []

    @classmethod
    @contextmanager
    def open(
        cls,
        cells: Sequence[Cell],
        meta: Mapping[str, str],
        path: Path,
        *,
        resume: bool = False,
        overwrite: bool = False,
    ) -> Iterator["Session"]:
        """A new or empty file, or one that `resume` (games of the same `Cell.key` stay) or `overwrite` allows."""
        if resume and overwrite:
            raise StoreError("--resume keeps what is there and --overwrite destroys it; expected one")
        meta = {**meta, "version": onlinecal.__version__}
        if isinstance(cells, Plan) and cells.incompatible:
            meta["incompatible"] = json.dumps(cells.incompatible)
        # All cells have the same decision makers.
        if labels := [person.label for cell in cells[:1] for person in cell.people.each]:
            meta["people"] = json.dumps(labels)
        plan = [planned(cell, cell.key, cell.held.values()) for cell in cells]
        with writing(path):
            there = not overwrite and path.exists() and path.stat().st_size > 0
            if there and not resume:
                with Store.open(path):
                    raise StoreError(f"{path} exists; --resume goes on with it, {_WAY_OUT}")
            if not there:
                Store.create(path, lambda store: store.put_plan(meta, plan))
            with Store.open(path, write=True) as store:
                session = cls(cells, store)
                if there:
                    session.remarks = session._changes(meta, plan)
                    if store.plan() != plan or store.meta != meta:
                        store.put_plan(meta, plan)
                yield session

    def _changes(self, meta: Mapping[str, str], plan: Sequence[Planned]) -> list[str]:
        """A line for each kind of change since cells were finished; a plan that nothing fits is refused."""
        held, told = self.store.held(), defaultdict[str, list[tuple[object, str]]](list)
        good = {key for key, columns in held.items() if columns}
        wanted = {cell.key: {h.column: h for h in cell.columns} for cell in plan}
        # The cells under labels of before may be there under others.
        new = {cell[1:5]: cell.key for cell in plan if cell.key not in good}
        added = True
        for cell in self.store.finished():
            where, now = cell[1:5], wanted.get(cell.key)
            if now is not None:
                for old in cell.columns:
                    if (own := now.get(old.column)) != old:
                        told[_MEASURED if own else _TAKEN_OUT].append((where, old.column.name))
            elif where in new:
                content = self.store.content(cell.key)
                # Decision makers are part of the games: to ask for some where there were none is no mistake.
                added &= "decision_makers" not in content
                for path in differences(content, self._cells[new[where]].content):
                    told[_PLAYED].append((where, _in_words(path)))
            else:
                told[_LEFT].append((where, ""))
        for key, part in self._missing(held):
            for why, name in part.reasons:
                told[f"played again, since {why}"].append((key, name))
        before, options = (each.get("options") or "no options" for each in (self.store.meta, meta))
        changed = f"the scenario was played with {before} before, now with {options}" * (before != options)
        details = ", ".join(dict.fromkeys(name for _, name in told.get(_PLAYED, [])))
        if good and not good & wanted.keys() and not (added and details == "decision_makers"):
            why = "; ".join(filter(None, (details, changed)))
            raise StoreError(
                f"{self.store.path}: nothing that is in it fits the scenario any more{why and f' ({why})'}; {_WAY_OUT}"
            )
        lines = []
        for kind, each in told.items():
            about = listed([*dict.fromkeys(name for _, name in each if name)], 3)
            cells = number_of(len({cell for cell, _ in each}), "finished cell")
            lines.append(f"{kind}{about and f' ({about})'}: {cells}")
        return [*lines, *filter(None, [changed])]

    def _missing(self, held: Mapping[str, Mapping[Held, int]]) -> list[tuple[str, Missing]]:
        """All that is missing, with the keys of cells."""
        return [
            (key, part)
            for key, cell in self._cells.items()
            for part in missing(cell, held.get(key, {}), partial(self.store.gammas, key))
        ]

    def play(self, executor: "Executor | None" = None) -> list[tuple[Cell, OnlinecalError]]:
        """Computes what is missing from kept level sets, and plays the rest; each cell is put away at once.

        Returns those that could not be played, and why. The executor is within its context; default this process.
        """
        held, failed = self.store.held(), dict[str, OnlinecalError]()
        todo = self._missing(held)

        def fail(key: str, why: OnlinecalError) -> None:
            if failed.setdefault(key, why) is why:
                self.store.fail(key, str(why))

        computed = [(key, part) for key, part in todo if part.kept]
        with Progress(sum(part.cell.work for _, part in computed)) as progress:
            for key, part in computed:
                cell = part.cell
                progress.describe(
                    f"{cell.forecaster.label} vs {cell.nature.label}, T = {cell.horizon:,}, from Γ"
                )
                try:
                    if key not in failed:
                        # Under the contents of the plan: a measure that is called may change what it holds.
                        own, told = self._cells[key].held, part.computed(self.store.gammas(key))
                        columns = {own.get(h.column, h): totals for h, totals in told.items()}
                        self.store.add_columns(key, columns, cell.first)
                except StoreError:
                    raise
                except (Exception, SystemExit) as error:  # measures may be any code
                    fail(key, fault(error))
                progress.advance(cell.work)
        # Measures that fail on Γ that is kept would fail again where it is played.
        rest = {id(part.cell): (key, part.cell) for key, part in todo if not part.kept and key not in failed}
        left, batches = Counter(key for key, _ in rest.values()), defaultdict[str, list[Batch]](list)
        with Progress(sum(cell.work for _, cell in rest.values())) as progress:
            for cell, found in play_cells(
                [cell for _, cell in rest.values()], progress, executor or Serial()
            ):
                key, _ = rest[id(cell)]
                if isinstance(found, OnlinecalError):
                    fail(key, found)
                    continue
                batches[key].append(found)
                if len(batches[key]) == left[key]:
                    self._put(self._cells[key], batches.pop(key))
        if not failed:
            self.store.forget((held.keys() | self.store.failures().keys()) - self._cells.keys())
        return [(self._cells[key], why) for key, why in failed.items()]

    def _put(self, cell: Cell, batches: list[Batch]) -> None:
        """Puts the parts of a cell away; key and contents are those of before the game."""
        for batch in sorted(batches, key=lambda batch: batch.first):
            totals = {cell.held.get(c) or Held.of(c, {}): totals for c, totals in batch.totals.items()}
            self.store.add(cell.key, cell.content, batch._replace(totals=totals))


def _in_words(path: tuple[str, ...]) -> str:
    """Where two contents differ: ``forecaster: source of own``."""
    part, *rest = path or ("content",)
    if "source" in rest:
        rest = [f"source of {rest[-1]}"]
    inner = " ".join(key for key in rest if key not in ("parameters", "options", "what", "state", "make"))
    return f"{part}: {inner}" if inner else part
