"""The other forecasters against plain Python, and the wrappers."""

import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.streams import Stream
from onlinecal.engine.game import Game
from onlinecal.forecasters import (
    AlmostOneStepAhead,
    BlumMansour,
    Calibeating,
    Constant,
    DefensiveForecasting,
    Doubling,
    EmpiricalMean,
    ExpertMixture,
    ForecastHedging,
    FosterVohra,
    LastOutcome,
    OnlinePlatt,
    PerturbedLeader,
    Rounded,
    Tempered,
    TrackingPlatt,
    Truthful,
    UniformRandom,
)
from onlinecal.forecasters._pairwise import LAST, OUTDATED
from onlinecal.forecasters._stationary import shares
from onlinecal.measures import brier, ece
from onlinecal.natures import Bernoulli, Contrarian, Drift, UniformTruth
from tests.rounds import asked, drawn, played


def first_law(player, context=None):
    law = player.forecast(asked(**context or {}))
    values = law.atoms if law.grid is None else law.grid[law.atoms]
    return values[0], law.weights[0]


def on_grid(law, points):
    q = np.zeros(points)
    np.add.at(q, law.atoms[0], law.weights[0])
    return q


# ---------------------------------------------------------------- stationary laws


@pytest.mark.parametrize("swaps", ["all", "next"])
@settings(max_examples=300)
@given(st.data())
def test_foster_vohra_is_stationary_under_the_regrets(swaps, data):
    m = data.draw(st.integers(1, 9))
    counts = np.array(data.draw(st.lists(st.integers(0, 30), min_size=m + 1, max_size=m + 1)))
    ones = np.array([data.draw(st.integers(0, int(n))) for n in counts])
    player = FosterVohra(m, swaps).start(100, 1, None)
    for i in range(m + 1):
        for k in range(counts[i]):
            player.update(played(player.law, i, int(k < ones[i])))
    player.memory.ints[0, 0] = data.draw(st.integers(0, m))
    q = on_grid(player.forecast(asked()), m + 1)
    # In units of 1/m² everything is an integer: the regrets by the letter.
    loss = [
        [ones[i] * (j - m) ** 2 + (counts[i] - ones[i]) * j**2 for j in range(m + 1)] for i in range(m + 1)
    ]
    flow = np.array([[max(loss[i][i] - loss[i][j], 0) for j in range(m + 1)] for i in range(m + 1)], float)
    if swaps == "next":
        flow *= np.abs(np.subtract.outer(np.arange(m + 1), np.arange(m + 1))) <= 1
    assert q.sum() == pytest.approx(1.0, abs=1e-12)
    assert q @ flow == pytest.approx(q * flow.sum(axis=1), abs=1e-10 * max(1.0, flow.max()))


def fresh_law(flow):
    """The stationary law of a closed set by plain elimination without subtraction, from the last point to the first."""
    flow, size = flow.copy(), len(flow)
    for n in range(size - 1, 0, -1):
        flow[:n, n] /= flow[n, :n].sum()
        flow[:n, :n] += np.outer(flow[:n, n], flow[n, :n])
        np.fill_diagonal(flow, 0.0)
    q = np.ones(size)
    for n in range(1, size):
        q[n] = q[:n] @ flow[:n, n]
    return q / q.sum()


