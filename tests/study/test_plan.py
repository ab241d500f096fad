"""Plans and panels: what is played and read at checkpoints, and what is refused before anything is."""

import numpy as np
import pytest

import onlinecal as oc
from onlinecal.core.columns import ACCOUNT
from onlinecal.core.errors import InvalidParameter
from onlinecal.decisions.tasks import DecisionTask, swap_regret, umbrella
from onlinecal.engine.game import Game
from onlinecal.measures import MEASURES
from onlinecal.schedules.base import Clock
from onlinecal.study import panel as panels
from onlinecal.study.outlook import outlook
from onlinecal.study.panel import Panel
from onlinecal.study.planning import Entry
from onlinecal.study.promises import promises
from onlinecal.sweeping import planned
from tests.results import F, N, cells, equal
from tests.strategies import many_levels

# ---------------------------------------------------------------- what is refused


class Tired:
    def __init__(self, horizon):
        self.rest = 1 / (400 - horizon)

    def forecast(self): ...
    def update(self, forecast, outcome): ...


LENGTHS = {"horizon": [100, 400, 4000]}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"horizon": 0}, "expected an integer from 1"),
        ({"horizon": [100, 50, 100]}, "horizon 100 is given twice"),
        ({"horizon": 10.5}, "horizon = 10.5; expected an integer"),
        ({"runs": 0}, "runs = 0"),
        ({"seed": "x"}, "seed = 'x'"),
        ({"per_decade": 10**12}, "per_decade = 1000000000000; expected an integer from 1 to 100"),
        *(({"keep": keep}, f"keep = {keep!r}; expected 'all', 'none'") for keep in ("some", None, 1, 2.5, True, 2**41)),
        ({"measures": []}, "no measures and no tasks"),
        ({"measures": ["ece", "ece"]}, "'ece' is asked for twice"),
        ({"measures": ["ece", oc.measures.ece]}, "asked for twice"),
        ({"measures": [{"name": "binned_ece", "bins": 0}]}, "bins = 0"),
        ({"measures": [{"name": lambda gamma: 0.0, "x": 1}]}, "measure '<lambda>'"),
        ({"measures": ["smooth_ece_at"]}, "'smooth_ece_at' needs the option 'sigma'; .* sigma = 0.1 }$"),
        ({"measures": ["smooth_ece_at", "ece", "random_interval_ce"]}, "'sigma'; .*; .* needs the option 'epsilon'"),
        ({"measures": ["ece", "true_distance"], "horizon": [100, 500]}, "'true_distance' .* T = 500; expected T ≤ 400"),
        ({"measures": [3]}, "measure 3; expected a name"),
        ({"tasks": ["umbrela"]}, "unknown task 'umbrela'; did you mean 'umbrella'"),
        ({"tasks": [{"name": "mine", "payoffs": [[0, 2]]}]}, r"payoffs\[0\]\[1\] = 2"),
        ({"tasks": [{"name": "mine", "payoffs": [[0, 1]], "action": ["a"]}]}, "has no option 'action'"),
        ({"tasks": [{"name": "mine", "payofs": [[0, 1]]}]}, "'mine' has no option 'payofs'; did you mean 'payoffs'?"),
        ({"tasks": [{"name": "v_shaped", "s": 0.3}]}, "task 'v_shaped' has no option 's'; known: t"),
        ({"nature": 3}, "3 is not a nature; expected a Nature, or a class with"),
        ({"nature": N.Replay}, "nature 'replay' needs the parameter 'file'"),
        ({"forecaster": [F.Constant(), F.Constant()]}, "two forecasters are called 'constant'"),
        ({"delays": [0, 0]}, "two schedules are called 'no delay'; leave one out"),
        ({"forecaster": []}, "no forecasters"),
        ({"forecaster": F.ForecastHedging("1500-T"), **LENGTHS}, "' at T = 4000: m = '1500-T' is a grid of -2500"),
        ({"forecaster": Tired, **LENGTHS}, "'Tired' cannot be started at T = 400: ZeroDivisionError: division by zero"),
    ],
)  # fmt: skip
def test_what_cannot_be_played_is_said_before_playing(options, said, monkeypatch):
    monkeypatch.setattr(Game, "advance", lambda *_: pytest.fail("a game was played"))
    options = {"forecaster": F.Constant(), "nature": N.Drift(), "horizon": 50, "runs": 2} | options
    with pytest.raises(oc.OnlinecalError, match=said):
        oc.play(**options)


