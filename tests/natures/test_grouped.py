"""Natures with groups: who is a member, what that adds, thresholds, and what is refused."""

import numpy as np
import pytest

from onlinecal.core.errors import InvalidForecast, OnlinecalError
from onlinecal.core.strategy import strategy_key
from onlinecal.core.streams import Stream
from onlinecal.engine.game import Game
from onlinecal.forecasters import Constant, EmpiricalMean, ForecastHedging, GroupHedging
from onlinecal.natures import (
    Drift,
    GroupContrarian,
    Grouped,
    Replay,
    Streams,
    Switch,
    as_nature,
)
from onlinecal.schedules import ByOutcome, Poisson, Schedule
from onlinecal.schedules import Constant as Late
from tests.by_hand import noted, revealed

HORIZON, RUNS = 200, 2
GROUPS = {"odd": 0.5, "both": ["odd", "rare"], "rare": 0.3, "never": 0.0, "always": 1.0}


class Own:
    """A plain nature; the class attributes are those of a test."""

    reveals, groups, value = frozenset({"odd"}), ("odd",), 1

    def context(self, round):
        return dict.fromkeys(self.reveals, self.value)

    def probability(self, round):
        return 0.5 * round.context["odd"]


def own(**changed):
    return type("Own", (Own,), changed)


def drawn(nature, chances, seed):
    """Whether each question is in the groups that are drawn, (rounds, runs, groups), by nature's own uniforms."""
    stream = Stream(seed, ("nature", strategy_key(nature), f"T={HORIZON}"), range(RUNS))
    own = stream.block(HORIZON * len(chances)).reshape(HORIZON, len(chances), RUNS)
    return own.transpose(0, 2, 1) < chances


@pytest.mark.parametrize("make", [lambda: Grouped(Drift(), GROUPS), lambda: GroupContrarian(GROUPS)])
def test_members_are_drawn_in_each_run(make, seed):
    nature = make()
    inside, shown = drawn(nature, [0.5, 0.3, 0.0, 1.0], seed), revealed(nature, HORIZON, RUNS, seed)
    assert nature.group_names == tuple(GROUPS)
    for group, expected in {
        "odd": inside[..., 0], "rare": inside[..., 1], "both": inside[..., 0] & inside[..., 1],
        "never": np.zeros((HORIZON, RUNS)), "always": np.ones((HORIZON, RUNS)),
    }.items():  # fmt: skip
        assert np.array_equal(np.array(shown[group]), expected), group
    assert (inside[:, 0] != inside[:, 1]).any()


def rates(t, law, odd, rare):
    return min(max((t + 0.5) / HORIZON + 0.3 * odd - 0.9 * (odd and rare), 0.0), 1.0)


def thresholds(t, law, odd, rare):
    mean, own = sum(v * w for v, w in law.items()), np.mean([0.3, *[0.7] * odd, *[1.0] * rare])
    return None if abs(mean - own) < 1e-9 else float(mean < own)


@pytest.mark.parametrize(
    ("nature", "rule"),
    [
        (Grouped(Drift(), GROUPS, {"odd": 0.3, "both": -0.9}), rates),
        (GroupContrarian(GROUPS, {"odd": 0.7, "all": 0.3, "rare": 1.0}), thresholds),
        (GroupContrarian(GROUPS), lambda t, law, odd, rare: float(sum(v * w for v, w in law.items()) < 0.5)),
    ],
)
def test_rates_are_added_for_members_and_thresholds_averaged(nature, rule, seed):
    inside = drawn(nature, [0.5, 0.3, 0.0, 1.0], seed)
    log, _ = noted(ForecastHedging(12), nature, HORIZON, RUNS, seed)
    for t, round in enumerate(log):
        for run in range(RUNS):
            expected = rule(t, round.laws[run], *inside[t, run, :2].tolist())
            assert expected is None or round.q[run] == pytest.approx(expected, abs=1e-12)


def test_what_is_no_probability_is_not_mended_by_a_rate():
    wrong = as_nature(type("Wrong", (), {"probability": lambda self: 1.1}))
    nature = Grouped(wrong, {"always": 1.0}, {"always": -0.5})
    with pytest.raises(InvalidForecast, match=r"1\.1"):
        Game(Constant(), nature, horizon=3, runs=range(1)).advance(3)


class Hears:
    """A plain nature that is told its own rounds, and looks whether they are."""

    reveals = frozenset({"when"})

    def __init__(self):
        self.open = {}

    def context(self, round):
        self.open[round.number] = round.time
        return {"when": round.time}

    def probability(self, round):
        assert round.context == {"when": self.open[round.number]}
        return 0.5

    def update(self, forecast, outcome, round):
        assert self.open.pop(round.number) == round.context["when"] == round.time
        assert len(self.open) < 30


