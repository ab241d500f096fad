"""One run of a world over time: its context, its forecasts with their outcomes, and both as running means."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from onlinecal.core.errors import InvalidParameter, in_one_line
from onlinecal.core.transcript import Transcript
from onlinecal.core.validation import count
from onlinecal.report.facets import Look, facets, stacked
from onlinecal.report.style import GREY, ink, look

#: questions of which a point can be told from the next; those of a running mean
MOST, WINDOW = 400, 50
WORLD = (
    "One run, its first questions with a known outcome. Above: the context at each question. Middle: a point is a "
    "forecast when its question is asked, a thin line ends when the outcome is known; ticks at the edges are outcomes, "
    "1 above and 0 below. Below: means of each question and up to 49 before it."
)


def world_table(rounds: Transcript, *, context: str | None = None, first: int = 200) -> pd.DataFrame:
    """The "context", "forecast" with its outcome, and running means by the clock: rows of three panels."""
    if not isinstance(rounds, Transcript):
        raise InvalidParameter(
            f"world: rounds = {in_one_line(rounds)}; expected rounds, such as worlds.observe(...)"
        )
    kinds = sorted(rounds.context, key=lambda kind: (kind == "base", kind))
    kind = context or (kinds[0] if kinds else "")
    if kind not in rounds.context:
        raise InvalidParameter(f"context = {context!r}; expected one of {kinds}")
    order = np.argsort(rounds.numbers)[: count("first", first, most=MOST)]
    asked, known, forecasts, outcomes = (
        each[order] for each in (rounds.asked, rounds.known, rounds.forecasts, rounds.outcomes)
    )
    return stacked([
        {"panel": kind, "mark": "context", "clock": asked, "value": rounds.context[kind][order]},
        {"panel": "forecast", "mark": "forecast", "clock": asked, "known": known, "value": forecasts,
         "outcome": outcomes},
        *({"panel": f"mean of {WINDOW}", "mark": name, "clock": asked,
           "value": pd.Series(values, dtype=float).rolling(WINDOW, min_periods=1).mean().to_numpy()}
          for name, values in (("forecasts", forecasts), ("outcomes", outcomes))),
    ])  # fmt: skip


def plot_world(
    rounds: Transcript, *, context: str | None = None, first: int = 200, **look: Unpack[Look]
) -> Figure:
    """Context of a world, forecasts with their outcomes, and their running means, by its clock.

    Parameters
    ----------
    rounds : Transcript
        Of one run, with its context: `onlinecal.worlds.observe` makes it.
    context : str, optional
        The kind in the upper panel. Default: the first by name that is not ``base``.
    first : int, default 200
        Questions that are drawn, at most 400, in the order of asking.
    **look
        See `Look`.
    """
    table = world_table(rounds, context=context, first=first)
    number = (table["mark"] == "forecast").sum()

    def legend() -> list[Line2D]:
        looks = {"outcome 1": _OUTCOMES[1], "outcome 0": _OUTCOMES[0]}
        dots = [Line2D([], [], label=name, **_colour(place), linestyle="none", marker="|", markersize=8,
                       markeredgewidth=1.5) for name, place in looks.items()]  # fmt: skip
        means = {"mean of forecasts": GREY, "mean of outcomes": ink()}
        return dots + [Line2D([], [], color=colour, label=name) for name, colour in means.items()]

    return facets(
        table, _draw_world, WORLD, row="panel", labels=("clock of the world", ""),
        facts=f"{number:,} questions", legend=legend, panel=(6.5, 1.9), share="col", **look,
    )  # fmt: skip


#: outcome → the place of its colour
_OUTCOMES = {0: 0, 1: 1}


def _colour(place: int) -> dict[str, Any]:
    return {"color": look(place)["color"]}


def _draw_world(axis: Any, part: pd.DataFrame) -> None:
    panel = part["panel"].iloc[0]
    axis.set_ylabel(panel)
    if part["mark"].iloc[0] == "context":
        axis.step(part["clock"], part["value"], where="post", color=ink(), linewidth=0.9)
        axis.set_xlabel("")
    elif panel == "forecast":
        axis.hlines(part["value"], part["clock"], part["known"], color=GREY, linewidth=0.6, alpha=0.6)
        axis.plot(part["clock"], part["value"], ".", color=ink(), markersize=5, markeredgewidth=0)
        for outcome, (low, high) in {0: (-0.11, -0.03), 1: (1.03, 1.11)}.items():
            axis.vlines(
                part["clock"][part["outcome"] == outcome],
                low,
                high,
                linewidth=0.7,
                **_colour(_OUTCOMES[outcome]),
            )
        axis.set(ylim=(-0.12, 1.12), xlabel="", yticks=(0.0, 0.5, 1.0))
    else:
        for name, colour in (("forecasts", GREY), ("outcomes", ink())):
            mine = part[part["mark"] == name]
            axis.plot(mine["clock"], mine["value"], color=colour, linewidth=1.2)
        axis.set_ylim(bottom=0.0)
