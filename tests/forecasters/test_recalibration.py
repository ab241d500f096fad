"""Calibeating, Platt scaling and aggregation: what is proved of them, on streams that are made to hurt."""

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.special import logit

from onlinecal.engine.game import Game
from onlinecal.forecasters import (
    Calibeating,
    ExpertAggregation,
    OnlinePlatt,
    TrackingPlatt,
    Unchanged,
    as_forecaster,
)
from onlinecal.natures import Drift
from onlinecal.recalibration.methods import DEFAULT, METHODS
from tests.by_hand import Driven, reciting


def played(forecaster, base, answer):
    """The forecasts, and the outcomes, `answer(t, p)`."""
    player, said, outcomes = Driven(forecaster, len(base)), [], []
    for t, b in enumerate(base):
        asked = player.ask(base=b)
        said.append(asked.law[0][0])
        outcomes.append(int(answer(t, said[-1])))
        player.tell(asked, outcomes[-1])
    return np.array(said), np.array(outcomes)


def stream_of(base, truth, forecaster):
    """The forecasts of a forecaster on given base forecasts and outcomes."""
    return played(forecaster, base, lambda t, p: truth[t])[0].tolist()


streams = st.lists(
    st.tuples(st.one_of(st.floats(0, 1), st.integers(0, 10).map(lambda i: i / 10)), st.integers(0, 1)),
    min_size=1,
    max_size=60,
)


@given(streams, st.integers(1, 12))
def test_calibeating_keeps_its_word(pairs, bins):
    """Foster and Hart, Theorem 3: Brier total ≤ refinement of the binned base + bins·(1 + ln T), for every sequence."""
    base, truth = zip(*pairs, strict=True)
    groups = {}
    for b, y in pairs:
        groups.setdefault(sum(b >= j / bins for j in range(1, bins)), []).append(y)
    refinement = sum(sum((np.mean(ys) - y) ** 2 for y in ys) for ys in groups.values())
    total = sum((p - y) ** 2 for p, y in zip(stream_of(base, truth, Calibeating(bins)), truth, strict=True))
    assert total <= refinement + bins * (1 + math.log(len(pairs))) + 1e-9


@given(streams, st.sampled_from([20, 1]))
@example([(1.0, 1), (0.75, 1), (1.0, 0)], 1)
@example([(0.5, 1)] * 3, 20)  # one step leads beyond any logit of a float
@example([(0.5, 0)] * 3, 20)
def test_none_says_0_or_1_unless_the_base_does(pairs, bins):
    """So that the log loss is finite."""
    base, truth = zip(*[(min(max(b, 1e-9), 1 - 1e-9), y) for b, y in pairs], strict=True)
    for spec in (Calibeating(bins), TrackingPlatt(bins=bins), OnlinePlatt(), OnlinePlatt(rate=1e-9)):
        least = 2e-16 if type(spec) is OnlinePlatt else 0.0
        assert all(least < p < 1.0 for p in stream_of(base, truth, spec))


# ---------------------------------------------------------------- the regret of Platt scaling


def loss_of(z, y):
    """ln(1 + e^{∓z}), without overflow."""
    return np.logaddexp(0.0, np.where(y == 1, -z, z))


def regret_and_bound(spec, base, y, total):
    """Regret and bound of the worst scaling of a fine grid of the disc, by their difference."""
    x = logit(np.clip(base, spec.edge, 1 - spec.edge))
    largest = math.log((1 - spec.edge) / spec.edge)
    turn = np.linspace(0, 2 * math.pi, 40, endpoint=False)
    near = (
        spec.radius * np.linspace(0, 1, 11)[:, None, None] * np.stack([np.cos(turn), np.sin(turn)], axis=-1)
    )
    found = []
    for theta in [*near.reshape(-1, 2), np.array([1.0, 0.0])]:
        regret = total - loss_of(theta[0] * x + theta[1], y).sum()
        away = ((theta - [1.0, 0.0]) ** 2).sum()
        sum_ = math.log(1 + (1 + largest**2) * len(base) / (2 * spec.ridge)) / spec.rate
        found.append((regret, sum_ + spec.rate * spec.ridge * away / 2))
    return max(found, key=lambda pair: pair[0] - pair[1])


