"""Files that people have: words that are neither yes nor no, labels beside probabilities, several outcomes."""

import json
import math

import numpy as np
import pytest

from onlinecal.core.errors import InvalidParameter, OnlinecalError
from onlinecal.core.files import Table
from onlinecal.logs.measuring import Settings
from onlinecal.logs.reading import Asked, read_log
from onlinecal.logs.source import report_of
from onlinecal.monitoring.monitor import Monitor
from onlinecal.monitoring.watching import watch
from onlinecal.recalibration.files import recalibrate_file
from onlinecal.report.measured import grids, number, span
from tests.command_line import onlinecal

BRIER = Settings(draws=0, measures=("brier",))
MARKET = "p,resolution\n.1,NO\n.4,NO\n.35,YES\n.8,YES\n.65,MKT\n.2,CANCEL\n.9,YES\n.55,no \n"


def written(tmp_path, text):
    path = tmp_path / "f.csv"
    path.write_text(text)
    return path


def briers(path, *outcomes, parts=None, **asked):
    report = report_of(str(path), Asked(**asked), BRIER, parts, outcomes)
    return {one.name: one.brier.score for one in report.columns}, report


# ---------------------------------------------------------------- words


@pytest.mark.parametrize("parts", [False, True])
def test_words_that_are_neither_yes_nor_no_are_asked_for_or_left_out(tmp_path, parts):
    path = written(tmp_path, MARKET)
    with pytest.raises(OnlinecalError) as caught:
        briers(path, positive="yes", parts=parts)
    words = "'NO' in 2 rows, 'CANCEL' in 1 row, 'MKT' in 1 row, 'no' in 1 row; expected one word for 0: --negative"
    assert words in str(caught.value)
    score, report = briers(path, positive="yes", drop=("mkt", "Cancel"), parts=parts)
    assert (score["p"], report.rows) == (pytest.approx(63 / 400), 6)
    assert "2 of 8 rows are left out: 'mkt', 'Cancel' in 'resolution'" in report.said
    assert not any("have no outcome" in text for text in report.columns[0].cautions)
    # All three words may be meant.
    score, report = briers(path, positive="yes", negative=("no", "mkt", "cancel"), parts=parts)
    assert (score["p"], report.rows) == (pytest.approx((6 * 0.1575 + 0.65**2 + 0.2**2) / 8), 8)


@pytest.mark.parametrize(
    ("cells", "asked", "words"),
    [
        ("0 1 2 1", {"positive": "1"}, "'0' in 1 row, '2' in 1 row; expected one word for 0"),
        ("0 1 2 1", {}, "holds '2'; expected 0 or 1, .* --drop WORD .*'1' in 2 rows, '0' in 1 row, '2' in 1 row"),
        ("yes void yes", {"positive": "yes"}, "'void' in 1 row; expected one word for 0"),
        ("yes no void", {"positive": "yes", "negative": ("no",)}, "line 4: column 'y' holds 'void'; expected one"),
        ("yes no", {"negative": ("no",)}, "--negative no without --positive"),
        ("yes no", {"positive": "yes", "drop": ("YES",)}, "the word 'YES' is asked for twice"),
    ],
)  # fmt: skip
def test_words_are_refused(tmp_path, cells, asked, words):
    path = written(tmp_path, "p,y\n" + "".join(f".5,{cell}\n" for cell in cells.split()))
    with pytest.raises(OnlinecalError, match=words):
        read_log(Table(path), Asked(**asked))


def test_dropped_words_beside_0_and_1_and_among_classes(tmp_path):
    path = written(tmp_path, "p,y\n.5,1\n.25,2.0\n,2\n.125,0\n")
    found = read_log(Table(path), Asked(drop=("2",)))
    assert (found.forecasts["p"].tolist(), found.outcomes.tolist()) == ([0.5, 0.125], [1.0, 0.0])
    path = written(tmp_path, "a,b,y\n.5,.5,a\n.25,.75,b\n.5,.5,void\n")
    assert briers(path, classes=True, drop=("void",))[0] == dict.fromkeys("ab", pytest.approx(5 / 32))


