"""Plans: what cannot be played is said before anything is."""

import pytest

import onlinecal as oc
from onlinecal.core.errors import InvalidParameter
from onlinecal.engine.game import Game
from onlinecal.study.outlook import outlook
from tests.results import cells, equal


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
    with pytest.raises(InvalidParameter, match="3 is not a nature; expected a Nature, or a class with"):
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


class Short(oc.forecasters.Constant):
    """Plays 16 rounds."""

    length = 16


def test_what_is_longer_than_a_forecaster_can_play_is_left_out():
    F, N = oc.forecasters, oc.natures
    minimax = Short()
    planned = cells(horizons=[10, 16, 40], forecasters=[minimax, F.Constant()], natures=[N.Drift()])
    played = [(cell.forecaster.strategy, cell.horizon) for cell in planned]
    assert played == [(minimax, 10), (minimax, 16), *((F.Constant(), t) for t in (10, 16, 40))]
    assert [planned[k].horizon for k in range(len(planned))] == [10, 16, 10, 16, 40]
    ((_, whom, why),) = planned.incompatible
    assert whom == "drift"
    assert why == "horizon = 40, but forecaster 'short' plays 16 rounds; expected at most 16"
    # One that is too long as a whole.
    alone = cells(horizons=[40], forecasters=[minimax, F.Constant()], natures=[N.Drift()])
    assert [cell.forecaster.strategy for cell in alone] == [F.Constant()]
    assert len(alone.incompatible) == 1
    with pytest.raises(InvalidParameter, match="plays 16 rounds"):
        cells(horizons=[40], forecasters=[minimax], natures=[N.Drift()])
    assert outlook(planned, 0.0).cells == 5
    assert outlook(alone, 0.0).cells == 1


def test_pairs_that_cannot_play_each_other_are_left_out(tmp_path):
    file = tmp_path / "rows.csv"
    file.write_text("outcome,base\n" + "1,0.5\n" * 30)
    F, N = oc.forecasters, oc.natures
    replay = N.Replay(str(file), base="base")
    planned = cells(
        horizons=[10, 20], forecasters=[F.OnlinePlatt(), F.Constant()], natures=[N.Drift(), replay]
    )
    assert [(c.forecaster.label, c.nature.strategy) for c in planned] == [
        (who, whom)
        for who, whom in (("constant", N.Drift()), ("online platt", replay), ("constant", replay))
        for _ in range(2)
    ]
    assert len(planned) == 6
    assert [planned[i].forecaster.label for i in range(6)] == [c.forecaster.label for c in planned]
    ((who, whom, why),) = planned.incompatible
    assert (who, whom) == ("online platt", "drift")
    assert why == "forecaster 'online_platt' needs base, which nature 'drift' does not reveal"
    with pytest.raises(InvalidParameter, match="does not reveal; nor can 1 other pair be played"):
        cells(horizons=[10], forecasters=[F.OnlinePlatt()], natures=[N.Drift(), N.Contrarian()])
