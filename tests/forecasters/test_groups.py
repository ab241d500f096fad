"""Group hedging: exact values of short games, its energy, its bound, and what breaks either."""

from fractions import Fraction

import numpy as np
import pytest

import onlinecal as oc
from onlinecal.core.errors import InvalidParameter
from onlinecal.engine.game import Game
from onlinecal.forecasters import ForecastHedging, GroupHedging
from onlinecal.natures import Contrarian, Drift, GroupContrarian, Grouped, UniformTruth
from tests.marks import slow
from tests.oracles.forecasters import GroupHedging as Rule


def even(t):
    return {"even": t % 2 == 0}


def energy(rule):
    return sum(b * b for b in rule.bias.values())


def errors(rounds):
    """Totals multi_ece and swap_multi_ece of rounds (v, y, groups)."""
    bias = {}
    for v, y, groups in rounds:
        for group in groups:
            bias[group, v] = bias.get((group, v), 0) + y - v
    names, levels = ({key[i] for key in bias} for i in (0, 1))
    worst = max(sum(abs(b) for key, b in bias.items() if key[0] == group) for group in names)
    return worst, sum(max(abs(bias.get((group, v), 0)) for group in names) for v in levels)


def expected(horizon, m, outcomes, value, make=Rule):
    """The mean of a value (rule, rounds) ↦ number at the end; the largest over outcomes that see the law, if None."""

    def begun(rounds):
        rule = make(m, ["even"])
        for t, (v, y, _) in enumerate(rounds, 1):
            _, memo = rule.forecast(t, even(t))
            rule.update(None, memo, v, y, even(t))
        return rule

    def at(rounds):
        t, rule = len(rounds) + 1, begun(rounds)
        if t > horizon:
            return value(rule, rounds)
        law, _ = rule.forecast(t, even(t))
        groups = ["all", "even"] if t % 2 == 0 else ["all"]
        each = [
            sum(w * at([*rounds, (v, y, groups)]) for v, w in law.items() if w)
            for y in ((0, 1) if outcomes is None else outcomes[t - 1 : t])
        ]
        return max(each)

    return at([])


def test_exact_expectations():
    given = 4, 2, (1, 0, 1, 1)
    assert expected(*given, lambda rule, rounds: errors(rounds)[0]) == Fraction(63, 22)
    assert expected(*given, lambda rule, rounds: errors(rounds)[1]) == Fraction(63, 22)
    assert expected(*given, lambda rule, rounds: energy(rule)) == Fraction(59, 16)
    assert expected(6, 2, None, lambda rule, rounds: errors(rounds)[0]) == Fraction(3083, 880)
    assert expected(6, 2, None, lambda rule, rounds: energy(rule)) == Fraction(51, 8)


def overlapping(kind):
    groups = {"odd": 0.5, "first": 0.5, "third": 1 / 3}
    if kind == "stochastic":
        return Grouped(UniformTruth(0.2, 0.2), groups, {"odd": 0.3, "first": 0.3, "third": -0.1})
    return GroupContrarian(groups, {"first": 0.7, "all": 0.3} if kind == "shifted" else {})


def totals(forecaster, kind, horizon, runs, seed, measures=("ece", "multi_ece", "swap_multi_ece"), **options):
    options |= {"horizon": horizon, "runs": runs, "seed": seed, "measures": measures, "progress": False}
    (cell,) = oc.play(forecaster, overlapping(kind), **options).cells
    return {name: values[-1] for name, values in cell.totals.items()}, cell.promises


@pytest.mark.parametrize("horizon", [1000, 8000, slow(64_000)])
@pytest.mark.parametrize("kind", ["stochastic", "contrarian", "shifted"])
def test_the_bound_holds(kind, horizon, seed):
    """The mean of 8 runs stays below: it is a third of the bound or less, with a spread of a tenth of that."""
    found, promises = totals(GroupHedging(), kind, horizon, 8, seed)
    assert {p.measure for p in promises} == {"ece", "multi_ece", "swap_multi_ece", "group_energy"}
    for promise in promises:
        assert found[promise.measure].mean() <= promise.bound


@pytest.mark.parametrize("horizon", [1000, 8000])
def test_who_ignores_groups_is_hurt(horizon, seed):
    """A control. A third of the rounds of `first` are all wrong by more than .2: fails with probability < 1e-9."""
    for forecaster in (ForecastHedging(), GroupHedging(groups=())):
        found, _ = totals(forecaster, "shifted", horizon, 3, seed)
        assert found["multi_ece"].min() >= 0.2 * horizon


