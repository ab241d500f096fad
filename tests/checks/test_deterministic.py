"""Who is deterministic: what specifications declare, against what they state; and whom bounds are about."""

import pytest

import onlinecal as oc
from onlinecal.checks.conformance import conformance
from onlinecal.checks.facts import stated_facts
from onlinecal.core.errors import InvalidParameter
from onlinecal.core.guarantee import Forecasters, Guarantee, Sight
from onlinecal.core.strategy import strategy_key
from onlinecal.engine.game import Game
from onlinecal.forecasters import Forecaster, as_forecaster
from onlinecal.forecasters import baselines as b
from onlinecal.forecasters import composed as c
from onlinecal.natures import Contrarian, Greedy
from onlinecal.report.catalogue import entry
from tests import examples
from tests.by_hand import Half

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
        if any(len(law) > 1 for law in game.laws()):
            return True
    return False


def test_who_is_declared_deterministic_never_mixes_and_the_others_do(forecasters, natures, seed):
    for forecaster in forecasters:
        able = [nature for nature in natures if forecaster.needs <= nature.reveals]
        assert able
        shown = any(
            mixed(forecaster, nature, seed, range(ROUNDS) if type(nature) in examples.FEW else SOME)
            for nature in able
        )
        assert shown is not forecaster.deterministic, strategy_key(forecaster)


class Sure(Half):
    """Says that it is deterministic."""

    deterministic = True


def test_one_without_a_word_is_not_known():
    assert as_forecaster(Half).deterministic is None
    assert as_forecaster(Sure).deterministic is True
    assert Forecaster().deterministic is None
    assert c.Doubling(as_forecaster(Half)).deterministic is None
    assert c.Rounded(as_forecaster(Sure), 3).deterministic is True


class Liar(Sure):
    """Says the same, and mixes."""

    def forecast(self):
        return {0.2: 0.5, 0.8: 0.5}


def test_a_false_word_is_found(monkeypatch):
    monkeypatch.setattr("onlinecal.checks.conformance.CHECKS", ())  # of what nobody states
    check = "it is deterministic, as it declares"
    faults = {f.check: f.fault for f in conformance(as_forecaster(Liar))}
    assert "law of round 1 has several points" in faults[check]
    assert {f.check: f.fault for f in conformance(b.Constant())}[check] == ""
    assert check not in dict(stated_facts(b.UniformRandom()))


def test_whom_a_guarantee_binds():
    ahead, hedging = oc.forecasters.AlmostOneStepAhead(), oc.forecasters.ForecastHedging()
    forced = Contrarian().guarantees[0]
    assert forced.against == Forecasters.DETERMINISTIC
    assert forced.binds(ahead, Contrarian())
    assert not forced.binds(hedging, Contrarian())
    assert not forced.binds(as_forecaster(Half), Contrarian())
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
        ("rounded", "depends on its parameters"),
        ("tests.checks.test_deterministic:Liar", "yes"),
    ],
)
def test_show_says_it(name, said):
    assert entry(name)["deterministic"] == said
