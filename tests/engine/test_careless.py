"""Steps that state nonsense, or refuse, stop the game in their round. Steps that do not fit are refused before."""

import math
import re
from functools import partial
from itertools import product

import numpy as np
import pytest

from onlinecal import forecasters as f
from onlinecal import natures as n
from onlinecal.core.errors import InvalidForecast, InvalidParameter
from onlinecal.core.guarantee import Sight
from onlinecal.engine import game as module
from onlinecal.engine.law import brief
from onlinecal.engine.steps import law, note, state
from tests.engine.games import Mean, fair, forecaster_of, game_of, nature_of, nothing, same
from tests.marks import slow, some_fast

RUNS = range(5, 9)


def stated(run, number):
    """From round 3 on the value, weight and size of the state; a second atom has the rest of the weight."""
    mine, (values, weights) = state(run), law(run)
    values[0], weights[0] = (0.5, 1.0) if number < 3 else (mine[0], mine[1])
    values[1], weights[1] = 0.75, 1.0 - weights[0]
    return 1 if number < 3 else int(mine[2])


def refuses_at(run, place, forecast, outcome, number):
    return -1 if number == state(run)[0] else 0


def asks(run, size, forecast, number):
    return state(run)[0] if number == 6 else 0.5


def reveals(run, number):
    return -1 if number == 3 else 0


def half_in_a_group(run, number):
    note(run)[0] = 0.5 if number == 3 else 1.0
    return 0


REFUSING = forecaster_of(learn=refuses_at, state=[3.0])
DEAF = nature_of(sees=Sight.HISTORY, hear=refuses_at, state=[3.0])
KNOWS = forecaster_of(declares=["truth"], note=1, needs={0: "truth"})
TRUTH = {"declares": ["truth"], "note": 1, "reveals": {0: "truth"}, "reveal": reveals}

STREAMED = nature_of()
type(STREAMED).streams = ("a", "b")
GROUPED = nature_of(declares=["odd"], note=1, reveals={0: "odd"}, reveal=half_in_a_group)
type(GROUPED).groups = ("odd",)
HUGE = forecaster_of()
type(HUGE).start = lambda self, horizon, stream: np.empty(2**58)


@pytest.mark.parametrize(
    ("pair", "match"),
    [
        ((REFUSING, n.Bernoulli()), "forecaster 'made' refused a round"),
        ((f.Doubling(REFUSING), n.Bernoulli()), "forecaster 'doubling' refused a round"),
        slow(((f.ExpertMixture((REFUSING,)), n.Bernoulli()), "forecaster 'expert_mixture' refused a round")),
        ((f.Constant(), DEAF), "nature 'made' refused a round"), ((Mean, DEAF), "nature 'made' refused a round"),
        ((f.Constant(), n.Mixture((DEAF,))), "nature 'mixture' refused a round"),
        ((KNOWS, nature_of(**TRUTH)), "nature 'made' revealed nothing"),
        ((f.Constant(), GROUPED), "nature 'made' revealed neither 0 nor 1 of the group 'odd'"),
    ],
)  # fmt: skip
def test_a_refusal_ends_the_game_and_names_who(pair, match):
    for in_python in (False, True):
        game = game_of(*pair, runs=RUNS)
        game.in_python |= in_python
        for again in (partial(game.advance, 6), partial(game.advance, 6), game.ask):
            with pytest.raises(InvalidForecast, match=match + r".* in round 3, run 5"):
                again()


def shown(run, size, forecast, number):
    return 0.25 * (size > 0) + 0.5 * (forecast >= 0.0)