@pytest.mark.parametrize("m", [5, 17, 24, 40])
def test_foster_vohra_on_all_pairs_remembers_rightly(m, seed):
    """After every round: stationary by the letter, equal to a fresh elimination, whoever plays beside and is pickled.

    Long stretches of one outcome, switches, and points played that the law did not ask for, so that points without
    rounds, cold points and large sets all occur.
    """
    rng, runs, grid = np.random.default_rng((seed, m)), 3, np.arange(m + 1)
    joined = FosterVohra(m, "all").start(100, runs, None)
    alone = [FosterVohra(m, "all").start(100, 1, None) for _ in range(runs)]
    counts, ones = np.zeros((2, runs, m + 1), np.int64)
    chance, large, kept = np.full(runs, 0.5), 0, 0
    for t in range(900):
        outdated = joined.memory.ints[:, OUTDATED].copy()
        law = joined.forecast(asked(t + 1))
        atoms, weights = law.atoms.copy(), law.weights.copy()
        again = joined.forecast(asked(t + 1))
        assert (again.atoms == atoms).all()
        assert (again.weights == weights).all()
        chosen = np.zeros(runs, np.int64)
        for r in range(runs):
            seen = weights[r] > 0
            points, q = atoms[r][seen], weights[r][seen]
            single = alone[r].forecast(asked(t + 1))
            assert single.atoms[0][single.weights[0] > 0].tolist() == points.tolist()
            assert single.weights[0][single.weights[0] > 0].tolist() == q.tolist()
            # Brier losses in units of 1/m², by the letter: the loss of having said column j where row i was said.
            loss = np.outer(ones[r], (grid - m) ** 2) + np.outer(counts[r] - ones[r], grid**2)
            flow = np.maximum(np.diag(loss)[:, None] - loss, 0).astype(float)
            assert not np.delete(flow[points], points, axis=1).any()  # the set is closed
            reached = grid == joined.memory.ints[r, LAST]
            for _ in range(m):
                reached |= flow[reached].any(axis=0)
            assert reached[points].all()
            assert abs(q.sum() - 1) < 1e-12
            assert q == pytest.approx(fresh_law(flow[np.ix_(points, points)]), rel=1e-12, abs=1e-300)
            large += len(points) > 17
            kept += len(points) > 17 and not outdated[r]
            chosen[r] = rng.choice(points, p=q / q.sum()) if rng.random() < 0.98 else rng.integers(m + 1)
        chance = np.where(rng.random(runs) < 0.01, rng.choice([0.0, 1.0, 0.5, rng.random()], runs), chance)
        outcome = (rng.random(runs) < chance).astype(np.int64)
        joined.update(played(joined.law, chosen, outcome))
        for r in range(runs):
            alone[r].update(played(alone[r].law, chosen[r], outcome[r]))
            counts[r, chosen[r]] += 1
            ones[r, chosen[r]] += outcome[r]
        if rng.random() < 0.05:
            joined = pickle.loads(pickle.dumps(joined))
    if m > 20:
        assert large > 200
        assert kept > 100


def test_foster_vohra_on_all_pairs_goes_on_after_pickling():
    straight = Game(FosterVohra(30, "all"), Contrarian(), horizon=3000, runs=range(3))
    stopped = Game(FosterVohra(30, "all"), Contrarian(), horizon=3000, runs=range(3))
    straight.advance(3000)
    for until in (1, 77, 1000, 2999, 3000):
        stopped.advance(until)
        if until < 3000:
            stopped.law()
        stopped = pickle.loads(pickle.dumps(stopped))
    for one, other in zip(straight.gammas(), stopped.gammas(), strict=True):
        assert (one.predictions == other.predictions).all()
        assert (one.counts == other.counts).all()


def test_stationary_weights_of_every_size_do_not_overflow():
    """A walk that is a billion times likelier to go up than down: weights from 1 down to less than the least float."""
    points, up = 61, 1e9
    flow = np.diag(np.full(points - 1, up), 1) + np.diag(np.ones(points - 1), -1)
    share = np.zeros(points)
    root = shares(flow, points, share)
    assert root == 0
    first = int(np.argmax(share > 0))
    law = share[first:]
    assert (law > 0).all()
    assert law.sum() == pytest.approx(1.0, abs=1e-15)
    assert law[1:] / law[:-1] == pytest.approx(up, rel=1e-2)  # the least weights are subnormal
    assert law[-20:] == pytest.approx([(1 - 1 / up) * up**-k for k in range(19, -1, -1)], rel=1e-13)


