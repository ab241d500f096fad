"""The round as a record: what players are shown stays as it is, belongs to nobody else, and comes when it may."""

import dataclasses
import gc
import pickle
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

import onlinecal.core.arrays
from onlinecal.checks.conformance import conformance
from onlinecal.core.arrays import Rows, locked, rows_for
from onlinecal.core.errors import InvalidForecast, InvalidParameter, SightError
from onlinecal.engine.game import Game
from onlinecal.forecasters import EmpiricalMean, Forecaster, ForecastHedging, Law, Truthful
from onlinecal.measures import brier, ece
from onlinecal.natures import Bernoulli, Contrarian, Greedy, Nature, Sight, UniformTruth
from onlinecal.rounds.law import Unplayable
from onlinecal.rounds.record import Recorder, check_round, tell
from tests.rounds import asked, drawn, heard, played, stated


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


def test_everything_that_players_are_shown_is_locked():
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
                law = round.law
                seen.extend(
                    [round.atom, round.forecast, round.drawn, round.outcome, law.atoms, law.weights, law.grid]
                )
                update(round)

            player.forecast, player.update = looking, hearing
            return player

    Game(Hears(), Looks(), horizon=3, runs=range(3)).advance(3)
    assert len(seen) == 3 * 15
    for array in seen:
        for write in ways_to_write(array):
            with pytest.raises((ValueError, TypeError)):
                write()


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
    "base": lambda round: round.forecast.base.fill(0),
    "flags": lambda round: round.outcome.setflags(write=True),
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
    assert all("failed in round 1" in fault or "cannot be pickled" in fault for fault in faults)


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


@dataclass(frozen=True)
class Rebinds(Forecaster):
    """Moves from 0.2 to 0.8 and back, in new arrays or in place."""

    rebinds: bool = True

    def start(self, horizon, runs, stream):
        return _RebindsPlayer(runs, self.rebinds)


class _RebindsPlayer:
    def __init__(self, runs, rebinds):
        self.law, self.rebinds = Law(runs, 2), rebinds
        self.law.atoms[:] = [0.2, 0.8]

    def forecast(self, round):
        weights = np.empty_like(self.law.weights)
        weights[:] = [1.0, 0.0] if round.number % 2 else [0.0, 1.0]
        if self.rebinds:
            self.law.weights = weights
            self.law.atoms = self.law.atoms.copy()
        else:
            self.law.weights[...] = weights
        return self.law

    def update(self, round): ...


@pytest.mark.parametrize("nature", [Contrarian(), Greedy()])
def test_a_law_whose_arrays_are_exchanged_is_seen_as_it_is(nature):
    assert totals(Rebinds(), nature) == totals(Rebinds(False), nature)
    if isinstance(nature, Contrarian):
        assert totals(Rebinds(), nature) == [0.8 * 2000] * 8


@pytest.mark.parametrize(
    "spoil",
    [
        lambda law: setattr(law, "weights", np.ones((4, 2)) / 2),
        lambda law: setattr(law, "weights", law.weights.astype(np.float32)),
        lambda law: setattr(law, "weights", law.weights.tolist()),
        lambda law: setattr(law, "atoms", np.zeros((8, 2), np.int64)),
        lambda law: setattr(law, "atoms", np.zeros((8, 0))),
        lambda law: setattr(law, "grid", np.array([0.0, 1.0])),
        lambda law: setattr(law.weights, "shape", (16, 1)),
        lambda law: setattr(law.atoms, "shape", (2, 8)),
        lambda law: (setattr(law.atoms, "shape", (16, 1)), setattr(law.weights, "shape", (16, 1))),
    ],
)
def test_a_law_that_loses_its_form_is_stopped(spoil):
    class Spoils(Rebinds):
        def start(self, horizon, runs, stream):
            player = _RebindsPlayer(runs, False)
            forecast = player.forecast

            def spoiling(round):
                law = forecast(round)
                if round.number == 3:
                    spoil(law)
                return law

            player.forecast = spoiling
            return player

    with pytest.raises(
        InvalidForecast, match=r"forecaster 'spoils' (returned|changed) .*in round 3; expected"
    ):
        totals(Spoils(), Bernoulli())


