"""Output on any terminal: of 40 columns or 80, without Unicode, with no number that is cut."""

import json
import re

import numpy as np
import pytest

from onlinecal.report.tables import broken
from tests.command_line import onlinecal
from tests.whole.test_commands import FILES

NARROW = """
runs = 4
horizons = [50, 100, 200]
measures = ["ece", "cdl", "scdl", "kernel_ce"]
tasks = ["quadratic", "umbrella"]
forecasters = ["forecast_hedging", "constant"]
natures = ["drift", "contrarian", { name = "switch", first = "random_walk", then = "greedy" }]
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A study with infinite totals and labels beyond ASCII, one with long names, and a log of forecasts."""
    folder = tmp_path_factory.mktemp("endless")
    (folder / "e.toml").write_text(FILES["e.toml"])
    (folder / "narrow.toml").write_text(NARROW)
    rng = np.random.default_rng(0)
    p = rng.random((2, 120)).round(2)
    table = zip(*p, (rng.random(120) < p[0]).astype(int), range(120), strict=True)
    text = "".join(f"{','.join(map(str, row))},a group of a long name {row[-1] % 3}\n" for row in table)
    (folder / "x.csv").write_text("first,second,y,t,by\n" + text)
    for name in ("e", "narrow"):
        onlinecal(f"run {name}.toml", cwd=folder)
    return folder


DB = "results/e.db"
MEASURE = "measure x.csv -y y -f first -f second --by by --time t --draws 20 -m smooth_ce -m distance_upper -m brier"
LINES = (
    "run narrow.toml --resume", "run narrow.toml --dry-run", f"status {DB}", f"compare {DB} --all",
    f"compare {DB} --ranking", f"compare {DB} --pareto ece log_loss", f"compare {DB} --paired", "list",
    "show almost_one_step_ahead", "run --help", MEASURE,
)  # fmt: skip


def width(said):
    """Of all lines but those of code."""
    return max(len(line.rstrip()) for line in said.splitlines() if not line.startswith(">>>"))


@pytest.mark.parametrize("line", LINES)
def test_eighty_columns_of_ascii_are_enough(folder, line):
    wide = onlinecal(line, cwd=folder, columns=80)
    plain = onlinecal(line, cwd=folder, columns=80, encoding="ascii")
    assert max(map(width, (wide.stdout, plain.stdout))) <= 80
    assert plain.stdout.isascii()
    assert plain.stderr == ""
    assert plain.stdout.count("?") == wide.stdout.count("?")  # of exponents that cannot be told
    for symbol, word in (("√T", "sqrt T"), ("±", "+-"), ("≤", "<=")):
        assert (symbol in wide.stdout) <= (word in plain.stdout)


def tokens(text):
    """All that has a digit, from point to point of a table: letters, digits and what stands in formulas."""
    return set(re.findall(r"[^\s,;:…]*\d[^\s,;:…]*", text))


def test_only_words_longer_than_a_line_are_broken_within():
    assert broken("ab cd[ef] g", 6) == "ab\ncd[ef]\ng"
    assert broken("ab cd[efg] h", 6) == "ab cd[\nefg] h"


@pytest.mark.parametrize("columns", [40, 60])
def test_narrow_tables_are_split_and_whole(folder, columns):
    for line in ("list rates", "list natures", "list measures"):
        said = onlinecal(line, cwd=folder, columns=columns).stdout
        assert width(said) <= columns
        found = json.loads(onlinecal(f"{line} --json", cwd=folder).stdout)
        assert {word for row in found for word in f"{row['summary']} {row['known']}".split()} <= set(
            said.split()
        )
    wide, narrow = (onlinecal(MEASURE, cwd=folder, columns=each).stdout for each in (120, columns))
    assert (width(wide) <= 80, width(narrow) <= columns) == (True, True)
    assert tokens(wide) == tokens(narrow)
    solved = onlinecal("solve --m 2 --horizon 6", cwd=folder, columns=columns).stdout
    assert width(solved) <= columns
    assert re.search(r"value +\d+/\d+\s+≈ \d\.\d{6,}", solved)


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_terminal_that_cannot_show_everything(folder, encoding):
    assert onlinecal("compare --help", cwd=folder, encoding=encoding, errors="replace").stderr == ""
    # A "?" would be another name: JSON has escapes.
    said = onlinecal(f"compare {DB} --measure ece --json", cwd=folder, encoding=encoding).stdout
    assert {row["forecaster"] for row in json.loads(said)} == {"sûr × ±", "constant"}
    refused = onlinecal("compare results/é.db", cwd=folder, rc=2, encoding=encoding).stderr
    assert "no such results file" in refused
    assert refused.count("\n") == 1
