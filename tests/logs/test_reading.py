"""Files of forecasts: which columns and words are what, what is refused and where, amounts and expected outcomes."""

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import onlinecal as oc
from onlinecal.core.errors import InvalidParameter, OnlinecalError
from onlinecal.core.files import Table
from onlinecal.logs.measuring import Settings
from onlinecal.logs.reading import Asked, read_log
from onlinecal.monitoring.monitor import Monitor
from onlinecal.monitoring.watching import watch
from onlinecal.recalibration.files import recalibrate_file
from tests.command_line import onlinecal
from tests.logs.made import briers, report, written


def log(tmp_path, text, **asked):
    return read_log(Table(written(tmp_path, text)), Asked(**asked))


# ---------------------------------------------------------------- columns


@pytest.mark.parametrize(
    ("text", "asked", "forecasts", "outcome"),
    [
        *((f"{header}\n7,0.25,1\n8,0.5,0\n", {}, [p], y) for header, p, y in [
            ("id,Probability,Outcome", "Probability", "Outcome"), ("id,y_prob,y_true", "y_prob", "y_true"),
            ("id,model a,rain", "model a", "rain"), ("id,P(yes),resolved", "P(yes)", "resolved"),
            ("a,b,rain", "b", "rain"),
        ]),
        ("y_true,y_pred,y_score\n0,0,.1\n1,1,.7\n1,0,.4\n0,0,.2\n", {}, ["y_score"], "y_true"),
        ("actual,predicted,model\n1,yes,.7\n0,no,.1\n", {}, ["model"], "actual"),
        ("y,prediction,p\n1,1,.7\n0,0,.1\n", {}, ["p"], "y"),
        ("y,p\n1,1\n0,0\n", {}, ["p"], "y"),
        ("y,prob_0,prob_1\n1,.3,.7\n0,.82,.18\n", {}, ["prob_1"], "y"),
        ("y,P(yes),No\n1,70%,30%\n0,18%,82%\n", {"percent": True}, ["P(yes)"], "y"),
        ("y,own,height\n1,70.5,104.5\n0,18.5,99\n", {"percent": True}, ["own"], "y"),
        ("y,own,height\n1,.705,1.045\n0,.185,.99\n", {}, ["own"], "y"),
        ("y,chance lost,chance won\nwon,.3,.7\nlost,.82,.18\n", {"positive": "won"}, ["chance won"], "y"),
        ("y,p_0,p_1,expert\n1,.3,.7,.6\n0,.82,.18,.3\n", {}, ["p_1", "expert"], "y"),
        ("y,one,other\n1,.5,.5\n0,.5,.5\n", {}, ["one", "other"], "y"),
        ("y,p_0,p_1\n1,.31,.7\n0,.82,.18\n", {}, ["p_1"], "y"),
        ("y,p_0,p_1\n1,.3101,.7\n0,.82,.18\n", {}, ["p_0", "p_1"], "y"),
        ("Low,mid,high,mine,y\n.5,.25,.25,.5,low\n.25,.5,.25,.5,mid\n.25,.25,.5,.5,high\n",
         {"positive": "low", "negative": ("mid", "high")}, ["Low", "mine"], "y"),
    ],
)  # fmt: skip
def test_columns_are_guessed_by_name_or_by_what_they_hold(tmp_path, text, asked, forecasts, outcome):
    """Labels beside probabilities, the opposite of an event and columns of other labels are no forecasts."""
    found = log(tmp_path, text, **asked)
    assert ([*found.forecasts], found.outcome) == (forecasts, outcome)
    several = "s" * (len(forecasts) > 1)
    assert f"outcomes are read from column {outcome!r}" in found.said
    assert f"forecasts are read from column{several} {', '.join(map(repr, forecasts))}" in found.said


def test_parquet_is_as_csv(tmp_path):
    path = tmp_path / "f.parquet"
    dates = pd.to_datetime(["2020-01-01", "2020-01-02", "2020-01-04"])
    p, y, site = [0.25, 0.5, 0.75], [True, False, True], ["a", "b", "a"]
    pd.DataFrame({"p": p, "y": y, "day": dates, "site": site}).to_parquet(path)
    found = read_log(Table(path), Asked(time="day", by=("site",)))
    assert (found.forecasts["p"].tolist(), found.outcomes.tolist()) == (p, [1.0, 0.0, 1.0])
    assert np.diff(found.times).tolist() == [1.0, 2.0]
    assert {name: rows.tolist() for name, rows in found.groups.items()} == {"a": [0, 2], "b": [1]}


