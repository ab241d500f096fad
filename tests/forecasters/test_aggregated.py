"""Aggregation: its bounds on every prefix, of experts and outcomes that are made to hurt; and what it takes."""

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from onlinecal.forecasters import (
    Calibeating,
    ExpertAggregation,
    OnlinePlatt,
    Unchanged,
)
from onlinecal.recalibration.methods import DEFAULT, METHODS
from onlinecal.recalibration.recalibrator import Recalibrator
from tests.by_hand import Driven, reciting


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
        kept = players[0].memory.floats.copy()
        if without is not None:
            players[0].memory.floats.reshape(2, -1)[without] = -1e9
        asked = [player.ask(base=b) for player in players]
        players[0].memory.floats[:] = kept
        for own, each in zip(stated, asked, strict=True):
            own.append(float(each.values[0, 0]))
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


STREAMS = {
    "surprises": ([0.0, 1.0, 1e-9], lambda t, p: t % 2),
    "contrary": ([0.7, 0.3, 1.0], lambda t, p: int(p < 0.5)),
    "calibrated": ([0.25], lambda t, p: int(t % 4 == 0)),
    "turned": ([0.9, 0.1], lambda t, p: int((t % 2 == 0) == (t < 500))),
}


@pytest.mark.parametrize("name", STREAMS)
def test_the_default_recalibrator_keeps_its_bounds(name):
    """By the experts that play on their own; against the base itself, with what the edge costs."""
    values, answer = STREAMS[name]
    base = np.resize(values, 1000)
    spec = METHODS[DEFAULT]
    assert spec.of == (Unchanged(), Calibeating(), OnlinePlatt(rate=1.0), OnlinePlatt())
    assert_bounded(regrets(spec, base, answer))
    # What the docstring of `Recalibrator` says of the base forecast as it is, which is right for ever at 0 and at 1.
    sure = np.resize([0.0, 1.0], 1000)
    for forecasts, outcomes in ((base, answer), (sure, lambda t, p: t % 2)):
        y, p = [], []
        mine = Recalibrator()
        for t, b in enumerate(forecasts.tolist()):
            question = mine.ask(b)
            p.append(question.forecast)
            y.append(outcomes(t, p[-1]))
            mine.tell(question, y[-1])
        with np.errstate(divide="ignore", invalid="ignore"):
            brier = np.cumsum((np.array(p) - y) ** 2 - (forecasts - y) ** 2)
            log = np.cumsum(losses(np.array(p), np.array(y))[0]) - np.cumsum(
                losses(forecasts, np.array(y))[0]
            )
        cost = 1.01e-6 * np.arange(1, 1001)
        assert (brier <= 1.04 + cost).all()
        assert (log <= 2.08 + cost).all()


def test_it_says_what_all_experts_say():
    """No digit is changed where there is nothing to choose; and one expert alone is repeated."""
    for of in ((Unchanged(), Unchanged()), (Unchanged(),)):
        found = regrets(ExpertAggregation(of), np.linspace(0.01, 0.99, 50), lambda t, p: t % 2)
        assert (found == 0.0).all()
