"""Studies of natures with groups: columns, resume, what is measured later, and what is refused."""

import pickle

import numpy as np
import pytest

import onlinecal as oc
from onlinecal.core.errors import InvalidData, InvalidParameter
from onlinecal.core.joint import JointDistribution
from onlinecal.engine.game import Game
from onlinecal.forecasters import EmpiricalMean, ForecastHedging, GroupHedging
from onlinecal.natures import Drift, GroupContrarian, Grouped, Streams
from onlinecal.schedules import Constant, Pareto, Schedule
from onlinecal.study.again import measure_file_again, missing
from onlinecal.study.panel import Panel
from onlinecal.study.planning import Entry, plan
from tests.engine.games import bits

GROUPS = {"odd": 0.5, "rare": 0.2, "both": ["odd", "rare"], "never": 0.0}
NATURES = [Grouped(Drift(), GROUPS, {"odd": 0.2}), GroupContrarian(GROUPS, {"rare": 0.7, "all": 0.4})]
MEASURES = ["ece", "multi_ece", "swap_multi_ece", {"name": "multi_ece", "per": "round"}, "group_cdl"]


def played(forecaster=None, nature=NATURES[0], **more):
    given = {
        "measures": MEASURES,
        "tasks": "umbrella",
        "runs": 3,
        "horizon": 200,
        "seed": 5,
        "progress": False,
    }
    return oc.play(forecaster or GroupHedging(), nature, **given | more)


@pytest.mark.parametrize("forecaster", [GroupHedging(), EmpiricalMean(), ForecastHedging()], ids=[*"gmf"])
@pytest.mark.parametrize("nature", NATURES, ids=["stochastic", "adversarial"])
@pytest.mark.parametrize("delays", [0, 7, Pareto(2.0)], ids=["now", "late", "pareto"])
def test_columns_are_those_of_the_rounds_cut_out_by_hand(forecaster, nature, delays):
    @oc.of_rounds(needs=tuple(GROUPS))
    def odd_ece(rounds):
        inside = rounds.context["odd"] > 0
        if not inside.any():
            return 0.0
        gamma = JointDistribution.from_samples(rounds.forecasts[inside], rounds.outcomes[inside])
        return oc.measures.ece(gamma) * inside.mean()

    @oc.of_rounds(needs=tuple(GROUPS))
    def family(rounds):
        members = {group: rounds.context[group] for group in GROUPS}
        return oc.measures.swap_multi_ece(rounds.forecasts, rounds.outcomes, groups=members)

    (cell,) = played(forecaster, nature, delays=delays, measures=[*MEASURES, odd_ece, family]).cells
    totals, close = cell.totals, {"rtol": 0, "atol": 1e-9}
    assert np.allclose(totals["ece @ odd"], totals["odd_ece"], **close)
    assert np.allclose(totals["swap_multi_ece"], totals["family"], **close)
    each = [totals[name] for name in ("ece", *(f"ece @ {group}" for group in GROUPS))]
    assert np.allclose(totals["multi_ece"], np.max(each, axis=0), **close)
    sizes = [totals["rounds @ " + group] for group in GROUPS]
    assert (sizes[2] <= sizes[0]).all()
    assert not sizes[3].any()
    assert not totals["ece @ never"].any()
    with np.errstate(invalid="ignore"):
        told = (cell.rounds - np.array(cell.open or 0))[:, None]
        rates = [errors / size for errors, size in zip(each, [told, *sizes], strict=True)]
    assert np.allclose(totals["multi_ece(per=round)"], np.nanmax(rates, axis=0), **close)
    regrets = [totals[f"swap_regret[umbrella]{of}"] for of in ("", *(f" @ {group}" for group in GROUPS))]
    assert np.array_equal(totals["group_swap_regret[umbrella]"], np.max(regrets, axis=0))


def test_a_game_in_pieces_has_the_same_numbers(seed):
    """At once, paused and pickled, in threads, and by the definition in Python."""
    given = {"horizon": 300, "runs": range(3), "seed": seed, "schedule": Schedule(delays=Constant(7))}
    found = []
    for how in ("at once", "pickled", "threads", "python"):
        game = Game(GroupHedging(), NATURES[1], threads=2 if how == "threads" else 1, **given)
        game.in_python = how == "python"
        game.advance(120)
        if how == "pickled":
            game = pickle.loads(pickle.dumps(game))
        game.advance(300)
        gammas = [game.gamma(run, group) for run in range(3) for group in (None, *range(4))]
        found.append([gamma and bits([gamma]) for gamma in gammas])
    assert found[1:] == found[:1] * 3


