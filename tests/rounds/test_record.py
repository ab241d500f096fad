"""The round as a record: what players are shown stays as it is, belongs to nobody else, and comes when it may."""

import gc
import pickle
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from onlinecal.checks.conformance import conformance
from onlinecal.core.arrays import locked
from onlinecal.core.errors import InvalidForecast, InvalidParameter, SightError
from onlinecal.engine.game import Game
from onlinecal.forecasters import EmpiricalMean, Forecaster, ForecastHedging, Law, Truthful
from onlinecal.measures import brier, ece
from onlinecal.natures import Bernoulli, Greedy, Nature, Sight, UniformTruth
from onlinecal.rounds.record import Recorder, check_round, tell
from tests.rounds_by_hand import asked, drawn, heard, played, stated


def totals(forecaster, nature, measure=ece, horizon=2000, runs=8, seed=0):
    game = Game(forecaster, nature, horizon=horizon, runs=range(runs), seed=seed)
    game.advance(horizon)
    return [horizon * measure(gamma) for gamma in game.gammas()]


# ---------------------------------------------------------------- locks


def ways_to_write(array):
    """What somebody would try, by public names only."""

    owner = array
    while isinstance(owner, np.ndarray):
        yield lambda owner=owner: owner.__setitem__(..., 0)
        yield lambda owner=owner: setattr(owner.flags, "writeable", True)
        yield lambda owner=owner: owner.setflags(write=True)
        owner = owner.base
    yield lambda: memoryview(owner)  # what holds the memory has no buffer to write to
    yield lambda: array.view().setflags(write=True)
    yield lambda: array[...].setflags(write=True)
    yield lambda: np.frombuffer(array.data, array.dtype).setflags(write=True)
    yield lambda: np.add(array, 1, out=array)
    yield lambda: array.sort()
    yield lambda: memoryview(array).__setitem__(0, 0)


def test_locked_arrays_stay_locked():
    owner = np.arange(6.0)
    array = locked(owner)
    for write in ways_to_write(array):
        with pytest.raises((ValueError, TypeError)):
            write()
    owner[0] = 7.0
    assert array[0] == 7.0
    del owner
    gc.collect()
    assert array.tolist() == [7, 1, 2, 3, 4, 5]  # it holds the memory
    # The control: what numpy offers by itself can be unlocked.
    weak = np.arange(6.0).view()
    weak.flags.writeable = False
    weak.flags.writeable = True


def reached(array):
    """The arrays to which one leads by public names."""
    while isinstance(array, np.ndarray):
        yield array
        array = array.base


def shown_of(round):
    """All that a forecaster can be shown of a resolved round."""
    law = round.law
    arrays = [round.atom, round.forecast, round.drawn, round.outcome, *round.context.values()]
    return [*arrays, law.atoms, law.weights, law.support, law.mean, law.grid]


def test_what_players_are_shown_leads_to_no_other_round():
    """Neither where players state their moves by themselves nor where they are made of steps."""
    seen = []

    @dataclass(frozen=True)
    class Looks(Nature):
        sight: ClassVar = Sight.DRAW
        reveals: ClassVar = frozenset({"truth"})

        def start(self, horizon, runs, stream):
            return self

        def context(self, round):
            return {"truth": np.full(3, 0.5)}

        def probability(self, round):
            seen.extend([round.law.weights, round.law.atoms, round.law.support, round.forecast])
            return 0.5

        def update(self, round):
            seen.extend([round.forecast, round.outcome, round.law.weights])

    class Hears(ForecastHedging):
        needs = frozenset({"truth"})

        def start(self, horizon, runs, stream):
            player = super().start(horizon, runs, stream)
            forecast, update = player.forecast, player.update

            def looking(round):
                seen.append(round.context["truth"])
                return forecast(round)

            def hearing(round):
                seen.extend(shown_of(round))
                update(round)

            player.forecast, player.update = looking, hearing
            return player

    Game(Hears(), Looks(), horizon=3, runs=range(3)).advance(3)
    assert len(seen) == 3 * 18
    game = Game(Truthful(), UniformTruth(), horizon=1, runs=range(3))
    open = game.ask()
    game.resolve(open)
    seen += [array for array in shown_of(open.round) if array is not None]
    for array in seen:
        assert all(other.nbytes == array.nbytes for other in reached(array))
        assert memoryview(array).obj is array
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0
    # The control: a row of a block leads to all of it.
    assert max(other.nbytes for other in reached(np.zeros((5, 3))[2])) == 5 * 24


def test_a_context_cannot_be_exchanged():
    class Exchanges(Truthful):
        def start(self, horizon, runs, stream):
            player = super().start(horizon, runs, stream)
            player.forecast = lambda round: round.context.update(truth=0)
            return player

    with pytest.raises(InvalidForecast, match="failed in round 1"):
        totals(Exchanges(), UniformTruth(), horizon=2)


