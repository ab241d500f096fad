"""The report of forecasts as text and as data: every number in it, in 80 columns, whatever things are called."""

import json
import math
import re
from dataclasses import replace

import numpy as np
import pytest

from onlinecal.core.files import Table
from onlinecal.logs.evaluation import DECIDING
from onlinecal.logs.measuring import Settings, measure_log
from onlinecal.logs.reading import Asked, Log, read_log
from onlinecal.logs.thresholds import Threshold
from onlinecal.measures import brier_skill
from onlinecal.report import measured, page_pictures
from onlinecal.report.decision_plot import MURPHY
from onlinecal.report.measured import (
    OF_DRAWS,
    OF_SCORES,
    data,
    decision,
    differences,
    document_of,
    estimates,
    grids,
    number,
    side_by_side,
    signed,
    span,
)
from onlinecal.report.reliability_plot import RELIABILITY
from onlinecal.report.terminal import print_json
from onlinecal.report.verdict import QUOTED, verdict

LONG = "a name of a column that nobody would ever want to write down_but_somebody_has_done_so"


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    rng = np.random.default_rng(0)
    path = tmp_path_factory.mktemp("report") / "f.csv"
    with path.open("w") as file:
        file.write(f"day,model,{LONG},site,y\n")
        for i in range(200):
            p = round(rng.random(), 2)
            site = ["<b>x</b>", LONG][i % 2]
            file.write(f"{2000 + i},{p},{round(p**2, 4)},{site},{int(rng.random() < p)}\n")
    asked = Asked(forecasts=("model", LONG), by=("site",), time="day")
    settings = Settings(draws=20, measures=("ece", "smooth_ce", "cdl", "brier", "cutoff_ce"))
    return measure_log(read_log(Table(str(path)), asked), settings)


def report_of(forecasts, outcomes, draws=0, measures=("brier",), **more):
    columns = {name: np.array(values, float) for name, values in forecasts.items()}
    log = Log("f", columns, np.array(outcomes, float), "y", **more)
    return measure_log(log, Settings(draws=draws, measures=measures))


def test_the_text_holds_every_number_of_the_tables(report):
    said = document_of(report).text()
    for column in report.columns:
        for row in column.evaluation.rows:
            cells = [span(*row.ends), "none" if row.interval is None else span(*row.interval)]
            line = next(line for line in said.splitlines() if all(cell in line for cell in cells))
            assert number(row.p_value) in line
        for part in (*column.groups, *column.blocks):
            assert all(each in said for each in (f"{part.event - part.forecast:+.3f}", f"± {part.error:.3f}"))
        flat = " ".join(said.split())
        worst = column.threshold
        named = (
            f"loses {worst.loss:.3g} per decision ({column.by_chance:.3g} by chance), {worst.better} would"
            in flat
        )
        assert named == column.advises == (column.threshold_p <= 0.05)
        assert f"(p = {column.threshold_p:.3g})" in flat
    for d in report.differences:
        assert number(d.mean) in said
        assert number(d.adjusted) in said
    (beside,) = side_by_side(report)
    assert [row[0] for row in beside.rows] == ["model", LONG]
    assert beside.headings == ["forecasts", "Brier", "MCB", "DSC", "log", "worst threshold"]
    for column, (_, *row) in zip(report.columns, beside.rows, strict=True):
        brier, log, loss = column.brier, column.log, column.threshold.loss
        numbers = (brier.score, brier.miscalibration, brier.discrimination, log.score, loss)
        assert row == [*map(number, numbers)]
    (paired,) = differences(report)
    assert [row[:4] for row in paired.rows] == [
        [f"model − {LONG}", name, number(d.mean), number(d.error)]
        for name, d in zip(("Brier", "log"), report.differences, strict=True)
    ]
    drift = report.columns[0].drift
    test = f"statistic {drift.statistic:.3g}, p = {drift.p_value:.3g}; errors of neighbouring rows have"
    assert f"{test} correlation {drift.correlation:.3g}, p = {drift.correlation_p:.3g}." in flat


