"""The results of the cells of a study, as numbers."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from html import escape
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from onlinecal.core.columns import ROUNDS, Column, Held, labels_of
from onlinecal.core.errors import InvalidParameter, StoreError
from onlinecal.core.guarantee import Sight
from onlinecal.core.joint import Floats
from onlinecal.core.validation import integer
from onlinecal.core.words import number_of
from onlinecal.study.gammas import Gammas, Group, joined


@dataclass(frozen=True)
class Promise:
    """A guarantee as it applies to one cell: its bound at the cell's horizon."""

    measure: str
    text: str
    formula: str
    kind: str
    against: str
    upper: bool
    bound: float


class _ByNumber:
    """A dataclass that compares its fields number by number, but for those with ``compare=False``."""

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        compared = [f.name for f in fields(self) if f.compare]  # type: ignore[arg-type]  # of its dataclasses
        return all(_same(getattr(self, name), getattr(other, name)) for name in compared)

    def __hash__(self) -> int:
        return hash(tuple(getattr(self, f.name) for f in fields(self)[:2]))  # type: ignore[arg-type]  # labels


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, np.ndarray):
        return np.array_equal(one, other, equal_nan=True)
    return bool(one == other)


@dataclass(frozen=True, eq=False)
class Joined(_ByNumber):
    """The accounts of the k decision makers of one cell."""

    labels: tuple[str, ...]
    tasks: tuple[str, ...]
    #: "" for the best response
    responses: tuple[str, ...]
    #: (k,), on the game's clock
    join: Floats
    leave: Floats
    #: (n, k, runs): ``rounds`` that it acted on with a known outcome, and totals over these
    entries: dict[str, Floats]
    #: (k, runs): the total over its tenure; no swap regret of a best response is above it
    cdl: Floats

    def of_runs(self, runs: int, labels: Sequence[str]) -> "Joined":
        """The accounts of the first runs, under these labels."""
        entries = {name: entry[:, :, :runs] for name, entry in self.entries.items()}
        return replace(self, labels=tuple(labels), entries=entries, cdl=self.cdl[:, :runs])


class Batch(NamedTuple):
    """The numbers of some runs of a cell; it can be pickled.

    Attributes
    ----------
    first : int
        The number of the first of the runs.
    rounds : (n,) ints
        Checkpoints.
    totals : mapping to (n, runs) floats
        T·μ by `Column`, or in a results file by `Held`, where a column may be there in fewer runs.
    loop : str
        Which loop played.
    open : tuple of int
        Questions without an outcome at each checkpoint; of worlds the most of any run. Empty without a schedule.
    seconds : float
    people : Joined or None
        The accounts of decision makers.
    gammas : tuple of Group
        Γ of the runs at all checkpoints, compressed (`onlinecal.study.gammas`).
    """

    first: int
    rounds: NDArray[np.int64]
    totals: Mapping[Any, Floats]
    loop: str
    open: tuple[int, ...]
    seconds: float = 0.0
    people: Joined | None = None
    gammas: tuple[Group, ...] = ()


def together(parts: Sequence[Batch]) -> Batch:
    """The runs of batches that overlap or follow each other: the first of each counts, of Γ the first whole."""
    one, first = parts[0], parts[0].first
    columns = dict.fromkeys(column for part in parts for column in part.totals)
    totals = {c: _runs(first, ((p.first, p.totals[c]) for p in parts if c in p.totals)) for c in columns}
    who = [(part.first, part.people) for part in parts if part.people is not None]
    people = who[0][1] if who else None
    if people is not None:
        entries = {e: _runs(first, ((at, each.entries[e]) for at, each in who)) for e in people.entries}
        people = replace(people, entries=entries, cdl=_runs(first, ((at, each.cdl) for at, each in who)))
    return one._replace(
        totals=totals,
        loop=one.loop if {part.loop for part in parts} == {one.loop} else "both",
        # In a world each run has its own; the most of any run counts.
        open=tuple(map(max, zip(*(part.open for part in parts), strict=True))),
        seconds=sum(part.seconds for part in parts),
        people=people,
        gammas=joined(group for part in parts for group in part.gammas),
    )


def _runs(first: int, parts: Iterable[tuple[int, Floats]]) -> Floats:
    """Joins arrays along the last axis, that of runs; each begins at a run that is there, or the next."""
    found = []
    for begins, values in parts:
        if begins > first:
            raise StoreError(f"runs {first} to {begins - 1} are not there; go on with --resume")
        found.append(values[..., first - begins :])
        first = max(first, begins + values.shape[-1])
    return found[0] if len(found) == 1 else np.concatenate(found, axis=-1)


