"""Several values in scenarios and in Python: what is played is every combination, under labels that tell them apart."""

import inspect
import json
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import onlinecal as oc
from onlinecal.core.errors import InvalidParameter, OnlinecalError, ScenarioError
from onlinecal.core.validation import is_number
from onlinecal.decisions.responses import RESPONSES
from onlinecal.decisions.tasks import TASKS
from onlinecal.engine.start import start
from onlinecal.forecasters import FORECASTERS
from onlinecal.measures import MEASURES
from onlinecal.natures import NATURES
from onlinecal.schedules import ARRIVALS, DELAYS
from onlinecal.sweeping import WIDTH, Named, ranged, sweep
from tests.command_line import onlinecal
from tests.whole.test_scenario import loaded

HEAD = "horizon = 30\nruns = 2\n"
F, N = oc.forecasters, oc.natures


def cells(tmp_path, forecasters='["constant"]', natures='["drift"]', rest='measures = ["ece"]'):
    return loaded(tmp_path, f"{HEAD}{rest}\nforecasters = {forecasters}\nnatures = {natures}\n").cells


STREAMS = '{name = "streams", parts = ["drift", "bernoulli"], order = "random", weights = %s}'
EXPECTED = [
    ("forecaster", '{name = "forecast_hedging", m = {each = ["T^(1/3)", 20]}}, "constant"',
     ["forecast hedging, m = T^(1/3)", "forecast hedging, m = 20", "constant"], "m", ["T^(1/3)", 20, None]),
    ("forecaster", '{name = "forecast_hedging", m = {from = 10, to = 1000, steps = 3, spacing = "log"}}',
     [f"forecast hedging, m = {m}" for m in (10, 100, 1000)], "m", [10, 100, 1000]),
    ("forecaster", '{name = "swept_plug_in:Mine", p = 0.1, past = [0.3, 0.4], free = {each = [1, 2]}}',
     [f"Mine (p=0.1, past=[0.3, 0.4]), free = {free}" for free in (1, 2)], "free", [1, 2]),
    ("nature", STREAMS % "[1, 2]", ['streams (parts=[drift, bernoulli], order="random", weights=[1, 2])'],
     "weights", [(1, 2)]),  # a list that is the value of a parameter is one value
    ("nature", STREAMS % "{each = [[1, 2], [2, 1]]}", [f"streams, weights = {w}" for w in ([1, 2], [2, 1])],
     "weights", [(1, 2), (2, 1)]),
    ("nature", '{name = "drift", from = {each = [0.1, 0.2]}, to = 0.5}', ["drift (to=0.5), from = 0.1",
     "drift (to=0.5), from = 0.2"], "first", [0.1, 0.2]),
    ("nature", '{name = "drift", from = {from = 0.1, to = 0.2, steps = 2}}', ["drift, from = 0.1",
     "drift, from = 0.2"], "first", [0.1, 0.2]),
]  # fmt: skip


@pytest.mark.parametrize(("role", "asked", "labels", "parameter", "values"), EXPECTED)
def test_several_strategies(tmp_path, monkeypatch, role, asked, labels, parameter, values):
    (tmp_path / "swept_plug_in.py").write_text(
        "class Mine:\n    def __init__(self, p=0.5, past=(0.1, 0.2), free=None): self.p = p\n"
        "    def forecast(self): return self.p\n    def update(self, forecast, outcome): pass\n"
    )
    monkeypatch.chdir(tmp_path)
    entries = [getattr(cell, role) for cell in cells(tmp_path, **{f"{role}s": f"[{asked}]"})]
    sys.modules.pop("swept_plug_in", None)
    assert [entry.label for entry in entries] == labels
    settings = [getattr(entry.strategy, "settings", vars(entry.strategy)) for entry in entries]
    assert [each.get(parameter) for each in settings] == values


