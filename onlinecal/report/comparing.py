"""Tables of `onlinecal compare`: for people, as Markdown or as JSON."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.words import listed, number_of
from onlinecal.growth.rates import known_rates
from onlinecal.report.people import PeopleRow, people_rows
from onlinecal.report.tables import Table, crossed, of_rows, records
from onlinecal.report.terminal import new_console, number, print_json
from onlinecal.report.totals import (
    AGAINST_RATES,
    REMARKS,
    by_nature,
    cells,
    exponents_markdown,
    legend_of,
    longest,
    totals,
    totals_data,
)
from onlinecal.study.compare import (
    Contest,
    front_table,
    fronts,
    mean_ranks,
    paired,
    pairs_table,
    ranking,
    ranks_table,
    remarks,
)
from onlinecal.study.curves import Study

#: pairs that are not told apart, and forecasters that dominate one, are named up to this number
NAMED = 6


RANKS = (
    "Rank 1 has the best mean total T·μ at the largest T, which is the lowest, of a payoff the highest; the same "
    "totals share the mean of their ranks. Mean ranks are over the natures that a forecaster met. In brackets, where "
    "there are several, the ranks that are not ruled out: two forecasters are in order where Student's t on one "
    "difference a run says so, by Holm's procedure over all pairs and natures of the table; all that is said holds "
    "together with {level:g} % if differences are normal. *: nature may look at forecasts, so that each forecaster "
    "has outcomes of its own"
)
FRONTS = (
    "Mean totals T·μ at the largest T, of which the lower is the better, of a payoff the higher. Dominated: another "
    "forecaster is no worse in both means and better in one. †: better in both beyond doubt; all † hold together with"
    " {level:g} % (Student's t on one difference a run, the larger p-value of both measures, Holm's procedure over "
    "all pairs and natures) if differences are normal"
)
PAIRED = (
    "mean ± half-width of its interval over runs, by Student's t on one difference a run, in which both forecasters "
    "had the same questions and outcomes; all intervals of the table ({many}) hold together with {level:g} % if "
    "differences are normal, given the times of questions, outcomes and streams, which all runs of a schedule share. "
    '<, >: the first has the lower, the higher total. "in all runs": the same difference in each of them, which tells'
    " no interval; < and > then where chance would give all runs one sign less often than that, 2^(1−runs)"
)
PEOPLE = (
    "Means over the runs, of the questions that were asked during a tenure and whose outcome is known. No best "
    "response has more swap regret than its CDL; *: another response, which may"
)


class Answer(NamedTuple):
    """Tables with their notes, sentences without a full stop, and a function that returns the same as data."""

    tables: Sequence[Table]
    notes: Sequence[str]
    data: Callable[[], Any] = list
    #: beside JSON and Markdown on stderr
    refused: Sequence[str] = ()

    def print(self) -> None:
        """Prints tables and notes for people."""
        console = new_console()
        for table in self.tables:
            table.print(console)
        for note in (*self.notes, *self.refused):
            console.print(note, markup=False)

    def markdown(self) -> str:
        """The same as Markdown."""
        return "\n\n".join(
            [*(table.markdown() for table in self.tables), *(f"{note}." for note in self.notes)]
        )


def answer(
    study: Study,
    flags: Mapping[str, bool],
    measure: str | None,
    pareto: tuple[str, str] | None,
    *,
    markdown: bool,
    as_json: bool,
) -> None:
    """Prints the table that the options of the command ask for; without one, totals and exponents of a measure."""
    if markdown and as_json:
        raise InvalidParameter("--markdown and --json are two forms of output; expected one of the two")
    asked = [name for name, on in {**flags, "pareto": pareto}.items() if on]
    if len(asked) > 1:
        raise InvalidParameter(f"--{asked[0]} and --{asked[1]} are two tables; expected one of the two")
    table = asked[0] if asked else ""
    if measure and table in ("people", "all", "pareto"):
        raise InvalidParameter(f"--{table} is of other columns; expected no --measure")
    measure = study.column(measure or study.measures[0]).name
    if markdown and not table:
        print(exponents_markdown(study))
        return
    found = ANSWERS[table](study, pareto or measure)
    if not (as_json or markdown):
        found.print()
        return
    print(*found.refused, sep="\n", end="\n" * bool(found.refused), file=sys.stderr)
    if as_json:
        print_json(found.data())
    else:
        print(found.markdown())


# ---------------------------------------------------------------- totals


def of_measure(study: Study, measure: str) -> Answer:
    """Totals and exponents of a measure: forecasters down, natures across."""
    every, column = totals(study, [measure]), study.columns[measure]
    at, texts = dict[str, str](), list[str]()
    for nature, mine in every.groupby("nature", sort=False):
        horizon, open = longest(mine)
        at[str(nature)] = f"T = {horizon:,}{open}"
        texts += cells(mine, horizon, remark=True)
    every["text"] = texts
    frame = crossed(every, "forecaster", "nature", study.forecasters, every["nature"].unique(), "text")
    title = _headed(frame, f"{measure}: total T·μ and exponent", at)
    notes = ["; ".join(legend_of(every))]
    if rates := known_rates(column):
        notes.append(f"best known against the worst nature: {rates}; {REMARKS}")
    said = set(every["against_rates"])
    notes += [f"{it}: {words}" for it, words in AGAINST_RATES.items() if it in said]
    return Answer([Table(title, frame)], notes, lambda: totals_data(every))


def _headed(frame: pd.DataFrame, title: str, at: Mapping[str, str]) -> str:
    """Sets the headings of the natures, and returns the title. T and runs are in the title if all have the same."""
    same = len(set(at.values())) == 1
    frame.columns = pd.Index([nature if same else f"{nature}\n{where}" for nature, where in at.items()])
    return f"{title}, {next(iter(at.values()))}" if same else title


def of_all(study: Study, measures: Sequence[str] | None = None) -> Answer:
    """A table for each nature: forecasters down, these measures or all across."""
    rows = totals(study, measures)
    tables = by_nature(study, rows, measures or study.measures, spread=False)
    return Answer(tables, ["; ".join(legend_of(rows, spread=False))], lambda: totals_data(rows))


# ---------------------------------------------------------------- ranks


def ranking_json(found: Sequence[Contest]) -> dict[str, Any]:
    """The data of `compare --ranking --json`."""
    tables = {"forecasters": ranks_table(found), "pairs": pairs_table(found)}
    natures = [
        {**s.facts(), "own_outcomes": s.own}
        | {name: records(t[t["nature"] == s.nature].drop(columns="nature")) for name, t in tables.items()}
        for s in found
    ]
    return {
        "measure": found[0].measures[0], "better": "lower" if found[0].signs[0] > 0 else "higher",
        "level": found[0].level, "mean_ranks": records(mean_ranks(found).reset_index()), "natures": natures,
    }  # fmt: skip


def of_ranking(found: Sequence[Contest]) -> Answer:
    """Forecasters down, in the order of their mean ranks; natures across."""
    means, each = mean_ranks(found), ranks_table(found)
    each["text"] = [_rank(row.rank, row.best, row.worst, "g") for row in each.itertuples()]
    frame = crossed(each, "forecaster", "nature", means.index, [s.nature for s in found], "text")
    at = {f"{s.nature}{'*' * s.own}": f"T = {s.horizon:,}, {number_of(s.runs, 'run')}" for s in found}
    title = _headed(frame, f"{found[0].measures[0]}: ranks", at)
    mean = [_rank(row.mean_rank, row.best, row.worst, ".3g") for row in means.itertuples()]
    frame.insert(0, "mean rank", mean, True)
    notes = [RANKS.format(level=100 * found[0].level), *remarks(found)]
    for standing in (s for s in found if s.apart):
        pairs = [f"{first} – {second}" for first, second in standing.apart]
        notes.append(f"Not told apart against {standing.nature}: {listed(pairs, NAMED, '; ')}")
    return Answer([Table(title, frame)], notes, lambda: ranking_json(found))


def _rank(rank: Any, best: Any, worst: Any, form: str) -> str:
    """A rank, and those that are not ruled out where there are several."""
    return f"{rank:{form}}" + ("" if best == worst else f" [{best:{form}}–{worst:{form}}]")


# ---------------------------------------------------------------- Pareto fronts


def front_json(found: Contest) -> dict[str, Any]:
    """The data of `compare --pareto --json`."""
    return {
        **found.facts(), "measures": list(found.measures),
        "better": ["lower" if sign > 0 else "higher" for sign in found.signs], "level": found.level,
        "forecasters": records(front_table(found)),
    }  # fmt: skip


def of_fronts(found: Sequence[Contest]) -> Answer:
    """A table for each nature."""
    tables = [
        Table(
            f"{f.nature}, T = {f.horizon:,}, {number_of(f.runs, 'run')}: {len(f.front)} of {len(f.forecasters)} on the "
            "front",
            of_rows(
                ["forecaster", *f.measures, "dominated by"], [_front_row(f, who) for who in f.forecasters]
            ),
        )
        for f in found
    ]
    said = FRONTS.format(level=100 * found[0].level)
    return Answer(tables, [". ".join([said, *remarks(found)])], lambda: [*map(front_json, found)])


def _front_row(front: Contest, who: str) -> list[str]:
    means = [number(float(mean)) for mean in front.means[front.forecasters.index(who)]]
    certain = front.by(who, certain=True)
    # Those of which it is certain first.
    by = [f"{other} †" for other in certain] + [other for other in front.by(who) if other not in certain]
    return [who, *means, listed(by, NAMED, "\n") or "– (on the front)"]


# ---------------------------------------------------------------- differences run by run


def paired_json(found: pd.DataFrame) -> list[dict[str, Any]]:
    """The data of `compare --paired --json`."""
    return records(found.drop(columns=["pair", "half_width", "fewer"]))


def of_paired(found: pd.DataFrame, refused: Sequence[str], level: float = 0.95) -> Answer:
    """Pairs of forecasters down, natures across."""
    shown = found.assign(text=[_difference(row) for row in found.itertuples()])
    firsts = [*found.drop_duplicates("nature").itertuples()]
    frame = crossed(
        shown, "pair", "nature", dict.fromkeys(found["pair"]), [row.nature for row in firsts], "text"
    )
    frame.index.name = "first − second"
    at = {
        row.nature: f"T = {row.horizon:,}, {number_of(row.runs, 'run')}"
        + f", {row.open:,} open at the end" * bool(row.open)
        for row in firsts
    }
    title = _headed(frame, f"{found['measure'].iloc[0]}: differences of totals, run by run", at)
    said = PAIRED.format(many=len(found), level=100 * level)
    return Answer(
        [Table(title, frame)], [". ".join([said, *remarks(firsts)])], lambda: paired_json(found),
        [f"not compared: {line}" for line in refused],
    )  # fmt: skip


def _difference(row: Any) -> str:
    if not math.isfinite(row.difference):
        return "infinite totals"
    sign = {"": "", row.first: " <", row.second: " >"}[row.lower_total]
    spread = "in all runs" if row.same_in_all_runs else f"± {number(row.half_width)}"
    return f"{number(row.difference)} {spread}{sign}"


# ---------------------------------------------------------------- decision makers who join and leave


def of_people(drawn: Sequence[PeopleRow]) -> Answer:
    """A table for each nature: forecasters down; how much swap regret there is, and the largest."""
    each = ["median", "worst", "of", "its CDL"]
    headings = ["forecaster", *each, *(f"{name}\na question" if name in each[:2] else name for name in each)]
    groups: dict[tuple[str, int], list[PeopleRow]] = {}
    for row in drawn:
        groups.setdefault((row.nature, row.horizon), []).append(row)
    tables = []
    for (nature, horizon), rows in groups.items():
        title = (
            f"{nature}, T = {horizon:,}: swap regret of {number_of(len(rows[0].makers), 'decision maker')}"
        )
        if open := max(row.open for row in rows):
            title += f"; up to {number_of(open, 'question')} open at the end"
        tables.append(Table(title, of_rows(headings, map(_people_row, rows))))
    return Answer(tables, [PEOPLE], lambda: [row.as_json() for row in drawn])


def _people_row(row: PeopleRow) -> list[str]:
    """The median and the first of the worst, in total and for each question."""
    cells = [row.forecaster]
    for swap, cdl in (("swap", "cdl"), ("swap_each", "cdl_each")):
        at, values = row.worst(swap), row.seen[swap]
        if at is None:
            return [row.forecaster, *["–"] * 8]
        one = row.makers.loc[at]
        name = one["label"] + " *" * (not one["best"])
        cells += [number(float(values.median())), number(float(one[swap])), name, number(float(one[cdl]))]
    return cells


ANSWERS: dict[str, Callable[[Study, Any], Answer]] = {
    "": of_measure,
    "all": lambda study, _: of_all(study),
    "people": lambda study, _: of_people(people_rows(study)),
    "paired": lambda study, measure: of_paired(*paired(study, measure)),
    "ranking": lambda study, measure: of_ranking(ranking(study, measure)),
    "pareto": lambda study, measures: of_fronts(fronts(study, *measures)),
}
