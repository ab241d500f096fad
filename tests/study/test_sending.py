"""Cells that are sent to others: plug-ins with their text, versions that have to be the same, unguarded scripts."""

import importlib
import io
import pickle
import random
import subprocess
import sys
from contextlib import ExitStack

import pytest

import onlinecal as oc
from onlinecal.core.errors import InvalidParameter, WorkerError
from onlinecal.scenario import load
from onlinecal.study import play_batch
from onlinecal.study.executors import Processes, units
from onlinecal.study.sending import _Pickler, opened, packed, versions
from tests.results import N, cells
from tests.study.test_executors import closes, made, results, small


def test_what_cannot_be_sent_is_refused():
    said = r"'Closes' cannot be sent to other processes: TypeError: .*generator"
    with pytest.raises(InvalidParameter, match=said):
        results(small([made(closes())]), Processes(2))


def test_a_worker_with_other_versions_is_refused_by_name(monkeypatch):
    ours, blob = versions(), packed(cells())
    assert set(ours) == {"Python", "onlinecal", "numpy", "numba", "scipy", "the source of onlinecal"}
    for name in ours:
        monkeypatch.setattr("onlinecal.study.sending.versions", lambda name=name: {**ours, name: "0.1"})
        opened.cache_clear()
        with pytest.raises(
            WorkerError, match=f"a worker has {name} 0.1, and not {ours[name]}; install the same"
        ):
            opened(blob)


PLAYS = """
import pickle, sys
from onlinecal.study.sending import _Pickler, opened
from onlinecal.study import play_batch
blob, units = pickle.load(open(sys.argv[1], "rb"))
cells = opened(blob)
batches = [play_batch(cells[unit.cell], range(unit.first, unit.last)) for unit in units]
pickle.dump(batches, open(sys.argv[2], "wb"))
"""


def test_plug_ins_are_sent_with_their_text(tmp_path, monkeypatch):
    """To a machine where their files do not lie: modules, a package, modules that they import. Parameters that are
    objects of theirs are told apart as here, since the randomness of a player depends on them.
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
    given = made(sys.modules[f"{mark}_own"].Own, {"rate": sys.modules[f"{mark}.deep"].Rate(0.125)})
    planned = own + list(cells(forecasters=[(given, "given")], natures=[N.Bernoulli(0.5)]))
    blob, cut = packed(planned), units(planned, 2)
    here = [play_batch(planned[unit.cell], range(unit.first, unit.last)) for unit in cut]
    for file in sorted(tmp_path.rglob("*.py")):
        file.unlink()
    (tmp_path / "in").write_bytes(pickle.dumps((blob, cut)))
    # The file that lies there under the name is not played.
    (tmp_path / f"{mark}_late.py").write_text("HIGH = 0.9\n")
    subprocess.run([sys.executable, "-c", PLAYS, "in", "out"], cwd=tmp_path, check=True)
    for a, b in zip(here, pickle.loads((tmp_path / "out").read_bytes()), strict=True):
        assert a.totals.keys() == b.totals.keys()
        assert all((a.totals[column] == b.totals[column]).all() for column in a.totals)


def test_the_text_of_a_compiled_method_goes_with_its_code():
    """A worker cannot read the file, and takes no text of other code."""

    @oc.compiled
    class Compiled:
        def __init__(self):
            self.mean = 0.5

        def forecast(self):
            return self.mean

        def update(self, forecast, outcome):
            self.mean += 0.1 * (outcome - self.mean)

    file = io.BytesIO()
    with ExitStack() as afterwards:
        _Pickler(file, afterwards).dump(Compiled.update)
    update = pickle.loads(file.getvalue())
    text, _, code = update.oc_source
    assert update is not Compiled.update
    assert code is update.__code__
    assert text.endswith("self.mean += 0.1 * (outcome - self.mean)\n")


STEPS = """
import onlinecal as oc
from dataclasses import dataclass
from onlinecal.forecasters import Forecaster
from onlinecal.engine.steps import Forecaster as Player, kernel, law, state

@kernel
def nearer(mean, outcome):
    return mean + 0.1 * (outcome - mean)

def say(run, number):
    values, weights = law(run)
    values[0], weights[0] = state(run)[0], 1.0
    return 1

def follow(run, place, forecast, outcome, number):
    state(run)[0] = nearer(state(run)[0], outcome)
    return 0

@dataclass(frozen=True)
class Smoothing(Forecaster):
    def start(self, horizon, stream):
        return Player(say, follow, [0.5])

@oc.compiled
class Follows:
    def __init__(self): self.mean = 0.5
    def forecast(self): return self.mean
    def update(self, forecast, outcome): self.mean += 0.1 * (outcome - self.mean)
"""


def test_machine_code_that_is_kept_of_a_module_that_is_not_found(tmp_path, monkeypatch):
    """As on a worker that shares a file system with what has played the same before."""
    mark = f"p{random.randrange(10**9)}"
    (tmp_path / f"{mark}.py").write_text(STEPS)
    monkeypatch.syspath_prepend(tmp_path)
    own = importlib.import_module(mark)
    planned = small([own.Smoothing(), made(own.Follows)])
    blob, cut = packed(planned), units(planned)
    here = [play_batch(planned[unit.cell], range(unit.first, unit.last)) for unit in cut]
    (elsewhere := tmp_path / "elsewhere").mkdir()
    (elsewhere / "in").write_bytes(pickle.dumps((blob, cut)))
    subprocess.run([sys.executable, "-c", PLAYS, "in", "out"], cwd=elsewhere, check=True)
    for a, b in zip(here, pickle.loads((elsewhere / "out").read_bytes()), strict=True):
        assert all((a.totals[column] == b.totals[column]).all() for column in a.totals)


SCRIPT = f"""
{STEPS}
class Plain:
    def forecast(self): return FORECAST
    def update(self, forecast, outcome): pass
FORECAST = 0.3

print("begun")
asked = dict(horizon=[50, 100], runs=2, progress=False, measures=["ece", lambda gamma: gamma.weight])
one, two = (oc.play([Smoothing(), Follows, Plain], "drift", **asked, jobs=jobs) for jobs in (None, 2))
print(one.cells == two.cells, [cell.loop for cell in two.cells])
"""


@pytest.mark.slow
def test_a_script_without_a_guard_sends_what_it_defines(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    options = {"capture_output": True, "text": True, "timeout": 120}
    done = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, **options)
    assert (done.stderr, done.stdout) == (
        "",
        "begun\nTrue ['compiled', 'compiled', 'compiled', 'compiled', 'python', 'python']\n",
    )
