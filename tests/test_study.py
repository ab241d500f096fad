"""Plans, cells, curves, and what is made of them."""

from dataclasses import replace

import numpy as np
import pytest

import onlinecal as oc
from onlinecal.core.columns import Column
from onlinecal.core.errors import InvalidParameter, UnknownName
from onlinecal.decisions.tasks import DecisionTask, swap_regret, umbrella
from onlinecal.engine.game import Game
from onlinecal.growth import fit_growth, simultaneous
from onlinecal.growth.words import line
from onlinecal.report.curves import summary
from onlinecal.study import Entry, plan, play_cell
from onlinecal.study.panel import Panel

PANEL = Panel.of(["ece", {"name": "binned_ece", "bins": 4}], ["umbrella"])


def cells(horizons=(50, 100, 200), runs=3, seed=1, panel=PANEL, forecasters=None, natures=None):
    return plan(
        [
            Entry.of(f)
            for f in forecasters or (oc.forecasters.ForecastHedging(), oc.forecasters.AlmostOneStepAhead())
        ],
        [Entry.of(n) for n in natures or (oc.natures.Drift(), oc.natures.Contrarian())],
        horizons=horizons,
        runs=runs,
        seed=seed,
        panel=panel,
    )


def equal(first, second):
    return all(
        (a.forecaster, a.nature, a.horizon, a.promises) == (b.forecaster, b.nature, b.horizon, b.promises)
        and (a.rounds == b.rounds).all()
        and list(a.totals) == list(b.totals)
        and all((a.totals[m] == b.totals[m]).all() for m in a.totals)
        for a, b in zip(first.cells, second.cells, strict=True)
    )


# ---------------------------------------------------------------- playing


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


def test_many_runs_are_played_in_batches_without_a_difference(monkeypatch):
    (cell,) = cells(
        horizons=[100], runs=10, forecasters=[oc.forecasters.CDLMinimiser()], natures=[oc.natures.Drift()]
    )
    whole = play_cell(cell)
    monkeypatch.setattr("onlinecal.study.run.BATCH", 4)
    assert all((whole.totals[m] == total).all() for m, total in play_cell(cell).totals.items())


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
    assert [c.horizon for c in cells(forecasters=[oc.forecasters.Constant()], natures=[replay])] == [
        50,
        100,
        120,
    ]
    with pytest.raises(InvalidParameter, match="has 120 rounds; expected at most 120"):
        cells(horizons=[200], natures=[replay])


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


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"horizon": 0}, "expected an integer from 1"),
        ({"horizon": 10**12}, "expected an integer from 1"),
        ({"horizon": []}, "no horizons"),
        ({"horizon": [100, 50, 100]}, "horizon 100 is given twice"),
        ({"horizon": 10.5}, "horizon = 10.5; expected an integer"),
        ({"runs": 0}, "runs = 0"),
        ({"runs": 2.0}, "runs = 2.0"),
        ({"seed": "x"}, "seed = 'x'"),
        ({"per_decade": 10**12}, "per_decade = 1000000000000; expected an integer from 1 to 100"),
        ({"per_decade": 0}, "per_decade = 0"),
        ({"measures": []}, "no measures and no tasks"),
        ({"measures": ["ece", "ece"]}, "'ece' is asked for twice"),
        ({"measures": ["eec"]}, "did you mean 'ece'"),
        ({"measures": [{"name": "binned_ece", "bns": 3}]}, "has no option 'bns'; did you mean 'bins'"),
        ({"measures": [{"name": "binned_ece", "bins": 0}]}, "bins = 0"),
        ({"measures": [3]}, "measure 3; expected a name"),
        ({"tasks": ["umbrela"]}, "did you mean 'umbrella'"),
        ({"tasks": [{"name": "mine", "payoffs": [[0, 2]]}]}, r"payoffs\[0\]\[1\] = 2"),
        ({"tasks": [{"name": "mine", "payoffs": [[0, 1]], "x": 1}]}, "no option 'x'"),
        ({"tasks": [{"name": "umbrella", "price": 1}]}, "price"),
    ],
)
def test_what_cannot_be_played_is_said_before_playing(options, said):
    options = {"horizon": 50, "runs": 2} | options
    with pytest.raises(oc.OnlinecalError, match=said):
        oc.play(oc.forecasters.Constant(), oc.natures.Drift(), **options)


