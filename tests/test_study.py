"""Plans, cells, curves, and what is made of them."""

from dataclasses import replace

import numpy as np
import pytest

import onlinecal as oc
from onlinecal.errors import InvalidParameter, UnknownName
from onlinecal.game import Game
from onlinecal.panel import Panel
from onlinecal.study import Entry, plan, play_cell
from onlinecal.study.curves import summary
from onlinecal.tasks import DecisionTask, swap_regret, umbrella

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
    with pytest.raises(InvalidParameter, match="'drift' is not a nature; expected a Nature, or its class"):
        oc.play(oc.forecasters.Constant, "drift", horizon=5)


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


def test_summary_of_identical_runs_has_no_spread():
    assert summary([72.4] * 64) == (72.4, 0.0)


# ---------------------------------------------------------------- exponents side by side


def test_the_heat_map_shows_the_exponents(tmp_path):
    from onlinecal.heat import heat_map, heats
    from onlinecal.plots import save

    study = oc.play(
        [oc.forecasters.ForecastHedging(), oc.forecasters.Constant(1.0)],
        [oc.natures.Drift(), oc.natures.Bernoulli(1.0)],
        horizon=[100, 300, 900],
        runs=4,
        measures=["ece", "cdl"],
    )
    heat = heats(study, ["ece"])[0]
    fit = study.exponent("ece", "forecast hedging", "drift")
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


def test_the_markdown_table_stands_beside_what_is_proven():
    from onlinecal.tables import exponents_markdown

    study = oc.play(
        [oc.forecasters.ForecastHedging(), oc.forecasters.Constant()],
        oc.natures.Drift(),
        horizon=[1000, 4000, 16_000],
        runs=4,
        measures=["ece"],
    )
    curve = study.curve("ece", "forecast hedging")
    bound = oc.forecasters.ForecastHedging().guarantees[0].bound
    assert curve.proven() == pytest.approx(np.log(bound(16_000) / bound(1000)) / np.log(16))
    assert study.curve("ece", "constant").proven() is None
    table = exponents_markdown(study)
    assert "**ece** (best known: Ω(T^0.54389) … O(T^(2/3)))" in table
    assert f"| forecast hedging | {curve.exponent()!s} | {curve.proven():.2f}: ≤ 2√(mT) + T/(2m) |" in table
    assert "†" not in table
    cells = [
        replace(c, promises=tuple(replace(p, bound=c.horizon**-2.0, formula="T^-2") for p in c.promises))
        for c in study.cells
    ]
    table = exponents_markdown(replace(study, cells=tuple(cells)))
    assert f"| forecast hedging | {curve.exponent()!s} † | -2.00: ≤ T^-2 |" in table
    assert table.splitlines()[-1].startswith(
        "† The whole interval of the slope over these horizons lies above"
    )
    assert table.count("† The") == 1


def test_only_some_of_a_study():
    study = oc.play(
        [oc.forecasters.Constant(), oc.forecasters.EmpiricalMean()], oc.natures.Drift(), horizon=50, runs=1
    )
    assert study.only(["constant"]).forecasters == ["constant"]
    assert study.only(None, ["drift"]).natures == ["drift"]
