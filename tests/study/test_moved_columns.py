"""Studies of forecasters without a grid, with forecasts counted on one: every column is a certified bracket."""

import pytest

import onlinecal as oc
from onlinecal.core.errors import ScenarioError
from onlinecal.engine.keeping import Exact, OnGrid
from onlinecal.scenario import load
from onlinecal.study.panel import Panel
from tests.results import N, added

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


@pytest.mark.parametrize(
    "options",
    [
        {"delays": 5},
        {"nature": N.Streams((N.Drift(), N.Bernoulli(0.2))), "measures": "smooth_ce", "tasks": []},
    ],
    ids=["delays", "streams"],
)
def test_brackets_hold_the_exact_totals(options):
    m = 50 if "nature" in options else 500
    cells = [play(**options, history=history).cells[0] for history in ("exact", m)]
    exact, moved = (cell.totals for cell in cells)
    compared = [n for n in exact if n != "kernel_ce_certificate" and not n.endswith(("[lower]", "[upper]"))]
    assert ("smooth_ce @ drift" in compared) is ("nature" in options)
    for name in compared:
        bare, at, stream = name.partition(" @ ")
        low, high = (moved[f"{bare}[{end}]{at}{stream}"] for end in ("lower", "upper"))
        assert ((low <= exact[name] + 1e-9) & (exact[name] <= high + 1e-9)).all(), name
    low, high = (moved[f"smooth_ce[{end}]"] for end in ("lower", "upper"))
    # 2 δ T on either side, and no distance is larger than half a step.
    assert (high - low <= 2 * cells[0].rounds[:, None] / m + 1e-6).all()
    assert (high[-1] > low[-1]).all()


def test_what_is_exact_beside_it_is_exact():
    """Forecasters on a grid in the same columns, and measures of rounds."""
    both = play(forecaster=["defensive_forecasting", "forecast_hedging"], history=100, measures="smooth_ce")
    alone = play(forecaster="forecast_hedging", measures="smooth_ce", history=100)
    assert alone.measures[0] == "smooth_ce"  # nothing is moved, so all is as ever
    value = alone.cells[0].totals["smooth_ce"]
    for end in ("lower", "upper"):
        assert (both.cells[1].totals[f"smooth_ce[{end}]"] == value).all()

    @oc.of_rounds()
    def last(rounds):
        return float(rounds.forecasts[-1])

    exact, moved = (play(measures=[last, "brier"], tasks=[], history=h) for h in ("exact", 20))
    assert (exact.cells[0].totals["last"] == moved.cells[0].totals["last"]).all()


def test_batches_do_not_matter(monkeypatch):
    few = {"measures": ["smooth_ce", "brier"], "history": 50}
    large = play(**few)
    monkeypatch.setattr("onlinecal.study.run.BATCH", 1)
    assert play(**few).cells == large.cells


def test_results_are_kept_under_the_grid_and_not_under_the_folder(tmp_path):
    def cell(forecaster, history):
        return added("smooth_ce", forecasters=[forecaster], horizons=(100,), history=history)[0]

    free, grid = oc.forecasters.DefensiveForecasting(), oc.forecasters.ForecastHedging()
    assert len({cell(free, h).key for h in (Exact(), OnGrid(10), OnGrid(20))}) == 3
    assert cell(free, Exact()).key == cell(free, Exact(str(tmp_path), 0.1)).key
    assert "history" not in cell(free, Exact()).content
    assert cell(grid, OnGrid(10)).key == cell(grid, Exact()).key
    panel = Panel.of(["smooth_ce"], TASKS)
    told = [{held.content for held in each.held().values()} for each in (panel, panel.of_moved())]
    assert told[0].isdisjoint(told[1])


def test_the_key_of_a_scenario(tmp_path):
    file = tmp_path / "own.toml"
    rest = 'horizon = 300\nmeasures = ["smooth_ce"]\nforecasters = ["defensive_forecasting"]\nnatures = ["drift"]\n'

    def loaded(line):
        file.write_text(f"{line}\n{rest}")
        return load(file).cells[0].history

    assert loaded("") == Exact()
    assert loaded("history = 100") == OnGrid(100)
    (tmp_path / "big").mkdir()
    # Where the scenario lies.
    assert loaded('history = { name = "exact", folder = "big" }') == Exact(str(tmp_path / "big"))
    for wrong in ('"all"', "true", "[1]", "0", '{ name = "exact", folder = "none" }'):
        with pytest.raises(ScenarioError, match="history"):
            loaded(f"history = {wrong}")
