"""The papers' experiments come out, in a small size: what is said of them in scenarios/papers is seen.

What is compared differs by many standard deviations of the means of 10 runs, which are at most 0.003 for n = 10,000.
"""

from pathlib import Path

import numpy as np
import pytest

from onlinecal.engine.game import Game
from onlinecal.measures import MEASURES
from onlinecal.scenario import load

PAPERS = sorted(Path("scenarios/papers").glob("*.toml"))
RUNS = 10


@pytest.mark.parametrize("path", PAPERS, ids=lambda path: path.stem)
def test_scenarios_can_be_played(path):
    assert len(load(path).cells) > 0


@pytest.fixture(scope="module")
def temperatures(request):
    """Measure → inverse temperature → the values of the runs, at n = 10,000."""
    loaded = load(Path("scenarios/papers/bghn23.toml"))
    found = {}
    for cell in loaded.cells:
        if cell.horizon != 10_000:
            continue
        game = Game(
            cell.forecaster.strategy, cell.nature.strategy, horizon=cell.horizon, runs=range(RUNS),
            seed=request.config.getoption("--seed"),
        )  # fmt: skip
        game.advance(cell.horizon)
        gammas = list(game.gammas())
        for name, options in (
            ("binned_ece", {"bins": 20}), ("binned_ece_width", {"bins": 20}), ("smooth_ce", {}), ("kernel_ce", {}),
            ("surrogate_interval_ce", {}),
        ):  # fmt: skip
            measure = MEASURES[name].bind(**options)
            found.setdefault(name, {})[cell.forecaster.strategy.beta] = np.array([measure(g) for g in gammas])
    return found


def test_bghn23_all_measures_agree_on_those_who_are_too_sure(temperatures):
    """Figure 2, temperatures up to 1: the surer, the larger every measure."""
    for by_beta in temperatures.values():
        means = [by_beta[beta].mean() for beta in (1.0, 2.0, 5.0, 20.0)]
        assert (np.diff(means) > 0).all()


def test_bghn23_bins_see_what_smooth_measures_do_not_in_those_who_are_too_timid(temperatures):
    """Figure 2, temperatures from 1 to 10: interval and binned errors are much higher than smooth and kernel ones."""
    for beta in (0.1, 0.2):
        smooth = max(temperatures[name][beta].mean() for name in ("smooth_ce", "kernel_ce"))
        binned = min(temperatures[name][beta].mean() for name in ("binned_ece", "surrogate_interval_ce"))
        assert binned > 3 * smooth
    # Where forecasts gather at ½ their distance from calibration goes to 0, and smooth calibration with it.
    assert temperatures["smooth_ce"][0.05].mean() < temperatures["smooth_ce"][0.2].mean()


def test_bghn23_values_concentrate_and_smooth_is_near_kernel(temperatures):
    for by_beta in temperatures.values():
        assert max(values.std() for values in by_beta.values()) < 0.02
    for beta, values in temperatures["smooth_ce"].items():
        assert abs(values.mean() - temperatures["kernel_ce"][beta].mean()) < 0.03


def test_bghn23_width_is_added(temperatures):
    for beta, values in temperatures["binned_ece"].items():
        assert temperatures["binned_ece_width"][beta] == pytest.approx(values + 1 / 20, abs=1e-12)


def test_hjty24_errors_come_down_to_the_shift(seed):
    """Of the shifted forecasts 15 % of the smooth calibration errors are below 0.005 at n = 2049 (seen in 4,000 runs),
    so the median of 60 with probability below 1e-8, by Chernoff's bound. The other medians differ by factors of four.
    """
    loaded = load(Path("scenarios/papers/hjty24.toml"))
    medians = {}
    for cell in loaded.cells:
        if cell.horizon in (33, 2049):
            game = Game(
                cell.forecaster.strategy, cell.nature.strategy, horizon=cell.horizon, runs=range(60), seed=1
            )
            game.advance(cell.horizon)
            values = [MEASURES["smooth_ce"].function(gamma) for gamma in game.gammas()]
            medians[cell.forecaster.label, cell.horizon] = np.median(values)
    low, true = "0.01 too low", "calibrated"
    assert medians[low, 33] > 2 * medians[low, 2049]
    assert medians[true, 33] > 2 * medians[true, 2049]
    assert medians[low, 2049] > 0.005