NAMES = [f"question {i}" for i in range(3000)]


def test_names_are_no_outcomes(tmp_path):
    """A column of many different words, such as one of names, is neither guessed nor offered as that of outcomes."""
    for columns, cells, asked in (
        ("event,p,happened", ["0", "1"], {}), ("event,p,verdict", ["won", "lost"], {"positive": "won"}),
    ):  # fmt: skip
        rows = "".join(f"{name},0.25,{cells[i % 2]}\n" for i, name in enumerate(NAMES))
        path = written(tmp_path, f"{columns}\n{rows}")
        assert read_log(Table(path), Asked(**asked)).outcome == columns.split(",")[2]
        monitor = Monitor()
        watch(monitor, path, Asked(**asked))
        assert monitor.events == 3000
    for asked, said in (
        (Asked(), "of: 'p', 'verdict' (without 'event', of more than 20 words)"),
        (Asked(positive="question 7"), "of: 'p', 'verdict' (without 'event', of more than 20 words)"),
        (Asked(outcome="event"), "line 2: column 'event' holds 'question 0' and more than 20 other words, which are"),
    ):  # fmt: skip
        with pytest.raises(OnlinecalError) as caught:
            read_log(Table(path), asked)
        assert said in str(caught.value)
    # Many labels with a column each are classes.
    labels = [f"label {i}" for i in range(30)]
    rows = "".join(f"{label},{','.join([str(1 / 32)] * 30)}\n" for label in labels)
    assert log(tmp_path, f"class,{','.join(labels)}\n{rows}", classes=True).outcome == "class"


def test_each_forecast_may_have_an_outcome_of_its_own(tmp_path):
    path = written(tmp_path, "prob1,o1,prob2,o2\n.74,0,.26,1\n.47,1,.53,0\n.81,1,.19,0\n.60,1,.40,\n")
    score, found = briers(path, "o1", "o2", forecasts=("prob1", "prob2"), skip_missing=True)
    assert score == {
        "prob1": pytest.approx((0.74**2 + 0.53**2 + 0.19**2 + 0.4**2) / 4),
        "prob2": pytest.approx((0.74**2 + 0.53**2 + 0.19**2) / 3),
    }
    assert (found.rows, found.outcome, found.differences) == (4, "o1, o2", [])
    assert "'prob2' has the outcome 'o2' (3 rows)" in found.said
    with pytest.raises(InvalidParameter, match=r"several --outcome with .* read in parts"):
        briers(path, "o1", "o2", parts=True, forecasts=("prob1", "prob2"))
    # Two forecasts of one event are compared.
    assert len(report(path, "o1", "o1", forecasts=("prob1", "prob2"), outcome="o1").differences) == 2
    for forecasts, more in ((("prob1",), {}), ((), {}), (("prob1", "prob2"), {"classes": True})):
        with pytest.raises(InvalidParameter, match=r"2 --outcome \(o1, o2\) beside . --forecast"):
            briers(path, "o1", "o2", forecasts=forecasts, **more)
    for command in (
        "measure f.csv --time o1 --time o2", "watch f.csv --outcome o1 -y o2",
        "recalibrate f.csv -o x.csv -f prob1 --forecast=prob2",
    ):  # fmt: skip
        assert "is given twice; expected it once" in onlinecal(command, cwd=tmp_path, rc=2).stderr
    pairs = "-f prob1 -y o1 -f prob2 -y o2 --skip-missing --percent --percent -m brier --draws 0 --json"
    found = json.loads(onlinecal(f"measure f.csv {pairs}", cwd=tmp_path, rc=0).stdout)
    assert [one["name"] for one in found["forecasts"]] == ["prob1", "prob2"]


# ---------------------------------------------------------------- cells


HALVES = [0.5, 0.5, 0.5]


