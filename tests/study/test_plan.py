"""Plans, their outlook, and panels: what is refused before it is played, and what is read at checkpoints."""

import re
from collections import Counter
from dataclasses import dataclass

import numpy as np
import pytest

import onlinecal as oc
from onlinecal.core.columns import ACCOUNT
from onlinecal.core.errors import InvalidParameter
from onlinecal.core.guarantee import Forecasters, Guarantee
from onlinecal.engine.game import Game
from onlinecal.engine.horizon import checkpoints
from onlinecal.engine.memory import bytes_of_run
from onlinecal.forecasters import as_forecaster
from onlinecal.measures import MEASURES
from onlinecal.measures.base import Bracket
from onlinecal.schedules import Constant, Schedule
from onlinecal.study.outlook import outlook, slow_measures
from onlinecal.study.panel import Panel
from onlinecal.study.promises import promises, steps
from onlinecal.study.run import batch_size
from onlinecal.sweeping import planned, schedules_of
from tests.results import F, N, cells
from tests.strategies import many_levels

# ---------------------------------------------------------------- what is refused


class Tired:
    def __init__(self, horizon):
        self.rest = 1 / (400 - horizon)

    def forecast(self): ...
    def update(self, forecast, outcome): ...


LATE, LATER = (oc.sweep("bernoulli", label=label) for label in ("delay 1", "drift, delay 1"))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"horizon": 0}, "horizon = 0"), ({"horizon": [100, 50, 100]}, "100 is given twice"),
        ({"horizon": 10.5}, "horizon = 10.5"), ({"runs": 0}, "runs = 0"), ({"seed": "x"}, "seed = 'x'"),
        ({"per_decade": 101}, "per_decade = 101"), ({"per_decade": 0}, "per_decade = 0"),
        ({"runs": 100_001}, "runs = 100001"),
        *(({"keep": keep}, f"keep = {keep!r}") for keep in ("some", None, 1, 2.5, True, 2**40 + 1)),
        ({"measures": []}, "no measures and no tasks"), ({"measures": ["ece", oc.measures.ece]}, "asked for twice"),
        ({"measures": [{"name": "binned_ece", "bins": 0}]}, "bins = 0"),
        ({"measures": [{"name": lambda gamma: 0.0, "x": 1}]}, "measure '<lambda>'"),
        ({"measures": ["smooth_ece_at", "ece", "random_interval_ce"]}, "'sigma'; .*; .* needs the option 'epsilon'"),
        ({"measures": ["ece", "true_distance"], "horizon": [100, 401]}, "T = 401; expected T ≤ 400"),
        ({"measures": [3]}, "measure 3"), ({"tasks": ["umbrela"]}, "'umbrella'"),
        ({"tasks": [{"name": "mine", "payoffs": [[0, 2]]}]}, r"payoffs\[0\]\[1\] = 2"),
        ({"tasks": [{"name": "mine", "payofs": [[0, 1]]}]}, "'payofs'; did you mean 'payoffs'?"),
        ({"tasks": [{"name": "v_shaped", "s": 0.3}]}, "no option 's'; known: t"),
        ({"nature": 3}, "3 is not a nature"), ({"nature": N.Replay}, "needs the parameter 'file'"),
        ({"forecaster": [F.Constant(), F.Constant()]}, "two forecasters are called 'constant'"),
        ({"delays": [0, 0]}, "two schedules"), ({"delays": []}, "delays is empty"),
        ({"forecaster": []}, "no forecasters"), ({"horizon": []}, "no horizons"),
        ({"nature": [N.Drift(), *LATE], "delays": [0, 1]}, "two natures are called 'delay 1'"),
        ({"nature": [N.Drift(), *LATER], "delays": [0, 1]}, "two natures with their schedules are called 'drift, del"),
        ({"forecaster": oc.sweep("constant", p={"from": 0, "to": 1, "steps": 1001}), "horizon": [*range(1, 1001)]},
         "up to 1,001,000 cells; expected at most 1,000,000"),
        ({"forecaster": F.ForecastHedging("1500-T"), "horizon": [100, 4000]}, "T = 4000: m = '1500-T'"),
        ({"forecaster": Tired, "horizon": [100, 400]}, "'Tired' cannot be started at T = 400: ZeroDivisionError"),
    ],
)  # fmt: skip
def test_what_cannot_be_played_is_said_before_playing(options, said, monkeypatch):
    monkeypatch.setattr(Game, "advance", lambda *_: pytest.fail("a game was played"))
    options = {"forecaster": F.Constant(), "nature": N.Drift(), "horizon": 50, "runs": 2} | options
    with pytest.raises(oc.OnlinecalError, match=said):
        oc.play(**options)


