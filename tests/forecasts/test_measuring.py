"""Reports of logs: by group and over time, on a grid, in parts; and what is cautioned against."""

import numpy as np
import pandas as pd
import pytest

import onlinecal as oc
from onlinecal.core.errors import InvalidData, InvalidParameter
from onlinecal.core.files import Table
from onlinecal.forecasts.cautions import cautions, duplicates
from onlinecal.forecasts.evaluation import evaluate
from onlinecal.forecasts.inference import Drift, calibration_test, holm
from onlinecal.forecasts.measuring import Settings, measure_log
from onlinecal.forecasts.reading import Asked, Log, read_log
from onlinecal.forecasts.source import report_of
from onlinecal.forecasts.thresholds import worst_threshold
from onlinecal.measures import MEASURES
from onlinecal.report.measured import decision

FAST = ("smooth_ce", "cutoff_ce", "ece", "brier", "cdl")


def frame(n, seed=0, digits=2):
    rng = np.random.default_rng(seed)
    p = np.round(rng.random(n), digits) if digits else rng.random(n)
    y = (rng.random(n) < p**1.2).astype(int)
    site = np.array(["north", "south", "east"])[rng.integers(0, 3, n)]
    return pd.DataFrame(
        {"day": pd.date_range("2001-01-01", periods=n).strftime("%Y-%m-%d"), "p": p, "q": np.round(0.9 * p, 6),
         "site": site, "y": y}
    )  # fmt: skip


def report(tmp_path, table, settings=None, **asked):
    path = tmp_path / "f.csv"
    table.to_csv(path, index=False)
    return measure_log(
        read_log(Table(str(path)), Asked(**asked)), settings or Settings(draws=20, measures=FAST)
    )


def test_a_column_is_what_its_parts_say(tmp_path):
    table = frame(600)
    found = report(tmp_path, table, forecasts=("p",))
    (column,) = found.columns
    gamma = oc.JointDistribution.from_samples(table["p"], table["y"])
    wanted = evaluate(gamma, measures=FAST, bootstrap=20, reference=20)
    assert str(column.evaluation) == str(wanted)
    assert column.brier == oc.decomposition(gamma)
    assert column.log == oc.decomposition(gamma, "log")
    assert column.threshold == worst_threshold(gamma)
    assert 0.0 < column.by_chance < column.threshold.loss
    assert column.threshold_p == 1 / 21
    assert column.advises
    assert found.differences == []
    assert (column.groups, column.blocks, column.drift) == ([], [], None)


@pytest.mark.parametrize("settings", [{}, {"distinct": 50, "grid": 16}, {"grid": 3, "distinct": 1}])
def test_calibrated_forecasts_lead_to_no_advice(tmp_path, seed, settings):
    """Advice on 60 calibrated logs, each with probability 1/20 at most; 16 of 60 with 2e-8. Also on a coarse grid."""
    rng, low = np.random.default_rng([seed, 5]), 0
    for _ in range(60):
        p = rng.random(100) ** 3
        log = Log("f", {"p": p}, (rng.random(100) < p).astype(float), "y")
        (column,) = measure_log(log, Settings(draws=19, measures=("brier",), **settings)).columns
        low += column.advises
        assert ("would be better" in decision(column)) == column.advises
    assert low < 16


def test_groups_and_stretches_of_time(tmp_path):
    table = frame(800)
    found = report(tmp_path, table, forecasts=("p", "q"), by=("site",), time="day")
    column = found.columns[1]
    assert [part.name for part in column.groups] == ["east", "north", "south"]
    for part in column.groups:
        rows = table[table["site"] == part.name]
        gamma = oc.JointDistribution.from_samples(rows["q"], rows["y"])
        assert part.rows == len(rows)
        assert part.forecast == pytest.approx(rows["q"].mean(), rel=1e-12)
        assert part.event == pytest.approx(rows["y"].mean(), rel=1e-12)
        assert part.error == pytest.approx(
            np.sqrt((rows["q"] * (1 - rows["q"])).sum()) / len(rows), rel=1e-12
        )
        assert part.brier == pytest.approx(((rows["q"] - rows["y"]) ** 2).mean(), rel=1e-12)
        assert part.p_value == calibration_test(gamma, 0)
    assert [part.adjusted for part in column.groups] == holm([part.p_value for part in column.groups])
    assert sum(part.rows for part in column.blocks) == 800
    assert column.blocks[0].name == "2001-01-01 to 2001-04-10"
    assert column.blocks[-1].name.endswith(table["day"].iloc[-1])
    assert found.lags == 9
    assert [d.score for d in found.differences] == ["brier", "log"]


def test_a_stretch_of_time_parts_no_day(tmp_path):
    table = pd.DataFrame({"day": np.repeat(["2020-01-01", "2020-01-02"], [9, 1]), "p": 0.5, "y": [0, 1] * 5})
    blocks = report(tmp_path, table, time="day", forecasts=("p",)).columns[0].blocks
    assert [(part.name, part.rows) for part in blocks] == [("2020-01-01", 9), ("2020-01-02", 1)]


