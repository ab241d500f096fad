"""How fast games are played: `python -m tests.benchmarks.speed`; with `--write` some rows go into docs/speed.md."""

from __future__ import annotations

import argparse
import datetime
import random
import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import onlinecal as oc
from onlinecal import forecasters as f
from onlinecal import natures as n
from onlinecal.decisions.people import People
from onlinecal.engine.game import Game
from onlinecal.schedules import Constant, Pareto, Poisson, Schedule
from onlinecal.study.panel import Panel
from onlinecal.study.planning import Entry, plan
from onlinecal.study.run import play_cell
from tests.pages import DOCS, rewrite

#: rounds of a game, and of the plain loops; those of one long run
ROUNDS, LONG = 10**5, 2 * 10**6


def plain() -> None:
    """Forecast hedging against the contrarian as one would write it, one run."""
    uniform, m = random.Random(0).random, 47
    bias, counts, ones = ([0] * (m + 1) for _ in range(3))
    for _ in range(ROUNDS):
        low, high = 0, m
        while high - low > 1:
            middle = (low + high) >> 1
            if bias[middle] >= 0:
                low = middle
            else:
                high = middle
        a, b = bias[low], -bias[low + 1]
        share = b / (a + b) if a + b else 0.5
        mean = (low + 1 - share) / m
        i = low if uniform() < share else low + 1
        y = 1 if mean < 0.5 else 0
        bias[i] += m * y - i
        counts[i] += 1
        ones[i] += y


class RunningMean:
    """A forecaster as a user writes it."""

    def __init__(self) -> None:
        self.ones, self.rounds = 0, 0

    def forecast(self) -> float:
        return (self.ones + 1) / (self.rounds + 2)

    def update(self, forecast: float, outcome: int) -> None:
        self.rounds += 1
        self.ones += outcome


def plain_class() -> None:
    """The game of that class against the contrarian, with history, as one would write it."""
    player, uniform, history = RunningMean(), random.Random(0).random, []
    for _ in range(ROUNDS):
        p = player.forecast()
        q = 0.5 if p == 0.5 else float(p < 0.5)
        y = int(uniform() < q)
        history.append((p, y))
        player.update(p, y)


class Row(NamedTuple):
    """The call that is timed, its number of run-rounds, and the loop that is timed in turn with it."""

    play: Callable[[], None]
    rounds: int
    beside: Callable[[], None] = plain


def game(
    forecaster: Any, nature: Any, runs: int = 64, horizon: int = ROUNDS, beside: Any = plain, **options: Any
) -> Row:
    """Playing alone: laws, draws, outcomes, history."""
    return Row(
        lambda: Game(forecaster, nature, horizon=horizon, runs=range(runs), **options).advance(horizon),
        runs * horizon, beside,
    )  # fmt: skip


