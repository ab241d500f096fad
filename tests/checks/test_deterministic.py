"""Who is deterministic: what specifications declare, against what they state; and whom bounds are about."""

import numpy as np
import pytest

import onlinecal as oc
from onlinecal.checks.conformance import conformance
from onlinecal.checks.facts import stated_facts
from onlinecal.core.errors import InvalidParameter
from onlinecal.core.guarantee import Forecasters, Guarantee
from onlinecal.core.sight import Sight
from onlinecal.core.strategy import strategy_key
from onlinecal.engine.game import Game
from onlinecal.forecasters import FORECASTERS, Forecaster, Law, as_forecaster
from onlinecal.forecasters import baselines as b
from onlinecal.forecasters import composed as c
from onlinecal.natures import Contrarian, Greedy
from onlinecal.report.catalogue import entry
from tests import examples

ROUNDS = 60
#: of the games against all others, in which few rounds are looked at
SOME = (0, 1, 2, 3, 5, 8, 13, 21, 34, 59)


@pytest.fixture(scope="module")
def natures(tmp_path_factory):
    return examples.natures(tmp_path_factory.mktemp("examples"))


@pytest.fixture(scope="module")
def forecasters(tmp_path_factory):
    """Every example, and those whose parameters decide."""
    inner = oc.forecasters.AlmostOneStepAhead()
    return [
        *examples.forecasters(tmp_path_factory.mktemp("examples")),
        c.Rounded(inner, 4),
        c.Rounded(inner, 3, "random"),
        c.Doubling(oc.forecasters.ForecastHedging()),
        c.ExpertMixture((inner,)),
        c.ExpertMixture((inner, b.Constant(0.2))),
    ]


def mixed(forecaster, nature, seed, rounds=range(ROUNDS)):
    """Whether a law of more than one point was stated, looked at one by one and without the class's help."""
    game = Game(forecaster, nature, horizon=ROUNDS, runs=range(2), seed=seed)
    for t in rounds:
        game.advance(t)
        law = game.law()
        for atoms, weights in zip(law.atoms, law.weights, strict=True):
            if len({a for a, w in zip(atoms.tolist(), weights.tolist(), strict=True) if w > 0}) > 1:
                return True
    return False


def test_everybody_declares(forecasters):
    assert {type(f) for f in forecasters} == set(FORECASTERS.values())
    for forecaster in forecasters:
        assert forecaster.deterministic in (True, False), strategy_key(forecaster)


def test_who_is_declared_deterministic_never_mixes_and_the_others_do(forecasters, natures, seed):
    for forecaster in forecasters:
        able = [nature for nature in natures if forecaster.needs <= nature.reveals]
        assert able
        shown = any(
            mixed(forecaster, nature, seed, range(ROUNDS) if type(nature) in examples.FEW else SOME)
            for nature in able
        )
        assert shown is not forecaster.deterministic, strategy_key(forecaster)


class Undeclared:
    """Deterministic, and does not say so."""

    def forecast(self):
        return 0.5

    def update(self, forecast, outcome):
        pass


class Sure(Undeclared):
    """Says so."""

    deterministic = True


def test_one_without_a_word_is_not_known():
    assert as_forecaster(Undeclared).deterministic is None
    assert as_forecaster(Sure).deterministic is True
    assert Forecaster().deterministic is None
    assert c.Doubling(as_forecaster(Undeclared)).deterministic is None
    assert c.Rounded(as_forecaster(Sure), 3).deterministic is True


class Liar:
    """Says that it is deterministic, and mixes."""

    deterministic = True

    def forecast(self):
        return {0.2: 0.5, 0.8: 0.5}

    def update(self, forecast, outcome):
        pass


def test_a_false_word_is_found(monkeypatch):
    monkeypatch.setattr("onlinecal.checks.conformance.CHECKS", ())  # of what nobody states
    check = "it is deterministic, as it declares"
    faults = {f.check: f.fault for f in conformance(as_forecaster(Liar))}
    assert "law of round 1 has several points" in faults[check]
    assert {f.check: f.fault for f in conformance(b.Constant())}[check] == ""
    assert check not in dict(stated_facts(b.UniformRandom()))


def test_points_of_a_law():
    law = Law(2, 2)
    law.atoms[:] = [[0.1, 0.3], [0.0, 0.0]]
    law.weights[:] = [[0.0, 1.0], [0.5, 0.5]]
    assert law.points
    law.weights[0] = [0.5, 0.5]
    assert not law.points
    law = Law(1, 2, np.array([0.0, 1.0]))
    law.atoms[0] = [0, 1]
    assert not law.points
    law.weights[0] = [1.0, 0.0]
    assert law.points


def test_whom_a_guarantee_binds():
    ahead, hedging = oc.forecasters.AlmostOneStepAhead(), oc.forecasters.ForecastHedging()
    forced = Contrarian().guarantees[0]
    assert forced.against == Forecasters.DETERMINISTIC
    assert forced.binds(ahead, Contrarian())
    assert not forced.binds(hedging, Contrarian())
    assert not forced.binds(as_forecaster(Undeclared), Contrarian())
    drawn = Contrarian("draw").guarantees[0]
    assert drawn.against == Forecasters.EVERY
    assert drawn.binds(hedging, Contrarian("draw"))
    (mine,) = hedging.guarantees
    assert mine.against == Sight.LAW
    assert mine.binds(hedging, Greedy())
    assert not mine.binds(hedging, Contrarian("draw"))
    with pytest.raises(InvalidParameter, match=r"against .forecasters on Sundays.; expected a Sight"):
        Guarantee("ece", "T", float, "deterministic", "forecasters on Sundays", "", upper=False)
    with pytest.raises(
        InvalidParameter, match="a guarantee on 7; expected a Column or the name of a measure"
    ):
        Guarantee(7, "T", float, "deterministic", Sight.LAW, "")


def test_what_a_nature_forces_is_promised_only_where_it_binds():
    study = oc.play(
        [oc.forecasters.ForecastHedging(), oc.forecasters.AlmostOneStepAhead(), b.Constant(0.3)],
        [Contrarian(), Greedy(), Contrarian("draw")],
        horizon=50,
        runs=2,
        measures=["ece"],
    )
    bound = {(cell.forecaster, cell.nature) for cell in study.cells for p in cell.promises if not p.upper}
    everybody = {(f, 'contrarian (sees="draw")') for f in study.forecasters}
    assert bound == everybody | {
        (f, n) for f in ("almost one step ahead", "constant (p=0.3)") for n in ("contrarian", "greedy")
    }


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("constant", "yes"),
        ("forecast_hedging", "no"),
        ("perturbed_leader", "no"),
        ("rounded", "depends on its parameters"),
        ("tests.checks.test_deterministic:Liar", "yes"),
    ],
)
def test_show_says_it(name, said):
    assert entry(name)["deterministic"] == said


def test_natures_have_no_such_line():
    assert "deterministic" not in entry("contrarian")