def test_classes_and_single_names_stand_for_themselves():
    study = oc.play(
        oc.forecasters.ForecastHedging,
        oc.natures.Drift,
        horizon=50,
        runs=2,
        measures="ece",
        tasks={"name": "umbrella"},
    )
    listed = oc.play(
        [oc.forecasters.ForecastHedging()],
        [oc.natures.Drift()],
        horizon=[50],
        runs=2,
        measures=["ece"],
        tasks=["umbrella"],
    )
    assert equal(study, listed)
    assert [row.name for row in oc.evaluate([0.5], [1], measures="ece").rows] == ["ece"]
    with pytest.raises(InvalidParameter, match="nature 'replay' needs the parameter 'file'"):
        oc.play(oc.forecasters.Constant, oc.natures.Replay, horizon=5)
    with pytest.raises(InvalidParameter, match="3 is not a nature; expected a Nature, or its class"):
        oc.play(oc.forecasters.Constant, 3, horizon=5)


def test_what_depends_on_the_horizon_is_refused_before_the_first_game(monkeypatch):
    def never(*_):
        raise AssertionError("a game was played")

    class Tired:
        def __init__(self, horizon):
            self.rest = 1 / (400 - horizon)

        def forecast(self): ...
        def update(self, forecast, outcome): ...

    monkeypatch.setattr(Game, "advance", never)
    for forecaster, said in (
        (
            oc.forecasters.ForecastHedging("1500-T"),
            "'forecast_hedging' at T = 4000: m = '1500-T' is a grid of -2500",
        ),
        (Tired, "'Tired' cannot be started at T = 400: ZeroDivisionError: division by zero"),
    ):
        with pytest.raises(InvalidParameter, match=said):
            oc.play(forecaster, oc.natures.Drift(), horizon=[100, 400, 4000], runs=2)


def test_labels_must_differ():
    with pytest.raises(InvalidParameter, match="two forecasters are called 'constant'"):
        oc.play([oc.forecasters.Constant(), oc.forecasters.Constant()], oc.natures.Drift(), horizon=5)


def test_a_measure_of_ones_own_and_one_that_is_nan():
    def halved(gamma):
        return oc.measures.ece(gamma) / 2

    def broken(gamma):
        return float("nan") if gamma.weight > 6 else 0.0

    study = oc.play(
        oc.forecasters.Constant(), oc.natures.Bernoulli(1.0), horizon=40, runs=1, measures=[halved]
    )
    assert study.curve("halved").totals[-1, 0] == 10.0
    with pytest.raises(oc.OnlinecalError, match="broken is NaN"):
        oc.play(oc.forecasters.Constant(), oc.natures.Bernoulli(1.0), horizon=40, runs=1, measures=[broken])


@pytest.mark.parametrize(
    ("at_once", "value", "said"),
    [
        (True, "0.5", "measure 'broken' returned '0.5'; expected a number"),
        (
            False,
            np.zeros(2),
            r"measure 'broken' returned array\(\[0., 0.\]\); expected a number; after round 10 of",
        ),
        (False, None, "measure 'broken' returned None; .* of 'constant' against 'bernoulli', run 0"),
        (
            False,
            0,
            r"'broken' failed: ZeroDivisionError: .* \(.*test_study.py:\d+\); after round 10 of 'constant'",
        ),
        (False, float("nan"), "broken is NaN on .*; after round 10 of 'constant'"),
    ],
)
def test_a_broken_measure_is_named_with_the_round(at_once, value, said):
    def broken(gamma):
        if not at_once and gamma.weight < 10:
            return 0.0
        return 1 / value if isinstance(value, int) else value

    with pytest.raises(oc.OnlinecalError, match=said):
        oc.play(oc.forecasters.Constant(), oc.natures.Bernoulli(), horizon=40, runs=2, measures=broken)
    if at_once:
        with pytest.raises(oc.OnlinecalError, match=said):
            oc.evaluate([0.5], [1], measures=broken)


