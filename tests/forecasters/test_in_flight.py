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


def uniforms(forecaster, horizon, seed, run, count, *part):
    """The forecaster's own stream of one run, or that of a part."""
    path = ("forecaster", strategy_key(forecaster), f"T={horizon}", *part)
    return Stream(seed, path, range(run, run + 1)).block(count)[:, 0]


def root(horizon, a):
    return max(1, math.ceil(horizon ** (1 / a) - 1e-9))


def even(horizon, a):
    """The root rounded up to an even number: ½ is on the grid."""
    return 2 * math.ceil(horizon ** (1 / a) / 2 - 1e-9)


def perturbed(spec, horizon, seed, run):
    return rule.PerturbedLeader(uniforms(spec, horizon, seed, run, horizon * 32), 16, horizon**0.5)


def mixture(spec, horizon, seed, run, *part):
    own = uniforms(spec, horizon, seed, run, 2 * horizon, *part)
    experts = [rule.Pairs(even(horizon, 3), rule.bias_itself), rule.OnlinePlatt(0.1, 1.0, 100.0)]
    return rule.Mixture(experts, math.sqrt(8 * math.log(2) / horizon), own)


def few_leaders(spec, horizon, seed, run, length, slots, *part):
    """Perturbed leaders, each for as long as it is tuned to; 2·4 uniforms a round."""
    each = length if slots is None else -(-length // slots)

    def make(copy):
        own = uniforms(spec, horizon, seed, run, each * 8, *part, f"slot {copy}", "copy 0")
        return rule.PerturbedLeader(own, 4, each**0.5)

    return rule.Delayed(make, each)


def leaders(spec, horizon, seed, run):
    return few_leaders(spec, horizon, seed, run, horizon, spec.slots)


def separate_leaders(spec, horizon, seed, run):
    return rule.Separate(
        lambda stream: rule.PerturbedLeader(
            uniforms(spec, horizon, seed, run, horizon * 8, f"stream {stream}"), 4, horizon**0.5
        )
    )


#: specification → its rule for one run of a game of T rounds
RULES = [
    (f.Constant(0.3), lambda s, T, *_: rule.Constant(0.3)),
    (f.EmpiricalMean(), lambda s, T, *_: rule.EmpiricalMean()),
    (f.EmpiricalMean(0), lambda s, T, *_: rule.EmpiricalMean(0)),
    (f.LastOutcome(), lambda s, T, *_: rule.LastOutcome()),
    (f.UniformRandom(7), lambda s, T, *_: rule.UniformRandom(7)),
    (f.Truthful(), lambda s, T, *_: rule.Tempered(1)),
    (f.Tempered(2.5), lambda s, T, *_: rule.Tempered(2.5)),
    (f.Shifted(-0.2), lambda s, T, *_: rule.Shifted(-0.2)),
    (f.Logistic(-3, 0.5), lambda s, T, *_: rule.Logistic(-3, 0.5)),
    (f.ForecastHedging(), lambda s, T, *_: rule.Pairs(even(T, 3), rule.bias_itself)),
    (f.CDLMinimiser(), lambda s, T, *_: rule.Pairs(even(T, 2), rule.ada_normal_hedge)),
    (f.StepCEMinimiser(), lambda s, T, *_: rule.StepCE(root(T, 2), T)),
    (f.SoftHedging(), lambda s, T, *_: rule.SoftHedging(s.bins_at(T))),
    (f.SoftHedging(1), lambda s, T, *_: rule.SoftHedging(1)),
    (f.GroupHedging(5, ("odd", "rare")), lambda s, T, *_: rule.GroupHedging(5, ["odd", "rare"])),
    (f.GroupHedging(5, ("odd",), "size", {"odd": "T/4"}),
     lambda s, T, *_: rule.GroupHedging(5, ["odd"], weights={"all": 1, "odd": 4})),
    (f.GroupHedging(groups=()), lambda s, T, *_: rule.GroupHedging(round(T ** (1 / 3)), [])),
    (f.AlmostOneStepAhead(), lambda s, T, *_: rule.Ahead(root(T, 2))),
    (f.FosterVohra(), lambda s, T, *_: rule.FosterVohra(even(T, 3), "next")),
    (f.FosterVohra(swaps="all"), lambda s, T, *_: rule.FosterVohra(even(T, 3), "all")),
    (f.FosterVohra(25, "all"), lambda s, T, *_: rule.FosterVohra(25, "all")),
    (f.BlumMansour(), lambda s, T, *_: rule.BlumMansour(even(T, 3))),
    (f.BlumMansourLog(), lambda s, T, *_: rule.BlumMansourLog(root(T, 3))),
    (f.DefensiveForecasting(), lambda s, T, *_: rule.Defensive("laplace", 1.0)),
    (f.DefensiveForecasting("gaussian", 0.5), lambda s, T, *_: rule.Defensive("gaussian", 0.5)),
    (f.PerturbedLeader(), perturbed),
    (f.PerturbedLeader(0, atoms=1), lambda s, T, *_: rule.EmpiricalMean(0)),
    (f.ThresholdHedging(), lambda s, T, *_: rule.ThresholdHedging(math.ceil(4 * T**0.5 - 1e-9))),
    (f.ThresholdHedging(1), lambda s, T, *_: rule.ThresholdHedging(1)),
    (f.Minimax(), lambda s, T, *_: rule.MinimaxOnHalves(T)),
    (f.Unchanged(), lambda s, T, *_: rule.Unchanged()),
    (f.Calibeating(6), lambda s, T, *_: rule.Calibeating(6)),
    (f.OnlinePlatt(), lambda s, T, *_: rule.OnlinePlatt(0.1, 1.0, 100.0)),
    (f.OnlinePlatt(radius=1.2), lambda s, T, *_: rule.OnlinePlatt(0.1, 1.0, 1.2)),
    (f.TrackingPlatt(bins=6), lambda s, T, *_: rule.Calibeating(6, rule.OnlinePlatt(0.1, 1.0, 100.0))),
    (f.ExpertMixture((f.ForecastHedging(), f.OnlinePlatt())), mixture),
    (f.ExpertMixture((f.ForecastHedging(), f.CDLMinimiser())), lambda s, T, seed, run: rule.Mixture(
        [rule.Pairs(even(T, 3), rule.bias_itself), rule.Pairs(even(T, 2), rule.ada_normal_hedge)],
        math.sqrt(8 * math.log(2) / T), uniforms(s, T, seed, run, 2 * T))),
    (f.ExpertAggregation((f.Unchanged(), f.Calibeating(6), f.OnlinePlatt())), lambda s, T, *_: rule.Aggregation(
        [rule.Unchanged(), rule.Calibeating(6), rule.OnlinePlatt(0.1, 1.0, 100.0)])),
    (f.Doubling(f.ForecastHedging()), lambda s, T, *_: rule.Doubling(
        lambda length: rule.Pairs(even(length, 3), rule.bias_itself), 16)),
    (f.Rounded(f.ForecastHedging(), 4, "random"), lambda s, T, *_: rule.Rounded(
        rule.Pairs(even(T, 3), rule.bias_itself), 4, "random")),
    (f.Delayed(f.EmpiricalMean()), lambda s, T, *_: rule.Delayed(lambda *_: rule.EmpiricalMean())),
    (f.Delayed(f.ForecastHedging(), 130), lambda s, T, *_: rule.Delayed(
        lambda *_: rule.Pairs(even(-(-T // 130), 3), rule.bias_itself), -(-T // 130))),
    (f.Delayed(f.AlmostOneStepAhead(), 101), lambda s, T, *_: rule.Delayed(
        lambda *_: rule.Ahead(root(-(-T // 101), 2)), -(-T // 101))),
    (f.Delayed(f.PerturbedLeader(atoms=4)), leaders),
    (f.Delayed(f.PerturbedLeader(atoms=4), 125), leaders),
    (f.Doubling(f.Delayed(f.PerturbedLeader(atoms=4), 105)), lambda s, T, seed, run: rule.Doubling(
        lambda length: few_leaders(s, T, seed, run, length, 105, f"epoch of {length}"), 16)),
    (f.Separate(f.Delayed(f.PerturbedLeader(atoms=4), 101)), lambda s, T, seed, run: rule.Separate(
        lambda stream: few_leaders(s, T, seed, run, T, 101, f"stream {stream}"))),
    (f.ExpertMixture((f.OnlinePlatt(), f.Delayed(f.PerturbedLeader(atoms=4), 110))), lambda s, T, seed, run:
        rule.Mixture([rule.OnlinePlatt(0.1, 1.0, 100.0), few_leaders(s, T, seed, run, T, 110, "expert 1")],
                     math.sqrt(8 * math.log(2) / T), uniforms(s, T, seed, run, 2 * T))),
    (f.Delayed(f.ExpertMixture((f.ForecastHedging(), f.OnlinePlatt()))), lambda s, T, seed, run: rule.Delayed(
        lambda i: mixture(s, T, seed, run, f"slot {i}", "copy 0"))),
    (f.Separate(f.CDLMinimiser(), ("odd", "rare")), lambda s, T, *_: rule.Separate(
        lambda _: rule.Pairs(even(T, 2), rule.ada_normal_hedge), ("odd", "rare"))),
    (f.Separate(f.CDLMinimiser()), lambda s, T, *_: rule.Separate(
        lambda _: rule.Pairs(even(T, 2), rule.ada_normal_hedge))),
    (f.Separate(f.PerturbedLeader(atoms=4)), separate_leaders),
    (f.Separate(f.OnlinePlatt()), lambda s, T, *_: rule.Separate(lambda _: rule.OnlinePlatt(0.1, 1.0, 100.0))),
    (f.Separate(f.Delayed(f.LastOutcome())), lambda s, T, *_: rule.Separate(
        lambda _: rule.Delayed(lambda *_: rule.LastOutcome()))),
    (f.Rounded(f.ForecastHedging(), 4, "down"), lambda s, T, *_: rule.Rounded(
        rule.Pairs(even(T, 3), rule.bias_itself), 4, "down")),
    (f.Rounded(f.OnlinePlatt(), 5), lambda s, T, *_: rule.Rounded(rule.OnlinePlatt(0.1, 1.0, 100.0), 5, "nearest")),
]  # fmt: skip


def test_every_forecaster_has_a_rule():
    """Those of classes are in test_classes.py."""
    assert {type(spec) for spec, _ in RULES} == set(of_two(FORECASTERS).values())


def takes_place(spec):
    """Whether its rule is told which place of the law was drawn."""
    if isinstance(spec, f.Delayed | f.Separate | f.Doubling):
        return takes_place(spec.of)
    return isinstance(spec, f.Rounded | f.ExpertMixture)


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
@pytest.mark.parametrize(("spec", "make"), RULES, ids=[strategy_key(spec) for spec, _ in RULES])
def test_rounds_in_flight(spec, make, flying, seed, folder):
    """With as many open rounds, which are told in any order, each law is that of the rule."""
    rules, nature = [make(spec, HORIZON, seed, run) for run in range(RUNS)], nature_for(spec, folder)
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
            extra = [place[run]] if takes_place(spec) else []
            rules[run].update(law, memo, float(question.forecast[run]), int(outcome[run]), context, *extra)

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
    ],
)
def test_first_laws(spec, context, law):
    said = Driven(spec, 1000).law(**context)
    assert sorted(said) == pytest.approx(sorted(law), abs=1e-15)
    assert [said[v] for v in sorted(said)] == pytest.approx([law[v] for v in sorted(law)], abs=1e-12)
