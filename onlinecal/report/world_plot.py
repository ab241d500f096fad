"""One run of a world over time: its context, its forecasts with their outcomes, and both as running means."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.transcript import Transcript
from onlinecal.core.validation import count
from onlinecal.report.panels import Picture, Place, joined, mark, pictured, stacked
from onlinecal.report.style import GREY

#: questions of which a point can be told from the next
MOST = 400
#: questions of a running mean
WINDOW = 50
WORLDS = {
    "context": [mark("steps", "ink", linewidth=0.9)],
    **{
        f"outcome {y}": [
            mark("levels", colour, linewidth=0.8, alpha=0.6),
            mark("points", colour, marker=".", markersize=3.5, label=f"outcome {y}"),
        ]
        for y, colour in ((0, 0), (1, 5))
    },
    "forecasts": [mark("line", GREY, linewidth=1.1, label="mean of forecasts")],
    "outcomes": [mark("line", "ink", linewidth=1.1, label="mean of outcomes")],
}


@pictured
def plot_world(rounds: Transcript, *, context: str | None = None, first: int = 200) -> Picture:
    """Context of a world, forecasts with their outcomes, and their running means, by its clock.

    Parameters
    ----------
    rounds : Transcript
        Of one run, with its context: `onlinecal.worlds.observe` makes it.
    context : str, optional
        The kind in the upper panel. Default: the first by name that is not ``base``.
    first : int, default 200
        Questions that are drawn, at most 400, in the order of asking.

    Returns
    -------
    (3,) array of Axes
    """
    kinds = sorted(rounds.context, key=lambda kind: (kind == "base", kind))
    kind = context or (kinds[0] if kinds else "")
    if kind not in rounds.context:
        raise InvalidParameter(
            f"context = {context!r}; expected one of {kinds or 'those that a world reveals'}"
        )
    order = np.argsort(rounds.numbers)[: count("first", first, most=MOST)]
    asked, known, forecasts, outcomes = (
        each[order] for each in (rounds.asked, rounds.known, rounds.forecasts, rounds.outcomes)
    )

    parts = [{"panel": "context", "mark": "context", "clock": asked, "value": rounds.context[kind][order]}]
    for y in (0, 1):
        mine = outcomes == y
        times = {"clock": asked[mine], "left": asked[mine], "right": known[mine]}
        parts.append({"panel": "forecast", "mark": f"outcome {y}", "value": forecasts[mine], **times})
    for name, values in (("forecasts", forecasts), ("outcomes", outcomes)):
        parts.append({"panel": "mean", "mark": name, "clock": asked, "value": _running(values)})

    def after(axis: Axes, rows: pd.DataFrame, _: Place) -> None:
        panel = rows["panel"].iloc[0]
        axis.set_ylabel(kind if panel == "context" else panel, fontsize=8)
        axis.set_xlabel("clock of the world" if panel == "mean" else "", fontsize=8)
        if panel in limits:
            axis.set_ylim(*limits[panel])
            axis.legend(fontsize=7, frameon=False, ncols=2, loc="upper left", bbox_to_anchor=(0.0, 1.16),
                        borderaxespad=0.0)  # fmt: skip

    limits = {"forecast": (-0.03, 1.03), "mean": (0.0, None)}
    caption = joined(
        f"The first {len(order)} questions of one run whose outcome is known. Above: {kind}, at each question.",
        "Middle: a point is a forecast when its question is asked; its line ends when the outcome is known.",
        f"Below: means of each question and up to {WINDOW - 1} before it.",
    )
    return Picture(
        table=stacked(parts), caption=caption, x="clock", y="value", row="panel", marks=WORLDS, after=after, words="3",
        heading=lambda *_: "", wide=(1.0, 5.6), widest=60.0, shared="column", ratios=(1.0, 1.5, 1.0),
        high=lambda *_: 5.6,
    )  # fmt: skip


def _running(values: np.ndarray) -> np.ndarray:
    """The mean of each value and up to 49 before it."""
    sums = np.cumsum(np.concatenate([[0.0], values]))
    ends = np.arange(1, len(values) + 1)
    begins = np.maximum(0, ends - WINDOW)
    return np.asarray((sums[ends] - sums[begins]) / (ends - begins))
