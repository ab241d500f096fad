"""Each nature is its rule: the rules once more, one run at a time and without kernels, fed what was drawn."""

import math

import numpy as np
import pytest

from onlinecal import natures as n
from onlinecal.core.strategy import strategy_key
from onlinecal.core.streams import Stream
from onlinecal.exact.signs import STOP, sign_preservation
from onlinecal.forecasters import EmpiricalMean, ForecastHedging
from onlinecal.natures import NATURES
from tests.by_hand import noted, revealed
from tests.exact.test_signs import write
from tests.natures.quarters import Quarters

HORIZON, RUNS = 320, 2


class Of:
    """q as a function of the round, from 1, and of the uniforms of the nature's own stream."""

    def __init__(self, function):
        self.function, self.t = function, 0

    def q(self, law, u):
        self.t += 1
        return self.function(self.t, u)

    def told(self, p, y): ...


class Walk(Of):
    def __init__(self, step, first, edge):
        self.step, self.end, self.here = step, math.log((1 - edge) / edge), math.log(first / (1 - first))

    def q(self, law, u):
        here = self.here + (self.step if u < 0.5 else -self.step)
        self.here = math.copysign(2 * self.end - abs(here), here) if abs(here) > self.end else here
        return 1 / (1 + math.exp(-self.here))


class Pieces(Of):
    """Equal pieces, or (rate) pieces that begin at random."""

    def __init__(self, pieces, rate, horizon):
        self.pieces, self.rate, self.horizon, self.t, self.bias = pieces, rate, horizon, -1, None

    def q(self, law, u):
        self.t += 1
        if self.t == 0 or self.t * self.pieces // self.horizon != (self.t - 1) * self.pieces // self.horizon:
            self.bias = u
        elif u < self.rate:
            self.bias = u / self.rate
        return self.bias


class Markov(Of):
    def __init__(self, p01, p10):
        self.p01, self.p10, self.now = p01, p10, p01 / (p01 + p10)

    def q(self, law, u):
        return self.now

    def told(self, p, y):
        self.now = 1 - self.p10 if y else self.p01


class EarlyStopping(Markov):
    def __init__(self, bias):
        self.bias, self.now, self.sums = bias, 0.5, np.zeros(4)

    def told(self, p, y):
        before = self.sums.copy()
        self.sums += np.array([1.0, 1.0 - p, -1.0, -p]) * (y - p)
        if self.now == 0.5:
            if self.sums.max() >= self.bias:
                self.now = 1.0 if self.sums[0] >= 0 else 0.0
        else:  # no weighted bias is repaired
            mine = slice(0, 2) if self.now == 1.0 else slice(2, 4)
            assert (self.sums[mine] >= before[mine] - 1e-12).all()


class Sidestepping(Of):
    """`longest` rounds an epoch at most, at cells `width` wide; the cell that is asked next is `next_cell`'s."""

    def __init__(self, cells, horizon):
        self.longest, self.width, self.reach = math.ceil(horizon / cells), 0.5 / cells, 0.5 / cells
        self.signs, self.here, self.played, self.bias, self.t = [0] * cells, (cells - 1) // 2, 0, 0.0, 0

    def q(self, law, u):
        self.t += 1
        self.theta = 0.25 + self.width * (self.here + 0.5)
        return self.theta

    def told(self, p, y):
        self.played += 1
        if abs(p - self.theta) <= self.reach:
            self.bias += y - p
        enough = abs(self.bias) >= math.sqrt(self.longest)
        if self.played >= self.longest or enough:
            self.ended((1 if self.bias > 0 else -1) if enough else 0)
            self.played, self.bias = 0, 0.0

    def ended(self, sign):
        if sign:
            self.signs[self.here] = sign
        self.here, self.signs = next_cell(self.signs)


