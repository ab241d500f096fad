"""Results files as users meet them: edits between runs, two processes, kills, full disks, odd terminals."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

import onlinecal as oc
from onlinecal.study.store import Store
from tests.command_line import onlinecal, process
from tests.readme import ROOT
from tests.results import equal, read

SCENARIO = """
runs = 2
horizons = [20, 40]
measures = ["ece", "own:bias"]
tasks = [{ name = "mine", payoffs = [[1.0, 0.0], [0.2, 0.9]] }]
[[forecasters]]
name = "own:Same"
[[forecasters]]
name = "constant"
[[natures]]
name = "drift"
"""
OWN = """
import helper
class Same:
    def forecast(self): return helper.P
    def update(self, forecast, outcome): pass
"""
MEASURES = """
def bias(gamma):
    return float(gamma.residuals.sum())
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)  # as users have it
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    (tmp_path / "s.toml").write_text(SCENARIO.replace("own:bias", "gauges:bias"))
    (tmp_path / "own.py").write_text(OWN)
    (tmp_path / "gauges.py").write_text(MEASURES)
    (tmp_path / "helper.py").write_text("P = 0.5\n")
    return tmp_path


def edit(file, old, new):
    """At no time: to the clock by which Python tells what it has compiled, an edit within a second is none."""
    text, before = file.read_text(), file.stat()
    assert old in text
    file.write_text(text.replace(old, new))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


def fresh(folder, name="fresh.db"):
    """What the scenario gives in a file that holds nothing else."""
    onlinecal("run", "s.toml", "-o", name, "--overwrite", cwd=folder)
    return read(folder / name)


# ---------------------------------------------------------------- edits


def test_what_was_edited_is_played_anew_and_nothing_else(folder):
    results = folder / "results" / "s.db"
    onlinecal("run", "s.toml", cwd=folder)

    def again(rc=0):
        return onlinecal("run", "s.toml", "--resume", cwd=folder, rc=rc).stderr

    assert again() == ""
    # The plug-in, and a module beside it; to the same length, so that Python would take them for what they were.
    for file, old, new, part in (
        ("own.py", "return helper.P", "return 0.25 * 1", "own"),
        ("helper.py", "P = 0.5", "P = 0.6", "helper"),
    ):
        edit(folder / file, old, new)
        with Store.open(results) as store:
            before = store.runs().keys()
        assert again() == (
            f"note: played anew, as the scenario or what it names has changed (forecaster 'Same': source of {part}): 2 "
            "finished cells\n"
        )
        with Store.open(results) as store:
            assert len(store.runs().keys() & before) == 2
    as_written = oc.play(
        oc.forecasters.Constant(0.25), oc.natures.Drift(), horizon=[20, 40], runs=2, measures="ece"
    )
    assert (read(results).curve("ece", "Same").totals == as_written.curve("ece").totals).all()
    # Neither a comment nor a label is content; two labels share what was played.
    edit(folder / "own.py", "import helper", "import helper  # which says what")
    edit(folder / "s.toml", '"constant"', '"constant"\nlabel = "half"\n[[forecasters]]\nname = "constant"')
    assert again() == ""
    assert read(results).forecasters == ["Same", "half", "constant"]
    assert equal(read(results), fresh(folder))
    # What is measured is computed from the level sets that are kept: nothing is played.
    for file, old, new, why in (
        ("gauges.py", "residuals.sum()", "residuals.sum() * 2", "measure 'bias': source of gauges"),
        ("s.toml", "[0.2, 0.9]", "[0.2, 0.8]", "task 'mine': payoffs"),
    ):
        edit(folder / file, old, new)
        with Store.open(results) as store:
            seconds = {key: store.numbers(key).seconds for key in store.runs()}
        assert again() == (
            f"note: measured anew, as the scenario or what it names has changed ({why}): 6 finished cells\n"
        )
        with Store.open(results) as store:
            assert {key: store.numbers(key).seconds for key in store.runs()} == seconds
        assert equal(read(results), fresh(folder))
    # The seed stands in every game.
    bytes_before = results.read_bytes()
    edit(folder / "s.toml", "runs = 2", "seed = 7\nruns = 2")
    assert again(rc=2) == (
        "error: results/s.db: nothing that is in it fits the scenario any more (seed); --overwrite starts anew, "
        "--output FILE leaves it\n"
    )
    assert results.read_bytes() == bytes_before
    edit(folder / "s.toml", "seed = 7\nruns = 2", "runs = 2")
    assert again() == ""