@pytest.mark.parametrize("sight", Sight)
def test_a_nature_of_steps_is_shown_what_its_sight_allows(sight):
    """The law, and the forecast that was drawn: by the loop, in Python, and in blocks of rounds in Python."""
    nature, seen = nature_of(shown, sees=sight), 0.25 * (sight >= Sight.LAW) + 0.5 * (sight >= Sight.DRAW)
    for mine in (f.ForecastHedging(), Mean):
        game, listed = (game_of(mine, nature, 300, keeps=keeps) for keeps in (None, ()))
        listed.in_python = True
        assert set(listed.ask().probability) == set(game.ask().probability) == {seen}
        game.advance(300), listed.advance(300)
        assert same(game.gammas(), listed.gammas())


#: value, weight, size
WRONG = [
    (math.nan, 1, 1), (1.5, 1, 1), (-1e-300, 1, 1), (0.5, math.nan, 1), (0.5, 1 + 2e-9, 1), (0.5, -1, 1), (0.5, 1, 0),
    (0.5, 1, 3), (0.5, 1, -7), (0.5, 2, 2),
]  # fmt: skip
WHOLES = [
    lambda x: x, f.Doubling, f.Delayed, lambda x: f.Rounded(x, 3), lambda x: f.ExpertMixture((f.Constant(), x)),
    lambda x: f.Separate(f.Delayed(x)), lambda x: f.Rounded(x, 3, "random"),
    lambda x: f.ExpertAggregation((f.Constant(), x)),
]  # fmt: skip


def by_hand(game):
    for _ in range(20):
        game.resolve(game.ask())