@dataclass(frozen=True)
class Origin:
    """All that the numbers of a cell depend on: `Cell.content` as JSON, and `Cell.held`."""

    text: str
    columns: Mapping[Column, Held]

    @property
    def game(self) -> dict[str, Any]:
        """`Cell.content`."""
        found: dict[str, Any] = json.loads(self.text)
        return found


@dataclass(frozen=True, eq=False)
class Played(_ByNumber):
    """The result of one cell: a forecaster against a nature at a horizon.

    Two are equal where all their numbers are, whatever time and loop they took and level sets are kept.

    Attributes
    ----------
    forecaster, nature : str
        Labels; nature's with the schedule where there is one.
    horizon : int
    rounds : (n,) ints
        Checkpoints; the last is the horizon.
    totals : dict of str to (n, runs) floats
        T·μ of every column, by its name.
    columns : tuple of Column
        In the same order.
    promises : tuple of Promise
    recorded : bool
        Whether nature replays a recorded stream: the outcomes of all runs and horizons are the same.
    seconds : float
        How long it took.
    loop : str
        "compiled" for players of steps alone, "python" beside a plain class. "both" where runs were played at several
        times. The numbers do not depend on it.
    open : tuple of int
        At each checkpoint, how many of the questions that were asked have no known outcome: totals are without them.
    schedule : (str, str)
        Nature's label without the schedule, and that of the schedule; "" for a question a unit without delay.
    people : Joined, optional
        The accounts of the decision makers that join and leave.
    sight : Sight
        What nature sees of forecasts. One that sees nothing gives all forecasters the same outcomes, run by run.
    steps : int or None
        The m of the forecaster's grid 0, 1/m, …, 1 (`Forecaster.steps_at`). None for no such grid, or an unknown one.
    gammas : Gammas
        What is kept of each run's Γ; see `gamma`.
    origin : Origin, optional
        What the numbers depend on, for a results file.
    """

    forecaster: str
    nature: str
    horizon: int
    rounds: NDArray[np.int64]
    totals: dict[str, Floats]
    columns: tuple[Column, ...]
    promises: tuple[Promise, ...] = ()
    recorded: bool = False
    seconds: float = field(default=0.0, compare=False)
    loop: str = field(default="", compare=False)
    open: tuple[int, ...] = ()
    schedule: tuple[str, str] = ("", "")
    people: Joined | None = None
    sight: Sight = Sight.DRAW
    steps: int | None = None
    gammas: Gammas = field(default_factory=Gammas, compare=False, repr=False)
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __repr__(self) -> str:
        said = f"T = {self.horizon:,}, {number_of(self.runs, 'run')}, {', '.join(self.totals)}"
        return f"Played({self.forecaster} against {self.nature}, {said})"

    def _repr_html_(self) -> str:
        """A table for notebooks: mean totals at each checkpoint."""
        import pandas as pd

        means = pd.DataFrame({name: y.mean(axis=1) for name, y in self.totals.items()}, index=self.rounds)
        said = f"{self.forecaster} against {self.nature}: mean totals over {number_of(self.runs, 'run')}"
        return f"<p>{escape(said)}</p>" + means.rename_axis("T").to_html(float_format="{:.4g}".format)

    @property
    def runs(self) -> int:
        """How many runs there are."""
        return next(iter(self.totals.values())).shape[1]

    @property
    def streams(self) -> list[str]:
        """The labels of nature's streams, and of its groups behind them; "" of a stream that no column names."""
        known = list(chain(*labels_of(self.columns)))
        # Measures of groups alone have no columns of streams.
        alone = bool(known) and all(c.measure == ROUNDS for c in self.columns if c.stream)
        return [""] * (self.gammas.parts - len(known)) * alone + known

    @property
    def groups(self) -> list[str]:
        """The labels of nature's groups."""
        return labels_of(self.columns)[1]

    def gamma(self, checkpoint: int, run: int, stream: int | None = None) -> Any:
        """Γ of a run at a checkpoint, as it was measured, to the last bit.

        Parameters
        ----------
        checkpoint : int
            Its place in `rounds`; −1 is the last.
        run : int
            From 0.
        stream : int, optional
            Of its rounds only. Default: of all.

        Returns
        -------
        JointDistribution or None
            A `ClassDistribution` in games of classes. None where no outcome is known, and where it has more than `keep`
            levels.
        """
        n, streams = len(self.rounds), len(self.streams)
        if stream is not None and not streams:
            raise InvalidParameter(f"stream = {stream!r}; expected none, as nature has no streams")
        integer("", "checkpoint", checkpoint, -n, n - 1)
        integer("", "run", run, 0, self.runs - 1)
        integer("", "stream", stream or 0, 0, max(0, streams - 1))
        return self.gammas.of(int(checkpoint) % n, int(run), stream)
