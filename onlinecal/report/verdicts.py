"""Rankings and Pareto fronts in words: cells and legends, for the terminal and for Markdown, and their tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from onlinecal.core.words import number_of
from onlinecal.report.grid import new_console, number, print_grid
from onlinecal.report.pareto import Front
from onlinecal.report.ranking import COMMON_RUNS, Ranking, Standing

#: pairs that are not told apart, and forecasters that dominate one, are named up to so many
NAMED = 6


def ranking_headings(found: Ranking) -> list[str]:
    """Above the columns."""
    return ["mean rank", *(f"{s.nature}{'*' if s.own else ''}" for s in found.standings)]


def ranking_rows(found: Ranking) -> dict[str, list[str]]:
    """Forecaster → its cells."""
    rows = {}
    for who, (mean, best, worst, _) in found.mean_ranks().items():
        cells = [f"{mean:.3g}" + ("" if best == worst else f" [{best:.3g}–{worst:.3g}]")]
        for standing in found.standings:
            if who not in standing.forecasters:
                cells.append("")
                continue
            at = standing.forecasters.index(who)
            low, high = standing.span[at]
            cells.append(f"{standing.ranks[at]:g}" + ("" if low == high else f" [{low}–{high}]"))
        rows[who] = cells
    return rows


def ranking_legend(found: Ranking) -> Iterator[str]:
    """What the cells mean, and who is not told apart; a sentence each, without a full stop."""
    way = "highest" if found.higher else "lowest"
    yield (
        f"Rank 1 has the {way} mean total T·μ at the largest T; the same totals share the mean of their ranks. In "
        "brackets, where there are several, the ranks that are not ruled out: two forecasters are in order where "
        "Student's t on one difference a run says so, by Holm's procedure over all pairs and natures of the table; all "
        f"that is said holds together with {100 * found.level:g} % if differences are normal"
    )
    if any(s.own for s in found.standings):
        yield "*: nature may look at forecasts, so that each forecaster has outcomes of its own"
    if any(s.recorded for s in found.standings):
        yield (
            "On recorded outcomes, which are the same in all runs, it is over the forecasters' randomness alone"
        )
    if any(s.fewer for s in found.standings):
        yield COMMON_RUNS
    if any(s.open for s in found.standings):
        yield "Questions that are open at the end are in no total"
    missing = [s.nature for s in found.standings if len(s.forecasters) < len(found.mean_ranks())]
    if missing:
        yield f"Not all were played against {', '.join(missing)}: mean ranks are over the natures that a forecaster met"
    for standing in found.standings:
        if text := _not_apart(standing):
            yield text


def _not_apart(standing: Standing) -> str:
    pairs = standing.apart
    if not pairs:
        return ""
    shown = "; ".join(f"{first} – {second}" for first, second in pairs[:NAMED])
    more = f"; and {len(pairs) - NAMED} more pairs" if len(pairs) > NAMED else ""
    why = " (a single run)" if standing.runs == 1 else ""
    return f"Not told apart against {standing.nature}{why}: {shown}{more}"


def print_ranking(found: Ranking) -> None:
    """Forecasters down, in the order of their mean ranks; natures across."""
    console = new_console()
    ends = {f"T = {s.horizon:,}, {number_of(s.runs, 'run')}" for s in found.standings}
    headings = ranking_headings(found)
    title = f"{found.measure}: ranks"
    if len(ends) == 1:
        title += f"; {ends.pop()}"
    else:
        headings[1:] = [
            f"{heading}\nT = {s.horizon:,}" for heading, s in zip(headings[1:], found.standings, strict=True)
        ]
    print_grid(console, title, headings, ranking_rows(found))
    for line in ranking_legend(found):
        console.print(line, markup=False)


def front_row(front: Front, who: str) -> list[str]:
    """The cells of a forecaster."""
    at = front.forecasters.index(who)
    means = [number(float(mean)) for mean in front.means[at]]
    certain = front.by(who, certain=True)
    # Those of which it is certain first.
    by = [f"{other} †" for other in certain] + [other for other in front.by(who) if other not in certain]
    more = [f"and {len(by) - NAMED} more"] if len(by) > NAMED else []
    return [*means, "\n".join([*by[:NAMED], *more]) or "– (on the front)"]


def front_legend(found: Sequence[Front]) -> str:
    """What the cells mean, without a full stop."""
    ways = "higher" if all(found[0].higher) else "lower"
    if len(set(found[0].higher)) == 2:
        first = found[0].measures[found[0].higher.index(True)]
        ways = f"lower ({first}: higher)"
    said = (
        f"Mean totals T·μ at the largest T, of which the {ways} is the better. Dominated: another forecaster is no "
        f"worse in both means and better in one. †: better in both beyond doubt; all † hold together with "
        f"{100 * found[0].level:g} % (Student's t on one difference a run, the larger p-value of both measures, Holm's "
        "procedure over all pairs and natures) if differences are normal"
    )
    if any(front.recorded for front in found):
        said += ". On recorded outcomes, which are the same in all runs, it is over the forecasters' randomness alone"
    if any(front.fewer for front in found):
        said += f". {COMMON_RUNS}"
    if any(front.open for front in found):
        said += ". Questions that are open at the end are in no total"
    return said


def print_fronts(found: Sequence[Front]) -> None:
    """A table for each nature."""
    console = new_console()
    for front in found:
        runs = number_of(front.runs, "run")
        title = f"{front.nature}, T = {front.horizon:,}, {runs}: "
        title += f"{len(front.front)} of {len(front.forecasters)} on the front"
        rows = {who: front_row(front, who) for who in front.forecasters}
        print_grid(console, title, [*front.measures, "dominated by"], rows)
    console.print(front_legend(found), markup=False)
