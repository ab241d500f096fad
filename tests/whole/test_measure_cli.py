"""`onlinecal measure`, end to end, as a user would use it; and the example that ships."""

import json
import re
import subprocess
import sys

import numpy as np
import pytest

import onlinecal as oc
from tests.command_line import onlinecal
from tests.readme import README

EXAMPLE = README.parent / "scenarios" / "forecasts"


def test_the_example_from_file_to_table_and_page(tmp_path):
    done = onlinecal(
        "measure", EXAMPLE / "rain.csv", "--time", "date", "--draws", 10, "--html", "rain.html", cwd=tmp_path
    )
    assert done.stderr == ""
    assert max(map(len, done.stdout.splitlines())) <= 80 + len(str(EXAMPLE))
    for words in ("1,095 rows", "== climatology", "== persistence", "== Side by side", "wrote rain.html"):
        assert words in done.stdout
    assert (tmp_path / "rain.html").read_text().count("<figure>") == 4
    found = json.loads(
        onlinecal(
            "measure", EXAMPLE / "rain.csv", "-f", "persistence", "--draws", 0, "--json", cwd=tmp_path
        ).stdout
    )
    rows = np.genfromtxt(EXAMPLE / "rain.csv", delimiter=",", names=True, dtype=None, encoding=None)
    gamma = oc.JointDistribution.from_samples(rows["persistence"], rows["rain"])
    measures = {row["name"]: row["value"] for row in found["forecasts"][0]["measures"]}
    assert measures["ece"] == oc.measures.ece(gamma)
    assert measures["brier"] == oc.measures.brier(gamma)
    assert tuple(found["forecasts"][0]["brier"].values()) == oc.decomposition(gamma)


def test_the_example_is_made_by_its_command(tmp_path):
    script = tmp_path / "make_rain.py"
    script.write_text((EXAMPLE / "make_rain.py").read_text())
    subprocess.run([sys.executable, script], check=True, cwd=README.parent, timeout=120)
    assert (tmp_path / "rain.csv").read_bytes() == (EXAMPLE / "rain.csv").read_bytes()


def test_standard_input_and_options(tmp_path):
    text = "when,chance,happened\n" + "".join(f"{i},{30 + i},{'yes' if i % 3 else 'no'}\n" for i in range(60))
    done = onlinecal(
        "measure", "-", "--forecast", "chance", "--percent", "--positive", "yes", "-m", "smooth_ce", "--draws", 20,
        cwd=tmp_path, input=text,
    )  # fmt: skip
    assert "standard input: 60 rows, forecasts 'chance', outcome 'happened'" in done.stdout
    assert "Outcome 1 is 'yes' in 'happened', and 0 is 'no'" in done.stdout
    table = done.stdout.partition("Calibration\n")[2].partition("\n\n")[0]
    assert re.findall(r"^(\w+) ", table, re.M)[:2] == ["measure", "smooth_ce"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["no.csv"], "no.csv: no such file"),
        (["f.csv", "-f", "q"], "f.csv has no column 'q'; known: p, y"),
        (["f.csv", "--html", "x.png"], "x.png: expected a name that ends in .html"),
        (["f.csv", "-m", "smoth_ce"], "unknown measure 'smoth_ce'; did you mean 'smooth_ce'?"),
        (
            ["f.csv", "--draws", "-1"],
            "measure: draws = -1; expected an integer of at least 0 and at most 100000",
        ),
        (["f.csv", "--level", "1.5"], "evaluate: level = 1.5; expected a number in [0, 1]"),
        (
            ["bad.csv", "--html", "x.html"],
            "bad.csv, line 3: column 'p' holds '7'; expected a probability in [0, 1]; these look like per cent: "
            "--percent",
        ),
        (
            ["f.csv", "--time", "p"],
            "f.csv: cannot tell which column has the forecasts: no column is named so or holds numbers between 0 "
            "and 1; expected --forecast COLUMN, of: 'p', 'y'",
        ),
    ],
)
def test_mistakes_are_one_line_and_leave_nothing_behind(tmp_path, arguments, said):
    (tmp_path / "f.csv").write_text("p,y\n0.5,1\n0.25,0\n")
    (tmp_path / "bad.csv").write_text("p,y\n0.5,1\n7,0\n")
    done = onlinecal("measure", *arguments, cwd=tmp_path, rc=2)
    assert done.stderr == f"error: {said}\n"
    assert done.stdout == ""
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.csv", "f.csv"]


def test_a_page_that_cannot_be_written_is_said(tmp_path):
    (tmp_path / "f.csv").write_text("p,y\n0.5,1\n0.25,0\n")
    (tmp_path / "file").write_text("")
    said = onlinecal("measure", "f.csv", "--draws", 0, "--html", "file/x.html", cwd=tmp_path, rc=2).stderr
    assert said.startswith("error: file/x.html cannot be written")
