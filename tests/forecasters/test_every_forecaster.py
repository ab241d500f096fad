"""What all forecasters share: what they say first, which parameters they refuse."""

import math

import pytest

from onlinecal.core.errors import InvalidParameter
from onlinecal.forecasters import (
    AlmostOneStepAhead,
    BlumMansour,
    BlumMansourLog,
    Calibeating,
    CDLMinimiser,
    Constant,
    DefensiveForecasting,
    Delayed,
    Doubling,
    EmpiricalMean,
    ExpertAggregation,
    ExpertMixture,
    ForecastHedging,
    FosterVohra,
    Logistic,
    OnlinePlatt,
    PerturbedLeader,
    Rounded,
    Separate,
    Shifted,
    StepCEMinimiser,
    Tempered,
    ThresholdHedging,
    TrackingPlatt,
    UniformRandom,
)
from onlinecal.natures import Drift
from tests.by_hand import Driven


@pytest.mark.parametrize(
    ("spec", "context", "law"),
    [
        (Constant(0.3), {}, {0.3: 1.0}),
        (EmpiricalMean(), {}, {0.5: 1.0}),
        (EmpiricalMean(0), {}, {0.5: 1.0}),
        (ForecastHedging(10), {}, {0.5: 0.5, 0.6: 0.5}),
        (AlmostOneStepAhead(10), {}, {0.5: 1.0}),
        (UniformRandom(4), {}, dict.fromkeys((0, 0.25, 0.5, 0.75, 1), 0.2)),
        (Tempered(1.0), {"truth": 0.2}, {0.2: 1.0}),
        *((Tempered(3.0), {"truth": q}, {q: 1.0}) for q in (0.0, 1.0, 0.5)),
        (Shifted(-0.25), {"truth": 0.2}, {0.0: 1.0}),
        (Shifted(1.0), {"truth": 0.2}, {1.0: 1.0}),
        # So steep that the exponential of the larger number would overflow.
        (Logistic(1000.0), {"features": 1.0}, {1.0: 1.0}),
        (Logistic(1000.0), {"features": -1.0}, {0.0: 1.0}),
        # Its first scaling leaves a forecast as it is but for the edge, and its bins are empty.
        (TrackingPlatt(edge=0.25), {"base": 0.0}, {0.25: 1.0}),
        # Hedging on sevenths begins with 3/7 and 4/7.
        (Rounded(ForecastHedging(7), 4), {}, {0.5: 1.0}),
        (Rounded(ForecastHedging(7), 4, "down"), {}, {0.25: 0.5, 0.5: 0.5}),
        (Rounded(ForecastHedging(7), 4, "random"), {}, {0.25: 1 / 7, 0.5: 5 / 7, 0.75: 1 / 7}),
        *((StepCEMinimiser(m), {}, {0.5: 1.0}) for m in (2, 4, 10, 316)),
        (StepCEMinimiser(1), {}, {0.0: 1 / 3, 1.0: 2 / 3}),
    ],
)
def test_first_laws(spec, context, law):
    said = Driven(spec, 1000).law(**context)
    assert sorted(said) == pytest.approx(sorted(law), abs=1e-15)
    assert [said[v] for v in sorted(said)] == pytest.approx([law[v] for v in sorted(law)], abs=1e-12)


@pytest.mark.parametrize(
    ("cls", "refused"),
    [
        (Constant, [1.2, "0.5"]),
        (EmpiricalMean, [-1]),
        (UniformRandom, [0]),
        (Tempered, [-1]),
        (Shifted, [1.5]),
        (Logistic, [math.nan, (1.0, 1e4)]),
        (ForecastHedging, [0, "T^(1/0)"]),
        (CDLMinimiser, [-3]),
        (AlmostOneStepAhead, ["m"]),
        (FosterVohra, ["T^(1/0)", ("T^(1/3)", "none")]),
        (BlumMansour, [0]),
        (BlumMansourLog, [0, -1, "T^", 1e7]),
        (ThresholdHedging, [0, -3, "T^(1/0)", math.nan]),
        (StepCEMinimiser, [0, -3, "T^(1/0)", math.nan]),
        (DefensiveForecasting, ["matern", ("laplace", 0.01)]),
        (PerturbedLeader, [-1, (1.0, 0)]),
        (Calibeating, [0]),
        (OnlinePlatt, [0]),
        (TrackingPlatt, [{"bins": 2.5}]),
        (Doubling, [3, (Constant(), 0)]),
        (Rounded, [(Constant(), 0), (Constant(), 3, "up")]),
        (ExpertMixture, [((),), ((Constant(), "x"),)]),
        (
            ExpertAggregation,
            [((),), ((ForecastHedging(),),), ((Constant(), "x"),), ((EmpiricalMean(),), 0.0)],
        ),
        (Delayed, [Drift(), *((EmpiricalMean(), slots) for slots in (0, -1, 1.5, True, "3"))]),
        (Separate, [Drift()]),
    ],
)
def test_parameters_out_of_range(cls, refused):
    for given in refused:
        with pytest.raises(InvalidParameter):
            cls(**given) if isinstance(given, dict) else cls(
                *(given if isinstance(given, tuple) else (given,))
            )