@settings(max_examples=300)
@given(st.data())
def test_blum_mansour_is_stationary_under_the_wishes(data):
    m = data.draw(st.integers(1, 9))
    wish = data.draw(
        st.lists(st.one_of(st.floats(0, m), st.integers(0, m).map(float)), min_size=m + 1, max_size=m + 1)
    )
    player = BlumMansour(m).start(100, 1, None)
    pull = player.memory.floats[0, 2 * (m + 1) :]
    pull[:], player.memory.ints[0, 0] = np.array(wish) - np.arange(m + 1), data.draw(st.integers(0, m))
    q = on_grid(player.forecast(asked()), m + 1)
    # What the player knows: a wish is a point and a pull.
    rows = np.array([[max(0.0, 1 - abs(p - (j - i))) for j in range(m + 1)] for i, p in enumerate(pull)])
    assert q.sum() == pytest.approx(1.0, abs=1e-12)
    assert q @ rows == pytest.approx(q, abs=1e-10)


def test_blum_mansour_learners_follow_the_weighted_leader(seed):
    game = Game(BlumMansour(5), Bernoulli(0.3), horizon=200, runs=range(1), seed=seed)
    weight, ones = np.zeros(6), np.zeros(6)
    for t in range(1, 201):
        law = game.forecaster.forecast(asked(t))
        stated = on_grid(law, 6)
        open = game.ask()
        game.resolve(open)
        weight += stated
        ones += stated * open.round.outcome[0]
        own = np.arange(6) / 5
        assert own + game.forecaster.memory.floats[0, 12:] / 5 == pytest.approx(
            (own + ones) / (1 + weight), abs=1e-12
        )


# ---------------------------------------------------------------- perturbed leader


def test_the_perturbed_leader_draws_from_its_law(seed):
    """The mean of p and P(Z = 0) over 4096 rounds of 4 runs.

    With mean 3: P(p_1 is 0/0, that is 1/2) + … is not in closed form, so the noise itself is tested, through a player
    without past: p = Z_1/(Z_0 + Z_1), 0/0 read as 1/2, is symmetric, and P(p = 0) = P(Z_1 = 0, Z_0 > 0) = ¼·¾.
    Hoeffding for n = 4·16·4096 values: off by more than 0.005 with probability below 2·exp(−2n·0.005²) < 5e-6; tests
    use 0.008, below 1e-14.
    """
    player = PerturbedLeader(3.0, atoms=16).start(100, 4, Stream(seed, ("f",), range(4)))
    p = np.array([player.forecast(asked(t + 1)).atoms.copy() for t in range(4096)])
    assert p.mean() == pytest.approx(0.5, abs=0.008)
    assert (p == 0.0).mean() == pytest.approx(3 / 16, abs=0.008)
    assert (p == 1.0).mean() == pytest.approx(3 / 16, abs=0.008)


def test_the_perturbed_leader_without_noise_is_the_mean():
    game = Game(PerturbedLeader(0, atoms=1), Bernoulli(0.4), horizon=50, runs=range(1))
    total = 0
    for t in range(50):
        law = game.law()
        values = law.atoms[0]
        assert values[0] == (total / t if t else 0.5)
        open = game.ask()
        game.resolve(open)
        total += open.round.outcome[0]


# ---------------------------------------------------------------- baselines with and without context


def test_baselines():
    assert first_law(LastOutcome().start(9, 1, None))[0].tolist() == [0.5]
    values, weights = first_law(UniformRandom(4).start(9, 1, None))
    assert values.tolist() == [0, 0.25, 0.5, 0.75, 1]
    assert weights.tolist() == [0.2] * 5
    truth = {"truth": np.array([0.2])}
    assert first_law(Truthful().start(9, 1, None), truth)[0][0] == 0.2
    assert first_law(Tempered(1.0).start(9, 1, None), truth)[0][0] == 0.2
    assert first_law(Tempered(2.0).start(9, 1, None), truth)[0][0] == pytest.approx(0.04 / (0.04 + 0.64))
    for q in (0.0, 1.0, 0.5):
        assert first_law(Tempered(3.0).start(9, 1, None), {"truth": np.array([q])})[0][0] == q


def test_last_outcome_remembers():
    game = Game(LastOutcome(), Bernoulli(0.5), horizon=200, runs=range(3))
    last = np.full(3, 0.5)
    for t in range(1, 201):
        law = game.forecaster.forecast(asked(t))
        assert law.grid[law.atoms[:, 0]].tolist() == last.tolist()
        open = game.ask()
        game.resolve(open)
        last = open.round.outcome.astype(float)