@pytest.mark.parametrize("keep", [2, 2**40, "all", "none"])
def test_the_last_values_that_are_allowed_are_taken(keep):
    (cell,) = cells([50], 100_000, forecasters=[F.Constant()], natures=[N.Drift()], per_decade=100, keep=keep)
    assert (cell.runs, cell.keep, cell.times) == (100_000, keep, tuple(checkpoints(50, 100)))


def test_cells_are_counted_by_all_that_is_combined(monkeypatch):
    natures = N.Drift(), N.Contrarian(), N.Bernoulli()
    asked = {"horizons": [10, 20], "natures": natures, "schedules": schedules_of("every_unit", [0, 1])}
    monkeypatch.setattr("onlinecal.study.planning.MOST", 24)
    assert len(cells(**asked)) == 24
    monkeypatch.setattr("onlinecal.study.planning.MOST", 23)
    with pytest.raises(InvalidParameter, match="up to 24 cells; expected at most 23"):
        cells(**asked)


def test_all_measures_are_all_that_games_can_have():
    options = {
        "seed": 0,
        "runs": 1,
        "tasks": (),
        "arrivals": "every_unit",
        "delays": 0,
        "decision_makers": (),
    }
    ours = {name for name in MEASURES if name not in ("smooth_ece_at", "random_interval_ce")}
    for measures, horizons, more in (
        ("all", [400], ["true_distance"]), ("all", [100, 401], []),
        (["brier", "all", {"name": "binned_ece", "bins": 3}], [9], ["true_distance", "binned_ece(bins=3)"]),
    ):  # fmt: skip
        panel = planned("constant", "drift", measures=measures, horizons=horizons, **options)[0].panel
        names = [asked.name for asked in panel.asked]
        assert ours - {"binned_ece"} < set(names)  # of which one is asked for with other options
        assert len(names) == len(MEASURES) + ("true_distance" in more)
        assert names[len(names) - len(more) :] == more


class Short(F.Constant):
    """Plays 16 rounds."""

    length = 16


def test_what_is_longer_than_a_player_can_play_is_left_out(tmp_path):
    short, constant, drift = Short(), F.Constant(), {"natures": [N.Drift()]}
    planned = cells([10, 16, 40], forecasters=[short, constant], **drift)
    assert [(cell.forecaster.strategy, cell.horizon) for cell in planned] == [
        (short, 10), (short, 16), *((constant, t) for t in (10, 16, 40))
    ]  # fmt: skip
    assert [why for *_, why in planned.incompatible] == [
        "horizon = 40, but forecaster 'short' plays 16 rounds; expected at most 16"
    ]
    assert (outlook(planned).cells, outlook(planned).incompatible) == (
        5,
        0,
    )  # up to some horizons it is played
    file = tmp_path / "a.csv"
    file.write_text("outcome,base\n" + "0,0.5\n1,0.5\n" * 60)
    replay, based = N.Replay(str(file)), N.Replay(str(file), base="base")
    for horizons in ([50, 100, 200], [50, 120, 200]):
        planned = cells(horizons, forecasters=[constant], natures=[replay])
        assert [cell.horizon for cell in planned] == sorted({*horizons[:2], 120})
    # Pairs that cannot play each other.
    planned = cells([10, 20], forecasters=[F.OnlinePlatt(), constant], natures=[N.Drift(), based])
    assert [(c.forecaster.label, c.nature.strategy) for c in planned[::2]] == [
        ("constant", N.Drift()), ("online platt", based), ("constant", based)
    ]  # fmt: skip
    assert [pair[:2] for pair in planned.incompatible] == [("online platt", "drift")]
    assert outlook(planned).incompatible == 1
    assert list(outlook(planned).lines())[2] == "3 pairs: 3 compiled; 1 more cannot be played"
    with pytest.warns(RuntimeWarning, match="'online platt' against 'drift' is not played: .*needs") as told:
        assert oc.play(["online_platt", "constant"], "drift", horizon=9, runs=1).forecasters == ["constant"]
    assert [warning.filename for warning in told] == [__file__]  # where it is played
    for options, said in (
        ({"forecasters": [short], **drift}, "plays 16 rounds"),
        ({"natures": [replay], "horizons": [200]}, "has 120 rounds"),
        ({"forecasters": [F.OnlinePlatt()]}, "does not reveal; nor can 1 other pair be played"),
    ):
        with pytest.raises(InvalidParameter, match=said):
            cells(**{"horizons": [40]} | options)


