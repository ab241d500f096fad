"""Studies of forecasters without a grid whose forecasts are counted on one: every column is a certified bracket."""

from __future__ import annotations

import numpy as np
import pytest

import onlinecal as oc
from onlinecal.core.errors import InvalidParameter, ScenarioError
from onlinecal.engine.keeping import Exact, OnGrid
from onlinecal.scenario import load
from onlinecal.study.panel import Panel
from onlinecal.study.plan import Entry, plan

MEASURES = ["smooth_ce", "distance_lower", {"name": "kernel_ce", "scale": 0.5}, "scdl", "smooth_ece", "brier"]
TASKS = [{"name": "umbrella", "response": {"name": "rounded", "m": 4}}]


def play(**options):
    return oc.play(
        **{
            "forecaster": "defensive_forecasting", "nature": "drift", "horizon": 300, "runs": 2, "seed": 5,
            "measures": MEASURES, "tasks": TASKS, "per_decade": 3,
        }
        | options
    )  # fmt: skip


@pytest.mark.parametrize("delays", [0, 5])
def test_brackets_hold_the_exact_totals(delays):
    exact, moved = play(delays=delays), play(delays=delays, history=500)
    for name in exact.measures:
        if name == "kernel_ce_certificate" or name.endswith(("[lower]", "[upper]")):
            continue
        value = exact.cells[0].totals[name]
        low, high = (moved.cells[0].totals[f"{name}[{end}]"] for end in ("lower", "upper"))
        assert (low <= value + 1e-9).all(), name
        assert (value <= high + 1e-9).all(), name
    low, high = (moved.cells[0].totals[f"smooth_ce[{end}]"] for end in ("lower", "upper"))
    # 2 δ T on either side, and no distance is larger than half a step.
    assert (high - low <= 4 * moved.cells[0].rounds[:, None] / 1000 + 1e-6).all()
    assert (high[-1] > low[-1]).all()


def test_streams_have_brackets_of_their_own():
    nature = oc.natures.Streams((oc.natures.Drift(), oc.natures.Bernoulli(0.2)))
    exact, moved = (play(nature=nature, measures="smooth_ce", tasks=[], history=h) for h in ("exact", 50))
    name = "smooth_ce{} @ drift"
    low, value, high = (
        s.cells[0].totals[name.format(end)]
        for s, end in ((moved, "[lower]"), (exact, ""), (moved, "[upper]"))
    )
    assert (low <= value + 1e-9).all()
    assert (value <= high + 1e-9).all()


def test_grid_forecasters_beside_it_are_exact_in_the_same_columns():
    both = play(forecaster=["defensive_forecasting", "forecast_hedging"], history=100, measures="smooth_ce")
    alone = play(forecaster="forecast_hedging", measures="smooth_ce", history=100)
    assert alone.measures[0] == "smooth_ce"  # nothing is moved, so all is as ever
    value = alone.cells[0].totals["smooth_ce"]
    for end in ("lower", "upper"):
        assert (both.cells[1].totals[f"smooth_ce[{end}]"] == value).all()


def test_batches_do_not_matter(monkeypatch):
    large = play(history=50)
    monkeypatch.setattr("onlinecal.study.run.BATCH", 1)
    assert play(history=50).cells == large.cells
    monkeypatch.setattr("onlinecal.engine.keeping.free_memory", lambda: 100.0)
    monkeypatch.setattr("onlinecal.engine.ledger.FEWEST", 32)
    small = play()
    monkeypatch.undo()
    assert small.cells == play().cells


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"measures": ["smooth_ce", "ece"]}, "history = 50: measure 'ece'.*smooth_ce.*'exact'"),
        ({"measures": [{"name": "smooth_ce", "metric": "logit"}]}, "history = 50: smooth_ce.*logit.*'exact'"),
        ({"tasks": ["umbrella"]}, "history = 50: task 'umbrella'.*rounded.*'exact'"),
        ({"measures": [lambda gamma: 0.0]}, "history = 50: measure '<lambda>'.*'exact'"),
        ({"decision_makers": ["umbrella"]}, "history = 50: decision makers.*'exact'"),
    ],
)
def test_what_nothing_is_known_of_is_refused_before_the_game(options, message, monkeypatch):
    def never(*args, **kwargs):
        raise AssertionError("a game began")

    monkeypatch.setattr("onlinecal.study.run.Game", never)
    with pytest.raises(InvalidParameter, match=message):
        play(**{"measures": ["smooth_ce"], "tasks": [], "history": 50, **options})


def test_measures_of_rounds_are_exact():
    @oc.of_rounds()
    def last(rounds):
        return float(rounds.forecasts[-1])

    exact, moved = (play(measures=[last, "brier"], tasks=[], history=h) for h in ("exact", 20))
    assert (exact.cells[0].totals["last"] == moved.cells[0].totals["last"]).all()


def cells(forecaster, history):
    who, whom = Entry.of(forecaster), Entry.of(oc.natures.Drift())
    return plan([who], [whom], horizons=[100], runs=2, seed=0, panel=Panel.of("smooth_ce"), history=history)


def test_results_are_kept_under_the_grid_and_not_under_the_folder(tmp_path):
    free, grid = oc.forecasters.DefensiveForecasting(), oc.forecasters.ForecastHedging()
    keys = {cells(free, h)[0].key for h in (Exact(), OnGrid(10), OnGrid(20))}
    assert len(keys) == 3
    assert cells(free, Exact())[0].key == cells(free, Exact(str(tmp_path), 0.1))[0].key
    assert (
        "history" not in cells(free, Exact())[0].content
    )  # what was played before there was a choice is the same
    assert cells(grid, OnGrid(10))[0].key == cells(grid, Exact())[0].key


SCENARIO = """
horizon = 300
runs = 2
measures = ["smooth_ce"]
forecasters = ["defensive_forecasting"]
natures = ["drift"]
"""


def test_the_key_of_a_scenario(tmp_path):
    file = tmp_path / "own.toml"

    def loaded(line):
        file.write_text(f"{line}\n{SCENARIO}")
        return load(file).cells[0].history

    assert loaded("") == Exact()
    assert loaded("history = 100") == OnGrid(100)
    (tmp_path / "big").mkdir()
    # Where the scenario lies.
    assert loaded('history = { name = "exact", folder = "big" }') == Exact(str(tmp_path / "big"))
    for wrong in ('"all"', "true", "[1]", "0", '{ name = "exact", folder = "none" }'):
        with pytest.raises(ScenarioError, match="history"):
            loaded(f"history = {wrong}")


def test_content_says_what_is_moved():
    panel = Panel.of(["smooth_ce"], TASKS)
    assert panel.of_moved().contents != panel.contents
    gamma = oc.JointDistribution.from_samples([0.31, 0.52], [0, 1])
    rounded, moved = gamma.round(10)
    exact = panel.read(gamma)
    low, high = np.array(panel.of_moved().read(rounded, moved=moved)).reshape(-1, 2).T
    assert (low <= exact).all()
    assert (exact <= high).all()
