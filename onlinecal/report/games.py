"""Tables of solved games: values, how they grow, and what forecasters pay beyond them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.strategy import strategy_label
from onlinecal.core.words import at_least
from onlinecal.exact.brackets import ValueBracket, value_bracket
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
from onlinecal.report.games_hedging import hedging_section

Floats = NDArray[np.float64]

#: the games of total ECE whose values are listed: the longest by the steps of the grid
LENGTHS = {1: 256, 2: 256, 3: 256, 4: 96, 5: 48, 6: 40, 7: 24, 8: 24}

#: longer games whose values are bracketed: the longest, and the largest bias that is told apart
BRACKETS = {4: (256, 8.0), 5: (64, 3.5)}

#: values that differ by less are the same
TIE = 1e-9

#: T of the rows of the table
ROWS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 18, 20, 24, 32, 40, 48, 64, 96, 128, 192, 256)

#: exploited forecasters, by the steps of the grid: what makes each, and the longest game
RULES: Mapping[int, Mapping[Callable[[int], Forecaster], int]] = {
    2: {
        lambda m: ForecastHedging(m): 32, lambda m: CDLMinimiser(m): 20, lambda m: FosterVohra(m): 20,
        lambda m: AlmostOneStepAhead(m): 32, lambda m: Rounded(EmpiricalMean(), m): 32,
    },
    3: {
        lambda m: ForecastHedging(m): 24, lambda m: CDLMinimiser(m): 16, lambda m: FosterVohra(m): 16,
        lambda m: AlmostOneStepAhead(m): 24, lambda m: Rounded(EmpiricalMean(), m): 24,
    },
    4: {
        lambda m: ForecastHedging(m): 16, lambda m: CDLMinimiser(m): 12, lambda m: FosterVohra(m): 12,
        lambda m: AlmostOneStepAhead(m): 16, lambda m: Rounded(EmpiricalMean(), m): 16,
    },
}  # fmt: skip

#: T of exploited forecasters
TIMES = (1, 2, 4, 6, 8, 12, 16, 20, 24, 32)

#: the games in which forecast hedging is compared with the best: the longest by the steps of the grid, and their T
HEDGED = {1: 256, 2: 128, 3: 32, 4: 32, 5: 20, 6: 20}
HEDGE_TIMES = (1, 2, 4, 8, 12, 16, 20, 32, 64, 128, 256)


#: the measures of the biases whose games are compared, and the T at which they are, by the steps of the grid
MEASURES = ("ece", "smooth_ce", "kernel_ce", "cutoff_ce", "step_ce")
MEASURE_TIMES: Mapping[int, Sequence[int]] = {2: (4, 8, 12), 3: (4, 8, 12), 4: (4, 8, 12)}


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
    brackets : dict
        m → `ValueBracket` of a longer game.
    hedged : dict
        m → `Exploited`: forecast hedging on this grid.
    """

    solved: dict[int, Solution]
    exploited: list[Exploited] = field(default_factory=list)
    brackets: dict[int, ValueBracket] = field(default_factory=dict)
    hedged: dict[int, Exploited] = field(default_factory=dict)

    def value(self, m: int, horizon: int) -> float:
        """V_T on this grid; NaN where it was not solved."""
        values = self.solved[m].values if m in self.solved else None
        return float(values[horizon - 1]) if values is not None and horizon <= len(values) else math.nan

    def bounds(self, m: int, horizon: int) -> tuple[float, float]:
        """Bounds on V_T on this grid, NaN where it was neither solved nor bracketed."""
        value, bracket = self.value(m, horizon), self.brackets.get(m)
        if math.isnan(value) and bracket is not None and horizon <= bracket.horizon:
            return float(bracket.lowers[horizon - 1]), float(bracket.uppers[horizon - 1])
        error = self.solved[m].error
        return value - error, value + error

    def best(self, horizon: int) -> tuple[int, float]:
        """The solved grid with the least value at this T, and the value."""
        values = {m: self.value(m, horizon) for m in self.solved}
        m = min((m for m in values if not math.isnan(values[m])), key=lambda m: values[m])
        return m, values[m]

    def leads(self, m: int, horizon: int) -> bool:
        """Whether no other grid whose value is known or bracketed at this T can have a smaller one."""
        high = self.bounds(m, horizon)[1]
        return not any(self.bounds(other, horizon)[0] < high - TIE for other in self.solved if other != m)

    def longest(self) -> int:
        """The longest T of a game that is solved on some grid."""
        return max(len(s.values) for s in self.solved.values() if s.values is not None)

    def settled(self) -> int:
        """The last T at which all grids are solved and another than the finest is better; 0 where there is none."""
        finest = max(self.solved)
        times = range(1, self.common() + 1)
        return max((t for t in times if self.best(t)[1] < self.value(finest, t) - TIE), default=0)

    def common(self) -> int:
        """The last T at which all grids are solved."""
        return min(len(solution.values) for solution in self.solved.values() if solution.values is not None)

    def growth(self, first: int, last: int) -> float:
        """The slope of the lower envelope between two T, on logarithmic axes."""
        low, high = self.best(first)[1], self.best(last)[1]
        return math.log(high / low) / math.log(last / first)


