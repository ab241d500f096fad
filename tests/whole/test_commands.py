"""Commands as users type them: what they print and write, and the one line by which they refuse."""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest

import onlinecal as oc
from onlinecal import cli
from onlinecal.checks import conformance
from onlinecal.exploit import search
from onlinecal.logs.evaluated import OF_LOGS
from onlinecal.measures import MEASURES, OF_SHORT_GAMES
from onlinecal.measures.groups import OF_GROUPS
from onlinecal.monitoring import watching
from onlinecal.schedules import ARRIVALS, DELAYS
from onlinecal.study.executors import Serial
from onlinecal.study.session import Session
from onlinecal.study.store import Store
from tests.command_line import begun, onlinecal
from tests.marks import slow
from tests.pages import README
from tests.results import read

RAIN = README.parent / "scenarios" / "forecasts" / "rain.csv"
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
CLASS = "class Own:\n    def __init__(self, horizon): self.horizon = horizon\n    def forecast(self):\n        {}\n"
CLASS += "        return 0.5\n    def update(self, forecast, outcome): pass\n"
KEPT = """
runs = 16
horizons = [200, 400]
measures = ["ece"]
keep = 64
forecasters = ["forecast_hedging", "empirical_mean"]
natures = ["drift", "bernoulli"]
"""
NONE_KEPT = KEPT.replace("keep = 64", 'keep = "none"').replace("[200, 400]", "20")
DELAYS_OF_TWO = """
runs = 2
horizons = [30, 60]
measures = ["ece"]
delays = [0, 1, 20]
forecasters = ["forecast_hedging", "almost_one_step_ahead", "constant"]
natures = ["drift", "bernoulli"]
"""
NEWSROOM = """
runs = 2
horizon = 300
checkpoints_per_decade = 3
measures = ["ece"]
forecasters = ["forecast_hedging", "constant"]
natures = ["drift"]
decision_makers = [
    { task = "random", count = 12, arrivals = { name = "poisson", rate = 0.1 }, stay = { name = "pareto", scale = 9 } },
    { task = "umbrella", join = 50, leave = 80, label = "guest" }, { task = "quadratic" },
]
"""
#: what is in the folder before anything is played
FILES = {
    "small.toml": SCENARIO,
    "kept.toml": KEPT,
    "none_kept.toml": NONE_KEPT,
    "delays.toml": DELAYS_OF_TWO,
    "newsroom.toml": NEWSROOM,
    "alone.toml": 'horizon = 9\nmeasures = ["ece"]\nforecasters = ["online_platt"]\nnatures = ["drift"]\n',
    "doubter.py": "from onlinecal.natures import Drift\nclass Doubter(Drift):\n    'Never sure.'\n",
    "modest.py": "class Coin:\n    def forecast(self): return {0.2: 0.5, 0.8: 0.5}\n"
    "    def update(self, forecast, outcome): pass\n",
    "boastful.py": "from onlinecal import Guarantee\nfrom onlinecal.forecasters import Constant\n"
    "from onlinecal.natures import Sight\nclass Boastful(Constant):\n    @property\n    def guarantees(self):\n"
    "        return (Guarantee('ece', '1', lambda t: 1.0, 'deterministic', Sight.LAW, 'nowhere'),)\n",
    "e.toml": 'title = "Δ × ∞"\nruns = 2\nhorizons = [20, 40]\nmeasures = ["log_loss", "nce", "ece"]\n'
    'forecasters = [{ name = "constant", p = 1.0, label = "sûr × ±" }, "constant"]\n'
    'natures = ["drift", { name = "bernoulli", q = 1.0 }]\n',
    "f.csv": "p,y\n0.5,1\n0.25,0\n",
    "no_rows.csv": "p,y\n",
    "7.csv": "p,y\n0.5,1\n7,0\n",
    "file": "",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder in which scenarios have been played."""
    folder = tmp_path_factory.mktemp("user")
    for name, text in FILES.items():
        (folder / name).write_text(text)
    for name in ("small", "kept", "none_kept", "newsroom", "delays", "e"):
        onlinecal(f"run {name}.toml", cwd=folder)
    return folder


@pytest.fixture
def own(folder, tmp_path, monkeypatch):
    """The same of the test's own; of conformance, which tests/checks holds, `check` tries one part."""
    monkeypatch.setattr(conformance, "CHECKS", conformance.CHECKS[1:2])
    return shutil.copytree(folder, tmp_path / "own")


CHECKED = "--horizon 50 --runs 2"

#: a line, exit status, what it begins with, and words that it has
SAID = [
    ("--version", 0, f"onlinecal {oc.__version__}\n", ""),
    ("run small.toml --resume", 0, "A small study", "drift, T = 400|contrarian, T = 400|forecast hedging|T^1.00|"
     "swap_regret[umbrella]|[1.00, 1.00]|onlinecal plot results/small.db|T^α: mean growth exponent over these T"),
    ("compare results/small.db --measure ece", 0, "ece: total T", "contrarian|[1.00, 1.00]|above O: grows faster over "
     "these T, and still at the largest, than the best known rate, which some forecaster provably keeps"),
    ("compare results/delays.db --paired --measure ece", 0, "", "all intervals of the table (18) hold together"),
    ("compare results/small.db --nature drift --ranking", 0, "ece: ranks, T = 400, 4 runs", ""),
    ("compare results/small.db --ranking", 0, "ece: ranks, T = 400, 4 runs\n", "mean rank drift contrarian* ─"),
    ("compare results/small.db --pareto ece smooth_ce", 0, "", "of 2 on the front"),
    ("compare results/small.db --all --nature drift --markdown", 0, "", "action_swap_regret[umbrella]"),
    ("plot results/small.db", 0, "wrote results/small.png; not drawn, --measure adds them: payoff[umbrella]", ""),
    ("plot results/small.db --measure ece --nature drift -o x.svg", 0, "wrote x.svg", ""),
    ("plot results/small.db --measure ece --caption x.txt --dpi 60 --columns 1", 0,
     "wrote results/small.png and x.txt", ""),
    ("measure f.csv --all --draws 0", 0, "", "--all is now --measure all|smooth_ece_at"),
    ("plot results/small.db -m ece --exponents", 0,
     "wrote results/small-exponents.png", "--exponents is now --kind exponents"),
    ("plot results/delays.db --kind delays --nature drift --measure ece", 0, "wrote results/delays-delays.png", ""),
    pytest.param("plot results/newsroom.db --kind people", 0, "wrote results/newsroom-people.png", "",
                 marks=pytest.mark.slow),  # of twelve panels
    ("export results/kept.db -o t.csv", 0, "wrote t.csv: 128 rows", ""),
    ("measure-again results/small.db --measure cdl", 0, "results/small.db: new columns of 12 cells\n", ""),
    ("measure-again results/small.db --measure ece", 0, "results/small.db has all of it\n", ""),
    ("measure-again results/kept.db --measure cdl", 0, "results/kept.db: new columns of 4 cells\n", "note: 'cdl' is "
     "not computed, since their level sets are not kept: 4 cells, such as 'empirical mean' against 'drift' at T = 200"),
    ("measure-again results/none_kept.db -m cdl", 2, "", "note: 'cdl' is not computed|error: results/none_kept.db: "
     "nothing can be computed from what it keeps; nothing has changed"),
    ("new my.toml", 0, "wrote my.toml; play it: onlinecal run my.toml", ""),
    ("list", 0, "", "forecast_hedging|contrarian|smooth_ce|umbrella|ece ≥ T/2"),
    ("list class_measures", 0, "class_measures", "setwise|classwise|toplabel|u_calibration"),
    ("show setwise", 0, "setwise (class_measures; parameters: measure", "over all sets of at most 12 classes"),
    ("show almost_one_step_ahead", 0, "", "T^(1/2)|distance_certificate ≤ 2√T + 1|Arunachaleswaran"),
    ("show doubter:Doubter", 0, "doubter:Doubter (natures; parameters: first", "Never sure."),
    (f"check boastful:Boastful {CHECKED}", 1, "", "FAILS against"),
    slow((f"check modest:Coin {CHECKED}", 0, "", "modest:Coin states no guarantee, so there is none to measure.")),
    (f"measure {RAIN} --time date -m ece -m smooth_ce --draws 10 -o rain.html", 0, "",
     "1,095 rows|== climatology|== persistence|== Side by side|wrote rain.html"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("line", "rc", "first", "words"), SAID, ids=[getattr(row, "values", row)[0] for row in SAID]
)
def test_what_commands_print(own, line, rc, first, words):
    done = onlinecal(line, cwd=own, rc=rc, columns=200)
    # Progress where it is slow, options of before, and what is not computed.
    known = " %| is now |^note: " + "|^error: " * (rc == 2)
    assert all(re.search(known, text) for text in done.stderr.splitlines())
    assert done.stdout.startswith(first)
    for each in words.split("|"):
        assert each in " ".join(f"{done.stdout} {done.stderr}".split())
    for file in re.findall(r"^wrote (\S+\.(?:png|svg|html))", done.stdout, re.M):
        data = (own / file).read_bytes()
        assert len(data) > 5000
        assert data.startswith(b"\x89PNG") or b"ECE against drift" in data or data.count(b"<figure>") == 6
    assert (done.stdout.count("ok  ") > 0) == line.startswith("check")


#: a line, and the error that it ends with, after "error: "
REFUSED = [
    ("rnu small.toml", "no such command 'rnu'. Did you mean 'run'?; `onlinecal -h` lists what can be typed"),
    ("--versoin", "no such option: --versoin (Possible options: --version); `onlinecal -h` lists"),
    ("run", "missing argument 'SCENARIO'; `onlinecal run -h` lists what can be typed"),
    ("run small.toml --resum", "no such option: --resum (Possible options: --resume, --runs); `onlinecal run -h`"),
    ("run alone.toml", "alone.toml: forecaster 'online_platt' needs "),
    ("run small.toml", "results/small.db exists; --resume goes on with it"),
    ("run small.toml -o n.db --jobs 0", "error: --jobs = 0; expected an integer from 1 to "),
    ("run small.toml -o n.db --jobs 2 --scheduler tcp://127.0.0.1:1", "jobs = 2 are processes of this machine, and a"),
    ("new small.toml", "small.toml exists; expected the name of a new file"),
    ("status none.db", "none.db: no such results file; `onlinecal run SCENARIO` makes one"),
    (f"status {'x' * 199}", f"error: {'x' * 199}: no such results file"),  # longer words are cut
    (f"status {'x' * 200}", f"error: {'x' * 100}…{'x' * 49}: no such results file"),
    ("plot small", "small: no such results file; did you mean results/small.db?"),
    ("compare results/small.db --json --markdown", "--markdown and --json are two forms of output; expected one of"),
    ("compare results/small.db --pareto ece eec", "unknown measure 'eec'; did you mean 'ece'?"),
    ("compare results/delays.db --people", "nobody joins or leaves in this study"),
    ("plot results/small.db --dpi zebra", "error: --dpi = zebra; expected an integer"),
    ("plot results/small.db --dpi 19", "error: --dpi = 19; expected at least 20"),
    # The last values are taken: only the file is refused.
    *((f"plot none.db --{last}", "none.db: no such results file") for last in ("dpi 20", "dpi 1200", "run 0")),
    ("plot none.db --bins 1 --columns 1", "none.db: no such results file"),
    *((f"plot none.db --{name} 0", f"error: --{name} = 0; expected at least 1") for name in ("bins", "columns")),
    ("plot none.db --run -1", "error: --run = -1; expected at least 0"),
    ("check constant --runs 0", "error: --runs = 0; expected at least 1"),
    ("check constant --runs 100001", "error: --runs = 100001; expected at most 100000"),
    ("check constnt --runs 100000", "did you mean 'constant'"),
    ("recalibrate f.csv -o r.csv --draws -1", "error: --draws = -1; expected at least 0"),
    ("plot results/small.db --dpi=1201", "error: --dpi = 1201; expected at most 1200"),
    ("plot results/small.db --dpi 60 --dpi 70", "error: option --dpi is given twice; expected it once"),
    ("plot results/small.db --against beta --kind runs", "runs and sweep are 2 pictures; expected one --kind"),
    ("report results/small.db -o x.pdf", "x.pdf: expected a name that ends in .html"),
    ("show os:getcwd", "'os:getcwd' is neither"), ("show cdll", "unknown name 'cdll'; did you mean 'cdl'"),
    ("merge results/kept.db results/small.db -o f.csv", "f.csv exists"),
    ("measure-again results/kept.db --measure '{ name = 3'", "--measure { name = 3: "),
    ("measure no.csv", "no.csv: no such file"), ("measure f.csv -f q", "f.csv has no column 'q'; known: p, y"),
    ("measure f.csv --draws -1", "error: --draws = -1; expected an integer from 0 to 10^5"),
    ("measure f.csv --level 2", "error: --level = 2.0; expected a number in [0, 1]"),
    ("measure f.csv --by zebra", "error: --by: f.csv has no column 'zebra'"),
    ("watch no_rows.csv --json", "error: no_rows.csv has no rows; expected at least one"),
    ("measure f.csv --labels a,b", "expected --classes with columns and one --outcome"),
    ("run /dev/null", "/dev/null cannot be read: it is a device; expected a scenario file"),
    ("watch f.csv --alpha 3", "error: --alpha = 3.0; expected"),
    ("recalibrate f.csv -o r.csv --with sigmoid",
     "error: --with: unknown forecaster 'sigmoid'; did you mean 'platt'?"),
    ("measure 7.csv -o x.html", "7.csv, line 3: column 'p' holds '7'; expected a probability in [0, 1]; these look "
     "like per cent: --percent"),
    ("solve --classes 3 --m 2 --horizon 3 --measure cdl", "expected neither --measure, --after nor --clip"),
    ("solve --classes 3 --m 6 --horizon 5", "the largest T that fits is 3; expected at most 2,000,000 steps"),
    ("solve --m 2 --horizon 4 --after 0.3:1", "expected forecast:outcome"),
    ("solve --m 2 --horizon 4 --clip 4 --measure cdl", "measure 'cdl' depends on more than the biases"),
    ("solve --m 2 --horizon 4 --clip 4 --after 0.5:1", "expected neither --sight draw nor --after"),
    ("exploit forecast_hedgin --horizon 4", "did you mean 'forecast_hedging'"),
]  # fmt: skip


#: words of libraries and of their errors
LIBRARY = ("pydantic", "Input should", "site-packages", "/onlinecal/", "Traceback")


@pytest.mark.parametrize(("line", "said"), REFUSED, ids=[line for line, _ in REFUSED])
def test_what_is_refused_is_one_line_and_leaves_nothing_behind(folder, line, said):
    there = contents(folder)
    done = onlinecal(line, cwd=folder, rc=2)
    assert (done.stderr.count("\n"), done.stdout) == (1, "")
    assert done.stderr.startswith("error: ")
    assert said in done.stderr
    assert len(done.stderr) < 600
    assert not [word for word in LIBRARY if word in done.stderr]
    assert contents(folder) == there


def contents(folder):
    return {
        file: file.read_bytes() for file in folder.rglob("*") if file.is_file() and file.suffix != ".lock"
    }


# ---------------------------------------------------------------- the same as data


def rows(line, cwd, **options):
    return json.loads(onlinecal(f"{line} --json", cwd=cwd, **options).stdout)


#: every command that prints results; the others write files
JSON = [
    "run e.toml --resume", "status results/e.db", "compare results/e.db --measure log_loss",
    "compare results/e.db --ranking", "compare results/e.db --pareto ece log_loss", "measure f.csv --draws 0",
    "recalibrate f.csv --draws 0 -m brier -o r.csv --overwrite", "watch f.csv", "list",
    "show rounded", f"check modest:Coin {CHECKED}", "solve --m 1 --horizon 2", "exploit constant --horizon 2",
    "search --against constant --horizon 8 --runs 1 --evaluations 4 --fresh 2 --overwrite",
]  # fmt: skip
WRITERS = {"new", "plot", "report", "measure-again", "export", "merge"}


def values(value, path=()):
    """Every value at a key that holds a number somewhere, by that key."""
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else (((), item) for item in value)
        for key, item in items:
            yield from values(item, (*path, key) if key else path)
    else:
        yield path, value


@pytest.mark.parametrize("line", JSON)
def test_json_has_numbers_or_null_where_numbers_belong(own, line):
    done = onlinecal(f"{line} --json", cwd=own)
    texts = done.stdout.splitlines() if line.startswith("watch") else [done.stdout]
    found = [json.loads(text, parse_constant=pytest.fail) for text in texts]
    assert all(found)
    kinds = {}
    for path, value in values(found):
        kinds.setdefault(path, set()).add(type(value))
    assert not [path for path, types in kinds.items() if types & {int, float} and str in types]
    if "e.toml" in line or ("log_loss" in line.split()[-1:] and "--measure" in line):
        of = {(r["forecaster"], r["nature"]): r for r in found[0] if r["measure"] == "log_loss"}
        assert (of["sûr × ±", "drift"]["total"], of["sûr × ±", "drift"]["total_is"]) == (None, "inf")
        assert isinstance(of["constant", "drift"]["total"], float)
        assert "total_is" not in of["constant", "drift"]


def test_every_command_prints_json_or_writes_files():
    assert {line.split()[0] for line in JSON} | WRITERS == set(cli.COMMANDS)


def test_numbers_as_json(folder):
    played = rows("run small.toml --resume", folder)
    row = {(r["forecaster"], r["nature"], r["measure"]): r for r in played}["constant", "contrarian", "ece"]
    assert (row["total"], row["half_width"], row["horizon"]) == (200.0, 0.0, 400)
    assert row["exponent"]["value"] == pytest.approx(1.0)
    compared = rows("compare results/small.db --measure ece --nature contrarian", folder)
    assert [r["against_rates"] for r in compared if r["forecaster"] == "constant"] == ["above O"]
    ranked = rows("compare results/small.db --ranking", folder)["natures"]
    assert [(each["nature"], each["own_outcomes"]) for each in ranked] == [
        ("drift", False),
        ("contrarian", True),
    ]
    assert [entry["kind"] for entry in rows("show rounded", folder)] == ["forecasters", "responses"]
    assert rows("show sawtooth", folder)["kind"] == "natures"  # the one of that name
    for kind, known in (
        ("arrivals", ARRIVALS),
        ("delays", DELAYS),
        ("measures", [*MEASURES, *OF_SHORT_GAMES, *OF_GROUPS, *OF_LOGS]),
    ):
        assert [row["name"] for row in rows(f"list {kind}", folder)] == list(known)


def test_open_questions_and_decision_makers(folder):
    people = rows("compare results/newsroom.db --people", folder)
    again = rows("run newsroom.toml --resume", folder)
    told = [row for row in again if row["measure"] == "decision makers"]
    assert told == [{"measure": "decision makers", **row} for row in people]
    assert {row["open"] for row in rows("run delays.toml --resume", folder)} == {0, 1, 20}
    paired = rows("compare results/delays.db --paired --measure ece", folder)
    assert len(paired) == 3 * 6  # pairs of three forecasters; two natures by three delays


def test_a_log_of_forecasts(tmp_path):
    found = rows(f"measure {RAIN} -f persistence --draws 0", tmp_path)["forecasts"][0]
    table = np.genfromtxt(RAIN, delimiter=",", names=True, dtype=None, encoding=None)
    gamma = oc.JointDistribution.from_samples(table["persistence"], table["rain"])
    measures = {row["name"]: row["value"] for row in found["measures"]}
    assert (measures["ece"], measures["brier"]) == (oc.measures.ece(gamma), oc.measures.brier(gamma))
    assert tuple(found["brier"].values()) == oc.decomposition(gamma)
    text = "when,chance,happened\n" + "".join(f"{i},{30 + i},{'yes' if i % 3 else 'no'}\n" for i in range(60))
    line = "measure - --forecast chance --percent --positive yes -m smooth_ce --draws 20"
    said = onlinecal(line, cwd=tmp_path, input=text).stdout
    assert "standard input: 60 rows, forecasts 'chance', outcome 'happened'" in said


def test_the_example_is_made_by_its_command(tmp_path):
    shutil.copy(RAIN.parent / "make_rain.py", tmp_path)
    subprocess.run([sys.executable, tmp_path / "make_rain.py"], check=True, cwd=README.parent, timeout=120)
    assert (tmp_path / "rain.csv").read_bytes() == RAIN.read_bytes()


# ---------------------------------------------------------------- results that are there already


def test_merge(own):
    study = read(own / "results/kept.db")
    (own / "o.toml").write_text(KEPT.replace('"drift", "bernoulli"', '"sawtooth"'))
    onlinecal("run o.toml", cwd=own)
    done = onlinecal("merge results/kept.db results/o.db -o m.db", cwd=own)
    assert done.stdout == "results: m.db\n"
    assert done.stderr == "note: results/o.db has another scenario; that of results/kept.db is kept\n"
    assert read(own / "m.db").natures == [*study.natures, "sawtooth"]
    assert len(rows("compare m.db --measure ece", own)) == 6


# ---------------------------------------------------------------- what fails, and what is stopped


def test_failed_and_incompatible_cells_are_told_and_the_rest_is_played(tmp_path):
    (tmp_path / "s.toml").write_text(
        'runs = 2\nhorizons = [20, 40]\nmeasures = ["ece"]\nforecasters = ["own:Own", "constant", "online_platt"]\n'
        'natures = ["drift", { name = "replay", file = "rows.csv", base = "p", label = "rows" }]\n'
    )
    (tmp_path / "own.py").write_text(CLASS.format("if self.horizon == 40: raise ValueError('boom')"))
    (tmp_path / "rows.csv").write_text("p,outcome\n" + "0.3,0\n0.6,1\n" * 25)
    done = onlinecal("run s.toml", cwd=tmp_path, rc=1)
    lines = done.stderr.splitlines()
    why = "forecaster 'Own' failed in round 1, run 0: ValueError: boom (own.py:4)"
    platt = "'online platt' against 'drift': forecaster 'online_platt' needs "
    assert lines[0].startswith(f"note: not played: {platt}")
    told = [f"  'Own' against '{nature}' at T = 40: {why}" for nature in ("drift", "rows")]
    assert lines[1:] == ["2 of 10 cells failed:", *told, "--resume plays them again"]
    assert "results: results/s.db" in done.stdout
    assert len(read(tmp_path / "results/s.db").cells) == 8
    unfinished = "8 of 10 cells are finished; go on with: onlinecal run s.toml --resume\n"
    assert onlinecal("plot results/s.db --measure ece", cwd=tmp_path).stderr == unfinished
    said = re.sub(r"\n +", " ", onlinecal("status results/s.db", cwd=tmp_path).stdout).splitlines()
    assert said[1] == "8 of 10 cells are done, 2 failed, 0 are left"
    assert said[4].startswith("failed: 'Own' against 'drift' at T = 40, on 20")
    assert said[6].startswith(f"cannot be played: {platt}")
    data = rows("status results/s.db", tmp_path)
    assert (data["cells"], data["done"], data["left"], data["run_rounds_left"]) == (10, 8, 0, 160)
    assert [(cell["nature"], cell["horizon"]) for cell in data["failed"]] == [("drift", 40), ("rows", 40)]
    assert [pair["nature"] for pair in data["incompatible"]] == ["drift"]
    # Mended cells are played, and nothing else.
    (tmp_path / "own.py").write_text(CLASS.format("print('boom')"))
    onlinecal("run s.toml --resume", cwd=tmp_path)
    said = onlinecal("status results/s.db", cwd=tmp_path).stdout
    assert "10 of 10 cells are done, 0 failed, 0 are left" in said


@pytest.mark.parametrize("many", [5, 6])
def test_of_pairs_and_cells_five_are_named(tmp_path, many):
    (tmp_path / "s.toml").write_text(
        'runs = 1\nhorizon = 5\nmeasures = ["ece"]\nforecasters = ["own:Own", "constant", "online_platt"]\n'
        f'natures = [{{ name = "bernoulli", q = {{ from = 0, to = 1, steps = {many} }} }}]\n'
    )
    (tmp_path / "own.py").write_text(CLASS.format("raise ValueError('boom')"))
    lines = onlinecal("run s.toml", cwd=tmp_path, rc=1).stderr.splitlines()
    assert [line.partition(":")[0] for line in lines[:5]] == ["note"] * 5
    more = many > 5
    assert lines[5 : 6 + more] == [
        *["note: nor are 1 more pairs; `onlinecal status` names all of them"] * more,
        f"{many} of {2 * many} cells failed:",
    ]
    assert [line.split()[0] for line in lines[6 + more : -1]] == ["'Own'"] * 5
    assert lines[-1] == "--resume plays them again" + "; `onlinecal status results/s.db` shows all" * more


def test_what_is_stopped_ends_with_the_status_of_that(tmp_path, monkeypatch):
    """As Ctrl-C ends a command of a shell."""
    watched, found = watching.watch, search.search
    monkeypatch.setattr(watching, "watch", lambda *given, **options: watched(*given, **options) or True)
    monkeypatch.setattr(
        search, "search", lambda *of, **options: replace(found(*of, **options), interrupted=True)
    )
    (tmp_path / "f.csv").write_text("p,y\n0.5,1\n")
    assert "1 event, 0 alarms" in onlinecal("watch f.csv", cwd=tmp_path, rc=130).stdout
    line = "search --against constant --horizon 8 --runs 1 --evaluations 4 --fresh 2 --nature drift"
    assert onlinecal(line, cwd=tmp_path, rc=130).stderr == "stopped: this is the best so far\n"


def test_all_cores_are_taken_where_no_number_of_processes_is_asked_for(tmp_path, monkeypatch):
    asked = []

    def all_cores(cells):
        asked.append(len(cells))
        return Serial()

    monkeypatch.setattr("onlinecal.study.executors.all_cores", all_cores)
    (tmp_path / "s.toml").write_text(SCENARIO)
    for more, expected in (("--jobs 1", []), ("", [4])):
        onlinecal(f"run s.toml --horizon 9 --runs 1 --overwrite {more}", cwd=tmp_path)
        assert asked == expected


UPDATE = "    def update(self, forecast, outcome): pass\n"


@pytest.mark.parametrize(
    ("text", "rc", "said"),
    [
        ("class Odd:\n    def __init__(self): raise SystemExit(3)\n    def forecast(self): return 0.5\n" + UPDATE, 2,
         "error: stopped by SystemExit: 3 (odd.py:2)\n"),
        ("class Odd:\n    def forecast(self): raise SystemExit(3)\n" + UPDATE, 1, "SystemExit: 3 (odd.py:2)"),
        ("from onlinecal.forecasters import Forecaster\nclass Odd(Forecaster):\n"
         "    def start(self, horizon, stream): return None\n", 2, "its player has no method forecast()"),
    ],
)  # fmt: skip
def test_a_plug_in_that_goes_wrong_is_named(tmp_path, text, rc, said):
    (tmp_path / "odd.py").write_text(text)
    (tmp_path / "odd.toml").write_text(SCENARIO.replace('"constant"', '"odd:Odd"'))
    done = onlinecal("run odd.toml --horizon 20 --runs 1", cwd=tmp_path, rc=rc)
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_what_plug_ins_print_is_not_among_the_results(tmp_path):
    (tmp_path / "small.toml").write_text(SCENARIO.replace('"constant"', '"loud.py:Loud"'))
    (tmp_path / "loud.py").write_text(
        "print('begins')\nclass Loud:\n    def __init__(self): print('made')\n    def forecast(self): return 0.5\n"
        "    def update(self, forecast, outcome): print('told')\n"
    )
    done = onlinecal("run small.toml --horizon 20 --json", cwd=tmp_path)
    json.loads(done.stdout)
    assert {"begins", "made", "told"} <= set(done.stderr.splitlines())


@pytest.mark.slow
def test_control_c_in_compiled_code_keeps_what_is_finished(tmp_path):
    (tmp_path / "long.toml").write_text(SCENARIO.replace("[100, 200, 400]", "[100, 200, 300000000]"))
    database = tmp_path / "my results.db"

    def short_ones_are_played():  # which are first
        if not (database.exists() and database.stat().st_size > 0):
            return False
        with Store.open(database) as store:
            return len(store.finished()) >= 8

    running = begun("run", "long.toml", "-o", database.name, cwd=tmp_path, when=short_ones_are_played)
    time.sleep(0.5)
    running.send_signal(signal.SIGINT)
    said = running.communicate(timeout=60)[1]
    assert running.returncode == 130, said
    go_on = "onlinecal run long.toml --output 'my results.db' --resume\n"  # can be pasted
    assert said.endswith(
        f"stopped: 8 of 12 cells are finished and kept in my results.db; go on with: {go_on}"
    )
    assert "Traceback" not in said
    assert onlinecal(f"status '{database.name}'", cwd=tmp_path).stdout.endswith(f"go on with: {go_on}")
    assert len(read(database).cells) == 8


GIVEN = {
    "'my s.toml' --seed 3 -o 'my out.db'": "'my s.toml' --seed 3 --output 'my out.db'",
    "s.toml --horizon 40 --runs 2 --horizon 20 --jobs 1 --json -o a_long_name_of_a_folder/another_one/results.db": (
        "s.toml --horizon 40 --horizon 20 --runs 2 --jobs 1 --json --output a_long_name_of_a_folder/another_one/"
        "results.db"
    ),
}


@pytest.mark.parametrize("given", GIVEN)
def test_what_is_stopped_says_the_command_that_goes_on_as_status_does(tmp_path, given, monkeypatch):
    for name in ("s.toml", "my s.toml"):
        (tmp_path / name).write_text('name = "s"\n' + SCENARIO)
    play = Session.play

    def stopped(session, executor):
        raise KeyboardInterrupt

    monkeypatch.setattr(Session, "play", stopped)
    said = onlinecal(f"run {given}", cwd=tmp_path, rc=130).stderr
    go_on = f"onlinecal run {GIVEN[given]} --resume\n"
    assert said.endswith(f"; go on with: {go_on}")
    output = shlex.split(GIVEN[given])[-1] if "-o" in given else "results/s.db"
    status = f"status '{output}'"
    assert onlinecal(status, cwd=tmp_path, columns=60).stdout.endswith(f"\ngo on with: {go_on}")
    assert rows(status, tmp_path)["go_on"] == go_on.rstrip()
    monkeypatch.setattr(Session, "play", play)
    onlinecal(go_on.removeprefix("onlinecal "), cwd=tmp_path)
    assert "go on" not in onlinecal(status, cwd=tmp_path).stdout


# ---------------------------------------------------------------- imports: what the user waits for


#: what the library of commands may load; of the arguments of a command it asks pydantic
COMMANDS = {"onlinecal", "typer", "click", "annotated_doc", "shellingham", "typing_extensions"}
ARGUMENTS = {"annotated_types", "pydantic", "pydantic_core", "typing_inspection"}
HEAVY = {"scipy.fft", "scipy.optimize", "scipy.sparse", "scipy.stats", "pandas", "matplotlib"}
LOADED = """
import sys
before = set(sys.modules)  # what the interpreter loads by itself
import onlinecal
assert "numpy" not in sys.modules
from onlinecal.cli import main
for line in sys.argv[1:]:
    sys.argv = ["onlinecal", *line.split()]
    try: main()
    except SystemExit as end: assert not end.code
    print(*sorted(set(sys.modules) - before), file=sys.stderr)
onlinecal.JointDistribution
sys.modules["numpy"]
"""


def test_the_status_of_a_file_needs_no_numba():
    code = "import sys, onlinecal.study.status; assert 'numba' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_commands_load_what_they_need():
    helps = ("--help", *(f"{name} --help" for name in ("run", "compare", "plot", "list", "check", "show")))
    for lines in (helps, ("list", "show ece", "show drift")):
        command = [sys.executable, "-c", LOADED, *lines]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        for line, loaded in zip(lines, done.stderr.splitlines(), strict=True):
            if lines is helps:
                tops = {name.partition(".")[0] for name in loaded.split()} - sys.stdlib_module_names
                tops = {name for name in tops if not name.startswith("_sysconfigdata")}
                allowed = COMMANDS | (ARGUMENTS if line != "--help" else set())
                assert {"onlinecal", "typer"} <= tops <= allowed, (line, tops - allowed)
            assert not HEAVY & set(loaded.split()), line


def test_output_that_nobody_takes(tmp_path):
    """Of a table and of JSON; each way once."""
    if not os.path.exists("/dev/full"):
        pytest.skip("this system has no device that is always full")
    table, data = (f"{sys.executable} -m onlinecal list {what}" for what in ("rates", "--json"))
    full, closed = (
        subprocess.run(line, shell=True, cwd=tmp_path, capture_output=True, text=True)
        for line in (f"{table} >/dev/full", f"{data} >&-")
    )
    assert full.returncode == 2
    assert full.stderr == "error: what was to be printed cannot be read or written: No space left on device\n"
    assert (closed.returncode, closed.stderr) == (0, "")
    # A reader that has gone, before the first letter.
    reading, writing = os.pipe()
    os.close(reading)
    gone = subprocess.run(table, shell=True, cwd=tmp_path, stdout=writing, stderr=subprocess.PIPE, text=True)
    os.close(writing)
    assert (gone.returncode, gone.stderr) == (0, "")
