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

FORECASTER = '''

@dataclass(frozen=True)
class Newcomer(Forecaster):
    """Says the same as ever.

    Parameters
    ----------
    p : float, default 0.5
    """

    deterministic: ClassVar[bool | None] = True
    needs_horizon: ClassVar[bool | None] = False
    safe_under_delay: ClassVar[bool | None] = True
    memory: ClassVar[str | None] = "O(1)"

    p: float = 0.5

    def start(self, horizon: int, stream: Stream) -> steps.Forecaster:
        """A player that never changes."""
        return Constant(0.9 * self.p).start(horizon, stream)
'''

MEASURE = '''@of_gamma
def absolute_bias(gamma: JointDistribution, *, power: float = 1.0) -> float:
    """The absolute total bias, to a power."""
    return abs(float(gamma.residuals.sum())) ** power


'''

#: what is added → (file, pattern that stands in it once, text before that, text after it) of each edit
EDITS = {
    "forecaster": [
        ("forecasters/baselines.py", r"\Z", FORECASTER, ""),
        ("forecasters/__init__.py", r"^#: name",
         "from onlinecal.forecasters.baselines import Newcomer as Newcomer\n", ""),
    ],
    "measure": [
        ("measures/scores.py", r"^MEASURES = \(", MEASURE,
         'row(absolute_bias, "|bias| | Bri50 | O(k) | yes | yes | no"), '),
    ],
}  # fmt: skip
SCENARIO = """
horizons = [50, 100]
runs = 2
measures = ["absolute_bias", { name = "absolute_bias", power = 2 }]
forecasters = ["newcomer", { name = "newcomer", p = 0.25 }, { name = "rounded", m = 4, of = { name = "newcomer" } }]
natures = ["drift"]
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
study = oc.play(oc.forecasters.Newcomer(1.0), "contrarian", horizon=10, runs=1, measures=["absolute_bias"])
assert oc.measures.absolute_bias is absolute_bias
assert abs(study.curve("absolute_bias").mean[-1] - 9.0) < 1e-9, study.curve("absolute_bias").mean
"""
NAMES = {"forecasters": "newcomer", "measures": "absolute_bias"}
LINES = (
    "list --json", *(f"show {name} --json" for name in NAMES.values()), "run all.toml",
    "compare results/all.db --measure absolute_bias(power=2)", "check newcomer drift --horizon 100 --runs 2",
)  # fmt: skip


@pytest.mark.slow
def test_one_file_and_one_list(tmp_path):
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
    assert "FAILS" not in checked
    assert checked.count("ok  ") >= 18
