"""Files of forecasts: what is guessed, what is refused and where; bad input is a clear line, whatever it is."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlinecal.core.errors import OnlinecalError
from onlinecal.core.files import Table
from onlinecal.forecasts.reading import Asked, read_log


def log(tmp_path, text, name="f.csv", delimiter=None, encoding=None, **asked):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_log(Table(path, delimiter=delimiter, encoding=encoding), Asked(**asked))


def test_every_number_is_the_float_that_is_written(tmp_path):
    p = np.random.default_rng(0).random(500)
    text = "p,y\n" + "".join(f"{x!r},{i % 2}\n" for i, x in enumerate(p.tolist()))
    found = log(tmp_path, text)
    assert (found.forecasts["p"] == p).all()
    assert (found.outcomes == np.arange(500) % 2).all()
    assert found.said == ("outcomes are read from column 'y'", "forecasts are read from column 'p'")


@pytest.mark.parametrize(
    ("header", "forecasts", "outcome"),
    [
        ("id,Probability,Outcome", ["Probability"], "Outcome"),
        ("id,y_prob,y_true", ["y_prob"], "y_true"),
        ("id,model a,rain", ["model a"], "rain"),
        ("id,P(yes),resolved", ["P(yes)"], "resolved"),
        ("a,b,rain", ["b"], "rain"),
    ],
)
def test_columns_are_guessed_by_name_or_by_what_they_hold(tmp_path, header, forecasts, outcome):
    found = log(tmp_path, f"{header}\n7,0.25,1\n8,0.5,0\n")
    assert list(found.forecasts) == forecasts
    assert found.outcome == outcome


def test_parquet_is_as_csv(tmp_path):
    path = tmp_path / "f.parquet"
    dates = pd.to_datetime(["2020-01-01", "2020-01-02", "2020-01-04"])
    frame = pd.DataFrame(
        {"p": [0.25, 0.5, 0.75], "y": [True, False, True], "day": dates, "site": ["a", "b", "a"]}
    )
    frame.to_parquet(path)
    found = read_log(Table(path), Asked(time="day", by=("site",)))
    assert found.forecasts["p"].tolist() == [0.25, 0.5, 0.75]
    assert found.outcomes.tolist() == [1.0, 0.0, 1.0]
    assert np.diff(found.times).tolist() == [1.0, 2.0]
    assert {name: rows.tolist() for name, rows in found.groups.items()} == {"a": [0, 2], "b": [1]}


@pytest.mark.parametrize(
    ("cells", "asked", "wanted", "said"),
    [
        (["True", "false", "TRUE"], {}, [1, 0, 1], None),
        (["1.0", "0", "1"], {}, [1, 0, 1], None),
        (["yes", "no", "Yes"], {"positive": "yes"}, [1, 0, 1], "outcome 1 is 'yes' in 'y', and 0 is 'no'"),
        (["yes", "no", "yes "], {"positive": "YES"}, [1, 0, 1], "outcome 1 is 'YES' in 'y', and 0 is 'no'"),
        (["2", "1", "2.0"], {"positive": "2"}, [1, 0, 1], "outcome 1 is '2' in 'y', and 0 is '1'"),
    ],
)
def test_outcomes_in_words(tmp_path, cells, asked, wanted, said):
    found = log(tmp_path, "p,y\n" + "".join(f"0.5,{cell}\n" for cell in cells), **asked)
    assert found.outcomes.tolist() == wanted
    assert said is None or said in found.said


def test_per_cent_decimal_commas_missing_and_equal_rows(tmp_path):
    assert log(tmp_path, "p,y\n25%,1\n50 %,0\n", percent=True).forecasts["p"].tolist() == [0.25, 0.5]
    assert log(tmp_path, "p;y\n0,25;1\n1,0;0\n").forecasts["p"].tolist() == [0.25, 1.0]
    found = log(tmp_path, "p,y\n0.25,1\n,0\n0.5,NA\n0.75,0\n", skip_missing=True)
    assert found.forecasts["p"].tolist() == [0.25, 0.75]
    assert "2 of 4 rows have no forecast or outcome and are left out" in found.said
    assert log(tmp_path, "id,p,y\n1,0.5,1\n1,0.5,1\n2,0.5,1\n", forecasts=("p",)).duplicates == 1


def test_rows_are_sorted_by_time_if_that_is_asked_for(tmp_path):
    text = "t,p,y\n2020-01-03,0.1,0\n2020-01-01,0.2,1\n2020-01-02,0.3,0\n"
    found = log(tmp_path, text, time="t", sort=True)
    assert found.forecasts["p"].tolist() == [0.2, 0.3, 0.1]
    assert [found.time_words(i) for i in range(3)] == ["2020-01-01", "2020-01-02", "2020-01-03"]
    assert "rows are brought into the order of 't'" in found.said


@pytest.mark.parametrize(
    ("text", "words", "asked"),
    [
        ("\n\n", ("is empty",), {}),
        ("p,y\n", ("a header and no rows",), {}),
        ("p,y\n1.5,1\n0.2,0\n", ("line 2", "1.5", "expected a probability in [0, 1]"), {}),
        ("p,y\n0.5,1\n-0.25,0\n", ("line 3", "-0.25", "expected a probability in [0, 1]"), {}),
        ("p,y\n73,1\n20,0\n", ("these look like per cent: --percent",), {}),
        ("p,y\n73%,1\n20%,0\n", ("has per cent signs", "--percent"), {}),
        ("p,y\n0.5,1\nhigh,0\n", ("line 3", "'high'", "expected a number"), {}),
        ("p,y\n0.5,1\ntrue,0\n", ("line 3", "'true'", "expected a number"), {}),
        ("p,y\n0.5,1\n,0\n", ("line 3", "'p' is missing, as in 1 of 2 rows", "--skip-missing"), {}),
        ("p,y\n,1\n,0\n", ("no row has both",), {"skip_missing": True, "forecasts": ("p",)}),
        ("p,y\n0.5,1\ninf,0\n", ("line 3", "inf"), {}),
        ("p,y\n0.5,yes\n0.2,no\n", ("line 2", "'no', 'yes'", "--positive 'yes'"), {}),
        ("p,y\n0.5,yes\n", ("no row of column 'y' holds 'ja'", "'yes'"), {"positive": "ja"}),
        ("p,y\n0.5,2\n0.2,1\n", ("line 2", "expected 0 or 1"), {}),
        ("p,p,y\n0.5,0.5,1\n", ("several columns 'p'",), {"forecasts": ("p",)}),
        ("p,y\n0.5,1\n", ("no column 'q'", "known: p, y"), {"forecasts": ("q",)}),
        ("p,y\n0.5,1\n", ("no column 'outcom'",), {"outcome": "outcom"}),
        ("p,y\n0.5,1\n", ("asked for twice",), {"forecasts": ("p",), "outcome": "p"}),
        ("a,b,c\n1,0,1\n0,1,1\n", ("cannot tell which column has the outcomes", "'a', 'b'", "--outcome"), {}),
        ("a,y\nx,1\n", ("cannot tell which column has the forecasts", "--forecast COLUMN"), {}),
        ("0.5,1\n0.25,0\n", ("the first line holds numbers", "header"), {}),
        ("p,y\n0.5,1,7\n", ("line 2 has 3 cells",), {}),
        ("t,p,y\nsoon,0.5,1\n", ("line 2", "'soon'", "a number or a date"), {"time": "t"}),
        ("t,p,y\n2020-01-01,0.5,1\n,0.5,1\n", ("line 3", "missing"), {"time": "t"}),
        ("t,p,y\n2,0.5,1\n1,0.5,1\n", ("line 3", "goes back in time", "--sort"), {"time": "t"}),
        ("w,p,y\n-1,0.5,1\n", ("line 2", "expected a finite weight"), {"weight": "w", "forecasts": ("p",)}),
        ("w,p,y\n0,0.5,1\n", ("all weights in column 'w' are 0",), {"weight": "w", "forecasts": ("p",)}),
        ("p y\n0.5 1\n", ("none of , ; tab |",), {}),
    ],
)  # fmt: skip
def test_bad_input_is_one_line_that_says_where(tmp_path, text, words, asked):
    with pytest.raises(OnlinecalError) as error:
        log(tmp_path, text, **asked)
    for word in words:
        assert word in str(error.value)
    assert "\n" not in str(error.value)


CELLS = st.one_of(
    st.sampled_from(
        ["0", "1", "0.5", "1e-320", "nan", "inf", "-0", "yes", "", " ", '"', "0,5", "50%", "1_0"]
    ),
    st.sampled_from(["\x00", "é", "true", "\r", "1e999"]),
    st.text(max_size=4),
)


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
