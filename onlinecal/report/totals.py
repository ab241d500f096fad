"""Totals at the largest T and their growth: a DataFrame, and its tables on the terminal, in notebooks and pages."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from onlinecal.core.columns import ROUNDS, Column
from onlinecal.core.progress import Progress
from onlinecal.core.words import counted, listed, number_of
from onlinecal.growth import Growth
from onlinecal.growth.rates import known_rates
from onlinecal.growth.words import legend, line, lines
from onlinecal.report.tables import Table, crossed, of_rows, template
from onlinecal.report.terminal import new_console, number
from onlinecal.study.curves import Curve, Study, runs_of, summary

#: rows of a table in a notebook, and columns of measures
ROWS, MEASURES = 40, 6
#: the meanings of the remarks of `Curve.against_rates`
AGAINST_RATES = {
    "above proven": "grows faster over these T, and still at the largest, than the bound proved for this forecaster",
    "above O": "grows faster over these T, and still at the largest, than the best known rate, which some forecaster "
    "provably keeps",
    "below Ω": "grows slower over these T, and still at the largest, than the best known rate: this nature is easier "
    "than the worst one",
}
REMARKS = "a remark marks growth outside this range, of games tuned to their T with outcomes drawn and known at once"
#: of a total, and of what stands behind it
TOTAL = "mean total T·μ over the runs, of questions with a known outcome"
EMPTY = "empty groups, without a round: {}"
SPREAD = " ± half-width of its 95 % interval by Student's t, each by itself"
#: the columns of `totals`
TOTALS = [
    "nature",
    "forecaster",
    "measure",
    "horizon",
    "open",
    "runs",
    "total",
    "half_width",
    "against_rates",
    "exponent",
]


# ---------------------------------------------------------------- the DataFrame


def totals(study: Study, measures: Sequence[str] | None = None) -> pd.DataFrame:
    """A row for each nature, measure and forecaster: its mean total at the largest T, and its growth.

    ``open`` counts the questions without a known outcome then. ``half_width`` is of the 95 % interval of the mean, NaN
    where it is not known. ``exponent`` is a `Growth` or None.
    """
    curves, rows = study.curves(measures), []
    with Progress(len(curves), unit="curves") as progress:
        for curve in curves:
            mean, half = summary(curve.totals[-1])
            open = 0 if curve.open is None else int(curve.open[-1])
            rows.append((
                curve.nature, curve.forecaster, curve.measure, int(curve.rounds[-1]), open, curve.totals.shape[1], mean,
                half if math.isfinite(half) else math.nan, curve.against_rates(), curve.exponent(),
            ))  # fmt: skip
            progress.advance(1)
    return pd.DataFrame(rows, columns=TOTALS).astype({"exponent": object})


def totals_data(rows: pd.DataFrame) -> list[dict[str, Any]]:
    """These rows as data, None for an interval or an exponent that there is not."""
    return [
        row
        | {"exponent": None if row["exponent"] is None else row["exponent"].as_json()}
        | {"half_width": None if math.isnan(row["half_width"]) else row["half_width"]}
        for row in rows.to_dict("records")
    ]


def main_columns(study: Study, *, streams: bool = False) -> list[str]:
    """The columns of short tables: all but certificates and numbers of rounds, of tasks the swap regret.

    They are of all questions, or of streams and groups, too.
    """
    return [
        name
        for name, column in study.columns.items()
        if (streams or not column.stream)
        and not (column.stream and column.measure == ROUNDS)
        and (column.measure == "swap_regret" if column.of_task else column.kind != "certificate")
    ]


# ---------------------------------------------------------------- cells and legends


def cells(
    rows: pd.DataFrame, horizon: int, *, spread: bool = True, growth: bool = True, remark: bool = False
) -> list[str]:
    """The texts of cells: a total, its T where it is not that of the heading, its growth."""
    found = []
    for row in rows.itertuples():
        notes = [f"at T = {row.horizon:,}"] * (row.horizon != horizon)
        notes += lines(row.exponent) if growth and row.exponent else ["–"] * growth
        notes += [row.against_rates] * bool(remark and row.against_rates)
        found.append("\n".join([with_spread(row.total, row.half_width if spread else math.nan), *notes]))
    return found


def with_spread(total: float, half: float) -> str:
    """A total, and the half-width of its interval where there is one; rounding alone makes none."""
    if math.isnan(half):
        return number(total)
    return f"{number(total)} ± {number(half if half > 1e-12 * abs(total) else 0.0)}"


def legend_of(rows: pd.DataFrame, *, spread: bool = True) -> list[str]:
    """The parts of a legend on totals and on exponents."""
    return [TOTAL + SPREAD * spread, *legend(rows["exponent"])]


def longest(rows: pd.DataFrame) -> tuple[int, str]:
    """The largest T of some rows, and how many questions are open then, for a heading."""
    horizon = int(rows["horizon"].max())
    open = rows.loc[rows["horizon"] == horizon, "open"].max()
    return horizon, f", {open:,} open at the end" if open else ""


# ---------------------------------------------------------------- tables


def by_nature(study: Study, rows: pd.DataFrame, measures: Sequence[str], **shown: bool) -> list[Table]:
    """A table for each nature: forecasters down, measures across; those of a stream or a group have their own.

    Groups without rounds have none, and are named below the first. Open questions are counted over all streams.
    `shown` says what cells have (see `cells`).
    """
    streams = dict.fromkeys(["", *(study.columns[measure].stream for measure in measures)])
    found = []
    for nature, mine in rows.groupby("nature", sort=False):
        horizon, open = longest(mine)
        mine = mine.assign(text=cells(mine, horizon, **shown))
        sizes = group_sizes(study, str(nature))
        empty = [name for name, size in sizes.items() if size == 0.0]
        notes = [EMPTY.format(", ".join(empty))] * bool(empty)
        for stream in (stream for stream in streams if stream not in empty):
            own = [m for m in measures if study.columns[m].stream == stream and m in set(mine["measure"])]
            if not own:
                continue
            some = mine[mine["measure"].isin(own)]
            of = f", the questions of {stream}" if stream else ""
            if stream in sizes:
                of = f", the group {stream} of {sizes[stream]:,.0f} rounds"
            of += f", T = {horizon:,}" + open * (not stream)
            cross = partial(crossed, some, "forecaster", "measure", study.forecasters, own)
            found.append(Table(f"{nature}{of}", cross("text"), notes, values=cross("total")))
            notes = []
    return found


def group_sizes(study: Study, nature: str) -> dict[str, float]:
    """Group → its mean number of rounds at the largest T."""
    cells = [cell for cell in study.cells if cell.nature == nature and cell.groups]
    longest = [cell for cell in cells if cell.horizon == max(each.horizon for each in cells)]
    sizes: dict[str, list[float]] = {}
    for cell in longest:
        for name in cell.groups:
            rounds = cell.totals[Column("measure", ROUNDS, stream=name).name][-1]
            sizes.setdefault(name, []).append(float(rounds.mean()))
    return {name: float(np.mean(each)) for name, each in sizes.items()}


def exponents_markdown(study: Study) -> str:
    """A Markdown table for each measure: forecasters down, natures across; exponents, intervals, what is proven."""
    every, parts = totals(study), []
    beyond = every["against_rates"].eq("above proven") & every["exponent"].notna()
    growths = ["–" if growth is None else line(growth) for growth in every["exponent"]]
    every["text"] = [text + " †" * dagger for text, dagger in zip(growths, beyond, strict=True)]
    sizes = [group_sizes(study, nature) for nature in study.natures]
    groups = list(dict.fromkeys(name for each in sizes for name in each))
    empty = [name for name in groups if not any(each.get(name) for each in sizes)]
    for measure, column in study.columns.items():
        if column.stream in empty:
            continue
        rows, rates = every[every["measure"] == measure], known_rates(column)
        frame = crossed(rows, "forecaster", "nature", study.forecasters, study.natures, "text")
        frame.insert(frame.shape[1], "proven", [_proofs(study, measure, who) for who in frame.index], True)
        title, _, table = Table(measure, frame).markdown().partition("\n\n")
        parts.append(title + (f" (best known: {rates})" if rates else "") + "\n\n" + table)
    notes = legend(every["exponent"]) + [EMPTY.format(", ".join(empty))] * bool(empty)
    parts.append("\n".join(f"- {part}." for part in notes))
    if beyond.any():
        parts.append(f"†: {AGAINST_RATES['above proven']}.")
    return "\n\n".join(parts)


def _proofs(study: Study, measure: str, forecaster: str) -> str:
    """The exponents of the bounds that are proved for a forecaster, and these."""
    curves = study.only(forecaster).curves([measure])
    found = {
        f"{exponent:.2f}: " + (f"O({p.formula})" if p.kind == "rate" else f"≤ {p.formula}")
        for exponent, p in filter(None, (curve.slowest_bound() for curve in curves))
    }
    return "; ".join(sorted(found)) or "–"


# ---------------------------------------------------------------- notebooks


def study_html(study: Study) -> str:
    """For notebooks: a table for each of the first natures, with totals and exponents of the first measures."""
    every, pairs = main_columns(study), len(study.forecasters) * len(study.natures)
    shown, forecasters = every[:MEASURES], study.forecasters[:ROWS]
    natures = study.natures[: max(1, ROWS // max(1, len(study.forecasters)))]
    some = study.only(forecasters, natures) if pairs > ROWS else study
    rows = totals(some, shown)
    notes = legend_of(rows)
    if some is not study or len(every) > MEASURES:
        notes.append("not all is shown; study.table() has every number")
    return notebook(study.title or study.name or "Study", by_nature(some, rows, shown), notes)


def curve_html(curve: Curve) -> str:
    """A table for notebooks: a row for each T, with the mean total over the runs, half of its interval, the average."""
    # Evenly, with the last.
    step = -(-len(curve.rounds) // ROWS)
    shown = range((len(curve.rounds) - 1) % step, len(curve.rounds), step)
    rows = []
    for i in shown:
        (mean, half), t = summary(curve.totals[i]), int(curve.rounds[i])
        rows.append([f"{t:,}", number(mean), number(half) if math.isfinite(half) else "–", number(mean / t)])
    growth = curve.exponent()
    notes = [] if growth is None else [" ".join(lines(growth)), *legend([growth])]
    notes += [f"{len(rows)} of {len(curve.rounds)} T are shown"] * (len(rows) < len(curve.rounds))
    mean_of = f"mean total of {number_of(curve.totals.shape[1], 'run')}"
    frame = of_rows(["T", mean_of, "± 95 %", "a round"], rows)
    return notebook(f"{curve.measure}: {curve.forecaster} against {curve.nature}", [Table("", frame)], notes)


def notebook(title: str, tables: Sequence[Table], notes: Sequence[str]) -> str:
    """Tables and notes as HTML for a notebook."""
    return str(template("table.html").module.notebook(title, tables, notes))  # type: ignore[attr-defined]


# ---------------------------------------------------------------- after a run of very many cells

#: of more totals than this not every one is printed after a run
LONG = 1000
#: forecasters and natures that are named from each end of their order
SHOWN = 5
#: and the number of measures
FIRST_MEASURES = 3


class Overview(NamedTuple):
    """Mean totals of a measure at the largest T over the opponents: least, median, largest, easiest and hardest.

    Forecasters are in the order of their largest total, natures of their least one, descending. Pairs that end earlier
    are left out, and those with infinite totals of both signs.
    """

    horizon: int
    forecaster: pd.DataFrame
    nature: pd.DataFrame


def long(study: Study, measures: Sequence[str]) -> bool:
    """Whether a study has too many totals of these measures for each of them to be printed after a run."""
    return len({(cell.forecaster, cell.nature) for cell in study.cells}) * len(measures) > LONG


def overview(study: Study, measure: str) -> Overview:
    """One measure at the largest T of the study."""
    cells = [cell for cell in study.cells if measure in cell.totals]
    last = max(cell.horizon for cell in cells)
    with np.errstate(invalid="ignore"):  # of what is infinite both ways
        there = [(c.forecaster, c.nature, c.totals[measure][-1].mean()) for c in cells if c.horizon == last]
    rows = pd.DataFrame(there, columns=["forecaster", "nature", "mean"]).dropna()
    means = crossed(rows, "forecaster", "nature", study.forecasters, study.natures, "mean")
    frames = [
        pd.DataFrame({
            "least": table.min(axis=1), "median": table.median(axis=1), "largest": table.max(axis=1),
            "easiest": table.idxmin(axis=1), "hardest": table.idxmax(axis=1),
        })
        for table in (means, means.T.dropna(how="all"))
    ]  # fmt: skip
    return Overview(
        last,
        frames[0].sort_values(["largest", "median"], kind="stable"),
        frames[1].sort_values(["least", "median"], kind="stable", ascending=False),
    )


#: of a row: the extreme by which it is placed, the opponent there, and words
ENDS = {
    "forecaster": ("largest", "hardest", "against", "their largest total over the natures"),
    "nature": ("least", "easiest", "of", "the least total of any forecaster"),
}


def print_overview(study: Study, title: str, measures: Sequence[str]) -> None:
    """Prints forecasters and natures from both ends of their order, for each of the first measures."""
    console = new_console()
    console.print(title, style="bold", markup=False)
    who, whom = number_of(len(study.forecasters), "forecaster"), number_of(len(study.natures), "nature")
    console.print(f"{who} against {whom}, {counted(runs_of(study.cells))}", markup=False)
    growths: list[Growth] = []
    for measure, (kind, (first, opponent, between, by)) in product(measures[:FIRST_MEASURES], ENDS.items()):
        found = overview(study, measure)
        frame, rows = getattr(found, kind), []
        middle = frame.index[SHOWN:-SHOWN]
        for name, row in frame.drop(middle).iterrows():
            pair = {kind: str(name), "nature" if kind == "forecaster" else "forecaster": row[opponent]}
            growth = study.curve(measure, **pair).exponent()
            growths += [growth] if growth else []
            total = "\n".join([number(row[first]), *(lines(growth) if growth else ())])
            rows.append([str(name), total, row[opponent], *map(number, row[["least", "median", "largest"]])])
        heading = f"{measure}: {kind}s by {by}, T = {found.horizon:,}"
        more = [f"and {len(middle):,} more {kind}s between them"] * bool(len(middle))
        headings = [kind, "total", between, "least", "median", "largest"]
        Table(heading, of_rows(headings, rows), more).print(console)
    said = f"{TOTAL}; of very many the largest and the least are so by chance, too"
    console.print("; ".join([said, *legend(growths)]), markup=False)
    if rest := measures[FIRST_MEASURES:]:
        console.print(f"measured, too: {listed(rest, SHOWN)}", markup=False)


def ways_on(path: Path, measure: str) -> str:
    """The commands that show all of it."""
    file, table = shlex.quote(str(path)), shlex.quote(str(path.with_suffix(".csv")))
    return (
        f"every total: onlinecal export {file} -o {table}\n"
        f"a measure: onlinecal compare {file} --measure {shlex.quote(measure)}\n"
        f"a page: onlinecal report {file}"
    )
