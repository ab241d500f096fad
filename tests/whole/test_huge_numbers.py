"""Whole numbers that Python does not write: one line, wherever they are given."""

import pytest

import onlinecal as oc
from onlinecal.core.errors import InvalidParameter

HUGE = 10**5000
GAMMA = oc.JointDistribution.from_samples([0.5], [1])


@pytest.mark.parametrize(
    "given",
    [
        lambda: oc.play("constant", "drift", horizon=HUGE),
        lambda: oc.play("constant", "drift", horizon=[HUGE, 2]),
        lambda: oc.play("constant", "drift", horizon=100, runs=HUGE),
        lambda: oc.play("constant", "drift", horizon=100, seed=HUGE),
        lambda: oc.play("constant", "drift", horizon=100, per_decade=HUGE),
        lambda: oc.forecasters.ForecastHedging(m=HUGE),
        lambda: oc.forecasters.ForecastHedging(m=-HUGE),
        lambda: oc.forecasters.Constant(HUGE),
        lambda: oc.natures.Bernoulli(HUGE),
        lambda: oc.measures.binned_ece(GAMMA, bins=HUGE),
        lambda: oc.measures.ece(GAMMA, order=-HUGE),
        lambda: oc.evaluate(GAMMA, bootstrap=HUGE),
        lambda: oc.evaluate(GAMMA, level=HUGE),
        lambda: oc.Recalibrator("platt", bins=HUGE),
        lambda: oc.Recalibrator("platt", horizon=HUGE),
        lambda: oc.Monitor(HUGE),
        lambda: oc.Monitor(open_at_once=-HUGE),
        lambda: GAMMA.round(-HUGE),
    ],
    ids=map(str, range(18)),
)
def test_a_number_that_python_does_not_write_is_one_line(given):
    with pytest.raises(InvalidParameter) as caught:
        given()
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 200


def test_errors_has_only_errors():
    assert set(oc.errors.__all__) == {
        name
        for name, one in vars(oc.errors).items()
        if isinstance(one, type) and issubclass(one, oc.OnlinecalError)
    }
    space = {}
    exec("from onlinecal.core.errors import *", space)
    assert set(space) - {"__builtins__"} == set(oc.errors.__all__)
