"""The cells that workers are sent: code of plug-ins by value, and versions that must be the same."""

import pickle
import random
import subprocess
import sys

import numpy as np
import pytest

import onlinecal as oc
from onlinecal.core.errors import WorkerError
from onlinecal.core.progress import Progress
from onlinecal.scenario import load
from onlinecal.study import play_batch, play_cells
from onlinecal.study.executors.kit import packed, unfit, versions
from onlinecal.study.executors.processes import Processes
from onlinecal.study.executors.units import units
from tests.results import N, cells


def test_a_worker_with_other_versions_is_refused_by_name(monkeypatch):
    ours = versions()
    assert set(ours) == {"python", "onlinecal", "numpy", "numba", "scipy", "source of onlinecal"}
    for name in ours:
        said = unfit({**ours, name: "0.0"}, ours)
        assert said.startswith("onlinecal" if "source" in name else f"{name} 0.0, here it is {ours[name]}")
    assert unfit(ours, ours) == ""
    monkeypatch.setattr("onlinecal.study.executors.kit.versions", lambda: {**ours, "numpy": "0.1"})
    with pytest.raises(
        WorkerError, match=f"a worker has numpy {np.__version__}, here it is 0.1; install the same"
    ):
        list(play_cells(cells(), Progress(1), Processes(1, alone=0)))


PLAYS = """
import pickle, sys
from onlinecal.study.executors.kit import opened
from onlinecal.study import play_batch
kit, units = pickle.load(open(sys.argv[1], "rb"))
cells = opened(*kit)
batches = [play_batch(cells[unit.cell], range(unit.first, unit.last)) for unit in units]
pickle.dump(batches, open(sys.argv[2], "wb"))
"""


def test_plug_ins_are_sent_with_their_text(tmp_path, monkeypatch):
    """To a machine where their files do not lie: modules, a package, modules that they import; parameters that are
    objects of theirs are told apart as here, since the randomness of a player hangs on them.
    """
    mark = f"p{random.randrange(10**9)}"
    (tmp_path / mark).mkdir()
    (tmp_path / mark / "__init__.py").write_text("")
    (tmp_path / mark / "deep.py").write_text("class Rate:\n    def __init__(self, r): self.r = r\n")
    (tmp_path / f"{mark}_own.py").write_text(
        f"from {mark}.deep import Rate\nimport {mark}_late as {mark}_deep\n"
        "class Own:\n"
        "    def __init__(self, rate=Rate(0.25)): self.rate = rate\n"
        f"    def forecast(self): return {{self.rate.r: 0.5, {mark}_deep.high(0): 0.5}}\n"
        "    def update(self, forecast, outcome): pass\n"
        "def measure(gamma): return gamma.predictions.max()\n"
    )
    (tmp_path / f"{mark}_late.py").write_text(
        "from numba import njit\nHIGH = 0.75\n@njit\ndef high(i): return HIGH + twice(i)\n"
        "@njit\ndef twice(i): return 2 * i\n"
    )
    (tmp_path / "s.toml").write_text(
        f'runs = 3\nhorizons = [20, 40]\nmeasures = ["ece", "{mark}_own:measure"]\nnatures = ["drift"]\n'
        f'[[forecasters]]\nname = "{mark}_own:Own"\n'
    )
    monkeypatch.setattr(sys, "path", list(sys.path))
    own = list(load(tmp_path / "s.toml").cells)
    maker = sys.modules[f"{mark}_own"]
    given = oc.forecasters.base.as_forecaster(maker.Own, {"rate": sys.modules[f"{mark}.deep"].Rate(0.125)})
    planned = own + list(cells(forecasters=[(given, "given")], natures=[N.Bernoulli(0.5)]))
    kit = packed(planned)
    cut = list(units(planned, 2))
    here = [play_batch(planned[unit.cell], range(unit.first, unit.last)) for unit in cut]
    for file in sorted(tmp_path.rglob("*.py")):
        file.unlink()
    (tmp_path / "in").write_bytes(pickle.dumps((kit, cut)))
    # What lies there under the name is not what is played.
    (tmp_path / f"{mark}_late.py").write_text("HIGH = 0.9\n")
    subprocess.run([sys.executable, "-c", PLAYS, "in", "out"], cwd=tmp_path, check=True)
    there = pickle.loads((tmp_path / "out").read_bytes())
    for a, b in zip(here, there, strict=True):
        assert a.totals.keys() == b.totals.keys()
        assert all((a.totals[column] == b.totals[column]).all() for column in a.totals)


SCRIPT = """
import onlinecal as oc
from dataclasses import dataclass
from onlinecal.forecasters import Forecaster
from onlinecal.rounds.players import CompiledForecaster
from onlinecal.rounds.steps import Memory, floats, law, law_values, law_weights, learn
from onlinecal.study.executors import processes
processes.ALONE = 0

@law
def say(run, number):
    law_values(run)[0], law_weights(run)[0] = floats(run)[0], 1.0
    return 1

@learn
def follow(run, number, size, drawn, outcome):
    floats(run)[0] += 0.1 * (outcome - floats(run)[0])
    return 0

@dataclass(frozen=True)
class Smoothing(Forecaster):
    def start(self, horizon, stream):
        return CompiledForecaster(say, follow, Memory(floats=[0.5]), size=1)

class Plain:
    def forecast(self): return FORECAST
    def update(self, forecast, outcome): pass
FORECAST = 0.3

print("begun")
asked = dict(horizon=[50, 100], runs=2, measures=["ece", lambda gamma: gamma.weight])
one, two = (oc.play([Smoothing(), Plain], "drift", **asked, jobs=jobs) for jobs in (None, 2))
print(one.cells == two.cells, [cell.loop for cell in two.cells])
"""


@pytest.mark.slow
def test_a_script_without_a_guard_sends_what_it_defines(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert (done.stderr, done.stdout) == ("", "begun\nTrue ['compiled', 'compiled', 'python', 'python']\n")
