"""The page of a study: its contents, as one HTML file that needs nothing else."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.progress import Progress
from onlinecal.core.words import number_of
from onlinecal.measures import MEASURES
from onlinecal.report.answer import answer
from onlinecal.report.document import Document, Part, Section
from onlinecal.report.page_pictures import MOST, Gallery, gallery
from onlinecal.report.tables import Cell, Table, number
from onlinecal.report.totals import AGAINST_RATES, Total, by_nature, legend_of, main_columns, totals
from onlinecal.study.compare import Contest, ranking, remarks, simultaneous
from onlinecal.study.curves import Study, runs_of
from onlinecal.study.entries import Planned

#: names in a list
LISTED = 12
#: after a name that is certain, as in tables of dominations
CERTAIN = "†"


QUESTION = (
    "Each forecaster predicts the probability of a yes/no event, round by round, against natures, which decide the "
    "outcomes. A measure μ says how good the forecasts of a game of T rounds are, most measures how far they are from "
    "calibrated; the tables and pictures have the total T·μ. Where it grows more slowly than T itself, μ goes to 0."
)


@dataclass(frozen=True)
class StudyPage(Document):
    """The page of a study, with the pictures on it."""

    drawn: Gallery = field(default_factory=Gallery)


def page_of(
    study: Study,
    meta: Mapping[str, str],
    planned: int,
    source: str,
    failed: Sequence[tuple[Planned, str, str]] = (),
) -> StudyPage:
    """The page of a study with the `meta` of the results file `source`, and what of its `planned` cells failed."""
    shown = shown_columns(study)
    rows = totals(study, all_columns(study))
    fitted = {row.measure for row in rows if row.exponent is not None}
    whole_ones = [name for name in shown if not study.columns[name].end]
    with Progress(MOST, unit="pictures") as progress:
        drawn = gallery(study, whole_ones, [m for m in shown if m in fitted][:4], progress)
    done, scenario, best = len(study.cells), meta.get("scenario", ""), lowest(study)
    cells = f"{done:,} of {planned:,}" if done < planned else f"All {done:,}"
    said = answer(study, shown[0]) if shown else []
    remarked = {row.against_rates for row in rows}
    notes = [f"{part[0].upper()}{part[1:]}." for part in legend_of(rows)] + [
        f"{remark}: {meaning.format(rate='the best known rate of its measure')}."
        for remark, meaning in AGAINST_RATES.items() if remark in remarked
    ]  # fmt: skip
    missing = not_played(failed, json.loads(meta.get("incompatible", "[]")))
    versions = [
        ("onlinecal", meta.get("version", "unknown")),
        ("time of playing, of all games added", _time(sum(cell.seconds for cell in study.cells))),
        ("results file", source),
    ]
    sections = [
        Section("What was asked", [
            Part("p", QUESTION), Part("terms", _asked(study)), Part("h3", "The measures"),
            Part("terms", _measures(study, shown)),
        ], "asked"),
        Section("Not played", _parts("table", missing), "missing"),
        Section("Summary", [
            *_parts("table", best), *_parts("list", [*bounds(study), *beyond(rows)]),
        ], "summary"),
        Section("Tables", [
            Part("notes", notes),
            *(Part("table", table) for table in by_nature(study, rows, all_columns(study), remark=True)),
        ], "tables"),
        Section("Pictures", [
            *_parts("h3", drawn.curves and "Totals against T"), *_parts("state", drawn.shared),
            *_parts("pictures", drawn.curves), *_parts("h3", drawn.others and "More of it"),
            *_parts("pictures", drawn.others), *_parts("state", " ".join(drawn.left)),
        ], "pictures"),
        Section("How to repeat it", [
            Part("pre", "\n".join(_commands(study.name, source, bool(scenario), meta.get("options", "")))),
            Part("terms", versions), *_parts("h3", scenario and "Scenario"), *_parts("pre", scenario),
        ], "repeat"),
    ]  # fmt: skip
    first = [*_parts("p", " ".join(said)), Part("state", f"{cells} cells are finished.")]
    return StudyPage(study.title or study.name, first, [each for each in sections if each.parts], drawn)


def _parts(kind: str, content: Any) -> list[Part]:
    """One part; none where it is empty."""
    return [Part(kind, content)] if content else []


def shown_columns(study: Study) -> list[str]:
    """The columns of the summary: of all questions, each measure, and of each task its swap regret."""
    return main_columns(study) or study.measures


def all_columns(study: Study) -> list[str]:
    """All columns: streams, the accounts of tasks beside the swap regret, and certificates come last."""
    return list(dict.fromkeys([*shown_columns(study), *study.measures]))


def _asked(study: Study) -> list[tuple[str, str]]:
    """The questions of the study, as terms with what they are here."""
    times = sorted({cell.horizon for cell in study.cells})
    runs = sorted(runs_of(study.cells))
    most = max(len(cell.rounds) for cell in study.cells)
    played = f"{times[0]:,}, read at {'its end' if most == 1 else f'{most} times of one game'}"
    if len(times) > 1:
        played = f"{len(times)} from {times[0]:,} to {times[-1]:,}, each a game of its own"
    names = {"forecaster": study.forecasters, "nature": study.natures, "measure": shown_columns(study)}
    return [
        *((number_of(len(some), kind), _list(some)) for kind, some in names.items()),
        ("rounds T", played),
        ("runs", " to ".join(f"{n:,}" for n in dict.fromkeys([runs[0], runs[-1]])) + " of each pair"),
    ]


def _measures(study: Study, shown: Sequence[str]) -> list[tuple[str, str]]:
    """The meaning of each measure of the catalogue, and of the swap regret of tasks."""
    found: dict[str, str] = {}
    for column in (study.columns[name] for name in shown):
        if column.kind == "measure" and column.measure in MEASURES:
            record = MEASURES[column.measure]
            first = (record.function.__doc__ or "").strip().splitlines()[0]
            found.setdefault(column.measure, f"{first} Source: {record.source}.")
        elif column.of_task:
            found["swap_regret[task]"] = (
                "The gain of a decision maker from another action in place of the one taken on each prediction, the "
                "same in all rounds with that prediction."
            )
    return list(found.items())


def _commands(name: str, source: str, scenario: bool, options: str) -> list[str]:
    """How to play it again."""
    if not scenario:
        return [f"onlinecal compare {shlex.quote(source)}", f"onlinecal plot {shlex.quote(source)}"]
    run = " ".join(filter(None, ("onlinecal run", shlex.quote(f"{name}.toml"), options)))
    return [
        "pip install onlinecal",
        f"{run}  # the scenario below, saved under this name",
        f"onlinecal report {shlex.quote(f'results/{name}.db')}",
    ]


def _time(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.3g} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def _list(names: Sequence[str], between: str = ", ") -> str:
    more = f"{between}and {len(names) - LISTED:,} more" if len(names) > LISTED else ""
    return between.join(names[:LISTED]) + more


# ---------------------------------------------------------------- tables


def lowest(study: Study) -> Table | None:
    """The forecasters with the lowest mean totals at the largest T, measures down, natures across; None without any.

    The last column, of several natures, has the forecaster with the lowest maximum over all of them.
    """
    # The two ends of a bracket are not totals of the measure itself.
    measures = [name for name in shown_columns(study) if not study.columns[name].end]
    rows: list[list[Any]] = []
    contests: list[Contest] = []
    several = len(study.natures) > 1
    for measure in measures:
        try:
            order = ranking(study, measure, simultaneous(len(measures)))
        except InvalidParameter:  # no two forecasters have been played
            continue
        contests += order
        # One that is infinite both ways is the largest: nothing is below it.
        mine = {c.nature: pd.Series(c.means[:, 0], c.forecasters).fillna(np.inf) for c in order}
        means = pd.DataFrame(mine).reindex(study.forecasters)
        cells = dict.fromkeys(study.natures, Cell())
        for contest in order:
            # Of a payoff the lowest is the one that all others are better than.
            below = contest.certain if contest.signs[0] > 0 else contest.certain.T
            alone = np.flatnonzero(below.sum(axis=1) == len(contest.forecasters) - 1)
            cell = _least(means[contest.nature].dropna())
            mark = f" {CERTAIN}" * (cell.text in [contest.forecasters[i] for i in alone])
            cells[contest.nature] = cell._replace(text=cell.text + mark)
        rows.append([measure, *cells.values()])
        if several:
            largest = means.dropna().max(axis=1)
            cell = _least(largest)
            lowest_of_all = largest.index[largest == cell.value]
            against = f"\nagainst {means.loc[lowest_of_all[0]].idxmax()}" if len(lowest_of_all) else ""
            rows[-1].append(cell._replace(note=cell.note + against))
    if not rows:
        return None
    headings = ["measure", *study.natures, *["largest of its totals over the natures"] * several]
    sure = any(CERTAIN in cell.text for _, *cells in rows for cell in cells)
    meaning = (
        f"{CERTAIN}: the expected total is lower than that of every other forecaster beyond doubt, by Student's t on "
        "one difference a run, Holm's procedure over all pairs and natures, and Bonferroni's over measures. All "
        f"{CERTAIN} of the table hold together with 95 % if differences are normal. Without {CERTAIN} the lowest mean "
        "may be chance" + "; the last column is not tested" * several
        if sure
        else "No mean is the lowest beyond doubt (Student's t on one difference a run, for the whole table together "
        "with 95 %): the order may be chance"
    )
    more = f"{meaning}. `onlinecal compare RESULTS --ranking` says which forecasters are told apart."
    notes = [more, *(f"{said}." for said in remarks(contests))]
    return Table("Lowest mean total at the largest T", headings, rows, notes)


def _least(means: pd.Series) -> Cell:
    finite = means[np.isfinite(means)]
    if finite.empty:
        return Cell("–", note="no total is finite") if len(means) else Cell()
    least = float(finite.min())
    return Cell(", ".join(finite.index[finite == least]), least, number(least))


def not_played(
    failed: Sequence[tuple[Planned, str, str]], incompatible: Sequence[Sequence[str]]
) -> Table | None:
    """Cells that failed, and pairs that cannot play each other (forecaster, nature, why); else None."""
    found: dict[tuple[str, str, str], list[int]] = {}
    for planned, why, _ in failed:
        found.setdefault((planned.forecaster, planned.against, why), []).append(planned.horizon)
    rows = [
        (who, whom, ", ".join(f"{t:,}" for t in sorted(times)), f"failed: {why}")
        for (who, whom, why), times in found.items()
    ]
    rows += [(who, whom, "all", f"cannot be played: {why}") for who, whom, why in incompatible]
    return Table("", ("forecaster", "nature", "T", "why"), rows, words=True) if rows else None


# ---------------------------------------------------------------- sentences


def bounds(study: Study) -> list[str]:
    """Sentences on whether the proven bounds at the end of each game hold in what was played."""
    held = 0
    beyond: dict[str, list[str]] = {
        "Broken in some run, which a proven bound does not allow": [],
        "The mean of these runs is beyond a bound of the expectation, as may happen by chance": [],
    }
    broken, chance = beyond.values()
    for cell, promise in ((c, p) for c in study.cells for p in c.promises):
        if promise.kind == "rate" or promise.measure not in cell.totals:
            continue
        totals, alone = cell.totals[promise.measure][-1], promise.kind == "deterministic"
        sign = 1.0 if promise.upper else -1.0
        # A bound that is attained may be missed by the rounding of the total.
        edge = sign * promise.bound + 1e-9 * max(1.0, abs(promise.bound))
        if not np.any(sign * (totals if alone else totals.mean()) > edge):
            held += 1
            continue
        (broken if alone else chance).append(
            f"{promise.measure} {'≤' if promise.upper else '≥'} {promise.formula} of {cell.forecaster} against "
            f"{cell.nature} at T = {cell.horizon:,}"
        )
    said, every = [], held + len(broken) + len(chance)
    if held:
        some = f"{held:,} of {every:,} proven bounds" if held < every else f"All {every:,} proven bounds"
        rest = "sure ones in every run, those in expectation for the mean"
        said.append(f"{some} held: {rest}." if every > 1 else "The one proven bound held.")
    return said + [f"{words}: {_list(names)}." for words, names in beyond.items() if names]


#: the remarks of `Curve.against_rates` that are worth a sentence
_BEYOND = {
    "above proven": "faster over these T than the bound proved for their forecaster, below which they may still lie",
    "above O": "faster over these T than the best known rate, which some forecaster is proved to keep against every "
    "nature that its source admits",
}


def beyond(rows: Sequence[Total]) -> list[str]:
    """Sentences on totals that grow out of what is proved or known."""
    said = []
    for remark, words in _BEYOND.items():
        found: dict[str, list[str]] = {}
        for row in rows:
            if row.against_rates == remark:
                found.setdefault(f"{row.forecaster} against {row.nature}", []).append(row.measure)
        if found:
            parts = [f"{pair} ({_list(measures)})" for pair, measures in found.items()]
            said.append(f"Totals that grow {words}: {_list(parts, '; ')}.")
    return said