REST = """
measures = [{name = "binned_ece", bins = {from = 5, to = 15, steps = 3}}, "ece"]
tasks = [{name = "umbrella", cost = {each = [0.2, 0.4]}, response = {name = "rounded", m = {each = [5, 10]}}},
         {name = "mine", payoffs = {each = [[[1, 0], [0, 1]], [[1, 0], [0, 0.5]]]}}]
arrivals = {name = "poisson", rate = {each = [0.5, 2]}}
delays = [0, {from = 1, to = 3, steps = 2}, {name = "geometric", mean = {each = [2, 4]}}]
decision_makers = [
    {task = {name = "umbrella", cost = {each = [0.2, 0.4]}}}, {task = "quadratic", join = {each = [5, 10]}},
    {task = "umbrella", label = "reader", response = {name = "noisy", scale = {each = [0.1, 0.2]}}}]
"""


def test_measures_tasks_responses_schedules_and_people(tmp_path):
    planned = cells(tmp_path, rest=REST)
    panel = planned[0].panel
    assert panel.names[:4] == [*(f"binned_ece(bins={bins})" for bins in (5, 10, 15)), "ece"]
    assert [asked.name for asked in panel.asked[4:]] == [
        *(f"umbrella(cost={c}), rounded(m={m})" for c in (0.2, 0.4) for m in (5, 10)),
        "mine(payoffs=[[1, 0], [0, 1]])", "mine(payoffs=[[1, 0], [0, 0.5]])",
    ]  # fmt: skip
    late = ["", ", delay 1", ", delay 3", ", geometric (mean=2) delay", ", geometric (mean=4) delay"]
    labels = [f"drift, poisson (rate={rate}){delay}" for rate in (0.5, 2) for delay in late]
    assert [c.nature_label for c in planned] == labels
    assert [t.label for t in planned[0].people.each] == [
        "umbrella(cost=0.2)", "umbrella(cost=0.4)", "quadratic, join = 5", "quadratic, join = 10",
        "reader, response.scale = 0.1", "reader, response.scale = 0.2",
    ]  # fmt: skip


def test_what_is_swept_is_what_is_played():
    """Number by number that of the same strategies by themselves."""
    coins, end = oc.sweep(N.Bernoulli, q={"from": 0.2, "to": 0.6, "steps": 2}), {"horizon": 200, "runs": 3}
    several = oc.play([oc.sweep(F.ForecastHedging, m={"each": [2, 4]}), F.EmpiricalMean()], coins, **end)
    alone = [F.ForecastHedging(2), F.ForecastHedging(4), F.EmpiricalMean()]
    alone = oc.play(alone, [N.Bernoulli(0.2), N.Bernoulli(0.6)], **end)
    assert several.forecasters == ["forecast hedging, m = 2", "forecast hedging, m = 4", "empirical mean"]
    assert several.natures == ["bernoulli, q = 0.2", "bernoulli, q = 0.6"]
    for mine, other in zip(several.cells, alone.cells, strict=True):
        assert all((mine.totals[m] == other.totals[m]).all() for m in other.totals)


class PlainNature:
    def __init__(self, load=0.5): ...
    def probability(self): ...


class PlainWorld:
    def __init__(self, load=0.5): ...
    def run(self, env, market): ...


def test_sweep_in_python():
    made = oc.sweep(
        "rounded", label="r", of={"name": "constant", "p": {"each": [0.1, 0.2]}}, m={"each": range(2, 4)}
    )
    assert [entry.label for entry in made] == [f"r, of.p = {p}, m = {m}" for p in (0.1, 0.2) for m in (2, 3)]
    parts = [F.Constant(), F.ForecastHedging(4)]
    labels = [entry.label for entry in oc.sweep(F.Rounded, of={"each": parts}, m=3)]
    assert labels == ["rounded (m=3), of = constant", "rounded (m=3), of = forecast hedging (m=4)"]
    table = {"name": "constant", "label": "c", "p": {"each": [0.1, 0.2]}}
    assert [entry.label for entry in oc.sweep(table)] == ["c, p = 0.1", "c, p = 0.2"]
    for own, role in ((PlainNature, "nature"), (PlainWorld, "world"), (oc.worlds.Queue, "world")):
        swept = oc.sweep(own, load={"each": [0.5, 0.75]})
        assert [entry.strategy.role for entry in swept] == [role] * 2
    for thing, said in (
        ("bernouli", "did you mean 'bernoulli'"), (3, "3 is neither a forecaster nor a nature"),
        (F.Constant(0.2), "has been made and takes no parameter 'p'"),
    ):  # fmt: skip
        with pytest.raises(OnlinecalError, match=said):
            oc.sweep(thing, p={"each": [0.1, 0.2]})


