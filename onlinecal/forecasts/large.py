"""Files of forecasts that are larger than memory: DuckDB groups their rows by prediction and outcome, which gives Γ.

Nothing here knows single rows: what needs their order, or pairs them, is found by sums or refused.
"""

from __future__ import annotations

import math
import tempfile
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from onlinecal.core.errors import InvalidData, InvalidParameter
from onlinecal.core.joint import JointDistribution
from onlinecal.engine.memory import free_memory
from onlinecal.forecasts.cautions import tiny_groups
from onlinecal.forecasts.cells import EMPTY, as_number
from onlinecal.forecasts.inference import Difference, holm, two_sided
from onlinecal.forecasts.measuring import GROUPS, Part, Report, Settings, measure_gamma, part_of, with_holm
from onlinecal.forecasts.reading import Asked, columns_of
from onlinecal.forecasts.sheet import Sheet
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
    for what, given in (("--time", asked.time), ("--weight", asked.weight)):
        if given is not None:
            raise InvalidParameter(
                f"{what} with {source}, which is read in parts, row by row no more; expected none"
            )
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
            return _Large(engine, source, asked, settings, delimiter).report()
        except duckdb.Error as error:
            said = " ".join(str(error).split())[:300]
            raise InvalidData(f"{source} cannot be read in parts: {said}") from None


