"""The guarantee report, with strategies that must fail it."""

import math
from dataclasses import dataclass, replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

from onlinecal import forecasters as f
from onlinecal import natures as n
from onlinecal.checks import guarantees
from onlinecal.checks.conformance import Finding
from onlinecal.checks.guarantees import WITH_GROUPS, GuaranteeCheck, Report, _remark, check, report
from onlinecal.core.errors import OnlinecalError, UnknownName
from onlinecal.core.guarantee import Guarantee, Potential
from onlinecal.core.strategy import strategy_label
from onlinecal.growth.outgrowth import outgrowth
from onlinecal.natures import Bernoulli, Contrarian, Drift, Sight
from onlinecal.report.listing import print_check
from onlinecal.study.played import Promise
from onlinecal.worlds import Beds
from tests.mutants import PlainBiases

# ---------------------------------------------------------------- guarantees that lie, or are none


@dataclass(frozen=True)
class Lies(f.ForecastHedging):
    """States guarantees that are none of its own."""

    how = "low"

    @property
    def guarantees(self):
        return WAYS[self.how](super().guarantees)


def replaced(stated, **what):
    return [replace(g, **what) for g in stated]


def fails(*_):
    raise RuntimeError("boom")


WAYS = {
    "low": partial(replaced, bound=lambda t: 0.01),
    "raises": fails,
    "none": lambda stated: None,
    "text": lambda stated: ["ece is small"],
    "nan": partial(replaced, bound=lambda t: float("nan")),
    "zero": partial(replaced, bound=lambda t: 0.0),
    "no number": partial(replaced, bound=lambda t: "small"),
    "bound raises": partial(replaced, bound=fails),
    "no measure": partial(replaced, measure="nonsense"),
}


LIARS = {how: type("Liar" + how.title().replace(" ", ""), (Lies,), {"how": how}) for how in WAYS}
globals().update({cls.__name__: cls for cls in LIARS.values()})  # what is named is a class of the module


@pytest.mark.parametrize("how", [how for how in WAYS if how != "low"])
def test_a_guarantee_that_is_none_is_refused(how):
    with pytest.raises(OnlinecalError, match=r"liar|nonsense") as told:
        list(check([LIARS[how]()], [Bernoulli()], horizon=64, runs=1, seed=0))
    assert str(told.value).isprintable()


def test_a_bound_that_is_far_exceeded_does_not_hold(seed):
    """Where chance may do it in so short a game it cannot be told; in a longer one it fails."""
    (short,) = check([LIARS["low"]()], [Bernoulli()], horizon=64, runs=2, seed=seed)
    (long,) = check([LIARS["low"]()], [n.RandomWalk()], horizon=2000, runs=64, seed=seed)
    assert short.ratio > 1
    assert (short.holds, long.holds) == (None, False)


# ---------------------------------------------------------------- honest ones in tiny games


INNER = f.Doubling(f.Rounded(f.PerturbedLeader(), 5, "random"), first=1)
NESTED = f.ExpertMixture((INNER, f.EmpiricalMean(), f.ForecastHedging()))
HONEST = [f.Constant(), f.ForecastHedging(), f.Doubling(NESTED, first=1), f.Rounded(NESTED, 3, "nearest")]


@pytest.mark.parametrize("horizon", [1, 2, 3, 6, 11])
def test_honest_strategies_are_not_blamed_in_tiny_games(horizon, seed):
    late = n.Switch(n.Mixture((n.Greedy(), Bernoulli())), n.Contrarian(), at=2)
    found = check(HONEST, [Bernoulli(), n.Contrarian(), late], horizon=horizon, runs=1, seed=seed)
    assert all(v.holds is not False for v in found)


@dataclass(frozen=True)
class Liar(f.Constant):
    """Promises what it cannot keep: an ECE of √T, of each kind."""

    kind: str = "deterministic"

    @property
    def guarantees(self):
        return (Guarantee("ece", "√T", math.sqrt, self.kind, Sight.LAW, "nowhere"),)