def mean_energy(centred, horizon, m, runs, seed):
    """Σ E² of the rule against a contrarian with an even group, mean over runs, by draws of our own."""
    rng, found = np.random.default_rng([seed, 7]), []
    for _ in range(runs):
        rule = Floats(m, centred)
        for t in range(1, horizon + 1):
            law, memo = rule.forecast(t, even(t))
            y = int(sum(v * w for v, w in law.items()) < 0.5)
            rule.update(None, memo, rng.choice([*law], p=[*law.values()]), y, even(t))
        found.append(energy(rule))
    return np.mean(found)


class Floats(Rule):
    """The same rule in floating point, which is faster."""

    def __init__(self, m, centred):
        super().__init__(m, ["even"], centred)
        self.bias = dict.fromkeys(self.bias, 0.0)

    def forecast(self, number, context):
        law, memo = super().forecast(number, context)
        return {float(v): float(w) for v, w in law.items()}, float(memo)


def test_the_centre_is_the_middle_of_the_edge(seed):
    """With the grid point as the centre the energy exceeds N; means of 3 runs are far from N on either side."""
    n = 2000 + 1000
    assert mean_energy(True, 2000, 13, 3, seed) < n < mean_energy(False, 2000, 13, 3, seed)


def test_the_energy_of_games_is_below_n(seed):
    """E Φ ≤ N, which players track: Φ is far below N against a contrarian."""
    horizon, runs = 4000, 8
    for kind in ("stochastic", "contrarian", "shifted"):
        game = Game(GroupHedging(), overlapping(kind), horizon=horizon, runs=range(runs), seed=seed)
        game.advance(horizon)
        tracked, m = game.certificates()["group_energy"], game.pair[0].steps_at(horizon)
        assert tracked == pytest.approx(np.square(game.forecaster.state / (2 * m)).sum(axis=1))
        sizes = horizon + sum(game.gamma(r, k).weight for r in range(runs) for k in range(3)) / runs
        assert tracked.mean() < sizes


def test_who_plays_for_some_groups_promises_nothing_of_all():
    for groups in (["odd"], ["first", "odd", "third"]):
        _, promises = totals(GroupHedging(groups=groups), "shifted", 50, 1, 0)
        names = {"multi_ece", "swap_multi_ece"} if len(groups) == 3 else set()
        assert {p.measure for p in promises} == names | {"ece", "group_energy"}


def test_known_sizes(seed):
    """Weights by size: each group has a bound of its own; the mean of 8 runs stays below it."""
    sizes = {"odd": "T/2", "first": "T/2", "third": "T/3"}
    for weights in ("equal", "size"):
        forecaster = GroupHedging(weights=weights, sizes=sizes)
        horizon = 4000
        assert forecaster.steps_at(horizon) == 16  # even, and next to T^(1/3)
        found, promises = totals(forecaster, "shifted", horizon, 8, seed, "ece")
        names = {"ece"} if weights == "equal" else {"ece", "ece @ odd", "ece @ first", "ece @ third"}
        assert {p.measure for p in promises} == names | {"group_energy"}
        for promise in promises:
            assert found[promise.measure].mean() <= promise.bound
    with pytest.raises(InvalidParameter, match="expected the sizes of all groups"):
        GroupHedging(weights="size")
    with pytest.raises(InvalidParameter, match="sizes of third are missing"):
        Game(GroupHedging(sizes={"odd": 1, "first": 1}), overlapping("shifted"), horizon=9, runs=range(1))


def bounds(forecaster, horizon=1000):
    return {g.column.name: g.bound(horizon) for g in forecaster.guarantees}


def test_bounds_by_hand():
    """With N the sum of the sizes of three groups, m = 10, and four questions open at once."""

    def bound(n, horizon):
        return (11 * n) ** 0.5 + horizon / 20

    def of(n, names=("swap_multi_ece", "multi_ece", "ece")):
        return dict.fromkeys(names, bound(n, 1000)) | {"group_energy": n}

    groups, sizes = ("odd", "rare"), {"odd": "T/2", "rare": 0}
    assert bounds(GroupHedging(10, groups)) == of(3000)
    assert bounds(GroupHedging(10, groups, sizes=sizes)) == of(1501)
    assert bounds(GroupHedging(10, groups, "size", sizes)) == {
        "ece": bound(3000, 1000), "ece @ odd": bound(1500, 500), "ece @ rare": bound(3, 1), "group_energy": 3,
    }  # fmt: skip
    assert bounds(GroupHedging(10)) == of(1000)
    assert bounds(GroupHedging(10, ())) == of(1000, ["ece"])
    late = [g.delayed(1000, 4) for g in GroupHedging(10, groups).guarantees]
    open = 3000 + 2 * 3000 * 3
    assert late == [bound(open, 1000) + 4] * 3 + [open]
    assert [GroupHedging(groups=groups, sizes=sizes).steps_at(t) for t in (1000, 8000)] == [8, 18]