# ---------------------------------------------------------------- the outlook


def test_counts_of_what_is_to_be_played():
    planned = cells()
    there = {cell.key: 3 for cell in planned}
    for plan, known, expected in (
        (planned, {}, (8, 0, 0, 8, sum(cell.work for cell in planned))),
        (cells(horizons=(50, 100, 200)), there, (12, 8, 0, 4, 4 * 200 * 3)),
        (cells(runs=5), there, (8, 0, 8, 0, 4 * 150 * 2)),
        (planned, there, (8, 8, 0, 0, 0)),
    ):
        found = outlook(plan, known)
        assert (found.cells, found.finished, found.begun, found.new, found.run_rounds) == expected
        assert (len(found.pairs), found.horizons[:2]) == (4, (50, 100))
        assert sum(line.count("of which some runs") for line in found.lines()) == (found.begun > 0)


@pytest.mark.parametrize(
    ("horizons", "count", "said", "lines"),
    [(range(1, 11), 40, "T = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10; ", 43), (range(1, 12), 41, "T = 11 from 1 to 11; ", 3)],
)  # fmt: skip
def test_long_lists_are_counted(horizons, count, said, lines):
    """Of more than ten horizons the ends are told; more than forty pairs are not listed."""
    many = oc.sweep("constant", p={"from": 0, "to": 1, "steps": count})
    found = list(outlook(cells(list(horizons), 1, forecasters=[(e.strategy, e.label) for e in many],
                               natures=[N.Drift()])).lines())  # fmt: skip
    assert found[1].startswith(said)
    assert len(found) == lines


class Plain(Tired):
    def __init__(self): ...


def test_loops_are_those_that_play():
    who = F.ForecastHedging(), F.PerturbedLeader(), F.Calibeating(), as_forecaster(Plain)
    whom = N.Contrarian(), N.Streams((N.Drift(), N.Bernoulli())), N.Mixture((N.Drift(), N.Markov()))
    planned = cells([20], 2, forecasters=who, natures=whom, schedules=schedules_of("every_unit", [0, 3]))
    plays = {}
    for cell in planned:
        options = {"horizon": 20, "runs": range(1), "schedule": cell.schedule}
        game = Game(cell.forecaster.strategy, cell.nature.strategy, **options)
        plays[cell.forecaster.label, cell.nature_label] = "compiled" if game.compiled else "python"
    found = outlook(planned)
    assert {(who, whom): loop for who, whom, loop in found.pairs} == plays
    assert found.loops == Counter(plays.values())
    assert set(found.loops) == {"compiled", "python"}


def test_measures_that_take_most_of_the_time_are_named():
    """Before a game: by the levels that Γ can have, the checkpoints and the runs that are left."""
    panel = Panel.of(["ece", "distance_lower"])
    who = F.ForecastHedging(m=9), F.EmpiricalMean()
    planned = cells([40, 800], 50, panel=panel, forecasters=who, natures=[N.Drift()])
    of_grid, of_any = 2 * 50 * 0.04, 50 * (0.16 + 0.2)
    there = {cell.key: 50 for cell in planned[1:]}
    for known, seconds, said in (({}, of_grid + of_any, 1), (there, of_grid / 2, 0)):
        found = outlook(planned, known)
        assert found.measuring == {"distance_lower": pytest.approx(seconds)}
        assert len([line for line in found.lines() if "measuring" in line]) == said
    assert outlook(cells(panel=Panel.of("ece"))).measuring == {}
    # All rounds, and each of two streams.
    streams = N.Streams((N.Drift(), N.Bernoulli()))
    found = outlook(cells([40, 800], 50, panel=panel, forecasters=who, natures=[streams]))
    assert found.measuring == {"distance_lower": pytest.approx(3 * (of_grid + of_any))}
    assert "measuring takes longest, on one core: distance_lower some 66 s" in found.lines()


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        ({"a": 3.0, "b": 1.0, "c": 0.9}, ""), ({}, ""),
        ({"a": 3.0, "b": 1.0, "c": 0.9, "d": 0.1}, "measuring takes longest, on one core: a some 3 s, b some 1 s"),
    ],
)  # fmt: skip
def test_measures_are_named_from_five_seconds_of_all_and_one_of_its_own(seconds, said):
    assert slow_measures(seconds) == said


