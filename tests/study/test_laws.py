"""Columns "of laws": each round counts with the whole law of its forecast."""

import pytest

import onlinecal as oc
from onlinecal.core.columns import Column
from onlinecal.core.errors import InvalidParameter
from onlinecal.scenario import load
from onlinecal.study.again import missing
from onlinecal.study.gammas import Group

MEASURES = ["ece", "brier"]


def play(forecaster="harmonic", nature="contrarian_classes", **options):
    given = {"horizon": [100, 256], "runs": 2, "measures": MEASURES, "laws": True, "progress": False}
    return oc.play(forecaster, nature, **given | options)


def test_columns_of_laws_beside_those_of_draws():
    """The number of the prototype; draws are the same as without. They have no guarantees, which are of draws."""
    study, plain = play(["harmonic", "simplex_hedging"]), play(["harmonic", "simplex_hedging"], laws=False)
    assert [*study.columns] == ["ece", "brier", "ece of laws", "brier of laws"]
    for cell, other in zip(study.cells, plain.cells, strict=True):
        for name in MEASURES:
            assert (cell.totals[name] == other.totals[name]).all()
        assert {promise.measure for promise in cell.promises} <= {"ece"}
    harmonic = study.cells[1]
    assert (harmonic.forecaster, harmonic.horizon) == ("harmonic", 256)
    assert (harmonic.totals["ece of laws"][-1] / 256).round(3).tolist() == [0.304] * 2
    assert harmonic.totals["ece"].min() / 256 > 0.4


def test_they_are_read_on_the_way_and_in_other_processes():
    one, two = play(horizon=64, runs=3), play(horizon=64, runs=3, jobs=2)
    assert one.cells == two.cells
    totals = one.cells[0].totals["ece of laws"]
    assert len(totals) > 2
    assert totals[-1] == pytest.approx(play(horizon=[64]).cells[0].totals["ece of laws"][-1][0], abs=1e-9)


def test_a_file_has_them(tmp_path):
    study = play(horizon=64)
    study.save(tmp_path / "x.db")
    assert oc.load(tmp_path / "x.db").cells == study.cells
    column = Column("class_measure", "ece", laws=True)
    assert column.name == "ece of laws"
    assert Column.from_json(column.as_json()) == column != Column("class_measure", "ece")
    assert "laws" not in Column("class_measure", "ece").as_json()


def test_what_is_missing_of_laws_alone_is_played(tmp_path):
    """Γ that is kept is of draws. Of `brier` both are missing, of `toplabel` that of laws."""
    text = 'horizon = 20\nforecasters = "class_mean"\nnatures = "categorical"\nlaws = true\n'
    (tmp_path / "x.toml").write_text(text + 'measures = ["ece", "brier", "toplabel"]\n')
    (own,) = load(tmp_path / "x.toml").cells
    there = "ece", "ece of laws", "toplabel"
    held = {h: own.runs for column, h in own.held.items() if column.name in there}
    whole = (Group(0, bytes([1] * own.runs), ()),)
    first, second = missing(own, held, lambda: whole)
    assert (first.kept, [*first.cell.panel.names], first.cell.panel.laws) == (True, ["brier"], False)
    assert (second.kept, second.cell.panel.laws) == (False, True)
    assert second.cell.panel.names == ["brier", "toplabel"]
    assert {*second.reasons} == {("level sets of laws are not kept", name) for name in ("brier", "toplabel")}


def test_what_is_refused():
    with pytest.raises(InvalidParameter, match="delay 3; expected outcomes that become known at once"):
        play(delays=3)
    with pytest.raises(InvalidParameter, match="'contrarian'; expected one of classes"):
        play("forecast_hedging", "contrarian")
    with pytest.raises(InvalidParameter, match="laws = 1; expected true or false"):
        play(laws=1)