def test_the_truthful_are_calibrated_and_the_tempered_are_not(seed):
    """Brier totals: E[(y − q)²] = 1/6 for uniform truths.

    Hoeffding over 8·4000 rounds: off by more than 0.02 with probability below 2·exp(−2·32000·0.02²) < 2e-11.
    """
    briers = {}
    for forecaster in (Truthful(), Tempered(4.0)):
        game = Game(forecaster, UniformTruth(), horizon=4000, runs=range(8), seed=seed)
        game.advance(4000)
        briers[forecaster] = np.mean([brier(gamma) for gamma in game.gammas()])
    assert briers[Truthful()] == pytest.approx(1 / 6, abs=0.02)
    assert briers[Tempered(4.0)] > briers[Truthful()] + 0.01


# ---------------------------------------------------------------- recalibration


def stream_of(base, truth, forecaster):
    """Plays a forecaster on given base forecasts and outcomes; returns what it said."""
    player, said = forecaster.start(len(base), 1, None), []
    for t, (b, y) in enumerate(zip(base, truth, strict=True)):
        question = asked(t + 1, base=[b])
        law = player.forecast(question)
        said.append(float(law.atoms[0, 0]))
        player.update(drawn(law, 0, y, question=question))
    return said


streams = st.lists(
    st.tuples(st.one_of(st.floats(0, 1), st.integers(0, 10).map(lambda i: i / 10)), st.integers(0, 1)),
    min_size=1,
    max_size=60,
)


@given(streams, st.integers(1, 12))
def test_calibeating_says_the_mean_of_the_bin(pairs, bins):
    base, truth = zip(*pairs, strict=True)
    edges = [j / bins for j in range(1, bins)]
    seen, expected = {}, []
    for b, y in pairs:
        i = sum(b >= edge for edge in edges)
        n, s = seen.get(i, (0, 0))
        expected.append(s / n if n else b)
        seen[i] = n + 1, s + y
    assert stream_of(base, truth, Calibeating(bins)) == expected


@given(streams, st.integers(1, 12))
def test_calibeating_keeps_its_word(pairs, bins):
    """Foster and Hart, Theorem 3: Brier total ≤ refinement of the binned base + bins·(1 + ln T), for every sequence."""
    base, truth = zip(*pairs, strict=True)
    total = sum((p - y) ** 2 for p, y in zip(stream_of(base, truth, Calibeating(bins)), truth, strict=True))
    groups = {}
    for b, y in pairs:
        groups.setdefault(sum(b >= j / bins for j in range(1, bins)), []).append(y)
    refinement = sum(sum((np.mean(ys) - y) ** 2 for y in ys) for ys in groups.values())
    assert total <= refinement + bins * (1 + math.log(len(pairs))) + 1e-9


@settings(max_examples=50)
@given(streams, st.sampled_from([100.0, 1.5]))
def test_platt_scaling_takes_newton_steps(pairs, radius):
    base, truth = zip(*pairs, strict=True)
    theta, a, expected = np.array([1.0, 0.0]), np.eye(2), []
    for b, y in pairs:
        b = min(max(b, 1e-6), 1 - 1e-6)
        x = np.array([math.log(b / (1 - b)), 1.0])
        p = 1 / (1 + math.exp(-float(theta @ x))) if theta @ x > -700 else 0.0
        expected.append(p)
        g = (p - y) * x
        a = a + np.outer(g, g)
        theta = theta - np.linalg.solve(a, g) / 0.1
        if theta @ theta > radius**2:
            target, low, high = a @ theta, 0.0, 1e12
            for _ in range(200):
                middle = (low + high) / 2
                theta = np.linalg.solve(a + middle * np.eye(2), target)
                low, high = (middle, high) if theta @ theta > radius**2 else (low, middle)
    assert stream_of(base, truth, OnlinePlatt(radius=radius)) == pytest.approx(expected, abs=1e-5)


