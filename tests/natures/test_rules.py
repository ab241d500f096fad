"""Each nature is its rule: the rules once more, one run at a time, without kernels, fed what was drawn."""

import math
from collections import Counter, defaultdict
from functools import partial
from itertools import count

import numpy as np
import pytest

from onlinecal import natures as n
from onlinecal.core.strategy import strategy_key
from onlinecal.core.streams import Stream
from onlinecal.forecasters import EmpiricalMean, ForecastHedging
from onlinecal.natures import NATURES
from tests.by_hand import noted, reciting, revealed, truths
from tests.examples import of_two
from tests.natures.quarters import Quarters

HORIZON, RUNS = 320, 2


def rule(play):
    """A rule as a generator: it is sent a law and the nature's own uniform, yields q, is sent forecast and outcome."""

    def begin(*given, **named):
        begun = play(*given, **named)
        next(begun)
        return begun

    return begin


@rule
def of(function):
    """q as a function of the round, from 1, and of the uniform."""
    for t in count(1):
        _, u = yield
        yield function(t, u)


@rule
def walk(step, first, edge):
    end, here = math.log((1 - edge) / edge), math.log(first / (1 - first))
    while True:
        _, u = yield
        here += step if u < 0.5 else -step
        here = math.copysign(2 * end - abs(here), here) if abs(here) > end else here
        yield 1 / (1 + math.exp(-here))


@rule
def pieces(number, rate):
    """Equal pieces, or (rate) pieces that begin at random."""
    for t in count():
        _, u = yield
        if t == 0 or t * number // HORIZON != (t - 1) * number // HORIZON:
            bias = u
        elif u < rate:
            bias = u / rate
        yield bias


@rule
def markov(p01, p10):
    now = p01 / (p01 + p10)
    while True:
        yield
        _, y = yield now
        now = 1 - p10 if y else p01


@rule
def early_stopping(bias):
    now, sums = 0.5, np.zeros(4)
    while True:
        yield
        p, y = yield now
        before, sums = sums, sums + np.array([1.0, 1.0 - p, -1.0, -p]) * (y - p)
        if now != 0.5:  # no weighted bias is repaired
            mine = slice(0, 2) if now == 1.0 else slice(2, 4)
            assert (sums[mine] >= before[mine] - 1e-12).all()
        elif sums.max() >= bias:
            now = float(sums[0] >= 0)


def epoch(theta, longest, reach):
    """A coin until forecasts near its bias are biased themselves: the sign of that, or 0; and the rounds."""
    bias = 0.0
    for played in range(1, longest + 1):
        yield
        p, y = yield theta
        bias += (y - p) * (abs(p - theta) <= reach)
        if abs(bias) >= math.sqrt(longest):
            return (1 if bias > 0 else -1), played
    return 0, longest


@rule
def sidestepping(cells):
    signs, here, width = [0] * cells, (cells - 1) // 2, 0.5 / cells
    while True:
        sign, _ = yield from epoch(0.25 + width * (here + 0.5), math.ceil(HORIZON / cells), width)
        signs[here] = sign or signs[here]
        here, signs = next_cell(signs)


