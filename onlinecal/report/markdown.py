"""Tables as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from onlinecal.growth import simultaneous
from onlinecal.growth.rates import known_rates
from onlinecal.growth.words import legend, line
from onlinecal.report.console import AGAINST_RATES, of_totals, totals
from onlinecal.report.curves import Curve, Study
from onlinecal.report.grid import with_spread
from onlinecal.report.pareto import Front
from onlinecal.report.ranking import Ranking
from onlinecal.report.verdicts import front_legend, front_row, ranking_headings, ranking_legend, ranking_rows


def exponents_markdown(study: Study) -> str:
    """A Markdown table for each measure: forecasters down, natures across; exponents, intervals, what is proven.

    The intervals of a table hold all together with 95 %. A cell that grows faster than the proven bound (see
    `Curve.against_rates`) is marked with †. What the signs mean stands below the tables.
    """
    parts, shown = [], []
    marked = False
    for measure, column in study.columns.items():
        curves = {(c.forecaster, c.nature): c for c in study.curves([measure])}
        if not curves:
            continue
        level = simultaneous(len(curves))
        rates = known_rates(column)
        rows = [f"**{measure}**" + (f" (best known: {rates})" if rates else ""), ""]
        rows.append("| forecaster | " + " | ".join(map(in_markdown, study.natures)) + " | proven |")
        rows.append("|---|" + "---|" * (len(study.natures) + 1))
        for forecaster in study.forecasters:
            mine = [curves.get((forecaster, nature)) for nature in study.natures]
            if not any(mine):
                continue
            cells = []
            for curve in mine:
                if curve is None:
                    cells.append("")
                    continue
                growth = curve.exponent(level)
                shown.append(growth)
                if growth is None:
                    cells.append("–")
                    continue
                above = curve.against_rates(level) == "above proven"
                marked = marked or above
                cells.append(line(growth) + (" †" if above else ""))
            proofs = sorted({_proof(c) for c in mine if c is not None} - {""})
            proven = in_markdown("; ".join(proofs)) or "–"
            rows.append(f"| {in_markdown(forecaster)} | " + " | ".join(cells) + f" | {proven} |")
        parts.append("\n".join(rows))
    if shown:
        parts.append("\n".join(f"- {part}." for part in legend(shown, each="table")))
    if marked:
        parts.append("† G" + AGAINST_RATES["above proven"].removeprefix("g") + ".")
    return "\n\n".join(parts)


def in_markdown(text: str) -> str:
    """In a cell of a Markdown table, which ends at a bar or a new line."""
    return " ".join(text.split()).replace("|", r"\|")


def _proof(curve: Curve) -> str:
    """The bound whose exponent `Curve.proven` is, ``0.60: O(√T log T)``; empty without one."""
    slowest = curve.slowest_bound()
    if slowest is None:
        return ""
    exponent, p = slowest
    return f"{exponent:.2f}: " + (f"O({p.formula})" if p.kind == "rate" else f"≤ {p.formula}")


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(map(in_markdown, headings)) + " |", "|---" * len(headings) + "|"]
    lines += ["| " + " | ".join(map(in_markdown, row)) + " |" for row in rows]
    return "\n".join(lines)


def totals_markdown(study: Study, measures: Sequence[str] | None = None) -> str:
    """A table for each nature: forecasters down, measures across; mean totals at its largest T."""
    rows = totals(study, measures)
    shown = study.measures if measures is None else list(measures)
    parts = []
    for nature in study.natures:
        mine = {(r["forecaster"], r["measure"]): r for r in rows if r["nature"] == nature}
        horizon = max((r["horizon"] for r in mine.values()), default=0)
        cells = []
        for who in study.forecasters:
            own = [mine.get((who, measure)) for measure in shown]
            if any(own):
                cells.append([who, *(_total(row, horizon) for row in own)])
        parts.append(
            f"**{in_markdown(nature)}, T = {horizon:,}**\n\n" + _table(["forecaster", *shown], cells)
        )
    said = of_totals(rows)
    parts.append(f"{said[0].upper()}{said[1:]}.")
    return "\n\n".join(parts)


def _total(row: dict[str, Any] | None, horizon: int) -> str:
    if row is None:
        return ""
    text = with_spread(row["total"], row["half_width"])
    return text + ("" if row["horizon"] == horizon else f" at T = {row['horizon']:,}")


def ranking_markdown(found: Ranking) -> str:
    """Forecasters down, in the order of their mean ranks; natures across."""
    table = _table(
        ["forecaster", *ranking_headings(found)], ([who, *row] for who, row in ranking_rows(found).items())
    )
    return "\n\n".join(
        [f"**{in_markdown(found.measure)}**", table, *(f"{line}." for line in ranking_legend(found))]
    )


def fronts_markdown(found: Sequence[Front]) -> str:
    """A table for each nature."""
    parts = []
    for front in found:
        headings = ["forecaster", *front.measures, "dominated by"]
        table = _table(
            headings,
            (
                [who, *(", ".join(cell.split("\n")) for cell in front_row(front, who))]
                for who in front.forecasters
            ),
        )
        parts.append(f"**{in_markdown(front.nature)}, T = {front.horizon:,}**\n\n{table}")
    return "\n\n".join([*parts, front_legend(found) + "."])
