"""A results file: the plan and what was played, put away and found again; `database` says what is in it."""

import json
import shlex
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import astuple
from datetime import datetime
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

from onlinecal.core.columns import Held, read_column, written
from onlinecal.core.errors import StoreError, failure
from onlinecal.core.guarantee import Sight
from onlinecal.core.progress import Progress
from onlinecal.study.database import Database
from onlinecal.study.entries import GAME, Planned, game_row, numbers_of, total_rows
from onlinecal.study.gammas import Gammas, Group
from onlinecal.study.played import Batch, Floats, Origin, Played, Promise, together


class Store(Database):
    """An open results file; a transaction that fails leaves it as it was."""

    @property
    def meta(self) -> dict[str, str]:
        """Name, title, text of the scenario and version."""
        return dict(self.run("SELECT key, value FROM meta"))

    @property
    def go_on(self) -> str:
        """The whole command that plays what is left; SCENARIO stands for one that the file does not tell."""
        meta = self.meta
        default = Path("results") / f"{meta.get('name')}.db"  # as `onlinecal run` has it
        output = [] if self.path == default else ["--output", shlex.quote(str(self.path))]
        return " ".join(["onlinecal run", meta.get("command", "SCENARIO"), *output, "--resume"])

    def put_plan(self, meta: Mapping[str, str], plan: Sequence[Planned]) -> None:
        """Puts a plan and what the file says of itself in place of those before; what was played stays."""
        rows = []
        for place, cell in enumerate(plan):
            promises = json.dumps([astuple(promise) for promise in cell.promises])
            columns = json.dumps([held.key for held in cell.columns])
            rows.append((place, *cell[:7], int(cell.sight), promises, columns, cell.steps))
        with self.transaction():
            self._put_columns(dict.fromkeys(held for cell in plan for held in cell.columns))
            self.run("DELETE FROM meta")
            self.run_many("INSERT INTO meta VALUES (?, ?)", meta.items())
            self.run("DELETE FROM cells")
            self.run_many(f"INSERT INTO cells VALUES ({', '.join('?' * 12)})", rows)

    def plan(self) -> list[Planned]:
        """The cells that are to be shown, in their order."""
        with _understood(self.path):
            known = self._columns()

            @cache  # most cells have the same
            def columns(text: str) -> tuple[Held, ...]:
                return tuple(known[key] for key in json.loads(text))

            found = []
            for _, *said, recorded, sight, promises, keys, steps in self.run(
                "SELECT * FROM cells ORDER BY place"
            ):
                bounds = tuple(Promise(*each) for each in json.loads(promises))
                found.append(
                    Planned._make((*said, bool(recorded), Sight(sight), bounds, columns(keys), steps))
                )
            return found

    def _columns(self) -> dict[str, Held]:
        """All of them, by their keys."""
        return {row[0]: _held(*row) for row in self.run('SELECT key, "column", content FROM columns')}

    def _put_columns(self, columns: Iterable[Held]) -> None:
        rows = ((h.key, h.column.name, written(h.column), h.content) for h in columns)
        self.run_many("INSERT OR REPLACE INTO columns VALUES (?, ?, ?, ?)", rows)

    def held(self) -> dict[str, dict[Held, int]]:
        """Of everything that was played: key → column → how many runs."""
        with _understood(self.path):
            columns = self._columns()

            @cache  # most games have the same
            def read(text: str) -> dict[Held, int]:
                return {columns[of]: runs for of, runs in json.loads(text)}

            return {key: read(text) for key, text in self.run("SELECT key, held FROM games")}

    def runs(self) -> dict[str, int]:
        """Of everything that was played, planned or not: key → how many runs."""
        return {key: max(held.values()) for key, held in self.held().items() if held}

    def finished(self, plan: Sequence[Planned] | None = None) -> list[Planned]:
        """The cells of a plan (default its own) that have been played in all their runs, with all their columns."""
        held, none = self.held(), dict[Held, int]()
        own = self.plan() if plan is None else plan
        return [cell for cell in own if cell.done(held.get(cell.key, none)) >= cell.runs]

    def insist(self) -> None:
        """Refuses a file without finished cells."""
        if not self.finished():
            raise StoreError(f"{self.path} has no finished cells yet; go on with: {self.go_on}")

    def content(self, key: str) -> Any:
        """The content of the rounds under a key; None for none."""
        rows = self.run("SELECT content FROM games WHERE key = ?", (key,))
        return json.loads(rows[0][0]) if rows else None

    def numbers(self, key: str) -> Batch | None:
        """The numbers under a key; None for none."""
        return next((numbers for *_, numbers in self.games("WHERE key = ?", key)), None)

    def games(self, where: str = "", *values: str) -> Iterator[tuple[str, str, Batch]]:
        """Key, content and numbers of games."""
        rows = self.run(f"SELECT id, {', '.join(GAME)} FROM games {where}", values)
        columns = self._columns() if rows else {}
        order = 'SELECT total FROM totals WHERE game = ? ORDER BY "column", round, run'
        with Progress(len(rows), unit="games") as progress:
            for game, *row in rows:
                with _understood(self.path):
                    numbers = numbers_of(row, self.run(order, (game,)), columns)
                yield row[0], row[1], numbers
                progress.advance(1)

    def add(self, key: str, content: Mapping[str, Any], batch: Batch) -> None:
        """Puts numbers of `Held` columns beside those of the same game, which can be played after all.

        The runs that are there stay.
        """
        with self.transaction():
            old, kept = self.numbers(key), self.gammas(key) if batch.gammas else ()
            # Without numbers the first run must be among the new ones.
            old = batch._replace(totals={}, first=0, seconds=0.0, people=None) if old is None else old
            numbers = together([old._replace(gammas=kept), batch])
            self._put_columns(numbers.totals)
            changed = ", ".join(f"{name} = excluded.{name}" for name in GAME[1:])
            ((game,),) = self.run(
                f"INSERT INTO games ({', '.join(GAME)}) VALUES ({', '.join('?' * len(GAME))}) "
                f"ON CONFLICT (key) DO UPDATE SET {changed} RETURNING id",
                game_row(key, json.dumps(content, sort_keys=True), numbers),
            )
            self.run("DELETE FROM totals WHERE game = ?", (game,))
            self.run_many("INSERT INTO totals VALUES (?, ?, ?, ?, ?)", total_rows(game, numbers))
            self.run("DELETE FROM failed WHERE key = ?", (key,))
            if numbers.gammas != kept:
                self.run("DELETE FROM gammas WHERE game = ?", (game,))
                for place, (first, whole, files) in enumerate(numbers.gammas):
                    rows = ((game, place, part, first, whole, file) for part, file in enumerate(files))
                    self.run_many("INSERT INTO gammas VALUES (?, ?, ?, ?, ?, ?)", rows)

    def add_columns(self, key: str, columns: Mapping[Held, Floats], first: int = 0) -> None:
        """Puts further runs, from `first` on, of columns that were computed from Γ beside those of the same game."""
        with self.transaction():
            old = self.numbers(key)
            if old is None:
                raise StoreError(f"{self.path}: something else has deleted a game; go on with --resume")
            new = old._replace(first=first, totals=columns, seconds=0.0, people=None)
            self.add(key, self.content(key), new)

    def forget(self, keys: Collection[str]) -> None:
        """Deletes the games of these keys."""
        if not keys:
            return
        with self.transaction():
            each = [(key,) for key in keys]
            for table in ("gammas", "totals"):
                self.run_many(f"DELETE FROM {table} WHERE game IN (SELECT id FROM games WHERE key = ?)", each)
            self.run_many("DELETE FROM games WHERE key = ?", each)
            self.run_many("DELETE FROM failed WHERE key = ?", each)

    def gammas(self, key: str, whose: str = "") -> tuple[Group, ...]:
        """The level sets of a game; those that something else has changed are an error if `whose` names the game."""
        rows = self.run(
            "SELECT place, first, whole, arrays FROM gammas JOIN games ON games.id = game WHERE key = ? "
            "ORDER BY place, part",
            (key,),
        )
        files: dict[tuple[int, int, bytes], list[bytes]] = {}
        for *said, file in rows:
            files.setdefault(tuple(said), []).append(file)
        groups = [Group(first, whole, tuple(parts)) for (_, first, whole), parts in files.items()]
        sound = tuple(group for group in groups if group.sound())
        if whose and len(sound) < len(groups):
            raise StoreError(
                f"{self.path}: something else has changed the level sets of {whose}; a measure that is added to the "
                "scenario is played again with --resume, and they with it"
            )
        return sound

    def fail(self, key: str, error: str) -> None:
        """Writes down why a game could not be played; what of it was played before stays."""
        at = f"{datetime.now().astimezone():%Y-%m-%d %H:%M:%S %z}"
        with self.transaction():
            self.run("INSERT OR REPLACE INTO failed VALUES (?, ?, ?)", (key, error, at))

    def failures(self) -> dict[str, tuple[str, str]]:
        """Of everything that could not be played: key → why, and when it was last tried."""
        return {key: (error, at) for key, error, at in self.run("SELECT key, error, at FROM failed")}

    def cells(self, plan: Sequence[Planned] | None = None) -> tuple[Played, ...]:
        """All finished cells of a plan (default its own), in its order."""
        finished, labels = self.finished(plan), tuple(json.loads(self.meta.get("people", "[]")))
        wanted = {cell.key for cell in finished}
        games = {key: (text, numbers) for key, text, numbers in self.games() if key in wanted}
        return tuple(self._cell(planned, *games[planned.key], labels) for planned in finished)

    def _cell(self, planned: Planned, content: str, numbers: Batch, labels: tuple[str, ...]) -> Played:
        # In the order in which they were asked for, and after them what players certify.
        certified = (h for h, t in numbers.totals.items() if _certifies(h) and t.shape[1] >= planned.runs)
        columns = (*planned.columns, *certified)
        return planned.result(
            {h.column: numbers.totals[h][:, : planned.runs] for h in columns},
            numbers._replace(people=numbers.people and numbers.people.of_runs(planned.runs, labels)),
            Gammas(partial(_read_gammas, self.path, planned.key, str(planned))),
            Origin(content, {held.column: held for held in columns}),
        )


def _read_gammas(path: Path, key: str, whose: str) -> tuple[Group, ...]:
    """The level sets of a game in a results file, read when they are asked for."""
    with Store.open(path) as store:
        return store.gammas(key, whose)


@contextmanager
def _understood(path: Path) -> Iterator[None]:
    """Raises StoreError where rows are not as they are put there."""
    try:
        yield
    except (TypeError, ValueError, LookupError, AttributeError, EOFError, BadZipFile, zlib.error) as error:
        raise StoreError(
            f"{path}: something else has changed it ({failure(error)}); "
            "`onlinecal run SCENARIO --overwrite` replaces it"
        ) from error


@lru_cache(1024)
def _held(key: str, text: str, content: str) -> Held:
    """A column that was put into a file."""
    column = read_column(text)
    if column is None:
        raise ValueError(f"{text} is no column")
    return Held(column, content)


def _certifies(held: Held) -> bool:
    return held.column.kind == "certificate"
