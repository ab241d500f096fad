"""The command line, end to end, as a user would use it."""

import json
import signal
import subprocess
import sys
import time

import pytest

from onlinecal.study.store import Store
from tests.command_line import onlinecal, process

SCENARIO = """
title = "A small study"
runs = 4
horizons = [100, 200, 400]
measures = ["ece", "smooth_ce"]
tasks = ["umbrella"]
[[forecasters]]
name = "forecast_hedging"
[[forecasters]]
name = "constant"
[[natures]]
name = "drift"
[[natures]]
name = "contrarian"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder in which the scenario has been played."""
    folder = tmp_path_factory.mktemp("user")
    (folder / "small.toml").write_text(SCENARIO)
    folder.joinpath("said").write_text(process("run", "small.toml", cwd=folder).stdout)
    return folder


def test_run_prints_totals_and_exponents(folder):
    said = (folder / "said").read_text()
    for text in ("A small study", "drift, T = 400", "contrarian, T = 400", "forecast hedging", "swap_regret[umbrella]",
                 "T^1.00", "[1.00, 1.00]", "onlinecal plot results/small.db"):  # fmt: skip
        assert text in said
    assert "intervals hold all together with 95 %" in " ".join(said.split())
    with Store.open(folder / "results" / "small.db") as store:
        assert len(store.results().cells) == 12


def test_run_as_json(folder):
    rows = json.loads(onlinecal("run", "small.toml", "-o", "other.db", "--json", cwd=folder).stdout)
    row = next(
        r for r in rows if (r["nature"], r["forecaster"], r["measure"]) == ("contrarian", "constant", "ece")
    )
    assert row["total"] == 200.0
    assert row["half_width"] == 0.0
    assert row["horizon"] == 400
    assert row["exponent"]["value"] == pytest.approx(1.0)


def test_compare(folder):
    done = onlinecal("compare", "results/small.db", "--measure", "ece", cwd=folder)
    assert done.stderr == ""
    said = done.stdout
    assert "contrarian" in said
    assert "[1.00, 1.00]" in said
    assert (
        "above O: grows faster over these T than O(T^(2/3)), which some forecaster is proved to keep" in said
    )
    rows = json.loads(
        onlinecal("compare", "results/small.db", "--measure", "ece", "--json", cwd=folder).stdout
    )
    assert {(r["forecaster"], r["nature"]) for r in rows} == {
        (f, n) for f in ("forecast hedging", "constant") for n in ("drift", "contrarian")
    }
    said = {(r["forecaster"], r["nature"]): r["against_rates"] for r in rows}
    assert said["constant", "contrarian"] == "above O"
    said = onlinecal("compare", "results/small.db", "--json", "--markdown", cwd=folder, rc=2).stderr
    assert said == "error: --markdown and --json are two forms of output; expected one of the two\n"
    said = onlinecal("compare", "results/small.db", "--measure", "eec", cwd=folder, rc=2).stderr
    assert said == "error: unknown measure 'eec'; did you mean 'ece'?\n"


def test_a_narrow_terminal_breaks_headings_where_one_would_and_cuts_nothing(folder):
    text = SCENARIO.replace('"smooth_ce"]', '"cdl", "scdl", "kernel_ce"]')
    text += '[[natures]]\nname = "switch"\nfirst = { name = "random_walk" }\nthen = { name = "greedy" }\n'
    (folder / "narrow.toml").write_text(text.replace("tasks = [", 'tasks = ["quadratic", '))
    played = onlinecal("run", "narrow.toml", cwd=folder, columns=80).stdout
    assert "…" not in played
    assert "  swap_regret[  " in played  # the name of the task is on the next line
    assert "swap_regret[umbrella]" not in played
    assert "switch (first=random walk, then=greedy), T = 400\n" in played
    compared = onlinecal("compare", "results/narrow.db", "--measure", "ece", cwd=folder, columns=50).stdout
    assert compared.startswith("ece: total T·μ and exponent, T = 400\n")
    assert "ece: total T·μ and exponent, T = 400 (continued)\n" in compared
    assert compared.count("T = 400") == 2
    tables = compared.split("mean total T·μ over the runs")[0]
    assert "…" not in tables
    assert max(map(len, tables.splitlines())) <= 50
    checked = onlinecal(
        "check", "blum_mansour", "--horizon", "100", "--runs", "2", cwd=folder, columns=80
    ).stdout
    assert "swap_regret[quadratic]" in checked
    assert "= O(T^(1/3) log T)" in checked
    assert "…" not in checked


