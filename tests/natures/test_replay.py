"""Recorded streams: files, columns, times, and what a bad file says."""

import bz2
import gzip
import lzma

import pytest

from onlinecal.core.errors import InvalidData, InvalidParameter
from onlinecal.core.strategy import strategy_key
from onlinecal.engine.game import Game
from onlinecal.forecasters import Constant
from onlinecal.natures import Replay
from tests.by_hand import revealed, truths
from tests.examples import recording


def test_replay_plays_the_file(tmp_path):
    file = tmp_path / "a.csv"
    file.write_text("day,outcome,mm\n1,0,0.0\n2,1,2.5\n3,1,0.1\n")
    assert truths(Replay(str(file)), 3)[:, 0].tolist() == [0, 1, 1]
    assert truths(Replay(str(file), outcome="mm", above=1.0), 3)[:, 0].tolist() == [0, 1, 0]
    assert Replay(str(file)).length == 3
    with pytest.raises(InvalidParameter, match="horizon = 4, but nature 'replay' has 3 rounds"):
        Game(Constant(), Replay(str(file)), horizon=4, runs=range(1))


def test_a_replay_is_known_by_what_it_holds(tmp_path):
    one, two, three = (tmp_path / name for name in ("1.csv", "2.csv", "3.csv"))
    one.write_text("outcome\n0\n1\n")
    two.write_text("outcome\n0\n1\n")
    three.write_text("outcome\n1\n1\n")
    assert strategy_key(Replay(str(one))) == strategy_key(Replay(str(two)))
    assert strategy_key(Replay(str(one))) != strategy_key(Replay(str(three)))


def test_the_rain_of_seattle():
    rain = Replay("package:onlinecal/data/seattle-weather.csv", outcome="precipitation", above=0.0)
    assert rain.length == 1461
    assert rain.outcomes.sum() == 623


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        ("outcome\n", "no rows"),
        ("Outcome\n1\n", r"no column 'outcome'; did you mean 'Outcome'"),
        ("a,b\n1,2\n", r"no column 'outcome'; known: a, b"),
        ("outcome\n1\n\n0\n", "line 3: column 'outcome' is missing"),
        ("outcome,x\n1,1\nNaN,2\n", "line 3: column 'outcome' is missing"),
        ("outcome\n1\nyes\n", "line 3: column 'outcome' is 'yes'; expected a number"),
        ("outcome\n1\ninf\n", "line 3"),
        ("outcome\n1\n0.5\n", "line 3: column 'outcome' holds 0.5; expected 0 or 1"),
        ("outcome\n1\n2\n", "holds 2; expected 0 or 1"),
        ('outcome\n"1\n', "is not a CSV file"),
    ],
)
def test_bad_files(tmp_path, text, said):
    file = tmp_path / "bad.csv"
    file.write_text(text)
    with pytest.raises(InvalidData, match=said):
        Replay(str(file))


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(InvalidData, match="no such file"):
        Replay(str(tmp_path / "none.csv"))
    with pytest.raises(InvalidData, match="is a directory; expected a file"):
        Replay(str(tmp_path))
    with pytest.raises(InvalidData, match="/dev/zero is not a file; expected a file"):
        Replay("/dev/zero")  # which has no end
    with pytest.raises(InvalidData, match="cannot be read: "):
        Replay("a" * 5000)
    with pytest.raises(InvalidData, match="no such file"):
        Replay("a\0b")
    binary = tmp_path / "binary.csv"
    binary.write_bytes(bytes(range(256)) * 20)
    with pytest.raises(InvalidData, match="not utf-8 throughout"):
        Replay(str(binary))
    with pytest.raises(InvalidData, match="package 'no_such_package' is not installed"):
        Replay("package:no_such_package/a.csv")


TABLE = "day,outcome,p\n2020-01-01,1,0.25\n2020-01-02,0,0.5\n2020-01-03,1,1\n"


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.csv", TABLE.encode()),
        ("a.csv", b"\xef\xbb\xbf" + TABLE.encode()),
        ("a.csv", TABLE.replace("\n", "\r\n").encode()),
        ("a.csv", TABLE.replace(",", ";").encode()),
        ("a.tsv", TABLE.replace(",", "\t").encode()),
        ("a.txt", TABLE.replace(",", "|").encode()),
        ("a.csv", TABLE.replace(",", ", ").encode()),
        ("a.csv", TABLE.replace(",", ";").replace("day", '"day, of the year, or so"').encode()),
        ("a.csv", TABLE.replace(",1,", ",True,").replace(",0,", ",False,").encode()),
        ("a.csv", TABLE.replace(",1,", ",TRUE,").replace(",0,", ", false ,").encode()),
        ("a.csv", TABLE.replace("1,0.25", "1.0,2.5e-1").encode()),
        ("a.csv.gz", gzip.compress(TABLE.encode())),
        ("A.CSV.GZ", gzip.compress(b"\xef\xbb\xbf" + TABLE.replace(",", ";").encode())),
        ("a.csv.bz2", bz2.compress(TABLE.encode())),
        ("a.csv.xz", lzma.compress(TABLE.replace(",", "\t").encode())),
    ],
    ids=list("abcdefghijklmno"),  # what is packed holds the time
)
def test_the_ways_to_write_one_table(tmp_path, name, data):
    (tmp_path / name).write_bytes(data)
    replay = Replay(str(tmp_path / name), base="p")
    assert replay.outcomes.tolist() == [1, 0, 1]
    assert replay.forecasts.tolist() == [0.25, 0.5, 1]