def test_json_has_numbers_or_null_and_all_digits(report, capsys):
    print_json(data(report))
    found = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    column, first = report.columns[0], found["forecasts"][0]
    assert [row["name"] for row in first["measures"]] == [row.name for row in column.evaluation.rows]
    for row, true in zip(first["measures"], column.evaluation.rows, strict=True):
        assert (row["lower"], row["upper"]) == tuple(None if math.isinf(x) else x for x in true.ends)
        assert row["p_value"] == true.p_value
    assert (first["threshold"]["at"], first["threshold"]["loss"]) == (
        column.threshold.at,
        column.threshold.loss,
    )
    assert first["brier"]["miscalibration"] == column.brier.miscalibration
    assert found["differences"][0]["p_value"] == report.differences[0].p_value
    assert len(first["groups"]) == 2
    assert first["drift"]["p_value"] == column.drift.p_value


def test_json_has_one_value_of_an_exact_measure_and_two_ends_of_another():
    p = np.arange(40) * 0.37 % 1
    found = data(report_of({"p": p}, np.arange(40) % 2, measures=("brier", "distance_upper")))
    exact, other = found["forecasts"][0]["measures"]
    assert exact["value"] == exact["lower"] == exact["upper"]
    assert (other["value"], other["lower"] < other["upper"]) == (None, True)


@pytest.mark.parametrize(
    ("p", "y", "said"),
    [
        ([0.3] * 4, [0, 1, 0, 0], "All forecasts are 0.3; share of events 0.25."),
        ([0.2, 0.2, 0.4, 0.8], [0, 1, 1, 1], "3 values from 0.2 to 0.8, mean 0.4; share of events 0.75."),
    ],
)
def test_forecasts_in_a_sentence(p, y, said):
    (column,) = report_of({"p": p}, y).columns
    assert measured.about(column) == said


def test_a_log_without_draws_has_no_intervals():
    report = report_of({"p": [0.2, 0.8, 0.8]}, [0, 1, 0], measures=Settings().measures)
    assert "if calibrated" not in document_of(report).text()
    assert data(report)["forecasts"][0]["threshold"]["p_value"] is None


def pictures_of(document, title):
    (section,) = (section for section in document.sections if section.title == title)
    return next(part.content for part in section.parts if part.kind == "pictures")


