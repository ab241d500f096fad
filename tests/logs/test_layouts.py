"""Files of platforms: the layout is told by the columns, questions without an answer are left out, options win."""

import json

import numpy as np
import pytest

from onlinecal.core.errors import OnlinecalError
from onlinecal.logs.columns import Asked
from onlinecal.logs.measuring import Settings
from onlinecal.logs.source import report_of
from onlinecal.monitoring.monitor import Monitor
from onlinecal.monitoring.watching import watch
from onlinecal.recalibration.files import recalibrate_file
from tests.command_line import onlinecal

MARKETS = [
    {"id": "a", "probability": 0.25, "outcomeType": "BINARY", "isResolved": True, "resolution": "NO",
     "resolutionProbability": 0.25, "pool": {"YES": 1, "NO": 3}},
    {"id": "b", "probability": 0.5, "outcomeType": "BINARY", "isResolved": True, "resolution": "YES"},
    {"id": "c", "probability": 0.75, "outcomeType": "BINARY", "isResolved": True, "resolution": "MKT",
     "resolutionProbability": 0.25},
    {"id": "d", "probability": 0.9, "outcomeType": "BINARY", "isResolved": True, "resolution": "CANCEL"},
    {"id": "e", "probability": 0.9, "outcomeType": "BINARY", "isResolved": False},
    {"id": "f", "outcomeType": "MULTIPLE_CHOICE", "isResolved": True, "resolution": "xyz"},
    {"id": "g", "probability": 0.9, "outcomeType": "PSEUDO_NUMERIC", "isResolved": True, "resolution": "NO"},
]  # fmt: skip
BETS = [
    {"id": f"bet{i}", "contractId": market, "probBefore": 0.5, "probAfter": after, "outcome": side, "isRedemption": no}
    for i, (market, after, side, no) in enumerate([
        ("a", 0.5, "YES", False), ("a", 0.25, "NO", False), ("b", 0.75, "YES", False), ("b", 0.5, "NO", True),
        ("e", 0.9, "YES", False), ("f", 0.9, "YES", False),
    ])
]  # fmt: skip
FORECASTS = """Question ID,Forecaster ID,Start Time,Probability Yes,Continuous CDF
1,7,2026-01-12 16:06:47.781475+00:00,0.25,
1,8,2026-01-13 16:06:47.781475+00:00,0.5,
2,7,2026-01-12 16:06:47.781475+00:00,0.75,
3,7,2026-01-12 16:06:47.781475+00:00,,"[0.0, 1.0]"
4,7,2026-01-12 16:06:47.781475+00:00,0.9,
5,7,2026-01-12 16:06:47.781475+00:00,0.9,
"""
QUESTIONS = """Question ID,Question Title,Question Type,Resolution
1,"Yes, or no?",binary,no
2,,binary,yes
3,,numeric,123.4
4,,binary,annulled
5,,binary,
"""
SET = [
    {"id": "q", "source": "manifold", "forecast": 0.25, "resolution_date": None, "direction": None},
    {"id": "r", "source": "manifold", "forecast": 0.9, "resolution_date": None, "direction": None},
    {"id": "q", "source": "fred", "forecast": 0.5, "resolution_date": "2025-01-08", "direction": None},
    {"id": "q", "source": "fred", "forecast": 0.5, "resolution_date": "2025-02-01", "direction": None},
    {"id": "q", "source": "fred", "forecast": 0.9, "resolution_date": "2026-01-01", "direction": None},
]
RESOLUTIONS = [
    {"id": "q", "source": "manifold", "resolution_date": "2025-03-03", "resolved_to": 1.0, "resolved": True},
    {"id": "r", "source": "manifold", "resolution_date": "2025-03-03", "resolved_to": 0.4, "resolved": False},
    {"id": "q", "source": "fred", "resolution_date": "2025-01-08", "resolved_to": 0.0, "resolved": True},
    {"id": "q", "source": "fred", "resolution_date": "2025-02-01", "resolved_to": 1.0, "resolved": True},
    {"id": ["q", "r"], "source": "fred", "direction": [1, -1], "resolution_date": "2025-02-01", "resolved_to": 0.0,
     "resolved": True},
]  # fmt: skip