@pytest.mark.parametrize(
    "name", ["number", "time", "outcome", "forecast", "law", "context", "atom", "drawn", "stage"]
)
def test_what_a_round_says_cannot_be_rebound(name):
    for round in (asked(), stated(Law(1, 1))):
        with pytest.raises(AttributeError):
            setattr(round, name, 1)


# ---------------------------------------------------------------- what is kept stays as it is


@dataclass(frozen=True)
class Remembers(Nature):
    """Coins on the far side of the last forecast, which it keeps as it was told, or copies."""

    copies: bool = False
    sight: ClassVar = Sight.HISTORY

    def start(self, horizon, runs, stream):
        return _RemembersPlayer(self.copies)


class _RemembersPlayer:
    def __init__(self, copies):
        self.copies, self.last = copies, np.full(8, 0.5)

    def probability(self, round):
        return (self.last < 0.5) * 1.0

    def update(self, round):
        self.last = round.forecast.copy() if self.copies else round.forecast


def test_a_nature_that_keeps_what_it_heard_does_not_see_the_draw(seed):
    kept = totals(ForecastHedging(), Remembers(), seed=seed)
    assert kept == totals(ForecastHedging(), Remembers(), seed=seed)
    copied = Game(ForecastHedging(), Remembers(True), horizon=2000, runs=range(8), seed=seed)
    # The same streams for both: they differ in a parameter that changes nothing.
    kept_game = Game(ForecastHedging(), Remembers(), horizon=2000, runs=range(8), seed=seed)
    kept_game._outcome_uniforms = copied._outcome_uniforms.child()
    copied.advance(2000), kept_game.advance(2000)
    for one, other in zip(copied.gammas(), kept_game.gammas(), strict=True):
        assert one.predictions.tolist() == other.predictions.tolist()
        assert one.counts.tolist() == other.counts.tolist()
        assert one.positives.tolist() == other.positives.tolist()


def test_everything_that_is_kept_stays_as_it_was(seed):
    """A nature and a forecaster keep every array, and copies; after 300 rounds they are equal."""
    pairs = []

    def keep(*arrays):
        pairs.extend((array, array.copy()) for array in arrays)

    @dataclass(frozen=True)
    class Keeps(Nature):
        sight: ClassVar = Sight.DRAW
        reveals: ClassVar = frozenset({"truth"})

        def start(self, horizon, runs, stream):
            self.__dict__["own"] = np.zeros(2)
            return self

        def context(self, round):
            self.own[:] = round.number / 1000  # one buffer for all rounds
            return {"truth": self.own}

        def probability(self, round):
            keep(round.law.weights, round.law.support, round.law.mean, round.forecast)
            self.rounds.append((round, round.number))
            return 0.5

        def update(self, round):
            keep(round.outcome, round.forecast)

        rounds: ClassVar = []

    class Hears(ForecastHedging):
        needs = frozenset({"truth"})

        def start(self, horizon, runs, stream):
            player = super().start(horizon, runs, stream)
            update = player.update

            def hearing(round):
                keep(round.atom, round.forecast, round.outcome, round.law.weights, round.context["truth"])
                update(round)

            player.update = hearing
            return player

    Game(Hears(), Keeps(), horizon=300, runs=range(2), seed=seed).advance(300)
    assert len(pairs) == 300 * 11
    assert all((kept == copy).all() for kept, copy in pairs)
    assert all(round.number == number for round, number in Keeps.rounds)
    # The control: against a coin hedging's laws and forecasts change, so that a buffer used twice would show.
    assert len({copy.tobytes() for _, copy in pairs}) > 50


def test_a_forecaster_cannot_spoil_what_others_hear(seed):
    @dataclass(frozen=True)
    class Spoils(EmpiricalMean):
        how: str = "forecast"

        def start(self, horizon, runs, stream):
            player = super().start(horizon, runs, stream)
            player.update = lambda round: np.subtract(
                round.forecast, round.outcome, out=getattr(round, self.how)
            )
            return player

    for how in ("forecast", "outcome", "atom"):
        with pytest.raises(InvalidForecast, match=r"'spoils' failed in round 1: .*read-only"):
            totals(Spoils(how=how), Greedy(cells=20), seed=seed)


SPOILS = {
    "forecast": lambda round: np.subtract(round.forecast, 1, out=round.forecast),
    "outcome": lambda round: round.outcome.fill(1),
    "weights": lambda round: round.law.weights.fill(0.5),
    "atoms": lambda round: round.law.atoms.fill(0),
    "law": lambda round: setattr(round, "law", None),
    "rebound": lambda round: setattr(round.law, "weights", np.zeros(1)),
}


@dataclass(frozen=True)
class SpoilingForecaster(EmpiricalMean):
    how: str = "forecast"

    def start(self, horizon, runs, stream):
        player = super().start(horizon, runs, stream)
        player.update = SPOILS[self.how]
        return player


@dataclass(frozen=True)
class SpoilingNature(Nature):
    how: str = "forecast"
    sight = Sight.LAW

    def start(self, horizon, runs, stream):
        return self

    def probability(self, round):
        return 0.5

    def update(self, round):
        SPOILS[self.how](round)


