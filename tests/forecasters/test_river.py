"""The same models on the same stream with the same delays as in river, which plays questions and answers as well.

What differs, beside that river scores what is still open at the end:

- At equal times river tells outcomes before it asks, here questions come first. With a question at each unit of time
  river's delay of d ≥ 1 is a delay of d − 1 here; its 0 and its None are 0 here. At times that are all different there
  is no difference.
- With delays of their own (a function) river tells outcomes of one time in the order of their questions, as here.
"""

from __future__ import annotations

import numpy as np
import pytest
from river import dummy, evaluate, linear_model, metrics, preprocessing

from onlinecal.forecasters import as_forecaster
from onlinecal.natures import Replay
from tests.delays import by_hand

ROUNDS = 400


@pytest.fixture(scope="module")
def recorded(tmp_path_factory, request):
    """A stream in which a base forecast tells something of the outcome: the nature that replays it, and its rows."""
    rng = np.random.default_rng([request.config.getoption("--seed"), 8])
    base = rng.random(ROUNDS).round(3)
    outcomes = (rng.random(ROUNDS) < 0.1 + 0.6 * base).astype(int)
    file = tmp_path_factory.mktemp("river") / "stream.csv"
    file.write_text("\n".join(["outcome,base", *(f"{y},{b}" for y, b in zip(outcomes, base, strict=True))]))
    rows = [({"base": float(b)}, bool(y)) for b, y in zip(base, outcomes, strict=True)]
    return Replay(str(file), base="base"), rows


def probability(said):
    """Of an event that has not been seen yet, river says nothing."""
    return said.get(True, 0.0 if said else 0.5)


def of_river(name):
    """A forecaster that says what a classifier of river's says, with the base forecast as its feature."""

    class OfRiver:
        needs = frozenset({"base"})

        def __init__(self):
            self.model = MODELS[name]()

        def forecast(self, round):
            return probability(self.model.predict_proba_one(round.context))

        def update(self, forecast, outcome, round):
            self.model.learn_one(round.context, bool(outcome))

    return as_forecaster(OfRiver)


MODELS = {
    "logistic regression": linear_model.LogisticRegression,
    "scaled": lambda: preprocessing.StandardScaler() | linear_model.LogisticRegression(),
    "prior": dummy.PriorClassifier,
}


def rivers(model, rows, delays, times=None):
    """The probabilities that river states, round by round; it tells them when it has the answer."""
    constant = times is None and len(set(delays)) == 1
    times = range(ROUNDS) if times is None else times
    clock, late = iter(times), iter(delays)
    found = evaluate.iter_progressive_val_score(
        rows,
        model,
        metrics.LogLoss(),
        moment=None if constant else lambda _: next(clock),
        delay=delays[0] if constant else lambda *_: next(late),
        yield_predictions=True,
    )
    due = [time + delay for time, delay in zip(times, delays, strict=True)]
    said = np.empty(ROUNDS)
    for i, state in zip(sorted(range(ROUNDS), key=due.__getitem__), found, strict=True):
        said[i] = probability(state["Prediction"])
    return said


def ours(name, nature, delays, times=None):
    """The forecasts of a game, round by round."""
    return np.array(
        [question.forecast[0] for question in by_hand(of_river(name), nature, delays, times=times)[1]]
    )


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(("river", "here"), [(None, 0), (0, 0), (1, 0), (2, 1), (10, 9), (500, 499)])
def test_a_constant_delay(name, river, here, recorded):
    nature, rows = recorded
    expected = rivers(MODELS[name](), rows, [river] * ROUNDS) if river is not None else undelayed(name, rows)
    assert ours(name, nature, [here] * ROUNDS).tolist() == expected.tolist()


def undelayed(name, rows):
    """River's usual way, without a queue."""
    found = evaluate.iter_progressive_val_score(
        rows, MODELS[name](), metrics.LogLoss(), yield_predictions=True
    )
    return np.array([probability(state["Prediction"]) for state in found])


@pytest.mark.parametrize("name", MODELS)
def test_delays_out_of_order_on_rounds(name, recorded, seed):
    """Some at the same time, and from 1 on, since river's 0 and 1 are one."""
    nature, rows = recorded
    delays = np.random.default_rng([seed, 9]).geometric(0.1, ROUNDS)
    expected = rivers(MODELS[name](), rows, delays.tolist())
    assert ours(name, nature, delays - 1).tolist() == expected.tolist()
    # The control: as many rounds later is another game.
    assert ours(name, nature, delays).tolist() != expected.tolist()


@pytest.mark.parametrize("name", MODELS)
def test_arrivals_and_delays_on_a_clock(name, recorded, seed):
    """Times that are all different, where there is no difference to river."""
    nature, rows = recorded
    rng = np.random.default_rng([seed, 10])
    times, delays = np.cumsum(rng.exponential(1.0, ROUNDS)), rng.pareto(1.2, ROUNDS)
    assert len({*times, *(times + delays)}) == 2 * ROUNDS
    expected = rivers(MODELS[name](), rows, delays.tolist(), times.tolist())
    assert ours(name, nature, delays, times).tolist() == expected.tolist()
    assert ours(name, nature, np.zeros(ROUNDS), times).tolist() != expected.tolist()