def test_plot(folder):
    said = onlinecal("plot", "results/small.db", cwd=folder).stdout
    assert said.startswith("wrote results/small.png; not drawn, --measure adds them: payoff[umbrella]")
    assert (folder / "results" / "small.png").read_bytes().startswith(b"\x89PNG")
    onlinecal("plot", "results/small.db", "--measure", "ece", "--nature", "drift", "-o", "x.svg", cwd=folder)
    assert "ece against drift" in (folder / "x.svg").read_text()
    for kind in ("runs", "slopes"):
        said = onlinecal(
            "plot",
            "results/small.db",
            "--nature",
            "drift",
            f"--{kind}",
            "--dark",
            "--width",
            "page",
            cwd=folder,
        ).stdout
        assert f"small-{kind}.png" in said
        assert (folder / f"results/small-{kind}.png").stat().st_size > 5000
    for arguments, words in (
        (["--runs", "--slopes"], "--runs and --slopes are two pictures"),
        (["--run", "1"], "--curves has no use for --run"),
        (["--width", "wide"], "width = 'wide'; expected 'column' (3.4 inches), 'page' (7 inches)"),
        (["--tasks", "--measure", "ece"], "--tasks draws no measures"),
    ):
        assert words in onlinecal("plot", "results/small.db", *arguments, cwd=folder, rc=2).stderr
    said = onlinecal("plot", "results/small.db", "--nature", "drfit", cwd=folder, rc=2).stderr
    assert said == "error: unknown nature 'drfit'; did you mean 'drift'?\n"


def test_list_and_show(folder):
    said = onlinecal("list", cwd=folder).stdout
    for text in ("forecast_hedging", "contrarian", "smooth_ce", "umbrella", "ece ≥ T/2"):
        assert text in said
    rows = json.loads(onlinecal("list", "measures", "--json", cwd=folder).stdout)
    assert {"ece", "cdl", "smooth_ce", "kernel_ce", "brier", "binned_ece"} <= {row["name"] for row in rows}
    said = onlinecal("show", "almost_one_step_ahead", cwd=folder).stdout
    for text in ("T^(1/2)", "distance_certificate ≤ 2√T + 1", "Arunachaleswaran", "Deviations"):
        assert text in said
    assert json.loads(onlinecal("show", "ece", "--json", cwd=folder).stdout)["kind"] == "measures"
    for name in ("ece", "drift", "umbrella", "replay"):
        assert name in onlinecal("show", name, cwd=folder).stdout
    said = onlinecal("show", "rounded", cwd=folder).stdout
    assert "rounded (forecasters;" in said
    assert "rounded (responses;" in said
    assert [e["kind"] for e in json.loads(onlinecal("show", "rounded", "--json", cwd=folder).stdout)] == [
        "forecasters",
        "responses",
    ]
    (folder / "own.py").write_text(
        "from onlinecal.natures import Drift\nclass Doubter(Drift):\n    'Never sure.'\n"
    )
    assert "own:Doubter (natures; parameters: first" in (
        said := onlinecal("show", "own:Doubter", cwd=folder).stdout
    )
    assert "Never sure." in said
    assert "os:getcwd' is neither" in onlinecal("show", "os:getcwd", cwd=folder, rc=2).stderr
    said = onlinecal("show", "zebra", cwd=folder, rc=2).stderr
    assert said == "error: unknown name 'zebra'; see `onlinecal list`\n"
    assert "did you mean 'cdl'" in onlinecal("show", "cdll", cwd=folder, rc=2).stderr
    assert "did you mean 'natures'" in onlinecal("list", "nature", cwd=folder, rc=2).stderr


