"""The same models on the same stream with the same delays as in river, which plays questions and answers as well.

What differs, beside that river scores what is still open at the end: at equal times river tells outcomes before it
asks, here questions come first. With a question at each unit of time river's delay of d ≥ 1 is a delay of d − 1 here;
its 0 and its None are 0 here. At times that are all different there is no difference.
"""

import numpy as np
import pytest
from river import dummy, evaluate, linear_model, metrics, preprocessing

from onlinecal.forecasters import as_forecaster
from onlinecal.natures import Replay
from tests.delays import by_hand

ROUNDS = 400
MODELS = {
    "logistic regression": linear_model.LogisticRegression,
    "scaled": lambda: preprocessing.StandardScaler() | linear_model.LogisticRegression(),
    "prior": dummy.PriorClassifier,
}


def probability(said):
    """Of an event that has not been seen yet, river says nothing."""
    return said.get(True, 0.0 if said else 0.5)


def rivers(model, rows, delays, times):
    """The probabilities that river states, round by round; it tells them when it has the answer."""
    clock, late = (None, delays) if times is None else (iter(times), iter(delays))
    found = evaluate.iter_progressive_val_score(
        rows,
        model,
        metrics.LogLoss(),
        moment=None if clock is None else lambda _: next(clock),
        delay=late if times is None else lambda *_: next(late),
        yield_predictions=True,
    )
    due = (
        range(ROUNDS) if times is None else [time + delay for time, delay in zip(times, delays, strict=True)]
    )
    said = np.empty(ROUNDS)
    for i, state in zip(sorted(range(ROUNDS), key=due.__getitem__), found, strict=True):
        said[i] = probability(state["Prediction"])
    return said.tolist()


def ours(name, nature, delays, times=None):
    """The forecasts of a game, round by round, by a classifier of river's with the base forecast as its feature."""

    class OfRiver:
        needs = frozenset({"base"})

        def __init__(self):
            self.model = MODELS[name]()

        def forecast(self, round):
            return probability(self.model.predict_proba_one(round.context))

        def update(self, forecast, outcome, round):
            self.model.learn_one(round.context, bool(outcome))

    asked = by_hand(as_forecaster(OfRiver), nature, delays, times=times)[1]
    return [float(question.forecast[0]) for question in asked]


@pytest.mark.one_in(5)
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("delay", [None, 0, 1, 2, 10, 500, "any", "clock"])
def test_it_plays_as_river_does(name, delay, tmp_path, seed):
    rng = np.random.default_rng([seed, 8])
    base = rng.random(ROUNDS).round(3)
    outcomes = (rng.random(ROUNDS) < 0.1 + 0.6 * base).astype(int)
    file = tmp_path / "stream.csv"
    file.write_text("\n".join(["outcome,base", *(f"{y},{b}" for y, b in zip(outcomes, base, strict=True))]))
    rows = [({"base": float(b)}, bool(y)) for b, y in zip(base, outcomes, strict=True)]
    nature, model, times = Replay(str(file), base="base"), MODELS[name](), None
    if delay == "clock":
        times, late = np.cumsum(rng.exponential(1.0, ROUNDS)), rng.pareto(1.2, ROUNDS)
        river, here = rivers(model, rows, late.tolist(), times.tolist()), late
    elif delay == "any":  # some at the same time, and from 1 on, since river's 0 and 1 are one
        late = rng.geometric(0.1, ROUNDS)
        river, here = rivers(model, rows, late.tolist(), range(ROUNDS)), late - 1
    else:
        late = [delay] * ROUNDS
        river = rivers(model, rows, None if delay is None else late, None if delay is None else range(ROUNDS))
        here = [max((delay or 0) - 1, 0)] * ROUNDS
    assert ours(name, nature, here, times) == river
    # The control: later outcomes make another game.
    assert ours(name, nature, np.array(here) + 25, times) != river or delay == 500