def test_a_promise_that_is_kept_and_one_that_is_not(seed):
    (kept,) = list(check([f.ForecastHedging()], [Drift()], horizon=2000, runs=8, seed=seed))
    assert kept.holds
    assert kept.ratio < 1
    checked = list(check([Liar()], [Drift(0.0, 0.2), Contrarian()], horizon=2000, runs=8, seed=seed))
    broken = [v for v in checked if v.strategy.startswith("liar")]
    assert [v.holds for v in broken] == [False, False]
    assert broken[1].ratio == pytest.approx(1000 / math.sqrt(2000))
    contrary = next(v for v in checked if v.strategy == "contrarian")
    assert contrary.holds
    assert contrary.ratio == 1.0


@dataclass(frozen=True)
class Lower(f.GroupHedging):
    """States a hundredth of its bounds."""

    @property
    def guarantees(self):
        return tuple(replace(g, bound=partial(lambda g, t: g.bound(t) / 100, g)) for g in super().guarantees)


def test_the_error_and_the_energy_of_groups_are_measured(seed):
    """Of all groups, and with weights by size of each."""
    sized = f.GroupHedging(weights="size", sizes={"odd": "T/2", "rare": "T/10"})
    each = {"ece", "ece @ odd", "ece @ rare"}
    for mine, errors in ((f.GroupHedging(), {"ece", "multi_ece", "swap_multi_ece"}), (sized, each)):
        for theirs in WITH_GROUPS:
            found = list(check([mine], [theirs], horizon=2000, runs=8, seed=seed))
            assert {v.guarantee.measure for v in found} == errors | {"group_energy"}
            assert all(v.holds and 0.0 < v.ratio < 1.0 for v in found)
    broken = list(check([Lower()], WITH_GROUPS, horizon=2000, runs=8, seed=seed))
    assert all(v.ratio > 1.0 and v.holds is not True for v in broken)


def test_a_rate_that_is_outgrown_fails(seed):
    """Its total grows like T, so the ratio like √T: 0.5, with a standard deviation below 0.01 over 20 seeds."""
    (rate,) = list(check([Liar(kind="rate")], [Drift(0.0, 0.2)], horizon=4096, runs=8, seed=seed))
    assert rate.trend[0] == pytest.approx(0.5, abs=0.05)
    assert 0.1 < rate.trend[1] < rate.trend[0] < rate.trend[2]
    assert rate.holds is False
    assert not Report((rate,), ()).good


NAMES, SIZE = ("mine", "theirs"), guarantees._Size(100, 2, 0)
STEEP = Guarantee("ece", "√T", math.sqrt, "expected", Sight.LAW, "nowhere", slack=lambda T, runs, rate: 0.5)
FORCED = replace(STEEP, upper=False)


@pytest.mark.parametrize(
    ("stated", "totals", "step", "holds"),
    [
        # 10 is the bound, and a mean of two runs is beyond it by 0.5 at most by chance.
        (STEEP, [9.0, 11.0], 1.0, True), (STEEP, [9.0, 12.0], 1.0, None), (STEEP, [10.0, 11.5], 1.0, False),
        (FORCED, [9.0, 11.0], 1.0, True), (FORCED, [9.0, 10.0], 1.0, None), (FORCED, [9.0, 9.5], 1.0, False),
        (replace(STEEP, slack=None), [99.0, 99.0], 1.0, None), (replace(STEEP, slack=None), [10.0, 10.0], 1.0, True),
        (STEEP, [9.0, 9.0], 1.0 + 2e-9, False), (STEEP, [9.0, 9.0], 1.0 + 5e-10, True),
        (STEEP, [9.0, 9.0], math.nan, True),
    ],
)  # fmt: skip
def test_an_expected_bound_is_held_against_the_mean_and_chance(stated, totals, step, holds):
    found = guarantees._expected(stated, NAMES, np.array(totals), 100, step)
    assert found.holds is holds
    assert found.ratio == np.mean(totals) / 10.0
    assert (found.strategy, found.opponent, found.at) == (*NAMES, 100)


