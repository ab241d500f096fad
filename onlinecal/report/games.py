"""Tables of solved games: values, how they grow, and what forecasters pay beyond them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.strategy import strategy_label
from onlinecal.exact.game import Solution, solve
from onlinecal.exact.signs import sign_preservation
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

Floats = NDArray[np.float64]

#: the games of total ECE whose values are listed: the longest by the steps of the grid
LENGTHS = {1: 256, 2: 256, 3: 256, 4: 96, 5: 40, 6: 24, 7: 18, 8: 16}

#: T of the rows of the table
ROWS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 18, 24, 32, 40, 64, 96, 128, 192, 256)

#: exploited forecasters, by the steps of the grid: what makes each, and the longest game
RULES: Mapping[int, Mapping[Callable[[int], Forecaster], int]] = {
    2: {
        lambda m: ForecastHedging(m): 32, lambda m: CDLMinimiser(m): 20, lambda m: FosterVohra(m): 20,
        lambda m: AlmostOneStepAhead(m): 32, lambda m: Rounded(EmpiricalMean(), m): 32,
    },
    4: {
        lambda m: ForecastHedging(m): 16, lambda m: CDLMinimiser(m): 12, lambda m: FosterVohra(m): 12,
        lambda m: AlmostOneStepAhead(m): 16, lambda m: Rounded(EmpiricalMean(), m): 16,
    },
}  # fmt: skip

#: T of exploited forecasters
TIMES = (1, 2, 4, 6, 8, 12, 16, 20, 24, 32)


@dataclass(frozen=True)
class Exploited:
    """What a forecaster pays to its worst nature.

    Attributes
    ----------
    label : str
    m : int
    times : tuple of int
    values : tuple of float
        Expected total ECE at each T.
    """

    label: str
    m: int
    times: tuple[int, ...]
    values: tuple[float, ...]


@dataclass(frozen=True)
class Games:
    """What the page of solved games shows.

    Attributes
    ----------
    solved : dict
        m → `Solution` of the longest game, with the values of all shorter ones.
    exploited : list of Exploited
    """

    solved: dict[int, Solution]
    exploited: list[Exploited] = field(default_factory=list)

    def value(self, m: int, horizon: int) -> float:
        """V_T on this grid; NaN where it was not solved."""
        values = self.solved[m].values if m in self.solved else None
        return float(values[horizon - 1]) if values is not None and horizon <= len(values) else math.nan

    def best(self, horizon: int) -> tuple[int, float]:
        """The solved grid with the least value at this T, and the value."""
        values = {m: self.value(m, horizon) for m in self.solved}
        m = min((m for m in values if not math.isnan(values[m])), key=lambda m: values[m])
        return m, values[m]

    def settled(self) -> int:
        """The last T at which all grids are solved and another than the finest is the best."""
        times = [t for t in range(1, self._common() + 1) if self.best(t)[0] < max(self.solved)]
        return max(times, default=1)

    def _common(self) -> int:
        return min(len(solution.values) for solution in self.solved.values() if solution.values is not None)

    def growth(self, first: int, last: int) -> float:
        """The slope of the lower envelope between two T, on logarithmic axes."""
        low, high = self.best(first)[1], self.best(last)[1]
        return math.log(high / low) / math.log(last / first)


def games(
    lengths: Mapping[int, int] = LENGTHS,
    rules: Mapping[int, Mapping[Callable[[int], Forecaster], int]] = RULES,
    *,
    progress: bool | None = None,
) -> Games:
    """Solves the games of the page.

    Parameters
    ----------
    lengths : mapping
        m → the longest T.
    rules : mapping
        m → what makes a forecaster on that grid → its longest T.
    progress : bool, optional
        As for `onlinecal.play`.

    Raises
    ------
    InvalidParameter
        No grid, or a forecaster on a grid that is not solved.
    """
    if not lengths or not set(rules) <= set(lengths):
        raise InvalidParameter(
            f"lengths for m in {sorted(lengths)} and rules for {sorted(rules)}; expected the same grids"
        )
    found = Games({m: solve(m, horizon, progress=progress) for m, horizon in lengths.items()})
    for m, makers in rules.items():
        for make, longest in makers.items():
            times = tuple(t for t in TIMES if t <= min(longest, lengths[m]))
            values = tuple(exploit(make(m), t, progress=progress).value for t in times)
            found.exploited.append(Exploited(strategy_label(make(m)), m, times, values))
    return found


def page(found: Games, pictures: Sequence[tuple[str, str]], command: str) -> str:
    """The page as Markdown: what is solved, tables, and pictures (file, words)."""
    grids = sorted(found.solved)
    longest = max(len(s.values) for s in found.solved.values() if s.values is not None)
    times = [t for t in ROWS if t <= longest]
    last = found.settled()
    error = max(solution.error for solution in found.solved.values())
    lines = [
        "# Exact values of the calibration game",
        "",
        "Forecasts are on 0, 1/m, …, 1. In each of T rounds the forecaster states a law, nature, who sees it, chooses",
        "the outcome, a forecast is drawn from the law, and both see it. In the end the forecaster pays T·ECE. V_T(m)",
        "is what it pays in expectation if both play optimally; with both choosing at once it is the same. Each value",
        f"is exact up to rounding, which is at most {error:.1e}. Made by",
        "",
        "```sh",
        command,
        "```",
        "",
        "## Values",
        "",
        "Bold: the best of the grids that are solved for this T. A dash: not solved for this page.",
        "",
        "| T | " + " | ".join(f"m = {m}" for m in grids) + " |",
        "|---:|" + "---:|" * len(grids),
    ]
    for t in times:
        best = found.best(t)[1]
        # Games on several grids may be worth the same.
        cells = [_cell(found.value(m, t), best) for m in grids]
        lines.append(f"| {t} | " + " | ".join(cells) + " |")
    first = max(1, last // 4)
    lines += [
        "",
        *_figure(pictures[0]),
        f"The least of all grids of at most {max(grids)} steps grows like T^{found.growth(first, last):.2f} from",
        f"T = {first} to {last} (best known for T → ∞: between T^0.54 and T^0.67).",
        "",
        *_figure(pictures[1]),
        "## Exploitability",
        "",
        "What a forecaster pays to the nature that is worst for it, T·ECE in expectation, and (in brackets) by how",
        "much that is more than V_T(m), its *exploitability*.",
        "",
    ]
    for m in sorted({each.m for each in found.exploited}):
        mine = [each for each in found.exploited if each.m == m]
        shown = sorted({t for each in mine for t in each.times})
        lines += [
            f"| m = {m} | " + " | ".join(f"T = {t}" for t in shown) + " |",
            "|---|" + "---:|" * len(shown),
            "| *minimax* | " + " | ".join(f"{found.value(m, t):.3f}" for t in shown) + " |",
        ]
        for each in mine:
            paid = dict(zip(each.times, each.values, strict=True))
            row = [f"{paid[t]:.3f} ({paid[t] - found.value(m, t):.3f})" if t in paid else "–" for t in shown]
            lines.append(f"| {each.label} | " + " | ".join(row) + " |")
        lines.append("")
    return "\n".join([*lines, *_figure(pictures[2]), *measure_section()]).rstrip() + "\n"


#: the measures of the biases whose games are compared, and the T at which they are, with m = 2
MEASURES = ("ece", "smooth_ce", "kernel_ce", "cutoff_ce", "step_ce")
MEASURE_TIMES = (4, 8, 12)


def measure_section(times: Sequence[int] = MEASURE_TIMES) -> list[str]:
    """What forecasters on m = 2 pay in other measures of the biases, as Markdown."""
    lines = [
        "## Other measures",
        "",
        "m = 2: what a forecaster pays to the nature that is worst for it in this very measure, T·μ in expectation,",
        "and (in brackets) by how much that is more than the value of the game of this measure.",
        "",
        "| T | forecaster | " + " | ".join(MEASURES) + " |",
        "|---:|---|" + "---:|" * len(MEASURES),
    ]
    for t in times:
        values = [solve(2, t, measure, progress=False).value for measure in MEASURES]
        lines.append(f"| {t} | *minimax* | " + " | ".join(f"{value:.3f}" for value in values) + " |")
        for make in RULES[2]:
            paid = [exploit(make(2), t, measure, progress=False).value for measure in MEASURES]
            row = [f"{own:.3f} ({own - value:.3f})" for own, value in zip(paid, values, strict=True)]
            lines.append(f"| {t} | {strategy_label(make(2))} | " + " | ".join(row) + " |")
    return [*lines, ""]


#: rounds of the columns of the table of signs
SIGN_ROUNDS = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 20)


def sign_table(cells: int = 10) -> str:
    """The values of the sign preservation game, by cells and rounds, as Markdown; last without reuse."""
    lines = [
        "| n | " + " | ".join(f"{s} rounds" if s > 1 else "1 round" for s in SIGN_ROUNDS) + " | no reuse |",
        "|---:|" + "---:|" * (len(SIGN_ROUNDS) + 1),
    ]
    for n in range(1, cells + 1):
        values = sign_preservation(n, max(SIGN_ROUNDS)).values
        once = sign_preservation(n, n, reuse=False).value
        lines.append(f"| {n} | " + " | ".join(str(values[s]) for s in SIGN_ROUNDS) + f" | {once} |")
    return "\n".join(lines)


def _cell(value: float, best: float) -> str:
    if math.isnan(value):
        return "–"
    return f"**{value:.6f}**" if value <= best + 1e-9 else f"{value:.6f}"


def _figure(picture: tuple[str, str]) -> list[str]:
    file, words = picture
    return [f"![{words}]({file})", "", words, ""]