def test_the_part_is_told_its_rounds(seed):
    late = Schedule(arrivals=Poisson(1.0), delays=ByOutcome(Late(3.0), Late(9.0)))
    nature = Grouped(as_nature(Hears), {"rare": 0.3, "odd": 0.5}, {"odd": 0.1})
    game = Game(
        EmpiricalMean(), nature, horizon=HORIZON, runs=range(RUNS), seed=seed, schedule=late, keeps=["when"]
    )
    game.advance(HORIZON)
    inside, (times, _) = drawn(nature, [0.3, 0.5], seed), late.clock(HORIZON, seed).span(1, HORIZON)
    for run in range(RUNS):
        told = game.transcripts.of(run)
        assert np.array_equal(told.context["when"], told.asked)
        assert np.array_equal(told.asked, times[told.numbers - 1])
        for k, group in enumerate(("rare", "odd")):
            assert np.array_equal(told.context[group], inside[told.numbers - 1, run, k])
            assert game.gamma(run, k).weight == told.context[group].sum() > 0


KINDS = [f"g{i}" for i in range(17)]
REFUSED = [
    (own(value=0.5), "neither 0 nor 1 of the group 'odd' in round 1, run 0"),
    (own(groups=("even",)), "different kinds that it reveals"), (own(groups=("odd", "odd")), "different kinds"),
    (own(groups=("all",), reveals=frozenset({"all"})), "none of them 'all'"),
    (own(groups=tuple(KINDS), reveals=frozenset(KINDS)), "at most 16"),
    (own(groups=(name for name in ("odd",))), r"declares groups = <generator .*; expected names, in a set"),
    (Grouped(Drift(), {"odd": 0.5, "asked at": 0.5}), "none called 'asked at', which is the time"),
]  # fmt: skip


@pytest.mark.parametrize("play", [lambda game: game.advance(20), lambda game: game.ask()])
@pytest.mark.parametrize(("nature", "said"), REFUSED)
def test_what_is_refused(nature, said, play):
    with pytest.raises(OnlinecalError, match=said):
        play(Game(Constant(p=0.5), nature, horizon=20, runs=range(2)))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {"groups": {"odd": 0.5, "both": ["odd"]}},
            "groups.both = .*; expected the names of two groups or more",
        ),
        ({"groups": {"odd": 0.5}, "rates": 3}, "rates = 3; expected a table of numbers of odd"),
        *(
            (
                {"groups": {"odd": 0.5}, "rates": {"odd": rate}},
                r"rates.odd = .*expected a number in \[-1, 1\]",
            )
            for rate in (-1.01, 1.01)
        ),
    ],
)
def test_tables_that_are_none(given, said):
    with pytest.raises(OnlinecalError, match=said):
        Grouped(Drift(), **given)


def test_ends_of_rates_and_thresholds():
    for rate in (-1.0, 1.0):
        assert Grouped(Drift(), {"odd": 0.5}, {"odd": rate}).rates == {"odd": rate}
    for threshold in (0.0, 1.0):
        assert GroupContrarian({"odd": 0.5}, {"all": threshold}).thresholds == {"all": threshold}
    for threshold in (-0.01, 1.01):
        with pytest.raises(OnlinecalError, match=r"thresholds.all = .*expected a number in \[0, 1\]"):
            GroupContrarian({"odd": 0.5}, {"all": threshold})


def test_many_groups_and_other_context():
    wide = own(groups=(*KINDS[:15], "odd"), reveals=frozenset([*KINDS[:15], "odd"]))
    # That of a part may be any number.
    part = Grouped(as_nature(own(value=0.5, groups=())), {"always": 1.0})
    for nature, many in ((wide, 16), (part, 1)):
        game = Game(Constant(p=0.5), nature, horizon=4, runs=range(1))
        game.advance(4)
        assert [game.gamma(0, group).weight for group in range(many)] == [4.0] * many


class Told:
    """A class without room for copies of the lists that it declares."""

    __slots__ = ()
    reveals, groups = ["b", "c", "a"], ["b", "a"]

    def context(self, round):
        return dict.fromkeys(self.reveals, 1)

    def probability(self):
        return 0.5