@pytest.mark.parametrize(
    ("anytime", "upper", "totals", "ratio", "at", "holds"),
    [
        # The bound is 5 at T = 25 and 10 at T = 100. One that is tuned to 100 has 10 at both.
        (False, True, [[6.0, 1.0], [1.0, 9.0]], 0.9, 100, True),
        (True, True, [[6.0, 1.0], [1.0, 9.0]], 1.2, 25, False),
        (True, True, [[5.0, 1.0], [1.0, 9.0]], 1.0, 25, True),
        (False, True, [[1.0, 2.0], [1.0, 11.0]], 1.1, 100, False),
        (False, False, [[6.0, 5.0], [11.0, 12.0]], 1.0, 25, True),
        (True, False, [[6.0, 5.5], [9.0, 12.0]], 0.9, 100, False),
    ],
)  # fmt: skip
def test_a_deterministic_bound_is_held_at_its_time(anytime, upper, totals, ratio, at, holds):
    stated = replace(STEEP, anytime=anytime, upper=upper)
    found = guarantees._deterministic(stated, NAMES, [25, 100], np.array(totals), 100)
    assert (found.ratio, found.at, found.holds) == (pytest.approx(ratio), at, holds)
    slightly = 1.0 + (0.5e-9 if upper else -0.5e-9)  # as rounding may do
    for times, kept in ((slightly, True), (1.0 + 4 * (slightly - 1.0), False)):
        totals = np.array([[5.0 if anytime or not upper else 10.0], [10.0]]) * times
        assert guarantees._deterministic(stated, NAMES, [25, 100], totals, 100).holds == kept


def bound_in_world(monkeypatch, kind, upper, totals):
    """What is found of a bound of 10 for totals in a world."""
    promise = Promise("ece", "ece ≤ 10", "10", kind, "all", upper, 10.0)
    played = SimpleNamespace(promises=[promise], totals={"ece": np.array([np.zeros(len(totals)), totals])})
    monkeypatch.setattr(guarantees, "play_cell", lambda cell: played)
    return guarantees.bounds_in_world([f.DefensiveForecasting()], Beds(), 50, len(totals), 0)


@pytest.mark.parametrize(("kind", "beyond"), [
    # One total of a bound that holds always, and the mean of five, by 4.5 standard errors of √(0.8/4).
    ("deterministic", 11e-9), ("expected", 4.5 * math.sqrt(0.8 / 4) + 11e-9),
])  # fmt: skip
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_bound_in_a_world_is_exceeded_beyond_rounding_or_beyond_chance(kind, beyond, sign, monkeypatch):
    around = np.array([1.0, -1.0, 1.0, -1.0, 0.0]) if kind == "expected" else np.array([0.0, -1.0 * sign])
    for times, broken in ((1.0 - 1e-6, False), (1.0 + 1e-6, True)):
        found = bound_in_world(monkeypatch, kind, sign > 0, 10.0 + sign * times * beyond + around)
        assert (found.fault != "", found.check) == (broken, "bounds for open questions (1 apply)")
    assert (
        bound_in_world(monkeypatch, "rate", True, np.full(2, 99.0)).check
        == "bounds for open questions (0 apply)"
    )


@pytest.mark.parametrize(
    ("horizon", "trend", "holds"),
    [
        (256, (0.1, 0.0, 0.5), True), (256, (0.11, 0.1, 0.5), None), (256, (0.3, 0.11, 0.5), False),
        (256, (math.nan, -math.inf, math.inf), None), (255, (0.3, 0.2, 0.5), None),
    ],
)  # fmt: skip
def test_a_rate_fails_if_its_ratio_grows_for_sure(monkeypatch, horizon, trend, holds):
    """Like more than T^0.1, from T/16 with 64 times the runs to T with 4 times. Games of less than 256 rounds are too
    short.
    """
    played = []
    monkeypatch.setattr(
        guarantees, "_play", lambda f, n, size, *_: played.append(size) or (0, {"ece": [np.ones(2)]}, 0)
    )
    monkeypatch.setattr(guarantees, "outgrowth", lambda times, totals, bound, rate: trend)
    size = guarantees._Size(horizon, 3, 0)
    found = guarantees._rate(replace(STEEP, kind="rate"), f.Constant(), Drift(), size, None, 8.0)
    assert (found.holds, found.ratio) == (holds, 8.0 / math.sqrt(horizon))
    told = horizon == 256 and not math.isnan(trend[0])
    assert found.trend == (trend if told else None)
    assert [(each.horizon, each.runs) for each in played] == (
        [(16, 192), (256, 12)] if horizon == 256 else []
    )