def test_all_measures_are_all_that_games_can_have():
    ours = [name for name in MEASURES if name not in ("smooth_ece_at", "random_interval_ce")]
    for horizon, short in ((400, ["true_distance"]), ([100, 401], [])):
        games = {"horizons": [horizon] if isinstance(horizon, int) else horizon, "ends": True}
        found = planned_with("all", **games).panel
        assert [asked.record.name for asked in found.measures] == [*MEASURES, *short]
        assert {*ours} < {asked.name for asked in found.measures}
    found = planned_with(
        ["brier", "all", {"name": "ece"}, {"name": "binned_ece", "bins": 3}], horizons=[9]
    ).panel
    assert [asked.name for asked in found.measures][-3:] == ["true_distance", "ece", "binned_ece(bins=3)"]
    assert len(found.measures) == len(MEASURES) + 1


def planned_with(measures, **games):
    options = {
        "seed": 0,
        "runs": 1,
        "tasks": (),
        "arrivals": "every_unit",
        "delays": 0,
        "decision_makers": (),
    }
    return planned("constant", "drift", measures=measures, **options, **games)[0]


class Short(F.Constant):
    """Plays 16 rounds."""

    length = 16


def test_what_is_longer_than_a_player_can_play_is_left_out(tmp_path):
    short, constant, drift = Short(), F.Constant(), {"natures": [N.Drift()]}
    planned = cells([10, 16, 40], forecasters=[short, constant], **drift)
    assert [(cell.forecaster.strategy, cell.horizon) for cell in planned] == [
        (short, 10), (short, 16), *((constant, t) for t in (10, 16, 40))
    ]  # fmt: skip
    ((*_, why),) = planned.incompatible
    assert why == "horizon = 40, but forecaster 'short' plays 16 rounds; expected at most 16"
    assert [cell.forecaster.strategy for cell in cells([40], forecasters=[short, constant], **drift)] == [
        constant
    ]
    assert outlook(planned).cells == 5
    file = tmp_path / "a.csv"
    file.write_text("outcome,base\n" + "0,0.5\n1,0.5\n" * 60)
    replay = N.Replay(str(file))
    recorded = cells([50, 100, 200], forecasters=[constant], natures=[replay])
    assert [c.horizon for c in recorded] == [50, 100, 120]
    # Pairs that cannot play each other.
    based = N.Replay(str(file), base="base")
    planned = cells([10, 20], forecasters=[F.OnlinePlatt(), constant], natures=[N.Drift(), based])
    assert [(c.forecaster.label, c.nature.strategy) for c in planned[::2]] == [
        ("constant", N.Drift()), ("online platt", based), ("constant", based)
    ]  # fmt: skip
    said = "forecaster 'online_platt' needs base, which nature 'drift' does not reveal"
    assert planned.incompatible == (("online platt", "drift", said),)
    assert (len(planned[:1]), planned[:1].incompatible) == (1, planned.incompatible)
    for options, said in (
        ({"forecasters": [short], **drift}, "plays 16 rounds"),
        ({"natures": [replay], "horizons": [200]}, "has 120 rounds; expected at most 120"),
        ({"forecasters": [F.OnlinePlatt()]}, "does not reveal; nor can 1 other pair be played"),
    ):
        with pytest.raises(InvalidParameter, match=said):
            cells(**{"horizons": [40]} | options)


# ---------------------------------------------------------------- what is read


def test_what_is_tracked_is_what_the_measures_say():
    mine = {"name": "mine", "payoffs": [[1, 0], [0, 1]]}
    asked = {"measures": ["ece", "cdl", oc.measures.smooth_ce], "tasks": ["umbrella", mine]}
    study = oc.play(F.ForecastHedging(), N.Drift(), horizon=300, runs=5, seed=7, **asked)
    # The same games again, by hand.
    game = Game(F.ForecastHedging(), N.Drift(), horizon=300, runs=range(5), seed=7)
    values = {
        "ece": oc.measures.ece, "cdl": oc.measures.cdl, "smooth_ce": oc.measures.smooth_ce,
        **{f"{name}[umbrella]": lambda gamma, i=i: umbrella().account(gamma)[i] for i, name in enumerate(ACCOUNT)},
        "swap_regret[mine]": lambda gamma: swap_regret(gamma, DecisionTask("mine", mine["payoffs"])),
    }  # fmt: skip
    for i, t in enumerate(study.curve("ece").rounds):
        game.advance(int(t))
        for run, gamma in enumerate(game.gammas()):
            for name, value in values.items():
                assert study.curve(name).totals[i, run] == t * value(gamma)


def test_fresh_games_and_prefixes():
    fresh = oc.play("forecast_hedging", "drift", horizon=[100, 400, 1600], runs=2)
    curve = fresh.curve("ece")
    assert curve.rounds.tolist() == [t for t, _ in curve.promises] == [100, 400, 1600]
    prefix = oc.play("forecast_hedging", "drift", horizon=1600, runs=2).curve("ece")
    assert (curve.fresh, prefix.fresh, prefix.rounds[-1]) == (True, False, 1600)
    assert (prefix.totals[-1] == curve.totals[-1]).all()
    assert (fresh.curve("ece", horizon=1600).totals == prefix.totals[-1:]).all()