@pytest.mark.parametrize(
    ("text", "asked", "p", "y", "said"),
    [
        ("p,y\n0.1,True\n.3,false\n1e-320,TRUE\n", {}, [0.1, 0.3, 1e-320], [1, 0, 1], ()),
        ("p,y\n0.5,1.0\n0.5,0\n0.5,1\n", {}, HALVES, [1, 0, 1], ()),
        ("p,y\n0.5,yes\n0.5,no\n0.5,yes \n", {"positive": "YES"}, HALVES, [1, 0, 1],
         ("outcome 1 is 'YES' in 'y', and 0 is 'no'",)),
        ("p,y\n0.5,2\n0.5,1\n0.5,2.0\n", {"positive": "2"}, HALVES, [1, 0, 1],
         ("outcome 1 is '2' in 'y', and 0 is '1'",)),
        ("p,y\n.5,1\n.25,2.0\n,2\n.125,0\n", {"drop": ("2",)}, [0.5, 0.125], [1, 0],
         ("2 of 4 rows are left out: '2' in 'y'",)),
        ("p,y\n25%,1\n50 %,0\n", {"percent": True}, [0.25, 0.5], [1, 0], ()),
        ("p;y\n0,25;1\n1,0;0\n", {}, [0.25, 1.0], [1, 0], ()),
        ("p,y\n0.25,1\n,0\n0.5,NA\n0.75,0\n", {"skip_missing": True}, [0.25, 0.75], [1, 0],
         ("2 of 4 rows have no forecast or outcome and are left out",)),
        ("p,y,g\n.5,1,a\n.25,,\n.75,0,b\n", {"cluster": "g", "skip_missing": True}, [0.5, 0.75], [1, 0], ()),
        ("t,p,y\n2020-01-03,.1,0\n2020-01-01,.2,1\n2020-01-02,.3,0\n", {"time": "t", "sort": True}, [0.2, 0.3, 0.1],
         [1, 0, 0], ("rows are brought into the order of 't'",)),
        ("p,y\n.25,3\n.5,12.5\n.75,10\n.5,\n", {"above": 10.0, "skip_missing": True}, [0.25, 0.5, 0.75], [0, 1, 0],
         ("outcome 1 is 'y' above 10",)),
    ],
)  # fmt: skip
def test_cells_in_every_form(tmp_path, text, asked, p, y, said):
    """In memory and in parts, where columns do not forbid that."""
    found = log(tmp_path, text, **asked)
    assert (found.forecasts["p"].tolist(), found.outcomes.tolist()) == (p, y)
    assert set(said) <= set(found.said)
    if "sort" in asked:
        assert [found.time_words(i) for i in range(3)] == ["2020-01-01", "2020-01-02", "2020-01-03"]
    elif "cluster" in asked:
        assert found.clusters.tolist() == [1, 2]
    else:
        counted = report(tmp_path / "f.csv", parts=True, **asked)
        gamma = oc.JointDistribution.from_samples(p, y)
        assert counted.columns[0].brier.score == pytest.approx(oc.measures.brier(gamma))
        assert counted.rows == len(p)


def test_copies_are_counted_among_the_rows_that_are_measured(tmp_path):
    text = "id,p,y\n1,.5,1\n1,.5,1\n2,.5,void\n2,.5,void\n3,.5,\n3,.5,\n4,.25,0\n"
    found = log(tmp_path, text, forecasts=("p",), skip_missing=True, drop=("void",))
    assert (found.rows, found.duplicates) == (3, 1)