def test_the_groups_of_plain_classes():
    asked = type("Asked", (Told,), dict.fromkeys(("reveals", "groups"), property(lambda self: ("b", "a"))))
    # A set has another order in each process.
    unordered = type("Unordered", (Told,), dict.fromkeys(("reveals", "groups"), frozenset("lkjihgfedcba")))
    for cls, names in ((Told, "ba"), (asked, "ba"), (unordered, "abcdefghijkl")):
        game = Game(Constant(p=0.5), cls, horizon=2, runs=range(2))
        game.advance(2)
        assert game.groups == tuple(names)
        assert [game.gamma(1, group).weight for group in range(len(names))] == [2.0] * len(names)


def test_what_a_nature_does_to_its_round_changes_no_membership():
    def spoils(self, round):
        round.context["odd"] = 0.0
        return 0.5

    game = Game(EmpiricalMean(), own(probability=spoils), horizon=9, runs=range(1), keeps=["odd"])
    game.advance(9)
    assert game.gamma(0, 0).weight == game.transcripts.of(0).context["odd"].sum() == 9.0


def test_what_is_made_of_natures_has_the_groups_of_all_of_them():
    of = [Grouped(Drift(), dict.fromkeys(names, 1.0)) for names in ("abc", "cbd")]
    for nature in (Switch(*of), Streams(of)):
        assert nature.group_names == ("b", "c")
        game = Game(GroupHedging(), nature, horizon=8, runs=range(1))
        game.advance(8)
        assert [game.gamma(0, len(nature.streams) + group).weight for group in range(2)] == [8.0, 8.0]
    assert Switch(of[0], Drift()).group_names == ()


def test_a_plain_forecaster_is_told_the_groups():
    class Told:
        needs = "groups"

        def forecast(self, round):
            assert round.groups == {"odd": 1}
            assert type(round.groups["odd"]) is int
            return 0.25 + 0.5 * round.groups["odd"]

        def update(self, forecast, outcome, round):
            assert round.groups == round.context == {"odd": 1}

    game = Game(Told, Own, horizon=30, runs=range(2))
    game.advance(30)
    assert game.gamma(0).predictions.tolist() == [0.75]


def test_groups_of_a_file(tmp_path):
    file = tmp_path / "days.csv"
    file.write_text("outcome,wet,season,base\n1,1,winter,0\n0,false,summer,1\n1,,summer,1\n0,TRUE,,0\n")
    with pytest.raises(OnlinecalError, match="a group 'base', which is the context of forecasts"):
        Replay(str(file), groups=["base"])
    with pytest.warns(UserWarning, match="2 missing values of groups"):
        nature = Replay(str(file), groups=["wet", "season"])
    assert nature.group_names == ("wet", "season: summer", "season: winter")
    shown = revealed(nature, 4, 1)
    assert [np.ravel(shown[group]).tolist() for group in nature.group_names] == [
        [1, 0, 0, 1], [0, 1, 1, 0], [1, 0, 0, 0],
    ]  # fmt: skip
    game = Game(Constant(p=0.5), nature, horizon=4, runs=range(1))
    game.advance(4)
    assert [game.gamma(0, k).positives.sum() for k in range(3)] == [1.0, 1.0, 1.0]


@pytest.mark.parametrize(
    ("cells", "members"),
    [
        ("1.00 -0 +1.0 true", {"g": [1, 0, 1, 1]}),
        ("2 2.0 3 03", {"g: 2": [1, 1, 0, 0], "g: 3": [0, 0, 1, 0], "g: 03": [0, 0, 0, 1]}),
        ("0 1 2 NA", {"g: 0": [1, 0, 0, 0], "g: 1": [0, 1, 0, 0], "g: 2": [0, 0, 1, 0]}),
        ("yes no YES no", {"g: yes": [1, 0, 0, 0], "g: no": [0, 1, 0, 1], "g: YES": [0, 0, 1, 0]}),
        ("1,000 1 0 0", {"g: 1,000": [1, 0, 0, 0], "g: 1": [0, 1, 0, 0], "g: 0": [0, 0, 1, 1]}),
        ("inf 0 1 1", "column 'g' of groups holds inf; expected 0 and 1, texts or whole numbers"),
    ],
)
@pytest.mark.filterwarnings("ignore:1 missing")
def test_cells_of_groups(tmp_path, cells, members):
    file = tmp_path / "days.csv"
    file.write_text("outcome;g\n" + "".join(f"1;{cell}\n" for cell in cells.split()))
    if isinstance(members, str):
        with pytest.raises(OnlinecalError, match=members):
            Replay(str(file), groups=["g"])
    else:
        found = Replay(str(file), groups=["g"]).members
        assert {name: inside.tolist() for name, inside in found.items()} == members
