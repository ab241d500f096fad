"""`measure-again`, `export` and `merge` as users meet them, and what a results file costs."""

import json
import os
import resource
import shutil
import subprocess
import sys

import pandas as pd
import pytest

import onlinecal as oc
from tests.command_line import onlinecal
from tests.results import read

SCENARIO = """
runs = 16
horizons = [200, 400]
measures = ["ece"]
keep = 64
forecasters = ["forecast_hedging", "empirical_mean"]
natures = ["drift", "bernoulli"]
"""


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """A folder in which the scenario has been played."""
    folder = tmp_path_factory.mktemp("played")
    (folder / "s.toml").write_text(SCENARIO)
    (folder / "gauges.py").write_text("def bias(gamma):\n    return float(gamma.residuals.sum())\n")
    onlinecal("run", "s.toml", cwd=folder)
    return folder


@pytest.fixture
def folder(played, tmp_path):
    """The same of the test's own."""
    return shutil.copytree(played, tmp_path / "own")


def test_columns_are_added_without_a_scenario(folder):
    done = onlinecal(
        "measure-again", "results/s.db", "--measure", "cdl", "--measure", "gauges:bias", "--measure", "smooth_ce",
        "--task", '{ name = "v_shaped", t = 0.3 }', cwd=folder,
    )  # fmt: skip
    assert done.stdout == "results/s.db: new columns of 8 cells\n"
    assert done.stderr.splitlines() == [
        f"note: {name!r} is not computed, since their predictions were moved, and nothing is proved of it then: "
        "4 cells, such as 'empirical mean' against 'drift' at T = 200; in a scenario, "
        "`onlinecal run SCENARIO --resume` plays it"
        for name in ("cdl", "bias", "v_shaped(t=0.3)")
    ]
    study = read(folder / "results" / "s.db")
    exact = oc.play(
        "forecast_hedging",
        "drift",
        horizon=[200, 400],
        measures=["cdl"],
        tasks=[{"name": "v_shaped", "t": 0.3}],
    )
    for name in ("cdl", "swap_regret[v_shaped(t=0.3)]"):
        assert (study.curve(name, "forecast hedging", "drift").totals == exact.curve(name).totals).all()
    assert {"smooth_ce", "smooth_ce[lower]", "smooth_ce[upper]", "bias"} <= set(study.measures)
    assert onlinecal("compare", "results/s.db", "--measure", "cdl", cwd=folder).stderr == ""
    for options, said in (
        (("--measure", "ecee"), "error: unknown measure 'ecee'; did you mean 'ece'"),
        (("--measure", "{ name = 3"), "error: --measure { name = 3: "),
        ((), "error: no measures and no tasks; expected at least one of either"),
    ):
        done = onlinecal("measure-again", "results/s.db", *options, cwd=folder, rc=2)
        assert done.stderr.startswith(said)
        assert done.stderr.count("\n") == 1


def test_export_and_merge(folder):
    assert onlinecal("export", "results/s.db", "-o", "t.csv", cwd=folder).stdout == "wrote t.csv: 128 rows\n"
    table, study = pd.read_csv(folder / "t.csv"), read(folder / "results" / "s.db")
    assert (table.total == study.table().total).all()
    said = onlinecal("export", "results/s.db", "-o", "t.txt", cwd=folder, rc=2).stderr
    assert said == "error: t.txt: expected a name that ends with .csv or .parquet\n"
    (folder / "o.toml").write_text(SCENARIO.replace('"drift", "bernoulli"', '"sawtooth"'))
    onlinecal("run", "o.toml", cwd=folder)
    done = onlinecal("merge", "results/s.db", "results/o.db", "-o", "m.db", cwd=folder)
    assert done.stdout == "results: m.db\n"
    assert done.stderr == "note: results/o.db has another scenario; that of results/s.db is kept\n"
    assert read(folder / "m.db").natures == [*study.natures, "sawtooth"]
    rows = json.loads(onlinecal("compare", "m.db", "--measure", "ece", "--json", cwd=folder).stdout)
    assert len(rows) == 6
    for command in (
        ("results/s.db", "results/o.db", "-o", "m.db"),
        ("results/s.db", "results/o.db", "-o", "results/o.db"),
    ):
        done = onlinecal("merge", *command, cwd=folder, rc=2)
        assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("keep", ["0", "1", '"some"', "2.5", "true"])
def test_a_keep_that_says_nothing_is_refused(folder, keep):
    (folder / "s.toml").write_text(SCENARIO.replace("keep = 64", f"keep = {keep}"))
    said = onlinecal("run", "s.toml", "--resume", cwd=folder, rc=2).stderr
    assert said.startswith("error: s.toml: keep = ")
    assert "expected 'all', 'none', or up to how many levels a Γ is kept exactly" in said


def test_a_file_that_must_not_grow(folder):
    """A limit of the operating system on files: one line, and what was there is there."""
    path = folder / "results" / "s.db"
    before, size = read(path), path.stat().st_size
    done = subprocess.run(
        [sys.executable, "-m", "onlinecal", "measure-again", "results/s.db", "--measure", "scdl"],
        cwd=folder,
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size - 4096, size - 4096)),
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert done.returncode == 2, done
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    assert read(path).cells == before.cells


# ---------------------------------------------------------------- what it costs


def test_a_total_costs_at_most_24_bytes(folder):
    """Everything else in the file counted: labels, bounds, contents, seals."""
    names = [f"{{ name = 'constant', p = {i / 40} }}" for i in range(20)]
    (folder / "t.toml").write_text(
        SCENARIO.replace('"forecast_hedging", "empirical_mean"', ", ".join(names))
        .replace("keep = 64", 'keep = "none"\ntasks = ["umbrella"]')
        .replace("[200, 400]", "[10, 20, 30, 40, 50, 60]")
        .replace('["ece"]', '["ece", "cdl", "brier"]')
    )
    onlinecal("run", "t.toml", cwd=folder)
    path = folder / "results" / "t.db"
    totals = sum(t.size for cell in read(path).cells for t in cell.totals.values())
    assert totals == 20 * 2 * 6 * 16 * 7
    assert path.stat().st_size <= 24 * totals