def next_cell(signs):
    """The next cell of sidestepping, from its description; and the signs that are left."""
    free = [i for i, sign in enumerate(signs) if sign == 0] or list(range(len(signs)))
    harm = [sum(s == 1 for s in signs[i + 1 :]) + sum(s == -1 for s in signs[:i]) for i in range(len(signs))]
    best = [i for i in free if harm[i] == min(harm[j] for j in free)]
    here = best[len(best) // 2]
    repaired = [i == here or (i > here and s == 1) or (i < here and s == -1) for i, s in enumerate(signs)]
    return here, [0 if gone else s for gone, s in zip(repaired, signs, strict=True)]


@rule
def half_crossing():
    balance, target, gap = 0.0, 0.5, math.inf
    for t in count():
        yield
        p, y = yield float(balance < target)
        away, gap = (p - 0.5) * t, 1.02 * gap
        if abs(away) <= gap:
            target, gap = balance - away, max(abs(away), 0.5)
        balance += y - 0.5


@rule
def contrarian():
    while True:
        law, _ = yield
        parts = [w * (v - 0.5) for v, w in law.items()]
        yield float(sum(parts) < -1e-9 * sum(map(abs, parts)))


def levels(cells=None):
    """How often each level was drawn, its bias, and the level of a forecast; `cells` share levels."""
    return Counter(), defaultdict(float), lambda v: v if cells is None else int(v * cells)


@rule
def greedy(target="ece", kink=None, cells=None):
    _, bias, level = levels(cells)

    def value(s, v):
        if target == "square":
            return s * s
        if target == "ece" or v == kink:
            return abs(s)
        return max(s, 0.0) if v < kink else max(-s, 0.0)

    while True:
        law, _ = yield
        lead = 0.0
        for v, w in law.items():
            s = bias[level(v)] - (kink if target == "kink" else v)
            lead += w * (value(s + 1, v) - value(s, v))
        # Of numbers that are no quarters a tie may go either way.
        p, y = yield (0.5 if lead == 0 else None) if abs(lead) < 1e-9 else float(lead > 0)
        bias[level(p)] += y - (kink if target == "kink" else p)


@rule
def kink_approach(kink, dwell, cells=None):
    drawn, _, level = levels(cells)
    while True:
        law, _ = yield
        middle = 0.5 * (min(law) + max(law))
        v = max(law) if middle > kink else min(law)
        dwells = drawn[level(v)] * (v - kink) ** 2 < dwell
        p, _ = yield 0.5 if middle == kink else float(dwells == (middle > kink))
        drawn[level(p)] += 1


@rule
def sparse_bias(kink, reach):
    drawn, bias, _ = levels()
    step = 1.0
    while True:
        law, _ = yield
        low, high = min(law), max(law)
        step = min(step, high - low) if high > low else step
        enough = 2 * 0.85 * HORIZON / reach * step
        if (low + high) / 2 <= kink:
            q = 1.0
        elif high - kink > reach:
            q = 0.0
        elif low not in drawn or high not in drawn:
            q = 1.0
        else:
            q = float(max(drawn[low], drawn[high]) < enough and bias[low] < low - 1e-9)
        p, y = yield q
        drawn[p] += 1
        bias[p] += y - p


@rule
def policy(w):
    drawn, bias, _ = levels()
    while True:
        law, _ = yield
        a, b = min(law), max(law)
        root_a, root_b = (math.sqrt(drawn[v] + 1) for v in (a, b))
        d = 0.5 - (a + b) / 2
        x = (
            w[0] + w[1] * bias[a] / root_a + w[2] * -bias[b] / root_b
            + w[3] * d + w[4] * d * root_a + w[5] * (law[a] - 0.5) + w[6] * (1 if d > 0 else -1) + w[7] * d * root_b
        )  # fmt: skip
        p, y = yield 1 / (1 + math.exp(-min(max(8 * x, -700), 700)))
        drawn[p] += 1
        bias[p] += y - p


@rule
def ratchet(kink, low, width):
    drawn, bias, _ = levels()
    top, down = low + width, {}
    while True:
        law, _ = yield
        middle = 0.5 * (min(law) + max(law))
        above = middle > kink
        v = max(law) if above else min(law)
        p, y = yield 0.5 if middle == kink else float(down.get(v, top <= 0) != above)
        drawn[p] += 1
        bias[p] += y - p
        was = down.setdefault(p, top <= 0)
        if middle != kink:
            scaled = bias[p] * (1 if above else -1) / math.sqrt(drawn[p] + 1)
            down[p] = scaled > low if was else scaled >= top


@rule
def mixed(rules, weights):
    while True:
        law, _ = yield
        told = yield sum(w * each.send((law, None)) for w, each in zip(weights, rules, strict=True))
        for each in rules:
            each.send(told)


@rule
def switched(first, then, at):
    """Each hears of its own rounds only."""
    for t in count(1):
        mine = then if t > at else first
        asked = yield
        told = yield mine.send(asked)
        mine.send(told)


def drift(rounds, first=0.0, last=1.0):
    return of(lambda t, u: first + (last - first) * (t - 0.5) / rounds)


def saw(cycles):
    return of(lambda t, u: cycles * (t - 0.5) / HORIZON % 1)


def swing(period, amplitude):
    return of(lambda t, u: 0.5 + amplitude * math.sin(2 * math.pi * t / period))


OWN = (1.0, -2.0, 0.5, 3.0, -1.0, 2.0, -0.3, 0.4)
#: nature → its rule in a game of `HORIZON` rounds
RULES = [
    (n.Bernoulli(0.3), lambda: of(lambda t, u: 0.3)),
    (n.Drift(), lambda: drift(HORIZON)),
    (n.Drift(0.7, 0.2), lambda: drift(HORIZON, 0.7, 0.2)),
    (n.Sawtooth(4), lambda: saw(4)),
    (n.Sawtooth("T^(1/2)/5"), lambda: saw(HORIZON**0.5 / 5)),
    (n.Sinusoid(), lambda: swing(HORIZON / 10, 0.5)),
    (n.Sinusoid(40, 0.3), lambda: swing(40, 0.3)),
    (n.UniformTruth(), lambda: of(lambda t, u: u)),
    (n.UniformTruth(0.2, 0.6), lambda: of(lambda t, u: 0.2 + 0.4 * u)),
    (n.LogisticFeatures(-3.0, 2.0), lambda: of(lambda t, u: (1 / (1 + math.exp(3 * (2 * u - 1)))) ** 2)),
    (n.RandomWalk(0.7, 0.3, 0.1), lambda: walk(0.7, 0.3, 0.1)),
    (n.RandomWalk("T^(-1/2)"), lambda: walk(HORIZON**-0.5, 0.5, 0.01)),
    (n.Piecewise(7), lambda: pieces(7, 0.0)),
    (n.Piecewise(), lambda: pieces(10, 0.0)),
    (n.Piecewise(change_rate="20/T"), lambda: pieces(0, 20 / HORIZON)),
    (n.Piecewise(change_rate=0), lambda: pieces(0, 0.0)),
    (n.Markov(0.2, 0.6), lambda: markov(0.2, 0.6)),
    (n.Contrarian(), contrarian),
    (n.Greedy(), greedy),
    (n.Greedy("square"), lambda: greedy("square")),
    (n.Greedy("kink"), lambda: greedy("kink", 0.5)),
    (n.Greedy("kink", 0.3), lambda: greedy("kink", 0.3)),
    (n.Greedy(cells=5), lambda: greedy(cells=5)),
    (n.Greedy("kink", 0.3, 5), lambda: greedy("kink", 0.3, 5)),
    (n.KinkApproach(), lambda: kink_approach(0.5, 0.2)),
    (n.KinkApproach(0.25, 3.0), lambda: kink_approach(0.25, 3.0)),
    (n.KinkApproach(0.3, cells=3), lambda: kink_approach(0.3, 0.2, 3)),
    (n.SparseBias(), lambda: sparse_bias(0.5, 0.15)),
    (n.SparseBias(0.25, 0.5), lambda: sparse_bias(0.25, 0.5)),
    (n.LogisticPolicy(), lambda: policy(n.LogisticPolicy().weights)),
    (n.LogisticPolicy(OWN), lambda: policy(OWN)),
    (n.LogisticPolicy((1000,) * 8), lambda: policy((1000,) * 8)),
    (n.Ratchet(), lambda: ratchet(0.5, -1.0, 0.5)),
    (n.Ratchet(0.3, -0.2, 0.4), lambda: ratchet(0.3, -0.2, 0.4)),
    (n.Ratchet(low=0.1, width=0.0), lambda: ratchet(0.5, 0.1, 0.0)),
    (n.EarlyStopping(), lambda: early_stopping(HORIZON ** (1 / 3) / 4)),
    (n.EarlyStopping(4), lambda: early_stopping(4)),
    *((n.Sidestepping(cells), lambda cells=cells: sidestepping(cells)) for cells in (1, 2, 9)),
    (n.HalfCrossing(), half_crossing),
    (n.Mixture((n.Bernoulli(0.2), n.Drift(), n.Contrarian()), (1, 2, 1)), lambda: mixed(
        [of(lambda t, u: 0.2), drift(HORIZON), contrarian()], [0.25, 0.5, 0.25])),
    (n.Mixture((n.KinkApproach(), n.Markov())), lambda: mixed([kink_approach(0.5, 0.2), markov(0.1, 0.1)], [0.5, 0.5])),
    (n.Switch(n.Drift(), n.Drift(1, 0), "T/4"), lambda: switched(
        drift(HORIZON // 4), drift(HORIZON - HORIZON // 4, 1, 0), HORIZON // 4)),
    (n.Switch(n.Markov(), n.EarlyStopping(3)), lambda: switched(
        markov(0.1, 0.1), early_stopping(3), HORIZON // 2)),
    (n.Switch(n.Markov(), n.Drift(), HORIZON), lambda: markov(0.1, 0.1)),
]  # fmt: skip


def test_every_nature_has_a_rule():
    """`Streams` is below; `Replay`, groups and classes have files; `Maximin` is in tests/games."""
    others = {n.Replay, n.Streams, n.Maximin, n.Grouped, n.GroupContrarian}
    assert {type(spec) for spec, _ in RULES} == set(of_two(NATURES).values()) - others


@pytest.mark.parametrize(("nature", "make"), RULES, ids=[strategy_key(spec) for spec, _ in RULES])
def test_it_is_its_rule(nature, make, seed):
    """Against laws of quarters, for which sums are exact, and against laws of reals; on grids and off."""
    who = [EmpiricalMean()]
    if nature.sight >= n.Sight.HISTORY:
        who = [Quarters(), Quarters(True), ForecastHedging(12), EmpiricalMean()]
    own = Stream(seed, ("nature", strategy_key(nature), f"T={HORIZON}"), range(RUNS)).block(HORIZON)
    for forecaster in who:
        log, _ = noted(forecaster, nature, HORIZON, RUNS, seed)
        for run in range(RUNS):
            played = make()
            for t, round in enumerate(log):
                expected = played.send((round.laws[run], own[t, run]))
                # Where a sum of reals is 0 a tie may go either way.
                if expected is not None and (expected != 0.5 or isinstance(forecaster, Quarters)):
                    assert round.q[run] == pytest.approx(expected, abs=1e-9), (forecaster, run, t)
                played.send((float(round.forecast[run]), int(round.outcome[run])))


@pytest.mark.parametrize(
    ("order", "parts"),
    [("turns", (n.Drift(), n.UniformTruth())), ("random", (n.Greedy(), n.Drift(), n.UniformTruth()))],
)
def test_each_stream_is_its_part_alone(order, parts, seed):
    """In the game of its own questions."""
    nature = n.Streams(parts, order)
    path = "nature", strategy_key(nature), f"T={HORIZON}"
    whose = nature.start(HORIZON, Stream(seed, path, range(1))).streams_of(1, HORIZON)
    mine = np.bincount(whose).tolist()
    own = [Stream(seed, (*path, f"part {i}"), range(RUNS)).block(count) for i, count in enumerate(mine)]
    log, _ = noted(Quarters(), nature, HORIZON, RUNS, seed)
    for run in range(RUNS):
        rules = [drift(mine[-2]), of(lambda t, u: u)]
        rules, asked = [greedy()] * (len(parts) == 3) + rules, [0] * 3
        for i, round in zip(whose.tolist(), log, strict=True):
            expected = rules[i].send((round.laws[run], own[i][asked[i], run]))
            assert round.q[run] == pytest.approx(expected, abs=1e-9)
            rules[i].send((float(round.forecast[run]), int(round.outcome[run])))
            asked[i] += 1


@pytest.mark.parametrize(
    ("nature", "kind", "of"),
    [
        (n.UniformTruth(0.2, 0.6), "truth", lambda u: 0.2 + 0.4 * u),
        (n.LogisticFeatures(), "features", lambda u: 2 * u - 1),
        (n.Switch(n.UniformTruth(), n.UniformTruth(), 40), "truth", None),
    ],
)
def test_what_is_revealed_is_what_it_goes_by(nature, kind, of, seed):
    shown = revealed(nature, 60, seed=seed)
    assert set(shown) == {kind} == nature.reveals
    own = Stream(seed, ("nature", strategy_key(nature), "T=60"), range(3)).block(60)
    if of is not None:
        assert shown[kind] == pytest.approx(of(own), abs=1e-15)
    else:
        assert (shown[kind] == truths(nature, 60, seed=seed)).all()


def test_rules_at_their_ends(seed):
    qs = partial(truths, seed=seed)
    assert (qs(n.UniformTruth(1.0, 1.0), 9) == 1.0).all()
    assert (qs(n.Sawtooth(0), 5) == 0).all()
    assert qs(n.Sawtooth(1e9), 1000).max() <= 1
    assert np.abs(qs(n.Sinusoid(), 3) - 0.5).max() < 1e-9  # the period is never below a round
    full = qs(n.Sinusoid(), 1000)
    assert 0 <= full.min() <= 1e-9 <= 1 - 1e-9 <= full.max() <= 1
    assert len(set(qs(n.Piecewise(1000), 50)[:, 0])) == 50  # no more pieces than rounds
    assert (qs(n.Mixture((n.Bernoulli(1),) * 3), 5) <= 1).all()
    for at, q in ((0, 0.9), (99, 0.1)):
        assert (qs(n.Switch(n.Bernoulli(0.1), n.Bernoulli(0.9), at), 3) == q).all()
    for nature in (n.KinkApproach(), n.Ratchet(), *map(n.Greedy, ("ece", "square", "kink"))):
        assert (qs(nature, 1) == 0.5).all()  # a tie, or a forecast at the kink
    for below, q in ((0.45e-9, 0), (0.55e-9, 1)):  # a mean is 1/2 up to 1e-9 of how far the law is from it
        law = {0.25: 0.5, 0.75 - below: 0.5}
        assert (noted(reciting([law]), n.Contrarian(), 1)[0][0].q == q).all()
    still = [round.outcome for round in noted(EmpiricalMean(), n.Markov(0, 0), 50, 40, seed)[0]]
    assert (np.array(still) == still[0]).all()
    assert 0 < still[0].sum() < 40  # all of 40 fair coins alike: 2^−39
