"""Curves: by name, their means and spread, their ceilings, and what their games have in common."""

import numpy as np
import pytest

import onlinecal as oc
from onlinecal.core.columns import Column
from onlinecal.core.errors import InvalidParameter, UnknownName
from onlinecal.growth import fit_growth
from onlinecal.report.curves import summary


def test_curves_by_name():
    study = oc.play(
        oc.forecasters.Constant(), [oc.natures.Drift(), oc.natures.Bernoulli()], horizon=50, runs=2
    )
    with pytest.raises(InvalidParameter, match="several natures; expected nature= one of drift, bernoulli"):
        study.curve("ece")
    with pytest.raises(UnknownName, match="did you mean 'drift'"):
        study.curve("ece", nature="drfit")
    with pytest.raises(UnknownName, match="unknown measure 'eec'; did you mean 'ece'"):
        study.curve("eec", nature="drift")
    with pytest.raises(InvalidParameter, match="at horizon 7 was not played"):
        study.curve("ece", nature="drift", horizon=7)
    assert len(study.curves()) == 6
    table = study.table()
    assert list(table.columns) == ["forecaster", "nature", "horizon", "measure", "round", "run", "total"]
    drift = table[(table.nature == "drift") & (table.measure == "ece") & (table["round"] == 50)]
    assert drift.total.tolist() == study.curve("ece", nature="drift").totals[-1].tolist()


@pytest.mark.parametrize("level", [0, 1, -1, 2.0, float("nan")])
def test_levels_that_no_interval_has(level):
    curve = oc.Curve(
        Column("measure", "ece"), "f", "n", np.array([10, 20, 40]), np.array([[1.0, 1.1]] * 3), True
    )
    for asked in (curve.exponent, curve.against_rates):
        with pytest.raises(InvalidParameter, match=f"^level = {level!r}; expected a number between 0 and 1$"):
            asked(level)


@pytest.mark.filterwarnings("error")
def test_summary_also_of_infinite_runs():
    assert summary([1.0, 2.0, 3.0]) == (2.0, pytest.approx(4.302652729911275 / 3**0.5))
    assert (summary([5.0]), summary([72.4] * 64)) == ((5.0, float("inf")), (72.4, 0.0))
    inf = float("inf")
    assert (
        str([summary(v) for v in ([inf, 1.0], [inf, inf], [inf, -inf])])
        == "[(inf, nan), (inf, nan), (nan, nan)]"
    )
    curve = oc.Curve(
        Column("measure", "brier"), "f", "n", np.array([10, 20, 40]), np.array([[inf, -inf]] * 3), True
    )
    assert np.isnan(curve.mean).all()
    assert (curve.exponent(), curve.against_rates()) == (None, "")


def test_games_on_a_recorded_stream_are_no_fresh_games(tmp_path):
    """Their outcomes are the same: what runs have in common is not told by how they differ."""
    (tmp_path / "a.csv").write_text(
        "outcome\n" + "\n".join(map(str, np.random.default_rng(0).integers(0, 2, 3000)))
    )
    study = oc.play(
        oc.forecasters.ForecastHedging(),
        [oc.natures.Replay(str(tmp_path / "a.csv")), oc.natures.Bernoulli()],
        horizon=[100, 196, 484, 1000, 1728],
        runs=8,
        measures=["ece"],
    )
    stream, coin = (study.curve("ece", nature=nature) for nature in study.natures)
    assert stream.fresh
    assert (stream.recorded, stream.independent) == (True, False)
    assert (coin.recorded, coin.independent) == (False, True)
    one = fit_growth(stream.rounds, stream.totals.mean(axis=1, keepdims=True), fresh=False, ceiling=1.0)
    assert stream.exponent() == one
    assert stream.against_rates() == ""
    assert coin.exponent() == fit_growth(coin.rounds, coin.totals, fresh=True, ceiling=1.0)
    for nature, said in zip(
        study.natures, ("T: a game each, on the same recorded rounds", "T: a fresh game"), strict=True
    ):
        picture = study.curve("ece", nature=nature).plot().figure
        assert picture._supxlabel.get_text().startswith(said)


def test_a_column_has_the_ceiling_of_its_measure():
    task = {"name": "umbrella", "response": {"name": "rounded", "m": 4}}
    study = oc.play(
        oc.forecasters.Constant(0.3),
        oc.natures.Drift(),
        horizon=60,
        runs=1,
        measures=["ece", "log_loss", {"name": "binned_ece_width", "bins": 3}, "distance_upper", signed_bias],
        tasks=[task],
    )
    ceilings = {name: study.curve(name).ceiling for name in study.measures}
    assert ceilings.pop("log_loss") == ceilings.pop("signed_bias") == np.inf
    assert ceilings.pop("binned_ece_width(bins=3)") == 2.0
    assert len(ceilings) > 5
    assert set(ceilings.values()) == {1.0}


def signed_bias(gamma):
    return gamma.residuals.sum()