GOOD = "0.5,1\n" * 9
UNIT = r"expected a probability in \[0, 1\]"
TIES = "p,result,site\n.25,0,a\n.5,.5,b\n.75,1,b\n.25,.5,a\n"
AMOUNTS = "p,y\n.25,3\n.5,12.5\n.75,10\n.5,\n"
#: what is refused in memory and in parts: a file, words with the place, and how it is read
ROWS = [
    ("p,y\n", "no rows; expected at least one", {}),
    (f"p,y\n{GOOD}1.5,1\n", f"line 11: column 'p' holds '1.5'; {UNIT}$", {}),
    (f"p,y\n{GOOD}-0.25,1\n", f"line 11: column 'p' holds '-0.25'; {UNIT}$", {}),
    ("p,y\n73,1\n20,0\n", f"holds '73'; {UNIT}; these look like per cent: --percent", {}),
    *((f"p,y\n2,1\n2,0\n{p},0\n", "these look like per cent", {}) for p in (0, 100)),
    *((f"p,y\n{p},1\n{p},0\n{q},0\n", f"{UNIT}$", {}) for p, q in ((1.9, 3), (2, 100.1), (2, -0.1))),
    ("p,y\n73,1\n101,0\n", f"{UNIT}$", {}), ("p,y\n73,1\n-1,0\n", f"{UNIT}$", {}),
    ("p,y\n0.25,1\n1.0000001,0\n.5,1\n", f"holds '1.0000001'; {UNIT}$", {}),
    ("p,y\n73%,1\n20%,0\n", "has per cent signs; expected plain numbers, or --percent", {}),
    ("p,y\n25,1\n130,0\n", "holds '130'; expected per cent from 0 to 100$", {"percent": True}),
    *[(f"p,y\n{GOOD}{cell},0\n", f"line 11: column 'p' is '{cell}'", {}) for cell in ("high", "true", "inf")],
    (f"p,y\n{GOOD},0\n", "line 11: column 'p' is missing, as in 1 of ", {}),
    (f"p,y\n{GOOD}0.5,2\n", "line 11: column 'y' holds '2'; expected 0 or 1", {}),
    ("p,y\n0.5,yes\n0.2,no\n", "or --drop WORD to leave out rows .there are: 'no' in 1 row, 'yes'", {}),
    (f"p,y\n{GOOD}0.5,no\n", "no row of column 'y' holds 'ja'; there are: '1', 'no'", {"positive": "ja"}),
    ("p,y\n,1\n,0\n", "no row has both a forecast and an outcome", {"skip_missing": True}),
    ("p,y\n.5,NO\n.5,mkt\n.5,YES\n.5,no \n", "'NO' in 1 row, 'mkt' in 1 row, 'no' in 1 row; expected one word for 0",
     {"positive": "yes"}),
    ("p,y\n.5,0\n.5,1\n.5,2\n.5,1\n", "'0' in 1 row, '2' in 1 row; expected one word for 0", {"positive": "1"}),
    ("p,y\n.5,0\n.5,1\n.5,2\n.5,1\n", "holds '2'; expected 0 or 1, .*'1' in 2 rows, '0' in 1 row, '2' in 1 row", {}),
    ("p,y\n.5,yes\n.5,no\n.5,void\n", "line 4: column 'y' holds 'void'; expected one",
     {"positive": "yes", "negative": ("no",)}),
    (AMOUNTS, "holds '3'; expected 0 or 1.*--above NUMBER has the event", {}),
    (AMOUNTS.replace("12.5", "hot"), "is 'hot'; expected a number", {"above": 10.0}),
]  # fmt: skip
THREE = "a,b,c,y\n.5,.3,.2,a\n.2,.5,.3,b\n"
ALL = f"{THREE}.2,.3,.5,c\n"
YES = "p,y\n.5,yes\n.5,no\n"
COLUMNS = [
    ("\n\n", "is empty", {}),
    ("p,y\n0.5,1\n", "no column 'q'; known: p, y", {"forecasts": ("q",)}),
    ("p,y\n0.5,1\n", "no column 'outcom'; ", {"outcome": "outcom"}),
    ("p,y\n0.5,1\n", "column 'p' is asked for twice", {"forecasts": ("p",), "outcome": "p"}),
    ("a,b,c\n1,0,1\n0,1,1\n", "columns 'a', 'b', 'c' might be; expected --outcome COLUMN", {}),
    ("a,y\nx,1\n", "cannot tell which column has the forecasts", {}),
    ("p y\n0.5 1\n", "none of , ; tab |", {}),
    ("p,y\n0.5,1,7\n", "line 2 has 3 cells", {}),
    ("t,p,y\nsoon,0.5,1\n", "line 2: column 't' is 'soon'; expected a number or a date", {"time": "t"}),
    ("t,p,y\n2020-01-01,0.5,1\n,0.5,1\n", "line 3: column 't' is missing", {"time": "t"}),
    ("t,p,y\n2,0.5,1\n1,0.5,1\n", "line 3: column 't' goes back in time, from 2 to 1; expected rows in order, or",
     {"time": "t"}),
    ("t,p,y\n1,0.5,1\n", "expected both columns .--time", {"resolved": "t"}),
    ("t,r,p,y\n2,1,0.5,1\n", "line 2: the outcome is known .1. before the question is asked .2.",
     {"time": "t", "resolved": "r"}),
    ("w,p,y\n-1,0.5,1\n", "line 2: column 'w' holds -1; expected a finite weight", {"weight": "w"}),
    ("w,p,y\n0,0.5,1\n", "all weights in 'w' are 0", {"weight": "w"}),
    ("c,p,y\na,.2,0\n,.3,1\n", "line 3: column 'c' is empty; expected the label of a cluster", {"cluster": "c"}),
    (YES, "--negative no without --positive", {"negative": ("no",)}),
    (YES, "the word 'YES' is asked for twice", {"positive": "yes", "drop": ("YES",)}),
    *[(AMOUNTS, said, {"above": above, **more}) for above, more, said in [
        (10.0, {"positive": "3"}, "--above 10 beside the word '3'"), (np.nan, {}, "--above nan; expected a finite"),
        (1.0, {"fractional": True}, "--above 1 beside --fractional"),
        (1.0, {"classes": True}, "--above 1 beside --classes"),
    ]],
    (TIES, "holds '.5'; expected 0 or 1.*--fractional. takes numbers between 0 and 1 as expected outcomes", {}),
    (TIES + ".5,1.5,b\n", "holds '1.5'; expected 0 or 1", {"fractional": True}),
    (TIES, "--fractional beside --weight p; expected one or the other", {"fractional": True, "weight": "p"}),
    ("y,team1,team2\n1,.3,.7\n0,.82,.18\n", "columns 'team1' and 'team2' sum to 1, .* --forecast COLUMN", {}),
    ("y,home,draw,away\n1,.3,.5,.2\n0,.6,.1,.3\n", "columns 'home', 'draw', 'away' sum to 1", {}),
    ("p,y,g\n" + "".join(f".5,{i % 2},{i}\n" for i in range(1001)), "1001 different values; expected at most 1000 gr",
     {"by": ("g",)}),
    *[(f"p,y,g\n.5,1,{cells[0]}\n" + "".join(f".5,{i % 2},{cell}\n" for i, cell in enumerate(cells)), said,
       {"groups": ("g",)}) for cells, said in [
        (range(17), "column 'g' has 17 different values; expected at most 16, a group for each"),
        ([0.5, 2] * 17, "column 'g' of groups holds 0.5; expected 0 and 1, texts or whole numbers"),
    ]],
    ("p,y,all\n.5,1,1\n", "none called 'all'", {"groups": ("all",)}),
    (ALL, "holds 'a'; expected 0 or 1, .*; `onlinecal measure --classes` measures each label", {"forecasts": ("a",)}),
    (ALL, "columns 'a', 'b', 'c' sum to 1, as .* outcomes; expected .*, or --classes", {}),
    (f"{THREE}.2,.3,.5,d\n", "label 'd' in column 'y' has no column .*; expected a .* label, of: 'a', 'b', 'c', 'y'",
     {"classes": True}),
    (ALL, "label 'c' in column 'y' has no column .*, of: 'a', 'b'", {"classes": True, "forecasts": ("a", "b")}),
    (THREE, "line 2: probabilities of 'a' to 'b' sum to 0.8; expected 1, within 0.1: name the columns of all classes",
     {"classes": True}),
    ("a,b,c,y\n.5,.5,0,a\n.5,.5,.5,b\n", "line 3: .* sum to 1.5; .*, and no others .*; no row has the label 'c'",
     {"classes": True, "forecasts": ("a", "b", "c")}),
    ("a,b,y\n.503,.501,a\n.503,.503,b\n", "line 3: .* sum to 1.006; expected 1, within 0.005:", {"classes": True}),
    ("a,b,y\n1,0,a\n1,0,a\n", "classes 'a'; expected two or more columns", {"classes": True}),
    ("None,b,y\n1,0,None\n0,1,b\n", "label 'None' is read as a missing cell; expected another word",
     {"classes": True, "skip_missing": True}),
    ("a,b\n0.5,no\n", r"or holds 0 and 1 \(if outcomes are words: --positive WORD\); expected --outcome COLUMN", {}),
    ("a,b\n0.5,no\n", "named so or holds 'ja'; expected --outcome COLUMN, of: 'a', 'b'", {"positive": "ja"}),
    ("a,b,z\n1,0,a\n0,1,d\n", "no column is named so or holds names of other columns", {"classes": True}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "words", "asked", "ways"),
    [*((*row, (None, True)) for row in ROWS), *((*row, (None,)) for row in COLUMNS)],
)
def test_bad_input_is_one_line_that_says_where(tmp_path, text, words, asked, ways):
    path = written(tmp_path, text)
    for parts in ways:
        with pytest.raises(OnlinecalError, match=words) as error:
            report(path, parts=parts, **asked)
        assert "\n" not in str(error.value)


