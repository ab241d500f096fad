"""Decision makers that join and leave: rows, a table, and its picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from onlinecal.core.arrays import Floats, Ints
from onlinecal.core.errors import InvalidParameter
from onlinecal.core.words import counted, number_of
from onlinecal.growth.words import literal
from onlinecal.report.facets import Look, by_mark, facets, need_study, stacked
from onlinecal.report.style import GREY, ink, look, ticks
from onlinecal.study.curves import Study, open_at_the_end
from onlinecal.study.played import Played

#: percentiles of the decision makers
SHARES = (10.0, 50.0, 90.0)
#: of swap regret in a picture; what is smaller stands on the lower edge
DECADES = 4


@dataclass(frozen=True)
class PeopleRow:
    """The decision makers of one forecaster against one nature; numbers are means over the runs."""

    forecaster: str
    nature: str
    horizon: int
    #: questions without a known outcome at the end
    open: int
    runs: int
    #: T: the checkpoints of the one game, or the ends of a game each
    rounds: Ints
    #: (n, k) totals of swap regret; NaN before the first known outcome of a tenure
    regret: Floats
    #: at the end: see `makers_of`; of a "best" response the CDL bounds the swap regret
    makers: pd.DataFrame

    @property
    def seen(self) -> pd.DataFrame:
        """Those with a known outcome."""
        return self.makers[self.makers["seen"] > 0]

    def worst(self, of: str = "swap") -> int | None:
        """The place of the largest swap regret at the end; None without any."""
        return None if self.seen.empty else int(self.seen[of].idxmax())

    def as_json(self) -> dict[str, Any]:
        """The summary that tables print."""
        row: dict[str, Any] = {
            "forecaster": self.forecaster, "nature": self.nature, "horizon": self.horizon, "runs": self.runs,
            "open": self.open, "decision_makers": len(self.makers),
            "without_known_outcome": len(self.makers) - len(self.seen),
            "median_swap_regret": float(self.seen["swap"].median()),
            "median_swap_regret_per_question": float(self.seen["swap_each"].median()),
        }  # fmt: skip
        for name, at in (("worst", self.worst()), ("worst_per_question", self.worst("swap_each"))):
            one = None if at is None else self.makers.loc[at]
            row[name] = None if one is None else {
                "label": one["label"], "best_response": bool(one["best"]), "questions": _questions(one),
                "swap_regret": float(one["swap"]), "cdl": float(one["cdl"]),
            }  # fmt: skip
        return row


def people_rows(study: Study) -> list[PeopleRow]:
    """A row for each nature (with its schedule) and forecaster, in this order; of several horizons a game each."""
    found = [
        _people_row(sorted(mine, key=lambda c: c.horizon))
        for nature in study.natures
        for who in study.forecasters
        if (mine := [c for c in study.cells if (c.forecaster, c.nature) == (who, nature) and c.people])
    ]
    if not found:
        raise InvalidParameter(
            "nobody joins or leaves in this study; expected `decision_makers` in its scenario, or in `play`"
        )
    return found


def _people_row(cells: list[Played]) -> PeopleRow:
    last, fresh = cells[-1], len(cells) > 1
    people = last.people
    assert people is not None
    entries = [c.people.entries for c in cells if c.people is not None]
    seen, swap = (
        np.concatenate([e[name][-1:] if fresh else e[name] for e in entries]) for name in ("rounds", "swap_regret")
    )  # fmt: skip
    # The same in all runs of a schedule, not of a world.
    counts = seen.mean(axis=2)
    best = [not response for response in people.responses]
    return PeopleRow(
        last.forecaster, last.nature, last.horizon, open_at_the_end(last), people.cdl.shape[1],
        np.array([c.horizon for c in cells]) if fresh else last.rounds, np.where(counts > 0, swap.mean(axis=2), np.nan),
        makers_of(people.labels, best, counts[-1], swap[-1].mean(axis=1), people.cdl.mean(axis=1)),
    )  # fmt: skip


def makers_of(labels: Sequence[str], best: Any, seen: Any, swap: Any, cdl: Any) -> pd.DataFrame:
    """Decision makers: totals over the questions "seen" with their outcome, and for each of these, NaN without any.

    All are means over the runs, which share the number of questions by a schedule, and not in a world.
    """
    found = pd.DataFrame({"label": labels, "best": best, "seen": seen, "swap": swap, "cdl": cdl})
    each = found[["swap", "cdl"]].div(found["seen"].where(found["seen"] > 0), axis=0)
    return found.join(each.add_suffix("_each"))


def _questions(one: Any) -> Any:
    """The number of questions of a decision maker, whole where all runs have the same."""
    seen = float(one["seen"])
    return int(seen) if seen.is_integer() else seen


def people_table(study: Study) -> pd.DataFrame:
    """Three panels of each pair: "growth" against T, the "bound" at the end, and "shares" for each question."""
    return panels_of(people_rows(need_study("people", study)))


def panels_of(drawn: Sequence[PeopleRow]) -> pd.DataFrame:
    """The table of `people_table`."""
    across, up = _spans(drawn)
    most, parts = _most(drawn), list[dict[str, Any]]()
    for i, row in enumerate(drawn):
        growth, bound, shares = (
            {"row": i, "panel": panel, "heading": heading}
            for panel, heading in (
                ("growth", f"{row.forecaster} against {row.nature}"), ("bound", f"at T = {row.horizon:,}"),
                ("shares", number_of(len(row.seen), "decision maker")),
            )
        )  # fmt: skip
        for k, best in enumerate(row.makers["best"]):
            one = {"mark": "best" if best else "other", "part": k, "x": row.rounds, "y": row.regret[:, k]}
            parts.append(growth | one)
        quantiles = pd.DataFrame(row.regret.T).quantile(np.array(SHARES) / 100.0).to_numpy()
        for kind, k in (("median", 1), ("tenth", 0), ("ninetieth", 2)):
            parts.append(growth | {"mark": kind, "x": row.rounds, "y": quantiles[k]})
        for kind, best in (("best", True), ("another", False)):
            mine = row.seen[row.seen["best"] == best]
            # Values below an axis are drawn on its edge.
            ends_of = {"x": np.maximum(mine["cdl"], across[0]), "y": np.maximum(mine["swap"], up[0])}
            parts.append(bound | {"mark": f"{kind} response"} | ends_of)
        parts.append(bound | {"mark": "diagonal", "x": np.array(across), "y": np.array(across)})
        for kind, name in (("CDL", "cdl_each"), ("swap regret", "swap_each")):
            there = np.sort(row.seen[name])
            share = np.arange(len(there) + 2).clip(max=len(there)) / max(len(there), 1)
            parts.append(shares | {
                "mark": kind, "x": np.concatenate([[0.0], there, [1.04 * most]]) if len(there) else np.array([0.0]),
                "y": share if len(there) else np.array([0.0]),
            })  # fmt: skip
    return stacked(parts)


_PEOPLE: dict[str, tuple[int | None, dict[str, Any]]] = {
    "best": (0, {"alpha": 0.22, "linewidth": 0.6}), "other": (1, {"alpha": 0.22, "linewidth": 0.6}),
    "median": (None, {"linewidth": 2.0}), "tenth": (None, {"linewidth": 1.0, "linestyle": (0, (5, 2))}),
    "ninetieth": (None, {"linewidth": 1.0, "linestyle": (0, (5, 2))}),
}  # fmt: skip
PEOPLE = (
    "Means over the runs, over questions with a known outcome. Left: swap regret of each decision maker, thin; median "
    "thick, 10th and 90th percentile dashed. Middle: swap regret against CDL, which no best response exceeds; values "
    "below an axis are on its edge. Right: share of decision makers with at most this for each question. Named: the "
    "largest."
)


def plot_people(study: Study, **look: Unpack[Look]) -> Figure:
    """The swap regret of each decision maker: as it grows, beside its CDL, and for each question of its tenure.

    Parameters
    ----------
    study : Study
        With decision makers.
    **look
        See `Look`.
    """
    drawn = people_rows(need_study("people", study))
    (across, up), most = _spans(drawn), _most(drawn)
    unseen, open = max(len(row.makers) - len(row.seen) for row in drawn), max(row.open for row in drawn)

    def draw(axis: Any, part: pd.DataFrame) -> None:
        panel, row = part["panel"].iloc[0], drawn[int(part["row"].iloc[0])]
        marks = by_mark(part)
        if panel == "growth":
            _growth(axis, marks, row)
        elif panel == "bound":
            _bound(axis, marks, row, across, up)
        else:
            _shares(axis, marks, row, most)

    facts = [
        counted({row.runs for row in drawn}), *[f"up to {open:,} questions open at the end"] * bool(open),
        *[f"up to {unseen} without a known outcome are not drawn"] * bool(unseen),
    ]  # fmt: skip
    return facets(
        panels_of(drawn), draw, PEOPLE, row="row", column="panel", share=False, panel=(3.3, 2.9),
        facts=" · ".join(facts), **look,
    )  # fmt: skip


def _most(drawn: Sequence[PeopleRow]) -> float:
    """The largest CDL or swap regret for each question."""
    every = pd.concat([row.seen[["swap_each", "cdl_each"]] for row in drawn]).to_numpy()
    return float(every.max(initial=0.0)) or 1.0


def _spans(drawn: Sequence[PeopleRow]) -> tuple[tuple[float, float], tuple[float, float]]:
    """Limits of the logarithmic axes of CDL and of swap regret; of the latter the upper `DECADES`."""
    every = pd.concat([row.seen[["cdl", "swap"]] for row in drawn])
    bounds, regrets = (every[name][every[name] > 0].to_numpy() for name in every)
    if not len(bounds) and not len(regrets):
        return (0.1, 10.0), (0.1, 10.0)
    most = 1.6 * float(max(bounds.max(initial=0.0), regrets.max(initial=0.0)))
    least = max(float(regrets.min(initial=most)) / 1.6, most * 10.0**-DECADES)
    return (float(bounds.min(initial=most)) / 1.6, most), (least, most)


def _growth(axis: Any, marks: Mapping[str, pd.DataFrame], row: PeopleRow) -> None:
    for kind, mine in marks.items():
        place, own = _PEOPLE[kind]
        colour = {"color": ink() if place is None else look(place)["color"]}
        for _, line in mine.groupby("part", dropna=False):
            axis.plot(line["x"], line["y"], **own, **colour)
    if (worst := row.worst()) is not None:
        _name(axis, row, worst, float(row.rounds[-1]), float(row.makers["swap"][worst]))
    top = float(np.nanmax(row.regret, initial=0.0))
    axis.set(xlim=(0.0, float(row.rounds[-1]) * 1.01), ylim=(0.0, 1.08 * top if top > 0 else 1.0), xlabel="T",
             ylabel="swap regret, total")  # fmt: skip
    ticks(axis.xaxis, axis.yaxis)


def _name(axis: Any, row: PeopleRow, place: int, x: float, y: float) -> None:
    """A name at the right edge, written to the left of its point."""
    axis.annotate(literal(row.makers["label"][place]), (x, y), (-3, 2), textcoords="offset points", ha="right",
                  va="bottom", fontsize=7)  # fmt: skip


def _bound(axis: Any, marks: Mapping[str, pd.DataFrame], row: PeopleRow, across: Any, up: Any) -> None:
    looks: dict[str, dict[str, Any]] = {
        "best response": {"marker": "o", "alpha": 0.6}, "another response": {"marker": "s", "markerfacecolor": "none"},
    }  # fmt: skip
    for place, (kind, own) in enumerate(looks.items()):
        if kind in marks:
            mine = marks[kind]
            axis.plot(mine["x"], mine["y"], linestyle="none", color=look(place)["color"], markersize=3.5,
                      clip_on=False, label=f"{kind} ({len(mine)})", **own)  # fmt: skip
    axis.plot(across, across, color=GREY, linewidth=1.0, zorder=1.0, label="swap regret = CDL")
    axis.set(xscale="log", yscale="log", xlim=across, ylim=up, xlabel="CDL of its questions, total",
             ylabel="swap regret, total")  # fmt: skip
    ticks(axis.xaxis, axis.yaxis)
    if (worst := row.worst()) is not None:
        cdl, swap = row.makers.loc[worst, ["cdl", "swap"]].astype(float)
        _name(axis, row, worst, max(cdl, across[0]), max(swap, up[0]))
    axis.legend(loc="best", frameon=True, edgecolor="none", framealpha=0.8)


def _shares(axis: Any, marks: Mapping[str, pd.DataFrame], row: PeopleRow, most: float) -> None:
    for kind, colour in (("CDL", GREY), ("swap regret", ink())):
        axis.step(marks[kind]["x"], marks[kind]["y"], where="post", color=colour, label=kind)
    axis.set(xlim=(0.0, 1.04 * most), ylim=(0.0, 1.02), xlabel="for each known outcome",
             ylabel="share with at most this")  # fmt: skip
    if (at := row.worst("swap_each")) is not None:
        one = row.makers.loc[at]
        rate = float(one["swap_each"])
        axis.annotate(
            f"{literal(one['label'])}: {rate:.3g}\nin {number_of(round(_questions(one), 1), 'question')}", (rate, 1.0),
            (0, -34), textcoords="offset points", ha="right" if rate > 0.5 * most else "left", va="top", fontsize=7,
            arrowprops={"arrowstyle": "-", "color": GREY, "linewidth": 0.6},
        )  # fmt: skip
        axis.legend(loc="best")