@pytest.mark.parametrize("name", ["a.csv.gz", "a.csv.bz2", "a.csv.xz", "a.csv.zip", "a.csv.zst", "a.parquet"])
def test_what_cannot_be_unpacked(tmp_path, name):
    packed = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}.get(
        name.rpartition(".")[2], bytes
    )
    for data in (b"", b"outcome\n1\n", packed(TABLE.encode() * 99)[:-9], b"\x1f\x8b" + bytes(range(256))):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(InvalidData) as raised:
            Replay(str(tmp_path / name))
        assert str(raised.value).startswith(str(tmp_path / name))


def test_replay_reveals_the_base_forecast_only_where_it_is_named(tmp_path):
    file = str(recording(tmp_path))
    plain, based = Replay(file), Replay(file, base="base")
    assert plain.reveals == frozenset()
    assert based.reveals == {"base"}
    shown = revealed(based, 10)
    assert set(shown) == {"base"}
    assert shown["base"].tolist() == [[((t - 1) * 13 % 21) / 20] * 3 for t in range(1, 11)]
    assert (truths(based, 100) == truths(plain, 100)).all()

    class Needy(Constant):
        needs = frozenset({"base"})

    with pytest.raises(InvalidParameter, match="needs base, which nature 'replay' does not reveal"):
        Game(Needy(), plain, horizon=5, runs=range(1))
    Game(Needy(), based, horizon=5, runs=range(1)).advance(5)


def test_a_replay_with_other_base_forecasts_or_times_is_another(tmp_path):
    keys = set()
    for i, rows in enumerate(["0,0.5,1", "0,0.25,1", "0,0.25,2"]):
        file = tmp_path / f"{i}.csv"
        file.write_text(f"outcome,p,t\n{rows}\n")
        keys.add(strategy_key(Replay(str(file), base="p", time="t")))
    assert len(keys) == 3


def test_times_are_numbers_or_dates(tmp_path):
    file = tmp_path / "a.csv"
    file.write_text(
        "outcome,n,day,moment\n0,1,1970-01-02,1970-01-01T12:00\n1,1,1970-01-02,1970-01-02T00:00:00Z\n"
    )
    assert Replay(str(file)).times is None
    assert Replay(str(file), time="n").times.tolist() == [1, 1]
    assert Replay(str(file), time="day").times.tolist() == [1, 1]
    assert Replay(str(file), time="moment").times.tolist() == [0.5, 1]


@pytest.mark.parametrize(
    ("row", "options", "said"),
    [
        ("1,1.01,3", {"base": "p"}, r"line 3: column 'p' holds 1.01; expected a forecast in \[0, 1\]"),
        ("1,-0.1,3", {"base": "p"}, "line 3: column 'p' holds -0.1"),
        ("1,,3", {"base": "p"}, "line 3: column 'p' is missing; expected a number"),
        ("1,x,3", {"base": "p"}, "line 3: column 'p' is 'x'"),
        ("1,1,3", {"base": "q"}, "no column 'q'"),
        ("1,1,1", {"time": "t"}, "line 3: column 't' goes back in time, from 2 to 1; expected rows in order"),
        ("1,1,soon", {"time": "t"}, "line 3: column 't' is 'soon'; expected a number or a date"),
        ("1,1,", {"time": "t"}, "line 3: column 't' is missing"),
        (
            "1,1,2020-01-01",
            {"time": "t"},
            "line 3: column 't' is '2020-01-01'; expected a number or a date like those",
        ),
    ],
)
def test_bad_columns(tmp_path, row, options, said):
    file = tmp_path / "bad.csv"
    file.write_text(f"outcome,p,t\n0,0.5,2\n{row}\n")
    with pytest.raises(InvalidData, match=said):
        Replay(str(file), **options)


def test_a_parquet_file_is_read_like_csv(tmp_path):
    pytest.importorskip("pyarrow", reason="pandas writes the file by it")
    import pandas as pd

    file = tmp_path / "a.parquet"
    frame = pd.DataFrame(
        {
            "outcome": [False, True, True],
            "p": [0.25, 0.5, 1.0],
            "mm": [0, 3, 1],
            "day": pd.to_datetime(["1970-01-01", "1970-01-02", "1970-01-02"]),
            "gap": [0.5, None, 0.5],
            "word": ["a", "b", "c"],
        }
    )
    frame.to_parquet(file)
    replay = Replay(str(file), base="p", time="day")
    assert replay.outcomes.tolist() == [0, 1, 1]
    assert replay.forecasts.tolist() == [0.25, 0.5, 1]
    assert replay.times.tolist() == [0, 1, 1]
    assert Replay(str(file), "mm", above=1).outcomes.tolist() == [0, 1, 0]
    csv = tmp_path / "a.csv"
    frame.assign(outcome=frame["outcome"].astype(int)).to_csv(csv, index=False)
    assert strategy_key(Replay(str(csv), base="p", time="day")) == strategy_key(replay)
    for column, said in [
        ("mm", "row 2: column 'mm' holds 3; expected 0 or 1"),
        ("gap", "row 2: column 'gap' is missing"),
        ("word", "row 1: column 'word' is 'a'"),
        ("day", "row 1: column 'day'"),
        ("none", "no column 'none'"),
    ]:
        with pytest.raises(InvalidData, match=said):
            Replay(str(file), column)
    frame[:0].to_parquet(file)
    with pytest.raises(InvalidData, match="no rows"):
        Replay(str(file))
    file.write_text("outcome\n0\n")
    with pytest.raises(InvalidData, match="is not a Parquet file"):
        Replay(str(file))