def test_late_outcomes(seed):
    """The delayed bound holds with 8 open questions, and is no promise that says nothing."""
    found, (promise, energy) = totals(GroupHedging(), "shifted", 8000, 8, seed, "multi_ece", delays=7)
    assert found["multi_ece"].mean() <= promise.bound < 8000 / 2
    assert found["group_energy"].mean() <= energy.bound


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["stochastic", "shifted"])
def test_exponents(kind, seed):
    """Near 2/3 for who hedges in groups, and 1 for who ignores them; each is nine standard errors from either end."""
    for who in (GroupHedging(), GroupHedging(m="T^(1/3)"), ForecastHedging()):
        study = oc.play(
            who, overlapping(kind), horizon=[1000 * 2**k for k in range(7)], runs=64, seed=seed, progress=False,
            measures="multi_ece",
        )  # fmt: skip
        low, high = (0.5, 0.7) if isinstance(who, GroupHedging) else (0.95, 1.05)
        growth = study.exponent("multi_ece")
        assert low < growth.value < high


class Plain:
    """Group hedging of two groups in plain Python, which can be compiled: no memory of open rounds."""

    needs = ("odd",)

    def __init__(self, horizon):
        self.m = round(horizon ** (1 / 3))
        self.whole, self.odd = [0.0] * (self.m + 1), [0.0] * (self.m + 1)
        self.centre = 0.0

    def total(self, i, member):
        return self.whole[i] + member * self.odd[i]

    def forecast(self, round):
        member, m = round.context["odd"], self.m
        if self.total(0, member) <= 0.0:
            self.centre = 0.0
            return {0.0: 1.0}
        if self.total(m, member) >= 0.0:
            self.centre = 1.0
            return {1.0: 1.0}
        low, high = 0, m
        while high - low > 1:
            k = (low + high) // 2
            if self.total(k, member) > 0.0:
                low = k
            else:
                high = k
        a, b = abs(self.total(low, member)), abs(self.total(high, member))
        self.centre = (low + 0.5) / m
        return {low / m: b / (a + b), high / m: 1.0 - b / (a + b)}

    def update(self, forecast, outcome, round):
        j = int(forecast * self.m + 0.5)
        self.whole[j] += outcome - self.centre
        self.odd[j] += round.context["odd"] * (outcome - self.centre)


@pytest.mark.parametrize(
    "needs", [("odd",), "groups", property(lambda self: ["odd"])], ids=["names", "all", "own"]
)
def test_a_plain_class_of_groups_is_compiled_to_the_same_play(needs, seed):
    nature = Grouped(Drift(), {"odd": 0.5})
    plain, other = (type("Plain", (Plain,), {"needs": needs}) for _ in range(2))
    games = [
        Game(each, nature, horizon=300, runs=range(2), seed=seed) for each in (plain, oc.compiled(other))
    ]
    for game in games:
        game.advance(300)
    assert [game.compiled for game in games] == [False, True]
    for r in range(2):
        plain, compiled = (game.gamma(r, 0) for game in games)
        assert np.array_equal(plain.counts, compiled.counts)
        assert np.array_equal(plain.positives, compiled.positives)


@pytest.mark.parametrize("member", [0.0, 1.0])
def test_members_and_others_are_rehearsed(member):
    """Only in rounds of this membership a whole number grows beyond 64 bits, which compiled code does not tell."""

    class Grows(Plain):
        def __init__(self):
            self.number, self.member = 1, member

        def forecast(self, round):
            if round.context["odd"] == self.member:
                self.number = 3 * self.number + 1
            return 0.5 if self.number % 2 == 0 else 0.25

        def update(self, forecast, outcome, round):
            pass

    with pytest.raises(InvalidParameter, match="numbers of 64 bits"):
        Game(oc.compiled(Grows), Grouped(Drift(), {"odd": 0.5}), horizon=9, runs=range(1))


def test_with_all_alone_it_plays_against_natures_without_groups(seed):
    game = Game(GroupHedging(), Contrarian(), horizon=1000, runs=range(4), seed=seed)
    game.advance(1000)
    ((bound, *_),) = [[g.bound(1000) for g in game.pair[0].guarantees if g.measure == "ece"]]
    assert (
        np.mean([1000 * oc.measures.ece(gamma) for gamma in game.gammas()]) <= bound < 1.6 * 1000 ** (2 / 3)
    )