def test_the_trend_and_its_interval(seed):
    """Log-normal totals of known growth. The interval of 1e-3 on each side leaves out the truth in 2 of 1000. Of 300 it
    does so in more than 8 with probability below 1e-6.
    """
    rng = np.random.default_rng(seed)
    out = 0
    for _ in range(300):
        totals = [t**0.8 * np.exp(0.3 * rng.normal(size=n)) for t, n in ((100, 64), (1600, 16))]
        estimate, low, high = outgrowth([100, 1600], totals, math.sqrt, 1e-3)
        assert low < estimate < high
        out += not low < 0.3 < high
    assert out <= 8
    for broken in ([[0.0, 0.0], [1.0, 2.0]], [[1.0], [2.0]], [[1.0, math.inf], [1.0, 2.0]]):
        estimate, low, high = outgrowth([1, 2], broken, math.sqrt, 1e-3)
        assert math.isnan(estimate)
        assert (low, high) == (-math.inf, math.inf)


def test_a_step_of_a_proof_that_is_broken_fails_the_bound(seed):
    """A quarter of the growth that hedging's proof allows is too little in some round."""
    (own,) = f.ForecastHedging().guarantees
    for factor, holds in ((0.25, False), (1.0, True)):
        potential = Potential(
            own.potential.of, lambda *state, times=factor: times * own.potential.growth(*state)
        )
        stated = (replace(own, potential=potential),)
        stating = {"guarantees": property(lambda _, stated=stated: stated)}
        cls = type("Promising", (f.ForecastHedging,), stating)
        (found,) = check([cls()], [Drift()], horizon=1000, runs=4, seed=seed)
        assert (found.step <= 1, found.holds, found.ratio < 1) == (holds, holds, True)


def test_guarantees_apply_only_to_what_they_cover(seed):
    """Hedging promises nothing to natures that see the draw; what such a contrarian promises still applies."""
    assert _remark("it", f.ForecastHedging(), ()).startswith("it states ece ≤ ")
    seeing = Contrarian(sees="draw")
    checked = list(check([f.ForecastHedging()], [seeing], horizon=100, runs=2, seed=seed))
    assert {v.strategy for v in checked} == {'contrarian (sees="draw")'}
    assert [str(v.guarantee) for v in checked] == [str(g) for g in seeing.guarantees]
    assert not list(check([f.Constant()], [Bernoulli()], horizon=100, runs=2, seed=seed))


def test_a_report_of_named_strategies(monkeypatch):
    """It goes on where a guarantee is refused, and has the guarantees of those named alone."""
    monkeypatch.setattr("onlinecal.checks.conformance._spawn", lambda *_: "")
    liar = report([f"{__name__}:LiarRaises"], horizon=32, runs=1, seed=1, progress=False)
    assert [finding.check for _, finding in liar.findings if finding.fault] == ["plays to the end"]
    assert not liar.good
    found = report(["almost_one_step_ahead"], horizon=300, runs=2, seed=1, progress=False)
    assert found.good
    measures = {v.guarantee.measure for v in found.guarantees if v.strategy == "almost one step ahead"}
    assert measures == {"distance_certificate", "smooth_ce"}
    # Among them what it declares of the horizon, delays, its state and its grid.
    assert len(found.findings) == 10
    rows = found.rows()
    assert all(row["holds"] for row in rows["guarantees"])
    assert all(row["fault"] == "" for row in rows["conformance"])
    with pytest.raises(UnknownName, match="did you mean 'drift'"):
        report(["drfit"], horizon=10, runs=1, seed=0)
    monkeypatch.setattr("onlinecal.checks.guarantees.conformance", lambda *_, **__: iter(()))
    for names, told in ((["constant"], set()), (["constant", "early_stopping"], {"early stopping"})):
        found = report(names, horizon=1000, runs=2, seed=1, progress=False)
        assert found.good
        assert {v.strategy for v in found.guarantees} == told
    assert found.remarks == ("constant states no guarantee, so there is none to measure.",)
    found = report(["tests.mutants:PlainBiases"], horizon=1000, runs=2, seed=1, progress=False)
    assert not found.good
    assert {v.strategy for v in found.guarantees if v.holds is False} == {strategy_label(PlainBiases())}


class Nans:
    """Says that the probability is 1/2, and then NaN."""

    first = 1

    def forecast(self, round):
        return 0.5 if round.number < self.first else math.nan

    def update(self, forecast, outcome): ...


