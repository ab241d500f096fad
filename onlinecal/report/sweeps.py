"""What a parameter with several values does to values of measures, as plain data: what `sweep_plot` draws."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from onlinecal.core.columns import Column
from onlinecal.core.errors import InvalidParameter, UnknownName
from onlinecal.core.validation import choice, is_number
from onlinecal.report.curves import Study, summary
from onlinecal.study.played import Played

Floats = NDArray[np.float64]
Bars = Literal["deviation", "quartiles", "interval"]

BARS: tuple[str, ...] = get_args(Bars)
#: panels in one picture
MOST = 36
#: what stands for the number of rounds
TIME = "T"


@dataclass(frozen=True, eq=False)
class SweepLine:
    """One measure against the parameter.

    Attributes
    ----------
    column : Column
    at : (n,) floats
        Values of the parameter, ascending.
    middle, lower, upper : (n,) floats
        Of the values μ of the runs, which are totals divided by T: what `bars` says.
    runs : (n,) ints
    """

    column: Column
    at: Floats
    middle: Floats
    lower: Floats
    upper: Floats
    runs: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class SweepFrame:
    """One pair of axes: all is the same in it but for the parameter.

    Attributes
    ----------
    heading : str
        Who plays against whom, and T, as far as it is the same.
    lines : tuple of SweepLine
    """

    heading: str
    lines: tuple[SweepLine, ...]


@dataclass(frozen=True, eq=False)
class Swept:
    """What a picture of a parameter shows.

    Attributes
    ----------
    parameter : str
    bars : str
    frames : tuple of SweepFrame
    left : tuple of str
        Forecasters or natures that have no such parameter with a number as its value, and are not drawn.
    """

    parameter: str
    bars: str
    frames: tuple[SweepFrame, ...]
    left: tuple[str, ...]


def swept(study: Study, measures: Sequence[str], against: str, bars: Bars = "deviation") -> Swept:
    """Values of measures at the end of games that differ in one parameter, or in T.

    Parameters
    ----------
    study : Study
    measures : sequence of str
        At least one column.
    against : str
        A parameter of forecasters or of natures, ``"of.m"`` for the `m` of what stands under `of`; ``"T"`` for the
        number of rounds.
    bars : {"deviation", "quartiles", "interval"}
        The mean of the runs and one standard deviation to either side; their median and quartiles; or the mean and
        its 95 % interval by Student's t.

    Raises
    ------
    UnknownName
        A measure that was not played; a parameter that nobody has with a number as its value.
    InvalidParameter
        No measures, or none that was taken there; other bars; more than `MOST` panels; a parameter of which both
        forecasters and natures have several values.
    """
    choice("sweep", "bars", bars, BARS)
    if not measures:
        raise InvalidParameter("no measures to draw; expected at least one")
    for measure in measures:
        if measure not in study.measures:
            raise UnknownName.of("measure", measure, study.measures)
    columns = [study.columns[name] for name in dict.fromkeys(measures)]
    found = _against_time(study, columns, bars) if against == TIME else None
    if found is not None:
        return _few(Swept(against, bars, found, ()))
    role = _role(study, against)
    games: dict[tuple[str, str, int], list[tuple[float, Played]]] = {}
    headings: dict[tuple[str, str, int], set[str]] = {}
    left: dict[str, None] = {}
    for cell in study.cells:
        label = cell.forecaster if role == "forecaster" else cell.nature
        values = dict(_numbers(_content(cell, role)))
        if against not in values:
            left[label] = None
            continue
        rest = json.dumps(_without(_content(cell, role), against.split(".")), sort_keys=True)
        other = cell.nature if role == "forecaster" else cell.forecaster
        key = rest + (f"@{cell.schedule[1]}" if role == "nature" else ""), other, cell.horizon
        games.setdefault(key, []).append((values[against], cell))
        headings.setdefault(key, set()).add(_trimmed(label, against))
    frames = []
    for key, mine in games.items():
        name = sorted(headings[key])[0]
        who, whom = (name, key[1]) if role == "forecaster" else (key[1], name)
        lines = []
        for column in columns:
            there = {x: c.totals[column.name][-1] / c.horizon for x, c in mine if column.name in c.totals}
            if there:
                lines.append(_line(column, there, bars))
        if lines:
            frames.append(SweepFrame(f"{who} against {whom}, T = {key[2]:,}", tuple(lines)))
    return _few(Swept(against, bars, tuple(frames), tuple(left)))


def _few(drawn: Swept) -> Swept:
    """The same, if there is something to draw and not too much."""
    if not drawn.frames:
        raise InvalidParameter(f"no measure was taken in games with {drawn.parameter}; expected one that was")
    if len(drawn.frames) > MOST:
        raise InvalidParameter(
            f"{len(drawn.frames)} panels against {drawn.parameter}; expected at most {MOST}, chosen by --forecaster "
            "and --nature"
        )
    return drawn


def _against_time(study: Study, columns: Sequence[Column], bars: str) -> tuple[SweepFrame, ...]:
    games: dict[tuple[str, str], list[SweepLine]] = {
        (who, nature): [] for nature in study.natures for who in study.forecasters
    }
    for curve in study.curves([column.name for column in columns]):
        values = curve.totals / curve.rounds[:, None]
        there = dict(zip(curve.rounds.astype(float).tolist(), values, strict=True))
        games[curve.forecaster, curve.nature].append(_line(study.columns[curve.measure], there, bars))
    return tuple(
        SweepFrame(f"{who} against {nature}", tuple(lines)) for (who, nature), lines in games.items() if lines
    )


def _line(column: Column, there: Mapping[float, Floats], bars: str) -> SweepLine:
    at = sorted(there)
    shown = np.array([spread(there[x], bars) for x in at])
    return SweepLine(
        column, np.array(at), shown[:, 1], shown[:, 0], shown[:, 2], np.array([len(there[x]) for x in at])
    )


def spread(values: Floats, bars: str) -> tuple[float, float, float]:
    """The lower end, the middle and the upper end of some runs; see `swept`. NaN where a single run has no spread.

    Where a run is infinite the middle is, and there is no spread.

    >>> spread(np.array([1.0, 2.0, 3.0, 6.0]), "quartiles")
    (1.75, 2.5, 3.75)
    >>> spread(np.array([1.0, 3.0]), "deviation")[1]
    2.0
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


# ---------------------------------------------------------------- parameters


def _content(cell: Played, role: str) -> Mapping[str, Any]:
    found = cell.origin.game.get(role, {}) if cell.origin is not None else {}
    return found if isinstance(found, Mapping) else {}


def _numbers(content: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, float]]:
    """Parameters that are numbers, with those of players under others: ``of.m``."""
    parameters = content.get("parameters", {})
    for name, value in parameters.items() if isinstance(parameters, Mapping) else ():
        if is_number(value):
            yield f"{above}{name}", float(value)
        elif isinstance(value, Mapping):
            yield from _numbers(value, f"{above}{name}.")


def _without(content: Mapping[str, Any], path: Sequence[str]) -> dict[str, Any]:
    """The same content but for one parameter."""
    first, *rest = path
    parameters = dict(content["parameters"])
    parameters[first] = _without(parameters[first], rest) if rest else None
    return {**content, "parameters": parameters}


def _role(study: Study, against: str) -> str:
    """Whose parameter it is."""
    known: dict[str, dict[str, set[float]]] = {"forecaster": {}, "nature": {}}
    for cell in study.cells:
        for role, names in known.items():
            for name, value in _numbers(_content(cell, role)):
                names.setdefault(name, set()).add(value)
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