def test_labels_that_are_left_out_have_no_column(tmp_path):
    text = "a,b,y\n.5,.5,a\n.2,.8,b\n.1,.9,void\n.1,.9,\n"
    assert log(tmp_path, text, classes=True, drop=("void",), skip_missing=True).rows == 2


def test_a_thousand_groups_and_sixteen_that_may_overlap_are_taken(tmp_path):
    rows = "".join(f".5,{i % 2},{i},{i % 16}\n" for i in range(1000))
    found = log(tmp_path, f"p,y,g,h\n{rows}", by=("g",), groups=("h",))
    assert (len(found.groups), len(found.members)) == (1000, 16)


@pytest.mark.parametrize(("off", "said"), [(9e-7, False), (1.1e-6, True)])
def test_sums_that_miss_1_by_more_than_a_millionth_are_cautioned_against(tmp_path, off, said):
    path = written(tmp_path, f"a,b,y\n.5,{0.5 + off:.8f},a\n.5,.5,b\n")
    found = report(path, classes=True)
    assert any("caution: the sum of probabilities" in each for each in found.said) is said


@pytest.mark.parametrize(("forecast", "outcome"), [("[0.5, 0.25]", "[1, 0]"), ("0.5", "[1]")])
def test_lists_in_place_of_numbers_are_refused(tmp_path, forecast, outcome):
    path = written(tmp_path, f'{{"forecast": {forecast}, "outcome": {outcome}}}', "log.json")
    with pytest.raises(OnlinecalError, match=r"has a list or a record in each row; expected num"):
        read_log(Table(path), Asked(("forecast",), outcome="outcome"))


