"""The table of how fast games are played: `python -m tests.benchmarks.speed --write` puts it into docs/speed.md.

Plays the benchmarks of `tests/benchmarks/test_engine.py` that the table names, in one run.
"""

from __future__ import annotations

import argparse
import datetime
import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.benchmarks.test_engine import RATE, RATIO
from tests.readme import ROOT, rewrite

FILE = "tests/benchmarks/test_engine.py"
PLAIN = "test_plain_python"

#: what the table calls it → the benchmark
ROWS = {
    "forecast hedging vs contrarian": "test_play[forecast_hedging vs contrarian]",
    "the same, one run, T = 2·10⁶": "test_runs[forecast_hedging vs contrarian-1]",
    "the same, 256 runs": "test_runs[forecast_hedging vs contrarian-256]",
    "the same, 64 runs, two threads": "test_threads[forecast_hedging vs contrarian-2]",
    "the same, 2,000 runs of 256 rounds": "test_many_short_runs",
    "the same, with a delay of 10": "test_delays[delay 10-64]",
    "one run with a delay of 10, T = 10⁶": "test_delays[delay 10-1]",
    "one run with Poisson arrivals and Pareto delays, T = 10⁶": "test_delays[poisson, pareto-1]",
    "one run with copies for open questions (`delayed`), delay 10": "test_shared_out[delayed]",
    "one run with two streams, delay 10": "test_shared_out[streams]",
    "one run with a copy for each of two streams (`separate`), delay 10": "test_shared_out[separate]",
    "the same, delay and 33 checkpoints with two measures, in a study": "test_decision_makers[0]",
    "and with 1,000 decision makers who come and go": "test_decision_makers[1000]",
    "forecast hedging vs drift": "test_play[forecast_hedging vs drift]",
    "forecast hedging vs greedy": "test_runs[forecast_hedging vs greedy-64]",
    "almost one step ahead vs contrarian": "test_play[almost_one_step_ahead vs contrarian]",
    "CDL minimiser vs contrarian": "test_play[cdl_minimiser vs contrarian]",
    "CDL minimiser vs greedy": "test_runs[cdl_minimiser vs greedy-64]",
    "the same, two threads": "test_threads[cdl_minimiser vs greedy-2]",
    "CDL minimiser vs greedy, one run, T = 2·10⁶": "test_runs[cdl_minimiser vs greedy-1]",
    "step CE minimiser vs contrarian": "test_play[step_ce_minimiser vs contrarian]",
    "Foster–Vohra vs contrarian": "test_play[foster_vohra vs contrarian0]",
    "Foster–Vohra, all pairs, vs contrarian": "test_play[foster_vohra vs contrarian1]",
    "Blum–Mansour vs contrarian": "test_play[blum_mansour vs contrarian]",
    "Blum–Mansour vs drift": "test_play[blum_mansour vs drift]",
    "empirical mean vs contrarian": "test_play[empirical_mean vs contrarian]",
    "perturbed leader vs fair coin": "test_play[perturbed_leader vs bernoulli]",
    "threshold hedging vs fair coin": "test_play[threshold_hedging vs bernoulli]",
    "threshold hedging vs contrarian": "test_play[threshold_hedging vs contrarian]",
    "expert mixture of two vs fair coin": "test_play[expert_mixture vs bernoulli]",
    "K29*, Laplace, vs fair coin, 16 runs": "test_defensive[100000]",
    "the same, T = 10⁶": "test_defensive[1000000]",
    "a user's plain class vs contrarian, one run, beside a plain loop of it": "test_plain_class[1]",
    "the same, 16 runs": "test_plain_class[16]",
    "a compiled loop written for the first game alone, one run": "test_fused",
    "a plain Python loop of the first, one run": PLAIN,
}


#: benchmark → million run-rounds a second, and how many times those of the plain loop
Rates = Mapping[str, tuple[float, float]]


def measured() -> tuple[str, Rates]:
    """The processor, and what was measured."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "speed.json"
        tests = [f"{FILE}::{name}" for name in ROWS.values()]
        command = [sys.executable, "-m", "pytest", "-n", "0", "-q", f"--benchmark-json={path}", *tests]
        subprocess.run(command, cwd=ROOT, check=True, stdout=sys.stderr)
        said = json.loads(path.read_text("utf-8"))
    rates = {
        one["name"]: (one["extra_info"][RATE], one["extra_info"].get(RATIO, 1.0))
        for one in said["benchmarks"]
    }
    return said["machine_info"]["cpu"].get("brand_raw", "unknown processor"), rates


def table(processor: str, rates: Rates, day: datetime.date) -> str:
    """What stands in docs/speed.md."""
    lines = [
        f"One core of {processor} unless two threads are named, medians of 5 to 25 times on {day}.",
        "A plain Python loop was timed before each time, since the machine was not equally fast at all times.",
        "",
        "| game, 64 runs, T = 10⁵ | million run-rounds/s | times plain Python |",
        "| --- | ---: | ---: |",
    ]
    for label, name in ROWS.items():
        rate, ratio = rates[name]
        lines.append(f"| {label} | {_short(rate)} | {'1' if name == PLAIN else _short(ratio)} |")
    return "\n".join(lines)


def _short(x: float) -> str:
    return f"{x:.0f}" if x >= 9.95 else f"{x:.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="put the table into docs/speed.md")
    write = parser.parse_args().write
    text = table(*measured(), datetime.date.today())
    print(text)
    if write:
        rewrite("games", text)


if __name__ == "__main__":
    main()
