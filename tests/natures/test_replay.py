"""Recorded streams: files, columns, times, and what a bad file says; reading files is tests/core/test_files.py."""

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
    assert (Replay(str(file)).length, Replay(str(file)).times) == (3, None)
    assert Replay(str(file), time="day").times.tolist() == [1, 2, 3]
    with pytest.raises(InvalidParameter, match="horizon = 4, but nature 'replay' has 3 rounds"):
        Game(Constant(), Replay(str(file)), horizon=4, runs=range(1))


def test_a_replay_is_known_by_what_it_holds(tmp_path):
    """Its outcomes, base forecasts and times; not where it lies."""
    keys = []
    for i, rows in enumerate(["0,0.5,1", "1,0.5,1", "0,0.25,1", "0,0.25,2", "0,0.5,1"]):
        file = tmp_path / f"{i}.csv"
        file.write_text(f"outcome,p,t\n{rows}\n")
        keys.append(strategy_key(Replay(str(file), base="p", time="t")))
    assert keys[0] == keys[4]
    assert len(set(keys)) == 4
    rain = Replay("package:onlinecal/data/seattle-weather.csv", outcome="precipitation", above=0.0)
    assert (rain.length, rain.outcomes.sum()) == (1461, 623)


@pytest.mark.parametrize(
    ("row", "options", "said"),
    [
        ("0.5,1,1", {}, "holds 0.5"),
        ("1,1.01,3", {"base": "p"}, "holds 1.01"),
        ("1,,3", {"base": "p"}, "missing"),
        ("1,1,2\n1,1,1", {"time": "t"}, "back in time"),
    ],
)  # fmt: skip
def test_bad_columns(tmp_path, row, options, said):
    file = tmp_path / "bad.csv"
    file.write_text(f"outcome,p,t\n{row}\n")
    with pytest.raises(InvalidData, match=said):
        Replay(str(file), **options)


def test_replay_reveals_the_base_forecast_only_where_it_is_named(tmp_path):
    file = str(recording(tmp_path))
    plain, based = Replay(file), Replay(file, base="base")
    assert plain.reveals == frozenset()
    shown = revealed(based, 10)
    assert set(shown) == {"base"}
    assert shown["base"].tolist() == [[((t - 1) * 13 % 21) / 20] * 3 for t in range(1, 11)]
    assert (truths(based, 100) == truths(plain, 100)).all()