def test_watch_and_recalibrate_take_the_same_words(tmp_path):
    path = written(tmp_path, MARKET)
    asked = Asked(positive="yes", drop=("mkt", "cancel"))
    monitor = Monitor()
    watch(monitor, path, asked)
    assert monitor.events == 6
    with pytest.raises(OnlinecalError, match="expected one word for 0"):
        watch(Monitor(), path, Asked(positive="yes"))
    # A word that comes later is refused in its line, and may be dropped by the same watch.
    path, state = written(tmp_path, "p,y\n.5,yes\n.5,no\n"), tmp_path / "state"
    monitor = Monitor()
    watch(monitor, path, Asked(positive="yes"), state=state)
    path.write_text(path.read_text() + ".5,no\n.5,void\n")
    with pytest.raises(OnlinecalError, match="line 5: column 'y' holds 'void'"):
        watch(Monitor.load(state), path, Asked(positive="yes"), state=state)
    monitor = Monitor.load(state)
    watch(monitor, path, Asked(drop=("void",)), state=state)
    assert monitor.events == 3
    # A question that is dropped is open no more.
    path, monitor = written(tmp_path, "id,p,y\na,.5,\nb,.5,\na,,void\nb,,1\n"), Monitor()
    watch(monitor, path, Asked(key="id", outcome="y", drop=("void",)))
    assert (monitor.events, monitor.open) == (1, 0)
    out = tmp_path / "out.csv"
    made, _ = recalibrate_file(
        str(written(tmp_path, MARKET)), out, "calibeating", asked=asked, measures=["brier"]
    )
    assert len(made.forecasts) == 6
    assert [line.endswith(",") for line in out.read_text().splitlines()[1:]].count(True) == 2


# ---------------------------------------------------------------- columns


@pytest.mark.parametrize(
    ("text", "asked", "forecasts"),
    [
        ("y_true,y_pred,y_score\n0,0,.1\n1,1,.7\n1,0,.4\n0,0,.2\n", {}, ["y_score"]),
        ("actual,predicted,model\n1,yes,.7\n0,no,.1\n", {}, ["model"]),
        ("y,prediction,p\n1,1,.7\n0,0,.1\n", {}, ["p"]),
        ("y,p\n1,1\n0,0\n", {}, ["p"]),
        ("y,prob_0,prob_1\n1,.3,.7\n0,.82,.18\n", {}, ["prob_1"]),
        ("y,P(yes),No\n1,70%,30%\n0,18%,82%\n", {"percent": True}, ["P(yes)"]),
        ("y,own,height\n1,70.5,104.5\n0,18.5,99\n", {"percent": True}, ["own"]),
        ("y,own,height\n1,.705,1.045\n0,.185,.99\n", {}, ["own"]),
        ("y,chance lost,chance won\nwon,.3,.7\nlost,.82,.18\n", {"positive": "won"}, ["chance won"]),
        ("y,p_0,p_1,expert\n1,.3,.7,.6\n0,.82,.18,.3\n", {}, ["p_1", "expert"]),
        ("y,one,other\n1,.5,.5\n0,.5,.5\n", {}, ["one", "other"]),
        ("y,p_0,p_1\n1,.31,.7\n0,.82,.18\n", {}, ["p_1"]),
        ("y,p_0,p_1\n1,.32,.7\n0,.82,.18\n", {}, ["p_0", "p_1"]),
    ],
)  # fmt: skip
def test_labels_and_opposites_are_no_forecasts(tmp_path, text, asked, forecasts):
    found = read_log(Table(written(tmp_path, text)), Asked(outcome=text.split(",")[0], **asked))
    assert [*found.forecasts] == forecasts


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("y,team1,team2\n1,.3,.7\n0,.82,.18\n", "columns 'team1' and 'team2' sum to 1, .* --forecast COLUMN"),
        ("y,home,draw,away\n1,.3,.5,.2\n0,.6,.1,.3\n", "columns 'home', 'draw', 'away' sum to 1"),
    ],
)
def test_where_names_do_not_tell_the_event_the_column_is_asked_for(tmp_path, text, words):
    with pytest.raises(OnlinecalError, match=words):
        read_log(Table(written(tmp_path, text)), Asked())
    name = text.split(",")[1]
    assert [*read_log(Table(tmp_path / "f.csv"), Asked((name,))).forecasts] == [name]


def test_copies_are_counted_among_the_rows_that_are_measured(tmp_path):
    path = written(tmp_path, "id,p,y\n1,.5,1\n1,.5,1\n2,.5,void\n2,.5,void\n3,.5,\n3,.5,\n4,.25,0\n")
    found = read_log(Table(path), Asked(("p",), skip_missing=True, drop=("void",)))
    assert (found.rows, found.duplicates) == (3, 1)


# ---------------------------------------------------------------- outcomes


TWO = "prob1,o1,prob2,o2\n.74,0,.26,1\n.47,1,.53,0\n.81,1,.19,0\n.60,1,.40,\n"