def test_weights_are_as_rows_that_are_there_so_often(tmp_path):
    table = frame(300)
    times = np.random.default_rng(1).integers(0, 4, 300)
    weighted = report(tmp_path, table.assign(w=times), weight="w", forecasts=("p",), by=("site",))
    repeated = report(tmp_path, table.iloc[np.repeat(np.arange(300), times)], forecasts=("p",), by=("site",))
    a, b = weighted.columns[0], repeated.columns[0]
    assert a.brier.score == pytest.approx(b.brier.score, rel=1e-12)
    assert a.threshold.loss == pytest.approx(b.threshold.loss, rel=1e-9)
    assert [part.event for part in a.groups] == pytest.approx([part.event for part in b.groups])
    assert any("as much as" in said for said in a.cautions)


def test_many_predictions_go_to_a_grid_with_brackets(tmp_path):
    table = frame(800, digits=0)
    few = Settings(draws=20, distinct=500, grid=256)
    (column,) = report(tmp_path, table, few, forecasts=("p",)).columns
    gamma = oc.JointDistribution.from_samples(table["p"], table["y"])
    exact = evaluate(gamma)
    assert column.gamma.levels == 800
    assert [row.name for row in column.evaluation.rows] == [row.name for row in exact.rows]
    for row, true in zip(column.evaluation.rows, exact.rows, strict=True):
        low, high = row.ends
        # Where the value itself is a bracket, the two overlap.
        assert low <= true.ends[1] + 1e-12, row.name
        assert high >= true.ends[0] - 1e-12, row.name
        if row.measure.modulus is None:
            assert row.ends == true.ends
            assert row.p_value is None
        else:
            assert high - low > 0.0
            assert row.interval is None or (row.interval[0] <= low and high <= row.interval[1])
    tails = {row.name: row.p_large_n for row in column.evaluation.rows if row.p_large_n is not None}
    assert set(tails) == {"cutoff_ce", "step_ce"}
    assert any("moved to the nearest i/256" in note for note in column.evaluation.notes)


def test_what_evaluate_says_of_moved_predictions():
    gamma = oc.JointDistribution.from_samples(*[frame(500, digits=0)[c] for c in "py"])
    moved, distance = gamma.round(64)
    found = evaluate(moved, moved=(64, distance), bootstrap=50)
    assert set(found.refused) == {name for name, m in MEASURES.items() if m.modulus is None}
    plain = evaluate(moved, bootstrap=50, measures=["smooth_ce"]).rows[0]
    row = next(row for row in found.rows if row.name == "smooth_ce")
    wider = MEASURES["smooth_ce"].modulus(0.5 / 64)
    assert row.interval[1] == pytest.approx(plain.interval[1] + wider, abs=1e-15)
    assert "not given: ece" in " ".join(found.notes)
    with pytest.raises(InvalidParameter, match="moved"):
        evaluate(moved, moved=(64, 0.1))


def test_so_many_rows_are_no_reason_to_stop():
    """smooth_ece looks at scales that shrink with n, down to the least at which it is found."""
    n = 10**10
    gamma = oc.JointDistribution.from_counts([0.2, 0.6], [n, n], [0.2001 * n, 0.6 * n])
    found = evaluate(gamma, bootstrap=20, reference=20)
    row = next(row for row in found.rows if row.name == "smooth_ece")
    assert row.interval[0] <= row.value <= row.interval[1] < 0.01


# ---------------------------------------------------------------- cautions


def said_of(p, y, **more):
    return " | ".join(cautions(oc.JointDistribution.from_samples(p, y), **more))


def test_each_caution_is_said_where_it_holds_and_nowhere_else():
    rng = np.random.default_rng(0)
    p = np.round(rng.beta(2, 2, 4000), 4)[:4000]
    p = np.clip(np.round(p * 300) / 300, 0.01, 0.99)
    y = (rng.random(4000) < p).astype(int)
    assert said_of(p, y) == ""
    assert "99 rows only" in said_of(p[:99], y[:99])
    assert "rows only" not in said_of(p[:100], y[:100])
    rare = np.zeros(4000, int)
    rare[:29] = 1
    assert "only 29 events" in said_of(p, rare)
    rare[29] = 1
    assert "events" not in said_of(p, rare)
    assert "there are no rows without the event" in said_of(p, np.ones(4000))
    assert "multiples of 1/20 (" in said_of(np.round(p * 20) / 20, y)
    assert "4,000 different forecasts in 4,000 rows" in said_of(rng.random(4000), y)
    assert "all forecasts are 0.5" in said_of(np.full(4000, 0.5), y)
    assert "the log score is infinite" in said_of(np.where(p < 0.3, 0.0, p), y)
    wandering = Drift(2.0, 0.01, 0.2, 0.001)
    said = said_of(p, y, drift=wandering)
    assert "changes over time (p = 0.01)" in said
    assert "correlation 0.20" in said
    assert "too optimistic" in said
    assert said_of(p, y, drift=Drift(0.5, 0.9, 0.0, 0.9)) == ""
    assert "as much as 1,000 rows" in said_of(p, y, samples=1000.0)
    # Numbers in sentences: one is one, and of rows with weights there need not be a whole one.
    assert "1 row only" in said_of([0.3], [0])
    assert "only 1 event: " in said_of(p, np.arange(4000) == 7)
    light = oc.JointDistribution.from_samples([0.3, 0.6], [0, 1], weights=[200.0, 0.3])
    assert any(said.startswith("only 0.3 events: ") for said in cautions(light))


