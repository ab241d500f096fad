"""Results files as users meet them: edits between runs, and a disk that is read-only."""

import os
import shutil
import subprocess
import sys

import pytest

import onlinecal as oc
from onlinecal.study.store import Store
from tests.command_line import onlinecal
from tests.pages import ROOT
from tests.results import equal, read

SCENARIO = """
runs = 2
horizons = [20, 40]
measures = ["ece", "gauges:bias"]
tasks = [{ name = "mine", payoffs = [[1.0, 0.0], [0.2, 0.9]] }]
natures = ["drift"]
[[forecasters]]
name = "own:Same"
[[forecasters]]
name = "constant"
"""
OWN = """
import helper
class Same:
    def forecast(self): return helper.P
    def update(self, forecast, outcome): pass
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)  # as users have it
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    (tmp_path / "s.toml").write_text(SCENARIO)
    (tmp_path / "own.py").write_text(OWN)
    (tmp_path / "gauges.py").write_text("def bias(gamma):\n    return float(gamma.residuals.sum())\n")
    (tmp_path / "helper.py").write_text("P = 0.5 \n")
    return tmp_path


def edit(file, old, new):
    """Edits a file but keeps its time: the time by which Python knows compiled code is of whole seconds."""
    text, before = file.read_text(), file.stat()
    assert old in text
    file.write_text(text.replace(old, new))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


def runs(path):
    """Keys of what is in the file → how many runs, and the seconds that they took."""
    with Store.open(path) as store:
        return {key: (count, store.numbers(key).seconds) for key, count in store.runs().items()}


# ---------------------------------------------------------------- edits


def test_what_was_edited_is_played_anew_and_nothing_else(folder):
    results = folder / "results" / "s.db"
    onlinecal("run", "s.toml", cwd=folder)

    def again(rc=0):
        return onlinecal("run", "s.toml", "--resume", cwd=folder, rc=rc).stderr

    assert again() == ""
    # A module beside the plug-in; to the same length, so that Python would take it for what it was.
    edit(folder / "helper.py", "P = 0.5 ", "P = 0.25")
    before = runs(results).keys()
    why = "forecaster: source of helper"
    assert (
        again()
        == f"note: played again, as the scenario or what it names has changed ({why}): 2 finished cells\n"
    )
    assert len(runs(results).keys() & before) == 2
    as_written = oc.play(oc.forecasters.Constant(0.25), "drift", horizon=[20, 40], runs=2, measures="ece")
    assert (read(results).curve("ece", "Same").totals == as_written.curve("ece").totals).all()
    # A label is not content; two labels share what was played.
    edit(folder / "s.toml", '"constant"', '"constant"\nlabel = "half"\n[[forecasters]]\nname = "constant"')
    assert again() == ""
    assert read(results).forecasters == ["Same", "half", "constant"]
    # All that is measured is computed from the level sets that are kept: nothing is played.
    for file, old, new, why in (
        ("gauges.py", "residuals.sum()", "residuals.sum() * 2", "bias"),
        (
            "s.toml",
            "[0.2, 0.9]",
            "[0.2, 0.8]",
            "payoff[mine], external_regret[mine], action_swap_regret[mine], and 1 more",
        ),
    ):
        edit(folder / file, old, new)
        before = runs(results)
        assert again() == (
            f"note: measured again, as the scenario or what it names has changed ({why}): 6 finished cells\n"
        )
        assert runs(results) == before
    onlinecal("run s.toml -o fresh.db", cwd=folder)
    assert equal(read(results), read(folder / "fresh.db"))


# ---------------------------------------------------------------- disks


#: all commands in one process
SCRIPT = """
import subprocess
from tests.command_line import onlinecal
onlinecal("run s.toml -o disk/a.db", cwd=".")
open("disk/empty.db", "w").close()
subprocess.run("mount -o remount,ro disk", shell=True, check=True)
for output in ("a.db", "a.db --resume", "a.db --overwrite", "empty.db --overwrite", "new.db", "sub/new.db"):
    said = onlinecal("run s.toml -o disk/" + output, cwd=".", rc=2).stderr
    assert said.startswith("error: "), said
    assert said.endswith("cannot be written: Read-only file system\\n") and said.count("\\n") == 1, said
assert "Same" in onlinecal("compare disk/a.db --measure ece", cwd=".").stdout
"""


@pytest.mark.slow
def test_a_disk_that_is_read_only(folder):
    """In a name space of its own, in which a small disk is mounted; root or not."""
    (folder / "disk").mkdir()
    (folder / "script").write_text(SCRIPT)

    def space(command):
        return subprocess.run(
            ["unshare", "-rm", "sh", "-c", f"mount -t tmpfs -o size=300k tmpfs disk && {command}"], cwd=folder,
            capture_output=True, text=True, timeout=300, env=os.environ | {"PYTHONPATH": str(ROOT)},
        )  # fmt: skip

    if shutil.which("unshare") is None or space("true").returncode != 0:
        pytest.skip("no name space in which a disk can be mounted")
    done = space(f'exec "{sys.executable}" script')
    assert (done.returncode, done.stderr) == (0, "")