CELLS = st.one_of(
    st.sampled_from(["0", "1", "0.5", "1e-320", "nan", "inf", "-0", "yes", "", " ", '"', "0,5", "50%", "1_0"]),
    st.sampled_from(["\x00", "é", "true", "\r", "1e999"]),
    st.text(max_size=4),
)  # fmt: skip


@given(
    rows=st.lists(st.lists(CELLS, min_size=1, max_size=4), max_size=6),
    header=st.lists(st.sampled_from(["p", "y", "p", "t", "", "0", "w"]), min_size=1, max_size=4),
    between=st.sampled_from([",", ";", "\t"]),
    cut=st.integers(0, 30),
    junk=st.binary(max_size=6),
    asked=st.sampled_from([{}, {"time": "t"}, {"weight": "w"}, {"positive": "yes"}, {"skip_missing": True}]),
)
def test_whatever_is_in_a_file_it_is_read_or_refused(
    tmp_path_factory, rows, header, between, cut, junk, asked
):
    text = "\n".join(between.join(row) for row in [header, *rows])
    path = tmp_path_factory.mktemp("fuzz") / "f.csv"
    data = text.encode("utf-8", "surrogatepass")
    path.write_bytes(data[:cut] + junk + data[cut:] if junk else data)
    try:
        found = read_log(Table(path), Asked(**asked))
    except OnlinecalError:
        return
    for p in found.forecasts.values():
        assert ((p >= 0.0) & (p <= 1.0)).all()
        assert len(p) == found.rows >= 1
    assert np.isin(found.outcomes, [0.0, 1.0]).all()


# ---------------------------------------------------------------- words, amounts and expected outcomes

MARKET = "p,resolution\n.1,NO\n.4,NO\n.35,YES\n.8,YES\n.65,MKT\n.2,CANCEL\n.9,YES\n.55,no \n"


@pytest.mark.parametrize("parts", [False, True])
def test_words_that_are_neither_yes_nor_no_are_asked_for_or_left_out(tmp_path, parts):
    path = written(tmp_path, MARKET)
    score, found = briers(path, positive="yes", drop=("mkt", "Cancel"), parts=parts)
    assert (score["p"], found.rows) == (pytest.approx(63 / 400), 6)
    assert "2 of 8 rows are left out: 'mkt', 'Cancel' in 'resolution'" in found.said
    assert not any("have no outcome" in text for text in found.columns[0].cautions)
    # All three words may be meant.
    score, found = briers(path, positive="yes", negative=("no", "mkt", "cancel"), parts=parts)
    assert (score["p"], found.rows) == (pytest.approx((6 * 0.1575 + 0.65**2 + 0.2**2) / 8), 8)
    path = written(tmp_path, "a,b,y\n.5,.5,a\n.25,.75,b\n.5,.5,void\n")
    assert briers(path, classes=True, drop=("void",))[0] == dict.fromkeys("ab", pytest.approx(5 / 32))