def test_several_columns_are_in_one_diagram_and_bands_are_by_clusters():
    rng = np.random.default_rng(0)
    p = np.repeat(rng.random(100), 2)
    y = rng.random(200) < p
    found = report_of({"p": p, "other": p**2}, y, draws=20, clusters=np.arange(200) // 2)
    both = document_of(found, drawn=True)
    reliability, murphy = pictures_of(both, "Side by side")
    assert "bands of 95%, by clusters of rows" in reliability.svg
    assert "bands of 95%, by clusters of rows" in pictures_of(both, "p")[0].svg
    assert murphy.caption == MURPHY
    # Few levels are points and not smoothed; names are escaped, and nothing is fetched.
    alone = document_of(report_of({"<p>": [0.2, 0.8, 0.8]}, [0, 1, 0]), drawn=True)
    assert "Side by side" not in [section.title for section in alone.sections]
    levels, monotone = pictures_of(alone, "<p>")
    assert (levels.title, monotone.title) == (
        "Reliability of <p>, levels",
        "Reliability of <p>, monotone (CORP)",
    )
    assert (levels.caption, monotone.caption) == (RELIABILITY["points"], RELIABILITY["corp"])
    page = alone.html()
    assert ("<p>, levels" in page, "&lt;p&gt;, levels" in page, page.count("<figure>")) == (False, True, 2)
    assert not re.findall(r"(?:src|href|srcset)=\"(?!data:)", page)


def test_remarks_have_the_level_that_was_asked_for(report):
    at = replace(report, settings=replace(report.settings, level=0.9))
    short, full = (" ".join(measured.remarks(at, full)) for full in (False, True))
    for said, there in ((OF_DRAWS, False), ("named where p ≤ 0.1, by", False), (OF_SCORES, False),
                        ("hold together with 90 % (Bonferroni", True)):  # fmt: skip
        assert (said in short, said in full) == (there, True)


@pytest.mark.parametrize(("levels", "word"), [(20, "levels"), (21, "smoothed")])
def test_twenty_levels_are_points_and_more_are_smoothed(levels, word, undrawn):
    p = np.arange(levels) / levels
    (column,) = report_of({"p": p}, p > 0.5).columns
    first, _ = page_pictures.of_column("p", column.evaluation)
    assert first.title == f"Reliability of p, {word}"
    both = page_pictures.reliability_of({"p": column.evaluation, "q": column.evaluation}, "")
    assert both.get_label() == RELIABILITY[{"levels": "points", "smoothed": "smooth"}[word]]


@pytest.mark.parametrize("weights", [None, np.full(3000, 2.0)])
def test_groups_of_rare_events(weights):
    """Digits go by the error. With weights a few expected events have no p, and a note says so."""
    p = np.linspace(1e-5, 1.9e-4, 3000)
    groups = {"weights": weights, "groups": {"all": np.arange(3000)}, "by": "g"}
    report = report_of({"p": p}, 0.0 * p, draws=20, measures=("brier", "cutoff_ce"), **groups)
    (cells,) = grids(report, report.columns[0])[1].rows
    without = report_of({"p": p}, 0.0 * p, groups={"": np.arange(3000)}, by="g")
    assert (cells[0], grids(without, without.columns[0])[1].rows[0][0]) == ("all", "(empty)")
    assert cells[4:6] == ["-0.00010 ± 0.00018", "[-0.00010, +0.00113]"]
    assert (cells[7] == "–") == (weights is not None)


def test_logistic_recalibration_in_a_line():
    def said(one):
        if one.interval is None:
            return number(one.value)
        width = one.interval[1] - one.interval[0]
        return f"{number(one.value, width)} {span(*one.interval, width)}"

    y = np.tile([0, 1, 0, 1, 0, 1, 0, 1, 1, 0], 6)
    for p, slope in ((np.tile([0.2, 0.8], 30), True), (np.full(60, 0.4), False)):
        (column,) = report_of({"p": p}, y).columns
        large, intercept, steep = column.line
        first = f"log odds: in the large {said(large)}"
        short, (line, skill) = estimates(column, False), estimates(column, True)
        if slope:
            assert short == [f"{first}, slope {said(steep)}"]
            assert line == f"{first}, slope {said(steep)}, intercept {said(intercept)}"
        else:
            assert short == [f"{first}, no slope"]
            assert line == f"{first}, no slope, for {steep.how.removeprefix('none: ')}"
        assert skill == f"AUC {said(column.auc)}, Brier skill {number(brier_skill(column.gamma))}"


def test_differences_of_few_rows_are_not_tested():
    """A mark stands in place of the p-values, and below it what it means; JSON has null."""
    few = report_of({"p": np.full(29, 0.4), "q": np.linspace(0.1, 0.9, 29)}, np.arange(29) % 2)
    assert [row[-2:] for row in differences(few)[0].rows] == [["too few", "too few"]] * 2
    assert "Too few: fewer than 30" in differences(few)[0].notes[0]
    assert data(few)["differences"][0]["p_value"] is None
    enough = report_of({"p": np.full(30, 0.4), "q": np.linspace(0.1, 0.9, 30)}, np.arange(30) % 2)
    assert "too few" not in document_of(enough).text()


def test_no_task_is_called_the_worst_where_none_regrets_anything():
    p = np.repeat([0.0, 1.0], 40)
    reports = [report_of({"p": p}, y, 40, ("cdl",)) for y in (p, 1.0 - p)]
    right, wrong = (decision(report.columns[0]) for report in reports)
    tasks = [report.columns[0].worst_task for report in reports]
    assert [bool(task) for task in tasks] == [False, True]
    assert [data(report)["forecasts"][0]["worst_task"] for report in reports] == [None, tasks[1]]
    undrawn = [decision(report_of({"p": p}, y, 0, ("cdl",)).columns[0]) for y in (p, 1.0 - p)]
    assert ["not tested against chance" in said for said in undrawn] == [False, True]
    assert "Worst of all tasks" not in right
    assert "Worst of all tasks, swap regret 1: " in wrong


def test_a_page_of_many_columns_says_of_which_diagrams_are_drawn(undrawn, monkeypatch):
    drawn = []
    monkeypatch.setattr(page_pictures, "of_column", lambda name, found: drawn.append(name) or [])
    many = report_of({f"p{i}": [0.2, 0.8] for i in range(measured.DRAWN + 1)}, [0, 1])
    page = document_of(many, drawn=True).html()
    assert "Diagrams are drawn of the first 12 columns of 13." in page
    assert drawn == [f"p{i}" for i in range(12)]
    classes = document_of(replace(many, classes=True), drawn=True).html()
    for title, both in (("Reliability of all columns", True), ("Elementary scores of all columns", False)):
        assert (title in page, title in classes) == (True, both)
    assert "Diagrams are drawn" not in document_of(report_of({"p": [0.2, 0.8]}, [0, 1]), drawn=True).html()


def verdict_of(p, y, draws=200, shuffled=True, **more):
    mixed = np.random.default_rng(5).permutation(len(p)) if shuffled else np.arange(len(p))
    report = report_of({"p": p[mixed]}, y[mixed], draws, DECIDING, **more)
    (found,) = data(report)["forecasts"]
    said = document_of(report).text()
    assert " ".join(found["verdict"]["words"].split()) in " ".join(said.split())
    assert len(said.splitlines()) <= 30
    assert " ".join(said.split()).endswith(found["verdict"]["next"])
    return found["verdict"]


@pytest.mark.parametrize("side", ["high", "low"])
def test_the_verdict_says_of_what_is_wrong_where_what_it_costs_and_how_sure(side):
    """All forecasts of .8 are too high by .3, by exact counts; or too low, of the other outcome."""
    p, y = np.repeat([0.2, 0.8], 100), np.concatenate((np.arange(100) < 20, np.arange(100) < 50))
    at = "0.8"
    if side == "low":
        p, y, at = 1.0 - p, ~y, "0.2"
    found = verdict_of(np.round(p, 9), y)
    assert found["calibration"] == "refuted"
    assert f"(p = 0.00498): predictions of {at} (50 % of all) are too {side} by 0.3." in found["words"]
    # Half of the rows lose (.8 − .5)/.8 each; MCB is half of .3².
    assert re.search("loses 0.18[78] per decision", found["words"])
    assert "could gain 0.045 of the Brier score 0.25 on these rows" in found["words"]
    assert found["next"] == "Next: onlinecal recalibrate f --forecast p --outcome y -o f_better.csv"


def test_the_verdict_refutes_nothing_where_forecasts_are_exact_or_rows_are_few():
    """Sixty calibrated rows, and the same forecasts that are wrong, of which twelve rows are not enough to tell."""
    p, y = np.tile([0.2, 0.8], 30), np.tile([0, 1, 0, 1, 0, 1, 0, 1, 1, 0], 6)
    found = verdict_of(p, y)
    assert (found["calibration"], "Next: more rows" in found["next"]) == ("not refuted", True)
    assert "no threshold to act on loses anything" in found["words"]
    assert re.search(r"smooth_ece up to 0\.\d+ is not excluded", found["words"])
    assert verdict_of(p, 1 - y)["calibration"] == "refuted"
    assert verdict_of(p[:12], y[:12])["calibration"] == "too few"
    assert [verdict_of(p[:n], y[:n])["calibration"] for n in (29, 30)] == ["too few", "not refuted"]
    assert verdict_of(p, y, draws=0)["calibration"] == "not tested"
    clusters = {"clusters": np.arange(60) // 5, "cluster": "g"}  # 12
    found = verdict_of(p, y, **clusters)
    assert (found["calibration"], found["next"][:16]) == ("too few", "Next: at least 1")


def test_the_verdict_is_not_sure_where_rows_depend_on_each_other():
    """Each outcome stands forty times in a row. With the rows of one outcome as a cluster they are too few."""
    y = np.repeat(np.random.default_rng(0).random(12) < 0.8, 40)
    found = verdict_of(np.full(480, 0.4), y, shuffled=False)
    assert found["calibration"] == "doubtful"
    assert "--cluster COLUMN" in found["next"]
    assert verdict_of(np.full(480, 0.4), y)["calibration"] == "refuted"


def test_the_verdict_doubts_where_one_of_several_measures_refutes():
    """By Bonferroni over the measures of calibration that have a p-value, where the worst threshold tells nothing."""
    p, y = np.tile([0.2, 0.8], 30), np.tile([0, 1, 0, 1, 0, 1, 0, 1, 1, 0], 6)
    mixed = np.random.default_rng(5).permutation(60)
    report = report_of({"p": p[mixed]}, y[mixed], 200, DECIDING)
    (column,) = report.columns
    tested = [row.name for row in column.evaluation.rows if row.name in QUOTED and row.p_value is not None]
    assert len(tested) > 2
    for least, calibration in ((0.0499, "doubtful"), (0.0501, "not refuted")):
        rows = tuple(
            replace(row, p_value={"ece": least / len(tested)}.get(row.name, 0.5))
            for row in column.evaluation.rows
        )
        found = verdict(report, replace(column, evaluation=replace(column.evaluation, rows=rows)))
        assert (found.calibration, "ece is larger than" in found.words) == (
            calibration,
            calibration == "doubtful",
        )


@pytest.fixture(scope="module")
def judged():
    """A report of one column with levels .2, .5 and .8, of which tests change what it says."""
    p, y = np.repeat([0.2, 0.5, 0.8], 40), np.tile([0, 1, 1, 0], 30)
    return report_of({"p": p}, y, 20, DECIDING)


HIGH = Threshold(0.5, True, 0.125, 0.5, 0.8, 0.25, 0.4)
LOW = Threshold(0.5, False, 0.125, 0.2, 0.5, -0.25, 0.4)
RECALIBRATE = "onlinecal recalibrate f --forecast p --outcome y"
TIMES = "name the times of forecasts and of outcomes: "


@pytest.mark.parametrize(
    ("column", "report", "calibration", "words", "then"),
    [
        ({"threshold": HIGH}, {}, "refuted",
         ["p ≥ 0.5 loses 0.125", "0.5–0.8 (40 % of all) are too high by 0.25", "never acting would be better"],
         f"{RECALIBRATE} -o f_better.csv"),
        ({"threshold": replace(HIGH, highest=0.5)}, {}, "refuted", ["of 0.5 (40", "p > 0.5 would be better"], ""),
        ({"threshold": LOW}, {}, "refuted", ["acting when p > 0.5 loses", "too low by 0.25", "always acting"], ""),
        ({"threshold": replace(LOW, lowest=0.5)}, {}, "refuted", ["p ≥ 0.5 would be better"], ""),
        ({}, {"classes": True}, "refuted", [], "recalibrate the forecasts of this class with oc.recalibrate(p, y)"),
        ({}, {"cluster": "g"}, "refuted", [], f"{TIMES}{RECALIBRATE} --time COLUMN --resolved COLUMN -o f_better.csv"),
        ({}, {"cluster": "g", "time": "t"}, "refuted", [],
         f"{TIMES}{RECALIBRATE} --time t --resolved COLUMN -o f_better.csv"),
        ({}, {"cluster": "t", "time": "t"}, "refuted", [], f"{RECALIBRATE} --time t -o f_better.csv"),
        ({"depends": True}, {}, "doubtful", ["rows seem to depend on each other, and p = 0.01"], "--cluster COLUMN"),
        ({"depends": True}, {"cluster": "g"}, "refuted", [], ""),
        ({"advises": False, "threshold_p": 0.4}, {}, "not refuted", ["(p = 0.4)"], "more rows, four times as many"),
        ({"advises": False, "depends": True}, {"cluster": "g"}, "not refuted", [], "more clusters, four times"),
        ({"threshold_p": None}, {}, "too few", ["Too few rows are independent"], "at least 15 clusters"),
        ({"threshold_p": None}, {"time": "t"}, "too few", [], "more times; where rows"),
        ({"threshold_p": None}, {"time": "t", "cluster": "g"}, "too few", [], "at least 15 clusters"),
        ({"threshold_p": None}, {"settings": Settings(draws=0)}, "not tested", ["Without draws"], "--draws 200"),
    ],
)  # fmt: skip
def test_what_a_verdict_follows_from(judged, column, report, calibration, words, then):
    (one,) = judged.columns
    calm = replace(one.evaluation, rows=tuple(replace(row, p_value=0.5) for row in one.evaluation.rows))
    mine = replace(one, **{"threshold": HIGH, "threshold_p": 0.01, "advises": True, "depends": False,
                           "by_chance": 0.02, "evaluation": calm} | column)  # fmt: skip
    found = verdict(replace(judged, **report), mine)
    assert found.calibration == calibration
    for part in words:
        assert part.lower() in found.words.lower()
    assert then in found.next


CHANCE = "the worst threshold of calibrated forecasts would lose 0.02 by chance (p = 0.01)."


@pytest.mark.parametrize(
    ("column", "said"),
    [
        ({"threshold": replace(HIGH, loss=0.0)}, "no threshold loses: another one would never have been better."),
        ({"threshold_p": None}, f"{HIGH}. Without draws that is not tested against chance."),
        ({"advises": False}, f"not told from chance. It loses 0.125 per decision; {CHANCE}"),
        ({}, f"{HIGH}; p > 0.8 would be better. Payoffs are from 0 to 1; {CHANCE}"),
    ],
)  # fmt: skip
def test_the_worst_threshold_in_words(judged, column, said):
    (one,) = judged.columns
    given = {
        "threshold": HIGH,
        "threshold_p": 0.01,
        "advises": True,
        "by_chance": 0.02,
        "worst_task": "",
    } | column
    assert decision(replace(one, **given)) == f"Worst threshold: {said}"


def test_numbers_have_as_many_digits_as_their_interval_tells():
    for x, width, said in (
        (0.123456, np.inf, "0.123"), (0.123456, 5e-4, "0.12346"), (0.123456, 0.00124, "0.123"),
        (0.123456, 0.00123, "0.1235"), (np.nan, 1.0, "–"), (np.inf, np.inf, "inf"),
        (0.2, 1e-13, "0.2"), (0.0, 1e-5, "0"), (None, 1.0, "–"),
    ):  # fmt: skip
        assert number(x, width) == said
    assert [signed(-0.0004, 3), signed(0.0006, 3), signed(-0.5, 2)] == ["0.000", "+0.001", "-0.50"]
    assert [span(0.1, 0.1), span(0.1, 0.25), span(0.1, 0.1001)] == ["0.1", "[0.1, 0.25]", "0.1"]


def test_the_default_table_begins_with_a_measure_that_has_an_interval():
    p = np.random.default_rng(0).random(60)
    rows = report_of({"p": p}, np.arange(60) % 2, 200, DECIDING).columns[0].evaluation.rows
    assert rows[0].interval is not None
