"""Γ of each run of a study, from which more can be measured, and a file of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from onlinecal.core.errors import InvalidData, InvalidParameter, UnknownName
from onlinecal.core.joint import JointDistribution
from onlinecal.naming import measure_of, said_table, task_of
from onlinecal.study.again import measured_later
from onlinecal.study.copies import save
from onlinecal.study.panel import Panel, listed
from onlinecal.study.played import Played, Results


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
        """Γ of a run, as it was measured; None where it is not kept, or not exactly (see `Played.gamma`).

        Parameters
        ----------
        forecaster, nature : str, optional
            Labels, or registered names; may be left out where there is only one.
        horizon : int, optional
            May be left out where there is only one.
        round : int, optional
            One of the cell's checkpoints. Default: the last.
        run : int, default 0
        stream : str, default ""
            The label of a stream; "" for all rounds.
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

        Parameters
        ----------
        measures, tasks : iterable
            As `Panel.of` takes them.

        Returns
        -------
        Study
            With further columns; a cell in which something cannot be computed is without it.
        """
        panel = panel_of(
            listed(measures), listed(tasks), max((cell.horizon for cell in self.cells), default=None)
        )
        found = [measured_later(cell, panel) for cell in self.cells]
        failed = Counter(
            (name, why) for _, reasons in found for why, names in reasons.items() for name in names
        )
        for (name, why), count in failed.items():
            if count == len(found):
                raise InvalidData(f"{name!r} cannot be computed, since {why}; expected to play it")
        return replace(self, cells=tuple(cell for cell, _ in found))

    def save(self, path: Path | str, *, overwrite: bool = False) -> None:
        """Writes the study, with the level sets that are kept, into a results file that `onlinecal.load` reads.

        Parameters
        ----------
        path : path
        overwrite : bool, default False
            Whether a results file that is there is replaced.
        """
        save(self, Path(path), overwrite=overwrite)

    def _only(self, kind: str, label: str | None, labels: list[str]) -> str:
        if label is None:
            if len(labels) == 1:
                return labels[0]
            raise InvalidParameter(f"there are several {kind}s; expected {kind}= one of {', '.join(labels)}")
        if label in labels:
            return label
        # The registered name, too, where only one label can be meant.
        same = [known for known in labels if _plain(known) == _plain(label)]
        if len(same) != 1:
            raise UnknownName.of(kind, label, labels)
        return same[0]


def _plain(label: str) -> str:
    """Without capitals and what stands between words: ``cdl_minimiser`` is ``CDL minimiser``."""
    return "".join(filter(str.isalnum, label.lower()))


def panel_of(measures: Iterable[Any], tasks: Iterable[Any], rounds: int | None) -> Panel:
    """A panel of measures and tasks as `play` takes them, or as words of the command line: tables in braces."""
    return Panel.of(
        [measure_of(said_table("measure", spec)) for spec in measures],
        [task_of(said_table("task", spec)) for spec in tasks],
        rounds=rounds,
    )