@pytest.fixture
def files(tmp_path):
    texts = {
        "markets.json": json.dumps(MARKETS), "bets.jsonl": "\n".join(map(json.dumps, BETS)),
        "open.json": json.dumps(MARKETS[4:5]), "forecast_data.csv": FORECASTS, "question_data.csv": QUESTIONS,
        "set.json": json.dumps({"model": "m", "forecasts": SET}),
        "resolutions.json": json.dumps({"question_set": "s", "resolutions": RESOLUTIONS}),
    }  # fmt: skip
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def brier(files, name, beside=None, **asked):
    beside = beside and str(files / beside)
    report = report_of(
        str(files / name), Asked(resolutions=beside, **asked), Settings(draws=0, measures=("brier",))
    )
    return [one.brier.score for one in report.columns], report


@pytest.mark.parametrize(
    ("name", "beside", "asked", "losses", "cluster", "said"),
    [
        ("markets.json", None, {}, [0.25, 0.5], "",
         ["read as a Manifold export of markets", "1 of 7 rows have no forecast or outcome",
          "4 of 7 rows are left out: 'CANCEL', 'MKT' in 'resolution', or not 'BINARY' in 'outcomeType'"]),
        ("markets.json", None, {"positive": "NO", "negative": ("yes",)}, [0.75, 0.5], "", ["outcome 1 is 'NO'"]),
        ("markets.json", None, {"negative": ("NO", "MKT")}, [0.25, 0.5, 0.75], "", ["3 of 7 rows are left out"]),
        ("bets.jsonl", "markets.json", {}, [0.5, 0.25, 0.25], "contractId", ["2 questions in 'contractId'"]),
        ("bets.jsonl", "markets.json", {"forecasts": ("probBefore",), "questions": False}, [0.5, 0.5, 0.5], "", []),
        ("bets.jsonl", "markets.json", {"cluster": "id"}, [0.5, 0.25, 0.25], "id", ["rows with one label in 'id'"]),
        ("forecast_data.csv", "question_data.csv", {}, [0.25, 0.5, 0.25], "Question ID",
         ["read as a Metaculus export of forecasts", "'annulled', 'ambiguous' in 'Resolution'"]),
        ("set.json", "resolutions.json", {}, [0.75, 0.5, 0.5], "id", ["read as a ForecastBench forecast set"]),
    ],
)  # fmt: skip
def test_layouts(files, name, beside, asked, losses, cluster, said):
    score, report = brier(files, name, beside, **asked)
    assert score == [pytest.approx(sum(loss**2 for loss in losses) / len(losses))]
    assert (report.rows, report.cluster) == (len(losses), cluster)
    assert all(any(words in text for text in report.said) for words in said), report.said


def test_a_question_settled_at_a_price_is_an_expected_outcome_where_that_is_asked_for(files):
    score, report = brier(files, "markets.json", fractional=True)
    assert score == [pytest.approx((0.25**2 + 0.5**2 + 0.25 * 0.25**2 + 0.75 * 0.75**2) / 3)]
    assert report.rows == 3
    assert brier(files, "markets.json", fractional=True, drop=("MKT",))[1].rows == 2
    # Its price is that of YES.
    assert brier(files, "markets.json", fractional=True, positive="NO")[1].rows == 2


@pytest.mark.parametrize(
    ("name", "beside", "words"),
    [
        ("bets.jsonl", None, "bets without outcomes .column 'outcome' is something else.; expected --resolutions FILE"),
        ("forecast_data.csv", None, "forecasts without outcomes; expected --resolutions FILE with question_data.csv"),
        ("set.json", None, "forecast set without outcomes; expected --resolutions FILE with the resolution set"),
        ("set.json", "markets.json", "no row has a 'id' that"),
        ("open.json", None, "markets without outcomes .column 'isResolved' is something else.; expected --resolutions"),
        ("forecast_data.csv", "forecast_data.csv", "line 2: 1 comes again in line 3; expected each question once"),
    ],
)  # fmt: skip
def test_files_without_outcomes_are_refused(files, name, beside, words):
    with pytest.raises(OnlinecalError, match=words):
        brier(files, name, beside)


