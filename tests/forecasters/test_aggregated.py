"""Aggregation: its bounds on every prefix, of experts and outcomes that are made to hurt; and what it takes."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from onlinecal.core.errors import InvalidParameter
from onlinecal.forecasters import (
    Calibeating,
    Constant,
    EmpiricalMean,
    ExpertAggregation,
    Forecaster,
    ForecastHedging,
    OnlinePlatt,
    Unchanged,
    aggregated,
)
from onlinecal.recalibration.methods import DEFAULT, METHODS
from onlinecal.recalibration.recalibrator import Recalibrator
from onlinecal.rounds.law import Law
from tests.rounds_by_hand import asked, drawn


@dataclass(frozen=True)
class Recited(Forecaster):
    """Says what it is given, whatever happens."""

    deterministic: ClassVar[bool | None] = True
    said: tuple[float, ...]

    def start(self, horizon, runs, stream):
        return Reciter(self.said)


class Reciter:
    def __init__(self, said):
        self.said, self.law = said, Law(1, 1)

    def forecast(self, round):
        self.law.atoms[0, 0] = self.said[round.number - 1]
        return self.law

    def update(self, round):
        pass


def losses(p, y):
    """Log loss and squared error."""
    return np.stack([-np.log(np.where(y == 1, p, 1.0 - np.asarray(p))), (p - y) ** 2])


def regrets(spec, base, answer, said=None):
    """(2, K, rounds): the total losses less those of each expert.

    `said` has the experts' forecasts, (K, rounds), where they do not depend on outcomes; else the experts play on
    their own. `answer(t, p)` gives the outcome.
    """
    player, p, y = spec.start(len(base), 1, None), [], []
    experts = [] if said is not None else [one.start(len(base), 1, None) for one in spec.of]
    alone = [[] for _ in experts]
    for t, b in enumerate(base):
        question = asked(t + 1, base=[b])
        law = player.forecast(question)
        p.append(float(law.atoms[0, 0]))
        y.append(answer(t, p[-1]))
        player.update(drawn(law, 0, y[-1], question=question))
        for one, own in zip(experts, alone, strict=True):
            question = asked(t + 1, base=[b])
            law = one.forecast(question)
            own.append(float(law.atoms[0, 0]))
            one.update(drawn(law, 0, y[-1], question=question))
    q = np.clip(np.array(alone if said is None else said), spec.edge, 1.0 - spec.edge)
    assert (q.min(axis=0) <= np.array(p)).all()
    assert (np.array(p) <= q.max(axis=0)).all()
    mine, theirs = losses(np.array(p), np.array(y)), losses(q, np.array(y))
    return np.cumsum(mine[:, None] - theirs, axis=-1)


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
    spec = ExpertAggregation(tuple(Recited(tuple(own)) for own in said.tolist()))
    assert_bounded(regrets(spec, [0.5] * len(rounds), answers[how], said))


#: of these the log loss prefers the second, and the Brier score the first
APART = np.repeat([[1e-6], [0.4]], 400, axis=1)


@pytest.mark.parametrize("loss", [0, 1], ids=["log loss", "Brier score"])
def test_the_bound_of_a_loss_needs_its_weights(loss, monkeypatch):
    """The control: aggregation by the other loss alone breaks the bound, and by both keeps it."""
    spec = ExpertAggregation(tuple(Recited(tuple(own)) for own in APART.tolist()))

    def play():
        return regrets(spec, [0.5] * 400, lambda t, p: int(t % 10 == 0), APART)

    assert_bounded(play())
    rule = aggregated.agreed

    def by_the_other(experts, regret):
        size = len(experts)
        return rule(experts, np.where(np.arange(2 * size) // size == loss, -1e9, regret))

    monkeypatch.setattr(aggregated, "agreed", by_the_other)
    with pytest.raises(AssertionError):
        assert_bounded(play())


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


@pytest.mark.parametrize(
    "make",
    [
        lambda: ExpertAggregation(()),
        lambda: ExpertAggregation((ForecastHedging(),)),
        lambda: ExpertAggregation((Constant(), "x")),
        lambda: ExpertAggregation((EmpiricalMean(),), edge=0.0),
    ],
)
def test_parameters_out_of_range(make):
    with pytest.raises(InvalidParameter):
        make()