def games(
    lengths: Mapping[int, int] = LENGTHS,
    rules: Mapping[int, Mapping[Callable[[int], Forecaster], int]] = RULES,
    brackets: Mapping[int, tuple[int, float]] = BRACKETS,
    hedged: Mapping[int, int] = HEDGED,
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
    brackets : mapping
        m → the longest T whose value is bracketed, and the clip.
    hedged : mapping
        m → the longest T in which forecast hedging is compared with the best.
    progress : bool, optional
        As for `onlinecal.play`.

    Raises
    ------
    InvalidParameter
        No grid, or a forecaster on a grid that is not solved.
    """
    if not lengths or not (set(rules) | set(brackets) | set(hedged)) <= set(lengths):
        given = f"{sorted(rules)}, brackets for {sorted(brackets)}, hedging for {sorted(hedged)}"
        raise InvalidParameter(
            f"lengths for m in {sorted(lengths)}; rules for {given}; expected no other grids"
        )
    found = Games(
        {m: solve(m, horizon, progress=progress) for m, horizon in lengths.items()},
        brackets={
            m: value_bracket(m, horizon, clip, progress=progress) for m, (horizon, clip) in brackets.items()
        },
    )
    for m, makers in rules.items():
        for make, longest in makers.items():
            times = tuple(t for t in TIMES if t <= min(longest, lengths[m]))
            found.exploited.append(_exploited(make(m), m, times, progress))
    for m, longest in hedged.items():
        times = tuple(t for t in HEDGE_TIMES if t <= min(longest, lengths[m]))
        found.hedged[m] = _exploited(ForecastHedging(m), m, times, progress)
    return found


def _exploited(forecaster: Forecaster, m: int, times: tuple[int, ...], progress: bool | None) -> Exploited:
    values = tuple(exploit(forecaster, t, progress=progress).value for t in times)
    return Exploited(strategy_label(forecaster), m, times, values)


def page(
    found: Games,
    pictures: Sequence[tuple[str, str]],
    command: str,
    times: Mapping[int, Sequence[int]] = MEASURE_TIMES,
) -> str:
    """The page as Markdown: what is solved, tables, pictures (file, words), and other measures at these T by grid."""
    grids = sorted(found.solved)
    rows = [t for t in ROWS if t <= found.longest()]
    error = max(solution.error for solution in found.solved.values())
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
        "| T | " + " | ".join(f"m = {m}" for m in grids) + " |",
        "|---:|" + "---:|" * len(grids),
    ]
    for t in rows:
        # Games on several grids may be worth the same.
        cells = [_cell(found.bounds(m, t), found.leads(m, t)) for m in grids]
        lines.append(f"| {t} | " + " | ".join(cells) + " |")
    lines += [
        "",
        *_figure(pictures[0]),
        *_growth(found),
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
    lines += _figure(pictures[2])
    return "\n".join([*lines, *hedging_section(found), *measure_section(times)]).rstrip() + "\n"


def _growth(found: Games) -> list[str]:
    """How the least of these grids grows, and until when another one than the finest is better."""
    last, until, finest = found.common(), found.settled(), max(found.solved)
    first, lines = max(1, last // 4), []
    if first < last:
        lines = [
            f"The least of these grids grows like T^{found.growth(first, last):.2f} from T = {first} to {last} (best",
            "known for T → ∞: between T^0.54 and T^0.67).",
        ]
    if len(found.solved) == 1:
        return [*lines, "Other grids may pay less."]
    if until == last:
        return [*lines, f"At T = {last} another grid is better than the finest, m = {finest}."]
    if not until:
        return [
            *lines,
            f"Up to T = {last} no grid is better than the finest, m = {finest}, and finer ones may pay less.",
        ]
    span = f"from T = {until + 1} to {last}" if until + 1 < last else f"at T = {last}"
    return [
        *lines,
        f"Another grid is better than the finest, m = {finest}, at T = {until} for the last time; {span} none is, and "
        "finer ones may pay less.",
    ]


def measure_section(times: Mapping[int, Sequence[int]]) -> list[str]:
    """What forecasters pay in other measures of the biases, as Markdown."""
    lines = [
        "## Other measures",
        "",
        "What a forecaster pays to the nature that is worst for it in this very measure, T·μ in expectation, and (in",
        "brackets) by how much that is more than the value of the game of this measure.",
        "",
    ]
    for m, own in times.items():
        lines += [
            f"| T | m = {m} | " + " | ".join(MEASURES) + " |",
            "|---:|---|" + "---:|" * len(MEASURES),
        ]
        for t in own:
            values, paid = in_measures(m, t)
            lines.append(f"| {t} | *minimax* | " + " | ".join(f"{value:.3f}" for value in values) + " |")
            for label, each in paid.items():
                row = [f"{one:.3f} ({one - value:.3f})" for one, value in zip(each, values, strict=True)]
                lines.append(f"| {t} | {label} | " + " | ".join(row) + " |")
        lines += ["", _who_pays_least(m, own[-1], paid), ""]
    return lines


def in_measures(m: int, horizon: int) -> tuple[list[float], dict[str, list[float]]]:
    """Values of the games of `MEASURES`, and what each forecaster pays to its worst nature in each of them."""
    values = [solve(m, horizon, measure, progress=False).value for measure in MEASURES]
    paid = {
        strategy_label(make(m)): [
            exploit(make(m), horizon, measure, progress=False).value for measure in MEASURES
        ]
        for make in RULES[m]
    }
    return values, paid


def _who_pays_least(m: int, horizon: int, paid: Mapping[str, Sequence[float]]) -> str:
    """Of these forecasters, in each measure."""
    least: dict[str, list[str]] = {}
    for k, measure in enumerate(MEASURES):
        lowest = min(each[k] for each in paid.values())
        names = [label for label, each in paid.items() if each[k] <= lowest + TIE]
        least.setdefault(" and ".join(names), []).append(measure)
    said = "; ".join(f"{names} in {', '.join(measures)}" for names, measures in least.items())
    return f"Of these, with m = {m} and T = {horizon} the least is paid by {said}."


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


def _cell(bounds: tuple[float, float], leads: bool) -> str:
    text = certain(*bounds)
    return text if text == "–" or not leads else f"**{text}**"


def certain(low: float, high: float) -> str:
    """The number with the most decimals, at most six, to which both round; a dash where that is none."""
    for decimals in range(6, 0, -1):
        text = f"{low:.{decimals}f}"
        if not math.isnan(low) and text == f"{high:.{decimals}f}":
            return text
    return "–"


def _figure(picture: tuple[str, str]) -> list[str]:
    file, words = picture
    return [f"![{words}]({file})", "", words, ""]