# ---------------------------------------------------------------- how it is played


@dataclass(frozen=True)
class Stepped(F.Constant):
    """States the steps of its grid."""

    m: object = None

    def steps_at(self, horizon):
        return self.m


@pytest.mark.parametrize("m", [None, 1, 10**6, 0, 10**6 + 1, 2.5, True, "8"])
def test_the_steps_that_a_forecaster_states_are_a_whole_number(m):
    (cell,) = cells([10], forecasters=[(Stepped(m=m), "stepped")], natures=[N.Drift()])
    if m in (None, 1, 10**6) and m is not True:
        assert steps(cell) == m
    else:
        with pytest.raises(
            InvalidParameter, match=re.escape(f"'stepped': steps_at(10) = {m!r}; expected None, or an")
        ):
            steps(cell)


@pytest.mark.parametrize(
    ("room", "free", "at_once", "runs"),
    [
        (10, 1000, 1, 10), (10, 1000, 4, 10), (10, 1000, 8, 5), (10, 1000, 100, 1), (10, 60, 1, 10), (10, 60, 5, 6),
        (1000, 10_000, 1, 256),
    ],
)  # fmt: skip
def test_runs_are_played_together_as_memory_has_room(monkeypatch, room, free, at_once, runs):
    """Of one batch, of four of all batches, and of half of what is free; figures are in runs."""
    (cell,) = cells([50], forecasters=[F.EmpiricalMean()], natures=[N.Drift()])
    own = bytes_of_run(F.EmpiricalMean(), N.Drift(), 50, None)
    monkeypatch.setattr("onlinecal.engine.memory.free_memory", lambda: free * own)
    monkeypatch.setattr("onlinecal.study.run.ROOM", room * own)
    least = at_once * 256 * own
    for small, expected in ((0, runs), (least, runs), (least + 1, 256)):
        monkeypatch.setattr("onlinecal.study.run.SMALL", small)
        assert batch_size(cell, at_once) == expected


# ---------------------------------------------------------------- what is read


def test_fresh_games_and_prefixes():
    fresh = oc.play("forecast_hedging", "drift", horizon=[100, 400, 1600], runs=2)
    curve = fresh.curve("ece")
    assert curve.rounds.tolist() == [t for t, _ in curve.promises] == [100, 400, 1600]
    prefix = oc.play("forecast_hedging", "drift", horizon=1600, runs=2).curve("ece")
    assert (curve.fresh, prefix.fresh, prefix.rounds[-1]) == (True, False, 1600)
    assert (prefix.totals[-1] == curve.totals[-1]).all()
    assert (fresh.curve("ece", horizon=1600).totals == prefix.totals[-1:]).all()
    # The exponent of what is proved, over these T; none over the prefixes of one game.
    bounds = {t: p.bound for t, p in curve.promises}
    assert curve.proven() == pytest.approx(np.log(bounds[1600] / bounds[100]) / np.log(16))
    assert prefix.proven() is None


@pytest.mark.parametrize("horizon", [100, [5, 50, 100]])
def test_open_questions_of_a_curve_are_those_of_its_rounds(horizon):
    late, now = (oc.play("constant", "drift", horizon=horizon, runs=2, delays=d).curve("ece") for d in (3, 0))
    assert late.open.tolist() == [min(t, 3) for t in late.rounds]
    assert now.open is None


class Bound(oc.worlds.Beds):
    """A world with a bound of its own."""


