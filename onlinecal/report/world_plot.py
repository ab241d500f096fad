"""One run of a world over time: its context, its forecasts with their outcomes, and both as running means."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.joint import Transcript
from onlinecal.core.validation import count
from onlinecal.report.panels import Panels, Picture, joined, pictured
from onlinecal.report.style import GREY, paper, plain

#: questions of which a point can be told from the next
MOST = 400
#: questions of a running mean
WINDOW = 50


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
        Questions that are drawn, at most 400, in the order in which they were asked.

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

    def build(fig: Figure, _: int) -> Panels:
        panels: Panels = fig.subplots(3, 1, sharex=True, gridspec_kw={"height_ratios": [1.0, 1.5, 1.0]})
        return panels

    def fill(panels: Panels, side: float, _: bool) -> None:
        above, middle, below = panels.flat
        here = paper(above)
        zero, one = here.colours[0], here.colours[5]
        above.step(asked, rounds.context[kind][order], where="post", color=here.ink, linewidth=0.9)
        above.set_ylabel(kind, fontsize=8)
        for y, colour in ((0, zero), (1, one)):
            mine = outcomes == y
            middle.hlines(forecasts[mine], asked[mine], known[mine], color=colour, linewidth=0.8, alpha=0.6)
            middle.plot(asked[mine], forecasts[mine], ".", color=colour, markersize=3.5, label=f"outcome {y}")
        middle.set_ylim(-0.03, 1.03)
        middle.set_ylabel("forecast", fontsize=8)
        for values, colour, label in ((forecasts, GREY, "forecasts"), (outcomes, here.ink, "outcomes")):
            below.plot(asked, _running(values), color=colour, linewidth=1.1, label=f"mean of {label}")
        below.set_ylim(0.0, None)
        below.set_ylabel("mean", fontsize=8)
        below.set_xlabel("clock of the world", fontsize=8)
        for axis in (middle, below):
            _legend(axis)
        for axis in panels.flat:
            plain(axis)

    return Picture(
        (3,), "3", fill, _caption(rounds, kind, len(order)), lambda *_: 5.6, build=build,
        wide=(1.0, 2.2), widest=60.0, narrow=0.01,
    )  # fmt: skip


def _running(values: np.ndarray) -> np.ndarray:
    """The mean of each value and up to 49 before it."""
    sums = np.cumsum(np.concatenate([[0.0], values]))
    ends = np.arange(1, len(values) + 1)
    begins = np.maximum(0, ends - WINDOW)
    return np.asarray((sums[ends] - sums[begins]) / (ends - begins))


def _legend(axis: Axes) -> None:
    axis.legend(
        fontsize=7, frameon=False, ncols=2, loc="upper left", bbox_to_anchor=(0.0, 1.16), borderaxespad=0.0
    )


def _caption(rounds: Transcript, kind: str, drawn: int) -> str:
    return joined(
        f"The first {drawn} questions of one run whose outcome is known. Above: {kind}, at each question.",
        "Middle: a point is a forecast when its question is asked; its line ends when the outcome is known.",
        f"Below: means of each question and up to {WINDOW - 1} before it.",
    )
