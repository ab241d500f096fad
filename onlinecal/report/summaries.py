"""For the terminal: what became of decision makers who join and leave, and differences run by run."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from onlinecal.core.words import number_of
from onlinecal.report.frames import counted
from onlinecal.report.grid import new_console, number, print_grid
from onlinecal.report.paired import Difference
from onlinecal.report.people_rows import PeopleRow
from onlinecal.report.ranking import COMMON_RUNS


def print_people(drawn: Sequence[PeopleRow]) -> None:
    """A table for each nature: forecasters down; how much swap regret there is, and who has most."""
    console = new_console()
    headings = [
        "median",
        "worst",
        "of",
        "its CDL",
        "median\na question",
        "worst\na question",
        "of",
        "its CDL",
    ]
    for nature in dict.fromkeys(people.nature for people in drawn):
        mine = [people for people in drawn if people.nature == nature]
        for horizon in dict.fromkeys(people.horizon for people in mine):
            there = [people for people in mine if people.horizon == horizon]
            title = f"{nature}, T = {horizon:,}: swap regret of {_who(there[0])}"
            print_grid(console, title, headings, {people.forecaster: _row(people) for people in there})
    console.print(
        f"mean over {counted({people.runs for people in drawn})}, of the questions that were asked during a tenure and "
        "whose outcome is known; those that are open at the end are not in it. No best response has more swap regret "
        "than its CDL; *: another response, which may",
        markup=False,
    )


def _who(people: PeopleRow) -> str:
    many = len(people.labels)
    said = number_of(many, "decision maker")
    said += f", {people.unseen:,} without a question whose outcome is known" if people.unseen else ""
    return said + (f"; {number_of(people.open, 'question')} open at the end" if people.open else "")


def _row(people: PeopleRow) -> list[str]:
    who, each = people.worst, people.worst_rate
    if who is None or each is None:
        return ["–"] * 8
    median, of_each = people.median()
    return [
        number(median),
        number(float(people.last[who])),
        _name(people, who, people.last),
        number(float(people.cdl[who])),
        number(of_each),
        number(float(people.rate[each])),
        _name(people, each, people.rate),
        number(float(people.cdl_rate[each])),
    ]


def _name(people: PeopleRow, place: int, values: NDArray[np.float64]) -> str:
    """Whose value it is; the first of several, and how many more there are."""
    others = int((values[people.seen > 0] == values[place]).sum()) - 1
    more = f" and {number_of(others, 'other')}" if others else ""
    return people.labels[place] + ("" if people.best[place] else " *") + more


def print_paired(found: Sequence[Difference], refused: Sequence[str], level: float = 0.95) -> None:
    """Pairs of forecasters down, natures across."""
    console = new_console()
    natures = list(dict.fromkeys(d.nature for d in found))
    rows: dict[str, dict[str, Difference]] = {}
    for each in found:
        rows.setdefault(f"{each.first} − {each.second}", {})[each.nature] = each
    cells = {pair: [_difference(mine.get(nature)) for nature in natures] for pair, mine in rows.items()}
    ends = {nature: _end(next(d for d in found if d.nature == nature)) for nature in natures}
    title, headings = f"{found[0].measure}: differences of totals, run by run", [*natures]
    if len(natures) == 1:
        title, headings = f"{title}; {natures[0]}, {ends[natures[0]]}", ["difference"]
    elif len(set(ends.values())) == 1:
        title += f"; {ends[natures[0]]}"
    else:
        headings = [f"{nature}\n{end}" for nature, end in ends.items()]
    print_grid(console, title, headings, cells, "first − second")
    together = f"the {len(found)} intervals hold all together" if len(found) > 1 else "the interval holds"
    text = (
        "mean ± half-width of its interval over runs, by Student's t on one difference a run, in which both "
        f"forecasters had the same questions and outcomes; {together} with {100 * level:g} % if differences are "
        "normal, given the times of questions, outcomes and streams, which all runs share. <, >: the first has the "
        "lower, the higher total"
    )
    if any(d.same for d in found):
        text += (
            '. "in all runs": the same difference in each of them, which tells no interval; < and > '
            "then where chance would give all runs one sign less often than that, 2^(1−runs)"
        )
    if any(d.recorded for d in found):
        text += ". On recorded outcomes, which are the same in all runs, it is over the forecasters' randomness alone"
    if any(d.fewer for d in found):
        text += f". {COMMON_RUNS}"
    if any(d.open for d in found):
        text += ". Questions that are open at the end are in no total"
    console.print(text, markup=False)
    for line in refused:
        console.print(f"not compared: {line}", markup=False)


def _end(one: Difference) -> str:
    open = f", {one.open:,} open at the end" if one.open else ""
    return f"T = {one.horizon:,}, {number_of(one.runs, 'run')}{open}"


def _difference(found: Difference | None) -> str:
    if found is None:
        return ""
    if not math.isfinite(found.mean):
        return "infinite totals"
    sign = {"": "", found.first: " <", found.second: " >"}[found.better]
    spread = "in all runs" if found.same else f"± {number(found.half_width)}"
    return f"{number(found.mean)} {spread}{sign}"