def test_platt_scaling_learns_to_undo_overconfidence(seed):
    """A base with doubled logits: scaling by ½ is right, and logarithmic loss comes near the truth's.

    Of 4000 rounds; the excess was 0.003 ± 0.001 over 40 seeds, the tolerance leaves seven standard deviations.
    """
    rng = np.random.default_rng(seed)
    q = rng.uniform(0.05, 0.95, 4000)
    y = (rng.random(4000) < q).astype(int)
    base = q**2 / (q**2 + (1 - q) ** 2)

    def loss(p):
        return -np.mean(np.where(y == 1, np.log(p), np.log1p(-np.asarray(p))))

    said = np.clip(stream_of(base, y, OnlinePlatt()), 1e-9, 1 - 1e-9)
    assert loss(said) < loss(q) + 0.012
    assert loss(base) > loss(said) + 0.02


def test_tracking_is_calibeating_of_the_scaled():
    rng = np.random.default_rng(1)
    base, y = rng.random(300), rng.integers(0, 2, 300)
    scaled = stream_of(base, y, OnlinePlatt())
    assert stream_of(base, y, TrackingPlatt(bins=7)) == stream_of(scaled, y, Calibeating(7))


# ---------------------------------------------------------------- composed


def test_doubling_restarts_with_doubled_horizons():
    counting = Game(Doubling(EmpiricalMean(), first=4), Bernoulli(0.5), horizon=4 + 8 + 16, runs=range(2))
    for stop, told in ((4, [4, 0, 0]), (5, [4, 1, 0]), (12, [4, 8, 0]), (13, [4, 8, 1]), (28, [4, 8, 16])):
        counting.advance(stop)
        players = counting.forecaster.memory.players
        assert [player.memory.ints[:, 0].tolist() for player in players] == [[n, n] for n in told]
    game = Game(Doubling(ForecastHedging(), first=4), Bernoulli(0.5), horizon=4 + 8 + 16, runs=range(2))
    game.advance(28)
    values = {float(v) for g in game.gammas() for v in g.predictions}
    grids = {
        i / m for horizon in (4, 8, 16) for m in [math.ceil(horizon ** (1 / 3) - 1e-9)] for i in range(m + 1)
    }
    assert values <= grids


def test_doubling_keeps_the_order_of_the_error(seed):
    """Restarts cost a constant factor: the sum over epochs is below 1/(1 − 2^{−2/3}) < 2.71 times the last bound."""
    horizon = 16 * (2**9 - 1)
    game = Game(Doubling(ForecastHedging()), Contrarian(), horizon=horizon, runs=range(8), seed=seed)
    game.advance(horizon)
    mean = horizon * np.mean([ece(g) for g in game.gammas()])
    # The slack of hedging's own test at this horizon and rate 1e-9 is 290.
    assert mean <= 2.71 * 2.6 * horizon ** (2 / 3) + 290


def test_rounding():
    hedging = ForecastHedging(7)
    # Hedging on sevenths starts with 3/7 and 4/7.
    for how, expected in (("nearest", {0.5: 1.0}), ("down", {0.25: 0.5, 0.5: 0.5})):
        values, weights = first_law(Rounded(hedging, 4, how).start(100, 1, None))
        law = {}
        for v, w in zip(values.tolist(), weights.tolist(), strict=True):
            law[v] = law.get(v, 0) + w
        assert law == expected
    values, weights = first_law(Rounded(hedging, 4, "random").start(100, 1, None))
    assert float(values @ weights) == pytest.approx(0.5)
    assert set(values.tolist()) == {0.25, 0.5, 0.75}


@given(st.floats(0, 1), st.integers(1, 20))
def test_random_rounding_keeps_the_mean(p, m):
    values, weights = first_law(Rounded(Constant(p), m, "random").start(10, 1, None))
    assert float(values @ weights) == pytest.approx(p, abs=1e-12)
    assert np.abs(values[weights > 0] - p).max() < 1 / m + 1e-12


