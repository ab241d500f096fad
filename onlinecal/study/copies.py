"""Results written into new files: a study that was played in Python, and several files as one."""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

import onlinecal
from onlinecal.core.columns import Held
from onlinecal.core.content import differences, digest
from onlinecal.core.errors import InvalidParameter, StoreError
from onlinecal.core.writing import EXISTS
from onlinecal.study.entries import Planned
from onlinecal.study.lock import writing
from onlinecal.study.played import Batch, Played
from onlinecal.study.store import Store


def save(cells: Sequence[Played], path: Path, name: str, title: str, *, overwrite: bool = False) -> None:
    """Writes cells into a file of their own, with the level sets that are kept."""
    if not cells:
        raise InvalidParameter("the study has no cells; expected at least one to save")
    plan: list[Planned] = []
    games: dict[str, tuple[Mapping[str, Any], Batch]] = {}
    for cell in cells:
        if cell.origin is None:
            raise InvalidParameter(
                f"{cell.forecaster!r} against {cell.nature!r}: it cannot be told what these numbers depend on, so they "
                "cannot be kept; expected players and measures whose parameters and source can be read"
            )
        told, game = cell.origin.columns, cell.origin.game
        held = {told.get(c) or Held.of(c, {}): cell.totals[c.name] for c in cell.columns}
        key = digest(game)
        labels = cell.forecaster, *(cell.schedule if cell.schedule[0] else (cell.nature, ""))
        columns = tuple(h for h in held if h.column.kind != "certificate")
        said = cell.horizon, cell.runs, cell.recorded, cell.sight, cell.promises, columns, cell.steps
        plan.append(Planned._make((key, *labels, *said)))
        if key not in games:
            numbers = cell.rounds, held, cell.loop, cell.open, cell.seconds, cell.people, cell.gammas.groups
            games[key] = game, Batch(0, *numbers)
    meta = {"name": name, "title": title, "scenario": "", "version": onlinecal.__version__}
    if cells[0].people is not None:
        meta["people"] = json.dumps(cells[0].people.labels)

    def fill(store: Store) -> None:
        store.put_plan(meta, plan)
        for key, game in games.items():
            store.add(key, *game)

    _write(path, fill, overwrite)


def _write(path: Path, fill: Callable[[Store], None], overwrite: bool) -> None:
    with writing(path):
        if not overwrite and path.exists() and path.stat().st_size:
            raise StoreError(f"{path} {EXISTS}")
        Store.create(path, fill)


def merge(paths: Sequence[Path], output: Path, *, overwrite: bool = False) -> list[str]:
    """Writes several files into a new one; contradictions are refused, other differences are the remarks returned."""
    if len(paths) < 2:
        raise StoreError("one results file is nothing to merge; expected at least two")
    for path in paths:
        if output.exists() and path.exists() and output.samefile(path):
            raise StoreError(f"{output} is one of the files that are merged; expected another output")
    remarks: list[str] = []
    with ExitStack() as stack:
        stores = [stack.enter_context(Store.open(path)) for path in paths]

        def fill(new: Store) -> None:
            meta, cells = _meta(stores, remarks), _cells(stores)
            games = [store.runs() for store in stores]
            for i, store in enumerate(stores):
                for game in store.games():
                    _add(new, store, *game, [stores[j] for j in range(i) if game[0] in games[j]])
            held = new.held()
            new.put_plan(meta, [_shown(*rows, held.get(rows[0][0].key, {}), remarks) for rows in cells])

        _write(output, fill, overwrite)
    return remarks


def _meta(stores: Sequence[Store], remarks: list[str]) -> dict[str, str]:
    """The meta data of the first file; damaged files and other decision makers are refused."""
    first, meta = stores[0].path, stores[0].meta
    for store in stores:
        store.check()
        path, own = store.path, store.meta
        if own.get("version") != meta.get("version"):
            remarks.append(f"{path} is of onlinecal {own.get('version')}, {first} of {meta.get('version')}")
        if any(own.get(key) != meta.get(key) for key in ("scenario", "options")):
            remarks.append(f"{path} has another scenario; that of {first} is kept")
            meta.pop("command", None)  # it would not play all cells
        if "people" in own and meta.setdefault("people", own["people"]) != own["people"]:
            raise StoreError(f"{path}: its decision makers have other labels than those of {first}")
    return meta