def test_errors_say_which_value(tmp_path):
    for forecaster, said in (
        ('{name = "constant", p = {each = [0.5, 1.5]}}', r"forecaster 'constant, p = 1\.5': p = 1\.5; expected a "),
        ('{name = "forecast_hedging", m = {each = [3, "T - 40"]}}', "'forecast_hedging' at T = 30: m = 'T - 40'"),
    ):  # fmt: skip
        with pytest.raises(ScenarioError, match=said):
            cells(tmp_path, f"[{forecaster}]")


def test_every_strategy_is_started_once(tmp_path, monkeypatch):
    count, plans = [0], sys.modules["onlinecal.study.planning"]

    def counted(role, *rest):
        count[0] += 1
        return start(role, *rest)

    monkeypatch.setattr(plans, "start", counted)
    tables = (
        '[{name = "forecast_hedging", m = {from = 1, to = 100, steps = 100}}]',
        '[{name = "bernoulli", q = {from = 0, to = 1, steps = 100}}]',
    )
    planned = cells(tmp_path, *tables)
    assert (len(planned), planned.work, planned[9_999].forecaster.strategy.m) == (10**4, 10**4 * 30 * 2, 100)
    assert count[0] == 200


def test_a_dry_run_plays_nothing(tmp_path):
    who = '[{name = "constant", p = {each = [0.2, 0.4]}}]'
    scenario = f'{HEAD}measures = ["ece"]\nforecasters = {who}\nnatures = ["drift"]'
    (tmp_path / "a.toml").write_text(scenario)
    said = onlinecal("run a.toml --dry-run", cwd=tmp_path).stdout
    assert said.startswith(
        "2 cells: 2 new\nT = 30; 2 runs; 120 run-rounds to be played\n2 pairs: 2 compiled\n"
    )
    assert said.endswith("  compiled  constant, p = 0.2  drift\n  compiled  constant, p = 0.4  drift\n")
    assert not (tmp_path / "results").exists()
    onlinecal("run a.toml", cwd=tmp_path)
    (tmp_path / "a.toml").write_text(scenario.replace("[0.2, 0.4]", "[0.2, 0.4, 0.6]"))
    rows = json.loads(onlinecal("run a.toml --dry-run --resume --json", cwd=tmp_path).stdout)
    assert (rows["cells"], rows["finished"], rows["new"], rows["run_rounds"]) == (3, 2, 1, 60)
    said = onlinecal("run a.toml --dry-run", cwd=tmp_path).stdout
    assert said.startswith("3 cells: 3 new\n")
    assert said.endswith("results/a.db exists; --dry-run --resume counts what is in it\n")


# ---------------------------------------------------------------- a bare list is one value

#: key of a scenario: what stands around a table, and what tables name
ROLES = {
    "forecasters": ("[%s]", FORECASTERS), "natures": ("[%s]", NATURES), "tasks": ("[%s]", TASKS),
    "measures": ("[%s]", {name: measure.function for name, measure in MEASURES.items()}),
    "arrivals": ("%s", ARRIVALS), "delays": ("%s", DELAYS),
    "decision_makers": ('[{task = "umbrella", response = %s}]', RESPONSES),
}  # fmt: skip
#: required parameters of some of them
NEEDED = {
    "delayed": 'of = "constant"', "rounded": 'of = "constant", m = 3', "switch": 'first = "drift", then = "greedy"',
}  # fmt: skip


