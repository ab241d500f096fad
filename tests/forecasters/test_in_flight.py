"""Rounds that are open while others are asked: each forecaster plays as its rule, fed late, says.

The rules are written down once more in tests/oracles/forecasters.py, one run at a time and without kernels. They are
fed what was drawn, in the order in which rounds are resolved; each law must be theirs.
"""

import math
from collections import deque

import numpy as np
import pytest

from onlinecal import forecasters as f
from onlinecal import natures as n
from onlinecal.core.strategy import strategy_key
from onlinecal.core.streams import Stream
from onlinecal.engine.game import Game
from onlinecal.forecasters import FORECASTERS
from tests.by_hand import Driven, revealed
from tests.examples import of_two, recording
from tests.marks import slow
from tests.oracles import forecasters as rule

HORIZON, RUNS = 220, 2


def given(spec, default):
    """The steps of a grid that are a number, or the default."""
    return spec.m if isinstance(spec.m, int) else default


def root(spec, horizon, a, times=1.0):
    return given(spec, max(1, math.ceil(times * horizon ** (1 / a) - 1e-9)))


def even(spec, horizon, a):
    """The root rounded up to an even number: ½ is on the grid."""
    return given(spec, 2 * math.ceil(horizon ** (1 / a) / 2 - 1e-9))


def platt(spec):
    return rule.OnlinePlatt(spec.rate, spec.ridge, spec.radius, spec.edge)


def leader(spec, horizon, own):
    drawn = own.block(2 * spec.atoms * horizon)[:, 0]
    mean = horizon**0.5 if isinstance(spec.mean, str) else spec.mean
    return rule.PerturbedLeader(drawn, spec.atoms, mean) if mean else rule.EmpiricalMean(0)


def hedging_in_groups(spec, horizon):
    """Each group in `sizes` has a quarter of the rounds."""
    weights = {"all": 1, **dict.fromkeys(spec.sizes, 4)} if spec.sizes else None
    return rule.GroupHedging(given(spec, round(horizon ** (1 / 3))), spec.groups, weights)


def experts(spec, horizon, own):
    return [rule_of(each, horizon, own.child(f"expert {k}")) for k, each in enumerate(spec.of)]


def mixture(spec, horizon, own):
    k = len(spec.of)
    drawn = own.block(k * horizon)[:, 0]
    rate = horizon**-0.5 if isinstance(spec.rate, str) else spec.rate
    return rule.Mixture(experts(spec, horizon, own), rate * math.sqrt(8 * math.log(k)), drawn)


