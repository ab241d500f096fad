"""What commands print on terminals of 40 and 60 columns: lines that fit, and no number that is cut."""

import json
import re

import numpy as np
import pytest

from onlinecal.checks.conformance import Finding
from onlinecal.checks.guarantees import GuaranteeCheck, Report
from onlinecal.core.words import fixed
from onlinecal.forecasters import ForecastHedging
from onlinecal.growth import fit_growth
from onlinecal.growth.words import lines
from onlinecal.report.console import print_check
from tests.command_line import onlinecal

WIDTHS = [40, 60]


def numbers(text):
    """All that has a digit, from point to point of a table: letters, digits and what stands in formulas."""
    return set(re.findall(r"[^\s,;:…]*\d[^\s,;:…]*", text))


@pytest.mark.parametrize("columns", WIDTHS)
@pytest.mark.parametrize(
    "arguments", [("list", "rates"), ("list", "natures"), ("list", "measures")], ids=" ".join
)
def test_lists_are_whole(arguments, columns, tmp_path):
    """Every word of every row of the JSON is there, none of them shortened."""
    said = onlinecal(*arguments, cwd=tmp_path, columns=columns).stdout
    assert max(map(len, said.splitlines())) <= columns
    words = said.split()
    for row in json.loads(onlinecal(*arguments, "--json", cwd=tmp_path).stdout):
        for word in f"{row['summary']} {row['known']}".split():
            assert word in words


@pytest.mark.parametrize("columns", WIDTHS)
def test_a_report_of_guarantees_has_all_its_columns(columns, capsys, monkeypatch):
    guarantee = ForecastHedging().guarantees[0]
    checked = [
        GuaranteeCheck("forecast_hedging", opponent, guarantee, ratio, at, True)
        for opponent, ratio, at in (
            ("contrarian", 0.7654, 1200),
            ("a rather long name of a nature", 0.123, 98_765),
        )
    ]
    print_at = {}
    for width in (120, columns):
        monkeypatch.setenv("COLUMNS", str(width))
        print_check(Report(tuple(checked), (("forecast_hedging", Finding("its state grows like O(m)", "")),)))
        print_at[width] = capsys.readouterr().out
    said = print_at[columns]
    assert max(map(len, said.splitlines())) <= columns
    for part in ("0.7654", "1,200", "contrarian", "holds against 2", "forecast_hedging"):
        assert part in " ".join(said.split())
        assert part in print_at[120]


@pytest.mark.parametrize("columns", WIDTHS)
def test_measured_tables_are_split_and_have_every_number(columns, tmp_path):
    rng = np.random.default_rng(0)
    p = rng.random((2, 120)).round(2)
    rows = zip(*p, (rng.random(120) < p[0]).astype(int), [f"a group of a long name {i % 3}" for i in range(120)],
               range(120), strict=True)  # fmt: skip
    (tmp_path / "x.csv").write_text(
        "first,second,y,by,t\n" + "".join(",".join(map(str, row)) + "\n" for row in rows)
    )
    asked = ("measure", "x.csv", "-y", "y", "-f", "first", "-f", "second", "--by", "by", "--time", "t", "--draws", "20",
             "-m", "smooth_ce", "-m", "distance_upper", "-m", "brier")  # fmt: skip
    wide, narrow = (onlinecal(*asked, cwd=tmp_path, columns=width).stdout for width in (120, columns))
    assert max(map(len, wide.splitlines())) <= 80
    assert max(map(len, narrow.splitlines())) <= columns
    assert numbers(wide) == numbers(narrow)


@pytest.mark.parametrize("columns", WIDTHS)
def test_what_is_solved_fits(columns, tmp_path):
    said = onlinecal("solve", "--m", 2, "--horizon", 6, cwd=tmp_path, columns=columns).stdout
    assert max(map(len, said.splitlines())) <= columns
    assert re.search(r"value +\d\.\d{6,}", said)


def test_zeros_have_no_minus():
    assert (fixed(-0.0001), fixed(-0.004, 3), fixed(-0.0)) == ("0.00", "-0.004", "0.00")
    times = np.array([100, 200, 400, 800])
    level = fit_growth(times, 5.0 * times[:, None] ** -1e-5, fresh=True)
    assert lines(level) == ["T^0.00", "[0.00, 0.00]"]
    assert str(level) == "0.00 [0.00, 0.00]"