HARD = [0.7, 0.3, 1 - 1e-9]
STREAMS = {
    "repeated": (HARD, lambda t, p: (1, 0, 0)[t % 3]),
    "contrary": (HARD, lambda t, p: int(p < 0.5)),
    "surprises": ([0.0, 1.0, 1e-9], lambda t, p: t % 2),
    "switch": ([0.9, 0.2, 0.6], lambda t, p: int(t > 500)),
}


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize(("radius", "edge", "ridge"), [(2.0, 0.1, 1.0), (1.0, 0.02, 1.0), (1.5, 0.2, 50.0)])
def test_the_regret_is_bounded_where_the_rate_is_small_enough(stream, radius, edge, ridge):
    rate = OnlinePlatt(radius=radius, edge=edge).largest_rate
    most = radius * math.hypot(1.0, math.log((1 - edge) / edge))
    assert rate == pytest.approx(
        math.exp(-most), rel=1e-12
    )  # the curvature of the loss over its slope squared
    spec = OnlinePlatt(rate=rate, ridge=ridge, radius=radius, edge=edge)
    forecasts, answer = STREAMS[stream]
    base = np.resize(forecasts, 2000)
    p, y = played(spec, base, answer)
    regret, bound = regret_and_bound(spec, base, y, loss_of(np.log(p / (1 - p)), y).sum())
    assert regret <= bound


def test_the_default_rate_is_outside_and_can_be_made_to_pay():
    """By contrary outcomes to a forecast that the next step leaves again: a regret in proportion to T."""
    spec = OnlinePlatt()
    assert spec.largest_rate < 1e-300
    player, base, y, total = Driven(spec, 8000), np.resize(HARD, 8000), np.resize([1, 0, 0], 8000), 0.0
    x = logit(np.clip(base, 1e-6, 1 - 1e-6))
    for t, b in enumerate(base):
        asked = player.ask(base=b)
        slope, shift = player.state[:2]
        total += float(loss_of(slope * x[t] + shift, y[t]))  # p is off 0 and 1, the scaling may be at them
        player.tell(asked, y[t])
    regret, bound = regret_and_bound(spec, base, y, total)
    assert regret > 20_000 > 20 * bound


# ---------------------------------------------------------------- aggregation


def losses(p, y):
    """Log loss and squared error."""
    return np.stack([-np.log(np.where(y == 1, p, 1.0 - np.asarray(p))), (p - y) ** 2])


def regrets(spec, base, answer, said=None, without=None):
    """(2, K, rounds): the total losses less those of each expert.

    `said` has the experts' forecasts, (K, rounds), where they do not depend on outcomes; else the experts play on
    their own. `answer(t, p)` gives the outcome. Aggregation disregards the loss `without`.
    """
    players = [Driven(one, len(base)) for one in (spec, *(() if said is not None else spec.of))]
    stated, y = [[] for _ in players], []
    for t, b in enumerate(base):
        kept = players[0].state.copy()
        if without is not None:
            experts = len(spec.of)
            players[0].state[without * experts : (without + 1) * experts] = -1e9
        asked = [player.ask(base=b) for player in players]
        players[0].state[:] = kept
        for own, each in zip(stated, asked, strict=True):
            own.append(each.law[0][0])
        y.append(answer(t, stated[0][-1]))
        for player, each in zip(players, asked, strict=True):
            player.tell(each, y[-1])
    p = np.array(stated[0])
    q = np.clip(np.array(stated[1:] if said is None else said), spec.edge, 1.0 - spec.edge)
    assert ((q.min(axis=0) <= p) & (p <= q.max(axis=0))).all()
    return np.cumsum(losses(p, np.array(y))[:, None] - losses(q, np.array(y)), axis=-1)