def test_plug_ins_of_one_name_from_two_modules(folder):
    (folder / "other.py").write_text(OWN.replace("helper.P", "0.25"))
    edit(folder / "s.toml", '"constant"', '"other:Same"')
    said = onlinecal("run", "s.toml", cwd=folder, rc=2).stderr
    assert said == "error: s.toml: two forecasters are called 'Same'; give one of them another label\n"
    edit(
        folder / "s.toml",
        '"other:Same"',
        '"other:Same"\nlabel = "other"\n[[forecasters]]\nname = "own:Same"\nlabel = "twin"',
    )
    onlinecal("run", "s.toml", cwd=folder)
    study = read(folder / "results" / "s.db")
    mean = {who: study.curve("ece", who, "drift").mean.tolist() for who in study.forecasters}
    assert list(mean) == ["Same", "other", "twin"]
    assert mean["Same"] == mean["twin"] != mean["other"]


# ---------------------------------------------------------------- two processes, and one that is killed


WAITS = """
import os, time
class Same:
    def __init__(self, horizon): self.horizon = horizon
    def forecast(self):
        if self.horizon == 40 and not os.path.exists("go"):
            open("waiting", "w").close()
            while not os.path.exists("go"): time.sleep(0.01)
        return 0.5
    def update(self, forecast, outcome): pass
"""


def begun(folder, *options):
    """A process that has finished a cell and waits in the next until there is a file ``go``."""
    process = subprocess.Popen(
        [sys.executable, "-m", "onlinecal", "run", "s.toml", *options],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    deadline = time.monotonic() + 120
    while not (folder / "waiting").exists():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return process


@pytest.fixture
def waiting(folder):
    (folder / "own.py").write_text(WAITS)
    return folder


def test_a_second_process_is_told_who_writes_and_nothing_is_lost(waiting):
    first = begun(waiting)
    try:
        for options in ((), ("--resume",), ("--overwrite",), ("-o", "results/../results/s.db", "--resume")):
            said = onlinecal("run", "s.toml", *options, cwd=waiting, rc=2).stderr
            assert f"s.db is being written by process {first.pid} on " in said
            assert said.count("\n") == 1
        # Whoever reads is not kept out, nor is the writer.
        said = onlinecal("compare", "results/s.db", "--measure", "ece", cwd=waiting).stderr
        assert said == "1 of 4 cells are finished; go on with: onlinecal run SCENARIO --resume\n"
    finally:
        (waiting / "go").touch()
    _, err = first.communicate(timeout=120)
    assert (first.returncode, err) == (0, "")
    assert equal(read(waiting / "results" / "s.db"), fresh(waiting))


@pytest.mark.parametrize(
    "how",
    [signal.SIGKILL, pytest.param(signal.SIGTERM, marks=pytest.mark.slow), signal.SIGINT],
    ids=["kill", "terminate", "interrupt"],
)
def test_a_process_that_is_killed_leaves_what_is_finished_and_no_lock(waiting, how):
    first = begun(waiting, "--output", "my results.db")
    first.send_signal(how)
    _, err = first.communicate(timeout=60)
    if how == signal.SIGINT:
        assert first.returncode == 130
        assert err == (  # the way to go on can be pasted
            "stopped: 1 of 4 cells are finished and kept in my results.db; go on with: onlinecal run s.toml "
            "--output 'my results.db' --resume\n"
        )
    else:
        assert first.returncode == -how
    assert len(read(waiting / "my results.db").cells) == 1
    (waiting / "go").touch()
    assert onlinecal("run", "s.toml", "-o", "my results.db", "--resume", cwd=waiting).stderr == ""
    assert equal(read(waiting / "my results.db"), fresh(waiting))


def test_an_interrupt_before_anything_is_played(waiting):
    waits = (
        'import os, time\nopen("waiting", "w").close()\nwhile not os.path.exists("go"): time.sleep(0.01)\n'
    )
    (waiting / "own.py").write_text(waits)
    process = begun(waiting)
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=60)[1]
    assert said == "stopped while forecaster 'own:Same' was being imported (own.py:3)\n"
    assert process.returncode == 130
    assert not (waiting / "results").exists()


# ---------------------------------------------------------------- disks


