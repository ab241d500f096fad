"""`onlinecal recalibrate`, as a user would use it."""

import json

import pandas as pd
import pytest

import onlinecal as oc
from onlinecal.core.errors import InvalidParameter, OnlinecalError
from onlinecal.forecasts.reading import Asked
from onlinecal.recalibration import files
from onlinecal.recalibration.files import recalibrate_file
from tests.command_line import onlinecal

NOTES = '"a, b"', "NA"
TEXT = "id,day,forecast,outcome,note\n" + "".join(
    f"{i:03},2026-01-{1 + i // 3:02},0.{i % 9 + 1},{(i * i) % 3 % 2},{NOTES[i % 2]}\n" for i in range(60)
)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text(TEXT)
    return path


def test_from_a_file_to_a_file(tmp_path, file):
    said = onlinecal("recalibrate", "mine.csv", "--time", "day", "-o", "out/new.csv", cwd=tmp_path).stdout
    assert "measure" in said
    assert "wrote out/new.csv: 60 rows" in said
    old = pd.read_csv(file, dtype=str, keep_default_na=False)
    new = pd.read_csv(tmp_path / "out" / "new.csv", dtype=str, keep_default_na=False)
    assert (new[old.columns] == old).all(axis=None)
    p, y = old["forecast"].astype(float), old["outcome"].astype(float)
    days = pd.to_datetime(old["day"]).dt.day
    wanted = oc.recalibrate(p, y, times=days)
    assert new["recalibrated"].astype(float).tolist() == wanted.forecasts.tolist()
    assert [f.name for f in (tmp_path / "out").iterdir()] == ["new.csv"]
    rows = json.loads(
        onlinecal(
            "recalibrate", "mine.csv", "--with", '{ name = "calibeating", bins = 3 }', "-o", "b.parquet", "--json",
            "--measure", "brier", "--column", "mended", cwd=tmp_path,
        ).stdout
    )  # fmt: skip
    assert [row["measure"] for row in rows] == ["brier"]
    assert len(rows[0]["before_interval"]) == 2
    mended = pd.read_parquet(tmp_path / "b.parquet")["mended"]
    assert mended.tolist() == oc.recalibrate(p, y, oc.forecasters.Calibeating(bins=3)).forecasts.tolist()


def test_times_of_outcomes(tmp_path):
    frame = pd.DataFrame({"p": [0.5] * 4, "y": [1, 1, 0, None], "t": [1, 2, 3, 4], "r": [3, None, 3, 4]})
    frame.to_csv(tmp_path / "a.csv", index=False)
    asked = Asked(time="t", resolved="r")
    found, _ = recalibrate_file(str(tmp_path / "a.csv"), tmp_path / "b.csv", "calibeating", asked=asked)
    assert found.forecasts.tolist() == [0.5, 0.5, 0.5, 0.5]
    frame["r"] = [2, 3, 3, 4]
    frame.to_parquet(tmp_path / "a.parquet")
    found, _ = recalibrate_file(str(tmp_path / "a.parquet"), tmp_path / "c.csv", "calibeating", asked=asked)
    assert found.forecasts.tolist() == [0.5, 0.5, 0.75, 0.625]


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        ("p,y\n0.5,1\n,0\n", {}, "line 3: column 'p' is missing"),
        ("p,y\n0.5,1\n", {}, "1 row"),
        ("p,y\n0.5,1\n0.5,\n", {}, "1 of 2 outcomes"),
        ("p,y,t\n0.5,1,2026-01-02\n0.5,0,2026-01-01\n", {"time": "t"}, "line 3: column 't' goes back in time"),
        ("p,y,t\n0.5,1,1\n0.5,0,2\n", {"resolved": "t"}, "expected both columns"),
        ("p,y,t,r\n0.5,1,1,1\n0.5,0,2,1\n", {"time": "t", "resolved": "r"}, "line 3: the outcome is known"),
        ("p,y\n0.5,1\n0.5,0\n", {"column": "p"}, "has a column 'p' already"),
        ("p,y\n0.5,1\n0.5,0\n", {"forecaster": "{ name = "}, "is not a table"),
        ("p,y\n0.5,1\n0.5,0\n", {"forecaster": "plat"}, "did you mean 'platt'"),
        ("p,y\n0.5,1\n0.5,0\n", {"output": "mine.csv"}, "is the file that is read"),
        ("p,y\n0.5,1\n0.5,0\n", {"output": "b.txt"}, "ends with .csv or .parquet"),
        ("p,y\n0.5,1\n0.5,0\n", {"measures": ["noting"]}, "noting"),
    ],
)  # fmt: skip
def test_what_is_refused_writes_nothing(tmp_path, text, options, words):
    file = tmp_path / "mine.csv"
    file.write_text(text)
    options = {"forecaster": "calibeating", "output": "b.csv"} | options
    named = {key: options.pop(key) for key in ("forecasts", "time", "resolved") if key in options}
    with pytest.raises(OnlinecalError) as caught:
        recalibrate_file(str(file), tmp_path / options.pop("output"), asked=Asked(**named), **options)
    assert words in str(caught.value)
    assert [f.name for f in tmp_path.iterdir()] == ["mine.csv"]
    assert file.read_text() == text


def test_one_line_and_exit_2(tmp_path):
    (tmp_path / "mine.csv").write_text("p,y\n0.5,1\n45,0\n")
    done = onlinecal("recalibrate", "mine.csv", "-o", "b.csv", cwd=tmp_path, rc=2)
    assert done.stdout == ""
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1


def test_a_full_disk_leaves_the_old_file(tmp_path, file, monkeypatch):
    out = tmp_path / "b.csv"
    out.write_text("old")

    def full(table, column, values, path, ending):
        path.write_text("half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files, "_write", full)
    with pytest.raises(InvalidParameter, match=r"b\.csv cannot be written: No space"):
        recalibrate_file(str(file), out, "calibeating", overwrite=True, measures=["brier"])
    assert out.read_text() == "old"
    assert sorted(f.name for f in tmp_path.iterdir()) == ["b.csv", "mine.csv"]


def test_a_file_is_replaced_only_if_that_is_asked(tmp_path, file):
    out = tmp_path / "b.csv"
    out.write_text("old")
    given = "recalibrate", "mine.csv", "-o", "b.csv", "--measure", "brier"
    said = onlinecal(*given, cwd=tmp_path, rc=2).stderr
    assert said == "error: b.csv exists; expected the name of a new file, or --overwrite\n"
    assert out.read_text() == "old"
    onlinecal(*given, "--overwrite", cwd=tmp_path)
    assert out.read_text().count("\n") == TEXT.count("\n")
    said = onlinecal("recalibrate", "mine.csv", "-o", "mine.csv", "--overwrite", cwd=tmp_path, rc=2).stderr
    assert "mine.csv is the file that is read; expected another name" in said
    assert file.read_text() == TEXT
