"""The end of a run of very many cells: the extremes of what was played, each as its definition says."""

import numpy as np
import pytest

import onlinecal as oc
from onlinecal.core.errors import InvalidParameter
from onlinecal.report import totals as overviews
from onlinecal.report.pictures import draw
from onlinecal.report.totals import long, overview, print_overview, ways_on
from tests.command_line import onlinecal
from tests.report.made import INF, TIMES, cell, study


def table(means, measures=("ece",)):
    """A study of one run in which forecaster i has the total means[i, j] against nature j."""
    return study(*(
        cell(f"f{i}", {name: [m] for name in measures}, f"n{j}")
        for i, row in enumerate(means) for j, m in enumerate(row)
    ))  # fmt: skip


def test_extremes_are_those_of_the_means(seed):
    means = np.random.default_rng(seed).random((7, 5))
    found = overview(table(means), "ece")
    order = sorted(range(7), key=lambda i: (means[i].max(), np.median(means[i])))
    assert [*found.forecasters.index] == [f"f{i}" for i in order]
    for who, row in found.forecasters.iterrows():
        own = means[int(who[1:])]
        assert (row["least"], row["median"], row["largest"]) == (own.min(), np.median(own), own.max())
        assert (row["easiest"], row["hardest"]) == (f"n{own.argmin()}", f"n{own.argmax()}")
    order = sorted(range(5), key=lambda j: (-means[:, j].min(), -np.median(means[:, j])))
    assert [*found.natures.index] == [f"n{j}" for j in order]
    assert all(row["easiest"] == f"f{means[:, int(n[1:])].argmin()}" for n, row in found.natures.iterrows())
    assert (found.pairs, found.shorter, found.unknown, found.horizon) == (35, 0, 0, 100)


def test_means_are_over_runs_and_ties_keep_the_order_of_the_study():
    found = overview(study({("b", "n"): [1, 3], ("a", "n"): [2, 2], ("c", "n"): [0, 0]}), "ece")
    assert [*found.forecasters.largest.items()] == [("c", 0.0), ("b", 2.0), ("a", 2.0)]


def test_games_of_other_lengths_and_totals_that_have_no_mean_are_counted_and_left_out(capsys):
    some = study(
        cell("a", [5, 7], "n"), cell("a", [900, 900], "short", (50,)), cell("b", [INF, -INF], "n"),
        cell("c", [INF, 1], "n"),
    )  # fmt: skip
    found = overview(some, "ece")
    assert found.forecasters.largest.to_dict() == {"a": 6.0, "c": np.inf}
    assert [*found.natures.index] == ["n"]
    assert (found.pairs, found.shorter, found.unknown) == (2, 1, 1)
    print_overview(some, "title", ["ece"])
    printed = capsys.readouterr().out
    assert "ece: without 1 pair played to a shorter T only" in printed
    assert "ece: without 1 pair with infinite totals of both signs" in printed
    # A pair of several horizons is one pair.
    found = overview(study(cell("a", [1], times=(50,)), cell("a", [2]), cell("b", [3])), "ece")
    assert (found.pairs, found.shorter, [*found.forecasters.largest]) == (2, 0, [2.0, 3.0])


def test_of_many_rows_both_ends_are_printed_and_the_rest_is_counted(capsys):
    many, names = 2 * overviews.SHOWN + 2, [f"m{i}" for i in range(10)]
    print_overview(table(np.arange(1.0, many + 1)[:, None] + np.zeros(3)), "a title", ["ece"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["a title", f"{many} forecasters against 3 natures, 1 run: {3 * many} cells"]
    shown = [line.split()[0] for line in lines if line.startswith(" f") and "forecaster" not in line]
    assert shown == [f"f{i}" for i in (*range(5), *range(many - 5, many))]
    assert any(line.startswith(" … 2 more") for line in lines)
    print_overview(table(np.ones((many - 1, 1))), "a title", ["ece"])
    assert "more" not in capsys.readouterr().out
    print_overview(table(np.ones((2, 2)), measures=names), "title", names)
    printed = capsys.readouterr().out
    assert ("m2: natures by" in printed, "m3: natures by" in printed) == (True, False)
    assert "measured, too: m3, m4, m5, m6, m7, and 2 more" in printed


def test_growth_is_fitted_of_what_is_shown_only(monkeypatch, capsys):
    asked, exponent = [], oc.Curve.exponent

    def noted(curve):
        asked.append(curve)
        return exponent(curve)

    monkeypatch.setattr(oc.Curve, "exponent", noted)
    cells = [
        cell(f"f{i}", np.sqrt(TIMES) * (1 + i + j), f"n{j}", TIMES) for i in range(20) for j in range(20)
    ]
    print_overview(study(*cells), "title", ["ece"])
    assert len(asked) == 4 * overviews.SHOWN
    assert "T^0.50" in capsys.readouterr().out


def test_a_run_ends_with_them_where_there_are_very_many_totals(tmp_path, monkeypatch):
    scenario, path = tmp_path / "s.toml", tmp_path / "the results.db"
    scenario.write_text(
        'runs = 1\nhorizon = 4\nmeasures = ["ece"]\nforecasters = [{ name = "constant", p = { each = [0.25, 0.5] } }]\n'
        'natures = [{ name = "bernoulli", q = { each = [0.5, 0.75] } }]\n'
    )
    whole = onlinecal("run", scenario, "-o", path, cwd=tmp_path).stdout
    assert f"picture: onlinecal plot '{path}'" in whole
    monkeypatch.setattr(overviews, "LONG", 3)
    short = onlinecal("run", scenario, "-o", path, "--resume", cwd=tmp_path).stdout
    assert "forecasters by their largest total over the natures" in short
    assert short.endswith(f"\nresults: {path}\n{ways_on(path, 'ece')}\n")
    assert f"onlinecal export '{path}' -o '{tmp_path / 'the results.csv'}'" in short
    monkeypatch.setattr(overviews, "LONG", 4)
    assert onlinecal("run", scenario, "-o", path, "--resume", cwd=tmp_path).stdout == whole


def test_what_is_long_is_told_by_pairs_and_measures():
    wide = table(np.ones((25, 40)))
    assert (long(wide, ["ece"]), long(wide, ["ece", "cdl"])) == (False, True)
    for kind in ("curves", "runs", "slopes"):
        with pytest.raises(
            InvalidParameter, match="1,001 curves; expected at most 1,000, chosen by --forecaster"
        ):
            draw(table(np.ones((1001, 1))), kind)
