"""Values of measures against a parameter, or against T: table, then picture."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, Unpack, get_args

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from onlinecal.core.arrays import Floats
from onlinecal.core.errors import InvalidParameter, UnknownName
from onlinecal.core.validation import choice, is_number
from onlinecal.core.words import counted
from onlinecal.growth.words import literal
from onlinecal.report.facets import Look, facets, need_study
from onlinecal.report.style import look, tick, ticks
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
    "deviation": "mean ± standard deviation",
    "quartiles": "quartiles",
    "interval": "mean, 95 % interval",
}
SWEEP = (
    "The value μ of each measure at the end of the game, its total divided by T, against a parameter, or T. Points "
    "and bars: means and standard deviations, quartiles, or means and 95 % intervals by Student's t, of the runs. "
    "Lines are set a little apart, so that bars can be told apart. Infinite values are not drawn."
)


def sweep_table(
    study: Study, measures: str | Sequence[str] | None, against: str, *, bars: Bars = "deviation"
) -> pd.DataFrame:
    """Values of measures at the end of games that differ in one parameter, or in T, by panel and heading.

    Forecasters or natures without a number as this parameter are left out; `without` of the table names them.
    """
    need_study("sweep", study)
    choice("sweep", "bars", bars, get_args(Bars))
    columns, left = [column.name for column in columns_of(study, measures)], dict[str, None]()
    #: what is the same but for the parameter, its heading, the measure, the parameter, and values of the runs
    rows: list[tuple[str, str, str, float, Floats]] = []
    if against == TIME:
        for curve in study.curves(columns):
            pair = f"{curve.forecaster} against {curve.nature}"
            for t, totals in zip(curve.rounds.astype(float), curve.totals, strict=True):
                rows.append((pair, pair, curve.measure, t, totals / t))
    else:
        role = _role(study, against)
        for cell in study.cells:
            played = {"forecaster": cell.forecaster, "nature": cell.nature}
            content = dict(_flat(cell, role))
            value = content.pop(against, None)
            if not is_number(value):
                left[played[role]] = None
                continue
            own = {role: _trimmed(played.pop(role), against)}
            said = "{forecaster} against {nature}, T = {T:,}".format(**played, **own, T=cell.horizon)
            schedule = cell.schedule[1] if role == "nature" else ""
            same = json.dumps([content, schedule, played, cell.horizon], sort_keys=True)
            there = {name: cell.totals[name][-1] for name in columns if name in cell.totals}
            rows += [(same, said, name, float(value), each / cell.horizon) for name, each in there.items()]
    if not rows:
        raise InvalidParameter(f"no measure was taken in games with {against}; expected one that was")
    table = pd.DataFrame(rows, columns=["same", "heading", "measure", "at", "values"])
    panels = table.groupby("same", sort=False)
    table["panel"], table["heading"] = panels.ngroup(), panels["heading"].transform("min")
    if (many := panels.ngroups) > MOST:
        raise InvalidParameter(
            f"{many} panels against {against}; expected at most {MOST}, chosen by --forecaster and --nature"
        )
    measures = [name for name in columns if name in set(table["measure"])]
    table["place"] = table["measure"].map(measures.index)
    table = table.sort_values(["panel", "place", "at"], ignore_index=True)
    table["runs"] = table["values"].map(len)
    table[["lower", "value", "upper"]] = [spread(values, bars) for values in table.pop("values")]
    table["mark"] = np.where(np.isfinite(table["value"]), "line", "infinite")
    # Beside the points of the other lines.
    panels = table.groupby("panel")
    low, high, lines = (
        panels[of].transform(how) for of, how in (("at", "min"), ("at", "max"), ("place", "nunique"))
    )
    apart = APART * (panels["place"].rank("dense") - (lines + 1) / 2)
    wide = (low > 0.0) & (high > WIDE * low)
    table["x"] = (table["at"] + apart * (high - low)).mask(wide, table["at"] * (high / low) ** apart)
    table.attrs["without"] = [*left]
    return table.drop(columns="same")


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


def plot_sweep(
    study: Study,
    measures: str | Sequence[str] | None,
    against: str,
    *,
    bars: Bars = "deviation",
    **look: Unpack[Look],
) -> Figure:
    """Values μ of measures at the end of games, against a parameter that the games differ in.

    There is a panel for each combination of what else differs.

    Parameters
    ----------
    study : Study
    measures : str or sequence of str, optional
        At least one column, a line each. Default: all measures.
    against : str
        A parameter of forecasters or natures, ``"of.m"`` for the `m` of the player under `of`. ``"T"``: the number of
        rounds.
    bars : {"deviation", "quartiles", "interval"}, default "deviation"
        Points are means of the runs, bars one standard deviation to either side. Or medians and quartiles. Or means and
        95 % intervals by Student's t.
    **look
        See `Look`.
    """
    table = sweep_table(study, measures, against, bars=bars)
    without = table.attrs["without"]
    facts = f"{counted({int(n) for n in table['runs']})} · {_MIDDLE[bars]}"
    return facets(
        table, _draw_sweep, SWEEP, column="panel", share=False,
        labels=(literal(against), "value μ"), names="measure",
        facts=facts + f" · without {against}: {', '.join(without)}" * bool(without), **look,
    )  # fmt: skip


def _draw_sweep(axis: Any, part: pd.DataFrame) -> None:
    for place, mine in part[part["mark"] == "line"].groupby("place"):
        own = look(int(place))
        axis.plot(mine["x"], mine["value"], linewidth=1.2, zorder=2.1, **own)
        axis.vlines(mine["x"], mine["lower"], mine["upper"], color=own["color"], linewidth=1.0, zorder=2.0)
    axis.set_xscale("log" if _wide(part["at"]) else "linear")
    ticks(axis.xaxis, axis.yaxis)
    axis.xaxis.set_major_formatter(FuncFormatter(tick))
    if (part["value"] >= 0.0).all():
        axis.set_ylim(bottom=0.0)


def _wide(at: Any) -> bool:
    return bool(at.min() > 0.0 and at.max() > WIDE * at.min())
