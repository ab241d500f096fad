"""Tables for the terminal, and the same rows as JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from onlinecal.rates import best_known, known_rates
from onlinecal.study.curves import Curve, Study, summary

if TYPE_CHECKING:
    from onlinecal.check import Report, Verdict


def totals(study: Study, measures: Sequence[str] | None = None) -> list[dict[str, Any]]:
    """One row for each nature, forecaster and measure: the total at the largest T and the growth exponent.

    Returns
    -------
    list of dict
        Keys nature, forecaster, measure, horizon, runs, total, half_width (of the 95 % interval of the mean, None for
        one run), exponent: None, or value, low, high; and verdict, see `Curve.verdict`.
    """
    rows = []
    for curve in study.curves(measures):
        mean, half = summary(curve.totals[-1])
        exponent = curve.exponent()
        rows.append(
            {
                "nature": curve.nature,
                "forecaster": curve.forecaster,
                "measure": curve.measure,
                "horizon": int(curve.rounds[-1]),
                "runs": curve.totals.shape[1],
                "total": mean,
                "half_width": half if math.isfinite(half) else None,
                "exponent": None
                if exponent is None
                else {"value": exponent.value, "low": exponent.low, "high": exponent.high},
                "verdict": curve.verdict(),
            }
        )
    return rows


def print_totals(study: Study, title: str) -> None:
    """A table for each nature: forecasters down, measures across; totals and exponents."""
    rows = totals(study)
    console = _console()
    console.print(f"[bold]{escape(title)}[/bold]")
    aside = ("payoff[", "action_swap_regret[", "external_regret[")
    measures = [m for m in study.measures if not m.startswith(aside) and not m.endswith("_certificate")]
    for nature in study.natures:
        mine = {(r["forecaster"], r["measure"]): r for r in rows if r["nature"] == nature}
        horizon = _longest(mine.values())
        table = Table(
            title=f"{nature}, T = {horizon:,}", title_justify="left", box=SIMPLE_HEAD, pad_edge=False
        )
        table.add_column("forecaster")
        for measure in measures:
            table.add_column(escape(measure), justify="right", overflow="fold")
        for forecaster in study.forecasters:
            table.add_row(forecaster, *(_cell(mine.get((forecaster, m)), horizon) for m in measures))
        console.print(table)
    console.print("mean total T·μ over the runs; T^α with the fitted exponent")


def print_compare(study: Study, measure: str) -> None:
    """Forecasters down, natures across."""
    rows = {(r["forecaster"], r["nature"]): r for r in totals(study, [measure])}
    table = Table(
        title=f"{measure}: total T·μ and exponent", title_justify="left", box=SIMPLE_HEAD, pad_edge=False
    )
    table.add_column("forecaster")
    horizons = {n: _longest(r for (_, nature), r in rows.items() if nature == n) for n in study.natures}
    for nature, horizon in horizons.items():
        table.add_column(f"{nature}\nT = {horizon:,}", justify="right")
    for forecaster in study.forecasters:
        table.add_row(
            forecaster,
            *(_cell(rows.get((forecaster, n)), horizon, intervals=True) for n, horizon in horizons.items()),
        )
    console = _console()
    console.print(table)
    console.print(_LEGEND)
    rates = {"above O" if rate.upper else "below Ω": rate for rate in best_known(measure)}
    if rates:
        console.print(
            f"best known against the worst nature: {known_rates(measure)}; a remark where the whole interval of fresh "
            "games lies elsewhere",
            markup=False,
        )
    said = {row["verdict"] for row in rows.values()}
    for verdict, meaning in _VERDICTS.items():
        if verdict in said:
            console.print(f"{verdict}: {meaning.format(rate=rates.get(verdict))}", markup=False)


_LEGEND = "total ± half-width of the 95 % interval of its mean over runs; T^α with the fitted exponent and its interval"
#: what the remarks of `Curve.verdict` mean
_VERDICTS = {
    "above proven": "grows faster over these T than the bound proved for this forecaster, below which its total may "
    "still lie",
    "above O": "grows faster over these T than {rate}, which some forecaster is proved to keep against every nature "
    "that its source admits",
    "below Ω": "grows slower over these T than {rate}, which contradicts nothing: so much the worst nature forces, and "
    "this one forces less",
}


def _longest(rows: Iterable[dict[str, Any]]) -> int:
    return max((row["horizon"] for row in rows), default=0)


def _cell(row: dict[str, Any] | None, horizon: int, *, intervals: bool = False) -> str:
    """A total and its exponent, with its T where that is not the `horizon` of the heading."""
    if row is None:
        return ""
    half, exponent = row["half_width"], row["exponent"]
    text = _number(row["total"])
    if intervals and half is not None:
        text += f" ± {_number(half)}"
    if row["horizon"] != horizon:
        text += f"\nat T = {row['horizon']:,}"
    if exponent is None:
        return f"{text}\n–"
    text += f"\nT^{exponent['value']:.2f}"
    if intervals:
        text += f"\n[{exponent['low']:.2f}, {exponent['high']:.2f}]"
        text += f"\n{row['verdict']}".rstrip()
    return text.replace("[", r"\[")


def _number(x: float) -> str:
    if not math.isfinite(x) or x == 0:
        return f"{x:g}"
    if abs(x) >= 100:
        return f"{x:,.0f}"
    return f"{x:.3g}"


def exponents_markdown(study: Study) -> str:
    """A Markdown table for each measure: forecasters down, natures across; exponents, intervals, proven exponents.

    A cell whose whole interval lies above the proven exponent is marked with †.
    """
    parts = []
    for measure in study.measures:
        curves = {(c.forecaster, c.nature): c for c in study.curves([measure])}
        if not curves:
            continue
        rates = known_rates(measure)
        lines = [f"**{measure}**" + (f" (best known: {rates})" if rates else ""), ""]
        lines.append("| forecaster | " + " | ".join(study.natures) + " | proven |")
        lines.append("|---|" + "---|" * (len(study.natures) + 1))
        for forecaster in study.forecasters:
            mine = [curves.get((forecaster, nature)) for nature in study.natures]
            if not any(mine):
                continue
            proofs = {f"{c.proven():.2f}" for c in mine if c is not None and c.proven() is not None}
            cells = [_markdown_cell(c) for c in mine]
            lines.append(
                f"| {forecaster} | " + " | ".join(cells) + f" | {', '.join(sorted(proofs)) or '–'} |"
            )
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def _markdown_cell(curve: Curve | None) -> str:
    exponent = None if curve is None else curve.exponent()
    if curve is None or exponent is None:
        return "–"
    mark = " †" if curve.verdict() == "above proven" else ""
    return f"{exponent.value:.2f} [{exponent.low:.2f}, {exponent.high:.2f}]{mark}"


def print_catalogue(rows: list[dict[str, str]], *, as_json: bool) -> None:
    """The rows of `catalogue.rows`."""
    if as_json:
        print_json(rows)
        return
    console = _console()
    for kind in dict.fromkeys(row["kind"] for row in rows):
        table = Table(title=kind, title_justify="left", box=None, pad_edge=False)
        table.add_column("name", style="bold", no_wrap=True)
        table.add_column("total" if kind == "rates" else "what it is")
        table.add_column(
            "proved"
            if kind in ("forecasters", "natures")
            else "source"
            if kind in ("measures", "rates")
            else ""
        )
        for row in rows:
            if row["kind"] == kind:
                table.add_row(escape(row["name"]), escape(row["summary"]), escape(row["known"]))
        console.print(table)
        console.print()


def print_entry(entry: dict[str, Any], *, as_json: bool) -> None:
    """What `catalogue.entry` returns."""
    if as_json:
        print_json(entry)
        return
    console = _console()
    given = ", ".join(
        p["name"] + ("" if p["required"] else f" = {json.dumps(p['default'], default=str)}")
        for p in entry["parameters"]
    )
    console.print(f"[bold]{entry['name']}[/bold] ({entry['kind']}; parameters: {escape(given) or 'none'})\n")
    print(entry["documentation"])  # written for 110 columns; a narrower terminal wraps it as it sees fit
    if entry["guarantees"]:
        console.print("\n[bold]Proved, at the default parameters[/bold]")
        for guarantee in entry["guarantees"]:
            print(f"- {guarantee}")


def print_check(report: Report) -> None:
    """The report of `onlinecal check`: a row for each guarantee, with the worst of its opponents."""
    console = _console()
    for name in dict.fromkeys(name for name, _ in report.findings):
        console.print(f"[bold]{escape(name)}[/bold]")
        for found, finding in report.findings:
            if found == name:
                console.print(f"  {'FAILS' if finding.fault else 'ok'}  {finding.check}", markup=False)
                if finding.fault:
                    console.print(f"         {finding.fault}", markup=False)
    for remark in report.remarks:
        console.print(remark, markup=False)
    if not report.verdicts:
        return
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for heading, side in (
        ("strategy", "left"),
        ("guarantee", "left"),
        ("worst", "right"),
        ("where", "left"),
        ("", "left"),
    ):
        table.add_column(heading, justify=side)  # type: ignore[arg-type]
    groups: dict[tuple[str, str], list[Verdict]] = {}
    for v in report.verdicts:
        groups.setdefault((v.strategy, v.guarantee.short), []).append(v)
    for (strategy, guarantee), verdicts in groups.items():
        first = verdicts[0].guarantee
        worst = max(verdicts, key=lambda v: v.ratio if first.upper else -v.ratio)
        failed, unknown = (sum(v.holds is holds for v in verdicts) for holds in (False, None))
        trends = [v.trend for v in verdicts if not math.isnan(v.trend)]
        if failed:
            said = f"FAILS against {failed} of {len(verdicts)}"
        elif first.kind == "rate":
            said = (
                f"rate; largest trend T^{max(trends):+.2f} of {len(trends)}" if trends else "rate; no trend"
            )
        elif unknown:
            said = f"exceeded, perhaps by chance, against {unknown} of {len(verdicts)}"
        else:
            said = f"holds against {len(verdicts)}"
        table.add_row(
            strategy, escape(guarantee), f"{worst.ratio:.4g}", f"{worst.opponent}, round {worst.at:,}", said
        )
    console.print(table)
    console.print(
        "worst: measured over bound, largest over opponents, runs and checkpoints (smallest for ≥); of the mean at T "
        "for expected bounds and rates. A rate has no constant: its trend is the exponent of the ratio over T/16, "
        "T/4, T."
    )


def print_json(value: Any) -> None:
    """Machine-readable, and nothing else, on stdout; infinities as text, since JSON has none."""
    print(json.dumps(_plain(value), indent=2, ensure_ascii=False, default=str))


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    return value


def _console() -> Console:
    return Console(highlight=False)