def test_a_resume_finds_that_the_largest_regret_of_a_group_alone_is_missing():
    (cell,) = plan(
        [Entry.of(GroupHedging())], [Entry.of(NATURES[0])], horizons=[100], runs=3, seed=5,
        panel=Panel.of(["ece"], ["umbrella", "three_action"]),
    )  # fmt: skip
    name = "group_swap_regret[umbrella]"
    there = {held: 3 for column, held in cell.held.items() if column.name != name}
    assert len(there) == len(cell.held) - 1
    (found,) = missing(cell, there, tuple)
    assert [asked.name for asked in found.cell.panel.asked] == ["umbrella"]
    assert name in [column.name for column in found.cell.held]
    every = dict.fromkeys(cell.held.values(), 3)
    assert missing(cell, every, lambda: pytest.fail("level sets were read for nothing")) == []


def test_two_groups_with_the_same_members_have_equal_columns():
    (cell,) = played(nature=Grouped(Drift(), {"a": 0.4, "b": ["a", "a"], "every": 1.0})).cells
    for column in cell.columns:
        name = column.name
        if name.endswith(" @ a"):
            assert np.array_equal(cell.totals[name], cell.totals[name[:-1] + "b"])
        if name.endswith(" @ every") and not name.startswith("rounds"):
            assert np.array_equal(cell.totals[name], cell.totals[name.removesuffix(" @ every")])


def test_streams_and_groups_have_columns_of_both():
    (cell,) = played(nature=Grouped(Streams((Drift(), Drift()), labels=("x", "y")), {"odd": 0.5})).cells
    assert {"ece @ x", "ece @ y", "ece @ odd", "rounds @ odd"} <= set(cell.totals)
    assert "rounds @ x" not in cell.totals
    payoffs = [cell.totals[f"payoff[umbrella]{of}"] for of in ("", " @ x", " @ y")]
    assert np.allclose(payoffs[0], payoffs[1] + payoffs[2])
    with pytest.raises(InvalidParameter, match=r"two columns of .* are called 'ece @ odd'"):
        played(nature=Grouped(Streams((Drift(), Drift()), labels=("odd", "y")), {"odd": 0.5}))


def test_measures_of_groups_alone_leave_streams_without_names():
    """Γ of a group is not mistaken for that of a stream, which stands before it."""
    nature = Grouped(Streams((Drift(), Drift())), {"odd": 0.5})
    study = played(nature=nature, measures="multi_ece", tasks=())
    assert study.gamma(group="odd", run=1).weight == study.cells[0].totals["rounds @ odd"][-1, 1]
    with pytest.raises(InvalidData, match="'ece' cannot be computed, since no column names the streams"):
        study.measure_again("ece")


def test_measures_of_groups_need_groups(tmp_path):
    """Before play, and later; a file of which a nature has none keeps its columns."""
    path, said = tmp_path / "a.db", r"'multi_ece' is of groups, and nature 'drift' has none.*grouped"
    with pytest.raises(InvalidParameter, match=said):
        played(nature="drift")
    study = played(nature=[NATURES[0], "drift"], measures="ece")
    with pytest.raises(InvalidParameter, match=said):
        study.measure_again("multi_ece")
    study.save(path)
    before = path.read_bytes()
    with pytest.raises(InvalidParameter, match=said):
        measure_file_again(path, Panel.of(["multi_ece"]))
    assert path.read_bytes() == before


def test_measures_of_groups_are_tried_before_a_game():
    @oc.of_groups
    def broken(groups):
        return 1 / 0

    for measure, said in (
        ({"name": "multi_ece", "per": "day"}, "per = 'day'"),
        (broken, "failed: ZeroDivisionError"),
    ):
        with pytest.raises(oc.OnlinecalError, match=said):
            Panel.of([measure])


def test_measures_of_ones_own_may_ask_for_a_group_by_name():
    @oc.of_groups
    def widest(groups):
        rates = [gamma.base_rate for gamma in groups.values()]
        return max(rates) - min(rates)

    @oc.of_groups
    def gap(groups):
        return groups["odd"].base_rate - groups["all"].base_rate

    (cell,) = played(measures=[widest, gap, "ece"]).cells
    assert "widest @ odd" not in cell.totals
    gammas = [cell.gamma(-1, 0, k) for k in (None, 0, 1, 2, 3)]
    known = {i: gamma for i, gamma in enumerate(gammas) if gamma is not None}
    assert cell.totals["widest"][-1, 0] == pytest.approx(200 * widest(known))
    assert cell.totals["gap"][-1, 0] == pytest.approx(200 * (known[1].base_rate - known[0].base_rate))
