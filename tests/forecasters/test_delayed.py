"""Copies of a forecaster for games with delays: totals that add up, and the bounds that they keep.

That each copy plays as its rule says is in tests/forecasters/test_in_flight.py.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given

import onlinecal as oc
from onlinecal import forecasters as f
from onlinecal.core.columns import Column
from onlinecal.core.errors import InvalidForecast
from onlinecal.core.guarantee import Sight
from onlinecal.core.joint import JointDistribution
from onlinecal.core.strategy import required, strategy_key
from onlinecal.decisions.tasks import umbrella
from onlinecal.engine.game import Game
from onlinecal.forecasters.copies import ADD_UP, ASKED, EACH, WHOLE, adds_up
from onlinecal.measures import MEASURES
from onlinecal.natures import Contrarian, ContrarianClasses, Drift, Greedy, Nature, Sawtooth
from onlinecal.study.panel import Panel
from tests.by_hand import Half
from tests.delays import play
from tests.engine.games import played
from tests.forecasters.test_guarantees import SHIFTED
from tests.strategies import gammas

RATE = 1e-9  # of false failures, for each expected bound

# ---------------------------------------------------------------- which copy plays


@pytest.mark.parametrize(("horizon", "slots"), [(100, 7), (60, 3), (37, 50), (1, 1)])
def test_no_copy_plays_more_rounds_than_it_is_tuned_to(horizon, slots, seed):
    """And copies begin some at a time, before they are needed."""
    each, rng = math.ceil(horizon / slots), np.random.default_rng(seed)
    for delays in ([slots - 1] * horizon, rng.integers(0, slots, horizon), [0, slots - 1] * (horizon // 2)):
        if len(delays) == horizon:
            game, most = play(f.Delayed(f.EmpiricalMean(), slots), Drift(), delays)
            asked = game.forecaster.state[0, WHOLE + ASKED :: EACH]
            assert asked.sum() == horizon
            assert asked.max() <= each
            assert np.count_nonzero(asked) <= most + (horizon - most) // each <= 2 * slots


def test_what_copies_cannot_do_ends_the_game():
    class Fickle(f.AlmostOneStepAhead):
        def start(self, horizon, stream):
            begun.append(self)
            return super().start(len(begun) ** 2, stream)

    begun = []
    for spec, said in (
        (f.Delayed(f.EmpiricalMean(), 2), "each of its 2 slots and is asked another in round 3, run 0"),
        (
            f.Rounded(f.Delayed(f.EmpiricalMean(), 2), 4),
            "each of its 2 slots and is asked another in round 3, run 0",
        ),
        (f.Delayed(Fickle()), "copies of one forecaster on different grids"),
    ):
        game = Game(spec, Drift(), horizon=9, runs=range(1))
        for _ in range(2):
            with pytest.raises(InvalidForecast, match=said):
                [game.ask() for _ in range(3)]


# ---------------------------------------------------------------- totals that add up


def whole(*parts):
    each = ([getattr(g, name) for g in parts] for name in ("predictions", "counts", "positives"))
    return JointDistribution.from_counts(*map(np.concatenate, each))


#: what is added up, with options where it has some that matter
COLUMNS = [Column("measure", name, tuple(MEASURES[name].example.items())) for name in sorted(ADD_UP)]


def total(gamma, name, options, end):
    """T·μ; of a bracket, this end of it."""
    value = MEASURES[name].bind(**options)(gamma)
    return gamma.weight * float(getattr(value, end, value))


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
    for name in ("external", "action_swap", "swap"):
        assert adds_up(Column("decision_task", f"{name}_regret", task="umbrella"))
        of = [g.weight * getattr(umbrella().account(g), name) for g in (first, second, both)]
        assert of[2] <= of[0] + of[1] + 1e-9


#: two parts, of which the whole has a larger total: predictions, counts, ones
TWO = ([0.125, 0.75, 1.0], [13, 19, 35], [12, 17, 14]), ([1.0], [16], [16])
APART = [
    ("interval_ce", {}, ([0.56], [3], [3]), ([0.05, 0.59, 0.8], [13, 19, 12], [12, 0, 10])),
    ("distance_upper", {}, *TWO),
    ("smooth_ece", {}, *TWO),
    ("surrogate_interval_ce", {}, ([0.71062536, 0.72221341], [18, 7], [14, 4]),
     ([0.51568673, 0.63101708], [25, 12], [17, 12])),
    ("scdl", {}, ([0.18515421, 0.27489661, 0.69838147, 0.90329377], [13, 15, 5, 8], [13, 0, 3, 0]),
     ([0.25, 0.5, 0.625], [7, 15, 19], [2, 14, 0])),
    ("binned_ece", {"strategy": "quantile", "bins": 2},
     ([0.32604215, 0.49146133, 0.95085557], [21, 14, 18], [11, 14, 9]),
     ([0.5, 0.625, 0.875], [11, 24, 11], [5, 7, 11])),
]  # fmt: skip


@pytest.mark.parametrize(("name", "options", "first", "second"), APART, ids=[case[0] for case in APART])
def test_totals_that_are_said_not_to_add_up_do_not(name, options, first, second):
    assert not adds_up(Column("measure", name, tuple(options.items())))
    first, second = JointDistribution.from_counts(*first), JointDistribution.from_counts(*second)
    parts = [total(gamma, name, options, "upper") for gamma in (first, second)]
    assert total(whole(first, second), name, options, "lower") > sum(parts) + 0.1


OTHERS = [
    Column("measure", "smooth_ece"), Column("measure", "weighted_ce", (("omega", "mine"),)),
    Column("measure", "distance_lower", end="upper"), Column("certificate", "of_my_own"),
    Column("decision_task", "payoff", task="umbrella"),
    Column("decision_task", "swap_regret", task="umbrella", response="rounded"),
]  # fmt: skip


@pytest.mark.parametrize("column", OTHERS, ids=lambda column: column.name)
def test_of_other_columns_it_is_not_said(column):
    assert not adds_up(column)


def test_what_does_not_add_up_is_no_guarantee_and_no_certificate():
    (own,) = f.ForecastHedging().guarantees
    lower, of_smooth_ece = replace(own, upper=False), replace(own, column=OTHERS[0])
    named = frozenset({"of_my_own", "distance_certificate"})
    proud = type("Proud", (Half,), {"certificates": lambda self: dict.fromkeys(named, 1.0)})
    stating = {
        "guarantees": (own, lower, of_smooth_ece), "certifies": named, "start": lambda self, *given: proud(),
    }  # fmt: skip
    spec = f.Delayed(type("Promising", (f.Constant,), stating)())
    assert [g.column for g in spec.guarantees] == [own.column]
    assert spec.certifies == {"distance_certificate"}
    found = play(spec, Drift(), [2] * 20, runs=2)[0].certificates()  # of three copies
    assert {name: totals.tolist() for name, totals in found.items()} == {"distance_certificate": [3.0, 3.0]}


def test_before_any_question_nothing_is_certified():
    game = Game(f.Delayed(f.AlmostOneStepAhead()), Drift(), horizon=9, runs=range(2))
    assert game.certificates()["distance_certificate"].tolist() == [0.0, 0.0]


# ---------------------------------------------------------------- guarantees


def test_bounds_that_hold_at_each_round_are_concave():
    """Which `Delayed` takes them to be."""
    stated = [g for cls in f.FORECASTERS.values() if not required(cls) for g in cls().guarantees]
    anytime = [g for g in stated if g.anytime and g.upper]
    assert len(anytime) >= 2
    for guarantee in anytime:
        values = np.array([guarantee.bound(t) for t in range(1, 2000)])
        assert (np.diff(values, 2) <= 1e-12).all()
        assert (np.diff(values) >= 0).all()


def geometric(horizon, most, seed):
    return np.minimum(np.random.default_rng([seed, 5]).geometric(1 / most, horizon) - 1, most)


def totals(game, guarantee):
    column = guarantee.column
    if column.kind == "certificate":
        return game.certificates()[column.measure]
    panel = Panel.of([{"name": column.measure, **dict(column.options)}])
    return np.array([panel.read(gamma)[0] for gamma in game.gammas()])


@dataclass(frozen=True)
class Turning(Nature):
    """Ones and zeros in turn, as long as outcomes are late: what was told last is over."""

    delay: int = 0

    def start(self, horizon, stream):
        return self

    def probability(self, round):
        return float((round.number - 1) // (self.delay + 1) % 2)


K29, AHEAD = f.DefensiveForecasting(), f.AlmostOneStepAhead("T^(1/3)")


@pytest.mark.parametrize("slots", [None, 20, "plain"])
@pytest.mark.parametrize("nature", [Contrarian(), Sawtooth()], ids=strategy_key)
@pytest.mark.parametrize("of", [AHEAD, K29, f.DefensiveForecasting("gaussian", 0.5)], ids=strategy_key)
def test_bounds_and_certificates_hold_with_delays(of, nature, slots, seed):
    """For every sequence, hence for every seed: by copies, and as the plain forecasters prove it."""
    spec = of if slots == "plain" else f.Delayed(of, slots)
    (name,) = spec.certifies
    options = dict(of.guarantees[0].column.options)
    measure, options = ("kernel_ce", options) if name.startswith("kernel") else ("distance_lower", {})
    for delays in ([19] * 1000, geometric(1000, 19, seed)):
        game, most = play(spec, nature, delays, runs=2, seed=seed)
        assert game.resolved < 1000
        assert spec.guarantees
        for guarantee in spec.guarantees:
            assert (totals(game, guarantee) <= guarantee.delayed(1000, most)).all(), guarantee
        for gamma, proved in zip(game.gammas(), game.certificates()[name], strict=True):
            assert total(gamma, measure, options, "lower") <= proved + 1e-9


def test_bounds_without_delays_are_broken_by_delays():
    """The control: the same bounds for one question at a time, and that of copies, by the plain one."""
    for of, nature in ((K29, Contrarian()), (AHEAD, Turning(100))):
        game, most = play(of, nature, [100] * 4000)
        guarantee = of.guarantees[0]
        assert (totals(game, guarantee) > guarantee.delayed(4000, 1)).all()
        assert (totals(game, guarantee) > guarantee.bound(4000)).all()
        if of == K29:
            copies = f.Delayed(of).guarantees[0]
            assert (totals(game, copies) > copies.delayed(4000, most)).all()


@pytest.mark.parametrize("nature", [Contrarian(), Greedy(), Contrarian("draw")], ids=strategy_key)
@pytest.mark.parametrize("of", [f.ForecastHedging(), f.FosterVohra(), f.CDLMinimiser()], ids=strategy_key)
def test_expected_bounds_hold_with_delays(of, nature, seed):
    """Up to what chance adds with probability RATE: the sum over the copies, each with its share of that.

    And the control: against a nature that sees too much every forecast is wrong by a half at least.
    """
    horizon, runs = 8000, 16
    for slots, delays in ((None, geometric(horizon, 1, seed)), (2, [1] * horizon)):
        spec = f.Delayed(of, slots)
        game, most = play(spec, nature, delays, runs=runs, seed=seed)
        (guarantee,), (own,) = spec.guarantees, of.guarantees
        each = horizon if slots is None else math.ceil(horizon / slots)
        copies = most if slots is None else most + (horizon - most) // each
        limit = guarantee.delayed(horizon, most) + copies * own.slack(each, runs, RATE / copies)
        assert (totals(game, guarantee).mean() > limit) == (nature.sight is Sight.DRAW)


@pytest.mark.parametrize(
    ("spec", "nature", "measure"),
    [(f.GroupHedging(), SHIFTED, "multi_ece"), (f.SimplexHedging(), ContrarianClasses(), "ece")],
)
def test_bounds_of_groups_and_of_classes_hold_with_delays(spec, nature, measure, seed):
    """With 8 open questions. The means of 8 runs are a quarter of the bound, with a spread of a tenth of that."""
    options = {
        "horizon": 8000,
        "runs": 8,
        "seed": seed,
        "measures": [measure],
        "delays": 7,
        "progress": False,
    }
    (cell,) = oc.play(spec, nature, **options).cells
    assert all(cell.totals[each.measure][-1].mean() <= each.bound for each in cell.promises)
    assert [each.bound < 4000 for each in cell.promises if each.measure == measure] == [True]


def test_the_bounds_of_games_without_delays(seed):
    """With slots, copies play one after the other."""
    spec = f.Delayed(f.AlmostOneStepAhead(), 5)
    game = played(spec, Contrarian(), 2003, runs=range(2), seed=seed)
    for guarantee in spec.guarantees:
        own = next(g for g in f.AlmostOneStepAhead().guarantees if g.column == guarantee.column)
        assert guarantee.bound(2003) == 5 * own.bound(401)
        assert (totals(game, guarantee) <= guarantee.bound(2003)).all()
        assert guarantee.delayed(2003, 1) == pytest.approx(guarantee.bound(2003))
        # Four play at once, and ⌊1999/401⌋ = 4 follow.
        assert guarantee.delayed(2003, 4) == pytest.approx(8 * own.bound(401))
        assert guarantee.delayed(2003, 6) == math.inf
    whole = f.ForecastHedging()
    own, all_alone, of_five = (of.guarantees[0] for of in (whole, f.Delayed(whole), f.Delayed(whole, 5)))
    assert all_alone.delayed(2003, 1) == all_alone.bound(2003) == own.bound(2003)
    assert of_five.slack(2003, 8, 1e-9) == pytest.approx(5 * own.slack(401, 8, 2e-10))


@pytest.mark.parametrize("nature", [Contrarian(), Contrarian("draw")])
@pytest.mark.parametrize("delay", [0, 7])
def test_what_is_always_wrong_is_forced_on_the_rounds_that_are_resolved(nature, delay, seed):
    game, most = play(f.AlmostOneStepAhead(), nature, [delay] * 500, seed=seed)
    forced = [guarantee for guarantee in nature.guarantees if guarantee.column.kind == "measure"]
    assert forced
    for guarantee in forced:
        assert (totals(game, guarantee) >= guarantee.delayed(game.resolved, most) - 1e-9).all()
