"""Files of forecasts that are larger than memory: DuckDB groups their rows by prediction and outcome, which gives Γ.

Nothing here knows single rows: what needs their order, or pairs them, is found by sums or refused.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlinecal.core.errors import InvalidData, InvalidParameter
from onlinecal.core.files import is_parquet, local
from onlinecal.core.joint import JointDistribution
from onlinecal.core.memory import free_memory
from onlinecal.forecasts.cells import EMPTY, SPACES, as_number
from onlinecal.forecasts.measuring import GROUPS, Report, Settings
from onlinecal.forecasts.reading import Asked, columns_of, group_name
from onlinecal.forecasts.sheet import Sheet
from onlinecal.forecasts.sums import Facts, Pair, Sums, report_of_sums
from onlinecal.study.run import cores

Floats = NDArray[np.float64]

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
        except (duckdb.InterruptException, RuntimeError) as error:
            # Ctrl-C while a query runs is told in either way.
            if isinstance(error, duckdb.InterruptException) or "interrupted" in str(error):
                raise KeyboardInterrupt from None
            raise
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
        path = str(local(path))
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
    path = local(source)
    if not path.is_file():
        raise InvalidData(f"{source}: no such file")
    if is_parquet(path):
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
        """A forecast as SQL: in [0, 1], if it is one."""
        value = number(self.place[name], self.asked.percent)
        return f"({value} / 100.0)" if self.asked.percent else value

    def event(self) -> str:
        """The outcome as SQL: 0, 1 or NULL."""
        place = self.place[self.outcome]
        plain, word = number(place), f"lower({stripped(place)})"
        if self.asked.positive is not None:
            wanted = self.asked.positive.strip().lower()
            same = f"{word} = {_text(wanted)}"
            value, marked = as_number(wanted)
            if value is not None and math.isfinite(value) and not marked:
                same += f" OR coalesce({plain} = {value!r}, false)"
            return f"(CASE WHEN {nothing(place)} THEN NULL WHEN {same} THEN 1 ELSE 0 END)"
        words = f"(CASE {word} WHEN 'true' THEN 1 WHEN 'false' THEN 0 END)"
        return f"(CASE {plain} WHEN 1 THEN 1 WHEN 0 THEN 0 ELSE {words} END)"

    @property
    def rows(self) -> str:
        """The rows that count, as SQL: forecasts p0, p1, …, the outcome y, and groups g0, g1, …"""
        columns = [f"{self.number(name)} AS p{i}" for i, name in enumerate(self.forecasts)]
        columns.append(f"{self.event()} AS y")
        columns += [f"{group(self.place[name])} AS g{i}" for i, name in enumerate(self.asked.by)]
        return f"(SELECT * FROM (SELECT {', '.join(columns)} FROM {self.table}) WHERE {self.whole})"

    @property
    def whole(self) -> str:
        """Whether a row has all forecasts and an outcome, as SQL."""
        return " AND ".join([*(f"p{i} IS NOT NULL" for i in range(len(self.forecasts))), "y IS NOT NULL"])

    def one(self, query: str) -> tuple[Any, ...]:
        """The only row of an answer."""
        return tuple(self.engine.execute(query).fetchone())

    # ------------------------------------------------------------ what is found

    def facts(self) -> Facts:
        """What decides whether the rows can be measured, and how."""
        names = [*(f"p{i}" for i in range(len(self.forecasts))), "y"]
        values = [*map(self.number, self.forecasts), self.event()]
        places = [self.place[name] for name in (*self.forecasts, self.outcome)]
        questions = ["count(*)", f"count(*) FILTER (WHERE {self.whole})", "coalesce(sum(y), 0)"]
        # Texts are made only of cells that hold no number.
        for name in names:
            cell = f"r{name}"
            questions += [
                f"count(CASE WHEN {name} IS NULL THEN (CASE WHEN {nothing(cell)} THEN 1 END) END)",
                f"any_value(CASE WHEN {name} IS NULL THEN (CASE WHEN NOT {nothing(cell)} "
                f"THEN CAST({cell} AS VARCHAR) END) END)",
                f"any_value({name}) FILTER (WHERE {name} < 0 OR {name} > 1)",
                f"max({name})",
            ]
        # An estimate, some per cent off: to list them takes memory for each.
        questions += [f"approx_count_distinct({name}) FILTER (WHERE {self.whole})" for name in names[:-1]]
        columns = [f"{value} AS {name}" for value, name in zip(values, names, strict=True)]
        columns += [f"{place} AS r{name}" for place, name in zip(places, names, strict=True)]
        total, rows, ones, *found = self.one(
            f"SELECT {', '.join(questions)} FROM (SELECT {', '.join(columns)} FROM {self.table})"
        )
        end = 4 * len(names)
        cells = tuple(zip(*(found[i:end:4] for i in range(4)), strict=True))
        return Facts(int(total), int(rows), int(ones), cells, self.different(found[end:]))

    def different(self, about: Sequence[int]) -> tuple[Floats | None, ...]:
        """The different forecasts of each column, if they are not too many; `about` says how many there are, about."""
        most = self.question.distinct
        few = [i for i, many in enumerate(about) if many <= 2 * most]
        found = dict.fromkeys(range(len(about)))
        if few:
            lists = self.one(f"SELECT {', '.join(f'list(DISTINCT p{i})' for i in few)} FROM {self.rows}")
            for i, values in zip(few, lists, strict=True):
                if len(values or ()) <= most:
                    found[i] = np.sort(np.asarray(values or (), dtype=np.float64))
        return tuple(found.values())

    def sums(self, moved: tuple[bool, ...]) -> Sums:
        """What the report is made of; `moved` says which columns go to the grid."""
        self.check_groups()
        gammas, chances, distances = [], [], []
        groups = list[dict[str, JointDistribution | None]]()
        for i, on_grid in enumerate(moved):
            v = (
                f"round_even(p{i} * {self.question.grid}.0, 0) / {self.question.grid}.0"
                if on_grid
                else f"p{i}"
            )
            answer = self.engine.execute(
                f"SELECT {v} AS v, count(*) AS n, sum(y) AS s, sum(p{i}) AS e, sum(abs(p{i} - {v})) AS d "
                f"FROM {self.rows} GROUP BY 1"
            ).fetchnumpy()
            gammas.append(_gamma(answer))
            chances.append(_gamma(answer | {"s": np.minimum(answer["e"], answer["n"])}) if on_grid else None)
            distances.append(float(answer["d"].sum()))
            groups.append(self.grouped(v))
        return Sums(tuple(gammas), tuple(chances), tuple(distances), tuple(groups), self.pairs())

    def check_groups(self) -> None:
        """Refuses too many."""
        counts = [f"count(DISTINCT g{i})" for i in range(len(self.asked.by))]
        if counts and (many := self.one(f"SELECT {' + '.join(counts)} FROM {self.rows}")[0]) > GROUPS:
            raise InvalidData(
                f"{self.question.source}: {', '.join(self.asked.by)!r} has {many} different values; expected at most "
                f"{GROUPS} groups"
            )

    def grouped(self, v: str) -> dict[str, JointDistribution | None]:
        """Γ of each group."""
        found = dict[str, JointDistribution | None]()
        for i, column in enumerate(self.asked.by):
            answer = self.engine.execute(
                f"SELECT g{i} AS g, {v} AS v, count(*) AS n, sum(y) AS s FROM {self.rows} GROUP BY 1, 2 ORDER BY 1"
            ).fetchnumpy()
            names, starts = np.unique(np.asarray(answer.pop("g"), dtype=object), return_index=True)
            ends = np.append(starts[1:], len(answer["v"]))
            for name, first, last in zip(names, starts, ends, strict=True):
                part = {key: values[first:last] for key, values in answer.items()}
                found[group_name(self.asked, column, str(name))] = _gamma(part)
        return found

    def pairs(self) -> tuple[Pair, ...]:
        """Of the differences of scores of all pairs of columns."""
        asked, differences = [], []
        for a, b in combinations(range(len(self.forecasts)), 2):
            best = [f"(CASE WHEN y = 1 THEN p{i} ELSE 1 - p{i} END)" for i in (a, b)]
            asked += [(score, self.forecasts[a], self.forecasts[b]) for score in ("brier", "log")]
            differences += [
                f"(p{a} - y) * (p{a} - y) - (p{b} - y) * (p{b} - y)",
                f"(CASE WHEN {best[0]} > 0 AND {best[1]} > 0 THEN ln({best[1]}) - ln({best[0]}) END)",
            ]
        if not asked:
            return ()
        columns = ", ".join(f"{difference} AS d{i}" for i, difference in enumerate(differences))
        sums = ", ".join(
            f"count(d{i}), coalesce(avg(d{i}), 0), coalesce(var_pop(d{i}) * count(d{i}), 0)"
            for i in range(len(asked))
        )
        found = self.one(f"SELECT {sums} FROM (SELECT {columns} FROM {self.rows})")
        return tuple(
            Pair(*which, int(count), float(mean), float(power))
            for which, count, mean, power in zip(asked, found[::3], found[1::3], found[2::3], strict=True)
        )


def plain_number(place: str) -> str:
    """A cell as SQL: a number or NULL. The engine would read 1_0 as 10."""
    text = f"typeof({place}) = 'VARCHAR' AND contains(CAST({place} AS VARCHAR), '_')"
    return f"(CASE WHEN {text} THEN NULL ELSE TRY_CAST({place} AS DOUBLE) END)"


def number(place: str, percent: bool = False) -> str:
    """A cell as SQL, as `as_number` reads it, with per cent signs or without; NULL for what is no finite number."""
    plain, bare = plain_number(place), stripped(place)
    if percent:
        bare = f"(CASE WHEN suffix({bare}, '%') THEN {stripped(f'left({bare}, -1)')} ELSE {bare} END)"
    comma = f"length({bare}) - length(replace({bare}, ',', '')) = 1 AND NOT contains({bare}, '.')"
    other = plain_number(f"(CASE WHEN {comma} THEN replace({bare}, ',', '.') ELSE {bare} END)")
    # Rare cases stand in branches that are not evaluated for other rows.
    return (
        f"(CASE WHEN isfinite({plain}) THEN {plain} "
        f"WHEN typeof({place}) = 'VARCHAR' THEN (CASE WHEN isfinite({other}) THEN {other} END) END)"
    )


def stripped(place: str) -> str:
    """A cell as text without white space at either end, as SQL; the engine's own are blanks only."""
    return f"trim(CAST({place} AS VARCHAR), {_text(SPACES)})"


def group(place: str) -> str:
    """The name of a group as SQL, as `Sheet.texts` has it."""
    text = stripped(place)
    truth = f"CASE {text} WHEN 'true' THEN 'True' ELSE 'False' END"
    known = f"CASE typeof({place}) WHEN 'BOOLEAN' THEN {truth} ELSE {text} END"
    return f"(CASE WHEN {nothing(place)} THEN '' ELSE {known} END)"


def nothing(place: str) -> str:
    """Whether a cell is empty, as SQL."""
    words = ", ".join(map(_text, sorted(EMPTY)))
    return f"({place} IS NULL OR lower({stripped(place)}) IN ({words}))"


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
