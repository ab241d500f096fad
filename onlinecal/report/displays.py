"""What a notebook shows of a study and of a curve: short tables in HTML."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape

from onlinecal.core.words import number_of
from onlinecal.growth.words import legend, lines
from onlinecal.report.console import grown, of_totals
from onlinecal.report.curves import Curve, Study, summary
from onlinecal.report.grid import number, with_spread

#: rows of a table; what is beyond is said to be
ROWS = 40
#: columns of measures
MEASURES = 6


def study_html(study: Study) -> str:
    """For each nature a table, forecasters by measures: total at the longest T, and exponent."""
    shown = [name for name, c in study.columns.items() if c.kind != "certificate" and not c.stream]
    shown = [
        name
        for name in shown
        if not study.columns[name].of_task or study.columns[name].measure == "swap_regret"
    ]
    title = study.title or study.name or "Study"
    pairs = len(study.forecasters) * len(study.natures)
    natures = study.natures[: max(1, ROWS // max(1, len(study.forecasters)))]
    forecasters = study.forecasters[:ROWS]
    some = study.only(forecasters, natures) if pairs > ROWS else study
    rows = grown(some, shown[:MEASURES])
    cells = {(r["nature"], r["forecaster"], r["measure"]): (r, g) for r, g in rows}
    table = []
    for nature in natures:
        for who in forecasters:
            line = [nature, who]
            there = [cells.get((nature, who, m)) for m in shown[:MEASURES]]
            line.append(f"{max((each[0]['horizon'] for each in there if each), default=0):,}")
            for each in there:
                if each is None:
                    line.append("")
                    continue
                row, growth = each
                grows = "–" if growth is None else " ".join(lines(growth))
                line.append(f"{with_spread(row['total'], row['half_width'])}, {grows}")
            if any(there):
                table.append(line)
    left = [f"{pairs - len(table)} more pairs"] * (pairs > len(table))
    left += [f"{len(shown) - MEASURES} more measures"] * (len(shown) > MEASURES)
    notes = [
        of_totals([row for row, _ in rows]),
        *legend(g for _, g in rows),
    ]
    notes += [f"not shown: {', '.join(left)}; study.table() has every number"] * bool(left)
    return f"<p><b>{escape(title)}</b></p>" + _table(
        ["nature", "forecaster", "T", *shown[:MEASURES]], table, notes
    )


def curve_html(curve: Curve) -> str:
    """A row for each T: mean total over the runs, half of its interval, and the average."""
    picked = range(len(curve.rounds))
    if len(picked) > ROWS:  # evenly, with the last
        picked = range((len(picked) - 1) % -(-len(picked) // ROWS), len(picked), -(-len(picked) // ROWS))
    rows = []
    for i in picked:
        mean, half = summary(curve.totals[i])
        t = int(curve.rounds[i])
        rows.append([f"{t:,}", number(mean), number(half) if math.isfinite(half) else "–", number(mean / t)])
    growth = curve.exponent()
    notes = [] if growth is None else [" ".join(lines(growth)), *legend([growth])]
    notes += [f"{len(rows)} of {len(curve.rounds)} T are shown"] * (len(rows) < len(curve.rounds))
    head = f"<p><b>{escape(curve.measure)}</b>: {escape(curve.forecaster)} against {escape(curve.nature)}</p>"
    runs = curve.totals.shape[1]
    return head + _table(["T", f"mean total of {number_of(runs, 'run')}", "± 95 %", "a round"], rows, notes)


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]], notes: Sequence[str]) -> str:
    head = "".join(f"<th>{escape(each)}</th>" for each in headings)
    body = "".join("<tr>" + "".join(f"<td>{escape(each)}</td>" for each in row) + "</tr>" for row in rows)
    below = "".join(f"<p><small>{escape(note)}</small></p>" for note in notes)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{below}"