def test_a_forecast_without_a_date_is_of_no_question_that_has_two(files):
    """Which one it is of is not known, so that it has no outcome."""
    rows = [*SET, SET[2] | {"resolution_date": None, "forecast": 0.9}]
    (files / "set.json").write_text(json.dumps({"forecasts": rows}))
    assert brier(files, "set.json", "resolutions.json")[1].rows == 3


def test_any_two_files_are_joined_by_a_column_that_both_have(tmp_path):
    (tmp_path / "p.csv").write_text("race,p\nx,.5\ny,.25\nx,.25\nz,.9\n")
    (tmp_path / "y.csv").write_text("race,won\ny,0\nx,1\n")
    score, report = brier(tmp_path, "p.csv", "y.csv", key="race", skip_missing=True)
    assert (score, report.rows) == ([pytest.approx((0.5**2 + 0.25**2 + 0.75**2) / 3)], 3)
    with pytest.raises(OnlinecalError, match="no column that both have"):
        brier(tmp_path, "p.csv", "y.csv")


def test_records_in_a_record_and_fields_of_records_within_them(tmp_path):
    rows = [
        {"question": {"title": "a", "outcome": 1}, "forecast": {"p": 0.25}, "votes": [{"forecast": 0.5}]},
        {"question": {"title": "b", "outcome": 0}, "forecast": {"p": 0.5}, "votes": []},
    ]
    (tmp_path / "f.json").write_text(json.dumps({"count": 2, "data": rows}))
    (tmp_path / "f.jsonl").write_text("\n".join(map(json.dumps, rows)))
    for name in ("f.json", "f.jsonl"):
        score, report = brier(tmp_path, name)
        assert (score, report.outcome) == ([pytest.approx((0.75**2 + 0.5**2) / 2)], "question.outcome")
        assert report.columns[0].name == "forecast.p"
        recalibrate_file(str(tmp_path / name), tmp_path / f"{name}.csv", "calibeating", measures=["brier"])
    assert '"[{""forecast"": 0.5}]"' in (tmp_path / "f.json.csv").read_text()


def test_columns_alike_are_no_layout(tmp_path):
    """With another column of outcomes, or where all is named."""
    text = "id,source,forecast,resolution_date,outcome\n1,a,.5,2025-01-01,1\n2,a,.25,2025-01-01,0\n"
    (tmp_path / "f.csv").write_text(text)
    assert not any("read as" in said for said in brier(tmp_path, "f.csv")[1].said)
    (tmp_path / "g.csv").write_text("probability,resolution\n.5,yes\n.25,no\n")
    with pytest.raises(OnlinecalError, match="expected 0 or 1, --positive WORD"):
        brier(tmp_path, "g.csv")
    (tmp_path / "h.csv").write_text("probability,resolution\n.5,yes\n.25,no\n.75,MKT\n")
    assert brier(tmp_path, "h.csv")[0] == [pytest.approx((0.5**2 + 0.25**2) / 2)]


def test_another_column_of_outcomes_has_no_words_of_the_layout(tmp_path):
    (tmp_path / "f.csv").write_text(
        "probability,resolution,outcomeType,won\n.5,YES,BINARY,1\n.25,NO,OTHER,0\n.75,MKT,BINARY,1\n"
    )
    score, report = brier(tmp_path, "f.csv", outcome="won")
    assert (score, report.rows) == ([pytest.approx((0.5**2 + 0.25**2 + 0.25**2) / 3)], 3)