@pytest.mark.parametrize("how", SPOILS)
@pytest.mark.parametrize("cls", [SpoilingForecaster, SpoilingNature])
def test_conformance_finds_who_tries_to_spoil_a_round(cls, how):
    faults = [found.fault for found in conformance(cls(how=how)) if found.fault]
    assert faults
    assert all("failed in round " in fault or "cannot be pickled" in fault for fault in faults)


def test_a_forecaster_that_keeps_outcomes_keeps_different_ones():
    @dataclass(frozen=True)
    class Mean(Forecaster):
        """The running mean, from a list of the outcomes as they were told."""

        def start(self, horizon, runs, stream):
            law, history = Law(runs, 1), []

            class Player:
                def forecast(self, round):
                    law.atoms[:, 0] = np.mean(history, axis=0) if history else 0.5
                    return law

                def update(self, round):
                    history.append(round.outcome)

            return Player()

    # The empirical mean with prior 0 is the same rule; the outcomes' uniforms are nature's.
    mine = totals(Mean(), Bernoulli(0.7), brier, 300)
    assert mine == pytest.approx(totals(EmpiricalMean(0), Bernoulli(0.7), brier, 300), rel=1e-12)


# ---------------------------------------------------------------- what comes when


def test_nothing_is_known_before_its_time():
    round = asked(3)
    for name in ("law", "drawn", "atom", "forecast", "outcome"):
        with pytest.raises(SightError, match="of round 3 before the"):
            getattr(round, name)
    game = Game(ForecastHedging(), Bernoulli(), horizon=5, runs=range(2))
    open = game.ask()
    assert open.round.forecast.shape == (2,)
    with pytest.raises(SightError, match="the outcome of round 1 before the outcome was known"):
        open.round.outcome  # noqa: B018
    assert open.round.resolved == np.inf
    game.resolve(open, time=4.5)
    assert open.round.outcome.shape == (2,)
    assert open.round.resolved == 4.5
    with pytest.raises(InvalidParameter, match="has been resolved"):
        game.resolve(open)


@pytest.mark.parametrize("sight", list(Sight))
def test_a_nature_sees_what_it_declares(sight):
    law = Law(2, 1)
    law.atoms[:] = 0.25
    now, past = stated(law, sight=sight), heard([0.25, 0.25], [0, 1])
    past._sight = sight
    may = {
        (now, "law"): Sight.LAW, (now, "forecast"): Sight.DRAW,
        (past, "law"): Sight.LAW, (past, "forecast"): Sight.HISTORY, (past, "outcome"): Sight.HISTORY,
    }  # fmt: skip
    for (round, name), least in may.items():
        if sight >= least:
            getattr(round, name)
        else:
            with pytest.raises(SightError, match=f"declares sight {sight.name}; expected sight {least.name}"):
                getattr(round, name)
    with pytest.raises(SightError):
        now.outcome  # noqa: B018


def test_rounds_that_are_open_are_pickled_with_the_game(seed):
    def play(stop):
        game = Game(Truthful(), UniformTruth(), horizon=60, runs=range(3), seed=seed)
        waiting = []
        while game.resolved < 60:
            if game.asked < 60:
                waiting.append(game.ask())
            if stop:
                game, waiting = pickle.loads(pickle.dumps((game, waiting)))
            if len(waiting) == 7 or game.asked == 60:
                game.resolve(waiting.pop(0))
        return game.gammas()

    for one, other in zip(play(False), play(True), strict=True):
        assert one.predictions.tolist() == other.predictions.tolist()
        assert one.positives.tolist() == other.positives.tolist()


# ---------------------------------------------------------------- rounds of another game


def test_a_round_of_another_game_is_refused():
    law = Law(3, 1, np.array([0.0, 0.5, 1.0]))
    good = played(law, [0, 1, 2], [0, 1, 1])
    check_round(good, law)
    for bad in (
        None,
        "round",
        asked(),
        played(Law(2, 1, law.grid), [0, 1], [0, 1]),
        played(Law(3, 1, np.array([0.0, 1.0])), [0, 1, 1], [0, 0, 0]),
        played(Law(3, 1), [0.5, 0.5, 0.5], [0, 0, 0]),
    ):
        with pytest.raises(InvalidParameter, match="not a round that this player forecast"):
            check_round(bad, law)


def test_what_is_told_must_be_of_the_law():
    law = Law(2, 3)
    for places, outcome in (([0, 3], [0, 1]), ([-1, 0], [0, 1]), ([0, 0], [0, 2]), ([0, 0, 0], [0, 0, 0])):
        round = asked()
        Recorder(2).record(round, law)
        with pytest.raises(InvalidParameter, match="no part of the law"):
            tell(round, np.array(places), np.array(outcome))
    assert drawn(law, [2, 0], [1, 0]).drawn.tolist() == [2, 0]