def test_a_row_that_is_left_out_needs_no_cluster(tmp_path):
    path = written(tmp_path, "p,y,g\n.5,1,a\n.25,,\n.75,0,b\n")
    found = read_log(Table(path), Asked(cluster="g", skip_missing=True))
    assert (found.rows, found.clusters.tolist()) == (2, [1, 2])
    written(tmp_path, "p,y,g\n.5,1,a\n.25,1,\n")
    with pytest.raises(OnlinecalError, match="line 3: column 'g' is empty"):
        read_log(Table(path), Asked(cluster="g"))


def test_each_forecast_may_have_an_outcome_of_its_own(tmp_path):
    path = written(tmp_path, TWO)
    score, report = briers(path, "o1", "o2", forecasts=("prob1", "prob2"), skip_missing=True)
    assert score == {
        "prob1": pytest.approx((0.74**2 + 0.53**2 + 0.19**2 + 0.4**2) / 4),
        "prob2": pytest.approx((0.74**2 + 0.53**2 + 0.19**2) / 3),
    }
    assert (report.rows, report.outcome, report.differences) == (4, "o1, o2", [])
    assert "'prob2' has the outcome 'o2' (3 rows)" in report.said
    with pytest.raises(InvalidParameter, match=r"several --outcome with .* read in parts"):
        report_of(str(path), Asked(("prob1", "prob2")), Settings(draws=0), True, ("o1", "o2"))
    # Two forecasts of one event are compared.
    _, report = briers(path, "o1", "o1", forecasts=("prob1", "prob2"), outcome="o1")
    assert len(report.differences) == 2
    for forecasts, more in ((("prob1",), {}), ((), {}), (("prob1", "prob2"), {"classes": True})):
        with pytest.raises(
            InvalidParameter, match=r"2 --outcome \(o1, o2\) beside . --forecast; expected one"
        ):
            briers(path, "o1", "o2", forecasts=forecasts, **more)


def test_an_option_of_one_value_is_refused_where_it_is_given_twice(tmp_path):
    written(tmp_path, TWO)
    for command in (
        "measure f.csv --time o1 --time o2", "watch f.csv --outcome o1 -y o2",
        "recalibrate f.csv -o x.csv -f prob1 --forecast=prob2",
    ):  # fmt: skip
        assert "is given twice; expected it once" in onlinecal(command, cwd=tmp_path, rc=2).stderr
    pairs = "-f prob1 -y o1 -f prob2 -y o2 --skip-missing --percent --percent -m brier --draws 0 --json"
    found = json.loads(onlinecal(f"measure f.csv {pairs}", cwd=tmp_path, rc=0).stdout)
    assert [one["name"] for one in found["forecasts"]] == ["prob1", "prob2"]


# ---------------------------------------------------------------- digits


def test_digits_of_groups_follow_their_errors_and_not_rounding(tmp_path):
    """Two candidates of a race have forecasts that sum to 1: the bias of each cluster is 0 but for rounding."""
    rows = list[str]()
    for i, p in enumerate(np.random.default_rng(3).integers(50, 950, 80) / 1000):
        rows += [f"{i},{2018 + i % 2},{p:.3f},1\n", f"{i},{2018 + i % 2},{1 - p:.3f},0\n"]
    path = written(tmp_path, "race,year,p,y\n" + "".join(rows))
    report = report_of(str(path), Asked(by=("year",), cluster="race"), BRIER)
    column = report.columns[0]
    assert all(part.error < 1e-12 for part in column.groups)
    assert [row[4] for row in grids(report, column)[-1].rows] == ["0.000 ± 0.000"] * 2
    # Rare events have two digits of their error.
    path = written(tmp_path, "g,p,y\n" + "a,1e-5,0\nb,2e-5,0\n" * 100)
    report = report_of(str(path), Asked(by=("g",)), BRIER)
    assert [row[4][-9:] for row in grids(report, report.columns[0])[-1].rows] == ["± 0.00032", "± 0.00045"]


def test_digits_of_values_follow_the_widths_of_their_intervals():
    """Two digits of the width, where these are more than three of the value."""
    for low, high, said in (
        (0.199812, 0.200123, "[0.19981, 0.20012]"), (0.139, 0.24, "[0.139, 0.24]"), (0.5, math.inf, "[0.5, inf]"),
        (0.25, 0.25, "0.25"), (0.0, 1e-5, "[0, 1e-05]"),
    ):  # fmt: skip
        assert span(low, high, high - low) == said
    assert (number(0.2, 0.00031), number(0.2, 1e-17), number(0.2)) == ("0.20000", "0.2", "0.2")
    assert (number(-1.8e-17, 0.7), number(1e-5, 0.7), number(1e-17)) == ("0", "1e-05", "1e-17")