class NansOfNature:
    probability, first = Nans.forecast, 1


@pytest.mark.parametrize("first", [1, 40])
def test_a_plug_in_that_says_nan_fails_instead_of_ending_the_report(monkeypatch, first):
    monkeypatch.setattr("onlinecal.checks.conformance._spawn", lambda *_: "")
    if first > 1:  # as if the games of the checks were too short to see it
        monkeypatch.setattr("onlinecal.checks.guarantees.conformance", lambda *_, **__: iter(()))
    for cls in (Nans, NansOfNature):
        monkeypatch.setattr(cls, "first", first)
        name = f"{__name__}:{cls.__name__}"
        found = report([name], horizon=first + 3, runs=1, seed=0, progress=False)
        assert not found.good
        (fault, *_) = [f.fault for n, f in found.findings if n == name and f.fault]
        assert f"in round {first}, run 0; expected" in fault


def test_players_of_another_number_of_classes_are_no_opponents():
    """Forecast hedging has bounds against every nature that it can play."""
    mine = [f.ForecastHedging(), f.ClassMean()]
    size = {"horizon": 50, "runs": 1, "seed": 0}
    assert not [*check(mine, [n.ContrarianClasses()], **size)]
    assert {found.strategy for found in check(mine, [n.Drift(), n.ContrarianClasses()], **size)} == {
        "forecast hedging"
    }


#: kind, whether it holds against each opponent, the slopes of the ratios, and what is said
VERDICTS = [
    ("expected", [True, True], [None, None], "holds against 2;"),
    ("expected", [True, None], [None, None], "exceeded, perhaps by chance, against 1 of 2;"),
    ("deterministic", [True, False], [None, None], "FAILS against 1 of 2;"),
    ("rate", [None, None], [None, None], "a rate; its growth cannot be told;"),
    ("rate", [True, True], [0.25, 0.5], "holds against 2: ratio grows like T^0.50 at most;"),
    ("rate", [True, None], [0.25, None], "by chance, against 1 of 2: ratio grows like T^0.25 at most;"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "holds", "slopes", "said"), VERDICTS)
def test_what_is_found_is_said_with_the_worst_opponent(kind, holds, slopes, said, capsys):
    stated = replace(f.ForecastHedging().guarantees[0], kind=kind, slack=None)
    checked = tuple(
        GuaranteeCheck("it", f"opponent {i}", stated, 0.5 + i, 7, hold, slope and (slope, 0.0, 1.0))
        for i, (hold, slope) in enumerate(zip(holds, slopes, strict=True))
    )
    print_check(Report(checked, ()))
    found = " ".join(capsys.readouterr().out.split())
    assert f"{said} worst 1.5, against opponent 1, round 7" in found


@pytest.mark.parametrize(("upper", "worst"), [(True, 1), (False, 0)])
def test_the_worst_of_a_bound_from_below_is_the_least_and_a_broken_step_is_told(upper, worst, capsys):
    stated = replace(f.ForecastHedging().guarantees[0], kind="deterministic", slack=None, upper=upper)
    checked = tuple(
        GuaranteeCheck("it", f"opponent {i}", stated, 0.5 + i, 7, False, step=step)
        for i, step in enumerate((1.0, 2.0))
    )
    for some, more in ((checked, ", in a step of its proof"), (checked[:1], "")):
        print_check(Report(some, ()))
        found = " ".join(capsys.readouterr().out.split())
        at = worst * (len(some) > 1)
        assert (
            f"FAILS against {len(some)} of {len(some)}{more}; worst {0.5 + at}, against opponent {at},"
            in found
        )


def test_a_fault_that_was_just_told_is_told_by_two_words_below_its_text(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "20")
    faults = ["it ends here", "it ends here", "", "it ends here", "other"]
    found = (("it", Finding(f"check number {i}", fault)) for i, fault in enumerate(faults))
    print_check(Report((), tuple(found)))
    assert capsys.readouterr().out.splitlines() == [
        "it",
        "  FAILS  check", "      number 0", "         it ends", "           here",
        "  FAILS  check", "      number 1", "         as above",
        "  ok  check number 2",
        "  FAILS  check", "      number 3", "         it ends", "           here",
        "  FAILS  check", "      number 4", "         other",
    ]  # fmt: skip