def single():
    """Each parameter that has one number or word by default, with the table in which it has two."""
    for role, (around, known) in ROLES.items():
        for name, made in known.items():
            parameters = inspect.signature(made).parameters
            needed = {key for key, p in parameters.items() if p.default is p.empty and key != "gamma"}
            if needed and (role == "measures" or name not in NEEDED):
                continue
            for key, parameter in parameters.items():
                if is_number(parameter.default) or isinstance(parameter.default, str):
                    more = f", {NEEDED[name]}" if needed else ""
                    value = json.dumps([parameter.default] * 2)
                    yield pytest.param(
                        role, around % f'{{name = "{name}"{more}, {key} = {value}}}', id=f"{name}.{key}"
                    )


@pytest.mark.parametrize(("role", "table"), [*single()])
def test_a_bare_list_is_refused_where_one_value_is_expected(tmp_path, role, table):
    """Every parameter of all that the package has; the refusal says how several values are written."""
    rest = "" if role in ("measures", "tasks") else 'measures = ["ece"]'
    asked = {"forecasters": '["constant"]', "natures": '["drift"]', role: table}
    with pytest.raises(ScenarioError, match=r"for several write \{each = \[…\]\}"):
        loaded(tmp_path, f"{HEAD}{rest}\n" + "\n".join(f"{key} = {value}" for key, value in asked.items()))


# ---------------------------------------------------------------- combinations and their labels


def swept(**table):
    """Entries of tables, which stand for themselves."""
    return sweep("forecaster", {"name": "a", **table}, lambda table: Named(table["name"], dict)).entries()


INNER = {"name": "b", "m": {"each": [1, 2]}}
EACH = {"each": [[1, 2], [2, 1]]}
FILES = {"each": [f"/a/very/long/way/to/the/folder/{name}.csv" for name in ("rain", "snow")]}


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ({"m": {"each": ["T^(1/3)", 20]}, "q": {"each": (0.1, 0.2)}},
         [f"a, m = {m}, q = {q}" for m in ("T^(1/3)", 20) for q in (0.1, 0.2)]),
        ({"weights": EACH}, ["a, weights = [1, 2]", "a, weights = [2, 1]"]),
        ({"of": INNER, "q": {"each": [0.5, 1]}},
         [f"a (of=b), of.m = {m}, q = {q}" for m in (1, 2) for q in ("0.5", "1")]),
        ({"parts": [{"name": "b"}, INNER]}, [f"a (parts=[b, b]), parts.1.m = {m}" for m in (1, 2)]),
        ({"of": {"each": [{"name": "b"}, {"name": "c", "m": {"each": [1, 2]}}]}},
         ["a, of = b", "a, of = c (m=1)", "a, of = c (m=2)"]),
        ({"q": 0.25, "m": {"each": range(1, 3)}}, ["a (q=0.25), m = 1", "a (q=0.25), m = 2"]),
        # With the fixed values while a label has at most 60 characters.
        ({"x": "f" * 45, "m": {"each": np.arange(1, 3)}}, [f'a (x="{"f" * 45}"), m = {m}' for m in (1, 2)]),
        ({"x": "f" * 46, "m": {"each": np.arange(1, 3)}}, ["a, m = 1", "a, m = 2"]),
        ({"m": {"each": ["x" * 30, "y" * 31]}}, [f"a, m = {'x' * 30}", "a, m = #2"]),
        ({"file": FILES}, ["a, file = rain.csv", "a, file = snow.csv"]),
        ({"q": {"each": [0.1234567, 0.1234568, 1e-9]}}, ["a, q = 0.1234567", "a, q = 0.1234568", "a, q = 1e-09"]),
    ],
)  # fmt: skip
def test_every_combination_has_a_label_in_order(table, expected):
    entries = swept(**table)
    assert [entry.label for entry in entries] == expected
    assert max(map(len, expected)) <= WIDTH
    if "m" in table and "each" in table["m"]:  # tables have single values
        assert {entry.strategy["m"] for entry in entries} == {*table["m"]["each"]}