def delayed(spec, horizon, own):
    """Each copy plays for as long as it is tuned to."""
    each = horizon if spec.slots is None else -(-horizon // spec.slots)
    return rule.Delayed(lambda k: rule_of(spec.of, each, own.child(f"slot {k}", "copy 0")), each)


#: forecaster → the rule of a specification for T rounds of one run, with the forecaster's own stream
RULES = {
    f.Constant: lambda s, T, own: rule.Constant(s.p),
    f.EmpiricalMean: lambda s, T, own: rule.EmpiricalMean(s.prior),
    f.LastOutcome: lambda s, T, own: rule.LastOutcome(),
    f.UniformRandom: lambda s, T, own: rule.UniformRandom(s.m),
    f.Truthful: lambda s, T, own: rule.Tempered(1),
    f.Tempered: lambda s, T, own: rule.Tempered(s.beta),
    f.Shifted: lambda s, T, own: rule.Shifted(s.by),
    f.Logistic: lambda s, T, own: rule.Logistic(s.slope, s.intercept),
    f.Unchanged: lambda s, T, own: rule.Unchanged(),
    f.ForecastHedging: lambda s, T, own: rule.Pairs(even(s, T, 3), rule.bias_itself),
    f.CDLMinimiser: lambda s, T, own: rule.Pairs(even(s, T, 2), rule.ada_normal_hedge),
    f.StepCEMinimiser: lambda s, T, own: rule.StepCE(root(s, T, 2), T),
    f.SoftHedging: lambda s, T, own: rule.SoftHedging(s.bins_at(T)),
    f.GroupHedging: lambda s, T, own: hedging_in_groups(s, T),
    f.AlmostOneStepAhead: lambda s, T, own: rule.Ahead(root(s, T, 2)),
    f.FosterVohra: lambda s, T, own: rule.FosterVohra(even(s, T, 3), s.swaps),
    f.BlumMansour: lambda s, T, own: rule.BlumMansour(even(s, T, 3)),
    f.BlumMansourLog: lambda s, T, own: rule.BlumMansourLog(root(s, T, 3)),
    f.DefensiveForecasting: lambda s, T, own: rule.Defensive(s.kernel, s.scale),
    f.PerturbedLeader: leader,
    f.ThresholdHedging: lambda s, T, own: rule.ThresholdHedging(root(s, T, 2, 4)),
    f.Minimax: lambda s, T, own: rule.MinimaxOnHalves(T),
    f.Calibeating: lambda s, T, own: rule.Calibeating(s.bins),
    f.OnlinePlatt: lambda s, T, own: platt(s),
    f.TrackingPlatt: lambda s, T, own: rule.Calibeating(s.bins, platt(s)),
    f.ExpertMixture: mixture,
    f.ExpertAggregation: lambda s, T, own: rule.Aggregation(experts(s, T, own)),
    f.Doubling: lambda s, T, own: rule.Doubling(
        lambda length: rule_of(s.of, length, own.child(f"epoch of {length}")), s.first
    ),
    f.Rounded: lambda s, T, own: rule.Rounded(rule_of(s.of, T, own), s.m, s.how),
    f.Delayed: delayed,
    f.Separate: lambda s, T, own: rule.Separate(
        lambda k: rule_of(s.of, T, own.child(f"stream {k}")), s.groups or ("stream",)
    ),
}


def rule_of(spec, horizon, own):
    return RULES[type(spec)](spec, horizon, own)


FEW = f.PerturbedLeader(3, 4)
SPECS = [
    f.Constant(0.3), f.EmpiricalMean(), f.EmpiricalMean(0), f.LastOutcome(), f.UniformRandom(7), f.Truthful(),
    f.Tempered(2.5), f.Shifted(-0.2), f.Logistic(-3, 0.5), f.ForecastHedging(), f.CDLMinimiser(), f.StepCEMinimiser(),
    f.SoftHedging(), f.SoftHedging(1), f.GroupHedging(5, ("odd", "rare")),
    f.GroupHedging(5, ("odd",), "size", {"odd": "T/4"}), f.GroupHedging(groups=()), f.AlmostOneStepAhead(),
    f.FosterVohra(), f.FosterVohra(swaps="all"), f.FosterVohra(25, "all"), f.BlumMansour(), f.BlumMansourLog(),
    f.DefensiveForecasting(), f.DefensiveForecasting("gaussian", 0.5), f.PerturbedLeader(),
    f.PerturbedLeader(0, atoms=1), f.ThresholdHedging(), f.ThresholdHedging(1), f.Minimax(), f.Unchanged(),
    f.Calibeating(6), f.OnlinePlatt(), f.OnlinePlatt(0.5, 3.0, 1.2, 0.2), f.TrackingPlatt(bins=6),
    f.ExpertMixture((f.ForecastHedging(), f.OnlinePlatt())),
    f.ExpertMixture((f.ForecastHedging(), f.CDLMinimiser()), 0.5),
    f.ExpertMixture((f.OnlinePlatt(), f.Delayed(FEW, 110))),
    f.ExpertAggregation((f.Unchanged(), f.Calibeating(6), f.OnlinePlatt())),
    f.Doubling(f.ForecastHedging()), f.Doubling(f.Delayed(FEW, 105)),
    f.Rounded(f.ForecastHedging(), 4, "random"), f.Rounded(f.ForecastHedging(), 4, "down"),
    f.Rounded(f.OnlinePlatt(), 5),
    f.Delayed(f.EmpiricalMean()), f.Delayed(f.ForecastHedging(), 130), f.Delayed(f.AlmostOneStepAhead(), 101),
    f.Delayed(FEW), f.Delayed(FEW, 125), f.Delayed(f.ExpertMixture((f.ForecastHedging(), f.OnlinePlatt()))),
    f.Separate(f.CDLMinimiser()), f.Separate(f.CDLMinimiser(), ("odd", "rare")), f.Separate(FEW),
    f.Separate(f.OnlinePlatt()), f.Separate(f.Delayed(f.LastOutcome())), f.Separate(f.Delayed(FEW, 101)),
]  # fmt: skip


def test_every_forecaster_has_a_rule():
    """Those of classes are in test_classes.py."""
    assert {type(spec) for spec in SPECS} == set(RULES) == set(of_two(FORECASTERS).values())


def gathered(law):
    """The law in order, values that are equal up to rounding together."""
    found = []
    for v, w in sorted((v, w) for v, w in law.items() if w > 1e-12):
        if found and v - found[-1][0] <= 1e-9:
            found[-1][1] += w
        else:
            found.append([v, w])
    return found


def same(said, expected):
    """Whether two laws are equal up to rounding."""
    said, expected = gathered(said), gathered(expected)
    return len(said) == len(expected) and np.abs(np.subtract(said, expected)).max() <= 2e-9


def nature_for(forecaster, folder):
    if "base" in forecaster.needs:
        replay = n.Replay(str(recording(folder)), base="base")
        return n.Streams((replay, replay), "random", (1, 2)) if "stream" in forecaster.needs else replay
    if "stream" in forecaster.needs:
        return n.Streams((n.Drift(), n.Greedy(), n.UniformTruth()))
    if "odd" in forecaster.needs:
        return n.Grouped(n.Drift(), {"odd": 0.5, "rare": 0.2})
    if "features" in forecaster.needs:
        return n.LogisticFeatures()
    return n.UniformTruth() if forecaster.needs else n.Drift()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("examples")


@pytest.mark.parametrize("flying", [7, slow(100)])
@pytest.mark.parametrize("spec", SPECS, ids=strategy_key)
def test_rounds_in_flight(spec, flying, seed, folder):
    """With as many open rounds, which are told in any order, each law is that of the rule."""
    path, nature = ("forecaster", strategy_key(spec), f"T={HORIZON}"), nature_for(spec, folder)
    rules = [rule_of(spec, HORIZON, Stream(seed, path, range(run, run + 1))) for run in range(RUNS)]
    game = Game(spec, nature, horizon=HORIZON, runs=range(RUNS), seed=seed)
    rng, waiting, shown = (
        np.random.default_rng([seed, flying]),
        deque(),
        revealed(nature, HORIZON, RUNS, seed),
    )
    outcomes = rng.integers(0, 2, (HORIZON + 1, RUNS))

    def tell(question, place, memos):
        outcome = outcomes[question.number]
        game.resolve(question, outcome=outcome)
        for run, (law, memo, context) in enumerate(memos):
            told = float(question.forecast[run]), int(outcome[run]), context, place[run]
            rules[run].update(law, memo, *told)

    for number in range(1, HORIZON + 1):
        question, memos = game.ask(), []
        place = [each.place for each in question.each]
        for run, said in enumerate(question.laws):
            context = {kind: float(values[number - 1, run]) for kind, values in shown.items()}
            if hasattr(rules[run], "agrees"):
                assert rules[run].agrees(said), (number, run)
                memos.append((said, None, context))
            else:
                law, memo = rules[run].forecast(number, context)
                assert same(said, law), (number, run, said, law)
                memos.append((law, memo, context))
        waiting.append((question, place, memos))
        if len(waiting) > flying:
            waiting.rotate(int(rng.integers(len(waiting))))
            tell(*waiting.popleft())
    while waiting:
        tell(*waiting.popleft())
    assert game.resolved == HORIZON


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
        # Halves of a step go to the even point, and nothing is beyond the last one.
        *((f.Rounded(f.Constant(p), 5), {}, {0.4: 1.0}) for p in (0.3, 0.5)),
        *((f.Rounded(f.Constant(1.0), 5, how), {}, {1.0: 1.0}) for how in ("nearest", "random", "down")),
    ],
)
def test_first_laws(spec, context, law):
    said = Driven(spec, 1000).law(**context)
    assert sorted(said) == pytest.approx(sorted(law), abs=1e-15)
    assert [said[v] for v in sorted(said)] == pytest.approx([law[v] for v in sorted(law)], abs=1e-12)