def _cells(stores: Sequence[Store]) -> list[tuple[list[Planned], list[Planned]]]:
    """The cells of the same labels, all and finished ones; another game or column is refused."""
    found: dict[tuple[Any, ...], list[Planned]] = {}
    done: set[tuple[str, int]] = set()
    for store in stores:
        done |= {(cell.key, cell.runs) for cell in store.finished()}
        for cell in store.plan():
            rows = found.setdefault(cell[1:5], [])
            if rows and rows[0].key != cell.key:
                each = ([s.content(key) for s in stores] for key in (rows[0].key, cell.key))
                old, new = (next(filter(None, contents), None) for contents in each)
                why = ", ".join(".".join(path) for path in differences(old, new) if path)
                raise StoreError(
                    f"{cell} is another game in {store.path} than in a file before it{why and f' ({why})'}; expected "
                    "other labels, or files of one scenario"
                )
            names = {held.column.name: held for row in rows for held in row.columns}
            for held in cell.columns:
                if names.get(held.column.name, held) != held:
                    raise StoreError(
                        f"{cell}: {held.column.name} is something else in {store.path} than in a file before it "
                        "(another version, or another source); measure one of them again"
                    )
            rows.append(cell)
    return [(rows, [row for row in rows if (row.key, row.runs) in done]) for rows in found.values()]


def _add(new: Store, store: Store, key: str, content: str, numbers: Batch, before: Sequence[Store]) -> None:
    """Puts a game beside the runs and columns that are there; contradictions are refused."""
    old = new.numbers(key) if before else None
    if old is not None and (where := _contradiction(old, numbers)):
        name = next((str(cell) for cell in store.plan() if cell.key == key), key)
        raise StoreError(
            f"{name}: {before[0].path} and {store.path} contradict each other in {where}; expected the same numbers of "
            "the same game; play one of them again"
        )
    # Seconds are added to those that are there: of the file that took longer.
    seconds = max(0.0, numbers.seconds - (0.0 if old is None else old.seconds))
    new.add(key, json.loads(content), numbers._replace(seconds=seconds, gammas=store.gammas(key)))


def _shown(
    rows: Sequence[Planned], finished: Sequence[Planned], held: Mapping[Held, int], remarks: list[str]
) -> Planned:
    """One cell of several of the same labels."""
    runs = max(row.runs for row in finished or rows)
    columns = list(dict.fromkeys(held for row in rows for held in row.columns))
    promises = tuple(dict.fromkeys(p for row in rows for p in row.promises))
    late = [h for h in columns if held.get(h, 0) < runs] if finished else []
    if late:
        names = ", ".join(h.column.name for h in late)
        remarks.append(f"{rows[0]}: not shown, since not in all {runs} runs: {names}")
    shown = tuple(h for h in columns if h not in late)
    return rows[0]._replace(runs=runs, columns=shown, promises=promises)


def _contradiction(one: Batch, other: Batch) -> str:
    """Where two batches of one game differ in the runs and columns that both have; "" for nowhere."""
    if not np.array_equal(one.rounds, other.rounds):
        return "their checkpoints"
    if one.open != other.open and "simpy" not in (one.loop, other.loop):  # in a world each run has its own
        return "open questions"
    for held in (held for held in one.totals if held in other.totals):
        shared = min(one.totals[held].shape[1], other.totals[held].shape[1])
        old, new = (each.totals[held][:, :shared] for each in (one, other))
        if old.tobytes() != new.tobytes():
            return f"{held.column.name} of run {int(np.argmax((old != new).any(axis=0)))}"
    if one.people is not None and other.people is not None:
        shared = min(one.people.cdl.shape[1], other.people.cdl.shape[1])
        if one.people.of_runs(shared, ()) != other.people.of_runs(shared, ()):
            return "the accounts of decision makers"
    return ""
