"""Files of forecasts: what is guessed, what is refused and where; bad input is a clear line, whatever it is."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlinecal.core.errors import InvalidData, OnlinecalError
from onlinecal.core.files import Table
from onlinecal.logs.measuring import Settings
from onlinecal.logs.reading import Asked, read_log
from onlinecal.logs.source import report_of
from onlinecal.monitoring.monitor import Monitor
from onlinecal.monitoring.watching import watch


def log(tmp_path, text, **asked):
    path = tmp_path / "f.csv"
    path.write_text(text)
    return read_log(Table(path), Asked(**asked))


@pytest.mark.parametrize(
    ("header", "forecasts", "outcome"),
    [
        ("id,Probability,Outcome", ["Probability"], "Outcome"), ("id,y_prob,y_true", ["y_prob"], "y_true"),
        ("id,model a,rain", ["model a"], "rain"), ("id,P(yes),resolved", ["P(yes)"], "resolved"),
        ("a,b,rain", ["b"], "rain"),
    ],
)  # fmt: skip
def test_columns_are_guessed_by_name_or_by_what_they_hold(tmp_path, header, forecasts, outcome):
    found = log(tmp_path, f"{header}\n7,0.25,1\n8,0.5,0\n")
    assert (list(found.forecasts), found.outcome) == (forecasts, outcome)
    name = forecasts[0]
    assert found.said == (
        f"outcomes are read from column {outcome!r}",
        f"forecasts are read from column {name!r}",
    )


def test_parquet_is_as_csv(tmp_path):
    path = tmp_path / "f.parquet"
    dates = pd.to_datetime(["2020-01-01", "2020-01-02", "2020-01-04"])
    p, y, site = [0.25, 0.5, 0.75], [True, False, True], ["a", "b", "a"]
    pd.DataFrame({"p": p, "y": y, "day": dates, "site": site}).to_parquet(path)
    found = read_log(Table(path), Asked(time="day", by=("site",)))
    assert (found.forecasts["p"].tolist(), found.outcomes.tolist()) == (p, [1.0, 0.0, 1.0])
    assert np.diff(found.times).tolist() == [1.0, 2.0]
    assert {name: rows.tolist() for name, rows in found.groups.items()} == {"a": [0, 2], "b": [1]}


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
        ("p,y\n25%,1\n50 %,0\n", {"percent": True}, [0.25, 0.5], [1, 0], ()),
        ("p;y\n0,25;1\n1,0;0\n", {}, [0.25, 1.0], [1, 0], ()),
        ("p,y\n0.25,1\n,0\n0.5,NA\n0.75,0\n", {"skip_missing": True}, [0.25, 0.75], [1, 0],
         ("2 of 4 rows have no forecast or outcome and are left out",)),
        ("t,p,y\n2020-01-03,.1,0\n2020-01-01,.2,1\n2020-01-02,.3,0\n", {"time": "t", "sort": True}, [0.2, 0.3, 0.1],
         [1, 0, 0], ("rows are brought into the order of 't'",)),
    ],
)  # fmt: skip
def test_cells_in_every_form(tmp_path, text, asked, p, y, said):
    found = log(tmp_path, text, **asked)
    assert (found.forecasts["p"].tolist(), found.outcomes.tolist()) == (p, y)
    assert set(said) <= set(found.said)
    if "sort" in asked:
        assert [found.time_words(i) for i in range(3)] == ["2020-01-01", "2020-01-02", "2020-01-03"]
    copies = log(tmp_path, "id,p,y\n1,0.5,1\n1,0.5,1\n2,0.5,1\n", forecasts=("p",))
    assert copies.duplicates == 1


def test_columns_of_other_labels_are_no_forecasts_of_the_positive_one(tmp_path):
    text = "Low,mid,high,mine,y\n.5,.25,.25,.5,low\n.25,.5,.25,.5,mid\n.25,.25,.5,.5,high\n"
    found = log(tmp_path, text, positive="low", negative=("mid", "high"))
    assert [*found.forecasts] == ["Low", "mine"]
    assert "columns of other labels in 'y' are left out; --classes measures each" in found.said


GOOD = "0.5,1\n" * 9
ROWS = [
    ("p,y\n", "no rows; expected at least one", {}),
    (f"p,y\n{GOOD}1.5,1\n", "line 11: column 'p' holds '1.5'; expected a probability in [0, 1]", {}),
    (f"p,y\n{GOOD}-0.25,1\n", "line 11: column 'p' holds '-0.25'; expected a probability in [0, 1]", {}),
    ("p,y\n73,1\n20,0\n", "holds '73'; expected a probability in [0, 1]; these look like per cent: --percent", {}),
    ("p,y\n0.25,1\n1.0000001,0\n.5,1\n", "holds '1.0000001'; expected a probability in [0, 1]", {}),
    ("p,y\n73%,1\n20%,0\n", "has per cent signs; expected plain numbers, or --percent", {}),
    ("p,y\n25,1\n130,0\n", "holds '130'; expected per cent from 0 to 100", {"percent": True}),
    (f"p,y\n{GOOD}high,0\n", "line 11: column 'p' is 'high'; expected a number", {}),
    (f"p,y\n{GOOD}true,0\n", "line 11: column 'p' is 'true'; expected a number", {}),
    (f"p,y\n{GOOD}inf,0\n", "line 11: column 'p' is 'inf'", {}),
    (f"p,y\n{GOOD},0\n", "line 11: column 'p' is missing, as in 1 of ", {}),
    (f"p,y\n{GOOD}0.5,2\n", "line 11: column 'y' holds '2'; expected 0 or 1", {}),
    ("p,y\n0.5,yes\n0.2,no\n", "or --drop WORD to leave out rows (there are: 'no' in 1 row, 'yes'", {}),
    (f"p,y\n{GOOD}0.5,no\n", "no row of column 'y' holds 'ja'; there are: '1', 'no'", {"positive": "ja"}),
    ("p,y\n,1\n,0\n", "no row has both a forecast and an outcome", {"skip_missing": True}),
]  # fmt: skip
COLUMNS = [
    ("\n\n", "is empty", {}),
    ("p,y\n0.5,1\n", "no column 'q'; known: p, y", {"forecasts": ("q",)}),
    ("p,y\n0.5,1\n", "no column 'outcom'; ", {"outcome": "outcom"}),
    ("p,y\n0.5,1\n", "column 'p' is asked for twice", {"outcome": "p"}),
    ("a,b,c\n1,0,1\n0,1,1\n", "columns 'a', 'b', 'c' might be; expected --outcome COLUMN",
     {"forecasts": (), "outcome": None}),
    ("a,y\nx,1\n", "cannot tell which column has the forecasts", {"forecasts": ()}),
    ("p y\n0.5 1\n", "none of , ; tab |", {}),
    ("p,y\n0.5,1,7\n", "line 2 has 3 cells", {}),
    ("t,p,y\nsoon,0.5,1\n", "line 2: column 't' is 'soon'; expected a number or a date", {"time": "t"}),
    ("t,p,y\n2020-01-01,0.5,1\n,0.5,1\n", "line 3: column 't' is missing", {"time": "t"}),
    ("t,p,y\n2,0.5,1\n1,0.5,1\n", "line 3: column 't' goes back in time, from 2 to 1; expected rows in order, or",
     {"time": "t"}),
    ("t,p,y\n1,0.5,1\n", "expected both columns (--time)", {"resolved": "t"}),
    ("t,r,p,y\n2,1,0.5,1\n", "line 2: the outcome is known (1) before the question is asked (2)",
     {"time": "t", "resolved": "r"}),
    ("w,p,y\n-1,0.5,1\n", "line 2: column 'w' holds -1; expected a finite weight", {"weight": "w"}),
    ("w,p,y\n0,0.5,1\n", "all weights in 'w' are 0", {"weight": "w"}),
    ("c,p,y\na,.2,0\n,.3,1\n", "column 'c' is empty; expected the label of a cluster", {"cluster": "c"}),
]  # fmt: skip
THREE = "a,b,c,y\n.5,.3,.2,a\n.2,.5,.3,b\n"
CLASSES = [
    (f"{THREE}.2,.3,.5,c\n", "holds 'a'; expected 0 or 1, .*; `onlinecal measure --classes` measures each label",
     {"forecasts": ("a",)}),
    (f"{THREE}.2,.3,.5,c\n", "columns 'a', 'b', 'c' sum to 1, as .* outcomes; expected .*, or --classes", {}),
    (f"{THREE}.2,.3,.5,d\n", "label 'd' in column 'y' has no column .*; expected a .* label, of: 'a', 'b', 'c', 'y'",
     {"classes": True}),
    (f"{THREE}.2,.3,.5,c\n", "label 'c' in column 'y' has no column .*, of: 'a', 'b'",
     {"classes": True, "forecasts": ("a", "b")}),
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


@pytest.mark.parametrize(("text", "words", "asked"), CLASSES)
def test_labels_without_their_columns_are_refused(tmp_path, text, words, asked):
    (tmp_path / "f.csv").write_text(text)
    with pytest.raises(OnlinecalError, match=words) as error:
        report_of(str(tmp_path / "f.csv"), Asked(**asked), Settings(draws=0, measures=("brier",)))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(("text", "words", "asked"), [*ROWS, *COLUMNS])
def test_bad_input_is_one_line_that_says_where(tmp_path, text, words, asked):
    asked = {"forecasts": ("p",), "outcome": "y"} | asked
    ways = [lambda: log(tmp_path, text, **asked)]
    if words in [row[1] for row in ROWS]:  # in parts as well
        given, settings = Asked(**asked), Settings(draws=0, measures=("brier",))
        ways.append(lambda: report_of(str(tmp_path / "f.csv"), given, settings, in_parts=True))
    for way in ways:
        with pytest.raises(OnlinecalError) as error:
            way()
        assert words in str(error.value)
        assert "\n" not in str(error.value)


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


NAMES = [f"question {i}" for i in range(3000)]


def of_names(columns, *cells):
    return f"{columns}\n" + "".join(f"{','.join(row)}\n" for row in zip(NAMES, *cells, strict=True))


def test_names_are_no_outcomes(tmp_path):
    """A column of many different words, such as one of names, is neither guessed nor offered as that of outcomes."""
    numbers, zeros, words = ["0.25"] * 3000, ["0", "1"] * 1500, ["won", "lost"] * 1500
    file = tmp_path / "f.csv"
    file.write_text(of_names("event,p,happened", numbers, zeros))
    assert read_log(Table(str(file)), Asked()).outcome == "happened"
    monitor = Monitor()
    watch(monitor, file, Asked())
    assert monitor.events == 3000
    file.write_text(of_names("event,p,verdict", numbers, words))
    assert read_log(Table(str(file)), Asked(positive="won")).outcome == "verdict"
    for asked in (Asked(), Asked(positive="question 7")):
        with pytest.raises(InvalidData) as caught:
            read_log(Table(str(file)), asked)
        assert str(caught.value).endswith(
            "expected --outcome COLUMN, of: 'p', 'verdict' (without 'event', of more than 20 words)"
        )
    with pytest.raises(InvalidData) as caught:
        read_log(Table(str(file)), Asked(outcome="event"))
    assert str(caught.value) == (
        f"{file}, line 2: column 'event' holds 'question 0' and more than 20 other words, which are no outcomes; "
        "expected 0 or 1, or a few words and --positive WORD"
    )
    # Many labels with a column each are classes.
    labels = [f"label {i}" for i in range(30)]
    rows = "".join(f"{label},{','.join([str(1 / 32)] * 30)}\n" for label in labels)
    file.write_text(f"class,{','.join(labels)}\n{rows}")
    assert read_log(Table(str(file)), Asked(classes=True)).outcome == "class"


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ('{"forecast": [0.5, 0.25], "outcome": [1, 0]}', "forecast"),
        ('[{"forecast": 0.5, "outcome": [1]}]', "outcome"),
    ],
)
def test_lists_in_place_of_numbers_are_refused(tmp_path, text, column):
    path = tmp_path / "log.json"
    path.write_text(text)
    with pytest.raises(
        InvalidData, match=rf"column '{column}' has a list or a record in each row; expected num"
    ):
        read_log(Table(path), Asked(("forecast",), outcome="outcome"))
