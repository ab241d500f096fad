"""The page of a study: its contents, as one HTML file that needs nothing else."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.progress import Progress
from onlinecal.core.words import counted, listed, number_of
from onlinecal.report.document import Document, Part, Section
from onlinecal.report.page_pictures import MOST, Gallery, gallery
from onlinecal.report.tables import Table, of_rows
from onlinecal.report.terminal import number
from onlinecal.report.totals import AGAINST_RATES, by_nature, legend_of, main_columns, totals
from onlinecal.study.asked import known_measures
from onlinecal.study.compare import Contest, ranking, remarks, simultaneous
from onlinecal.study.curves import Study, runs_of
from onlinecal.study.entries import Planned

QUESTION = (
    "Each forecaster predicts the probability of a yes/no event, round by round, against natures, which decide the "
    "outcomes. A measure μ says how good the forecasts of a game of T rounds are, most measures how far they are from "
    "calibrated; the tables and pictures have the total T·μ. Where it grows more slowly than T itself, μ goes to 0."
)


#: after a name that is certain
CERTAIN = "†"
LOWEST = (
    "†: the expected total is lower than that of every other forecaster beyond doubt, by Student's t on one difference "
    "a run, Holm's procedure over pairs and natures, and Bonferroni's over measures. All † of the table hold together "
    "with 95 % if differences are normal. Without † the order may be chance; the largest over natures is not tested. "
    "`onlinecal compare RESULTS --ranking` says which forecasters are told apart."
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
    fitted = set(rows.loc[rows["exponent"].notna(), "measure"])
    whole_ones = [name for name in shown if not study.columns[name].end]
    with Progress(MOST, unit="pictures") as progress:
        drawn = gallery(study, whole_ones, [m for m in shown if m in fitted][:4], progress)
    done, scenario, best = len(study.cells), meta.get("scenario", ""), lowest(study)
    cells = f"{done:,} of {planned:,}" if done < planned else f"All {done:,}"
    remarked = set(rows["against_rates"])
    notes = [f"{part[0].upper()}{part[1:]}." for part in legend_of(rows)] + [
        f"{remark}: {meaning}."
        for remark, meaning in AGAINST_RATES.items() if remark in remarked
    ]  # fmt: skip
    missing = not_played(failed, json.loads(meta.get("incompatible", "[]")))
    versions = [
        ("onlinecal", meta.get("version", "unknown")),
        ("time of playing, of all games added", f"{sum(cell.seconds for cell in study.cells):,.3g} s"),
        ("results file", source),
    ]
    sections = [
        Section("Summary", [Part("table", best), Part("list", bounds(study))], "summary"),
        Section("What was asked", [
            Part("p", QUESTION), Part("terms", _asked(study)), Part("h3", "The measures"),
            Part("terms", _measures(study, shown)),
        ], "asked"),
        Section("Not played", [Part("table", missing)], "missing"),
        Section("Tables", [
            Part("notes", notes),
            *(Part("table", table) for table in by_nature(study, rows, all_columns(study), remark=True)),
        ], "tables"),
        Section("Pictures", [
            Part("h3", "Totals against T" if drawn.curves else ""), Part("state", drawn.shared),
            Part("pictures", drawn.curves), Part("h3", "More of it" if drawn.others else ""),
            Part("pictures", drawn.others), Part("state", " ".join(drawn.left)),
        ], "pictures"),
        Section("How to repeat it", [
            Part("pre", "\n".join(_commands(study.name, source, bool(scenario), meta.get("options", "")))),
            Part("terms", versions), Part("h3", scenario and "Scenario"), Part("pre", scenario),
        ], "repeat"),
    ]  # fmt: skip
    return StudyPage(
        study.title or study.name, [Part("state", f"{cells} cells are finished.")], sections, drawn
    )


def shown_columns(study: Study) -> list[str]:
    """The columns of the summary: of all questions, each measure, and of each task its swap regret."""
    return main_columns(study) or study.measures


def all_columns(study: Study) -> list[str]:
    """All columns: streams, the accounts of tasks beside the swap regret, and certificates come last."""
    return list(dict.fromkeys([*shown_columns(study), *study.measures]))


def _asked(study: Study) -> list[tuple[str, str]]:
    """The questions of the study, as terms with what they are here."""
    times = listed([f"{t:,}" for t in sorted({cell.horizon for cell in study.cells})])
    most = max(len(cell.rounds) for cell in study.cells)
    names = {"forecaster": study.forecasters, "nature": study.natures, "measure": shown_columns(study)}
    return [
        *((number_of(len(some), kind), listed(some)) for kind, some in names.items()),
        ("rounds T", f"{times}, a game each"),
        ("checkpoints", f"up to {most} of each game"),
        ("runs", f"{counted(runs_of(study.cells))} of each pair"),
    ]


def _measures(study: Study, shown: Sequence[str]) -> list[tuple[str, str]]:
    """The meaning of each measure of the catalogue, and of the swap regret of tasks."""
    found: dict[str, str] = {}
    for column in (study.columns[name] for name in shown):
        known = known_measures(column.of_classes)
        if column.kind in ("measure", "class_measure") and column.measure in known:
            record = known[column.measure]
            first = (record.function.__doc__ or "").strip().splitlines()[0]
            found.setdefault(column.measure, f"{first} Source: {record.source}.")
        elif column.of_task:
            found["swap_regret[task]"] = (
                "What the best action for each forecast, the same in all rounds with it, would have earned more."
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


# ---------------------------------------------------------------- tables


def lowest(study: Study) -> Table | None:
    """The forecasters with the lowest mean totals at the largest T, measures down, natures across; None without any.

    The last column, of several natures, has the forecaster with the lowest maximum over all of them.
    """
    # The two ends of a bracket are not totals of the measure itself.
    measures = [name for name in shown_columns(study) if not study.columns[name].end]
    columns = [*study.natures, *["largest of its totals over the natures"] * (len(study.natures) > 1)]
    texts, numbers, contests = dict[str, list[str]](), dict[str, list[float]](), list[Contest]()
    for measure in measures:
        try:
            order = ranking(study, measure, simultaneous(len(measures)))
        except InvalidParameter:  # no two forecasters have been played
            continue
        contests += order
        # One that is infinite both ways is the largest: nothing is below it.
        mine = {c.nature: pd.Series(c.means[:, 0], c.forecasters).fillna(np.inf) for c in order}
        means = pd.DataFrame(mine).reindex(study.forecasters)
        marked = {contest.nature: _below_all(contest) for contest in order}
        cells = [_least(means[n].dropna(), marked[n]) if n in marked else ("", np.nan) for n in study.natures]
        if len(study.natures) > 1:
            largest = means.dropna().max(axis=1)
            text, least = _least(largest)
            if np.isfinite(least):
                text += f"\nagainst {means.loc[largest.idxmin()].idxmax()}"
            cells.append((text, least))
        texts[measure], numbers[measure] = map(list, zip(*cells, strict=True))
    if not texts:
        return None
    frame = pd.DataFrame.from_dict(texts, orient="index", columns=columns).rename_axis("measure")
    values = pd.DataFrame.from_dict(numbers, orient="index", columns=columns)
    notes = [LOWEST, *(f"{said}." for said in remarks(contests))]
    return Table("Lowest mean total at the largest T", frame, notes, values)


def _below_all(contest: Contest) -> list[str]:
    """The forecaster with an expected total that is lower than all others beyond doubt, if any."""
    # Of a payoff the lowest is the one that all others are better than.
    below = contest.certain if contest.signs[0] > 0 else contest.certain.T
    alone = below.sum(axis=1) == len(contest.forecasters) - 1
    return [who for who, is_ in zip(contest.forecasters, alone, strict=True) if is_]


def _least(means: pd.Series, marked: Sequence[str] = ()) -> tuple[str, float]:
    """The text of a cell, with the forecasters of the least finite mean, and this mean."""
    least = float(means[np.isfinite(means)].min())
    if not np.isfinite(least):
        return "–\nno total is finite" * bool(len(means)), np.nan
    who = [*means.index[means == least]]
    return f"{', '.join(who)}{f' {CERTAIN}' * (who == marked)}\n{number(least)}", least


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
    return Table("", of_rows(["forecaster", "nature", "T", "why"], rows), words=True) if rows else None


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
        of = "sure ones in every run, those in expectation for the mean"
        said.append(f"{held:,} of {number_of(every, 'proven bound')} held, {of}.")
    return said + [f"{words}: {listed(names)}." for words, names in beyond.items() if names]