def study(people: int) -> Row:
    """A game that is read at 33 checkpoints. Decision makers have random tasks and stay for a tenth of it."""
    group = {
        "task": "random", "count": people, "arrivals": {"name": "poisson", "rate": people / ROUNDS},
        "stay": {"name": "geometric", "mean": ROUNDS // 10},
    }  # fmt: skip
    (cell,) = plan(
        [Entry.of(HEDGING)], [Entry.of(CONTRARIAN)], horizons=[ROUNDS], runs=64, seed=0,
        panel=Panel.of(["ece", "cdl"]), schedules=[LATE["schedule"]],
        people=People.of([group] if people else [], 0),
    )  # fmt: skip
    play_cell(replace(cell, horizon=1000, times=(1000,)))
    return Row(lambda: play_cell(cell), 64 * ROUNDS)


def short(runs: int) -> Row:
    """Games of 100 rounds as a user plays them, from the call to totals: planned, played, read by ECE and kept."""
    games = max(1, 20 // runs)  # one game takes a millisecond or two

    def play() -> None:
        for _ in range(games):
            oc.play(HEDGING, CONTRARIAN, horizon=[100], runs=runs, measures=["ece"])

    return Row(play, games * runs * 100)


def by_hand() -> Row:
    """Each question is asked and resolved by a call."""

    def play() -> None:
        played = Game(HEDGING, CONTRARIAN, horizon=ROUNDS // 10, runs=range(1))
        for _ in range(played.horizon):
            played.resolve(played.ask())

    return Row(play, ROUNDS // 10)


HEDGING, PLAIN = f.ForecastHedging(), f.Scalar(RunningMean)
COMPILED = oc.compiled(type("CompiledMean", (RunningMean,), {}))
CONTRARIAN = n.Contrarian()
FOUR = n.GroupContrarian({"odd": 0.5, "first": 0.5, "third": 1 / 3, "rare": 0.02}, {"first": 0.7, "all": 0.3})
LATE = {"schedule": Schedule(delays=Constant(10))}
PARETO = {"schedule": Schedule(Poisson(), Pareto())}
#: what the table calls it → what is played
ROWS: dict[str, Callable[[], Row]] = {
    "forecast hedging vs contrarian": lambda: game(HEDGING, CONTRARIAN),
    "the same, one run, T = 2·10⁶": lambda: game(HEDGING, CONTRARIAN, 1, LONG),
    "the same, 64 runs, two threads": lambda: game(HEDGING, CONTRARIAN, threads=2),
    "the same, with a delay of 10": lambda: game(HEDGING, CONTRARIAN, **LATE),
    "one run with Poisson arrivals and Pareto delays": lambda: game(HEDGING, CONTRARIAN, 1, **PARETO),
    "a study of it, delay 10, 33 checkpoints, two measures": lambda: study(0),
    "that study with 1,000 decision makers who come and go": lambda: study(1000),
    "almost one step ahead vs contrarian": lambda: game(f.AlmostOneStepAhead(), CONTRARIAN),
    "CDL minimiser vs contrarian": lambda: game(f.CDLMinimiser(), CONTRARIAN),
    "Foster–Vohra vs contrarian": lambda: game(f.FosterVohra(), CONTRARIAN),
    "K29*, Laplace, vs fair coin, 16 runs": lambda: game(f.DefensiveForecasting(), n.Bernoulli(), 16),
    "group hedging in four groups, one run": lambda: game(f.GroupHedging(m="T^(1/3)"), FOUR, 1),
    "a user's plain class vs contrarian, one run, beside a plain loop of it": lambda: game(
        PLAIN, CONTRARIAN, 1, beside=plain_class
    ),
    "the same class, compiled": lambda: game(COMPILED, CONTRARIAN, 1, beside=plain_class),
    "questions asked and resolved by hand, one run": by_hand,
    "5,000 games of 100 rounds by `oc.play`, read at the end": lambda: short(5000),
    "one game of 100 rounds by `oc.play`, read at the end": lambda: short(1),
}
#: rows that the page does not have
MORE = {
    "the same, one run, T = 2·10⁶", "one run with Poisson arrivals and Pareto delays",
    "K29*, Laplace, vs fair coin, 16 runs", "group hedging in four groups, one run",
    "5,000 games of 100 rounds by `oc.play`, read at the end",
}  # fmt: skip


def seconds(play: Callable[[], None]) -> float:
    began = time.perf_counter()
    play()
    return time.perf_counter() - began


def rates(row: Row) -> tuple[float, float]:
    """Million run-rounds a second, and how many times those of the loop, over some five seconds, and 5 times or more.

    They are timed in turn, since a machine is not equally fast at all times.
    """
    row.play()  # compiles
    times = min(max(5, int(5.0 / seconds(row.play))), 25)
    beside, taken = zip(*((seconds(row.beside), seconds(row.play)) for _ in range(times)), strict=True)
    ratios = [row.rounds / t * other / ROUNDS for t, other in zip(taken, beside, strict=True)]
    return row.rounds / statistics.median(taken) / 1e6, statistics.median(ratios)


def processor() -> str:
    """Its name, where the system tells it."""
    known = Path("/proc/cpuinfo")
    lines = known.read_text("utf-8").splitlines() if known.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else "unknown processor"


def table(labels: Iterable[str]) -> str:
    """These rows."""
    lines = [
        f"One core of {processor()} unless two threads are named, medians of 5 to 25 times on {datetime.date.today()}.",
        "A plain Python loop was timed before each time, since the machine was not equally fast at all times.",
        "",
        "| game, 64 runs, T = 10⁵ | million run-rounds/s | times plain Python |",
        "| --- | ---: | ---: |",
    ]
    for label in labels:
        row = ROWS[label]()
        rate, ratio = rates(row)
        lines.append(f"| {label} | {_short(rate)} | {_short(ratio)} |")
    return "\n".join(lines)


def _short(x: float) -> str:
    return f"{x:.0f}" if x >= 9.95 else f"{x:.1f}" if x >= 0.95 else f"{x:.2g}"


def main(block: str, make: Callable[[], str], every: Callable[[], str] | None = None) -> None:
    """Prints a table, or every row of it, and with --write puts it into its block of docs/speed.md."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", action="store_true", help="put the table into docs/speed.md")
    write = parser.parse_args().write
    text = make() if write or every is None else every()
    print(text)
    if write:
        rewrite(DOCS / "speed.md", block, text)


if __name__ == "__main__":
    main("games", lambda: table(label for label in ROWS if label not in MORE), lambda: table(ROWS))
