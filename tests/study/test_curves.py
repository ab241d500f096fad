"""Curves: by name, their means and spread, their ceilings, and what their games have in common."""

import numpy as np
import pytest

import onlinecal as oc
from onlinecal.core.columns import ACCOUNT
from onlinecal.core.errors import OnlinecalError
from onlinecal.growth import fit_growth
from onlinecal.growth.words import legend
from onlinecal.report.frames import facts
from onlinecal.study.compare import fronts, paired, ranking
from onlinecal.study.curves import columns_of, summary
from tests.report.made import INF, cell, curve, study

F, N = oc.forecasters, oc.natures
NAMES = {"forecasters": "f", "natures": "n", "measures": "m"}


@pytest.fixture(scope="module")
def coins():
    return oc.play(["constant", "CDL minimiser"], [N.Drift(), N.Bernoulli()], horizon=50, runs=2)


def test_curves_and_cells_are_asked_for_by_labels_and_names(coins):
    label, name = (coins.curve("cdl", who, "drift") for who in ("CDL minimiser", "cdl_minimiser"))
    for one in (name, coins.curve("CDL", "CDL MINIMISER", "Drift")):
        assert (one.totals == label.totals).all()
    assert coins.only(["cdl_minimiser"]).forecasters == coins.only("CDL minimiser").forecasters
    once, twice, plain = map(coins.curves, ("smCE", ["Smooth CE", "smooth_ce"], ["smooth_ce"]))
    assert str(once) == str(twice) == str(plain)
    assert {one.measure for one in plain} == {"smooth_ce"}
    assert len(coins.curves()) == 2 * 2 * 3
    table = coins.table()
    assert list(table.columns) == ["forecaster", "nature", "horizon", "measure", "round", "run", "total"]
    four = study({(f"f{i}", f"n{i}"): [1] for i in range(4)})
    assert repr(four).endswith(
        "(4 cells; forecasters: f0, f1, f2, f3; natures: n0, n1, n2, n3; measures: ece)"
    )
    columns = {f"m{i}": [1] for i in range(5)}
    assert repr(study(*(cell(f"f{i}", columns, f"n{i}") for i in range(5)))) == (
        f"Study(5 cells; {'; '.join(f'{what}: {k}0, {k}1, {k}2, {k}3, and 1 more' for what, k in NAMES.items())})"
    )
    mine = table[
        (table.forecaster == label.forecaster) & (table.nature == "drift") & (table.measure == "cdl")
    ]
    assert mine.total[mine["round"] == 50].tolist() == label.totals[-1].tolist()


def test_without_a_name_plain_measures_are_taken_and_else_all_columns():
    """Neither streams, brackets, tasks nor certificates."""

    def weight(gamma):
        return gamma.weight

    options = {"horizon": [30, 60], "runs": 1, "tasks": ["umbrella"]}
    who, whom = F.AlmostOneStepAhead(), N.Streams((N.Drift(), N.Bernoulli()))
    played = oc.play(who, whom, measures=["ece", "distance_lower", weight, "cdl"], **options)
    assert [column.name for column in columns_of(played, None)] == ["ece", "weight", "cdl"]
    assert [column.name for column in columns_of(played, None, 2)] == ["ece", "weight"]
    alone = oc.play("constant", "drift", measures=[], **options)
    assert [column.measure for column in columns_of(alone, None)] == [*ACCOUNT]