def test_guarantees_are_drawn_only_where_they_hold_and_certificates_too():
    natures = [N.Contrarian(), N.Contrarian(sees="draw")]
    study = oc.play(F.ForecastHedging(), natures, horizon=50, runs=1, measures=["ece"])
    # Hedging mixes, so what a contrarian that sees the law forces on deterministic forecasters is not forced on it.
    assert [[p.upper for p in cell.promises] for cell in study.cells] == [[True], [False]]
    curve = oc.play(F.AlmostOneStepAhead(), N.Drift(), horizon=900, runs=2).curve("distance_certificate")
    assert curve.promises[0][1].bound == 61.0
    assert curve.totals.max() <= 61.0


def test_classes_and_single_names_stand_for_themselves():
    options = {"horizon": 50, "runs": 2}
    study = oc.play(F.ForecastHedging, N.Drift, measures="ece", tasks={"name": "umbrella"}, **options)
    lists = {"measures": ["ece"], "tasks": ["umbrella"]}
    assert equal(study, oc.play([F.ForecastHedging()], [N.Drift()], **lists, **options))
    assert [row.name for row in oc.evaluate([0.5], [1], measures="ece").rows] == ["ece"]
    two = oc.play([F.Constant(), F.EmpiricalMean()], N.Drift(), horizon=50, runs=1)
    assert two.only(["constant"]).forecasters == ["constant"]
    assert two.only(None, ["drift"]).natures == ["drift"]


@pytest.mark.parametrize(
    ("at_once", "value", "said"),
    [
        (True, "0.5", "measure 'broken' returned '0.5'; expected a number"),
        (False, np.zeros(2), r"measure 'broken' returned array\(.*\); expected a number; after round 10 of"),
        (False, None, "measure 'broken' returned None; .* of 'constant' against 'bernoulli', run 0"),
        (False, 0, r"failed: ZeroDivisionError: .* \(.*test_plan.py:\d+\); after round 10 of 'constant'"),
        (False, float("nan"), "broken is NaN on .*; after round 10 of 'constant'"),
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


def test_a_measure_with_a_limit_has_two_columns_only_where_it_can_be_reached():
    spec = {"name": "interval_ce", "max_levels": 30}
    plain, both = Panel.of([spec], rounds=30), Panel.of([spec], rounds=31)
    assert plain.names == ["interval_ce(max_levels=30)"]
    assert both.names == ["interval_ce(max_levels=30)[lower]", "interval_ce(max_levels=30)[upper]"]
    few, many = many_levels(0, 20), many_levels(0, 3000)
    assert both.read(few) == plain.read(few) * 2
    low, high = both.read(many)
    assert low <= many.weight * MEASURES["interval_ce"].function(many) <= high
    assert Panel.of(["interval_ce"], rounds=10**5).names == ["interval_ce"]
    assert len(Panel.of(["interval_ce"]).names) == 2


# ---------------------------------------------------------------- very many cells


def many():
    who, whom = [F.ForecastHedging(m) for m in range(2, 10)], [N.Bernoulli(i / 100) for i in range(1, 9)]
    return cells((4,), 1, forecasters=who, natures=whom)


def test_bounds_are_found_once_for_each_player_and_column(monkeypatch):
    followed, names = [], Entry.following.__globals__
    following, asked, guarantees = names["following"], [], F.ForecastHedging.guarantees.fget
    monkeypatch.setitem(names, "following", lambda *a: followed.append(a) or following(*a))
    seen = property(lambda self: asked.append(self) or guarantees(self))
    monkeypatch.setattr(F.ForecastHedging, "guarantees", seen)
    fresh = many()
    found = [promises(cell) for cell in fresh]
    assert len(asked) == 8
    entries = [cell.forecaster for cell in fresh[:8]] + [cell.nature for cell in fresh[::8]]
    stated = sum(len(entry.guarantees) for entry in entries)
    assert len(followed) <= stated * len(fresh[0].panel.columns) < len(fresh) * len(fresh[0].panel.columns)
    # Each is that of its pair, whichever was asked for before.
    assert found == [promises(many()[i]) for i in range(len(fresh))]
    assert len(set(found)) > 1


def test_nothing_is_measured_or_drawn_to_see_that_a_study_can_be_played(monkeypatch):
    """Machine code for that takes longer to load than a finished study of some thousand cells to read."""
    monkeypatch.setattr(panels, "measured", lambda *_: pytest.fail("a measure of the catalogue was tried"))
    monkeypatch.setattr(
        Clock, "check", lambda *_: pytest.fail("a clock that is always the same was looked at")
    )
    assert Panel.of(["ece", "cdl"], ["umbrella"]).names[0] == "ece"
    many()
