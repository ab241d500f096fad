"""Studies of games of K classes: columns, results files, resume, what is measured later, and what is refused."""

import numpy as np
import pytest

import onlinecal as oc
from onlinecal.checks.guarantees import check
from onlinecal.core.errors import OnlinecalError
from onlinecal.engine.game import Game
from onlinecal.forecasters import ClassMean, SimplexHedging
from onlinecal.growth.rates import best_known
from onlinecal.measures.classes.catalogue import MEASURES
from onlinecal.natures import Categorical, ContrarianClasses
from onlinecal.report.gammas import study_gammas
from onlinecal.report.pictures import draw

NATURES = Categorical((0.6, 0.2, 0.2)), ContrarianClasses(4)
TASK = oc.measures.classes.ClassTask("visit", [[1, 0, 0, 0.3], [0.6, 0.6, 0.2, 0]])
MEAN = {"name": "classwise", "measure": "brier", "mean": True}
SURE = {"name": "toplabel", "conditional": True}


class Rounded:
    """The shares of the classes so far, in quarters and on no table; it hedges between the last class and these."""

    classes = 4

    def __init__(self):
        self.counts = [1, 0, 0, 0]

    def forecast(self):
        quarters = [4 * n // sum(self.counts) for n in self.counts]
        quarters[0] += 4 - sum(quarters)
        return {tuple(q / 4 for q in quarters): 0.75, (0.0, 0.0, 0.0, 1.0): 0.25}

    def update(self, forecast, outcome):
        self.counts[outcome] += 1


def played(forecaster=ClassMean(), nature=NATURES[1], **more):
    options = {"measures": ["ece", MEAN], "runs": 3, "horizon": 90, "seed": 5, "progress": False}
    return oc.play(forecaster, nature, **options | more)


@pytest.mark.parametrize("forecaster", [ClassMean(m=7), Rounded], ids=["table", "plain"])
def test_columns_are_the_measures_of_gamma(forecaster):
    (cell,) = played(forecaster, measures=["all", "toplabel", SURE], tasks=TASK).cells
    game, of = Game(forecaster, NATURES[1], horizon=90, runs=range(3), seed=5), oc.measures.classes
    for place, time in enumerate(cell.rounds.tolist()):
        game.advance(time)
        for run, gamma in enumerate(game.gammas()):
            kept, totals = cell.gamma(place, run), {k: t[place, run] for k, t in cell.totals.items()}
            assert np.array_equal(kept.predictions, gamma.predictions)
            assert np.array_equal(kept.tallies, gamma.tallies)
            for name in ("ece", "cdl", "u_calibration", "smooth_ce", "kernel_ce", "brier", "log_loss"):
                assert totals[name] == time * getattr(of, name)(gamma)
            assert totals["classwise"] == time * max(of.classwise(gamma).values.values())
            assert totals["setwise"] == time * of.setwise(gamma).value
            assert totals["toplabel"] == time * of.toplabel(gamma)
            assert totals["toplabel(conditional=True)"] == time * of.toplabel(gamma, conditional=True)
            account = [time * part for part in TASK.account(gamma)[:4]]
            assert account == [
                totals[f"{name}[visit]"]
                for name in ("payoff", "external_regret", "action_swap_regret", "swap_regret")
            ]
    assert len(cell.totals) == len(MEASURES) + 1 + 4


def test_programs_of_many_rounds_have_a_bracket():
    (cell,) = played(nature=NATURES[0], horizon=200, measures=["cdl"], runs=1).cells
    gamma, of = cell.gamma(-1, 0), oc.measures.classes
    assert [*cell.totals] == ["cdl[lower]", "cdl[upper]"]
    assert cell.totals["cdl[lower]"][-1] == cell.totals["cdl[upper]"][-1] == 200 * of.cdl(gamma)

    class Names:
        classes = 3

        def __init__(self):
            self.round = 0

        def forecast(self):
            return (self.round / 1000, 0.1, 0.9 - self.round / 1000)

        def update(self, forecast, outcome):
            self.round += 1

    (cell,) = played(Names, NATURES[0], horizon=500, measures=["cdl", "smooth_ce"], runs=1).cells
    gamma = cell.gamma(-1, 0)
    for name in ("cdl", "smooth_ce"):
        bracket = getattr(of, f"{name}_bracket")(gamma)
        assert cell.totals[f"{name}[lower]"][-1] == 500 * bracket.lower
        assert cell.totals[f"{name}[upper]"][-1] == 500 * bracket.upper


def test_upper_rates_of_two_classes_do_not_apply():
    (curve,) = played(horizon=[30, 60, 90], nature=NATURES[0]).curves("ece")
    assert [rate.upper for rate in best_known(curve.column)] == [False]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"measures": "interval_ce"}, "'interval_ce' is of outcomes 0 and 1; expected one of K classes: ece, .*, log"),
        ({"measures": "smoth_ce"}, "unknown measure 'smoth_ce'; did you mean 'smooth_ce'"),
        ({"measures": {"name": "classwise", "measure": "smoth_ce"}}, "unknown measure 'smoth_ce'"),
        ({"measures": {"name": "classwise", "mean": 2}}, "mean = 2; expected true or false"),
        ({"measures": "setwise", "nature": ContrarianClasses(13)}, "setwise: 13 classes .* at most 12"),
        ({"tasks": {"payoffs": [[1, 0, 0, 0]]}}, r"task {'payoffs': .*}; expected a name or a table with a name"),
        ({"tasks": {"name": "v", "payoffs": [[1, 0, 0, 0]], "action": "a"}}, "'v' has no option 'action'; did you"),
        ({"measures": SURE | {"conditional": "no"}}, "toplabel: conditional = 'no'; expected true or false"),
        ({"tasks": "umbrella"}, "task 'umbrella' is of outcomes 0 and 1; expected one of classes"),
        ({"tasks": TASK, "nature": NATURES[0]}, "'visit' has payoffs for 4 classes; expected 3"),
        ({"measures": "ece", "tasks": TASK, "nature": "drift"}, "'visit' is of classes; expected a task of out"),
        ({"nature": [*NATURES, "drift"]}, "'drift' of outcomes 0 and 1, which have other measures"),
        ({"forecaster": "forecast_hedging"}, "forecast_hedging.*contrarian_classes"),
        ({"nature": "drift"}, "'classwise' is of K classes; expected one of outcomes 0 and 1"),
        ({"nature": "drift", "measures": "ece"}, "class_mean.*drift"),
        ({"decision_makers": [{"task": "umbrella", "count": 1}]}, "decision makers in games of classes"),
    ],
)  # fmt: skip
def test_refused_before_play(more, said):
    with pytest.raises(OnlinecalError, match=said):
        played(**more)