def test_watch_and_recalibrate_take_the_same_words(tmp_path):
    path, state = written(tmp_path, MARKET), tmp_path / "state"
    asked, monitor = Asked(positive="yes", drop=("mkt", "cancel")), Monitor()
    watch(monitor, path, asked)
    assert monitor.events == 6
    with pytest.raises(OnlinecalError, match="expected one word for 0"):
        watch(Monitor(), path, Asked(positive="yes"))
    # A word that comes later is refused in its line, and may be dropped by the same watch.
    path = written(tmp_path, "p,y\n.5,yes\n.5,no\n")
    watch(Monitor(), path, Asked(positive="yes"), state=state)
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
    path, out = str(written(tmp_path, MARKET)), tmp_path / "out.csv"
    made, _ = recalibrate_file(path, out, "calibeating", asked=asked, measures=["brier"])
    assert len(made.forecasts) == 6
    assert [line.endswith(",") for line in out.read_text().splitlines()[1:]].count(True) == 2
    # An amount, too; and another threshold is another event.
    path, state, monitor = written(tmp_path, AMOUNTS), tmp_path / "amounts", Monitor()
    watch(monitor, path, Asked(outcome="y", above=10.0, skip_missing=True), state=state)
    assert monitor.events == 3
    with pytest.raises(OnlinecalError, match="--above 0"):
        watch(Monitor.load(state), path, Asked(outcome="y", above=0.0))


def test_expected_outcomes(tmp_path):
    """ECE is that of their means; the Brier score is the expected one, in which a tie is no certainty."""
    settings = Settings(draws=0, measures=("brier", "ece"))
    found = report(written(tmp_path, TIES), settings=settings, fractional=True, by=("site",))
    p, q = np.array([0.25, 0.5, 0.75, 0.25]), np.array([0, 0.5, 1, 0.5])
    assert found.rows == 4
    assert found.columns[0].brier.score == pytest.approx(np.mean((p - q) ** 2 + q * (1 - q)))
    assert found.columns[0].evaluation["ece"] == pytest.approx(0.25 * 0.25)
    groups = {part.name: (part.rows, part.forecast, part.event) for part in found.columns[0].groups}
    assert groups == {"a": (2, 0.25, 0.25), "b": (2, 0.625, 0.75)}
    assert any(
        "2 of 4 outcomes q are between 0 and 1" in text and "0.125 more" in text for text in found.said
    )
    assert oc.evaluate(p, q, fractional=True, measures=["ece"])["ece"] == pytest.approx(0.25 * 0.25)
    assert oc.measures.ece(oc.JointDistribution.from_counts(p, np.ones(4), q)) == pytest.approx(0.25 * 0.25)
    above = oc.measures.brier(p, [3, 12.5, 10, 11], above=10)
    assert above == pytest.approx((0.25**2 + 0.5**2 + 2 * 0.75**2) / 4)


def test_intervals_of_expected_outcomes_count_rows(tmp_path, seed):
    """They are those of rows as clusters, and so are p-values."""
    rng, asked = (
        np.random.default_rng([seed, 91]),
        {"measures": ["cutoff_ce"], "bootstrap": 99, "reference": 99},
    )
    p = rng.choice([0.25, 0.5, 0.75], 200)
    q = np.where(rng.random(200) < 0.5, rng.beta(4 * p, 4 * (1 - p)).round(3), rng.random(200) < p)
    same = oc.evaluate(p, q, fractional=True, seed=39, **asked)
    between = (q > 0) & (q < 1)
    both, label = np.concatenate((p, p[between])), np.concatenate((np.arange(200), np.flatnonzero(between)))
    y = np.concatenate((np.where(between, 1.0, q), np.zeros(between.sum())))
    w = np.concatenate((np.where(between, q, 1.0), 1.0 - q[between]))
    both, y, w, label = (each[np.argsort(label, kind="stable")] for each in (both, y, w, label))
    found = oc.evaluate(both, y, weights=w, clusters=label, seed=39, **asked)
    assert str(found) == str(same)
    path = written(tmp_path, "p,result\n" + "".join(f"{a},{b}\n" for a, b in zip(p, q, strict=True)))
    read = report(path, settings=Settings(99, measures=("cutoff_ce",), seed=39), fractional=True)
    row = read.columns[0].evaluation.rows[0]
    assert (row.value, row.interval, row.p_value) == (
        same["cutoff_ce"],
        same.rows[0].interval,
        same.rows[0].p_value,
    )
