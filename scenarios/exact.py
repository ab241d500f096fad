"""The page of exact values, optimal laws and exploitability; some minutes, and 3 GB of memory.

python scenarios/exact.py scenarios           # writes exact.md and its pictures into this folder
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.strategy import strategy_label
from onlinecal.core.words import at_least
from onlinecal.exploit.reply import exploit
from onlinecal.forecasters import (
    AlmostOneStepAhead,
    CDLMinimiser,
    EmpiricalMean,
    Forecaster,
    ForecastHedging,
    FosterVohra,
    Rounded,
)
from onlinecal.games.brackets import ValueBracket, value_bracket
from onlinecal.games.solving import Solution, solve
from onlinecal.report.style import COLOURS, DASHES, GREY, MARKERS, save

Floats = NDArray[np.float64]
#: the listed games of total ECE: the longest by the steps of the grid
LENGTHS = {1: 256, 2: 256, 3: 256, 4: 96, 5: 48, 6: 40, 7: 24, 8: 24}
#: longer games with brackets of their values: the longest, and the largest bias that is told apart
BRACKETS = {4: (256, 8.0), 5: (64, 3.5)}
#: values that differ by less are the same
TIE = 1e-9
#: the first T of sentences on best grids, and on growth; the least that a doubling adds, but for rounding
FIRST, GROWING, TINY = 8, 32, 1e-9
#: T of the rows of the table
ROWS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 18, 20, 24, 32, 40, 48, 64, 96, 128, 192, 256)
#: rounds of the game of which laws are drawn
LAWS = 60
#: exploited forecasters, by the steps of the grid: what makes each, and the longest game
_MAKERS: tuple[Callable[[int], Forecaster], ...] = (
    ForecastHedging, CDLMinimiser, FosterVohra, AlmostOneStepAhead, lambda m: Rounded(EmpiricalMean(), m)
)  # fmt: skip
RULES: Mapping[int, Mapping[Callable[[int], Forecaster], int]] = {
    m: dict(zip(_MAKERS, (long, short, short, long, long), strict=True))
    for m, long, short in ((2, 32, 20), (3, 24, 16), (4, 16, 12))
}
#: T of exploited forecasters
TIMES = (1, 2, 4, 6, 8, 12, 16, 20, 24, 32)
#: the games of forecast hedging against the best: the longest by the steps of the grid, and their T
HEDGED = {1: 256, 2: 128, 3: 32, 4: 32, 5: 20, 6: 20}
HEDGE_TIMES = (1, 2, 4, 8, 12, 16, 20, 32, 64, 128, 256)
#: the compared measures of the biases, and the T of their games by the steps of the grid
MEASURES = ("ece", "smooth_ce", "kernel_ce", "cutoff_ce", "step_ce")
MEASURE_TIMES: Mapping[int, Sequence[int]] = {2: (4, 8, 12), 3: (4, 8, 12), 4: (4, 8, 12)}


@dataclass(frozen=True)
class Games:
    """Solved games by m, with the values of all shorter ones, and brackets of longer ones.

    `exploited` has the expected total ECE of forecasters against their worst natures: T → total, by m and label.
    `hedged` has that of forecast hedging by m.
    """

    solved: dict[int, Solution]
    brackets: dict[int, ValueBracket] = field(default_factory=dict)
    exploited: dict[int, dict[str, dict[int, float]]] = field(default_factory=dict)
    hedged: dict[int, dict[int, float]] = field(default_factory=dict)

    def values(self, m: int) -> Floats:
        """V_1, V_2, … on this grid."""
        values = self.solved[m].values
        assert values is not None
        return values

    def value(self, m: int, horizon: int) -> float:
        """V_T on this grid; NaN where it was not solved."""
        known = m in self.solved and horizon <= len(self.values(m))
        return float(self.values(m)[horizon - 1]) if known else math.nan

    def bounds(self, m: int, horizon: int) -> tuple[float, float]:
        """Bounds on V_T on this grid, NaN where it was neither solved nor bracketed."""
        value, bracket = self.value(m, horizon), self.brackets.get(m)
        if math.isnan(value) and bracket is not None and horizon <= bracket.horizon:
            return float(bracket.lowers[horizon - 1]), float(bracket.uppers[horizon - 1])
        return value - self.solved[m].error, value + self.solved[m].error

    def best(self, horizon: int) -> float:
        """The least value of the grids that are solved at this T."""
        return float(np.nanmin([self.value(m, horizon) for m in self.solved]))

    def leads(self, m: int, horizon: int) -> bool:
        """Whether all other grids with a known or bracketed value at this T have a larger one."""
        high = self.bounds(m, horizon)[1]
        return not any(self.bounds(other, horizon)[0] < high - TIE for other in self.solved if other != m)

    def longest(self) -> int:
        """The longest T of a game that is solved on some grid."""
        return max(len(self.values(m)) for m in self.solved)

    def common(self) -> int:
        """The last T at which all grids are solved."""
        return min(len(self.values(m)) for m in self.solved)

    def settled(self) -> int:
        """The last T at which all grids are solved and another than the finest is better; else 0."""
        finest = self.values(max(self.solved))
        return max((t for t in range(1, self.common() + 1) if self.best(t) < finest[t - 1] - TIE), default=0)


def games(
    lengths: Mapping[int, int] = LENGTHS,
    rules: Mapping[int, Mapping[Callable[[int], Forecaster], int]] = RULES,
    brackets: Mapping[int, tuple[int, float]] = BRACKETS,
    hedged: Mapping[int, int] = HEDGED,
    *,
    progress: bool | None = None,
) -> Games:
    """Solves the games of the page."""
    if not lengths or not (set(rules) | set(brackets) | set(hedged)) <= set(lengths):
        given = f"{sorted(rules)}, brackets for {sorted(brackets)}, hedging for {sorted(hedged)}"
        raise InvalidParameter(
            f"lengths for m in {sorted(lengths)}; rules for {given}; expected no other grids"
        )

    def paid(forecaster: Forecaster, m: int, longest: int, times: Sequence[int]) -> dict[int, float]:
        some = (t for t in times if t <= min(longest, lengths[m]))
        return {t: exploit(forecaster, t, progress=progress).value for t in some}

    return Games(
        {m: solve(m, horizon, progress=progress) for m, horizon in lengths.items()},
        {m: value_bracket(m, horizon, clip, progress=progress) for m, (horizon, clip) in brackets.items()},
        {
            m: {strategy_label(make(m)): paid(make(m), m, longest, TIMES) for make, longest in makers.items()}
            for m, makers in rules.items()
        },
        {m: paid(ForecastHedging(m), m, longest, HEDGE_TIMES) for m, longest in hedged.items()},
    )


def page(
    found: Games,
    pictures: Sequence[tuple[str, str]],
    command: str,
    times: Mapping[int, Sequence[int]] = MEASURE_TIMES,
) -> str:
    """The page as Markdown, with pictures (file, words), and other measures at these T by grid."""
    grids = sorted(found.solved)
    error = max(solution.error for solution in found.solved.values())
    values, law, exploited = ([f"![{words}]({file})", "", words, ""] for file, words in pictures)

    def cell(m: int, t: int) -> str:
        text = certain(*found.bounds(m, t))
        return f"**{text}**" if text != "–" and found.leads(m, t) else text

    lines = [
        "# Exact values of the calibration game",
        "",
        "Forecasts are on 0, 1/m, …, 1. In each of T rounds the forecaster states a law, nature, who sees it, chooses",
        "the outcome, a forecast is drawn from the law, and both see it. In the end the forecaster pays T·ECE. V_T(m)",
        "is what it pays in expectation if both play optimally; with both choosing at once it is the same. Each value",
        f"is exact up to rounding, which is at most {at_least(error, 2)}. Made by",
        "",
        "```sh",
        command,
        "```",
        "",
        "## Values",
        "",
        "Bold: the least of the values that are known in this row. Fewer digits: the value is bracketed and rounds to",
        "these at either end of the bracket. A dash: not solved, nor bracketed to one digit after the point.",
        "",
        *_table(
            ["T", *(f"m = {m}" for m in grids)],
            ([t, *(cell(m, t) for m in grids)] for t in ROWS if t <= found.longest()),
        ),
        "",
        *values,
        *_growth(found),
        "",
        *law,
        "## Exploitability",
        "",
        "What a forecaster pays to the nature that is worst for it, T·ECE in expectation, and (in brackets) by how",
        "much that is more than V_T(m), its *exploitability*.",
        "",
    ]
    for m, mine in sorted(found.exploited.items()):
        shown = sorted({t for paid in mine.values() for t in paid})
        rows = [["*minimax*", *(f"{found.value(m, t):.3f}" for t in shown)]]
        for label, paid in mine.items():
            rows.append([label, *(_beyond(paid[t], found.value(m, t)) if t in paid else "–" for t in shown)])
        lines += [*_table([f"m = {m}", *(f"T = {t}" for t in shown)], rows, words=0), ""]
    lines += exploited
    return "\n".join([*lines, *hedging_section(found), *measure_section(times)]).rstrip() + "\n"


def _beyond(paid: float, least: float) -> str:
    """A payment, and in brackets by how much it is more than the least."""
    return f"{paid:.3f} ({paid - least:.3f})"


def _table(headings: Sequence[str], rows: Iterable[Sequence[Any]], words: int | None = None) -> list[str]:
    """A Markdown table of numbers, with words in the column of that place."""
    marks = "|" + "".join("---|" if i == words else "---:|" for i in range(len(headings)))
    text = ["| " + " | ".join(map(str, line)) + " |" for line in [headings, *rows]]
    return [text[0], marks, *text[1:]]


def _growth(found: Games) -> list[str]:
    """Sentences on the growth of the least value, and on the T up to which the finest grid is not the best."""
    last, until, finest = found.common(), found.settled(), max(found.solved)
    first, lines = max(1, last // 4), []
    if first < last:
        growth = math.log(found.best(last) / found.best(first)) / math.log(last / first)
        lines = [
            f"The least of these grids grows like T^{growth:.2f} from T = {first} to {last} (best",
            "known for T → ∞: between T^0.54 and T^0.67).",
        ]
    if len(found.solved) == 1:
        said = "Other grids may pay less."
    elif until == last:
        said = f"At T = {last} another grid is better than the finest, m = {finest}."
    elif not until:
        said = (
            f"Up to T = {last} no grid is better than the finest, m = {finest}, and finer ones may pay less."
        )
    else:
        span = f"from T = {until + 1} to {last}" if until + 1 < last else f"at T = {last}"
        said = (
            f"Another grid is better than the finest, m = {finest}, at T = {until} for the last time; {span} none is, "
            "and finer ones may pay less."
        )
    return [*lines, said]


def hedging_section(found: Games) -> list[str]:
    """Whether forecast hedging pays a constant more than the best, as Markdown."""
    grids = sorted(found.hedged)
    if not grids:
        return []
    beyond = {m: {t: v - found.value(m, t) for t, v in paid.items()} for m, paid in found.hedged.items()}
    best = {t: hedging_on_best_grids(found, t) for t in sorted({t for each in beyond.values() for t in each})}

    def row(t: int) -> list[Any]:
        pairs = [(paid.get(t, math.nan), found.value(m, t)) for m, paid in sorted(found.hedged.items())]
        return [t, *("–" if math.isnan(a) else f"{a - b:.3f} ({a / b:.3f})" for a, b in [*pairs, best[t]])]

    return [
        "## Is forecast hedging within a constant of the best?",
        "",
        "By how much the worst case of forecast hedging, T·ECE in expectation, is more than V_T(m), and (in brackets)",
        "how many times V_T(m) it is. Last: hedging on its best grid and the best forecaster on its own, of these.",
        "",
        *_table(["T", *(f"m = {m}" for m in grids), "best grids"], map(row, best)),
        "",
        _of_hedging(beyond, best),
        "",
    ]


def hedging_on_best_grids(found: Games, horizon: int) -> tuple[float, float]:
    """The payment of hedging on its best grid, and the least value of these grids; NaN unless all are known."""
    paid = [each.get(horizon, math.nan) for each in found.hedged.values()]
    values = [found.value(m, horizon) for m in found.hedged]
    return (math.nan, math.nan) if any(map(math.isnan, [*paid, *values])) else (min(paid), min(values))


def doublings(beyond: Mapping[int, float]) -> dict[int, float]:
    """T → by how much the difference at T is more than that at T/2, for the T of which both are known."""
    return {t: beyond[t] - beyond[t // 2] for t in sorted(beyond) if t % 2 == 0 and t // 2 in beyond}


def _of_hedging(beyond: Mapping[int, Mapping[int, float]], best: Mapping[int, tuple[float, float]]) -> str:
    grown = {m: doublings(each) for m, each in sorted(beyond.items())}
    ends = [f"{each[max(each)]:.3f} (m = {m}, to T = {max(each)})" for m, each in grown.items() if each]
    words = [f"The last doubling of T adds to the difference {', '.join(ends)}."] if ends else []
    times = [
        each[t] / each[t // 2]
        for each in grown.values()
        for t in each
        if t >= GROWING and each.get(t // 2, 0.0) > TINY
    ]
    if times:
        words.append(
            f"From T = {GROWING} on, a doubling adds {_span(times, '.2f')} times as much as the one before it; to ln T "
            "it would add as much, to √T 1.41 times as much."
        )
    both = {t: paid / value for t, (paid, value) in best.items() if t >= FIRST and not math.isnan(paid)}
    if both:
        words.append(
            f"On its best grid hedging pays {_span(both.values(), '.2f')} times what the best forecaster pays on its "
            f"own, for T = {_span(both, 'd')}."
        )
    return " ".join(words)


def _span(numbers: Collection[float], digits: str) -> str:
    """The least to the largest, or one number where they are written alike."""
    low, high = (format(end(numbers), digits) for end in (min, max))
    return low if low == high else f"{low} to {high}"


def measure_section(times: Mapping[int, Sequence[int]]) -> list[str]:
    """The payments of forecasters in other measures of the biases, as Markdown."""
    lines = [
        "## Other measures",
        "",
        "What a forecaster pays to the nature that is worst for it in this very measure, T·μ in expectation, and (in",
        "brackets) by how much that is more than the value of the game of this measure.",
        "",
    ]
    for m, own in times.items():
        rows = []
        for t in own:
            values = [solve(m, t, measure, progress=False).value for measure in MEASURES]
            paid = {
                strategy_label(make(m)): [
                    exploit(make(m), t, measure, progress=False).value for measure in MEASURES
                ]
                for make in RULES[m]
            }
            rows.append([t, "*minimax*", *(f"{value:.3f}" for value in values)])
            rows += [[t, label, *map(_beyond, each, values)] for label, each in paid.items()]
        least: dict[str, list[str]] = {}
        for k, measure in enumerate(MEASURES):
            lowest = min(each[k] for each in paid.values())
            names = [label for label, each in paid.items() if each[k] <= lowest + TIE]
            least.setdefault(" and ".join(names), []).append(measure)
        said = "; ".join(f"{names} in {', '.join(measures)}" for names, measures in least.items())
        end = f"Of these, with m = {m} and T = {own[-1]} the least is paid by {said}."
        lines += [*_table(["T", f"m = {m}", *MEASURES], rows, words=1), "", end, ""]
    return lines


def certain(low: float, high: float) -> str:
    """The number with the most decimals, at most six, to which both round; a dash without one."""
    for decimals in range(6, 0, -1):
        text = f"{low:.{decimals}f}"
        if not math.isnan(low) and text == f"{high:.{decimals}f}":
            return text
    return "–"


# ---------------------------------------------------------------- pictures


def value_caption(found: Games) -> str:
    """The caption of `plot_values`."""
    bands = ""
    if found.brackets:
        within = at_least(
            max(float((each.uppers - each.lowers).max()) for each in found.brackets.values()), 2
        )
        grids = " and ".join(f"m = {m}" for m in sorted(found.brackets))
        bands = f"Longer games of {grids} are bracketed, within {within}: thin lines, the upper and the lower end. "
    return (
        f"Exact value V_T(m) of total ECE on 0, 1/m, …, 1 against T, for m = {min(found.solved)} to "
        f"{max(found.solved)}. {bands}Black: the least of them up to T = {found.common()}, as far as all are solved. "
        "Dotted: the slopes of the best known bounds for T → ∞, T^0.54 and T^(2/3); they have no constants."
    )


def plot_values(found: Games) -> Figure:
    """Values against T for each grid, with their lower envelope."""
    fig, axis = plt.subplots(figsize=(6.5, 4.6), layout="constrained")
    handles = []
    for k, m in enumerate(sorted(found.solved)):
        values = found.values(m)
        handles += axis.loglog(
            np.arange(1, len(values) + 1), values, color=COLOURS[k % len(COLOURS)], linestyle=DASHES[k // len(COLOURS)],
            marker=MARKERS[k % len(MARKERS)], markevery=(k / 40.0, 0.12), markersize=4, linewidth=1.2, label=f"m = {m}",
        )  # fmt: skip
        if m in found.brackets:
            beyond = np.arange(len(values), found.brackets[m].horizon + 1)
            for ends in np.array([found.bounds(m, int(t)) for t in beyond]).T:
                axis.loglog(beyond, ends, color=handles[-1].get_color(), linewidth=0.7)
    last = found.common()
    least = [found.best(t) for t in range(1, last + 1)]
    handles += axis.loglog(range(1, last + 1), least, color="black", linewidth=2.6, alpha=0.55, label="least")
    for power in (0.54389, 2.0 / 3.0):
        ends = np.array([last, found.longest()], float)
        slope = axis.loglog(
            ends, least[-1] * (ends / last) ** power, color=GREY, linestyle=":", linewidth=1.4
        )
    slope[0].set_label("T^0.54, T^(2/3)")
    axis.set(xlabel="T", ylabel="V_T(m), expected total ECE")
    fig.legend(
        handles=handles + slope,
        loc="outside upper center",
        ncols=5,
        title="Exact values of the calibration game",
    )
    return fig


LAW_CAPTION = (
    f"m = 2, a game of {LAWS} rounds: the probability with which the optimal law forecasts 0, 1/2 and 1, by the bias "
    "E of the forecast 1/2 (what happened minus what was forecast, summed) and by the rounds that are left. White: "
    f"states that {LAWS} rounds do not lead to. The biases of 0 and 1 never shrink, and do not matter. Where "
    "1/2 has come out as 1 too often (E > 0), nothing is on 0, and where it has too seldom, nothing is on 1."
)


def law_grid(horizon: int = LAWS) -> np.ndarray:
    """Weights of 0, 1/2 and 1, (3, rounds left, biases from −T/2 to T/2 in halves); NaN where no game comes."""
    solution = solve(2, horizon, keep=True)
    weights = np.full((3, horizon, 2 * horizon + 1), np.nan)
    for left in range(1, horizon + 1):
        for bias in range(left - horizon, horizon - left + 1):
            here = solution.at([0, bias, 0], left)
            weights[:, left - 1, bias + horizon] = 0.0
            for p, w in zip(here.forecasts, here.weights, strict=True):
                weights[round(2 * p), left - 1, bias + horizon] += w
    return weights


def plot_law() -> Figure:
    """The optimal law on three points as a function of the bias and of the rounds left."""
    weights = law_grid()
    fig, axes = plt.subplots(1, 3, figsize=(7.0, 3.2), sharey=True, layout="constrained")
    span = LAWS / 2.0
    for axis, grid, point in zip(axes, weights, ("0", "1/2", "1"), strict=True):
        axis.imshow(
            grid, origin="lower", aspect="auto", cmap="viridis", vmin=0.0, vmax=1.0, interpolation="nearest",
            extent=(-span - 0.25, span + 0.25, 0.5, LAWS + 0.5),
        )  # fmt: skip
        axis.set_title(f"forecast {point}", fontsize=9)
        axis.set(xlabel="bias E of 1/2", ylabel="rounds left" if point == "0" else "")
        axis.set_xlim(-span / 2, span / 2)
    fig.colorbar(axes[0].images[0], ax=axes, aspect=15).set_label("probability")
    fig.suptitle("How the best forecaster plays on 0, 1/2, 1")
    return fig


EXPLOIT_CAPTION = (
    "Expected total ECE against the worst nature for each forecaster, exactly, against T; black: V_T(m), of the best "
    "forecaster on the same grid. The distance between the two is the exploitability."
)


def plot_exploited(found: Games) -> Figure:
    """The payments of forecasters to their worst natures, a panel for each grid."""
    grids = sorted(found.exploited)
    fig, axes = plt.subplots(
        1, len(grids), figsize=(3.5 * len(grids), 3.9), squeeze=False, layout="constrained"
    )
    names: dict[str, Line2D] = {}
    for axis, m in zip(axes.flat, grids, strict=True):
        mine = found.exploited[m]
        times = range(1, max(t for paid in mine.values() for t in paid) + 1)
        (line,) = axis.plot(times, [found.value(m, t) for t in times], color="black", linewidth=2.2)
        names.setdefault("minimax", line)
        for k, (label, paid) in enumerate(mine.items()):
            (line,) = axis.plot(
                *zip(*paid.items(), strict=True),
                color=COLOURS[k],
                marker=MARKERS[k],
                markersize=4,
                linewidth=1.2,
            )
            # Without the grid, which stands above the panel.
            names.setdefault(re.sub(r" \(m=\d+\)|, m=\d+|m=\d+, ", "", label), line)
        axis.set_title(f"m = {m}", fontsize=9)
        axis.set_ylim(0.0, math.ceil(max(v for paid in mine.values() for v in paid.values())))
        axis.set(xlabel="T", ylabel="expected total ECE")
    for name, line in names.items():
        line.set_label(name)
    fig.legend(
        handles=names.values(), loc="outside upper center", ncols=3, title="What the worst nature takes"
    )
    return fig


# ---------------------------------------------------------------- all of it


def main(folder: Path) -> None:
    """Writes the page and its pictures into a folder."""
    mpl.use("Agg")
    found = games()
    pictures = {
        "exact-values.png": (lambda: plot_values(found), value_caption(found)),
        "exact-law.png": (plot_law, LAW_CAPTION),
        "exact-exploitability.png": (lambda: plot_exploited(found), EXPLOIT_CAPTION),
    }
    for name, (draw, _) in pictures.items():
        save(draw(), folder / name)
    shown = [(name, words) for name, (_, words) in pictures.items()]
    text = page(found, shown, f"python scenarios/exact.py {folder}")
    (folder / "exact.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