def test_guarantees_are_drawn_only_where_they_hold_and_certificates_too(monkeypatch):
    natures = [N.Contrarian(), N.Contrarian(sees="draw")]
    study = oc.play(F.ForecastHedging(), natures, horizon=50, runs=1, measures=["ece"])
    # Hedging mixes, so what a contrarian that sees the law forces on deterministic forecasters is not forced on it.
    assert [[p.upper for p in cell.promises] for cell in study.cells] == [[True], [False]]
    # Of late outcomes four are open at once, and 97 are known in the end.
    own, delayed = F.Delayed(F.ForecastHedging()), [Schedule(delays=Constant(3))]
    late = cells([100], 1, panel=Panel.of("ece"), forecasters=[own], natures=natures, schedules=delayed)
    assert [[p.bound for p in promises(cell)] for cell in late] == [
        [own.guarantees[0].delayed(100, 4)],
        [97 / 2],
    ]
    # Of a world that says how many questions it has open at most, if it does.
    for world, bounds in (
        (oc.worlds.Beds(beds=5), [own.guarantees[0].delayed(100, 5)]), (oc.worlds.Queue(), []),
    ):  # fmt: skip
        (cell,) = cells([100], 1, panel=Panel.of("ece"), forecasters=[own], natures=[world])
        assert [p.bound for p in promises(cell)] == bounds
    # A bound from below is of the questions that are known in the end.
    half = Guarantee("ece", "T/2", lambda t: t / 2, "expected", Forecasters.EVERY, "nowhere", upper=False,
                     delayed=lambda known, most: known / 2)  # fmt: skip
    (cell,) = cells([100], 1, panel=Panel.of("ece"), natures=[Bound(beds=5)], forecasters=[F.Constant()])
    monkeypatch.setattr(Bound, "guarantees", (half,))
    assert [p.bound for p in promises(cell)] == [95 / 2]
    curve = oc.play(F.AlmostOneStepAhead(), N.Drift(), horizon=900, runs=2).curve("distance_certificate")
    assert curve.promises[0][1].bound == 61.0
    assert curve.totals.max() <= 61.0


@pytest.mark.parametrize(
    ("at_once", "value", "said"),
    [
        (True, "0.5", "measure 'broken' returned '0.5'; expected a number"),
        (False, np.zeros(2), r"measure 'broken' returned array\(.*\); expected a number; after round 10 of"),
        (False, None, "measure 'broken' returned None; .* of 'constant' against 'bernoulli', run 0"),
        (False, 0, r"failed: ZeroDivisionError: .* \(.*test_plan.py:\d+\); after round 10 of 'constant'"),
        (False, float("nan"), "broken is NaN on .*; after round 10 of 'constant'"),
        (False, Bracket(0.0, 1.0), "measure 'broken' returned Bracket.*; expected a number; after round 10"),
    ],
)
def test_a_broken_measure_is_named_with_the_round(at_once, value, said):
    def broken(gamma):
        if not at_once and gamma.weight < 10:
            return 0.0
        return 1 / value if isinstance(value, int) else value

    with pytest.raises(oc.OnlinecalError, match=said):
        oc.play(F.Constant(), N.Bernoulli(), horizon=40, runs=2, measures=broken)
    if at_once:
        with pytest.raises(oc.OnlinecalError, match=said):
            oc.evaluate([0.5], [1], measures=broken)


def test_columns_of_tasks_say_of_which_kind_they_are():
    class Own:
        name = "mine"

        def account(self, gamma):
            return (0.0,) * len(ACCOUNT)

    panel = Panel.of([], ["umbrella", {"name": "umbrella", "response": "noisy"}, "quadratic", Own()])
    assert [column.kind for column in panel.columns[:: len(ACCOUNT)]] == [
        "decision_task", "decision_task", "quadratic_task", "other_task",
    ]  # fmt: skip
    assert [column.measure for column in panel.columns] == [*ACCOUNT] * 4


def test_a_measure_with_a_limit_has_two_columns_only_where_it_can_be_reached():
    spec = {"name": "interval_ce", "max_levels": 30}
    plain, both = Panel.of([spec], rounds=30), Panel.of([spec], rounds=31)
    assert plain.names == ["interval_ce(max_levels=30)"]
    assert both.names == ["interval_ce(max_levels=30)[lower]", "interval_ce(max_levels=30)[upper]"]
    assert [panel.asked[0].content["bracket"] for panel in (plain, both)] == [
        False,
        True,
    ]  # of the key in files
    few, many = many_levels(0, 20), many_levels(0, 3000)
    assert both.read(few) == plain.read(few) * 2
    low, high = both.read(many)
    assert low <= many.weight * MEASURES["interval_ce"].function(many) <= high
    assert Panel.of(["interval_ce"], rounds=10**5).names == ["interval_ce"]
    assert len(Panel.of(["interval_ce"]).names) == 2