def test_an_existing_file_is_kept(folder):
    before = (folder / "results" / "small.db").read_bytes()
    said = onlinecal("run", "small.toml", cwd=folder, rc=2).stderr
    assert said.startswith("error: results/small.db exists; --resume goes on with it")
    assert (folder / "results" / "small.db").read_bytes() == before
    assert onlinecal("run", "small.toml", "--resume", cwd=folder).stdout == (folder / "said").read_text()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "none.toml"], "none.toml cannot be read"),
        (["run", "bad.toml"], "unknown key 'run'; did you mean 'runs'"),
        (["compare", "none.db"], "no such results file"),
        (["plot", "bad.toml"], "not a results file"),
        (["plot", "results/small.db", "-o", "x.jpg"], "expected .png, .svg or .pdf"),
        (["run", "small.toml", "--no-such-option"], "No such option"),
        (["check", "constant", "--runs", "1000000000000"], "less than or equal to 100000"),
        (["rnu"], "rnu"),
    ],
)
def test_bad_commands_exit_2_without_a_traceback(folder, arguments, said):
    (folder / "bad.toml").write_text(SCENARIO.replace("runs", "run") + "#" * 200)
    command = process if arguments[0] == "rnu" else onlinecal
    done = command(*arguments, cwd=folder, rc=2)
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    if done.stderr.startswith("error:"):
        assert done.stderr.count("\n") == 1


def test_a_plug_in_that_fails_leaves_the_finished_cells(tmp_path):
    (tmp_path / "wild.py").write_text(
        "class Wild:\n"
        "    def __init__(self, horizon): self.p = 0.5 if horizon < 400 else 1.01\n"
        "    def forecast(self): return self.p\n"
        "    def update(self, forecast, outcome): pass\n"
    )
    (tmp_path / "wild.toml").write_text(SCENARIO.replace('"constant"', '"wild:Wild"'))
    done = onlinecal("run", "wild.toml", cwd=tmp_path, rc=1)
    said = done.stderr.splitlines()
    assert said[0] == "2 of 12 cells failed:"
    assert "'Wild' against 'drift' at T = 400: forecaster 'Wild' stated the forecasts [1.01]" in done.stderr
    assert len(said) == 4
    assert said[-1] == "--resume plays them again"
    assert "results: results/wild.db" in done.stdout
    with Store.open(tmp_path / "results" / "wild.db") as store:
        assert len(store.finished()) == 10
    unfinished = "10 of 12 cells are finished; go on with: onlinecal run SCENARIO --resume\n"
    for command in (("compare", "--measure", "ece", "--json"), ("plot", "--measure", "ece")):
        assert onlinecal(command[0], "results/wild.db", *command[1:], cwd=tmp_path).stderr == unfinished


