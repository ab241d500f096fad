"""Files that are read in parts say what is said of them in memory; needs DuckDB (the extra 'large')."""

import builtins

import numpy as np
import pandas as pd
import pytest

from onlinecal.core.errors import InvalidData, InvalidParameter
from onlinecal.forecasts.measuring import Settings
from onlinecal.forecasts.reading import Asked
from onlinecal.forecasts.source import report_of

FAST = ("smooth_ce", "ece", "brier")


def both(path, asked, settings):
    return [report_of(str(path), asked, settings, in_parts=parts) for parts in (False, True)]


def table(n, digits):
    rng = np.random.default_rng(n)
    p = rng.random(n)
    p = p if digits is None else np.round(p, digits)
    return pd.DataFrame(
        {"p": p, "q": np.round(0.01 + 0.9 * p, 6), "site": rng.choice(["a", "b c", "d'e"], n),
         "y": (rng.random(n) < p).astype(int)}
    )  # fmt: skip


@pytest.mark.parametrize("name", ["f.csv", "f.parquet", "f.csv.gz", "odd ' name.csv"])
def test_few_predictions_give_the_same_report(tmp_path, name):
    pytest.importorskip("duckdb")
    frame, path = table(2000, 2), tmp_path / name
    frame.to_parquet(path) if name.endswith("parquet") else frame.to_csv(path, index=False)
    plain, parts = both(path, Asked(forecasts=("p", "q"), by="site"), Settings(draws=20, measures=FAST))
    assert plain.rows == parts.rows
    for a, b in zip(plain.columns, parts.columns, strict=True):
        assert str(a.evaluation) == str(b.evaluation)
        assert (a.brier, a.log, a.threshold, a.threshold_p) == (b.brier, b.log, b.threshold, b.threshold_p)
        assert a.groups == b.groups
        assert a.cautions == b.cautions
    assert [(d.score, d.first, d.second) for d in plain.differences] == [
        (d.score, d.first, d.second) for d in parts.differences
    ]
    for a, b in zip(plain.differences, parts.differences, strict=True):
        assert b.mean == pytest.approx(a.mean, rel=1e-9)
        assert b.error == pytest.approx(a.error, rel=1e-9)
        assert b.adjusted == pytest.approx(a.adjusted, rel=1e-6, abs=1e-300)


def test_many_predictions_go_to_the_same_grid(tmp_path):
    pytest.importorskip("duckdb")
    path = tmp_path / "f.csv"
    table(5000, None).to_csv(path, index=False)
    settings = Settings(draws=20, measures=("smooth_ce", "ece"), distinct=1000, grid=128)
    plain, parts = both(path, Asked(forecasts=("p",)), settings)
    a, b = plain.columns[0].evaluation, parts.columns[0].evaluation
    assert b.refused == ("ece",)
    assert b.moved[0] == 128
    assert b.moved[1] == pytest.approx(a.moved[1], rel=1e-9)
    assert (b.gamma.predictions == a.gamma.predictions).all()
    assert (b.gamma.counts == a.gamma.counts).all()
    assert (b.gamma.positives == a.gamma.positives).all()
    first = next(row for row in a.rows if row.name == "smooth_ce")
    assert b.rows[0].interval == pytest.approx(first.interval, rel=1e-9)
    # Between the two numbers they are counted to the last one, in memory and in parts.
    some = Settings(draws=0, measures=("smooth_ce",), distinct=6000)
    assert both(path, Asked(forecasts=("p",)), some)[1].columns[0].gamma.levels == 5000


def test_words_per_cent_and_missing_rows(tmp_path):
    pytest.importorskip("duckdb")
    path = tmp_path / "f.csv"
    path.write_text("p;r\n25;yes\n ;no\n50;\n75;No\n100;YES\n")
    asked = Asked(outcome="r", forecasts=("p",), positive="YES", percent=True, skip_missing=True)
    plain, parts = both(path, Asked(**{**vars(asked), "positive": "yes"}), Settings(draws=0, measures=FAST))
    assert parts.rows == plain.rows == 3
    assert "2 of 5 rows have no forecast or outcome and are left out" in parts.said
    assert parts.columns[0].gamma.predictions.tolist() == [0.25, 0.75, 1.0]


@pytest.mark.parametrize(
    ("text", "words", "asked"),
    [
        ("p,y\n", "no rows", {}),
        (
            "p,y\n0.5,1\n1.5,0\n",
            "holds 1.5; expected a probability in [0, 1], or --percent",
            {"forecasts": ("p",)},
        ),
        ("p,y\n0.5,1\nx,0\n", "holds 'x'; expected a number", {"forecasts": ("p",)}),
        ("p,y\n0.5,1\n0.5,perhaps\n", "holds 'perhaps'; expected 0 or 1, or --positive", {}),
        ("p,y\n0.5,1\n0.5,0\n", "no row of column 'y' holds 'ja'", {"positive": "ja", "outcome": "y"}),
        ("p,y\n0.5,1\n,0\n", "--skip-missing", {}),
        ("p,y\n,1\n,0\n", "no row has both", {"skip_missing": True, "forecasts": ("p",)}),
        ("p,y\n0.5,1\n" + "0.5,1\n" * 3000 + "0.5,1,7\n", "cannot be read in parts", {}),
    ],
)
def test_bad_input_is_one_line(tmp_path, text, words, asked):
    pytest.importorskip("duckdb")
    path = tmp_path / "f.csv"
    path.write_text(text)
    with pytest.raises(InvalidData) as error:
        report_of(str(path), Asked(**asked), Settings(draws=0), in_parts=True)
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_what_needs_rows_is_refused(tmp_path):
    (tmp_path / "f.csv").write_text("p,y,t\n0.5,1,1\n")
    for asked, word in ((Asked(time="t"), "--time"), (Asked(weight="t"), "--weight")):
        with pytest.raises(InvalidParameter, match=word):
            report_of(str(tmp_path / "f.csv"), asked, Settings(), in_parts=True)


def test_without_the_engine_it_is_said_what_to_install(tmp_path, monkeypatch):
    (tmp_path / "f.csv").write_text("p,y\n0.5,1\n")
    real = builtins.__import__

    def without(name, *given, **options):
        if name == "duckdb":
            raise ImportError(name)
        return real(name, *given, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(InvalidData, match="install duckdb"):
        report_of(str(tmp_path / "f.csv"), Asked(), Settings(), in_parts=True)
