"""The separations between measures that the package exists to show, as growth exponents of fresh games.

Horizons 10³ … 2.5·10⁵ (`--full`) or … 3.2·10⁴, 16 runs. Over seeds 0–39 at the small size the standard deviations of
the fitted exponents were 0.029 at most. The tolerances leave five of them or more: a false-failure rate below 1e-6 for
each if the spread is normal.
"""

import pytest

import onlinecal as oc

pytestmark = pytest.mark.slow
F, N = oc.forecasters, oc.natures


@pytest.fixture(scope="module")
def exponents(full, seed):
    last, count = (250_000, 9) if full else (32_000, 6)
    horizons = [round(1000 * (last / 1000) ** (i / (count - 1))) for i in range(count)]

    def found(forecaster, nature, measures):
        study = oc.play(forecaster, nature, horizon=horizons, runs=16, seed=seed, measures=measures)
        return {measure: study.exponent(measure).value for measure in measures}

    return found


@pytest.mark.parametrize(
    ("forecaster", "nature", "expected"),
    [
        # A grid of T^{1/3} points forces T^{2/3}·ECE, but a CDL of no more than about T^{0.42}.
        (F.ForecastHedging(), N.Drift(), {"ece": (0.67, 0.07), "cdl": (0.42, 0.14)}),
        # smCE of √T while ECE and CDL are proportional to T: smooth calibration does not buy them.
        (F.AlmostOneStepAhead(), N.Contrarian(), {"ece": (1.0, 0.02), "cdl": (1.0, 0.02), "smooth_ce": (0.5, 0.05)}),
        # √T up to logarithms: measured 0.54.
        (F.CDLMinimiser(), N.Bernoulli(), {"cdl": (0.54, 0.16)}),
    ],
)  # fmt: skip
def test_the_separations(exponents, forecaster, nature, expected):
    found = exponents(forecaster, nature, list(expected))
    assert found == {measure: pytest.approx(value, abs=off) for measure, (value, off) in expected.items()}


def test_the_control(exponents):
    """Against the same drift the exponents of two measures of two forecasters are told apart."""
    hedging = exponents(F.ForecastHedging(), N.Drift(), ["ece"])
    ahead = exponents(F.AlmostOneStepAhead(), N.Drift(), ["smooth_ce"])
    assert hedging["ece"] - ahead["smooth_ce"] > 0.08
