"""Who adds something as the table in CONTRIBUTING.md says, in one file and one list, finds it known everywhere."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

STRATEGY = '''

@dataclass(frozen=True)
class {name}({base}):
    """Says the same as ever.

    Parameters
    ----------
    {key} : float, default 0.5
    """

    deterministic: ClassVar[bool | None] = True
    needs_horizon: ClassVar[bool | None] = False
    safe_under_delay: ClassVar[bool | None] = True
    memory: ClassVar[str | None] = "O(1)"

    {key}: float = 0.5

    def start(self, horizon: int, stream: Stream) -> {player}:
        """A player that never changes."""
        return {like}.start(horizon, stream)
'''
FORECASTER = STRATEGY.format(
    name="Newcomer", base="Forecaster", key="p", player="CompiledForecaster", like="Constant(0.9 * self.p)"
)
NATURE = STRATEGY.format(
    name="Arrival", base="Nature", key="q", player="CompiledNature", like="Bernoulli(self.q)"
)
NATURE = NATURE.replace("    deterministic: ClassVar[bool | None] = True\n", "")

MEASURE = '''@of_gamma
def absolute_bias(gamma: JointDistribution, *, power: float = 1.0) -> float:
    """The absolute total bias, to a power."""
    return abs(float(gamma.residuals.sum())) ** power


'''

TASK = '''def gate(*, toll: float = 0.5) -> DecisionTask:
    """Pass a gate at a toll, or wait."""
    return DecisionTask("gate", [[0.5, 0.5], [1.0 - toll, 1.0]], ["wait", "pass"])


'''

RESPONSE = '''@dataclass(frozen=True)
class Opposite:
    """Believes the opposite of what is forecast."""

    version: ClassVar[int] = 1

    def beliefs(self, gamma: JointDistribution) -> JointDistribution:
        """Γ with the forecasts 1 − v."""
        return JointDistribution.from_counts(1.0 - gamma.predictions[::-1], gamma.counts[::-1], gamma.positives[::-1])


'''


def table():
    """What is to be added → where it is written, and where it is listed, as CONTRIBUTING.md has it."""
    text = (ROOT / "CONTRIBUTING.md").read_text().partition("| to add |")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| an? (\w+) \| (.*) \| (.*) \|$", text, re.MULTILINE)
    return {what: (write, listed) for what, write, listed in rows}


def edit(file, *pairs):
    text = file.read_text()
    for old, new in pairs:
        assert text.count(old) == 1, (file, old)
        text = text.replace(old, new)
    file.write_text(text)


def add_all(home):
    """Adds one of each; returns how many files were touched for each."""
    package = home / "onlinecal"
    where = table()
    assert set(where) == {"forecaster", "nature", "measure", "task", "response"}
    touched = {}
    for what, family, text, name in (
        ("forecaster", "baselines", FORECASTER, "Newcomer"),
        ("nature", "stochastic", NATURE, "Arrival"),
    ):
        folder = re.search(rf"onlinecal/{what}s/|the same in `onlinecal/{what}s/`", where[what][0])
        assert folder, where[what]
        assert f"`{what}s/__init__.py`" in where[what][1]
        file, listed = package / f"{what}s" / f"{family}.py", package / f"{what}s" / "__init__.py"
        file.write_text(file.read_text() + text)
        start = f"{what.upper()}S = registry(\n    (\n"
        line = f"from onlinecal.{what}s.{family} import {name}\n"
        edit(listed, (start, f"{line}\n{start}        {name},\n"))
        touched[what] = {file, listed}
    assert where["measure"] == ("the file of its family in `onlinecal/measures/`", "that file's `MEASURES`")
    row = 'MEASURES = (\n    Measure(function=absolute_bias, symbol="|bias|", source="Bri50", complexity="O(k)"),\n'
    file = package / "measures" / "scores.py"
    edit(file, ("MEASURES = (\n", MEASURE + row))
    touched["measure"] = {file}
    assert where["task"] == ("`onlinecal/decisions/tasks.py`", "its `TASKS`")
    file = package / "decisions" / "tasks.py"
    start = "TASKS: dict[str, Callable[..., Task]] = {\n    task.__name__: task for task in ("
    edit(file, (start, f"{TASK}{start}gate, "))
    touched["task"] = {file}
    assert where["response"] == ("`onlinecal/decision_makers/responses.py`", "its `RESPONSES`")
    file = package / "decision_makers" / "responses.py"
    edit(file, ("RESPONSES = registry((", f"{RESPONSE}RESPONSES = registry((Opposite, "))
    touched["response"] = {file}
    return touched


SCENARIO = """
horizons = [50, 100]
runs = 2
measures = ["absolute_bias", { name = "absolute_bias", power = 2 }]
tasks = ["gate", { name = "gate", toll = 0.2, response = "opposite" }]
forecasters = ["newcomer", { name = "newcomer", p = 0.25 }, { name = "rounded", m = 4, of = { name = "newcomer" } }]
natures = ["arrival", { name = "arrival", q = 1.0 }]
"""

PYTHON = """
import onlinecal as oc
from onlinecal.measures import absolute_bias
study = oc.play(oc.forecasters.Newcomer(1.0), oc.natures.Arrival(1.0), horizon=10, runs=1, measures=["absolute_bias"])
assert oc.measures.absolute_bias is absolute_bias
assert abs(study.curve("absolute_bias").mean[-1] - 1.0) < 1e-9, study.curve("absolute_bias").mean
assert oc.tasks.TASKS["gate"]().name == "gate"
"""


@pytest.mark.slow
def test_one_file_and_one_list(tmp_path):
    # The compiled code goes with it.
    shutil.copytree(ROOT / "onlinecal", tmp_path / "onlinecal")
    for what, files in add_all(tmp_path).items():
        assert len(files) <= 2, what
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}

    def python(*arguments):
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def onlinecal(*arguments):
        return python("-m", "onlinecal", *arguments)

    names = {"forecasters": "newcomer", "natures": "arrival", "measures": "absolute_bias", "tasks": "gate",
             "responses": "opposite"}  # fmt: skip
    listed = {(row["kind"], row["name"]) for row in json.loads(onlinecal("list", "--json"))}
    assert set(names.items()) <= listed
    for kind, name in names.items():
        entry = json.loads(onlinecal("show", name, "--json"))
        assert (entry["kind"], entry["name"]) == (kind, name)
        assert entry["documentation"]
    (tmp_path / "all.toml").write_text(SCENARIO)
    onlinecal("run", "all.toml")
    totals = onlinecal("compare", "results/all.db", "--measure", "absolute_bias(power=2)")
    assert "newcomer" in totals
    assert "arrival" in totals
    said = onlinecal("check", "newcomer", "arrival", "--horizon", "100", "--runs", "2")
    assert "FAILS" not in said
    assert said.count("ok  ") >= 18
    python("-c", PYTHON)


def test_what_contributing_names_is_there():
    """Files, folders and modules that are to be run; those of the table among them."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    for path in re.findall(r"`((?:tests|onlinecal|docs)/[\w/.]+)`", text):
        assert (ROOT / path).exists(), path
    for path in re.findall(r"`(\w+/__init__\.py)`", "".join(listed for _, listed in table().values())):
        assert (ROOT / "onlinecal" / path).is_file(), path
    for module in re.findall(r"python -m (tests(?:\.\w+)+)", text):
        assert (ROOT / (module.replace(".", "/") + ".py")).is_file(), module
