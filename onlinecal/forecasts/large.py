"""Files of forecasts that are larger than memory: DuckDB groups their rows by prediction and outcome, which gives Γ.

Nothing here knows single rows: what needs their order, or pairs them, is found by sums or refused.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from onlinecal.core.errors import InvalidData, InvalidParameter
from onlinecal.core.joint import JointDistribution
from onlinecal.engine.memory import free_memory
from onlinecal.forecasts.cells import EMPTY, as_number
from onlinecal.forecasts.measuring import GROUPS, Report, Settings
from onlinecal.forecasts.reading import Asked, columns_of
from onlinecal.forecasts.sheet import Sheet
from onlinecal.forecasts.sums import Facts, Pair, Sums, report_of_sums
from onlinecal.study.run import cores

#: rows that are looked at to guess columns
HEAD = 1000
# Of memory that is free, what the engine may take, and at most.
_SHARE, _MOST = 0.4, 1.2 * 2**30


def large_report(source: str, asked: Asked, settings: Settings, delimiter: str | None = None) -> Report:
    """The report of a file that is read in parts.

    Parameters
    ----------
    source : str
        A CSV file in UTF-8 or a Parquet file.
    asked : Asked
        Without a column of times or of weights.
    settings : Settings
    delimiter : str, optional

    Raises
    ------
    InvalidParameter
        Times or weights, which need rows one by one.
    InvalidData
        As `read_log`, without lines; DuckDB is not installed.
    """
    with engine_of(source) as engine:
        question = question_of(source, asked, settings, delimiter)
        piece = Piece(engine, question, question.table(question.path))
        facts = piece.facts()
        said = facts.judged(question)
        return report_of_sums(question, facts, piece.sums(facts.moved(settings)), settings, said)


@contextmanager
def engine_of(source: str) -> Iterator[Any]:
    """DuckDB, with as much memory as it may take; what it says is of this file."""
    try:
        import duckdb
    except ImportError:
        raise InvalidData(
            f"{source} is too large for memory, and what reads it in parts is not installed; install duckdb "
            "(onlinecal's extra 'large')"
        ) from None
    with tempfile.TemporaryDirectory(prefix="onlinecal-") as folder, duckdb.connect(":memory:") as engine:
        limit = max(min(_SHARE * free_memory(), _MOST), 2**27)
        engine.execute(f"SET memory_limit = '{int(limit)}B'")
        engine.execute(f"SET threads = {cores()}")
        engine.execute("SET preserve_insertion_order = false")
        engine.execute("SET autoinstall_known_extensions = false")
        engine.execute("SET enable_progress_bar = false")
        engine.execute(f"SET temp_directory = '{folder}'")
        try:
            yield engine
        except duckdb.Error as error:
            said = " ".join(str(error).split())[:300]
            raise InvalidData(f"{source} cannot be read in parts: {said}") from None


@dataclass(frozen=True)
class Question:
    """What is asked of a file.

    Attributes
    ----------
    source, path : str
        The file as it was named, and where it is.
    asked : Asked
    forecasts : tuple of str
    outcome : str
    said : tuple of str
        What was guessed.
    place : dict of str to str
        The columns as SQL.
    delimiter : str
        Of CSV; "" of Parquet.
    distinct, grid : int
        As in `Settings`.
    """

    source: str
    path: str
    asked: Asked
    forecasts: tuple[str, ...]
    outcome: str
    said: tuple[str, ...]
    place: dict[str, str]
    delimiter: str
    distinct: int
    grid: int

    @property
    def parquet(self) -> bool:
        """Whether it is asked of a Parquet file."""
        return not self.delimiter

    def table(self, path: str) -> str:
        """A file with these columns, as SQL."""
        path = str(Path(path).expanduser())
        if self.parquet:
            return f"read_parquet({_text(path)})"
        kinds = ", ".join(f"{_text(name)}: 'VARCHAR'" for name in self.place.values())
        return (
            f"read_csv({_text(path)}, header = true, auto_detect = false, quote = '\"', escape = '\"', "
            f"delim = {_text(self.delimiter)}, columns = {{{kinds}}})"
        )


def question_of(source: str, asked: Asked, settings: Settings, delimiter: str | None) -> Question:
    """What is asked, by the first rows of the file.

    Raises
    ------
    InvalidParameter, InvalidData
        As `large_report`.
    """
    for what, given in (("--time", asked.time), ("--weight", asked.weight)):
        if given is not None:
            raise InvalidParameter(
                f"{what} with {source}, which is read in parts, row by row no more; expected none"
            )
    path = Path(source).expanduser()
    if not path.is_file():
        raise InvalidData(f"{source}: no such file")
    if path.suffix.lower() in (".parquet", ".pq"):
        with engine_of(source) as engine:
            rows = engine.execute(f"SELECT * FROM read_parquet({_text(str(path))}) LIMIT {HEAD}").df()
        head = Sheet.of_frame(source, rows)
        place = {name: _name(name) for name in head.columns}
    else:
        head = Sheet(source, delimiter=delimiter, most=HEAD)
        # Of two columns of one name none is asked for.
        place = {
            f"{name}\n{i}" if head.columns.count(name) > 1 else name: f"c{i}"
            for i, name in enumerate(head.columns)
        }
    forecasts, outcome, said = columns_of(head, asked)
    said.append(
        "the file is read in parts: copies of rows and dependence between neighbouring ones are not looked for"
    )
    return Question(
        source,
        str(path.absolute()),
        asked,
        tuple(forecasts),
        outcome,
        tuple(said),
        place,
        head.delimiter,
        settings.distinct,
        settings.grid,
    )


class Piece:
    """Some of the rows of a file, or all, as a query.

    Parameters
    ----------
    engine : duckdb.DuckDBPyConnection
    question : Question
    table : str
        The rows, as SQL.
    """

    def __init__(self, engine: Any, question: Question, table: str) -> None:
        self.engine, self.question, self.table = engine, question, table
        self.asked, self.parquet, self.place = question.asked, question.parquet, question.place
        self.forecasts, self.outcome = question.forecasts, question.outcome

    # ------------------------------------------------------------ queries

    def number(self, name: str) -> str:
        """A forecast as SQL."""
        place = self.place[name]
        value = f"CAST({place} AS DOUBLE)" if self.parquet else f"TRY_CAST(trim({place}) AS DOUBLE)"
        return f"(CASE WHEN isfinite({value}) THEN {value} END{' / 100.0' if self.asked.percent else ''})"

    def event(self) -> str:
        """The outcome as SQL: 0, 1 or NULL."""
        word = f"lower(trim(CAST({self.place[self.outcome]} AS VARCHAR)))"
        if self.asked.positive is not None:
            wanted = self.asked.positive.strip().lower()
            same = f"{word} = {_text(wanted)}"
            if (value := as_number(wanted)[0]) is not None and math.isfinite(value):
                same += f" OR coalesce(TRY_CAST({word} AS DOUBLE) = {value!r}, false)"
            return f"(CASE WHEN {self.nothing(self.outcome)} THEN NULL WHEN {same} THEN 1 ELSE 0 END)"
        return (
            f"(CASE WHEN {word} IN ('true') OR TRY_CAST({word} AS DOUBLE) = 1 THEN 1 "
            f"WHEN {word} IN ('false') OR TRY_CAST({word} AS DOUBLE) = 0 THEN 0 END)"
        )

    def nothing(self, name: str) -> str:
        """Whether a cell is empty, as SQL."""
        place = self.place[name]
        words = ", ".join(map(_text, sorted(EMPTY)))
        return f"({place} IS NULL OR lower(trim(CAST({place} AS VARCHAR))) IN ({words}))"

    @property
    def rows(self) -> str:
        """The rows that count, as SQL: forecasts p0, p1, …, the outcome y, and the group g."""
        columns = [f"{self.number(name)} AS p{i}" for i, name in enumerate(self.forecasts)]
        columns.append(f"{self.event()} AS y")
        if self.asked.by is not None:
            columns.append(f"coalesce(trim(CAST({self.place[self.asked.by]} AS VARCHAR)), '') AS g")
        kept = " AND ".join([f"p{i} IS NOT NULL" for i in range(len(self.forecasts))] + ["y IS NOT NULL"])
        return f"(SELECT * FROM (SELECT {', '.join(columns)} FROM {self.table}) WHERE {kept})"

    def one(self, query: str) -> tuple[Any, ...]:
        """The only row of an answer."""
        return tuple(self.engine.execute(query).fetchone())

    # ------------------------------------------------------------ what is found

    def facts(self) -> Facts:
        """What decides whether the rows can be measured, and how."""
        questions = ["count(*)"]
        for name in (*self.forecasts, self.outcome):
            value = self.event() if name == self.outcome else self.number(name)
            empty = self.nothing(name)
            questions += [
                f"count(*) FILTER (WHERE {empty})",
                f"any_value(CAST({self.place[name]} AS VARCHAR)) FILTER (WHERE {value} IS NULL AND NOT {empty})",
                f"any_value({value}) FILTER (WHERE {value} < 0 OR {value} > 1)",
            ]
        questions.append(f"coalesce(sum({self.event()}), 0)")
        total, *found, ones = self.one(f"SELECT {', '.join(questions)} FROM {self.table}")
        cells = tuple(zip(found[::3], found[1::3], found[2::3], strict=True))
        rows = total
        if any(empty for empty, _, _ in cells):
            rows = self.one(f"SELECT count(*) FROM {self.rows}")[0]
        return Facts(
            int(total), int(rows), int(ones), cells, tuple(map(self.different, range(len(self.forecasts))))
        )

    def different(self, i: int) -> Any:
        """The different forecasts of a column, if they are not too many."""
        most = self.question.distinct
        # A list of all would take memory for each of them: first it is seen that there are not far too many, by an
        # estimate that is a few per cent off at most.
        if self.one(f"SELECT approx_count_distinct(p{i}) FROM {self.rows}")[0] > 2 * most:
            return None
        query = f"SELECT DISTINCT p{i} AS v FROM {self.rows} LIMIT {most + 1}"
        found = self.engine.execute(query).fetchnumpy()["v"]
        return None if len(found) > most else np.sort(np.asarray(found, dtype=np.float64))

    def sums(self, moved: tuple[bool, ...]) -> Sums:
        """What the report is made of; `moved` says which columns go to the grid."""
        gammas, distances, groups = [], [], list[dict[str, JointDistribution | None]]()
        for i, on_grid in enumerate(moved):
            v = (
                f"round_even(p{i} * {self.question.grid}.0, 0) / {self.question.grid}.0"
                if on_grid
                else f"p{i}"
            )
            answer = self.engine.execute(
                f"SELECT {v} AS v, count(*) AS n, sum(y) AS s, sum(abs(p{i} - {v})) AS d FROM {self.rows} GROUP BY 1"
            ).fetchnumpy()
            gammas.append(_gamma(answer))
            distances.append(float(answer["d"].sum()))
            groups.append({} if self.asked.by is None else self.grouped(v))
        return Sums(tuple(gammas), tuple(distances), tuple(groups), self.pairs())

    def grouped(self, v: str) -> dict[str, JointDistribution | None]:
        """Γ of each group."""
        if (many := self.one(f"SELECT count(DISTINCT g) FROM {self.rows}")[0]) > GROUPS:
            raise InvalidData(
                f"{self.question.source}: column {self.asked.by!r} has {many} different values; expected at most "
                f"{GROUPS} groups"
            )
        answer = self.engine.execute(
            f"SELECT g, {v} AS v, count(*) AS n, sum(y) AS s FROM {self.rows} GROUP BY 1, 2 ORDER BY 1"
        ).fetchnumpy()
        names, starts = np.unique(np.asarray(answer.pop("g")).astype(str), return_index=True)
        ends = np.append(starts[1:], len(answer["v"]))
        return {
            str(name): _gamma({key: values[first:last] for key, values in answer.items()})
            for name, first, last in zip(names, starts, ends, strict=True)
        }

    def pairs(self) -> tuple[Pair, ...]:
        """Of the differences of scores of all pairs of columns."""
        found = []
        for a, b in combinations(range(len(self.forecasts)), 2):
            brier = f"(p{a} - y) * (p{a} - y) - (p{b} - y) * (p{b} - y)"
            best = [f"(CASE WHEN y = 1 THEN p{i} ELSE 1 - p{i} END)" for i in (a, b)]
            log = f"(CASE WHEN {best[0]} > 0 AND {best[1]} > 0 THEN ln({best[1]}) - ln({best[0]}) END)"
            for score, difference in (("brier", brier), ("log", log)):
                given, mean, power = self.one(
                    "SELECT count(d), coalesce(avg(d), 0), coalesce(var_pop(d) * count(d), 0) "
                    f"FROM (SELECT {difference} AS d FROM {self.rows})"
                )
                found.append(
                    Pair(score, self.forecasts[a], self.forecasts[b], int(given), float(mean), float(power))
                )
        return tuple(found)


def _gamma(answer: Any) -> JointDistribution | None:
    """Γ of levels, counts and ones; None of no rows."""
    if len(answer["v"]) == 0:
        return None
    counts = answer["n"].astype(np.float64)
    return JointDistribution.from_counts(answer["v"], counts, answer["s"].astype(np.float64))


def _text(word: str) -> str:
    return "'" + word.replace("'", "''") + "'"


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
