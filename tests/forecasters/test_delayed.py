"""Copies of a forecaster for games with delays: the protocol, totals that add up, and the bounds that they keep.

That each copy plays as its rule says is in tests/forecasters/test_in_flight.py.
"""

import math
import pickle
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given

from onlinecal import forecasters as f
from onlinecal.checks.conformance import trace
from onlinecal.core.columns import Column
from onlinecal.core.errors import InvalidForecast
from onlinecal.core.guarantee import Guarantee, Sight
from onlinecal.core.joint import JointDistribution
from onlinecal.core.strategy import required, strategy_key
from onlinecal.decisions.tasks import umbrella
from onlinecal.engine.game import Game
from onlinecal.forecasters.copies import ADD_UP, ASKED, EACH, HEAD, adds_up
from onlinecal.measures import MEASURES, ece, kernel_ce, smooth_ce
from onlinecal.natures import Bernoulli, Contrarian, Drift, Greedy, Nature, Sawtooth, Streams
from onlinecal.study.panel import Panel
from tests.by_hand import Half
from tests.delays import play
from tests.strategies import gammas

RATE = 1e-9  # of false failures, for each expected bound


@dataclass(frozen=True)
class Turning(Nature):
    """Ones and zeros in turn, as long as outcomes are late: what was told last is over."""

    delay: int = 0

    def start(self, horizon, stream):
        return self

    def probability(self, round):
        return float((round.number - 1) // (self.delay + 1) % 2)


# ---------------------------------------------------------------- which copy plays


def test_the_free_copy_with_the_lowest_number_plays():
    """Copies that say what was told them last tell which of them it is."""
    game = Game(f.Delayed(f.LastOutcome()), Drift(), horizon=8, runs=range(1))
    a, b, c = game.ask(), game.ask(), game.ask()
    game.resolve(b, outcome=0)
    game.resolve(a, outcome=1)
    # The copy of a, that of b, a fourth one.
    assert [float(game.ask().forecast[0]) for _ in range(3)] == [1.0, 0.0, 0.5]
    game.resolve(c, outcome=1)
    assert float(game.ask().forecast[0]) == 1.0


@pytest.mark.parametrize(
    ("spec", "nature"),
    [
        (f.Delayed(f.AlmostOneStepAhead()), Drift()),
        (f.Delayed(f.PerturbedLeader(), 12), Drift()),
        (f.Doubling(f.Delayed(f.PerturbedLeader(), 12)), Drift()),
        (f.ExpertMixture((f.Delayed(f.AlmostOneStepAhead(), 12), f.Constant())), Drift()),
        (f.Separate(f.Delayed(f.PerturbedLeader())), Streams((Drift(), Sawtooth()), "random")),
        (f.Separate(f.Delayed(f.PerturbedLeader(), 12)), Streams((Drift(), Sawtooth()), "random")),
    ],
)
def test_to_ask_for_the_next_laws_and_to_pickle_change_nothing(spec, nature, seed):
    """Between any two steps of a game with delays, once and again; as where the game is listed."""
    delays = np.minimum(np.random.default_rng(seed).geometric(0.2, 200) - 1, 10)
    plain, most = play(spec, nature, delays, runs=2, seed=seed)
    assert most <= 11
    game, due = Game(spec, nature, horizon=200, runs=range(2), seed=seed), {}

    def look():
        if game.asked < 200:
            first, second = game.laws(), game.laws()
            assert first == second
            return first
        return None

    for t, delay in enumerate(delays, 1):
        seen = look()
        question = game.ask()
        assert question.laws == seen
        look()
        due.setdefault(t + int(delay), []).append(question)
        for late in due.pop(t, ()):
            game.resolve(late, time=float(t))
            look()
        if t % 17 == 0:
            game, due = pickle.loads(pickle.dumps((game, due)))
    assert trace(game) == trace(plain)


def test_more_open_questions_than_slots_is_an_error_of_that_round():
    game = Game(f.Delayed(f.EmpiricalMean(), 2), Bernoulli(1.0), horizon=9, runs=range(1))
    game.ask(), game.ask()
    said = (
        "an open question in each of its 2 slots and is asked another in round 3, run 0; expected at most 2"
    )
    for _ in range(2):  # the game is over
        with pytest.raises(InvalidForecast, match=said):
            game.ask()


def test_no_copy_plays_more_rounds_than_it_is_tuned_to(seed):
    """Each is told ⌈T/slots⌉ as its horizon, and counts its rounds from 1; and the number of copies is as stated."""
    log = []

    class Counting:
        def __init__(self, horizon):
            self.horizon, self.mine = horizon, []
            log.append(self)

        def forecast(self):
            return 0.5

        def update(self, forecast, outcome, round):
            self.mine.append(round.number)

    rng = np.random.default_rng(seed)
    cases = [(100, 7, [6] * 100), (100, 7, [0, 6] * 50), (90, 3, [0] * 45 + [2] * 45)]
    for _ in range(20):
        horizon = int(rng.integers(1, 60))
        slots = int(rng.integers(1, horizon + 3))
        cases.append((horizon, slots, rng.integers(0, slots, horizon)))
    for horizon, slots, delays in cases:
        log.clear()
        game, most = play(f.Delayed(f.as_forecaster(Counting), slots), Drift(), delays)
        each = math.ceil(horizon / slots)
        assert {copy.horizon for copy in log} == {each}
        told = [sorted(copy.mine) for copy in log if copy.mine]
        assert sum(map(len, told)) == game.resolved
        assert all(mine == list(range(1, len(mine) + 1)) and len(mine) <= each for mine in told)
        # Copies begin some at a time, before they are needed.
        asked = game.forecaster.memory.floats[0, HEAD + ASKED :: EACH]
        assert np.count_nonzero(asked) <= most + (horizon - most) // each <= 2 * slots
        assert len(log) <= 2 * slots + 1


def test_copies_on_different_grids_are_refused():
    class Fickle(f.AlmostOneStepAhead):
        def start(self, horizon, stream):
            begun.append(self)
            return super().start(len(begun) ** 2, stream)

    begun = []
    game = Game(f.Delayed(Fickle()), Drift(), horizon=9, runs=range(1))
    with pytest.raises(InvalidForecast, match="copies of one forecaster on different grids"):
        [game.ask() for _ in range(3)]


# ---------------------------------------------------------------- totals that add up


def whole(*parts):
    columns = [
        np.concatenate([getattr(g, part) for g in parts]) for part in ("predictions", "counts", "positives")
    ]
    return JointDistribution.from_counts(*columns)


#: what is added up, with options where it has some that matter
COLUMNS = [Column("measure", name, tuple(MEASURES[name].example.items())) for name in sorted(ADD_UP)]


def total(gamma, name, options, end):
    """T·μ; of a bracket, this end of it."""
    value = MEASURES[name].bind(**options)(gamma)
    return gamma.weight * float(getattr(value, end, value))


@pytest.mark.slow
@given(gammas(5), gammas(5))
def test_totals_that_are_said_to_add_up_do(first, second):
    both = whole(first, second)
    for column in COLUMNS:
        assert adds_up(column)
        name, options = column.measure, dict(column.options)
        parts = sum(total(gamma, name, options, "upper") for gamma in (first, second))
        # `smooth_ece_at` is certain to 1e-7 on the average.
        rounding = 1e-9 + 3e-7 * both.weight * bool(MEASURES[name].accuracy)
        assert math.isinf(parts) or total(both, name, options, "lower") <= parts + rounding, column
    task = umbrella()
    for name in ("external", "action_swap", "swap"):
        assert adds_up(Column("decision_task", f"{name}_regret", task="umbrella"))
        of = [g.weight * getattr(task.account(g), name) for g in (first, second, both)]
        assert of[2] <= of[0] + of[1] + 1e-9


#: two parts, of which the whole has a larger total: predictions, counts, ones
APART = [
    (("interval_ce", {}), ([0.56], [3], [3]), ([0.05, 0.59, 0.8], [13, 19, 12], [12, 0, 10])),
    (("distance_upper", {}), ([0.125, 0.75, 1.0], [13, 19, 35], [12, 17, 14]), ([1.0], [16], [16])),
    (("smooth_ece", {}), ([0.125, 0.75, 1.0], [13, 19, 35], [12, 17, 14]), ([1.0], [16], [16])),
    (
        ("surrogate_interval_ce", {}),
        ([0.71062536, 0.72221341], [18, 7], [14, 4]),
        ([0.51568673, 0.63101708], [25, 12], [17, 12]),
    ),
    (
        ("scdl", {}),
        ([0.18515421, 0.27489661, 0.69838147, 0.90329377], [13, 15, 5, 8], [13, 0, 3, 0]),
        ([0.25, 0.5, 0.625], [7, 15, 19], [2, 14, 0]),
    ),
    (
        ("binned_ece", {"strategy": "quantile", "bins": 2}),
        ([0.32604215, 0.49146133, 0.95085557], [21, 14, 18], [11, 14, 9]),
        ([0.5, 0.625, 0.875], [11, 24, 11], [5, 7, 11]),
    ),
]


@pytest.mark.parametrize(("measure", "first", "second"), APART, ids=[case[0][0] for case in APART])
def test_totals_that_are_said_not_to_add_up_do_not(measure, first, second):
    name, options = measure
    assert not adds_up(Column("measure", name, tuple(options.items())))
    first, second = JointDistribution.from_counts(*first), JointDistribution.from_counts(*second)

    parts = [total(gamma, name, options, "upper") for gamma in (first, second)]
    assert total(whole(first, second), name, options, "lower") > sum(parts) + 0.1


def test_what_does_not_add_up_is_no_guarantee():
    class Promising(f.Constant):
        guarantees = tuple(
            Guarantee(column, "T", float, "deterministic", Sight.DRAW, "nobody", upper=upper)
            for column, upper in [
                (Column("measure", "ece"), True),
                (Column("measure", "ece"), False),
                (Column("measure", "smooth_ece"), True),
                (Column("measure", "binned_ece", (("strategy", "quantile"),)), True),
                (Column("measure", "weighted_ce", (("weights", "mine"),)), True),
                (Column("measure", "distance_lower", end="upper"), True),
                (Column("certificate", "of_my_own"), True),
                (Column("decision_task", "payoff", task="umbrella"), True),
                (Column("decision_task", "swap_regret", task="umbrella", response="rounded"), True),
                (Column("decision_task", "swap_regret", task="umbrella"), True),
            ]
        )

    assert [g.measure for g in f.Delayed(Promising()).guarantees] == ["ece", "swap_regret[umbrella]"]


# ---------------------------------------------------------------- guarantees


def test_bounds_that_hold_at_each_round_are_concave():
    """Which `Delayed` takes them to be."""
    found = 0
    for cls in f.FORECASTERS.values():
        for g in () if required(cls) else cls().guarantees:
            if g.anytime and g.upper:
                found += 1
                values = np.array([g.bound(t) for t in range(1, 2000)])
                assert (np.diff(values, 2) <= 1e-12).all()
                assert (np.diff(values) >= 0).all()
    assert found >= 2


SCHEDULES = ("constant", "out of order")
HARD = [Contrarian(), Greedy(), Drift(), Sawtooth()]


def schedule(kind, horizon, delay, seed):
    if kind == "constant":
        return np.full(horizon, delay)
    return np.minimum(np.random.default_rng([seed, 5]).geometric(1 / delay, horizon) - 1, delay)


def totals(game, guarantee):
    column = guarantee.column
    if column.kind == "certificate":
        return game.certificates()[column.measure]
    panel = Panel.of([{"name": column.measure, **dict(column.options)}])
    return np.array([panel.read(gamma)[0] for gamma in game.gammas()])


@pytest.mark.one_in(7)
@pytest.mark.parametrize("slots", [None, 20, "plain"])
@pytest.mark.parametrize("nature", HARD, ids=strategy_key)
@pytest.mark.parametrize(
    "of",
    [
        *map(f.AlmostOneStepAhead, ("T^(1/2)", "T^(1/3)")),
        f.DefensiveForecasting(),
        f.DefensiveForecasting("gaussian", 0.5),
    ],
    ids=strategy_key,
)
def test_bounds_and_certificates_hold_with_delays(of, nature, slots, seed):
    """For every sequence, hence for every seed: by copies, and as the plain forecasters prove it."""
    spec = of if slots == "plain" else f.Delayed(of, slots)
    (name,) = spec.certifies
    options = dict(of.guarantees[0].column.options)
    measure, options = ("kernel_ce", options) if name.startswith("kernel") else ("distance_lower", {})
    for kind in SCHEDULES:
        game, most = play(spec, nature, schedule(kind, 2000, 19, seed), runs=2, seed=seed)
        assert game.resolved < 2000
        assert spec.guarantees
        for guarantee in spec.guarantees:
            assert (totals(game, guarantee) <= guarantee.delayed(2000, most)).all(), guarantee
        for gamma, proved in zip(game.gammas(), game.certificates()[name], strict=True):
            assert total(gamma, measure, options, "lower") <= proved + 1e-9


def test_bounds_without_delays_are_broken_by_delays():
    """The control: the same bounds for one question at a time."""
    for of, nature in (
        (f.DefensiveForecasting(), Contrarian()),
        (f.AlmostOneStepAhead("T^(1/3)"), Turning(100)),
    ):
        game, _ = play(of, nature, [100] * 4000)
        guarantee = of.guarantees[0]
        assert (totals(game, guarantee) > guarantee.delayed(4000, 1)).all()
        assert (totals(game, guarantee) > guarantee.bound(4000)).all()


def test_a_kernel_certificate_that_knows_nothing_of_delays_is_wrong():
    """The root of Σ p(1 − p), which is the certificate where no question is open, is below the error where one is."""
    game, _ = play(f.DefensiveForecasting(), Contrarian(), [1] * 2000)
    (gamma,) = game.gammas()
    alone = math.sqrt((gamma.counts * gamma.predictions * (1.0 - gamma.predictions)).sum())
    assert alone < total(gamma, "kernel_ce", {}, "lower") < game.certificates()["kernel_ce_certificate"][0]
    game, _ = play(f.DefensiveForecasting(), Contrarian(), [0] * 2000)
    (gamma,) = game.gammas()
    alone = math.sqrt((gamma.counts * gamma.predictions * (1.0 - gamma.predictions)).sum())
    assert game.certificates()["kernel_ce_certificate"][0] == pytest.approx(alone)


def test_the_plain_forecaster_breaks_that_bound():
    """The control, without chance: the plain one says the same until it is told, d + 1 times."""
    (guarantee, _), delays = f.Delayed(f.DefensiveForecasting()).guarantees, [99] * 4000
    for of, keeps in ((f.Delayed(f.DefensiveForecasting()), True), (f.DefensiveForecasting(), False)):
        game, most = play(of, Contrarian(), delays)
        assert bool((totals(game, guarantee) <= guarantee.delayed(4000, most)).all()) is keeps


@pytest.mark.parametrize("nature", [*HARD, Contrarian("draw")], ids=strategy_key)
@pytest.mark.parametrize("of", [f.ForecastHedging(), f.FosterVohra(), f.CDLMinimiser()], ids=strategy_key)
def test_expected_bounds_hold_with_delays(of, nature, seed):
    """And the control: against a nature that sees too much every forecast is wrong by a half at least."""
    for slots, kind in ((None, "out of order"), (2, "constant")):
        broken = exceeds(f.Delayed(of, slots), of, slots, nature, kind, seed) > 0.0
        assert broken == (nature.sight is Sight.DRAW)


def exceeds(spec, of, slots, nature, kind, seed):
    """By how much the mean total is above the bound and what chance may add to it with probability RATE: what it may
    add for each of the copies with its share of that.
    """
    horizon, runs = 8000, 16
    game, most = play(spec, nature, schedule(kind, horizon, 1, seed), runs=runs, seed=seed)
    (guarantee,), (own,) = spec.guarantees, of.guarantees
    each = horizon if slots is None else math.ceil(horizon / slots)
    copies = most if slots is None else most + (horizon - most) // each
    slack = copies * own.slack(each, runs, RATE / copies)
    return totals(game, guarantee).mean() - guarantee.delayed(horizon, most) - slack


def test_the_bounds_of_games_without_delays(seed):
    """With slots, copies play one after the other."""
    spec = f.Delayed(f.AlmostOneStepAhead(), 5)
    game = Game(spec, Contrarian(), horizon=2003, runs=range(2), seed=seed)
    game.advance(2003)
    for guarantee in spec.guarantees:
        own = next(g for g in f.AlmostOneStepAhead().guarantees if g.column == guarantee.column)
        assert guarantee.bound(2003) == 5 * own.bound(401)
        assert (totals(game, guarantee) <= guarantee.bound(2003)).all()
        assert guarantee.delayed(2003, 1) == pytest.approx(guarantee.bound(2003))
        assert guarantee.delayed(2003, 6) == math.inf
    for guarantee in f.Delayed(f.ForecastHedging()).guarantees:
        assert (
            guarantee.delayed(2003, 1)
            == guarantee.bound(2003)
            == f.ForecastHedging().guarantees[0].bound(2003)
        )


def test_greed_that_is_told_late_forces_nothing(seed):
    """All rounds are open until the last is asked: the bias is that of fair coins, not T/2.

    By Hoeffding |E| > 3.9 √T has probability at most 2 exp(−2·3.9²) = 1.3e-13.
    """
    for target in ("ece", "square"):
        late, _ = play(f.Constant(0.5), Greedy(target), range(499, -1, -1), seed=seed)
        assert late.resolved == 500
        assert 500 * MEASURES["ece"].bind()(late.gammas()[0]) < 3.9 * math.sqrt(500) < 100 < 500 / 2
        assert all(guarantee.delayed is None for guarantee in Greedy(target).guarantees)
        now, _ = play(f.Constant(0.5), Greedy(target), [0] * 1000, seed=seed)
        for guarantee in Greedy(target).guarantees:
            if guarantee.column.kind == "measure":
                assert (totals(now, guarantee) >= guarantee.bound(1000) - 1e-9).all()


@pytest.mark.parametrize("nature", [Contrarian(), Contrarian("draw")])
@pytest.mark.parametrize("delay", [0, 7])
def test_what_is_always_wrong_is_forced_on_the_rounds_that_are_resolved(nature, delay, seed):
    game, most = play(f.AlmostOneStepAhead(), nature, [delay] * 500, seed=seed)
    assert nature.guarantees
    for guarantee in nature.guarantees:
        if guarantee.column.kind == "measure":
            assert (totals(game, guarantee) >= guarantee.delayed(game.resolved, most) - 1e-9).all()


def test_certificates_that_are_not_known_to_add_up_are_left_out():
    class Proud(f.Constant):
        certifies = frozenset({"of_my_own", "distance_certificate"})

        def start(self, horizon, stream):
            return type("Proud", (Half,), {"certificates": lambda _: dict.fromkeys(self.certifies, 1.0)})()

    spec = f.Delayed(Proud())
    assert spec.certifies == {"distance_certificate"}
    game, _ = play(spec, Drift(), [2] * 20, runs=2)
    assert {name: t.tolist() for name, t in game.certificates().items()} == {
        "distance_certificate": [3.0, 3.0]
    }
    assert play(f.Delayed(f.Constant(), 3), Drift(), [2] * 20)[0].certificates() == {}


# ---------------------------------------------------------------- how totals grow with the delay

DELAYS = (0, 1, 10, 100, 1000)
#: forecaster, measure, and the limit on its total over ((1 + d)/T)^{1−α} T, by α. At T = 8192 the largest were 1.08 of
#: one step ahead and 0.70 of defensive forecasting, without chance. Of hedging the largest mean of 64 runs was 0.96;
#: the limit is ten standard errors of the mean of 8 runs away: a false failure has a chance far below 1e-9
GROWTH = [
    (f.AlmostOneStepAhead(), smooth_ce, 1.5, 1 / 2, 1),
    (f.DefensiveForecasting(), kernel_ce, 0.8, 1 / 2, 1),
    (f.ForecastHedging(), ece, 1.25, 2 / 3, 8),
]


def mean_late(forecaster, nature, delay, measure, rounds, runs, seed=0):
    game, most = play(forecaster, nature, [delay] * rounds, runs=runs, seed=seed)
    assert most == min(delay + 1, rounds)
    return float(np.mean([gamma.weight * measure(gamma) for gamma in game.gammas()]))


@pytest.mark.slow
@pytest.mark.parametrize("slots", [False, True], ids=["plain", "a copy for each slot"])
@pytest.mark.parametrize(("of", "measure", "most", "power", "runs"), GROWTH, ids=["√T", "√T", "T^(2/3)"])
def test_totals_grow_with_a_power_of_the_delay(of, measure, most, power, runs, slots, seed, full):
    """(1 + d)^{1−α} times a total of order T^α, as of d + 1 games of T/(d + 1) rounds each."""
    rounds = 2**15 if full else 2**13
    for delay in DELAYS:
        for nature in (Contrarian(), Turning(delay)):
            found = mean_late(
                f.Delayed(of, delay + 1) if slots else of, nature, delay, measure, rounds, runs, seed
            )
            assert found <= most * (1 + delay) ** (1 - power) * rounds**power, (delay, nature, found)


@pytest.mark.slow
def test_who_is_wrong_in_every_round_grows_faster():
    """The control: a total in proportion to T is beyond these limits until the delay is of the order of T."""
    for delay in DELAYS[:-1]:
        for measure, most, power in ((kernel_ce, 1.5, 1 / 2), (ece, 1.25, 2 / 3)):
            found = mean_late(f.LastOutcome(), Contrarian(), delay, measure, 8192, 1)
            assert found > most * (1 + delay) ** (1 - power) * 8192**power