#: all commands in one process; what they say on stderr is collected
SCRIPT = """
import json, os, pathlib, shutil, subprocess
from tests.command_line import onlinecal, process
from tests.readme import ROOT
errors = []
def oc(*arguments, rc=0):
    done = onlinecal(*arguments, cwd=".", rc=rc)
    errors.extend(done.stderr.splitlines())
    return done.stdout
def edit(*pairs):
    file = pathlib.Path("s.toml")
    for old, new in pairs:
        file.write_text(file.read_text().replace(old, new))
"""


def mounted(folder, script):
    """What a script prints in a name space of its own, in which a small disk is mounted on ``disk``; root or not."""
    (folder / "disk").mkdir()
    mount = "mount -t tmpfs -o size=300k tmpfs disk && "
    try:
        able = subprocess.run(["unshare", "-rm", "sh", "-c", mount + "true"], cwd=folder, capture_output=True)
    except FileNotFoundError:
        able = None
    if able is None or able.returncode != 0:
        pytest.skip("no name space in which a disk can be mounted")
    (folder / "script").write_text(SCRIPT + script)
    done = subprocess.run(
        ["unshare", "-rm", "sh", "-c", mount + f'exec "{sys.executable}" script'],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def test_a_disk_that_is_full(folder):
    errors, left = mounted(
        folder,
        """
oc("run", "s.toml", "-o", "disk/a.db")
shutil.copy("disk/a.db", "kept.db")
with open("disk/filler", "wb", 0) as filler:
    try:
        while filler.write(bytes(1024)): pass
    except OSError: pass
edit(("20, 40", "20, 40, 80, 160, 320"), ("runs = 2", "runs = 60"))
oc("run", "s.toml", "-o", "disk/a.db", "--resume", rc=2)
oc("run", "s.toml", "-o", "disk/a.db", "--overwrite", rc=2)
oc("run", "s.toml", "-o", "disk/b.db", rc=2)
shutil.copy("disk/a.db", "after.db")
os.remove("disk/filler")
edit(("runs = 60", "runs = 2"))
refused = [line for line in errors if line.startswith("error:")]
oc("run", "s.toml", "-o", "disk/a.db", "--resume")
shutil.copy("disk/a.db", "end.db")
print(json.dumps([refused, os.listdir("disk")]))
""",
    )
    assert ".a.db.new" not in left
    assert len(errors) == 3
    for error in errors:
        assert "full" in error or "No space left on device" in error or "cannot be" in error, error
    # What was there is there.
    with Store.open(folder / "kept.db") as before, Store.open(folder / "after.db") as after:
        assert len(before.runs()) == 4
        assert all(after.runs()[key] >= runs for key, runs in before.runs().items())
        assert after.damaged() == set()
    assert equal(read(folder / "end.db"), fresh(folder))


def test_a_disk_that_is_read_only(folder):
    errors, rows = mounted(
        folder,
        """
oc("run", "s.toml", "-o", "disk/a.db")
open("disk/empty.db", "w").close()
subprocess.run("mount -o remount,ro disk", shell=True, check=True)
for how in ((), ("--resume",), ("--overwrite",)):
    oc("run", "s.toml", "-o", "disk/a.db", *how, rc=2)
oc("run", "s.toml", "-o", "disk/empty.db", "--overwrite", rc=2)
oc("run", "s.toml", "-o", "disk/new.db", rc=2)
oc("run", "s.toml", "-o", "disk/sub/new.db", rc=2)
rows = json.loads(oc("compare", "disk/a.db", "--measure", "ece", "--json"))
print(json.dumps([errors, rows]))
""",
    )
    assert len(errors) == 6
    for error in errors:
        assert error.startswith("error: ")
        assert "cannot be written: Read-only file system" in error
    assert rows


def test_a_file_that_may_not_be_written(folder):
    onlinecal("run", "s.toml", cwd=folder)
    results = folder / "results" / "s.db"
    results.chmod(0o444)
    if os.access(results, os.W_OK):
        pytest.skip("permissions do not bind this user")
    before = results.read_bytes()
    for how in ("--resume", "--overwrite"):
        said = onlinecal("run", "s.toml", how, cwd=folder, rc=2).stderr
        assert "is read-only" in said
        assert said.count("\n") == 1
    assert results.read_bytes() == before


# ---------------------------------------------------------------- terminals and JSON


@pytest.fixture(scope="module")
def endless(tmp_path_factory):
    """A study with infinite totals: whoever says 1 loses everything by the first 0."""
    folder = tmp_path_factory.mktemp("endless")
    (folder / "e.toml").write_text(
        'title = "Δ × ∞"\nruns = 2\nhorizons = [20, 40]\nmeasures = ["log_loss", "ece"]\n'
        'forecasters = [{ name = "constant", p = 1.0, label = "sûr × ±" }, "constant"]\n'
        'natures = ["drift", { name = "bernoulli", q = 1.0 }]\n'
    )
    onlinecal("run", "e.toml", cwd=folder)
    return folder


def strict(text):
    return json.loads(text, parse_constant=pytest.fail)


def numbers(value, path=()):
    """Every value at a key that holds a number somewhere, by that key."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from numbers(item, (*path, key))
    elif isinstance(value, list):
        for item in value:
            yield from numbers(item, path)
    else:
        yield path, value


@pytest.mark.parametrize(
    "command",
    [
        ("run", "e.toml", "--resume"),
        ("compare", "results/e.db", "--measure", "log_loss"),
        ("check", "constant", "--horizon", "100", "--runs", "2"),
        ("list",),
        ("list", "rates"),
        ("show", "rounded"),
        ("show", "distance_lower"),
    ],
)
def test_json_has_numbers_or_null_where_numbers_belong(endless, command):
    rows = strict(onlinecal(*command, "--json", cwd=endless).stdout)
    kinds = {}
    for path, value in numbers(rows):
        kinds.setdefault(path, set()).add(type(value))
    for path, found in kinds.items():
        assert not (found & {int, float} and str in found), path
    if command[0] in ("run", "compare"):
        row = next(
            r
            for r in rows
            if r["measure"] == "log_loss" and r["forecaster"] == "sûr × ±" and r["nature"] == "drift"
        )
        assert row["total"] is None
        assert row["total_is"] == "inf"
        finite = next(r for r in rows if r["measure"] == "log_loss" and r["forecaster"] == "constant")
        assert isinstance(finite["total"], float)
        assert "total_is" not in finite


EVERY = (
    ("run", "e.toml", "--resume"),
    ("compare", "results/e.db", "--markdown"),
    ("plot", "results/e.db"),
    ("list",),
    ("show", "ece"),
    ("check", "constant", "--horizon", "100", "--runs", "2"),
    ("compare", "results/e.db", "--measure", "ece"),
)


@pytest.mark.parametrize(("encoding", "commands"), [("ascii", EVERY), ("latin-1", EVERY[-1:])])
def test_a_terminal_that_cannot_show_everything(endless, encoding, commands):
    for command in commands:
        done = onlinecal(*command, cwd=endless, encoding=encoding)
        assert done.stderr == ""
        assert done.stdout
    assert onlinecal("compare", "--help", cwd=endless, encoding=encoding, errors="replace").stderr == ""
    # A "?" would be another name: JSON has escapes.
    done = onlinecal("compare", "results/e.db", "--measure", "ece", "--json", cwd=endless, encoding=encoding)
    assert {row["forecaster"] for row in strict(done.stdout)} == {"sûr × ±", "constant"}
    said = onlinecal("compare", "results/é.db", cwd=endless, rc=2, encoding=encoding).stderr
    assert "no such results file" in said
    assert said.count("\n") == 1


def test_a_terminal_of_a_process_of_its_own(endless, monkeypatch):
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    done = process("compare", "results/e.db", "--measure", "ece", cwd=endless, encoding="ascii")
    assert done.stderr == ""
    assert (
        done.stdout
        == onlinecal("compare", "results/e.db", "--measure", "ece", cwd=endless, encoding="ascii").stdout
    )


@pytest.mark.parametrize(
    "command",
    [
        "list --json",
        *(pytest.param(c, marks=pytest.mark.slow) for c in ("list", "compare results/e.db --measure ece")),
    ],
)
def test_output_that_nobody_takes(endless, command):
    if not os.path.exists("/dev/full"):
        pytest.skip("this system has no device that is always full")
    line = f"{sys.executable} -m onlinecal {command}"
    full, closed = (
        subprocess.run(line + to, shell=True, cwd=endless, capture_output=True, text=True)
        for to in (">/dev/full", ">&-")
    )
    assert full.returncode == 2
    assert full.stderr == "error: what was to be printed cannot be read or written: No space left on device\n"
    assert (closed.returncode, closed.stderr) == (0, "")
    # A reader who has seen enough, before the first letter.
    reading, writing = os.pipe()
    os.close(reading)
    gone = subprocess.run(line, shell=True, cwd=endless, stdout=writing, stderr=subprocess.PIPE, text=True)
    os.close(writing)
    assert (gone.returncode, gone.stderr) == (0, "")
