"""What all natures share: documentation, what they reveal, what they do not see."""

import numpy as np
import pytest

from onlinecal.core.errors import InvalidParameter, SightError
from onlinecal.engine.game import Game
from onlinecal.forecasters import (
    FORECASTERS,
    Constant,
)
from onlinecal.natures import (
    NATURES,
    Bernoulli,
    EarlyStopping,
    KinkApproach,
    Markov,
    Sidestepping,
    Sight,
    UniformTruth,
)
from onlinecal.natures.base import NatureRound
from onlinecal.rounds.law import Law
from onlinecal.rounds.protocol import start
from onlinecal.rounds.record import Recorder, decide, resolve
from tests import examples
from tests.rounds_by_hand import asked


def test_who_reveals_nothing_cannot_feed_who_needs_it():
    class Needy(Constant):
        needs = frozenset({"truth"})

    with pytest.raises(InvalidParameter, match="needs truth, which nature 'bernoulli' does not reveal"):
        Game(Needy(), Bernoulli(), horizon=5, runs=range(1))
    Game(Needy(), UniformTruth(), horizon=5, runs=range(1)).advance(5)


@pytest.mark.parametrize("cls", NATURES.values(), ids=list(NATURES))
def test_documented(cls):
    for section in ("Guarantee", "Information", "Source", "Deviations"):
        assert section in cls.__doc__
    assert set(FORECASTERS).isdisjoint(NATURES)


def test_natures_of_history_do_not_see_the_law():
    for nature in (Markov(), EarlyStopping(), Sidestepping()):
        assert nature.sight is Sight.HISTORY
        game = Game(Constant(), nature, horizon=5, runs=range(1))
        game.advance(3)
        open = game.ask()
        for what in ("law", "forecast"):
            with pytest.raises(SightError, match="expected sight"):
                getattr(open.nature, what)
        with pytest.raises(SightError, match="before the outcome was known"):
            open.nature.outcome  # noqa: B018
        game.resolve(open)
        assert open.nature.forecast.tolist() == [0.5]
        assert open.nature.outcome[0] in (0, 1)
        with pytest.raises(SightError, match="expected sight LAW"):
            open.nature.law  # noqa: B018


# ---------------------------------------------------------------- a law is a distribution, however it is written


def answers(nature, laws, draws, outcomes):
    """q of each round in which these laws, (values, weights), are stated, and these values drawn of them."""
    player, recorder, found = start("nature", nature, len(laws), range(1), 0), Recorder(1), []
    for number, ((values, weights), value, y) in enumerate(zip(laws, draws, outcomes, strict=True), 1):
        law = Law(1, len(values))
        law.atoms[0], law.weights[0] = values, weights
        place = int(np.flatnonzero((values == value) & (weights > 0.0))[0])
        round = asked(number)
        recorder.draw(round, law, np.array([[weights[:place].sum()]]), 0)
        face = NatureRound(round, "nature", nature.sight)
        assert round.forecast[0] == value
        if nature.reveals:
            player.context(face)
        found.append(float(np.broadcast_to(player.probability(face), 1)[0]))
        decide(round, np.array([y]), np.full((1, 1), 0.5), 0)
        resolve(round, float(number))
        if nature.sight >= Sight.HISTORY:
            player.update(face)
    return found


def rewritten(values, weights, generator):
    """The same law with each value twice, values without weight, in another order."""
    share = generator.choice([0.25, 0.5, 1.0], len(values))
    other = generator.choice([0.0, 0.5, 1.0], 2)
    order = generator.permutation(2 * len(values) + 2)
    twice = np.concatenate((share * weights, (1.0 - share) * weights, [0.0, 0.0]))
    return np.concatenate((values, values, other))[order], twice[order]


def test_natures_depend_on_a_law_as_a_distribution(seed, tmp_path):
    """To the last digit where sums of weights are exact, as of these; of others up to the order of summation."""
    generator = np.random.default_rng(seed)
    laws = []
    for _ in range(300):
        size = int(generator.integers(1, 4))
        weights = [[1.0], [0.25, 0.75], [0.25, 0.25, 0.5]][size - 1]
        laws.append((generator.choice(9, size, replace=False) / 8, np.array(weights)))
    draws = [generator.choice(values) for values, _ in laws]
    outcomes = generator.integers(0, 2, len(laws)).astype(float)
    others = [rewritten(*law, generator) for law in laws]
    seen = [nature for nature in examples.natures(tmp_path) if nature.sight >= Sight.LAW]
    assert len({type(nature) for nature in seen}) >= 9
    for nature in [*seen, KinkApproach(cells=7)]:
        assert answers(nature, laws, draws, outcomes) == answers(nature, others, draws, outcomes), nature
