"""What all forecasters share: documentation, and what they say first."""

import pytest

from onlinecal.forecasters import (
    FORECASTERS,
    AlmostOneStepAhead,
    Constant,
    EmpiricalMean,
    ForecastHedging,
)
from tests.forecasters.test_hedging import laws


def test_first_forecasts():
    assert laws(Constant(0.3).start(10, 1, None)) == {0: 1.0}
    assert laws(EmpiricalMean().start(10, 1, None)) == {0.5: 1.0}
    assert laws(EmpiricalMean(0).start(10, 1, None)) == {0.5: 1.0}
    assert laws(ForecastHedging(10).start(10, 1, None)) == {5: 0.5, 6: 0.5}
    assert laws(AlmostOneStepAhead(10).start(10, 1, None)) == {5: 1.0}


@pytest.mark.parametrize("cls", FORECASTERS.values(), ids=list(FORECASTERS))
def test_documented(cls):
    for section in ("Guarantee", "Information", "Source", "Deviations"):
        assert section in cls.__doc__