def test_control_c_keeps_what_is_finished_and_says_how_to_go_on(tmp_path):
    (tmp_path / "long.toml").write_text(SCENARIO.replace("[100, 200, 400]", "[100, 200, 300000000]"))
    process = subprocess.Popen(
        [sys.executable, "-m", "onlinecal", "run", "long.toml"],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
        # A shell's background job, which these tests may be, hands down that interrupts are ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    deadline = time.monotonic() + 120
    database = tmp_path / "results" / "long.db"
    while time.monotonic() < deadline:
        if database.exists() and database.stat().st_size > 0:
            with Store.open(database) as store:
                if len(store.finished()) >= 8:  # what is short is played first
                    break
        time.sleep(0.05)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert "stopped: 8 of 12 cells are finished and kept in results/long.db; go on with: " in said
    assert "onlinecal run long.toml --resume" in said
    assert "Traceback" not in said
    with Store.open(database) as store:
        assert len(store.results().cells) == 8


#: what the library of commands may load; of the arguments of a command it asks pydantic
COMMANDS = {"typer", "click", "annotated_doc", "shellingham", "typing_extensions"}
ARGUMENTS = {"annotated_types", "pydantic", "pydantic_core", "typing_inspection"}


@pytest.mark.parametrize("command", ["", "run", "compare", "plot", "list", "check", "show"])
def test_help_loads_nothing_but_the_library_of_commands(command):
    """Import time is what the user waits for."""
    code = (
        "import sys\n"
        "before = set(sys.modules)\n"  # what the interpreter loads by itself
        "from onlinecal.cli import main\n"
        f"sys.argv = 'onlinecal {command} --help'.split()\n"
        "try: main()\n"
        "except SystemExit as end: assert not end.code\n"
        "loaded = {name.partition('.')[0] for name in set(sys.modules) - before} - sys.stdlib_module_names\n"
        "print(*sorted(loaded), file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert "Usage: onlinecal" in done.stdout
    loaded = {name for name in done.stderr.split() if not name.startswith("_sysconfigdata")}
    assert {"onlinecal", "typer"} <= loaded <= {"onlinecal"} | COMMANDS | (ARGUMENTS if command else set())


def test_what_only_computing_needs_is_not_loaded_to_say_what_there_is():
    code = (
        "import sys\n"
        "from onlinecal.cli import main\n"
        "for command in ('list', 'show ece', 'show drift'):\n"
        "    sys.argv = ['onlinecal', *command.split()]\n"
        "    try: main()\n"
        "    except SystemExit as end: assert not end.code\n"
        "    needless = {'scipy.fft', 'scipy.optimize', 'scipy.sparse', 'scipy.stats', 'pandas', 'matplotlib'}\n"
        "    assert not needless & set(sys.modules), (command, needless & set(sys.modules))\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


def test_the_package_loads_nothing_before_it_is_asked():
    code = "import onlinecal, sys; assert 'numpy' not in sys.modules; onlinecal.JointDistribution; sys.modules['numpy']"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_check(tmp_path):
    (tmp_path / "boastful.py").write_text(
        "from onlinecal import Guarantee\n"
        "from onlinecal.forecasters import Constant\n"
        "from onlinecal.natures import Sight\n"
        "class Boastful(Constant):\n"
        "    @property\n"
        "    def guarantees(self):\n"
        "        return (Guarantee('ece', '1', lambda t: 1.0, 'deterministic', Sight.LAW, 'nowhere'),)\n"
    )
    small = ("--horizon", "50", "--runs", "2")
    said = onlinecal("check", "drift", "boastful:Boastful", *small, cwd=tmp_path, rc=1).stdout
    assert said.count("ok  ") == 8 + 10
    assert "FAILS against" in said
    rows = json.loads(onlinecal("check", "boastful:Boastful", *small, "--json", cwd=tmp_path, rc=1).stdout)
    assert any(row["holds"] is False for row in rows["guarantees"])
    assert all(row["fault"] == "" for row in rows["conformance"])
    assert len(rows["conformance"]) == 10  # a Constant states four facts of itself


def test_check_of_a_strategy_without_a_guarantee(tmp_path):
    (tmp_path / "modest.py").write_text(
        "class Coin:\n"
        "    def forecast(self): return {0.2: 0.5, 0.8: 0.5}\n"
        "    def update(self, forecast, outcome): pass\n"
    )
    said = onlinecal("check", "modest:Coin", "--horizon", "50", "--runs", "2", cwd=tmp_path).stdout
    assert said.count("ok  ") == 8  # the last but one: it plays to the end
    assert said.endswith("modest:Coin states no guarantee, so there is none to measure.\n")
    assert "worst" not in said