def test_a_bracket_is_asked_for_by_its_own_name():
    played = oc.play(["constant", "empirical_mean"], N.Drift(), horizon=[30, 60, 90], runs=3,
                     measures=["ece", "distance_lower"])  # fmt: skip
    asked = {"measure": "Distance lower", "forecaster": "constant"}
    upper = played.curve("distance_lower[upper]", "constant")
    assert played.curve(**asked).measure == upper.measure
    assert played.exponent(**asked) == upper.exponent()
    both = ["distance_lower[lower]", "distance_lower[upper]"]
    assert list(dict.fromkeys(one.measure for one in played.curves("distance_lower"))) == both
    assert played.curve("distance lower[lower]", "constant").measure == both[0]
    assert ranking(played, "distance_lower")[0].measures == (both[1],)
    assert fronts(played, "ece", "distance_lower")[0].measures == ("ece", both[1])
    assert paired(played, "distance_lower")[0]["measure"].unique().tolist() == [both[1]]
    with pytest.raises(OnlinecalError, match=r"did you mean 'distance_lower'\?$"):
        played.curve("distnce_lower", "constant")
    with pytest.raises(OnlinecalError, match=r"unknown measure 'zebra'; known: distance_lower, ece$"):
        played.curves("zebra")


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (lambda s: s.curve("ece", "constant"), "several natures; expected nature= one of drift, bernoulli"),
        (lambda s: s.curve("ece", "constant", "drfit"), "did you mean 'drift'"),
        (lambda s: s.curve("ece", "minimiser", "drift"), "unknown forecaster 'minimiser'"),
        (lambda _: study({(f"constant (p={p})", "n"): [1] for p in (0.1, 0.2)}).curve("ece", "constant"), "forecaster"),
        (lambda s: s.curve("eec", "constant", "drift"), "unknown measure 'eec'; did you mean 'ece'"),
        (lambda s: s.curve("ece", "constant", "drift", horizon=7), "at horizon 7 was not played"),
        (lambda s: s.curves("smoth_ce"), "unknown measure 'smoth_ce'; did you mean 'smooth_ce'"),
        (lambda s: s.curves([]), "no measures to draw; expected at least one"),
        (lambda s: s.curves()[0].exponent(float("nan")), "^level = nan; expected a number between 0 and 1$"),
        (lambda s: s.curves()[0].against_rates(1), "^level = 1; expected a number between 0 and 1$"),
    ],
)  # fmt: skip
def test_what_is_asked_for_in_vain(coins, asked, said):
    with pytest.raises(OnlinecalError, match=said):
        asked(coins)


def test_summary_also_of_infinite_runs():
    assert summary([1.0, 2.0, 3.0]) == (2.0, pytest.approx(4.302652729911275 / 3**0.5))
    assert (summary([5.0]), summary([72.4] * 64)) == ((5.0, INF), (72.4, 0.0))
    endless = [summary(v) for v in ([INF, 1.0], [INF, INF], [INF, -INF])]
    assert str(endless) == "[(inf, nan), (inf, nan), (nan, nan)]"
    one = curve([[INF, -INF]] * 4)
    assert np.isnan(one.mean).all()
    assert (one.exponent(), one.against_rates()) == (None, "")


def test_games_on_a_recorded_stream_are_no_fresh_games(tmp_path):
    """Their outcomes are the same: what runs have in common is not told by how they differ."""
    rows = map(str, np.random.default_rng(0).integers(0, 2, 3000))
    (tmp_path / "a.csv").write_text("\n".join(["outcome", *rows]))
    natures = [N.Replay(str(tmp_path / "a.csv")), N.Bernoulli()]
    horizons = [100, 196, 484, 1000, 1728]
    played = oc.play(F.ForecastHedging(), natures, horizon=horizons, runs=8, measures=["ece"])
    for nature, recorded in ((played.natures[0], True), ("bernoulli", False)):
        one = played.curve("ece", nature=nature)
        assert (one.fresh, one.recorded, one.independent) == (True, recorded, not recorded)
        totals = one.totals.mean(axis=1, keepdims=True) if recorded else one.totals
        assert one.exponent() == fit_growth(one.rounds, totals, fresh=not recorded)
        assert one.against_rates() == "" or not recorded
        assert ("recorded outcomes, the same in all runs" in facts([one])) == recorded


@pytest.mark.parametrize(
    ("fresh", "last", "cut"), [(True, 10_000, False), (False, 1000, False), (False, 10_000, True)]
)
def test_the_last_two_decades_of_one_game_are_fitted_and_that_is_said(fresh, last, cut):
    times = [t for t in (20, 50, 100, 200, 300, 500, 1000, 3000, 10_000) if t <= last]
    found = curve([[t**0.5] * 2 for t in times], times, measure="ece", fresh=fresh).exponent()
    assert found.cut is cut
    assert found.points == len(times) - 2 * cut
    assert ("along one game" in legend([found])[0]) is cut
