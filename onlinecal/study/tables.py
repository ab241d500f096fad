"""The tables of games in a results file: columns, contents, numbers, level sets; `schema` says what is in them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from onlinecal.core.columns import Held, read_column, written
from onlinecal.core.content import digest
from onlinecal.core.errors import StoreError
from onlinecal.study.database import Database
from onlinecal.study.entries import GAME, Numbers
from onlinecal.study.gammas import Parts, apart

_ROW = f"SELECT {', '.join(GAME)} FROM games"
#: the errors of reading what something else has changed
CHANGED = (TypeError, ValueError, KeyError, AttributeError, RecursionError)


class Tables:
    """Reads and writes games, each method in a transaction or in a part of one."""

    def __init__(self, database: Database) -> None:
        self.path = database.path
        self._db = database

    # ---------------------------------------------------------------- columns and contents

    def _columns(self) -> dict[int, Held]:
        """Those that can be read, by their ids."""
        rows = self._db.run('SELECT id, "column", content FROM columns')
        read = ((number, read_column(text), content) for number, text, content in rows)
        return {number: Held(column, content) for number, column, content in read if column is not None}

    def _put_columns(self, columns: Iterable[Held]) -> dict[Held, int]:
        """Adds those that are not there; the id of each."""
        there = {held: number for number, held in self._columns().items()}
        new = [held for held in dict.fromkeys(columns) if held not in there]
        self._db.run_many(
            'INSERT INTO columns (key, name, "column", content) VALUES (?, ?, ?, ?) ON CONFLICT (key) DO UPDATE SET '
            'name = excluded.name, "column" = excluded."column", content = excluded.content',
            [(held.key, held.column.name, written(held.column), held.content) for held in new],
        )
        return {held: number for number, held in self._columns().items()} if new else there

    def _put_content(self, content: Mapping[str, Any]) -> str:
        """Adds the parts of a content that are no single number or text; the text that refers to them."""
        short = dict(content)
        for name, value in content.items():
            if isinstance(value, dict | list):
                text = json.dumps(value, sort_keys=True)
                mark = digest(text)
                self._db.run(
                    "INSERT INTO parts (digest, text) VALUES (?, ?) ON CONFLICT (digest) DO UPDATE SET text = "
                    "excluded.text",
                    (mark, text),
                )
                (number,) = self._db.run("SELECT id FROM parts WHERE digest = ?", (mark,)).fetchone()
                short[name] = {"#": number}
        return json.dumps(short, sort_keys=True)

    def contents(self, keys: Collection[str]) -> dict[str, Any]:
        """Key → content of the rounds, of those of these keys that are as they were put there."""
        found: dict[str, Any] = {}
        parts: dict[Any, Any] = {}  # most games have some in common
        with self._db.reading():
            texts = dict(self._db.run("SELECT id, text FROM parts"))
            for key, text in self._db.run("SELECT key, content FROM games"):
                if key not in keys:
                    continue
                try:
                    content = json.loads(text)
                    for name, value in content.items():
                        if isinstance(value, dict):
                            number = value["#"]
                            if number not in parts:
                                parts[number] = json.loads(texts[number])
                            content[name] = parts[number]
                    if digest(content) == key:
                        found[key] = content
                except CHANGED:
                    continue  # `damaged` has it
        return found

    # ---------------------------------------------------------------- games

    def numbers(self, key: str) -> Numbers | None:
        """The numbers under a key; None for none, or others than were put there."""
        with self._db.reading():
            row = self._db.run(f"{_ROW} WHERE key = ?", (key,)).fetchone()
            return None if row is None else Numbers.read(row, self._columns())

    def _all_numbers(self, keys: Collection[str] | None = None) -> Iterator[tuple[str, Numbers | None]]:
        """The numbers of each game, or of these; None where they are others than were put there."""
        columns = self._columns()
        for row in self._db.run(_ROW):
            if keys is None or row[0] in keys:
                yield row[0], Numbers.read(row, columns)

    def damaged(self) -> set[str]:
        """Keys of games whose numbers are others than were put there."""
        with self._db.reading():
            return {key for key, numbers in self._all_numbers() if numbers is None}

    def put(self, key: str, numbers: Numbers) -> None:
        """Puts the numbers of a game in place of those before; they can be played after all."""
        with self._db.transaction():
            row = numbers.row(key, self._put_columns(numbers.totals))
            changed = ", ".join(f"{name} = excluded.{name}" for name in GAME[1:])
            self._db.run(
                f"INSERT INTO games ({', '.join(GAME)}) VALUES ({', '.join('?' * len(GAME))}) "
                f"ON CONFLICT (key) DO UPDATE SET {changed}",
                row,
            )
            self._db.run("DELETE FROM failed WHERE key = ?", (key,))

    def insert(self, key: str, content: Mapping[str, Any], numbers: Numbers, gammas: Parts) -> None:
        """Puts a game with its level sets in place of what is there."""
        with self._db.transaction():
            self.put(key, numbers._replace(content=self._put_content(content)))
            self._put_gammas(key, gammas)

    # ---------------------------------------------------------------- level sets

    def gammas(self, key: str, whose: str = "") -> Parts:
        """The packed level sets of a game, each run in one part.

        Parts with another checksum are left out; where `whose` names the game they are an error.
        """
        with self._db.reading():
            good, bad = self._gammas(key)
        if bad and whose:
            raise StoreError(
                f"{self.path}: something else has changed the level sets of {whose}; a measure that is added to the "
                "scenario is played again with --resume, and they with it"
            )
        return apart(good)

    def _gammas(self, key: str) -> tuple[list[tuple[int, bytes]], list[tuple[int]]]:
        """The parts that are as they were put there, and the rows of the others."""
        good, bad = [], []
        for row, first, packed, seal in self._db.run(
            "SELECT gammas.rowid, first, packed, gammas.seal FROM gammas JOIN games ON games.id = game WHERE key = ? "
            "ORDER BY first",
            (key,),
        ):
            if seal == _gammas_seal(key, first, packed):
                good.append((first, packed))
            else:
                bad.append((row,))
        return good, bad

    def _put_gammas(self, key: str, parts: Parts) -> None:
        """Adds those runs of which nothing is kept, or not exactly and here it is."""
        there, bad = self._gammas(key)
        self._db.run_many("DELETE FROM gammas WHERE rowid = ?", bad)
        wanted = apart([*there, *parts])
        game = "game IN (SELECT id FROM games WHERE key = ?)"
        gone = [(key, first) for first, packed in there if (first, packed) not in wanted]
        self._db.run_many(f"DELETE FROM gammas WHERE {game} AND first = ?", gone)
        self._db.run_many(
            "INSERT INTO gammas SELECT id, ?, ?, ? FROM games WHERE key = ?",
            [
                (first, packed, _gammas_seal(key, first, packed), key)
                for first, packed in wanted
                if (first, packed) not in there
            ],
        )


def _gammas_seal(key: str, first: Any, packed: Any) -> str:
    state = hashlib.sha256(repr((key, first)).encode())
    state.update(packed if isinstance(packed, bytes) else repr(packed).encode(errors="replace"))
    return state.hexdigest()[:32]
