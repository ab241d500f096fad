"""Γ of each run of a study, from which more can be measured; one long table for other tools."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from onlinecal.core.errors import InvalidData, InvalidParameter, UnknownName, meant
from onlinecal.core.joint import JointDistribution
from onlinecal.core.writing import whole
from onlinecal.study.copies import save
from onlinecal.study.played import Played, Results

if TYPE_CHECKING:
    import pandas as pd

    from onlinecal.study.panel import Panel
#: endings of a file's name
FORMATS = ".csv", ".parquet"
#: the words on a column
WORDS = ("column", "kind", "measure", "options", "end", "stream", "task", "response")


def long_table(
    each: Sequence[tuple[Played, str]],
    names: Sequence[str],
    said: Sequence[Sequence[Any]],
    at: Mapping[str, Callable[[Played], Any]],
) -> pd.DataFrame:
    """A row for each total of each cell and column, with what is `said` of these, and of each checkpoint (`at`)."""
    import pandas as pd

    if not each:
        return pd.DataFrame(columns=[*names, *at, "run", "total"])
    totals = [cell.totals[name] for cell, name in each]
    # One frame, and not one for each of perhaps thousands of tables.
    whose = np.repeat(np.arange(len(each)), [table.size for table in totals])
    long = pd.DataFrame(said, columns=list(names)).loc[whose].reset_index(drop=True)
    for name, values in at.items():
        pairs = [(np.asarray(values(cell), np.int64), cell.totals[column].shape[1]) for cell, column in each]
        long[name] = np.concatenate([np.repeat(rounds, runs) for rounds, runs in pairs])
    long["run"] = np.concatenate([np.tile(np.arange(table.shape[1]), len(table)) for table in totals])
    long["total"] = np.concatenate([table.ravel() for table in totals])
    return long


def tidy(results: Results) -> pd.DataFrame:
    """A row for each total T·μ: the players (nature without its schedule), the checkpoint, and words on the column.

    ``open`` is the number of questions without a known outcome, ``column`` the whole name of the column.
    """
    words = {
        column: (
            column.name, column.kind, column.measure, ", ".join(f"{key}={value}" for key, value in column.options),
            column.end, column.stream, column.task, column.response,
        )
        for column in {column for cell in results.cells for column in cell.columns}
    }  # fmt: skip
    each = [(cell, column) for cell in results.cells for column in cell.columns]
    said = [
        (cell.forecaster, *(cell.schedule if cell.schedule[0] else (cell.nature, "")), cell.horizon, *words[column])
        for cell, column in each
    ]  # fmt: skip
    names = ["forecaster", "nature", "schedule", "horizon"]
    table = long_table(
        [(cell, column.name) for cell, column in each], [*names, *WORDS], said,
        {"round": lambda cell: cell.rounds, "open": lambda cell: cell.open or [0] * len(cell.rounds)},
    )  # fmt: skip
    return table[[*names, "round", "run", "open", *WORDS, "total"]]


def export(results: Results, path: Path, overwrite: bool = False) -> int:
    """Writes the table into a .csv or .parquet file that is whole or not there; returns the number of rows."""
    if path.suffix not in FORMATS:
        raise InvalidParameter(f"{path}: expected a name that ends with {' or '.join(FORMATS)}")
    with whole(path, overwrite) as new:
        table = tidy(results)
        if path.suffix == ".csv":
            table.to_csv(new, index=False)
        else:
            import polars as pl  # it writes Parquet by itself, pandas only with another library

            pl.DataFrame({name: table[name].to_numpy() for name in table}).write_parquet(new)
    return len(table)


@dataclass(frozen=True)
class Kept(Results):
    """Cells that were played, found by the labels of their players, with what is kept of their rounds."""

    @property
    def forecasters(self) -> list[str]:
        """Labels in the order in which they appear."""
        return list(self._labels[0])

    @property
    def natures(self) -> list[str]:
        """Labels in the order in which they appear."""
        return list(self._labels[1])

    # Put in order once: every curve of thousands of cells asks for it.

    @cached_property
    def _labels(self) -> tuple[dict[str, None], dict[str, None]]:
        return dict.fromkeys(c.forecaster for c in self.cells), dict.fromkeys(c.nature for c in self.cells)

    @cached_property
    def _pairs(self) -> dict[tuple[str, str], list[Played]]:
        """The cells of each forecaster and nature, the shortest games first."""
        found: dict[tuple[str, str], list[Played]] = {}
        for cell in self.cells:
            found.setdefault((cell.forecaster, cell.nature), []).append(cell)
        for mine in found.values():
            mine.sort(key=lambda cell: cell.horizon)
        return found

    def gamma(
        self,
        forecaster: str | None = None,
        nature: str | None = None,
        horizon: int | None = None,
        *,
        round: int | None = None,
        run: int = 0,
        stream: str = "",
    ) -> JointDistribution | None:
        """Γ of a run, as it was measured; None where it is not kept (see `Played.gamma`).

        Labels or registered names of players, and the horizon, may be left out where there is only one. `round` is one
        of the checkpoints, by default the last; `stream` the label of a stream, "" for all rounds.
        """
        who = self._only("forecaster", forecaster, self.forecasters)
        whom = self._only("nature", nature, self.natures)
        cells = {c.horizon: c for c in self.cells if (c.forecaster, c.nature) == (who, whom)}
        if horizon is None and len(cells) == 1:
            (horizon,) = cells
        if horizon not in cells:
            raise InvalidParameter(
                f"{who} against {whom} with horizon = {horizon}; expected one of {', '.join(map(str, cells))}"
            )
        cell = cells[horizon]
        times = cell.rounds.tolist()
        if round is not None and round not in times:
            raise InvalidParameter(
                f"round = {round}; expected one of the checkpoints {', '.join(map(str, times))}"
            )
        streams = list(dict.fromkeys(column.stream for column in cell.columns if column.stream))
        if stream and stream not in streams:
            raise UnknownName.of("stream", stream, streams)
        at = -1 if round is None else times.index(round)
        return cell.gamma(at, run, streams.index(stream) if stream else None)

    def measure_again(self, measures: Iterable[Any] = (), tasks: Iterable[Any] = ()) -> Self:
        """The same study with further columns, computed from the level sets that are kept; nothing is played.

        Measures and tasks are as `play` takes them. A cell in which something cannot be computed is without it.
        """
        from onlinecal.study.again import measured_later
        from onlinecal.study.panel import listed

        panel = panel_of(
            listed(measures), listed(tasks), max((cell.horizon for cell in self.cells), default=None)
        )
        found = [measured_later(cell, panel) for cell in self.cells]
        failed = Counter(reason for _, reasons in found for reason in reasons)
        for (name, why), count in failed.items():
            if count == len(found):
                raise InvalidData(f"{name!r} cannot be computed, since {why}; expected to play it")
        return replace(self, cells=tuple(cell for cell, _ in found))

    def save(self, path: Path | str, *, overwrite: bool = False) -> None:
        """Writes the study, with the level sets that are kept, into a results file that `onlinecal.load` reads.

        With `overwrite` a results file that is there is replaced.
        """
        save(self, Path(path), overwrite=overwrite)

    def _only(self, kind: str, label: str | None, labels: list[str]) -> str:
        if label is None:
            if len(labels) == 1:
                return labels[0]
            raise InvalidParameter(f"there are several {kind}s; expected {kind}= one of {', '.join(labels)}")
        return meant(kind, label, labels)


def panel_of(measures: Iterable[Any], tasks: Iterable[Any], rounds: int | None) -> Panel:
    """A panel of measures and tasks as `play` takes them, or as words of the command line: tables in braces."""
    from onlinecal.measures import with_all
    from onlinecal.naming import measure_of, said_table, task_of
    from onlinecal.study.panel import Panel

    return Panel.of(
        with_all((measure_of(said_table("--measure", spec)) for spec in measures), rounds),
        [task_of(said_table("--task", spec)) for spec in tasks],
        rounds=rounds,
    )
