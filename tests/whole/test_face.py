"""The face in Python: names for strategies, samples for Γ, numbers of NumPy, results that can be compared."""

import inspect
import re
from pathlib import Path

import pytest

import onlinecal as oc
from onlinecal.core.errors import CellError, OnlinecalError
from onlinecal.sweeping import lineup

F, N = oc.forecasters, oc.natures


def test_strategies_by_name():
    called = oc.play("forecast_hedging", ["contrarian", "drift"], horizon=60, runs=2, seed=4)
    made = oc.play(F.ForecastHedging(), [N.Contrarian(), N.Drift()], horizon=60, runs=2, seed=4)
    assert called == made
    assert called.forecasters == ["forecast hedging"]
    own = oc.play("tests.by_hand:Half", "bernoulli", horizon=5, runs=1)
    assert own.forecasters == ["Half"]
    # An expression is checked at the horizons that are played.
    assert oc.play(F.ForecastHedging("T-2000"), "drift", horizon=2010, runs=1).cells[0].horizon == 2010


def test_strategies_by_tables():
    hedging, coin = {"name": "forecast_hedging", "m": 8}, {"name": "bernoulli", "q": 0.3}
    called = oc.play([hedging, "constant"], coin, horizon=60, runs=2, seed=4)
    made = [F.ForecastHedging(8), F.Constant()]
    assert called == oc.play(made, N.Bernoulli(0.3), horizon=60, runs=2, seed=4)
    several = oc.play(
        {"name": "constant", "p": {"each": [0.2, 0.5]}, "label": "mine"}, coin, horizon=5, runs=1
    )
    assert several.forecasters == ["mine, p = 0.2", "mine, p = 0.5"]
    of = {"each": ["constant", hedging]}
    swept = [entry.strategy for entry in oc.sweep({"name": "delayed", "slots": 3}, of=of)]
    assert swept == [F.Delayed(F.Constant(), 3), F.Delayed(F.ForecastHedging(8), 3)]


@pytest.mark.parametrize(
    ("role", "table", "made"),
    [
        ("forecaster", {"name": "delayed", "of": "constant"}, F.Delayed(F.Constant())),
        ("forecaster", {"name": "delayed", "of": {"each": ["constant"]}}, F.Delayed(F.Constant())),
        ("forecaster", {"name": "expert_mixture", "of": ["constant"]}, F.ExpertMixture((F.Constant(),))),
        ("forecaster", {"name": "expert_mixture", "of": ["constant", {"name": "delayed", "of": "minimax"}]},
         F.ExpertMixture((F.Constant(), F.Delayed(F.Minimax())))),
        ("forecaster", {"name": "constant", "p": {"each": [0.2]}}, F.Constant(0.2)),
        ("nature", {"name": "mixture", "natures": ["drift", "greedy"]}, N.Mixture((N.Drift(), N.Greedy()))),
        ("nature", {"name": "switch", "first": "drift", "then": "greedy"}, N.Switch(N.Drift(), N.Greedy())),
    ],
)  # fmt: skip
def test_parts_by_name(role, table, made):
    """Where a strategy takes others, their names do, as in the lists of a scenario."""
    assert [entry.strategy for entry in lineup(role, [table], Path())] == [made]


def played(forecaster="forecast_hedging", nature="drift", horizon=5):
    return oc.play(forecaster, nature, horizon=horizon, runs=1)


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda: played(nature="contrarain"), "did you mean 'contrarian'"),
        (lambda: played("rounded"), "needs the parameter"),
        (lambda: played(horizon="200"), "horizon = '200'; expected an integer"),
        (lambda: played({"m": 8}), "forecaster has no name"),
        (lambda: played({"name": 8}), "forecaster has no name"),
        (lambda: oc.sweep({"m": 8}), "expected a name or a table with a name"),
        (lambda: oc.sweep({"name": 8}), "expected a name or a table with a name"),
        (lambda: oc.sweep({"name": "delayed", "slots": 3}, slots=4), "slots is in the table and beside it"),
        (lambda: lineup("nature", [{"name": "mixture", "natures": ["gredy"]}], Path()), "did you mean 'greedy'"),
        (lambda: played(F.ForecastHedging("T-2000"), horizon=[1000, 4000]), "grid of -1000 steps at T = 1000"),
        (lambda: F.ForecastHedging("T-2000 apples"), "is not understood"),
        (lambda: F.ForecastHedging(-3), "expected 1 to 10"),
        (lambda: played(F.ForecastHedging("T/(T-5)")), "no value at T = 5"),
    ],
)  # fmt: skip
def test_what_is_refused(ask, said):
    with pytest.raises(OnlinecalError, match=said):
        ask()


def test_errors_has_only_errors():
    space = {}
    exec("from onlinecal.core.errors import *", space)
    known = vars(oc.errors).items()
    errors = {name for name, one in known if isinstance(one, type) and issubclass(one, OnlinecalError)}
    assert set(space) - {"__builtins__"} == set(oc.errors.__all__) == errors


def test_dir_is_the_public_names():
    others = {"RecalibratedClassifier", "RiverRecalibrator"}  # a star does not import what needs a library
    assert sorted(dir(oc)) == sorted({*oc.__all__, *others, "__version__"})
    assert "importlib" not in dir(oc)
    for room in filter(inspect.ismodule, (getattr(oc, name) for name in oc.__all__)):
        assert set(getattr(room, "__all__", ())) <= set(dir(room))


def test_dir_has_all_names_of_the_documentation():
    root = Path(__file__).parents[2]
    pages = [root / "README.md", *(root / "docs").rglob("*.md")]
    said = {name for page in pages for name in re.findall(r"\boc\.([A-Za-z_]\w*)", page.read_text("utf-8"))}
    reference = (root / "docs" / "reference" / "onlinecal.md").read_text("utf-8")
    headed = re.findall(r"^::: onlinecal\.(\w+)$", reference, re.MULTILINE)
    assert {"play", "RecalibratedClassifier"} <= said
    assert said | {*headed} <= {*dir(oc)}


def test_results_in_one_line():
    study = oc.play("forecast_hedging", "bernoulli", horizon=64, runs=2, measures=["ece"], progress=False)
    played = study.cells[0]
    said = "forecast hedging against bernoulli"
    assert repr(played) == f"Played({said}, T = 64, 2 runs, ece)"
    curve = study.curve("ece")
    assert repr(curve) == f"Curve(ece, {said}, T = {curve.rounds[0]:,} to 64, 2 runs)"
    growth = curve.exponent()
    assert repr(growth) == f"Growth({growth})"
    assert f"<b>{growth}</b>, with 95%" in growth._repr_html_()
    shown = played._repr_html_()
    assert f"<p>{said}: mean totals over 2 runs</p>" in shown
    assert f"<td>{played.totals['ece'][-1].mean():.4g}</td>" in shown


def test_a_list_of_one_horizon_is_read_at_its_end():
    for horizon, least, most in ((20, 4, 20), ([20], 1, 1), ([10, 20], 2, 2)):
        study = oc.play("empirical_mean", "bernoulli", horizon=horizon, measures=["brier"])
        assert least <= len(study.curve("brier").totals) <= most


class Leaves:
    def forecast(self):
        raise SystemExit("bye")

    def update(self, forecast, outcome): ...


def test_an_error_of_a_whole_cell_names_its_players():
    with pytest.raises(CellError, match=r"^'Leaves' against 'drift' at T = 9: SystemExit: bye"):
        oc.play(Leaves, "drift", horizon=9, runs=1)