def test_summary():
    mean, half = summary([1.0, 2.0, 3.0])
    assert mean == 2.0
    assert half == pytest.approx(4.302652729911275 / 3**0.5)
    assert summary([5.0]) == (5.0, float("inf"))


@pytest.mark.parametrize("level", [0, 1, -1, 2.0, float("nan")])
def test_levels_that_no_interval_has(level):
    curve = oc.Curve(
        Column("measure", "ece"), "f", "n", np.array([10, 20, 40]), np.array([[1.0, 1.1]] * 3), True
    )
    for asked in (curve.exponent, curve.verdict):
        with pytest.raises(InvalidParameter, match=f"^level = {level!r}; expected a number between 0 and 1$"):
            asked(level)


def test_only_what_was_played_can_be_asked_for():
    study = oc.play(oc.forecasters.Constant(), oc.natures.Drift(), horizon=[20, 40], runs=1, measures="ece")
    assert study.only(["constant"], ["drift"]).cells == study.cells
    with pytest.raises(UnknownName, match="unknown forecaster 'constnat'; did you mean 'constant'"):
        study.only(["constnat"])
    with pytest.raises(UnknownName, match="unknown nature 'rain'"):
        study.only(natures=["rain"])


@pytest.mark.filterwarnings("error")
def test_summary_of_infinite_runs_says_nothing_on_stderr():
    inf = float("inf")
    assert (
        str([summary(v) for v in ([inf, 1.0], [inf, inf], [inf, -inf])])
        == "[(inf, nan), (inf, 0.0), (nan, nan)]"
    )
    curve = oc.Curve(
        Column("measure", "brier"), "f", "n", np.array([10, 20, 40]), np.array([[inf, -inf]] * 3), True
    )
    assert np.isnan(curve.mean).all()
    assert (curve.exponent(), curve.verdict()) == (None, "")


def test_summary_of_identical_runs_has_no_spread():
    assert summary([72.4] * 64) == (72.4, 0.0)


# ---------------------------------------------------------------- exponents side by side


def test_the_heat_map_shows_the_exponents(tmp_path):
    from onlinecal.report.exponent_plot import heat_map, heats
    from onlinecal.report.plots import save

    study = oc.play(
        [oc.forecasters.ForecastHedging(), oc.forecasters.Constant(1.0)],
        [oc.natures.Drift(), oc.natures.Bernoulli(1.0)],
        horizon=[100, 300, 900],
        runs=4,
        measures=["ece", "cdl"],
    )
    heat = heats(study, ["ece"])[0]
    fit = study.exponent("ece", "forecast hedging", "drift", level=simultaneous(4))  # of four cells
    assert heat.values[0, 0] == fit.value
    assert heat.halves[0, 0] == (fit.high - fit.low) / 2
    assert np.isnan(heat.values[1, 1])  # who says 1 to those who always come
    figure = heat_map(study, ["ece", "cdl"], title="A title")
    texts = [t.get_text() for t in figure.axes[0].texts]
    assert f"{fit.value:.2f}\n±{heat.halves[0, 0]:.2f}" in texts
    assert "–" in texts
    save(figure, tmp_path / "heat.png")
    with pytest.raises(InvalidParameter, match="no measures"):
        heat_map(study, [])


