"""Several values in scenarios and in Python: what is played is every combination, under labels that tell them apart."""

import json
import sys

import pytest

import onlinecal as oc
from onlinecal.core.errors import OnlinecalError, ScenarioError
from onlinecal.rounds import protocol
from tests.command_line import onlinecal
from tests.whole.test_scenario import loaded

HEAD = "horizon = 30\nruns = 2\n"
F, N = oc.forecasters, oc.natures


def cells(tmp_path, forecasters='["constant"]', natures='["drift"]', rest='measures = ["ece"]'):
    return loaded(tmp_path, f"{HEAD}{rest}\nforecasters = {forecasters}\nnatures = {natures}\n").cells


STREAMS = '{name = "streams", parts = ["drift", "bernoulli"], order = "random", weights = %s}'
EXPECTED = [
    ("forecaster", '{name = "forecast_hedging", m = ["T^(1/3)", 20]}, "constant"',
     ["forecast hedging, m = T^(1/3)", "forecast hedging, m = 20", "constant"], "m", ["T^(1/3)", 20, None]),
    ("forecaster", '{name = "forecast_hedging", m = {from = 10, to = 1000, steps = 3, spacing = "log"}}',
     [f"forecast hedging, m = {m}" for m in (10, 100, 1000)], "m", [10, 100, 1000]),
    ("forecaster", '{name = "delayed", of = {name = "constant", p = [0.25, 0.5]}}',
     ["delayed (of=constant), of.p = 0.25", "delayed (of=constant), of.p = 0.5"], "of",
     [F.Constant(0.25), F.Constant(0.5)]),
    ("forecaster", '{name = "swept_plug_in:Mine", p = 0.1, past = [0.3, 0.4], free = {each = [1, 2]}}',
     [f"Mine (p=0.1, past=[0.3, 0.4]), free = {free}" for free in (1, 2)], "free", [1, 2]),
    ("nature", STREAMS % "[1, 2]", ['streams (parts=[drift, bernoulli], order="random", weights=[1, 2])'],
     "weights", [(1, 2)]),  # a list that is the value of a parameter is one value
    ("nature", STREAMS % "{each = [[1, 2], [2, 1]]}", [f"streams, weights = {w}" for w in ([1, 2], [2, 1])],
     "weights", [(1, 2), (2, 1)]),
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
    assert [
        getattr(entry.strategy, "settings", vars(entry.strategy)).get(parameter) for entry in entries
    ] == values


REST = """
measures = [{name = "binned_ece", bins = {from = 5, to = 15, step = 5}}, "ece"]
tasks = [{name = "umbrella", cost = [0.2, 0.4], response = {name = "rounded", m = [5, 10]}},
         {name = "mine", payoffs = {each = [[[1, 0], [0, 1]], [[1, 0], [0, 0.5]]]}}]
arrivals = {name = "poisson", rate = [0.5, 2]}
delays = [0, {from = 1, to = 3, step = 2}, {name = "geometric", mean = [2, 4]}]
decision_makers = [{task = {name = "umbrella", cost = [0.2, 0.4]}}, {task = "quadratic", join = [5, 10]},
                   {task = "umbrella", label = "reader", response = {name = "noisy", scale = [0.1, 0.2]}}]
"""


def test_measures_tasks_responses_schedules_and_people(tmp_path):
    planned = cells(tmp_path, rest=REST)
    panel = planned[0].panel
    assert panel.names[:4] == [*(f"binned_ece(bins={bins})" for bins in (5, 10, 15)), "ece"]
    assert [task.name for task in panel.tasks] == [
        *(f"umbrella(cost={c}), rounded(m={m})" for c in (0.2, 0.4) for m in (5, 10)),
        "mine(payoffs=[[1, 0], [0, 1]])", "mine(payoffs=[[1, 0], [0, 0.5]])",
    ]  # fmt: skip
    late = ["", ", delay 1", ", delay 3", ", geometric (mean=2) delay", ", geometric (mean=4) delay"]
    labels = [f"drift, poisson (rate={rate}){delay}" for rate in (0.5, 2) for delay in late]
    assert [c.nature_label for c in planned] == labels
    assert [t.label for t in planned[0].people.tenures] == [
        "umbrella(cost=0.2)", "umbrella(cost=0.4)", "quadratic, join = 5", "quadratic, join = 10",
        "reader, response.scale = 0.1", "reader, response.scale = 0.2",
    ]  # fmt: skip


def test_what_is_swept_is_what_is_played():
    """Number by number that of the same strategies by themselves."""
    coins, end = oc.sweep(N.Bernoulli, q={"from": 0.2, "to": 0.6, "steps": 2}), {"horizon": 200, "runs": 3}
    several = oc.play([oc.sweep(F.ForecastHedging, m=[2, 4]), F.EmpiricalMean()], coins, **end)
    alone = [F.ForecastHedging(2), F.ForecastHedging(4), F.EmpiricalMean()]
    alone = oc.play(alone, [N.Bernoulli(0.2), N.Bernoulli(0.6)], **end)
    assert several.forecasters == ["forecast hedging, m = 2", "forecast hedging, m = 4", "empirical mean"]
    assert several.natures == ["bernoulli, q = 0.2", "bernoulli, q = 0.6"]
    for mine, other in zip(several.cells, alone.cells, strict=True):
        assert all((mine.totals[m] == other.totals[m]).all() for m in other.totals)


def test_sweep_in_python():
    made = oc.sweep("rounded", label="r", of={"name": "constant", "p": [0.1, 0.2]}, m=range(2, 4))
    assert [entry.label for entry in made] == [f"r, of.p = {p}, m = {m}" for p in (0.1, 0.2) for m in (2, 3)]
    parts = [F.Constant(), F.ForecastHedging(4)]
    labels = [entry.label for entry in oc.sweep(F.Rounded, of=parts, m=3)]
    assert labels == ["rounded (m=3), of = constant", "rounded (m=3), of = forecast hedging (m=4)"]
    for thing, said in (
        ("bernouli", "did you mean 'bernoulli'"), (3, "3 is neither a forecaster nor a nature"),
        (F.Constant(0.2), "has been made and takes no parameter 'p'"),
    ):  # fmt: skip
        with pytest.raises(OnlinecalError, match=said):
            oc.sweep(thing, p=[0.1, 0.2])[0]


@pytest.mark.parametrize(
    ("forecasters", "said"),
    [
        ('[{name = "constant", p = []}]', "forecaster 'constant': p is an empty list; expected at least one value"),
        ('[{name = "constant", p = [0.5, 1.5]}]', r"forecaster 'constant, p = 1\.5': p = 1\.5; expected a number in"),
        ('[{name = "constant", q = [0.5, 1.5]}]', "has no parameter 'q'"),
        ('[{name = "constant", p = {from = 0, to = 1}}]', "forecaster 'constant': p = .*; expected either steps"),
        ('[{name = "forecast_hedging", m = ["T^(1/3)", "T - 40"]}]', "'forecast_hedging' at T = 30: m = 'T - 40' is a"),
        ('[{name = "constant", p = [0.5, 0.2]}, {name = "constant", p = [0.2]}]', "two forecasters are called"),
        ('[{name = ["constant"]}]', "a forecaster has no name"),
        ('[{name = "rounded", m = 3, of = {name = "constnt", p = [0.1]}}]', "did you mean 'constant'"),
    ],
)  # fmt: skip
def test_errors_say_which_value(tmp_path, forecasters, said):
    with pytest.raises(ScenarioError, match=said) as raised:
        cells(tmp_path, forecasters)
    assert "\n" not in str(raised.value)


def test_every_strategy_is_started_once(tmp_path, monkeypatch):
    count, plans = [0], sys.modules["onlinecal.study.planning"]

    def counted(role, *rest):
        count[0] += 1
        return protocol.start(role, *rest)

    monkeypatch.setattr(plans, "start", counted)
    tables = (
        '[{name = "forecast_hedging", m = {from = 1, to = 100, step = 1}}]',
        '[{name = "bernoulli", q = {from = 0, to = 1, steps = 100}}]',
    )
    planned = cells(tmp_path, *tables)
    assert (len(planned), planned.work, planned[9_999].forecaster.strategy.m) == (10**4, 10**4 * 30 * 2, 100)
    assert count[0] == 200
    monkeypatch.setattr(plans, "MOST", 9_999)
    with pytest.raises(ScenarioError, match="the study has up to 10,000 cells; expected at most 9,999"):
        cells(tmp_path, *tables)


def test_a_dry_run_plays_nothing(tmp_path):
    scenario = f'{HEAD}measures = ["ece"]\nforecasters = [{{name = "constant", p = [0.2, 0.4]}}]\nnatures = ["drift"]'
    (tmp_path / "a.toml").write_text(scenario)
    said = onlinecal("run a.toml --dry-run", cwd=tmp_path).stdout
    assert said.startswith(
        "2 cells: 2 new\n2 forecasters × 1 nature: 2 pairs\nT = 30; 2 runs\n120 run-rounds"
    )
    for words in ("  compiled  constant, p = 0.2  drift\n", "time: ", "from the speed of 2 pairs, of which"):
        assert words in said
    assert not (tmp_path / "results").exists()
    onlinecal("run a.toml", cwd=tmp_path)
    (tmp_path / "a.toml").write_text(scenario.replace("[0.2, 0.4]", "[0.2, 0.4, 0.6]"))
    rows = json.loads(onlinecal("run a.toml --dry-run --resume --json", cwd=tmp_path).stdout)
    assert (rows["cells"], rows["finished"], rows["new"], rows["run_rounds"]) == (3, 2, 1, 60)
    said = onlinecal("run a.toml --dry-run", cwd=tmp_path).stdout
    assert said.endswith("results/a.db exists; --dry-run --resume counts what is in it\n")