def assert_bounded(found):
    """ln 2K and ½ ln 2K on every prefix and for every expert; with 1e-9 a round for rounding near 1, 1e-16/edge."""
    most, rounding = math.log(2 * found.shape[1]), 1e-9 * found.shape[2]
    assert found[0].max() <= most + rounding
    assert found[1].max() <= 0.5 * most + rounding


unit = st.one_of(st.floats(0, 1), st.sampled_from([0.0, 1.0, 0.5, 1e-6, 1e-300, 1 - 1e-15]))
rows = st.integers(1, 4).flatmap(
    lambda k: st.lists(
        st.tuples(st.lists(unit, min_size=k, max_size=k), st.booleans()), min_size=1, max_size=40
    )
)


@given(rows, st.sampled_from(["given", "contrary", "surprising"]))
@example([([0.0, 1.0], True)] * 30, "contrary")
@example([([1e-6, 0.4], t % 10 == 0) for t in range(40)], "given")
def test_the_bounds_hold_for_every_sequence(rounds, how):
    said = np.array([own for own, _ in rounds]).T
    given_ = [int(one) for _, one in rounds]
    answers = {
        "given": lambda t, p: given_[t],
        "contrary": lambda t, p: int(p < 0.5),
        "surprising": lambda t, p: int(said[0, t] > p),
    }
    spec = ExpertAggregation(tuple(map(reciting, said.tolist())))
    assert_bounded(regrets(spec, [0.5] * len(rounds), answers[how], said))


#: of these the log loss prefers the second, and the Brier score the first
APART = np.repeat([[1e-6], [0.4]], 400, axis=1)


@pytest.mark.parametrize("loss", [0, 1], ids=["log loss", "Brier score"])
def test_the_bound_of_a_loss_needs_its_weights(loss):
    """The control: aggregation by the other loss alone breaks the bound, and by both keeps it."""
    spec = ExpertAggregation(tuple(map(reciting, APART.tolist())))
    game = spec, [0.5] * 400, lambda t, p: int(t % 10 == 0), APART
    assert_bounded(regrets(*game))
    with pytest.raises(AssertionError):
        assert_bounded(regrets(*game, without=loss))


@pytest.mark.parametrize("name", STREAMS)
def test_the_default_recalibrator_keeps_its_bounds(name):
    """By the experts that play on their own; against the base itself, with what the edge costs."""
    values, answer = STREAMS[name]
    base, spec = np.resize(values, 1000), METHODS[DEFAULT]
    assert spec.of == (Unchanged(), Calibeating(), OnlinePlatt(rate=1.0), OnlinePlatt())
    assert_bounded(regrets(spec, base, answer))
    # Also where the base is as sure as can be.
    for forecasts, outcome in ((base, answer), (np.resize([0.0, 1.0], 1000), lambda t, p: t % 2)):
        p, y = played(spec, forecasts, outcome)
        with np.errstate(divide="ignore", invalid="ignore"):
            log, brier = np.cumsum(losses(p, y) - losses(forecasts, y), axis=1)
        cost = 1.01e-6 * np.arange(1, 1001)
        assert (brier <= 1.04 + cost).all()
        assert (log <= 2.08 + cost).all()


def test_it_says_what_all_experts_say():
    """No digit is changed where there is nothing to choose; and one expert alone is repeated."""
    for of in ((Unchanged(), Unchanged()), (Unchanged(),)):
        found = regrets(ExpertAggregation(of), np.linspace(0.01, 0.99, 50), lambda t, p: t % 2)
        assert (found == 0.0).all()


class Sure:
    """States a forecast behind one without weight."""

    deterministic = True

    def forecast(self):
        return {0.2: 0.0, 0.7: 1.0}

    def update(self, forecast, outcome):
        assert forecast == 0.7


def test_the_forecast_of_an_expert_is_the_one_with_weight():
    game = Game(ExpertAggregation((as_forecaster(Sure),)), Drift(), horizon=5, runs=range(1))
    assert [{*game.ask().laws[0]} for _ in range(2)] == [{0.7}] * 2
    game.advance(5)
