"""What all natures share: documentation, what they reveal, what they do not see."""

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
    Markov,
    Sidestepping,
    Sight,
    UniformTruth,
)


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