MANY = {"each": range(1000)}


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"m": {"each": []}}, "'a': m is an empty list; expected at least one value"),
        ({"of": {"name": "b", "m": {"each": []}}}, r"'a': of\.m is an empty list"),
        ({"m": {"each": [1, 2, 1]}}, "m = 1 is given twice"),
        ({"q": {"each": [1, 1.0]}}, "q = 1 is given twice"),
        ({"m": {"each": 3}}, "expected each = a list of values"),
        ({"q": MANY, "m": {"each": range(2000)}, "of": MANY}, r"'a': 2e\+09 combinations"),
        ({"q": {"from": 1, "to": 2, "step": 1}}, "a range has no 'step'; did you mean 'steps'"),
        ({"q": {"from": 2, "to": 1, "steps": 2}}, "expected from < to"),
        ({"q": {"from": 1, "to": 2, "steps": 1}}, "steps = 1; expected an integer from 2"),
        (
            {"q": {"from": 1, "to": 2, "steps": 10**7}},
            r"steps = 10000000; expected an integer from 2 to 10\^6$",
        ),
        ({"q": {"from": 0, "to": 1, "steps": 3, "spacing": "log"}}, "from > 0"),
        ({"q": {"from": 1, "to": 2, "steps": 3, "spacing": "lin"}}, "expected one of 'linear', 'log'"),
        ({"q": {"from": 1, "to": float("inf"), "steps": 3}}, "to = inf; expected a finite number"),
    ],
)
def test_refused(table, said):
    with pytest.raises(InvalidParameter, match=said):
        swept(**table)


def test_as_many_values_and_combinations_are_taken_as_is_said(monkeypatch):
    monkeypatch.setattr("onlinecal.sweeping.MOST", 6)
    assert len(swept(q={"each": range(3)}, m={"each": range(2)})) == 6
    assert len(ranged("q", {"from": 0, "to": 1, "steps": 6})) == 6
    with pytest.raises(InvalidParameter, match="8 combinations"):
        swept(q={"each": range(4)}, m={"each": range(2)})
    with pytest.raises(InvalidParameter, match="steps = 7; expected an integer from 2 to 6"):
        ranged("q", {"from": 0, "to": 1, "steps": 7})


def test_ranges():
    assert ranged("q", {"from": 0, "to": 0.5, "steps": 2}) == [0.0, 0.5]
    assert ranged("q", {"from": 0.1, "to": 0.9, "steps": 9}) == [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]
    assert ranged("m", {"from": 10, "to": 1000, "steps": 3, "spacing": "log"}) == [10, 100, 1000]
    assert ranged("m", {"from": 1, "to": 4, "steps": 9, "spacing": "log"}) == [1, 2, 3, 4]
    assert ranged("m", {"from": 1.0, "to": 4, "steps": 3, "spacing": "log"}) == [1.0, 2.0, 4.0]
    assert ranged("m", {"from": 1, "to": 10, "steps": 5}) == [1.0, 3.25, 5.5, 7.75, 10.0]
    assert all(type(v) is int for v in ranged("m", {"from": 0, "to": 100, "steps": 5}))


@given(st.floats(-1e6, 1e6), st.floats(0, 1e6), st.integers(2, 50), st.sampled_from(["linear", "log"]))
def test_a_range_has_its_ends_and_is_even(low, width, steps, spacing):
    high = low + width
    if high <= low or (spacing == "log" and low <= 1e-6):
        return
    values = ranged("q", {"from": low, "to": high, "steps": steps, "spacing": spacing})
    assert (values[0], values[-1], len(values)) == (low, high, steps)
    even = np.linspace if spacing == "linear" else np.geomspace
    # The smallest numbers that there are lie further apart than that, and a step that is rounded is taken many times.
    apart = 1e-12 * max(abs(low), abs(high)) + steps * 5e-324
    np.testing.assert_allclose(values, even(low, high, steps), rtol=1e-12, atol=apart)
