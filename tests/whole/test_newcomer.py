"""Something that is added as the table in CONTRIBUTING.md says, in one file and one list, is known everywhere."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from onlinecal.core._compile import STATE

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
    name="Newcomer", base="Forecaster", key="p", player="steps.Forecaster", like="Constant(0.9 * self.p)"
)
NATURE = STRATEGY.format(
    name="Arrival", base="Nature", key="q", player="steps.Nature", like="Bernoulli(self.q)"
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
class Opposite(Checked):
    """Believes the opposite of what is forecast."""

    def beliefs(self, gamma: JointDistribution) -> JointDistribution:
        """Γ with the forecasts 1 − v."""
        return JointDistribution.from_counts(1.0 - gamma.predictions[::-1], gamma.counts[::-1], gamma.positives[::-1])


'''


def table():
    """Thing to be added → where it is written, and where it is listed, as CONTRIBUTING.md has it."""
    text = (ROOT / "CONTRIBUTING.md").read_text().partition("| to add |")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| an? (\w+) \| (.*) \| (.*) \|$", text, re.MULTILINE)
    return {what: (write, listed) for what, write, listed in rows}


#: what is added → (file, pattern that stands in it once, text before that, text after it) of each edit
EDITS = {
    "forecaster": [
        ("forecasters/baselines.py", r"\Z", FORECASTER, ""),
        ("forecasters/__init__.py", r"^#: name",
         "from onlinecal.forecasters.baselines import Newcomer as Newcomer\n", ""),
    ],
    "nature": [
        ("natures/stochastic.py", r"\Z", NATURE, ""),
        ("natures/__init__.py", r"^#: name", "from onlinecal.natures.stochastic import Arrival as Arrival\n", ""),
    ],
    "measure": [
        ("measures/scores.py", r"^MEASURES = \(", MEASURE,
         'row(absolute_bias, "|bias| | Bri50 | O(k) | yes | yes | no"), '),
    ],
    "task": [("decisions/tasks.py", r"^TASKS: .*?for task in \(", TASK, "gate, ")],
    "response": [("decisions/responses.py", r"^RESPONSES = registry\(\(", RESPONSE, "Opposite, ")],
}  # fmt: skip
SCENARIO = """
horizons = [50, 100]
runs = 2
measures = ["absolute_bias", { name = "absolute_bias", power = 2 }]
tasks = ["gate", { name = "gate", toll = 0.2, response = "opposite" }]
forecasters = ["newcomer", { name = "newcomer", p = 0.25 }, { name = "rounded", m = 4, of = { name = "newcomer" } }]
natures = ["arrival", { name = "arrival", q = 1.0 }]
"""

#: all lines of the command, in one process, and the same in Python
TYPED = """
import sys
import onlinecal as oc
from onlinecal.cli import main
from onlinecal.measures import absolute_bias
for line in sys.argv[1:]:
    sys.argv = ["onlinecal", *line.split()]
    try: main()
    except SystemExit as end: assert not end.code, line
    print(end=chr(0), flush=True)
study = oc.play(oc.forecasters.Newcomer(1.0), oc.natures.Arrival(1.0), horizon=10, runs=1, measures=["absolute_bias"])
assert oc.measures.absolute_bias is absolute_bias
assert abs(study.curve("absolute_bias").mean[-1] - 1.0) < 1e-9, study.curve("absolute_bias").mean
assert oc.tasks.TASKS["gate"]().name == "gate"
"""
NAMES = {"forecasters": "newcomer", "natures": "arrival", "measures": "absolute_bias", "tasks": "gate",
         "responses": "opposite"}  # fmt: skip
LINES = (
    "list --json", *(f"show {name} --json" for name in NAMES.values()), "run all.toml",
    "compare results/all.db --measure absolute_bias(power=2)", "check newcomer arrival --horizon 100 --runs 2",
)  # fmt: skip


@pytest.mark.slow
def test_one_file_and_one_list(tmp_path):
    where = {what: "".join(row) for what, row in table().items()}
    for what, edits in EDITS.items():  # each place is named, by its file or its folder
        assert all(
            name in where[what] or f"onlinecal/{Path(name).parent}/" in where[what] for name, *_ in edits
        )
    # The compiled code goes with it, and is taken for new: nothing that is added is a part of it.
    shutil.copytree(ROOT / "onlinecal", tmp_path / "onlinecal")
    kept = tmp_path / "onlinecal" / "core" / "_compile.py"
    text = kept.read_text().replace(", state_of(Path(__file__).parents[1])\n", f", {STATE!r}\n")
    assert STATE in text
    kept.write_text(text)
    for edits in EDITS.values():
        for name, pattern, before, after in edits:
            file = tmp_path / "onlinecal" / name
            pieces = re.split(f"({pattern})", file.read_text(), flags=re.M | re.S)
            assert len(pieces) == 3, name
            file.write_text(before.join(pieces[:2]) + after + pieces[2])
    (tmp_path / "all.toml").write_text(SCENARIO)
    done = subprocess.run(
        [sys.executable, "-c", TYPED, *LINES], cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    *data, _, totals, checked, _ = done.stdout.split("\0")
    every, *shown = map(json.loads, data)
    assert set(NAMES.items()) <= {(row["kind"], row["name"]) for row in every}
    assert [(entry["kind"], entry["name"]) for entry in shown] == list(NAMES.items())
    assert all(entry["documentation"] for entry in shown)
    assert "newcomer" in totals
    assert "arrival" in totals
    assert "FAILS" not in checked
    assert checked.count("ok  ") >= 18