# The steps of each are compiled anew in each process.
@pytest.mark.parametrize(
    ("whole", "threads"), some_fast(2, [(x, 4 - 3 * (i // 2 % 2)) for i, x in enumerate(WHOLES)])
)
def test_nonsense_of_steps_is_named_with_the_first_run_that_stops(whole, threads, monkeypatch):
    monkeypatch.setattr(module, "THREAD", 1)
    for (value, weight, size), way in product(WRONG, (lambda game: game.advance(20), by_hand)):
        made = whole(forecaster_of(stated, state=[value, weight, size], size=2))
        other = n.Streams((n.Drift(), n.Drift())) if made.needs else n.Drift()
        game, alone = game_of(made, other, 20, RUNS, threads=threads), whole is WHOLES[0]
        if alone:  # the first run is as it should be
            game.forecaster.state[0] = 0.5, 1.0, 1.0
        shown = (re.escape(brief(np.array(each[:size]))) for each in ([value, 0.75], [weight, 1.0 - weight]))
        said = "the forecasts {} with weights {}".format(*shown) if 0 < size < 3 else r"a law of -?\d+ atoms"
        match = rf"forecaster .* stated {said}.* in round \d+, run {5 + alone}"
        with pytest.raises(InvalidForecast, match=match):
            way(game)


def draws(run, u, number):
    return 0.5 if number < 3 else state(run)[0]


@pytest.mark.parametrize(
    ("other", "said"), [(n.Drift(), "drew the forecast 1.5"), (n.Contrarian(), r"stated the forecasts \[1.5\]")]
)  # fmt: skip
def test_a_bad_law_is_told_from_a_bad_draw(other, said):
    """A forecaster draws by itself where nature does not see its law."""
    with pytest.raises(InvalidForecast, match=f"{said}.* in round 3, run 5"):
        game_of(forecaster_of(stated, draw=draws, state=[1.5, 1.0, 1.0], size=2), other, runs=RUNS).advance(6)


def test_what_rounding_may_leave_is_played():
    """Weights that sum to 1 within 10⁻⁹, by the loop and by hand."""
    for way in (lambda game: game.advance(20), by_hand):
        for weight in (1 - 9e-10, 1 + 9e-10):
            way(game_of(forecaster_of(stated, state=[1.0, weight, 1.0], size=2), n.Drift(), 20, RUNS))


@pytest.mark.parametrize("whole", [lambda x: x, f.Delayed])
def test_a_forecast_beside_the_grid_is_named(whole):
    beside = forecaster_of(stated, state=[0.7, 1.0, 1.0], size=2, grid=np.array([0.0, 0.5, 1.0]))
    said = "stated the forecast 0.7 in round 3, run 5; expected a point of its grid"
    for way in (lambda game: game.advance(6), by_hand):
        with pytest.raises(InvalidForecast, match=said):
            way(game_of(whole(beside), n.Drift(), runs=RUNS))


@pytest.mark.parametrize("q", [1.0000001, np.nan, -1e-300])
def test_a_q_that_is_none_is_named(q):
    wild = nature_of(asks, state=[q])
    parts = n.Mixture((n.Drift(), wild)), n.Switch(nature_of(), wild, 4), n.Streams((wild, n.Drift()))
    for made, number in zip((wild, *parts), (6, 6, 10, 11), strict=True):
        with pytest.raises(InvalidForecast, match=rf"nature .* stated q = {q} in round {number}, run 5"):
            game_of(f.Constant(), made, 20, RUNS).advance(20)


@pytest.mark.parametrize(
    ("rounds", "run", "number"),
    [((9, 2, 3, 1), 5, 9), ((0, 8, 2, 1), 6, 8), ((0, 0, 7, 4), 7, 7), ((0, 0, 0, 4), 8, 4)],
)
def test_of_runs_that_are_played_in_turn_the_first_that_stops_is_named(rounds, run, number):
    """Also where one behind it stops in an earlier round."""
    game = game_of(forecaster_of(learn=refuses_at, state=[0.0]), n.Bernoulli(), 20, RUNS)
    game.forecaster.state[:, 0] = rounds
    with pytest.raises(InvalidForecast, match=f"in round {number}, run {run}"):
        game.advance(20)


@pytest.mark.parametrize(
    ("pair", "match"),
    [
        # It would be shown what it does not declare.
        ((f.Constant(), nature_of(sees=Sight.HISTORY, sight=Sight.DRAW)), "sight DRAW, but .* declares HISTORY"),
        ((f.Constant(), nature_of(hear=nothing)), "with a step `hear`; expected HISTORY"),
        ((f.Constant(), nature_of(reveal=reveals)), "expected kinds of context and a step `reveal`, or neither"),
        ((f.Constant(), nature_of(note=1, reveals={0: "truth"})), "expected kinds of context and a step `reveal`"),
        ((f.Constant(), nature_of(**TRUTH | {"note": 0})), r"note = 0; expected room for the context at \[0\]"),
        ((f.Constant(), nature_of(**TRUTH | {"reveals": {0: "base"}})), "does not reveal truth"),
        ((forecaster_of(note=1, needs={0: "truth"}), n.UniformTruth()), "truth, which .* does not declare"),
        ((forecaster_of(declares=["truth"], needs={0: "truth"}), n.UniformTruth()), r"note = 0; expected room"),
        ((forecaster_of(certificates=lambda player: {}), n.Bernoulli()), "its player proves totals; the spec"),
        ((HUGE, n.Bernoulli()), r"'made' needs more memory than there is for 2 run\(s\) at T = 6: .*; expected fewer"),
        ((type("Lacks", (f.Forecaster,), {})(), n.Bernoulli()), r"cannot be started .*Lacks has no method start\("),
        ((forecaster_of(nothing), n.Bernoulli()), "forecaster 'made' cannot be started"),
        ((forecaster_of(learn=fair), n.Bernoulli()), "forecaster 'made' cannot be started"),
        ((f.Constant(), nature_of(fair)), "nature 'made' cannot be started"),
        ((f.Constant(), nature_of(classes=3, note=3)), "has classes = 3 and note = 3; expected 0, and a note"),
        ((f.Constant(), STREAMED), r"has streams; expected a player with streams_of\(first, last\)"),
        ((forecaster_of(table=np.eye(3)), n.Bernoulli()), "has a table of 3 columns; expected 0"),
    ],
)  # fmt: skip
def test_what_does_not_fit_its_specification_or_its_steps_is_refused(pair, match):
    with pytest.raises(InvalidParameter, match=match):
        game_of(*pair)
