"""How much faster two processes are than one; never asserted: `pytest tests/benchmarks/test_executors.py -s` prints it.

With ``ONLINECAL_LENGTH=N`` in the environment (default 10), about N seconds are played by one process, and up to four
times that on slow machines; times are of the whole command, its start included.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

#: about a second of one process for each unit of length; all loops
SCENARIO = """
runs = 32
horizons = [{horizons}]
measures = ["ece", "cdl"]
natures = ["contrarian", "drift"]
[[forecasters]]
name = "forecast_hedging"
[[forecasters]]
name = "cdl_minimiser"
[[forecasters]]
name = "blum_mansour"
"""


def measured(folder, *options):
    before, began = os.times(), time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "onlinecal", "run", "s.toml", "--overwrite", *options], cwd=folder, check=True,
        capture_output=True,
    )  # fmt: skip
    wall, after = time.perf_counter() - began, os.times()
    return wall, after.children_user + after.children_system - before.children_user - before.children_system


@pytest.mark.parametrize("name", ["long", "quickstart"])
def test_one_and_two_processes(tmp_path, name):
    length = int(os.environ.get("ONLINECAL_LENGTH", "10"))
    text = SCENARIO.format(horizons=", ".join(str(60_000 * length + i) for i in range(6)))
    if name == "quickstart":
        text = Path("scenarios/quickstart.toml").read_text()
    (tmp_path / "s.toml").write_text(text)
    measured(tmp_path, "--jobs", "1")  # compiles
    found = {jobs: measured(tmp_path, "--jobs", str(jobs)) for jobs in (1, 2)}
    for jobs, (wall, work) in found.items():
        print(f"{name}, jobs {jobs}: {wall:.1f} s, {work:.1f} s of all processors")
    print(f"{name}: {found[1][0] / found[2][0]:.2f} times as fast")
