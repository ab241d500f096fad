"""Tasks by ``module:name``: in scenarios and in Python, with options and responses; their source is part of them."""

import importlib
import sys

import pytest

import onlinecal as oc
from onlinecal.core.errors import ScenarioError
from onlinecal.scenario import load

MINE = """
from dataclasses import dataclass
from onlinecal.decisions.tasks import Account, DecisionTask

harvest = DecisionTask("harvest", [[0.6, 0.6], [1.0, 0.1]])

def threshold(t=0.5, name="threshold"):
    return DecisionTask(name, [[t, t], [0.0, 1.0]])

@dataclass(frozen=True)
class Own:
    name: str = "own"
    pay: float = 0.25
    def account(self, gamma):
        return Account(self.pay, 0.0, 0.0, 0.0)

def broken():
    return 1 / 0

def out_of_range(t=2.0):
    return threshold(t)

def nothing():
    return 3

number = 3
"""


@pytest.fixture
def planned(tmp_path, monkeypatch):
    """The cells of a scenario with these tasks; the module is imported anew."""
    monkeypatch.setattr(sys, "path", sys.path[:])
    monkeypatch.chdir("/")

    def cells(tasks, text=MINE):
        (tmp_path / "plugged_tasks_mine.py").write_text(text)
        sys.modules.pop("plugged_tasks_mine", None)
        importlib.invalidate_caches()
        file = tmp_path / "s.toml"
        file.write_text(
            'horizon = 50\nruns = 2\nmeasures = ["ece"]\nforecasters = ["constant"]\nnatures = ["bernoulli"]\n'
            f"tasks = {tasks}\n"
        )
        return load(file).cells

    yield cells
    sys.modules.pop("plugged_tasks_mine", None)


def columns(cells):
    return [name for name in cells[0].panel.names if name.startswith("swap_regret")]


def test_tasks_in_a_scenario(planned):
    cells = planned(
        '["plugged_tasks_mine:harvest", {name = "plugged_tasks_mine:threshold", t = 0.3}, '
        '{name = "plugged_tasks_mine:Own", pay = 0.5}]'
    )
    assert columns(cells) == ["swap_regret[harvest]", "swap_regret[threshold]", "swap_regret[own]"]


def test_a_response_goes_with_it(planned):
    cells = planned(
        '[{name = "plugged_tasks_mine:threshold", t = 0.3, response = {name = "rounded", m = 10}}]'
    )
    assert columns(cells) == ["swap_regret[threshold, rounded(m=10)]"]
    best = planned('[{name = "plugged_tasks_mine:threshold", t = 0.3, response = "best"}]')
    assert columns(best) == ["swap_regret[threshold]"]


def test_its_numbers_are_those_of_the_task(planned):
    (cell,) = planned('[{name = "plugged_tasks_mine:threshold", t = 0.3}, "plugged_tasks_mine:harvest"]')
    gamma = oc.JointDistribution.from_counts([0.2, 0.6], [5, 5], [3, 1])
    own = oc.tasks.DecisionTask("threshold", [[0.3, 0.3], [0.0, 1.0]])
    same = dict(zip(cell.panel.names, cell.panel.read(gamma), strict=True))
    assert same["swap_regret[threshold]"] == pytest.approx(10 * own.account(gamma).swap)
    study = oc.play(
        "constant",
        "bernoulli",
        horizon=50,
        runs=2,
        tasks=[{"name": "plugged_tasks_mine:threshold", "t": 0.3}],
    )
    assert "swap_regret[threshold]" in study.measures


def kept_under(cell):
    """What its columns of tasks are kept under, below the game."""
    return frozenset(held.key for held in cell.held.values() if held.column.of_task)


@pytest.mark.parametrize("task", ["harvest", "threshold", "Own"])
def test_options_and_source_are_part_of_its_columns(planned, task):
    spec = f'["plugged_tasks_mine:{task}"]'
    (first,), (again,) = planned(spec), planned(spec)
    assert first.key == again.key
    assert kept_under(first) == kept_under(again)
    (comment,) = planned(spec, MINE + "# a comment\n")
    assert kept_under(comment) == kept_under(first)
    (edited,) = planned(
        spec, MINE.replace("0.25", "0.75").replace("1.0, 0.1", "1.0, 0.2").replace("t=0.5", "t=0.4")
    )
    assert not kept_under(edited) & kept_under(first)
    assert edited.key == first.key  # the games are the same
    (elsewhere,) = planned(spec, MINE + "HELPER = 1\n")
    assert not kept_under(elsewhere) & kept_under(first)


def test_an_option_is_part_of_it(planned):
    specs = [f'[{{name = "plugged_tasks_mine:threshold", t = {t}}}]' for t in (0.3, 0.3, 0.4)]
    assert len({kept_under(planned(spec)[0]) for spec in specs}) == 2


@pytest.mark.parametrize(
    ("task", "said"),
    [
        ('"plugged_tasks_mine:number"', r"task 'plugged_tasks_mine:number' is 3; expected a Task \("),
        ('"plugged_tasks_mine:nothing"', r"task 'plugged_tasks_mine:nothing' returned 3; expected a Task \("),
        ('"plugged_tasks_mine:broken"', "'plugged_tasks_mine:broken' cannot be made: ZeroDivisionError"),
        ('"plugged_tasks_mine:out_of_range"', "task 'plugged_tasks_mine:out_of_range': .*payoff"),
        ('"plugged_tasks_mine:absent"', "module 'plugged_tasks_mine' has no 'absent'"),
        ('{name = "plugged_tasks_mine:harvest", t = 1}', "is a finished task and has no option 't'"),
        ('{name = "plugged_tasks_mine:threshold", u = 1}', "got an unexpected keyword argument 'u'"),
        ('{name = "plugged_tasks_mine:threshold", response = "best?"}', "unknown response 'best[?]'"),
    ],
)
def test_what_is_refused(planned, task, said):
    with pytest.raises(ScenarioError, match=said) as error:
        planned(f"[{task}]")
    assert "\n" not in str(error.value)