def test_questions_of_a_file_that_is_read_in_parts_are_named(tmp_path):
    rows = "".join(f"{market},.5,.{market}5,{'YES' if market % 2 else 'NO'}\n" for market in range(8)) * 2
    (tmp_path / "f.csv").write_text("contractId,probBefore,probAfter,resolution\n" + rows)
    report = report_of(
        str(tmp_path / "f.csv"), Asked(), Settings(draws=0, measures=("brier",)), in_parts=True
    )
    assert (report.rows, report.cluster) == (16, "")
    assert [each for each in report.said if "--id contractId takes each as a cluster" in each]


def test_recalibrate_and_watch_read_them_too(files):
    made, _ = recalibrate_file(
        str(files / "forecast_data.csv"), files / "out.csv", "calibeating", measures=["brier"],
        asked=Asked(resolutions=str(files / "question_data.csv"), time="Start Time", sort=True),
    )  # fmt: skip
    assert len(made.forecasts) == 4  # that of an open question, too
    lines = "id,probability,outcomeType,isResolved,resolution\na,.25,BINARY,true,NO\nb,.5,MULTIPLE_CHOICE,true,x\n"
    path, state = files / "w.csv", files / "state"
    path.write_text(lines)
    watch(Monitor(), path, Asked(), state=state)
    path.write_text(lines + "c,.5,BINARY,true,YES\nd,.5,BINARY,true,CANCEL\ne,.5,PSEUDO_NUMERIC,true,NO\n")
    monitor = Monitor.load(state)
    watch(monitor, path, Asked(), state=state)
    assert monitor.events == 2


@pytest.mark.parametrize(
    ("text", "given", "more"),
    [
        ("p,y\n50%,yes\n25%,no\n75%,void\n", "--positive yes --drop void --percent", ""),
        ("p,y\n.5,3\n.25,12\n.25,\n", "-y y --above 10 --skip-missing", ""),
        ("p,y,w,g\n.5,1,1,a\n.25,0,1,b\n", "--weight w --by g --id none", "--by g --weight w --id none"),
        ("a,u,b,v\n.5,1,.5,0\n.25,0,.25,0\n", "-f a -y u -f b -y v", "-f a -y u -f b -y v"),
    ],
)  # fmt: skip
def test_the_next_command_reads_the_file_in_the_same_way(tmp_path, text, given, more):
    """It is run as it is printed."""
    (tmp_path / "a file.csv").write_text(text)
    said = onlinecal(f"measure 'a file.csv' {given} -m brier --draws 0", cwd=tmp_path).stdout
    following = " ".join(said[said.rindex("Next: onlinecal ") + len("Next: onlinecal ") :].split())
    assert following.startswith("measure 'a file.csv'")
    assert (more or given.removeprefix("-y y ")) in following
    assert "Next:" in onlinecal(f"{following} -m brier", cwd=tmp_path).stdout


def test_the_next_command_after_a_refuted_panel_asks_for_times(tmp_path):
    """Else later forecasts of a question would be told its outcome."""
    rng = np.random.default_rng(5)
    question = np.repeat(np.arange(100), 8)
    y = (rng.random(100) < 0.5)[question]
    rows = "".join(
        f"{q},{p:.3f},{o:d}\n" for q, p, o in zip(question, rng.uniform(0, 0.2, 800), y, strict=True)
    )
    (tmp_path / "f.csv").write_text("question,p,y\n" + rows)
    said = " ".join(onlinecal("measure f.csv -m brier", cwd=tmp_path).stdout.split())
    assert "Not calibrated" in said
    assert "always acting would be better" in said
    assert "Next: name the times of forecasts and of outcomes: onlinecal recalibrate f.csv" in said
    assert "--time COLUMN --resolved COLUMN -o f_better.csv" in said
    # Recalibration takes no expected outcomes.
    (tmp_path / "t.csv").write_text("p,y\n" + "0.1,0.5\n0.2,1\n0.2,0\n" * 60)
    said = " ".join(onlinecal("measure t.csv --fractional -m brier", cwd=tmp_path).stdout.split())
    assert "Next: leave out the outcomes between 0 and 1: onlinecal recalibrate t.csv" in said