class _Large:
    """A file, as a query."""

    def __init__(
        self, engine: Any, source: str, asked: Asked, settings: Settings, delimiter: str | None
    ) -> None:
        self.engine, self.source, self.asked, self.settings = engine, source, asked, settings
        path = str(Path(source).expanduser())
        if not Path(path).is_file():
            raise InvalidData(f"{source}: no such file")
        self.parquet = Path(source).suffix.lower() in (".parquet", ".pq")
        if self.parquet:
            self.table = f"read_parquet({_text(path)})"
            head = Sheet.of_frame(source, engine.execute(f"SELECT * FROM {self.table} LIMIT {HEAD}").df())
            self.place = {name: _name(name) for name in head.columns}
        else:
            head = Sheet(source, delimiter=delimiter, most=HEAD)
            names = [f"c{i}" for i in range(len(head.columns))]
            self.place = dict(zip(head.columns, names, strict=True))
            kinds = ", ".join(f"{_text(name)}: 'VARCHAR'" for name in names)
            self.table = (
                f"read_csv({_text(path)}, header = true, auto_detect = false, quote = '\"', escape = '\"', "
                f"delim = {_text(head.delimiter)}, columns = {{{kinds}}})"
            )
        self.forecasts, self.outcome, self.said = columns_of(head, asked)
        self.said.append(
            "the file is read in parts: copies of rows and dependence between neighbouring ones are not looked for"
        )

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

    def report(self) -> Report:
        """All of it."""
        rows, distinct = self.checked()
        columns, groups = [], {}
        for i, name in enumerate(self.forecasts):
            moved = distinct[i] > self.settings.distinct
            gamma, distance = self.gamma(f"p{i}", moved)
            parts: list[Part] = self.groups(f"p{i}", moved) if self.asked.by is not None else []
            groups = {part.name: float(part.rows) for part in parts}
            columns.append(measure_gamma(name, gamma, distance, self.settings, parts))
        return Report(
            self.source, self.outcome, rows, columns, self.differences(), 0, self.asked.by or "", "", self.said,
            tiny_groups(groups), self.settings,
        )  # fmt: skip

    def checked(self) -> tuple[int, list[int]]:
        """How many rows count, and about how many different forecasts each column has."""
        questions = ["count(*)"]
        for name in self.forecasts:
            value, empty = self.number(name), self.nothing(name)
            questions += [
                f"count(*) FILTER (WHERE {empty})",
                f"any_value(CAST({self.place[name]} AS VARCHAR)) FILTER (WHERE {value} IS NULL AND NOT {empty})",
                f"any_value({value}) FILTER (WHERE {value} < 0 OR {value} > 1)",
                f"approx_count_distinct({value})",
            ]
        empty = self.nothing(self.outcome)
        questions += [
            f"count(*) FILTER (WHERE {empty})",
            f"any_value(CAST({self.place[self.outcome]} AS VARCHAR)) "
            f"FILTER (WHERE {self.event()} IS NULL AND NOT {empty})",
            f"coalesce(sum({self.event()}), 0)",
        ]
        total, *found = self.one(f"SELECT {', '.join(questions)} FROM {self.table}")
        if total == 0:
            raise InvalidData(f"{self.source} has a header and no rows; expected at least one")
        missing, distinct = 0, []
        for name in self.forecasts:
            none, strange, outside, many = found[:4]
            found = found[4:]
            if strange is not None:
                raise InvalidData(f"{self.source}: column {name!r} holds {strange!r}; expected a number")
            if outside is not None:
                raise InvalidData(
                    f"{self.source}: column {name!r} holds {outside:g}; expected a probability in [0, 1], or --percent"
                )
            missing += none
            distinct.append(int(many))
        none, strange, ones = found
        if strange is not None:
            raise InvalidData(
                f"{self.source}: column {self.outcome!r} holds {strange!r}; expected 0 or 1, or --positive WORD"
            )
        if self.asked.positive is not None and not ones:
            raise InvalidData(
                f"{self.source}: no row of column {self.outcome!r} holds {self.asked.positive!r}"
            )
        rows = total
        if missing + none:
            if not self.asked.skip_missing:
                raise InvalidData(
                    f"{self.source}: {missing + none} cells of forecasts or outcomes are missing; expected a value, or "
                    "--skip-missing to leave such rows out"
                )
            rows = self.one(f"SELECT count(*) FROM {self.rows}")[0]
            self.said.append(f"{total - rows} of {total} rows have no forecast or outcome and are left out")
            if rows == 0:
                raise InvalidData(
                    f"{self.source}: no row has both a forecast and an outcome; expected at least one"
                )
        return rows, distinct

    def on_grid(self, p: str, moved: bool) -> str:
        """A forecast, or the nearest point of the grid, as SQL."""
        m = self.settings.grid
        return f"round_even({p} * {m}.0, 0) / {m}.0" if moved else p

    def gamma(self, p: str, moved: bool) -> tuple[JointDistribution, float | None]:
        """Γ of a column, and how far its forecasts were moved on average; None for not at all."""
        v = self.on_grid(p, moved)
        answer = self.engine.execute(
            f"SELECT {v} AS v, count(*) AS n, sum(y) AS s, sum(abs({p} - {v})) AS d FROM {self.rows} GROUP BY 1"
        ).fetchnumpy()
        counts = answer["n"].astype(np.float64)
        gamma = JointDistribution.from_counts(answer["v"], counts, answer["s"].astype(np.float64))
        # Additions of rows in any order: the sum may be rounded up to so much.
        most = 0.5 / self.settings.grid
        return gamma, min(float(answer["d"].sum() / counts.sum()), most) if moved else None

    def groups(self, p: str, moved: bool) -> list[Part]:
        """The same for each group."""
        v = self.on_grid(p, moved)
        if (many := self.one(f"SELECT count(DISTINCT g) FROM {self.rows}")[0]) > GROUPS:
            raise InvalidData(
                f"{self.source}: column {self.asked.by!r} has {many} different values; expected at most {GROUPS} groups"
            )
        answer = self.engine.execute(
            f"SELECT g, {v} AS v, count(*) AS n, sum(y) AS s FROM {self.rows} GROUP BY 1, 2 ORDER BY 1"
        ).fetchnumpy()
        names, starts = np.unique(np.asarray(answer["g"]).astype(str), return_index=True)
        ends = np.append(starts[1:], len(answer["g"]))
        found = []
        for name, first, last in zip(names, starts, ends, strict=True):
            part = slice(int(first), int(last))
            counts = answer["n"][part].astype(np.float64)
            ones = answer["s"][part].astype(np.float64)
            gamma = JointDistribution.from_counts(answer["v"][part], counts, ones)
            found.append(part_of(str(name), int(counts.sum()), gamma, self.settings.seed))
        return with_holm(found)

    def differences(self) -> list[Difference]:
        """Paired tests of the scores, from sums."""
        found = []
        for a, b in combinations(range(len(self.forecasts)), 2):
            brier = f"(p{a} - y) * (p{a} - y) - (p{b} - y) * (p{b} - y)"
            best = [f"(CASE WHEN y = 1 THEN p{i} ELSE 1 - p{i} END)" for i in (a, b)]
            log = f"(CASE WHEN {best[0]} > 0 AND {best[1]} > 0 THEN ln({best[1]}) - ln({best[0]}) END)"
            for score, difference in (("brier", brier), ("log", log)):
                rows, given, mean, error = self.one(
                    "SELECT count(*), count(d), avg(d), stddev_samp(d) "
                    f"FROM (SELECT {difference} AS d FROM {self.rows})"
                )
                if given < rows or error is None:
                    continue
                error /= math.sqrt(rows)
                p_value = two_sided(mean / error) if error > 1e-15 else float(abs(mean) <= 1e-15)
                found.append((score, self.forecasts[a], self.forecasts[b], mean, error, p_value))
        adjusted = holm([each[-1] for each in found])
        return [Difference(*each, p) for each, p in zip(found, adjusted, strict=True)]


def _text(word: str) -> str:
    return "'" + word.replace("'", "''") + "'"


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