def test_forecasts_on_a_grid_tell_no_finer_differences():
    """All of them are multiples of 1/m, each another one, so that two that differ do so by 1/m at least."""
    y = np.arange(200) % 2
    for m in (4, 10, 100):
        p = np.arange(200) % (m + 1) / m
        assert f"multiples of 1/{m} ({m + 1} values): they tell no finer differences" in said_of(p, y)
        assert np.diff(np.unique(p)).min() > 0.999 / m
        assert "multiples" in said_of(np.nextafter(p, 0.5), y)  # rounding of k/m
    # Forecasts that differ by less do tell finer differences, however small these are.
    assert "multiples" not in said_of(np.where(y == 0, 0.25, 0.25 + 1e-15), y)
    assert "multiples" not in said_of(1e-11 * (1 + np.arange(200) % 3), y)


def test_cautions_about_weights_are_of_rows(tmp_path):
    """Weights that are all equal tell nothing: their sum may be more or less than the number of rows."""
    table = frame(400)
    plain = report(tmp_path, table, forecasts=("p",)).columns[0].cautions
    for weight in (1e-3, 1.0, 1e6):
        weighted = report(tmp_path, table.assign(w=weight), forecasts=("p",), weight="w").columns[0].cautions
        assert weighted == plain
    uneven = table.assign(w=1e-4 * np.where(np.arange(400) < 200, 100.0, 1.0))
    said = report(tmp_path, uneven, forecasts=("p",), weight="w").columns[0].cautions
    assert said[0] == "weights differ: the rows tell as much as 204 rows of equal weight"
    # Four rows of weight 1/4 on each of two levels are no levels of one row each.
    few = oc.JointDistribution.from_samples([0.3] * 4 + [0.77123] * 4, [0, 1] * 4, weights=[0.25] * 8)
    assert "cannot be estimated" not in " | ".join(cautions(few, samples=8.0, rows=8))
    alone = oc.JointDistribution.from_samples(np.linspace(0.1, 0.87123, 8), [0, 1] * 4, weights=[7.0] * 8)
    assert "8 different forecasts in 8 rows" in " | ".join(cautions(alone, samples=8.0, rows=8))
    nearly = oc.JointDistribution.from_samples([0.3, 0.7] * 50, [0, 1] * 50, weights=[1.0, 1.1] * 50)
    assert (
        cautions(nearly, samples=99.7, rows=100)[0]
        == "all forecasts are multiples of 1/10 (2 values): they tell no finer differences"
    )


def test_copies_are_cautioned_against_where_chance_does_not_make_them():
    grid = oc.JointDistribution.from_counts([0.1, 0.5], [50, 50], [5, 25])
    distinct = oc.JointDistribution.from_samples(np.linspace(0, 1, 50), np.arange(50) % 2)
    assert duplicates(3, 100, False, [grid]) == []
    assert duplicates(0, 100, True, [grid]) == []
    assert "3 of 100 rows are equal" in duplicates(3, 100, True, [grid])[0]
    assert "3 of 100 rows are equal" in duplicates(3, 100, False, [distinct])[0]


def test_small_groups_are_named(tmp_path):
    table = frame(200)
    table.loc[:4, "site"] = "west"
    assert any("'west'" in said for said in report(tmp_path, table, by=("site",), forecasts=("p",)).cautions)
    table["site"] = [str(i) for i in range(200)]
    assert report(tmp_path, table, by=("site",), forecasts=("p",)).columns[0].groups[0].rows == 1
    many = pd.concat([frame(200)] * 6, ignore_index=True).assign(site=range(1200))
    with pytest.raises(InvalidData, match="1200 different values; expected at most 1000 groups"):
        report(tmp_path, many, by=("site",), forecasts=("p",))


# ---------------------------------------------------------------- one row, and too many


@pytest.mark.parametrize("row", ["0.5,1", "0,0", "1,1", "0,1"])
def test_one_row_is_measured(tmp_path, row):
    (tmp_path / "one.csv").write_text(f"p,y\n{row}\n")
    found = report_of(str(tmp_path / "one.csv"), Asked(), Settings(draws=20))
    assert found.rows == 1
    assert found.columns[0].cautions[0].startswith("1 row only: ")
