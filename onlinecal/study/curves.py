"""The curves of totals against T that played cells hold, how they grow, and where that is beyond what is known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from onlinecal.core.arrays import Floats, Ints
from onlinecal.core.columns import ALL, Column, asked_for, named
from onlinecal.core.errors import InvalidData, InvalidParameter, UnknownName, meant
from onlinecal.core.words import listed, number_of
from onlinecal.growth import Growth, check_level, fit_growth, trend
from onlinecal.growth.rates import best_known
from onlinecal.study.copies import save
from onlinecal.study.played import Played, Promise
from onlinecal.study.store import Store
from onlinecal.study.tables import long_table

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class Curve:
    """Totals T·μ of one measure for one pair of players.

    Attributes
    ----------
    column : Column
        The column of these totals.
    forecaster, nature : str
        Labels.
    rounds : (n,) ints
        T.
    totals : (n, runs) floats
    fresh : bool
        True: each T is a game of its own, tuned to it. Outcomes are its own, too, unless they are `recorded`. False:
        the prefixes of one long game.
    promises : tuple of (T, Promise)
        The guarantees on this measure and their bounds.
    recorded : bool
        Whether all games were played on one recorded stream, the shorter ones on its beginning.
    open : (n,) ints, optional
        At each T, how many questions have no known outcome: totals are without them. Default: every outcome is known
        before the next question is asked.
    place : int, optional
        Of the forecaster in the study: its curves look the same in every picture. Default: not known.
    """

    column: Column
    forecaster: str
    nature: str
    rounds: Ints
    totals: Floats
    fresh: bool
    promises: tuple[tuple[int, Promise], ...] = ()
    recorded: bool = False
    open: Ints | None = None
    place: int | None = None

    def __repr__(self) -> str:
        low, high = (f"{t:,}" for t in (self.rounds[0], self.rounds[-1]))
        runs = number_of(self.totals.shape[1], "run")
        return f"Curve({self.measure}, {self.forecaster} against {self.nature}, T = {low} to {high}, {runs})"

    @property
    def measure(self) -> str:
        """The name of the column."""
        return self.column.name

    @property
    def mean(self) -> Floats:
        """Mean over runs at each T; NaN where some are infinite and others minus infinite."""
        with np.errstate(invalid="ignore"):
            return self.totals.mean(axis=1)

    def exponent(self, level: float = 0.95) -> Growth | None:
        """The growth of the total over the T of the `tail` (see `growth.fit_growth`); None where it has no exponent.

        Games on a recorded stream count as prefixes of one game, their mean over runs as its single run. Every table
        and picture shows this exponent, with its own 95 % interval.
        """
        rounds, totals = self.tail.rounds, self.tail.totals
        if self.recorded:
            totals = totals.mean(axis=1, keepdims=True)
        found = fit_growth(rounds, totals, fresh=self.independent, level=level)
        return None if found is None else replace(found, cut=len(rounds) < len(self.rounds))

    @property
    def tail(self) -> Curve:
        """The part that is fitted: all of fresh games, the last two decades of the prefixes of one game."""
        keep = self.rounds >= (0 if self.fresh else self.rounds[-1] / 100)
        open = None if self.open is None else self.open[keep]
        return replace(self, rounds=self.rounds[keep], totals=self.totals[keep], open=open)

    @property
    def independent(self) -> bool:
        """Whether the totals at different T come from games that share no randomness."""
        return self.fresh and not self.recorded

    def proven(self) -> float | None:
        """The exponent with which the lowest proven bound grows over these T, logarithms included; None without one."""
        slowest = self.slowest_bound()
        return None if slowest is None else slowest[0]

    def slowest_bound(self) -> tuple[float, Promise] | None:
        """The exponent of `proven`, and the guarantee that it is of, at the last of these T."""
        first, last = int(self.rounds[0]), int(self.rounds[-1])
        if first == last or not self.fresh:
            return None
        starts = {p.formula: p.bound for t, p in self.promises if p.upper and t == first}
        # Which bound is the tightest may change with T; then it is no power over these T.
        ends = [p for t, p in self.promises if p.upper and t == last and p.formula in starts]
        growth = [float(np.log(p.bound / starts[p.formula]) / np.log(last / first)) for p in ends]
        return min(zip(growth, ends, strict=True), key=lambda pair: pair[0], default=None)

    def against_rates(self, level: float = 0.95) -> str:
        """Whether the total grows out of what is proved and known, beyond doubt of the level; see `growth.trend`.

        ``"above proven"``: it grows faster than the bound proved for this forecaster, still at the largest T, and no
        bend leads back. Else ``"above O"``: so against the best known upper rate of the measure; or
        ``"below Ω"``: slower than the lower one. Empty otherwise, and for games that are not fresh and independent:
        rates are about games tuned to T. Best known rates are compared only where no outcome is late.
        """
        check_level(level)
        if not self.independent:
            return ""
        rates = best_known(self.column) if self.open is None else ()
        asked = {"above O" if rate.upper else "below Ω": rate.at(self.rounds) for rate in rates}
        slowest = self.slowest_bound()
        if slowest is not None:
            values = {t: p.bound for t, p in self.promises if p.upper and p.formula == slowest[1].formula}
            if len(values) == len(self.rounds):
                asked = {"above proven": np.array([values[t] for t in self.rounds.tolist()])} | asked
        # Each of three questions may be answered wrongly on one side only.
        strict = 1.0 - (1.0 - level) * 2 / 3
        for said, bound in asked.items():
            grown = trend(self.rounds, self.totals, bound, level=strict)
            if grown is not None and (grown.stays_below(0.0) if "below" in said else grown.stays_above(0.0)):
                return said
        return ""

    def _repr_html_(self) -> str:
        from onlinecal.report.totals import curve_html

        return curve_html(self)

    def plot(self, ax: Axes | None = None) -> Figure:
        """This curve on log-log axes, these or those of a new figure; see `plots.curves`."""
        from onlinecal.report import plots

        return plots.curves([self], ax=ax)


@dataclass(frozen=True)
class Study:
    """All cells that were played, from `play` or from a results file, and their curves, tables and pictures.

    Attributes
    ----------
    cells : tuple of Played
    name, title : str
    order : tuple of str
        All forecasters of the study of which these cells are a part (see `only`).
    """

    cells: tuple[Played, ...]
    name: str = "study"
    title: str = ""
    order: tuple[str, ...] = field(default=(), compare=False)

    @classmethod
    def of(cls, store: Store) -> Study:
        """All that is finished of a results file."""
        meta = store.meta
        return cls(store.cells(), meta["name"], meta["title"])

    # Put in order once: every curve of thousands of cells asks for them.

    @cached_property
    def forecasters(self) -> list[str]:
        """Labels in the order in which they appear."""
        return list(dict.fromkeys(cell.forecaster for cell in self.cells))

    @cached_property
    def natures(self) -> list[str]:
        """Labels in the order in which they appear."""
        return list(dict.fromkeys(cell.nature for cell in self.cells))

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
        group: str = "",
        stream: str = "",
    ) -> Any:
        """Γ of a run, as it was measured; None where it is not kept (see `Played.gamma`).

        Labels or registered names of players, and the horizon, may be left out where there is only one. `round` is one
        of the checkpoints, by default the last; `group` or `stream` a label of one, "" for all rounds, as is
        the group ``all``.
        """
        if group and stream:
            raise InvalidParameter(f"group = {group!r} beside stream = {stream!r}; expected one of them")
        kind, stream = ("group", group) if group else ("stream", stream)
        who = self._only("forecaster", forecaster, self.forecasters)
        whom = self._only("nature", nature, self.natures)
        cells = {cell.horizon: cell for cell in self._pairs.get((who, whom), [])}
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
        if group == ALL and ALL not in cell.streams:
            stream = ""
        if stream and stream not in cell.streams:
            raise UnknownName.of(kind, stream, cell.streams)
        at = -1 if round is None else times.index(round)
        return cell.gamma(at, run, cell.streams.index(stream) if stream else None)

    @cached_property
    def places(self) -> dict[str, int]:
        """Forecaster → its place in the whole study, by which pictures tell it apart from others."""
        return {label: i for i, label in enumerate(dict.fromkeys([*self.order, *self.forecasters]))}

    @cached_property
    def columns(self) -> dict[str, Column]:
        """Name → column, in the order in which they appear."""
        return named(dict.fromkeys(column for cell in self.cells for column in cell.columns))

    @property
    def measures(self) -> list[str]:
        """The names of the columns."""
        return list(self.columns)

    def column(self, measure: str) -> Column:
        """The column of this name; of a bracket that is asked for by its own name, the upper end."""
        return asked_for(measure, self.columns)[-1]

    def only(
        self,
        forecasters: str | Sequence[str] | None = None,
        natures: str | Sequence[str] | None = None,
        *,
        schedules: bool = False,
    ) -> Study:
        """The cells of these forecasters and natures, by label; of all where none are named.

        With `schedules` a nature may also be named without its schedule, for all of its schedules.
        """
        who, whom = (
            [some] if isinstance(some, str) else some or every
            for some, every in ((forecasters, self.forecasters), (natures, self.natures))
        )
        wide = [cell.schedule[0] for cell in self.cells] if schedules else []
        known = list(dict.fromkeys([*self.natures, *filter(None, wide)]))
        who = [meant("forecaster", label, self.forecasters) for label in who]
        whom = [meant("nature", label, known) for label in whom]
        mine = (c for c in self.cells if c.nature in whom or (schedules and c.schedule[0] in whom))
        return Study(tuple(c for c in mine if c.forecaster in who), self.name, self.title, tuple(self.places))

    def curve(
        self,
        measure: str,
        forecaster: str | None = None,
        nature: str | None = None,
        *,
        horizon: int | None = None,
    ) -> Curve:
        """The totals of one measure (the name of a column, such as ``"swap_regret[umbrella]"``) against T.

        Of a bracket that is asked for by its own name it is the upper end, ``"distance_lower[upper]"``. Labels or
        registered names of players may be left out where there is only one. Of a `horizon` it is the prefixes
        of this game. Default: the ends of the games where there are several horizons, else the prefixes.
        """
        who = self._only("forecaster", forecaster, self.forecasters)
        whom = self._only("nature", nature, self.natures)
        column = self.column(measure)
        measure = column.name
        cells = [cell for cell in self._pairs.get((who, whom), []) if measure in cell.totals]
        if horizon is not None:
            cells = [c for c in cells if c.horizon == horizon]
        if not cells:
            at = "" if horizon is None else f" at horizon {horizon}"
            raise InvalidParameter(f"{measure} of {who} against {whom}{at} was not played")
        promises = tuple((c.horizon, p) for c in cells for p in c.promises if p.measure == measure)
        fresh = len(cells) > 1
        if fresh:
            rounds = np.array([c.horizon for c in cells])
            totals = in_common([c.totals[measure][-1] for c in cells])
            open = [open_at_the_end(c) for c in cells]
        else:
            rounds, totals = cells[0].rounds, cells[0].totals[measure]
            open = list(cells[0].open or np.zeros(len(rounds), np.int64))
        return Curve(
            column, who, whom, rounds, totals, fresh, promises, any(c.recorded for c in cells),
            np.array(open) if any(c.open for c in cells) else None, self.places[who],
        )  # fmt: skip

    def curves(self, measures: str | Iterable[str] | None = None) -> list[Curve]:
        """Every curve that there is of these measures or of all, once each: by nature, measure and forecaster."""
        names = self.measures if measures is None else [column.name for column in columns_of(self, measures)]
        return [
            self.curve(measure, who, whom)
            for whom in self.natures
            for measure in names
            for who in self.forecasters
            if any(measure in cell.totals for cell in self._pairs.get((who, whom), ()))
        ]

    def exponent(
        self, measure: str, forecaster: str | None = None, nature: str | None = None, *, level: float = 0.95
    ) -> Growth | None:
        """The growth of the total of a curve; None where it has no exponent (see `Curve.exponent`)."""
        return self.curve(measure, forecaster, nature).exponent(level)

    def measure_again(self, measures: Iterable[Any] = (), tasks: Iterable[Any] = ()) -> Study:
        """The same study with further columns, computed from the level sets that are kept; nothing is played.

        Measures and tasks are as `play` takes them. A cell in which something cannot be computed is without it.
        """
        from onlinecal.study.again import measured_later, panel_of  # they need the engine

        longest = max((cell.horizon for cell in self.cells), default=None)
        panel = panel_of(measures, tasks, longest, self.columns.values())
        found = [measured_later(cell, panel) for cell in self.cells]
        for (name, why), count in Counter(reason for _, reasons in found for reason in reasons).items():
            if count == len(found):
                raise InvalidData(f"{name!r} cannot be computed, since {why}; expected to play it")
        return replace(self, cells=tuple(cell for cell, _ in found))

    def save(self, path: Path | str, *, overwrite: bool = False) -> None:
        """Writes the study, with the level sets that are kept, into a results file that `onlinecal.load` reads.

        With `overwrite` a results file that is there is replaced.
        """
        save(self.cells, Path(path), self.name, self.title, overwrite=overwrite)

    def table(self) -> pd.DataFrame:
        """Every number: columns forecaster, nature, horizon, measure, round, run, total."""
        names = ["forecaster", "against", "horizon", "column", "round", "run", "total"]
        return long_table(self.cells)[names].rename(columns={"against": "nature", "column": "measure"})

    def plot(self, measures: str | Sequence[str] | None = None) -> Figure:
        """The curves on log-log axes, natures down, measures across; see `plots.curves`."""
        from onlinecal.report import plots

        return plots.curves(self.curves(measures))

    def __repr__(self) -> str:
        return (
            f"Study({number_of(len(self.cells), 'cell')}; forecasters: {listed(self.forecasters, 4)}; "
            f"natures: {listed(self.natures, 4)}; measures: {listed(self.measures, 4)})"
        )

    def _repr_html_(self) -> str:
        from onlinecal.report.totals import study_html

        return study_html(self)

    def _only(self, kind: str, label: str | None, labels: list[str]) -> str:
        if label is None:
            if len(labels) == 1:
                return labels[0]
            raise InvalidParameter(f"there are several {kind}s; expected {kind}= one of {', '.join(labels)}")
        return meant(kind, label, labels)


def columns_of(study: Study, measures: str | Iterable[str] | None, most: int | None = None) -> list[Column]:
    """The columns of these names, once each; at least one. Where none is named, at most this number of measures.

    Streams, brackets, tasks and certificates are taken when asked for, or where there is nothing else.
    """
    if measures is None:
        plain = [
            c
            for c in study.columns.values()
            if c.kind in ("measure", "function", "class_measure", "class_function")
            and not c.end
            and not c.stream
        ]
        return (plain or [*study.columns.values()])[:most]
    names = [measures] if isinstance(measures, str) else [*measures]
    if not names:
        raise InvalidParameter("no measures to draw; expected at least one")
    known = study.columns
    return list(dict.fromkeys(column for name in names for column in asked_for(name, known)))


def runs_of(cells: Iterable[Played]) -> set[int]:
    """The numbers of runs of these cells."""
    return {next(iter(cell.totals.values())).shape[1] for cell in cells}


def open_at_the_end(cell: Played) -> int:
    """The number of questions without a known outcome at the end of a game."""
    return cell.open[-1] if cell.open else 0


def in_common(totals: Sequence[Floats]) -> Floats:
    """Those of the runs that all have, (n, runs): a results file made of several may have more of some games."""
    runs = min(map(len, totals))
    return np.stack([each[:runs] for each in totals])


def summary(values: Any) -> tuple[float, float]:
    """Mean over runs and the half-width of its 95 % interval by Student's t."""
    from scipy.special import stdtrit

    v = np.asarray(values, dtype=np.float64)
    if len(v) < 2:
        return float(v.mean()), float("inf")
    if np.isfinite(v[0]) and (v == v[0]).all():
        return float(v[0]), 0.0  # not what rounding in the mean would make of it
    with np.errstate(invalid="ignore"):
        return float(v.mean()), float(stdtrit(len(v) - 1, 0.975) * v.std(ddof=1) / np.sqrt(len(v)))
