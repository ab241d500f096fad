"""Values of measures against a parameter, or against T: table, then picture."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter

from onlinecal.core.arrays import Floats
from onlinecal.core.errors import InvalidParameter, UnknownName
from onlinecal.core.validation import choice, is_number
from onlinecal.core.words import counted
from onlinecal.growth.words import literal
from onlinecal.report.panels import Picture, joined, mark, names_of, pictured, stacked
from onlinecal.report.style import log_ticks, tick, ticks
from onlinecal.study.curves import Study, columns_of, summary
from onlinecal.study.played import Played

Bars = Literal["deviation", "quartiles", "interval"]

#: panels in one picture
MOST = 36
#: in place of a parameter: the number of rounds
TIME = "T"
#: positive values of a parameter that differ by a larger factor have a logarithmic axis
WIDE = 10
#: distance of lines, as a part of the width of the axes
APART = 0.005
_MIDDLE = {
    "deviation": "mean of {}, and one standard deviation of the runs to either side",
    "quartiles": "median of {}, and their quartiles",
    "interval": "mean of {}, and its 95 % interval by Student's t, each by itself",
}


def swept(
    study: Study, measures: Sequence[str], against: str, bars: Bars = "deviation"
) -> tuple[pd.DataFrame, list[str]]:
    """Values of measures at the end of games that differ in one parameter, or in T, by panel and heading.

    And the forecasters or natures that have no number as this parameter.
    """
    choice("sweep", "bars", bars, get_args(Bars))
    columns, left = [column.name for column in columns_of(study, measures)], dict[str, None]()
    #: heading → measure → value of the parameter → the values of the runs
    found: dict[Any, tuple[set[str], dict[str, dict[float, Floats]]]] = {}
    if against == TIME:
        for who, nature in ((w, n) for n in study.natures for w in study.forecasters):
            found[who, nature] = {f"{who} against {nature}"}, {}
        for curve in study.curves(columns):
            values = curve.totals / curve.rounds[:, None]
            there = dict(zip(curve.rounds.astype(float).tolist(), values, strict=True))
            found[curve.forecaster, curve.nature][1][curve.measure] = there
    else:
        role = _role(study, against)
        for cell in study.cells:
            label, other = cell.forecaster, cell.nature
            if role == "nature":
                label, other = other, label
            content = dict(_flat(cell, role))
            value = content.pop(against, None)
            if not is_number(value):
                left[label] = None
                continue
            rest = json.dumps(content, sort_keys=True)
            key = rest + f"@{cell.schedule[1]}" * (role == "nature"), other, cell.horizon
            name = _trimmed(label, against)
            who, whom = (name, other) if role == "forecaster" else (other, name)
            headings, mine = found.setdefault(key, (set(), {}))
            headings.add(f"{who} against {whom}, T = {cell.horizon:,}")
            for measure in columns:
                if measure in cell.totals:
                    mine.setdefault(measure, {})[float(value)] = cell.totals[measure][-1] / cell.horizon
    drawn = [(min(headings), mine) for headings, mine in found.values() if mine]
    if not drawn:
        raise InvalidParameter(f"no measure was taken in games with {against}; expected one that was")
    if len(drawn) > MOST:
        raise InvalidParameter(
            f"{len(drawn)} panels against {against}; expected at most {MOST}, chosen by --forecaster and --nature"
        )
    parts: list[dict[str, Any]] = []
    places = {
        name: i for i, name in enumerate(name for name in columns if any(name in mine for _, mine in drawn))
    }
    for i, (heading, mine) in enumerate(drawn):
        lines = [name for name in columns if name in mine]
        every = np.array([x for there in mine.values() for x in there])
        low, high = every.min(), every.max()
        for k, measure in enumerate(lines):
            at = np.array(sorted(mine[measure]))
            lower, middle, upper = np.array([spread(mine[measure][x], bars) for x in at]).T
            # Beside the points of the other lines.
            place = APART * (k - (len(lines) - 1) / 2)
            x = at * (high / low) ** place if _wide(every) else at + place * (high - low)
            parts.append({
                "panel": i, "heading": heading, "mark": np.where(np.isfinite(middle), "line", "infinite"),
                "measure": measure, "place": places[measure], "at": at, "x": x, "value": middle, "lower": lower,
                "upper": upper, "runs": [len(mine[measure][x]) for x in at],
            })  # fmt: skip
    return stacked(parts), [*left]


def spread(values: Floats, bars: str) -> tuple[float, float, float]:
    """The lower end, the middle and the upper end of some runs, by `bars`.

    Ends are NaN for a single run. Where a run is infinite so is the middle, and the ends are NaN.

    >>> spread(np.array([1.0, 2.0, 3.0, 6.0]), "quartiles")
    (1.75, 2.5, 3.75)
    """
    if not np.isfinite(values).all():
        return float("nan"), float("inf"), float("nan")
    if bars == "quartiles":
        low, middle, high = np.percentile(values, [25.0, 50.0, 75.0]).tolist()
        return low, middle, high
    if bars == "interval":
        middle, half = summary(values)
    else:
        middle = float(values.mean())
        half = float(values.std(ddof=1)) if len(values) > 1 else float("nan")
    half = half if np.isfinite(half) else float("nan")
    return middle - half, middle, middle + half


def _flat(cell: Played, role: str) -> Iterator[tuple[str, Any]]:
    """Parameters of a player, with those of players under others (``of.m``); in brackets all else that it is."""

    def of(content: Any, above: str) -> Iterator[tuple[str, Any]]:
        parameters = content.get("parameters")
        parameters = parameters if isinstance(parameters, Mapping) else {}
        yield f"[{above}]", {key: value for key, value in content.items() if value is not parameters}
        for name, value in parameters.items():
            if isinstance(value, Mapping):
                yield from of(value, f"{above}{name}.")
            else:
                yield f"{above}{name}", value

    return of(cell.origin.game.get(role, {}) if cell.origin is not None else {}, "")


def _role(study: Study, against: str) -> str:
    """The role, forecaster or nature, that has the parameter."""
    known: dict[str, dict[str, set[float]]] = {"forecaster": {}, "nature": {}}
    for cell in study.cells:
        for role, names in known.items():
            for name, value in _flat(cell, role):
                if is_number(value):
                    names.setdefault(name, set()).add(float(value))
    roles = [role for role, names in known.items() if against in names]
    if not roles:
        several = [name for names in known.values() for name, values in names.items() if len(values) > 1]
        raise UnknownName.of("parameter", against, [*dict.fromkeys(several), TIME])
    several_roles = [role for role in roles if len(known[role][against]) > 1]
    if len(several_roles) > 1:
        raise InvalidParameter(
            f"against = {against!r}: forecasters and natures have several values of it; expected a study in which one "
            "of them has, chosen by --forecaster or --nature"
        )
    return (several_roles or roles)[0]


def _trimmed(label: str, name: str) -> str:
    """A label without the value of this parameter.

    >>> _trimmed("tempered, beta = 0.05", "beta"), _trimmed("tempered (beta=2, m=3)", "beta")
    ('tempered', 'tempered (m=3)')
    """
    shorter = re.sub(rf",?\s*(?<![\w.]){re.escape(name)}\s*=\s*[^,()]+", "", label)
    return re.sub(r"\s*\(\s*\)", "", re.sub(r"\(\s*,\s*", "(", shorter)).strip(" ,") or label


@pictured
def plot_sweep(study: Study, measures: Sequence[str], against: str, *, bars: Bars = "deviation") -> Picture:
    """Values μ of measures at the end of games, against a parameter that the games differ in.

    Parameters
    ----------
    study : Study
    measures : sequence of str
        At least one column, a line each.
    against : str
        A parameter of forecasters or natures, ``"of.m"`` for the `m` of the player under `of`. ``"T"``: the number of
        rounds.
    bars : {"deviation", "quartiles", "interval"}, default "deviation"
        Points are means of the runs, bars one standard deviation to either side. Or medians and quartiles. Or means and
        95 % intervals by Student's t.

    Returns
    -------
    (n,) array of Axes
        One for each combination of what else differs.
    """
    table, left = swept(study, measures, against, bars)
    caption = joined(
        f"Horizontal axis: {'T, the number of rounds' if against == TIME else literal(against)}. Vertical axis: the "
        "value μ of each measure at the end of the game, its total divided by T; infinite values are not drawn. Points "
        f"and bars: {_MIDDLE[bars].format(counted({int(n) for n in table['runs']}))}; a single run has no spread. "
        "Lines are set a little apart, so that bars can be told apart.",
        literal(f"Not drawn, without {against} as a number: {', '.join(left)}.") * bool(left),
    )  # fmt: skip
    heads = dict(zip(table["panel"], table["heading"], strict=True))

    def scaled(axis: Axes, rows: pd.DataFrame, _: Any) -> None:
        ticks(axis.xaxis, axis.yaxis)
        if _wide(rows["at"]):
            axis.set_xscale("log")
            log_ticks(axis.xaxis, ratio=rows["at"].max() / rows["at"].min())
            axis.xaxis.set_major_formatter(FuncFormatter(tick))
        if (rows["value"] >= 0.0).all():
            axis.set_ylim(bottom=0.0)

    return Picture(
        table=table, caption=caption, x="x", y="value", series="measure", column="panel", marks=SWEEPS, after=scaled,
        heading=lambda _, panel: heads[panel], labels=(literal(against), "value $\\mu$"),
        words="one for each combination", names=names_of(table, "measure"), look={"markersize": 4, "linewidth": 1.2},
        most=3,
    )  # fmt: skip


SWEEPS = {
    "line": [mark("line", markersize=4, linewidth=1.2, zorder=2.1), mark("bars", linewidth=1.0, zorder=2.0)]
}


def _wide(at: Any) -> bool:
    return bool(at.min() > 0.0 and at.max() > WIDE * at.min())
