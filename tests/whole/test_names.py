"""Labels and names alike wherever a forecaster, nature, measure or task is named."""

import pytest

import onlinecal as oc
from onlinecal.core.errors import UnknownName, meant
from onlinecal.core.strategy import strategy_label
from onlinecal.decisions.responses import as_decision_maker
from onlinecal.games.totals import measure_named
from onlinecal.naming import STRATEGIES, strategy_of
from onlinecal.report.catalogue import KINDS, entries
from onlinecal.study.panel import Panel

GAMMA = oc.JointDistribution.from_samples([0.2, 0.2, 0.6], [0, 1, 1])


def test_every_name_is_meant_by_itself_in_other_letters():
    for known in (*STRATEGIES.values(), *KINDS.values()):
        for name in known:
            for said in (name, name.upper(), name.replace("_", " "), name.replace("_", "-").title()):
                assert meant("x", said, known) == name


@pytest.mark.parametrize("said", ["K29*", "defensive forecasting"])
def test_forecasters_have_their_names_in_papers(said):
    assert strategy_label(strategy_of("forecaster", said)) == "defensive forecasting"
    assert entries(said)[0]["name"] == "defensive_forecasting"


@pytest.mark.parametrize(
    ("said", "name"), [("smCE", "smooth_ce"), ("smECE", "smooth_ece"), ("U-Cal", "u_calibration")]
)
def test_measures_have_their_names_in_papers(said, name):
    assert Panel.of([said]).columns == Panel.of([name]).columns


def test_measures_are_named_alike_everywhere():
    assert str(oc.measures.explain(GAMMA, "Smooth-CE")) == str(oc.measures.explain(GAMMA, "smooth_ce"))
    assert Panel.of(["ECE"]).columns == Panel.of(["ece"]).columns
    assert measure_named("ECE") is measure_named("ece")
    table = oc.evaluate([0.2, 0.4, 0.6], [0, 1, 1], measures=["smooth ECE", "ECE"])
    assert table["ece"] == table["ECE"]
    assert oc.exact.solve(2, 3, "ECE").value == oc.exact.solve(2, 3, "ece").value
    assert as_decision_maker("V shaped").name == as_decision_maker("v_shaped").name


def test_what_is_not_known_is_told_with_the_nearest():
    with pytest.raises(UnknownName, match=r"unknown measure 'smoth ce'; did you mean 'smooth_ce'\?"):
        Panel.of(["smoth ce"])
    with pytest.raises(UnknownName, match="unknown x 'AB'"):
        meant("x", "AB", ["a_b", "a b"])