def test_a_grid_is_the_engines_own():
    values = np.array([0.25, 0.75])

    class Moves(Forecaster):
        def start(self, horizon, runs, stream):
            law = Law(runs, 1, values)

            class Player:
                def forecast(self, round):
                    values[:] = round.number / 10
                    return law

                def update(self, round): ...

            return Player()

    game = Game(Moves(), Bernoulli(), horizon=5, runs=range(2))
    game.advance(5)
    assert game.gammas()[0].predictions.tolist() == [0.25]
    for bad in (np.array([0.5, 1.5]), np.array([np.nan]), np.zeros((2, 2)), np.array([])):
        law = Law(2, 1, np.zeros(1))
        law.grid = bad
        with pytest.raises(Unplayable, match="grid"):
            Recorder(2).record(asked(), law)


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


# ---------------------------------------------------------------- fresh arrays


def test_rows_are_fresh():
    rows = Rows((2,), np.int64)
    count = 3 * rows_for(16)
    kept = [rows.keep([i, -i]) for i in range(count)]
    own = [rows.fresh() for _ in range(count)]
    for i, array in enumerate(own):
        array[:] = i + count
    assert all(array.tolist() == [i, -i] for i, array in enumerate(kept))
    assert all(array.tolist() == [i + count] * 2 for i, array in enumerate(own))
    again = pickle.loads(pickle.dumps(rows))
    again.fresh()[:] = 0
    assert kept[-1].tolist() == [count - 1, 1 - count]


def test_blocks_fit_the_cache():
    assert rows_for(1) == 1024
    assert rows_for(onlinecal.core.arrays.BYTES // 100) == 100
    assert rows_for(10**9) == 16


# ---------------------------------------------------------------- interfaces


def with_player(base, **methods):
    """The specification `base` with a player that has these methods (None: without)."""

    class Spec(type(base)):
        def start(self, horizon, runs, stream):
            inner = base.start(horizon, runs, stream)
            own = {
                name: (lambda *a, _m=getattr(inner, name): _m(*a)) for name in NAMES if hasattr(inner, name)
            }

            class Player:
                pass

            player = Player()
            for name, method in (own | methods).items():
                if method is not None:
                    setattr(player, name, method)
            return player

    return Spec(**{f.name: getattr(base, f.name) for f in dataclasses.fields(base)})


NAMES = ("forecast", "update", "certificates", "probability", "context")


@pytest.mark.parametrize(
    ("base", "methods", "match"),
    [
        (Remembers(), {"update": None}, r"no method update\(round\); expected one, since .* declares sight HISTORY"),
        (Remembers(), {"update": None, "updaet": print}, r"no method update\(round\), but updaet"),
        (Bernoulli(), {"update": print}, "has a method update, which is never called, since .* sight NOTHING"),
        (Bernoulli(), {"updates": print}, "method updates, which is never called; is update meant"),
        (Bernoulli(), {"contexts": print}, "method contexts, which is never called; is context meant"),
        (Bernoulli(), {"context": print}, "has a method context, which is never called, since .* does not reveal"),
        (UniformTruth(), {"context": None, "contxt": print}, r"no method context\(round\), but contxt"),
        (Bernoulli(), {"probability": lambda: 0.5}, r"has probability\(\); expected probability\(round\)"),
        (ForecastHedging(), {"update": lambda forecast, outcome: None}, r"expected update\(round\)"),
        (ForecastHedging(), {"certificate": print}, "is certificates meant"),
        (ForecastHedging(), {"certificates": print}, "never called, since the specification does not certify"),
        (ForecastHedging(), {"forecast": None}, r"no method forecast\(round\)"),
        (ForecastHedging(), {"update": 3}, r"no method update\(round\)"),
    ],
)  # fmt: skip
def test_a_player_has_the_methods_that_its_specification_declares(base, methods, match):
    spec = with_player(base, **methods)
    pair = (spec, Bernoulli()) if isinstance(spec, Forecaster) else (ForecastHedging(), spec)
    with pytest.raises(InvalidParameter, match=match):
        Game(*pair, horizon=5, runs=range(8))
    faults = [found.fault for found in conformance(spec) if found.fault]
    assert faults


def test_players_with_their_own_methods_play():
    for base in (ForecastHedging(), Truthful()):
        Game(with_player(base), with_player(UniformTruth()), horizon=5, runs=range(8)).advance(5)
    Game(with_player(ForecastHedging()), with_player(Remembers()), horizon=5, runs=range(8)).advance(5)
