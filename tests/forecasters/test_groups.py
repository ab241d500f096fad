"""Group hedging: exact values of short games, its bounds in numbers, and groups of plain classes."""

from fractions import Fraction

import numpy as np
import pytest

import onlinecal as oc
from onlinecal.core.errors import InvalidParameter
from onlinecal.engine.game import Game
from onlinecal.forecasters import EmpiricalMean, ForecastHedging, GroupHedging, Separate
from onlinecal.natures import Drift, Grouped
from tests.by_hand import Driven
from tests.forecasters.test_guarantees import MEMBERS, SHIFTED, STOCHASTIC


def exactly(value, horizon, outcomes=None, rounds=()):
    """The mean of a value at the end over the draws, with m = 2 and a group of the even rounds.

    Rounds are (place in the law, forecast, outcome). Without outcomes they are those that make most of the value.
    """
    player = Driven(GroupHedging(2, ("even",)), horizon)
    for number, (place, _, y) in enumerate(rounds, 1):
        player.tell(player.ask(even=number % 2 == 0), y, place)
    number = len(rounds) + 1
    if number > horizon:
        return value(player, rounds)
    law = player.ask(even=number % 2 == 0).law
    return max(
        sum(
            w * exactly(value, horizon, outcomes, (*rounds, (place, v, y)))
            for place, (v, w) in enumerate(law)
        )
        for y in (outcomes[number - 1 : number] if outcomes else (0, 1))
    )


def biases(rounds):
    """Σ (y − v) by group, all rounds and the even ones, and by forecast."""
    found = np.zeros((2, 3))
    for number, (_, v, y) in enumerate(rounds, 1):
        found[: 2 - number % 2, round(2 * v)] += y - v
    return np.abs(found)


def multi_ece(player, rounds):
    return biases(rounds).sum(axis=1).max()


def swap_multi_ece(player, rounds):
    return biases(rounds).max(axis=0).sum()


def energy(player, rounds):
    return player.player.certify(player.player)["group_energy"][0]


@pytest.mark.parametrize(
    ("value", "outcomes", "expected"),
    [
        (multi_ece, (1, 0, 1, 1), Fraction(63, 22)), (swap_multi_ece, (1, 0, 1, 1), Fraction(63, 22)),
        (energy, (1, 0, 1, 1), Fraction(59, 16)), (multi_ece, None, Fraction(29, 10)), (energy, None, Fraction(75, 16)),
    ],
)  # fmt: skip
def test_exact_expectations(value, outcomes, expected):
    assert exactly(value, 4, outcomes) == pytest.approx(float(expected), abs=1e-12)


def test_who_plays_for_some_groups_promises_nothing_of_all():
    options = {"horizon": 50, "runs": 1, "measures": ["ece", "multi_ece", "swap_multi_ece"]}
    for groups, names in ((["odd"], set()), (["first", "odd", "third"], {"multi_ece", "swap_multi_ece"})):
        (cell,) = oc.play(GroupHedging(groups=groups), SHIFTED, **options).cells
        assert {p.measure for p in cell.promises} == names | {"ece", "group_energy"}


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
    assert [GroupHedging().steps_at(t) for t in (1, 26, 28)] == [2, 2, 4]


def test_copies_are_of_256_sets_of_groups_at_most():
    names = [f"g{k}" for k in range(9)]
    nature, options = Grouped(Drift(), dict.fromkeys(names, 0.5)), {"horizon": 20, "runs": range(1)}
    game = Game(Separate(EmpiricalMean(), names[:8]), nature, **options)
    game.advance(20)
    assert len(game.forecaster.parts) == 256
    with pytest.raises(InvalidParameter, match="separate by 9 groups; expected at most 8, of 256 sets"):
        Game(Separate(EmpiricalMean(), "all"), nature, **options)


def test_all_groups_are_those_of_nature():
    assert GroupHedging().facing(SHIFTED) == GroupHedging(groups=tuple(MEMBERS))
    assert Separate(ForecastHedging(), "all").facing(SHIFTED) == Separate(ForecastHedging(), tuple(MEMBERS))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"weights": "size"}, "expected the sizes of all groups"), ({"sizes": 3}, "sizes = 3; expected a table"),
        ({"groups": ("odd", "odd")}, "expected different names"),
        ({"sizes": {"odd": 1, "first": 1}}, "sizes of third are missing"),
    ],
)  # fmt: skip
def test_what_is_refused(given, said):
    with pytest.raises(InvalidParameter, match=said):
        Game(GroupHedging(**given), SHIFTED, horizon=9, runs=range(1))


@pytest.mark.parametrize("who", [ForecastHedging(), GroupHedging(groups=())])
def test_who_ignores_groups_is_hurt(who, seed):
    """A control. A third of the rounds of `first` are all wrong by more than .2: fails with probability < 1e-9."""
    options = {"horizon": 1000, "runs": 3, "seed": seed, "measures": ["multi_ece"], "progress": False}
    assert (oc.play(who, SHIFTED, **options).cells[0].totals["multi_ece"][-1] >= 200).all()


@pytest.mark.slow
@pytest.mark.parametrize("nature", [STOCHASTIC, SHIFTED])
def test_exponents(nature, seed):
    """Near 2/3 for who hedges in groups, and 1 for who ignores them; each is nine standard errors from either end."""
    for who in (GroupHedging(), GroupHedging(m="T^(1/3)"), ForecastHedging()):
        study = oc.play(
            who, nature, horizon=[1000 * 2**k for k in range(7)], runs=64, seed=seed, progress=False,
            measures="multi_ece",
        )  # fmt: skip
        low, high = (0.5, 0.7) if isinstance(who, GroupHedging) else (0.95, 1.05)
        assert low < study.exponent("multi_ece").value < high


# ---------------------------------------------------------------- groups of plain classes

ODD = Grouped(Drift(), {"odd": MEMBERS["odd"]})


class Means:
    """The mean outcome of members, and of others."""

    needs = ("odd",)

    def __init__(self):
        self.ones, self.rounds = [0.5, 0.5], [1.0, 1.0]

    def forecast(self, round):
        member = int(round.context["odd"])
        return self.ones[member] / self.rounds[member]

    def update(self, forecast, outcome, round):
        member = int(round.context["odd"])
        self.ones[member] += outcome
        self.rounds[member] += 1.0


@pytest.mark.parametrize(
    "needs", [("odd",), "groups", property(lambda self: ["odd"])], ids=["names", "all", "own"]
)
def test_a_plain_class_of_groups_is_compiled_to_the_same_play(needs, seed):
    plain, other = (type("Means", (Means,), {"needs": needs}) for _ in range(2))
    games = [Game(each, ODD, horizon=300, runs=range(2), seed=seed) for each in (plain, oc.compiled(other))]
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

    class Grows(Means):
        def __init__(self):
            self.number, self.member = 1, member

        def forecast(self, round):
            if round.context["odd"] == self.member:
                self.number = 3 * self.number + 1
            return 0.5 if self.number % 2 == 0 else 0.25

        def update(self, forecast, outcome, round):
            pass

    with pytest.raises(InvalidParameter, match="numbers of 64 bits"):
        Game(oc.compiled(Grows), ODD, horizon=9, runs=range(1))
