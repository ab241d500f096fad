"""Cells as they are played: what is tracked, batches, prefixes, bounds, certificates."""

import pytest

import onlinecal as oc
from onlinecal.core.errors import InvalidParameter
from onlinecal.decisions.tasks import DecisionTask, swap_regret, umbrella
from onlinecal.engine.game import Game
from tests.results import cells


def test_what_is_tracked_is_what_the_measures_say():
    study = oc.play(
        oc.forecasters.ForecastHedging(),
        oc.natures.Drift(),
        horizon=300,
        runs=5,
        seed=7,
        measures=["ece", "cdl", oc.measures.smooth_ce],
        tasks=["umbrella", {"name": "mine", "payoffs": [[1, 0], [0, 1]]}],
    )
    # The same games again, by hand.
    game = Game(oc.forecasters.ForecastHedging(), oc.natures.Drift(), horizon=300, runs=range(5), seed=7)
    curve = study.curve("ece")
    for i, t in enumerate(curve.rounds):
        game.advance(int(t))
        for run, gamma in enumerate(game.gammas()):
            assert curve.totals[i, run] == t * oc.measures.ece(gamma)
            assert study.curve("cdl").totals[i, run] == t * oc.measures.cdl(gamma)
            assert study.curve("smooth_ce").totals[i, run] == t * oc.measures.smooth_ce(gamma)
            swap = study.curve(f"swap_regret[{umbrella().name}]").totals[i, run]
            assert swap == t * swap_regret(gamma, umbrella())
            mine = study.curve("swap_regret[mine]").totals[i, run]
            assert mine == t * swap_regret(gamma, DecisionTask("mine", [[1, 0], [0, 1]]))


def test_fresh_games_and_prefixes():
    fresh = oc.play(oc.forecasters.ForecastHedging(), oc.natures.Drift(), horizon=[100, 400, 1600], runs=2)
    curve = fresh.curve("ece")
    assert curve.fresh
    assert curve.rounds.tolist() == [100, 400, 1600]
    assert [t for t, _ in curve.promises] == [100, 400, 1600]
    prefix = oc.play(oc.forecasters.ForecastHedging(), oc.natures.Drift(), horizon=1600, runs=2).curve("ece")
    assert not prefix.fresh
    assert prefix.rounds[-1] == 1600
    assert (prefix.totals[-1] == curve.totals[-1]).all()
    assert (fresh.curve("ece", horizon=1600).totals == prefix.totals[-1:]).all()


def test_guarantees_are_drawn_only_where_they_hold():
    natures = [oc.natures.Contrarian(), oc.natures.Contrarian(sees="draw")]
    study = oc.play(oc.forecasters.ForecastHedging(), natures, horizon=50, runs=1, measures=["ece"])
    uppers = [[p.upper for p in cell.promises] for cell in study.cells]
    # Hedging mixes, so what a contrarian who sees the law forces on deterministic forecasters is not forced on it.
    assert uppers == [[True], [False]]


def test_certificates_are_curves_too():
    study = oc.play(oc.forecasters.AlmostOneStepAhead(), oc.natures.Drift(), horizon=900, runs=2)
    curve = study.curve("distance_certificate")
    assert curve.promises[0][1].bound == 61.0
    assert curve.totals.max() <= 61.0


def test_a_recorded_stream_is_played_as_long_as_it_lasts(tmp_path):
    file = tmp_path / "a.csv"
    file.write_text("outcome\n" + "0\n1\n" * 60)
    replay = oc.natures.Replay(str(file))
    planned = cells(horizons=(50, 100, 200), forecasters=[oc.forecasters.Constant()], natures=[replay])
    assert [c.horizon for c in planned] == [50, 100, 120]
    with pytest.raises(InvalidParameter, match="has 120 rounds; expected at most 120"):
        cells(horizons=[200], natures=[replay])


def test_only_some_of_a_study():
    study = oc.play(
        [oc.forecasters.Constant(), oc.forecasters.EmpiricalMean()], oc.natures.Drift(), horizon=50, runs=1
    )
    assert study.only(["constant"]).forecasters == ["constant"]
    assert study.only(None, ["drift"]).natures == ["drift"]