def test_a_rounded_forecaster_hears_what_it_said():
    """Rounding to its own grid changes nothing at all."""
    plain = Game(ForecastHedging(8), Contrarian(), horizon=500, runs=range(4))
    rounded = Game(Rounded(ForecastHedging(8), 8, "nearest"), Contrarian(), horizon=500, runs=range(4))
    for game in (plain, rounded):
        game.advance(500)
    # The draws differ, since the strategies do; what the inner player knows must fit what was played.
    inner, counts, ones = (
        rounded.forecaster.memory.players[0],
        rounded.history.counts,
        rounded.history.positives,
    )
    assert (inner.memory.ints == 8 * ones - np.arange(9) * counts).all()
    assert plain.history.counts.sum() == counts.sum()


def test_the_mixture_is_as_good_as_its_best_expert(seed):
    """Hedge: the expected Brier total exceeds the best expert's by at most √(T ln K / 2).

    Two constants, and coins of bias 0.9: the best expert's loss is known. The mean over 8 runs of 4000 rounds lies
    within T·√(ln(2/1e-9)/(2·32000)) < 74 of its expectation with probability 1 − 1e-9.
    """
    horizon, experts = 4000, (Constant(0.9), Constant(0.2), Constant(0.5))
    game = Game(ExpertMixture(experts), Bernoulli(0.9), horizon=horizon, runs=range(8), seed=seed)
    game.advance(horizon)
    total = horizon * np.mean([brier(g) for g in game.gammas()])
    best = horizon * 0.09
    assert total <= best + math.sqrt(horizon * math.log(3) / 2) + 74
    assert (
        horizon * (0.9 * 0.64 + 0.1 * 0.04) > best + math.sqrt(horizon * math.log(3) / 2) + 74
    )  # the control


def test_parts_have_randomness_of_their_own(seed):
    """Two that are alike differ by their noise; with one stream for all they would be one, and a mixture would judge
    them by the very numbers from which they are made.
    """
    stream = Stream(seed, ("x",), range(3))
    mixture = ExpertMixture((PerturbedLeader(), PerturbedLeader())).start(100, 3, stream)
    doubling = Doubling(PerturbedLeader(), first=2).start(100, 3, stream)
    keys = [mixture.memory.keys]
    keys += [player.memory.keys for player in (*mixture.memory.players, *doubling.memory.players)]
    assert len({key.tobytes() for key in keys}) == len(keys) == 3 + 6
    # 48 ratios of noise: each is the same in both by a chance below one half.
    assert len({player.forecast(asked()).atoms.tobytes() for player in mixture.memory.players}) == 2


def test_experts_of_a_mixture_hear_forecasts_of_their_own():
    game = Game(
        ExpertMixture((ForecastHedging(5), AlmostOneStepAhead(3), DefensiveForecasting())),
        Drift(),
        horizon=300,
        runs=range(3),
    )
    game.advance(300)
    hedging, ahead, defensive = game.forecaster.memory.players
    assert np.abs(hedging.memory.ints).max() < 5 * 300
    assert np.abs(ahead.memory.ints[:, :-1]).max() <= 3
    assert (defensive.memory.floats[:, 0] > 0).all()
    assert sum(g.weight for g in game.gammas()) == 900


@pytest.mark.parametrize(
    "make",
    [
        lambda: UniformRandom(0),
        lambda: Tempered(-1),
        lambda: PerturbedLeader(-1),
        lambda: PerturbedLeader(atoms=0),
        lambda: Calibeating(0),
        lambda: OnlinePlatt(rate=0),
        lambda: TrackingPlatt(bins=2.5),
        lambda: Doubling(3),
        lambda: Doubling(Constant(), first=0),
        lambda: Rounded(Constant(), 0),
        lambda: Rounded(Constant(), 3, "up"),
        lambda: ExpertMixture(()),
        lambda: ExpertMixture((Constant(), "x")),
        lambda: FosterVohra("T^(1/0)"),
        lambda: FosterVohra(swaps="none"),
        lambda: BlumMansour(0),
    ],
)
def test_parameters_out_of_range(make):
    with pytest.raises(InvalidParameter):
        make()