def test_two_kinds_of_games_in_one_study_have_no_common_measures():
    both = oc.Study((*played(horizon=9).cells, *oc.play("constant", "drift", horizon=9, runs=1).cells))
    with pytest.raises(OnlinecalError, match="games of classes beside games of outcomes 0 and 1"):
        both.measure_again("ece")


def test_tables_of_scenarios(tmp_path):
    path = tmp_path / "s.toml"
    path.write_text(
        'horizons = [20, 40]\nruns = 2\nmeasures = ["ece", { name = "toplabel", measure = "brier" }]\n'
        'tasks = [{ name = "visit", payoffs = [[1, 0, 0], [0.6, 0.6, 0]], actions = ["stay", "go"] }]\n'
        'forecasters = ["class_mean"]\nnatures = [{ name = "contrarian_classes", classes = 3 }]\n'
    )
    cells = oc.scenario.load(path).cells
    assert cells[0].panel.names[:2] == ["ece", "toplabel(measure=brier)"]
    assert [column.kind for column in cells[0].columns] == ["class_measure"] * 2 + ["class_task"] * 4


def test_pictures_of_gamma_are_those_of_classes():
    study = played(horizon=40)
    figure, _ = draw(study, "classes", bins=4)
    assert len(figure.axes) == 2 * 4
    for games, kind, said in (
        (study, "reliability", "--kind reliability in games of classes; expected --kind classes, tri"),
        (played([ClassMean(), ClassMean(3)], horizon=40), "triangle", "--kind triangle of 2 pairs .*; expected one"),
        (played("constant", "drift", measures="ece", horizon=40), "classes",
         "--kind classes in games of outcomes 0 and 1; expected --kind reliab"),
    ):  # fmt: skip
        with pytest.raises(OnlinecalError, match=said):
            draw(games, kind)
    # Γ of all runs together has the rounds of each.
    ((_, gamma),) = study_gammas(study).items()
    assert gamma.weight == 3 * 40
    assert np.array_equal(
        gamma.base_rates * 120, sum(study.gamma(run=run).tallies.sum(axis=0) for run in range(3))
    )


def test_the_check_of_guarantees_reads_measures_of_classes():
    hedging, drawn = SimplexHedging(), {"horizon": 400, "runs": 4, "seed": 1}
    (found,) = check([hedging], [NATURES[0]], **drawn)
    game = Game(hedging, NATURES[0], horizon=400, runs=range(4), seed=1)
    game.advance(400)
    mean = np.mean([400 * oc.measures.classes.ece(gamma) for gamma in game.gammas()])
    assert found.ratio == pytest.approx(mean / found.guarantee.bound(400))
