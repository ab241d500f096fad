"""What `onlinecal plot` draws by name, and pictures of the level sets that a study keeps."""

import numpy as np
import pytest

import onlinecal as oc
from onlinecal.core.errors import InvalidParameter
from onlinecal.engine.game import Game
from onlinecal.report import plots
from onlinecal.report.curves import Study
from onlinecal.report.pictures import KINDS, Wanted, draw, gammas
from onlinecal.study.played import Played

F, N = oc.forecasters, oc.natures


class WithLevels(Played):
    """A cell that kept its level sets: those of the same game, played again."""

    def gamma(self, checkpoint, run):
        if getattr(self, "lost", None) == run:
            return None
        forecaster = F.ForecastHedging() if self.forecaster == "forecast hedging" else F.EmpiricalMean()
        runs = next(iter(self.totals.values())).shape[1]
        game = Game(forecaster, N.Drift(), horizon=self.horizon, runs=range(runs), seed=3)
        game.advance(int(self.rounds[checkpoint]))
        return game.gammas()[run]


@pytest.fixture(scope="module")
def study():
    played = oc.play(
        [F.ForecastHedging(), F.EmpiricalMean()], N.Drift(), horizon=[200, 400, 800], runs=3, seed=3,
        measures=["ece", "smooth_ce", "cdl"], tasks=["umbrella"], decision_makers=["umbrella"],
    )  # fmt: skip
    return Study(tuple(WithLevels(**{k: v for k, v in vars(cell).items() if k in Played.__dataclass_fields__})
                       for cell in played.cells), "name", "A title")  # fmt: skip


def test_levels_are_those_of_the_totals(study):
    found, left = gammas(study, run=1)
    assert left == []
    assert list(found) == [f"{who} against drift, T = 800, run 1" for who in study.forecasters]
    for who, gamma in zip(study.forecasters, found.values(), strict=True):
        assert gamma.weight == 800
        assert oc.measures.ece(gamma) * 800 == pytest.approx(study.curve("ece", who).totals[-1, 1])
    together, _ = gammas(study)
    assert list(together) == [f"{who} against drift, T = 800, 3 runs together" for who in study.forecasters]
    assert all(gamma.weight == 2400 for gamma in together.values())
    earlier, _ = gammas(study, round=200, run=0)
    assert all(gamma.weight == 200 for gamma in earlier.values())


def test_levels_that_are_not_there(study):
    with pytest.raises(InvalidParameter, match=r"round = 300; expected one of the checkpoints 200, 400, 800"):
        gammas(study, round=300)
    with pytest.raises(InvalidParameter, match=r"run = 3 of forecast hedging against drift; expected 0 to 2"):
        gammas(study, run=3)
    for cell in study.cells:
        object.__setattr__(cell, "lost", 1)
    try:
        with pytest.raises(
            InvalidParameter, match=r"T = 800 is not kept exactly in 1 of 3 runs; expected a study"
        ):
            gammas(study)
        assert len(gammas(study, run=0)[0]) == 2
        for cell in study.only(["forecast hedging"]).cells:
            object.__setattr__(cell, "lost", None)
        # Where others are there, these are drawn, and it is said which are not.
        found, left = gammas(study)
        assert len(found) == len(left) == 1
        _, said = draw(study, Wanted("reliability"))
        assert said == f"not drawn, as Γ is not kept exactly: {left[0]}"
    finally:
        for cell in study.cells:
            object.__setattr__(cell, "lost", None)


@pytest.mark.parametrize("kind", ["curves", *(kind for kind in KINDS if kind not in ("questions", "sweep"))])
def test_every_picture_can_be_drawn_by_name(kind, study):
    axes, left = draw(study, Wanted(kind, dark=True, width="page"))
    fig = np.ravel(axes)[0].figure
    assert fig.get_figwidth() == 7.0
    assert fig._suptitle.get_text() == "A title"
    said = " ".join(fig._supxlabel.get_text().split())
    measures = ["ece", "smooth_ce", "cdl"]
    given = {
        "curves": study.curves(measures), "runs": study.curves(measures), "slopes": study.curves(measures),
        "exponents": study, "pareto": study, "delays": study, "people": study, "tasks": study,
    }.get(kind) or gammas(study)[0]  # fmt: skip
    options = {"exponents": (measures,), "pareto": (measures[:2],), "delays": (measures[:2],)}.get(kind, ())
    band = {"band": None} if kind == "reliability" else {}
    assert said == plots.captions[kind](given, *options, **band)
    assert ("payoff[umbrella]" in left) == (kind in ("curves", "runs", "slopes", "delays", "pareto"))


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ({"kind": "people", "measures": ("ece",)}, "--people draws no measures; expected no --measure"),
        ({"kind": "witness", "measures": ("ece",)}, "--witness draws no measures"),
        ({"kind": "curves", "run": 0}, "--curves has no use for --run"),
        ({"kind": "slopes", "round": 10}, "--slopes has no use for --round"),
        ({"kind": "regret", "bins": 3}, "--regret has no use for --bins"),
        ({"kind": "slopes", "linear": True}, "--slopes has no use for --linear"),
        (
            {"kind": "regret", "measures": ("cdl", "v_cdl")},
            "--regret of cdl and v_cdl; expected one --measure",
        ),
        ({"kind": "pareto", "measures": ("ece",)}, "--pareto of ece; expected two --measure"),
    ],
)
def test_what_a_picture_does_not_take_is_refused(wanted, said):
    with pytest.raises(InvalidParameter, match=said):
        Wanted(**wanted)


def test_the_public_pictures_and_their_captions_have_the_same_names():
    # Three are of people's own forecasts, which are in no results file.
    assert set(plots.captions) == {"curves", *KINDS, "decision", "murphy", "trajectory"}
    for name in plots.captions:
        assert callable(getattr(oc.plots, name))
    assert set(plots.captions) <= set(plots.__all__)