def next_cell(signs):
    """The next cell of sidestepping, from its description; and the signs that are left."""
    free = [i for i, sign in enumerate(signs) if sign == 0] or list(range(len(signs)))
    harm = [sum(s == 1 for s in signs[i + 1 :]) + sum(s == -1 for s in signs[:i]) for i in range(len(signs))]
    best = [i for i in free if harm[i] == min(harm[j] for j in free)]
    here = best[len(best) // 2]
    repaired = [i == here or (i > here and s == 1) or (i < here and s == -1) for i, s in enumerate(signs)]
    return here, [0 if gone else s for gone, s in zip(repaired, signs, strict=True)]


class Signs(Sidestepping):
    def __init__(self, cells, rounds, horizon):
        super().__init__(cells, horizon)
        self.game, self.rounds, self.horizon = sign_preservation(cells, rounds), rounds, horizon
        self.longest, self.reach, self.signs = -(-horizon // rounds), 0.25 / cells, (0,) * cells
        self.here = self.game.at(self.signs, min(rounds, -(-horizon // self.longest)))[1]

    def q(self, law, u):
        if self.here != STOP:
            return super().q(law, u)
        self.t += 1
        last = max((i + 1 for i, sign in enumerate(self.signs) if sign == 1), default=0)
        first = min((i for i, sign in enumerate(self.signs) if sign == -1), default=len(self.signs))
        return 0.25 + self.width * (last + first) / 2

    def told(self, p, y):
        if self.here != STOP:
            super().told(p, y)

    def ended(self, sign):
        self.signs = write(self.signs, self.here, sign, True) if sign else self.signs
        left = min(-(-(self.horizon - self.t) // self.longest), self.rounds)
        self.here = self.game.at(self.signs, left)[1]


class HalfCrossing(Of):
    def __init__(self):
        self.balance, self.target, self.gap, self.t = 0.0, 0.5, math.inf, 0

    def q(self, law, u):
        return float(self.balance < self.target)

    def told(self, p, y):
        away = (p - 0.5) * self.t
        self.gap *= 1.02
        if abs(away) <= self.gap:
            self.target, self.gap = self.balance - away, max(abs(away), 0.5)
        self.balance, self.t = self.balance + y - 0.5, self.t + 1


class Contrarian(Of):
    def __init__(self):
        pass

    def q(self, law, u):
        parts = [w * (v - 0.5) for v, w in law.items()]
        return float(sum(parts) < -1e-9 * sum(map(abs, parts)))


class Levels(Of):
    """How often each level was drawn, and its bias; `cells` share them."""

    def __init__(self, cells=None):
        self.cells, self.count, self.bias = cells, {}, {}

    def level(self, v):
        return v if self.cells is None else int(v * self.cells)

    def told(self, p, y):
        at = self.level(p)
        self.count[at] = self.count.get(at, 0) + 1
        self.bias[at] = self.bias.get(at, 0.0) + (y - self.centre(p))

    def centre(self, p):
        return p


class Greedy(Levels):
    def __init__(self, target="ece", kink=None, cells=None):
        super().__init__(cells)
        self.target, self.kink = target, kink

    def centre(self, p):
        return self.kink if self.target == "kink" else p

    def value(self, s, v):
        if self.target == "square":
            return s * s
        if self.target == "ece" or v == self.kink:
            return abs(s)
        return max(s, 0.0) if v < self.kink else max(-s, 0.0)

    def q(self, law, u):
        lead = 0.0
        for v, w in law.items():
            s, c = self.bias.get(self.level(v), 0.0), self.centre(v)
            lead += w * (self.value(s + 1 - c, v) - self.value(s - c, v))
        # Of numbers that are no quarters a tie may go either way.
        return (0.5 if lead == 0 else None) if abs(lead) < 1e-9 else float(lead > 0)


class KinkApproach(Levels):
    def __init__(self, kink, dwell, cells=None):
        super().__init__(cells)
        self.kink, self.dwell = kink, dwell

    def q(self, law, u):
        middle = 0.5 * (min(law) + max(law))
        v = max(law) if middle > self.kink else min(law)
        dwells = self.count.get(self.level(v), 0) * (v - self.kink) ** 2 < self.dwell
        return 0.5 if middle == self.kink else float(dwells == (middle > self.kink))


class SparseBias(Levels):
    def __init__(self, kink, reach, horizon):
        super().__init__()
        self.kink, self.reach, self.horizon, self.step = kink, reach, horizon, 1.0

    def q(self, law, u):
        low, high = min(law), max(law)
        self.step = min(self.step, high - low) if high > low else self.step
        enough = 2 * 0.85 * self.horizon / self.reach * self.step
        if (low + high) / 2 <= self.kink:
            return 1.0
        if high - self.kink > self.reach:
            return 0.0
        if low not in self.count or high not in self.count:
            return 1.0
        return float(max(self.count[low], self.count[high]) < enough and self.bias[low] < low - 1e-9)


class Policy(Levels):
    def __init__(self, weights):
        super().__init__()
        self.weights = weights

    def q(self, law, u):
        w, a, b = self.weights, min(law), max(law)
        root_a, root_b = (math.sqrt(self.count.get(v, 0) + 1) for v in (a, b))
        d = 0.5 - (a + b) / 2
        x = (
            w[0] + w[1] * self.bias.get(a, 0.0) / root_a + w[2] * -self.bias.get(b, 0.0) / root_b
            + w[3] * d + w[4] * d * root_a + w[5] * (law[a] - 0.5) + w[6] * (1 if d > 0 else -1) + w[7] * d * root_b
        )  # fmt: skip
        return 1 / (1 + math.exp(-min(max(8 * x, -700), 700)))


class Ratchet(Levels):
    def __init__(self, kink, low, width):
        super().__init__()
        self.kink, self.low, self.top, self.down = kink, low, low + width, {}

    def q(self, law, u):
        self.middle = 0.5 * (min(law) + max(law))
        self.above = self.middle > self.kink
        v = max(law) if self.above else min(law)
        return 0.5 if self.middle == self.kink else float(self.down.get(v, self.top <= 0) != self.above)

    def told(self, p, y):
        super().told(p, y)
        was = self.down.setdefault(p, self.top <= 0)
        if self.middle != self.kink:
            scaled = self.bias[p] * (1 if self.above else -1) / math.sqrt(self.count[p] + 1)
            self.down[p] = scaled > self.low if was else scaled >= self.top


class Mixed(Of):
    def __init__(self, rules, weights):
        self.rules, self.weights = rules, weights

    def q(self, law, u):
        return sum(w * rule.q(law, None) for rule, w in zip(self.rules, self.weights, strict=True))

    def told(self, p, y):
        for rule in self.rules:
            rule.told(p, y)


class Switched(Of):
    """Each hears of its own rounds only."""

    def __init__(self, first, then, at):
        self.rules, self.at, self.t = (first, then), at, 0

    def q(self, law, u):
        self.t += 1
        return self.rules[self.t > self.at].q(law, u)

    def told(self, p, y):
        self.rules[self.t > self.at].told(p, y)


def drift(rounds, first=0.0, last=1.0):
    return Of(lambda t, u: first + (last - first) * (t - 0.5) / rounds)


def saw(cycles):
    return Of(lambda t, u: cycles * (t - 0.5) / HORIZON % 1)


def swing(period, amplitude):
    return Of(lambda t, u: 0.5 + amplitude * math.sin(2 * math.pi * t / period))


OWN = (1.0, -2.0, 0.5, 3.0, -1.0, 2.0, -0.3, 0.4)
#: nature → its rule in a game of `HORIZON` rounds
RULES = [
    (n.Bernoulli(0.3), lambda: Of(lambda t, u: 0.3)),
    (n.Drift(), lambda: drift(HORIZON)),
    (n.Drift(0.7, 0.2), lambda: drift(HORIZON, 0.7, 0.2)),
    (n.Sawtooth(4), lambda: saw(4)),
    (n.Sawtooth("T^(1/2)/5"), lambda: saw(HORIZON**0.5 / 5)),
    (n.Sinusoid(), lambda: swing(HORIZON / 10, 0.5)),
    (n.Sinusoid(40, 0.3), lambda: swing(40, 0.3)),
    (n.UniformTruth(), lambda: Of(lambda t, u: u)),
    (n.UniformTruth(0.2, 0.6), lambda: Of(lambda t, u: 0.2 + 0.4 * u)),
    (n.LogisticFeatures(-3.0, 2.0), lambda: Of(lambda t, u: (1 / (1 + math.exp(3 * (2 * u - 1)))) ** 2)),
    (n.RandomWalk(0.7, 0.3, 0.1), lambda: Walk(0.7, 0.3, 0.1)),
    (n.RandomWalk("T^(-1/2)"), lambda: Walk(HORIZON**-0.5, 0.5, 0.01)),
    (n.Piecewise(7), lambda: Pieces(7, 0.0, HORIZON)),
    (n.Piecewise(), lambda: Pieces(10, 0.0, HORIZON)),
    (n.Piecewise(change_rate="20/T"), lambda: Pieces(0, 20 / HORIZON, HORIZON)),
    (n.Piecewise(change_rate=0), lambda: Pieces(0, 0.0, HORIZON)),
    (n.Markov(0.2, 0.6), lambda: Markov(0.2, 0.6)),
    (n.Contrarian(), Contrarian),
    (n.Greedy(), Greedy),
    (n.Greedy("square"), lambda: Greedy("square")),
    (n.Greedy("kink"), lambda: Greedy("kink", 0.5)),
    (n.Greedy("kink", 0.3), lambda: Greedy("kink", 0.3)),
    (n.Greedy(cells=5), lambda: Greedy(cells=5)),
    (n.Greedy("kink", 0.3, 5), lambda: Greedy("kink", 0.3, 5)),
    (n.KinkApproach(), lambda: KinkApproach(0.5, 0.2)),
    (n.KinkApproach(0.25, 3.0), lambda: KinkApproach(0.25, 3.0)),
    (n.KinkApproach(0.3, cells=3), lambda: KinkApproach(0.3, 0.2, 3)),
    (n.SparseBias(), lambda: SparseBias(0.5, 0.15, HORIZON)),
    (n.SparseBias(0.25, 0.5), lambda: SparseBias(0.25, 0.5, HORIZON)),
    (n.LogisticPolicy(), lambda: Policy(n.LogisticPolicy().weights)),
    (n.LogisticPolicy(OWN), lambda: Policy(OWN)),
    (n.LogisticPolicy((1000,) * 8), lambda: Policy((1000,) * 8)),
    (n.Ratchet(), lambda: Ratchet(0.5, -1.0, 0.5)),
    (n.Ratchet(0.3, -0.2, 0.4), lambda: Ratchet(0.3, -0.2, 0.4)),
    (n.Ratchet(low=0.1, width=0.0), lambda: Ratchet(0.5, 0.1, 0.0)),
    (n.EarlyStopping(), lambda: EarlyStopping(HORIZON ** (1 / 3) / 4)),
    (n.EarlyStopping(4), lambda: EarlyStopping(4)),
    *((n.Sidestepping(cells), lambda cells=cells: Sidestepping(cells, HORIZON)) for cells in (1, 2, 9)),
    *((n.SignPreservation(*x), lambda x=x: Signs(*x, HORIZON)) for x in ((4, 10), (7, 16), (7, 20), (1, 1))),
    (n.HalfCrossing(), HalfCrossing),
    (n.Mixture((n.Bernoulli(0.2), n.Drift(), n.Contrarian()), (1, 2, 1)), lambda: Mixed(
        [Of(lambda t, u: 0.2), drift(HORIZON), Contrarian()], [0.25, 0.5, 0.25])),
    (n.Switch(n.Drift(), n.Drift(1, 0), "T/4"), lambda: Switched(
        drift(HORIZON // 4), drift(HORIZON - HORIZON // 4, 1, 0), HORIZON // 4)),
    (n.Switch(n.Markov(), n.EarlyStopping(3)), lambda: Switched(
        Markov(0.1, 0.1), EarlyStopping(3), HORIZON // 2)),
    (n.Switch(n.Markov(), n.Drift(), HORIZON), lambda: Markov(0.1, 0.1)),
]  # fmt: skip


def test_every_nature_has_a_rule():
    """`Streams` is below, `Replay` has a file of its own; `Maximin` is held against the solved game (tests/exact)."""
    assert {type(spec) for spec, _ in RULES} == set(NATURES.values()) - {n.Replay, n.Streams, n.Maximin}


@pytest.mark.one_in(11)
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
            rule = make()
            for t, round in enumerate(log):
                expected = rule.q(round.laws[run], own[t, run])
                # Where a sum of reals is 0 a tie may go either way.
                if expected is not None and (expected != 0.5 or isinstance(forecaster, Quarters)):
                    assert round.q[run] == pytest.approx(expected, abs=1e-9), (forecaster, run, t)
                rule.told(float(round.forecast[run]), int(round.outcome[run]))


@pytest.mark.parametrize("order", ["turns", "random"])
def test_each_stream_is_its_part_alone(order, seed):
    """In the game of its own questions."""
    parts = n.Greedy(), n.Drift(), n.UniformTruth(), n.Switch(n.Markov(), n.EarlyStopping(3))
    nature = n.Streams(parts, order)
    path = "nature", strategy_key(nature), f"T={HORIZON}"
    whose = nature.start(HORIZON, Stream(seed, path, range(1))).streams_of(1, HORIZON)
    mine = np.bincount(whose).tolist()
    own = [Stream(seed, (*path, f"part {i}"), range(RUNS)).block(count) for i, count in enumerate(mine)]
    log, _ = noted(Quarters(), nature, HORIZON, RUNS, seed)
    for run in range(RUNS):
        switched = Switched(Markov(0.1, 0.1), EarlyStopping(3), mine[3] // 2)
        rules, asked = [Greedy(), drift(mine[1]), Of(lambda t, u: u), switched], [0] * 4
        for i, round in zip(whose.tolist(), log, strict=True):
            assert round.q[run] == pytest.approx(rules[i].q(round.laws[run], own[i][asked[i], run]), abs=1e-9)
            rules[i].told(float(round.forecast[run]), int(round.outcome[run]))
            asked[i] += 1


def test_sidestepping_goes_where_no_sign_is_repaired():
    assert next_cell([0, 0, 1, 0, 0]) == (4, [0, 0, 1, 0, 0])
    assert next_cell([0, 0, -1, 0, 0]) == (1, [0, 0, -1, 0, 0])
    assert next_cell([0, 1, 1, -1, 0])[0] in (0, 4)  # no place is free of harm any more


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
        assert (shown[kind] == [round.q for round in noted(EmpiricalMean(), nature, 60, 3, seed)[0]]).all()


def test_rules_at_their_ends(seed):
    def qs(nature, horizon):
        return np.array([round.q for round in noted(EmpiricalMean(), nature, horizon, 3, seed)[0]])

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
    still = [round.outcome for round in noted(EmpiricalMean(), n.Markov(0, 0), 50, 40, seed)[0]]
    assert (np.array(still) == still[0]).all()
    assert 0 < still[0].sum() < 40  # all of 40 fair coins alike: 2^−39
