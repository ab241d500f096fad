"""The separations between measures that the package exists to show, as growth exponents of fresh games.

Horizons 10³ … 2.5·10⁵ (`--full`) or … 3.2·10⁴, 16 runs. Over seeds 0–39 at the small size the standard deviations of
the fitted exponents were 0.029 at most. The tolerances leave five of them or more: a false-failure rate below 1e-6 for
each if the spread is normal.
"""

import pytest

import onlinecal as oc

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def horizons(full):
    last, count = (250_000, 9) if full else (32_000, 6)
    return [round(1000 * (last / 1000) ** (i / (count - 1))) for i in range(count)]


def exponents(forecaster, nature, horizons, seed, measures):
    study = oc.play(forecaster, nature, horizon=horizons, runs=16, seed=seed, measures=measures)
    return {measure: study.exponent(measure).value for measure in measures}


def test_forecast_hedging_against_a_drift(horizons, seed):
    """A grid of T^{1/3} points forces T^{2/3}·ECE, but a CDL of no more than about T^{0.42}."""
    found = exponents(oc.forecasters.ForecastHedging(), oc.natures.Drift(), horizons, seed, ["ece", "cdl"])
    assert found["ece"] == pytest.approx(0.67, abs=0.07)
    assert found["cdl"] == pytest.approx(0.42, abs=0.14)


def test_almost_one_step_ahead_against_a_contrarian(horizons, seed):
    """smCE of √T while ECE and CDL are proportional to T: what smooth calibration does not buy."""
    measures = ["ece", "cdl", "smooth_ce"]
    found = exponents(oc.forecasters.AlmostOneStepAhead(), oc.natures.Contrarian(), horizons, seed, measures)
    assert found["ece"] == pytest.approx(1.0, abs=0.02)
    assert found["cdl"] == pytest.approx(1.0, abs=0.02)
    assert found["smooth_ce"] == pytest.approx(0.5, abs=0.05)


def test_cdl_minimiser_against_a_fair_coin(horizons, seed):
    """√T up to logarithms: measured 0.54."""
    found = exponents(oc.forecasters.CDLMinimiser(), oc.natures.Bernoulli(), horizons, seed, ["cdl"])
    assert found["cdl"] == pytest.approx(0.54, abs=0.16)


def test_hedging_on_a_coarse_grid_against_a_fair_coin_is_the_control(horizons, seed):
    """Its CDL grows faster than the minimiser's: the same test tells the two apart."""
    hedging = exponents(oc.forecasters.ForecastHedging(), oc.natures.Drift(), horizons, seed, ["ece"])
    ahead = exponents(oc.forecasters.AlmostOneStepAhead(), oc.natures.Drift(), horizons, seed, ["smooth_ce"])
    assert hedging["ece"] - ahead["smooth_ce"] > 0.08