def test_the_heat_map_says_what_was_played(tmp_path):
    from onlinecal.report.exponent_plot import heat_map

    (tmp_path / "a.csv").write_text("outcome\n" + "0\n1\n1\n" * 150)
    natures = [oc.natures.Drift(), oc.natures.Replay(str(tmp_path / "a.csv"))]

    def caption(**options):
        study = oc.play(oc.forecasters.ForecastHedging(), runs=2, measures=["ece"], **options)
        return " ".join(heat_map(study, ["ece"])._supxlabel.get_text().split())

    fresh = caption(nature=natures[0], horizon=[100, 300, 900])
    assert fresh.startswith("Fresh games, T = 100 … 900; 2 runs. Exponents are means over these T; ± half")
    prefixes = caption(nature=natures[0], horizon=5000)
    assert prefixes.startswith("Prefixes of one game, T = 56 … 5,000; 2 runs.")
    assert "resh" not in prefixes
    both = caption(nature=natures, horizon=[100, 200, 400])
    assert both.startswith(
        "Fresh games, T = 100 … 400; games of their own on one recorded stream, T = 100 … 400;"
    )


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
    assert stream.verdict() == ""
    assert coin.exponent() == fit_growth(coin.rounds, coin.totals, fresh=True, ceiling=1.0)
    for nature, said in zip(
        study.natures, ("T: a game each, on the same recorded rounds", "T: a fresh game"), strict=True
    ):
        picture = study.curve("ece", nature=nature).plot()
        assert picture._supxlabel.get_text().startswith(said)


def test_a_table_of_many_intervals_holds_as_a_whole():
    from onlinecal.report.console import totals

    study = oc.play(
        [oc.forecasters.ForecastHedging(), oc.forecasters.EmpiricalMean()],
        [oc.natures.Drift(), oc.natures.Bernoulli()],
        horizon=[100, 196, 484, 1000],
        runs=4,
        measures=["ece", "cdl"],
    )
    for measures, cells in ((None, 8), (["ece"], 4)):
        rows = totals(study, measures)
        assert len(rows) == cells
        for row in rows:
            growth = study.exponent(row["measure"], row["forecaster"], row["nature"], level=1 - 0.05 / cells)
            assert row["exponent"] == growth.as_json()
    curve = study.curve("ece", "forecast hedging", "drift")
    assert curve.exponent(0.99).low < curve.exponent().low


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


def test_the_markdown_table_stands_beside_what_is_proven():
    from onlinecal.report.console import exponents_markdown

    study = oc.play(
        [oc.forecasters.ForecastHedging(), oc.forecasters.Constant()],
        oc.natures.Drift(),
        horizon=[1000, 1728, 4096, 8000, 16_384],
        runs=4,
        measures=["ece"],
    )
    curve = study.curve("ece", "forecast hedging")
    bound = oc.forecasters.ForecastHedging().guarantees[0].bound
    assert curve.proven() == pytest.approx(np.log(bound(16_384) / bound(1000)) / np.log(16.384))
    assert study.curve("ece", "constant").proven() is None
    table = exponents_markdown(study)
    assert "**ece** (best known: Ω(T^0.54389) … O(T^(2/3)))" in table
    shown = line(curve.exponent(simultaneous(2)))
    assert f"| forecast hedging | {shown} | {curve.proven():.2f}: ≤ 2√(mT) + T/(2m) |" in table
    assert "- T^α: mean growth exponent over these T" in table
    assert "the intervals of each table hold all together with 95 %" in table
    assert "†" not in table
    cells = [
        replace(c, promises=tuple(replace(p, bound=c.horizon**-2.0, formula="T^-2") for p in c.promises))
        for c in study.cells
    ]
    table = exponents_markdown(replace(study, cells=tuple(cells)))
    assert f"| forecast hedging | {shown} † | -2.00: ≤ T^-2 |" in table
    assert table.splitlines()[-1].startswith("† Grows faster over these T than the bound proved")
    assert table.count("† Grows") == 1


def test_only_some_of_a_study():
    study = oc.play(
        [oc.forecasters.Constant(), oc.forecasters.EmpiricalMean()], oc.natures.Drift(), horizon=50, runs=1
    )
    assert study.only(["constant"]).forecasters == ["constant"]
    assert study.only(None, ["drift"]).natures == ["drift"]
