"""All forecasters: what they say first at the ends of their parameters, and which of these they refuse."""

import math

import pytest

from onlinecal import forecasters as f
from onlinecal.core.errors import InvalidParameter
from onlinecal.natures import Drift
from tests.by_hand import Driven


@pytest.mark.parametrize(
    ("spec", "context", "law"),
    [
        *((f.Tempered(3.0), {"truth": q}, {q: 1.0}) for q in (0.0, 1.0, 0.5)),
        (f.Shifted(-0.25), {"truth": 0.2}, {0.0: 1.0}),
        (f.Shifted(1.0), {"truth": 0.2}, {1.0: 1.0}),
        # So steep that the exponential of the larger number would overflow.
        (f.Logistic(1000.0), {"features": 1.0}, {1.0: 1.0}),
        (f.Logistic(1000.0), {"features": -1.0}, {0.0: 1.0}),
        # Its first scaling leaves a forecast as it is but for the edge, and its bins are empty.
        (f.TrackingPlatt(edge=0.25), {"base": 0.0}, {0.25: 1.0}),
        *((f.StepCEMinimiser(m), {}, {0.5: 1.0}) for m in (2, 4, 10, 316)),
        (f.StepCEMinimiser(1), {}, {0.0: 1 / 3, 1.0: 2 / 3}),
    ],
)
def test_first_laws(spec, context, law):
    said = Driven(spec, 1000).law(**context)
    assert sorted(said) == pytest.approx(sorted(law), abs=1e-15)
    assert [said[v] for v in sorted(said)] == pytest.approx([law[v] for v in sorted(law)], abs=1e-12)


@pytest.mark.parametrize(
    ("cls", "refused"),
    [
        (f.Constant, [1.2, "0.5"]),
        (f.EmpiricalMean, [-1]),
        (f.UniformRandom, [0]),
        (f.Tempered, [-1]),
        (f.Shifted, [1.5]),
        (f.Logistic, [math.nan, (1.0, 1e4)]),
        (f.ForecastHedging, [0, "T^(1/0)"]),
        (f.CDLMinimiser, [-3]),
        (f.AlmostOneStepAhead, ["m"]),
        (f.FosterVohra, ["T^(1/0)", ("T^(1/3)", "none")]),
        (f.BlumMansour, [0]),
        (f.BlumMansourLog, [0, -1, "T^", 1e7]),
        (f.ThresholdHedging, [0, -3, "T^(1/0)", math.nan]),
        (f.StepCEMinimiser, [0, -3, "T^(1/0)", math.nan]),
        (f.DefensiveForecasting, ["matern", ("laplace", 0.01)]),
        (f.PerturbedLeader, [-1, (1.0, 0)]),
        (f.Calibeating, [0]),
        (f.OnlinePlatt, [0]),
        (f.TrackingPlatt, [{"bins": 2.5}]),
        (f.Doubling, [3, (f.Constant(), 0)]),
        (f.Rounded, [(f.Constant(), 0), (f.Constant(), 3, "up")]),
        (f.ExpertMixture, [((),), ((f.Constant(), "x"),)]),
        (
            f.ExpertAggregation,
            [((),), ((f.ForecastHedging(),),), ((f.Constant(), "x"),), ((f.EmpiricalMean(),), 0.0)],
        ),
        (f.Delayed, [Drift(), *((f.EmpiricalMean(), slots) for slots in (0, -1, 1.5, True, "3"))]),
        (f.Separate, [Drift()]),
    ],
)
def test_parameters_out_of_range(cls, refused):
    for given in refused:
        with pytest.raises(InvalidParameter):
            cls(**given) if isinstance(given, dict) else cls(
                *(given if isinstance(given, tuple) else (given,))
            )
