"""Tasks by ``module:name``: in scenarios and in Python, with options and responses; their source is part of them."""

import importlib
import sys

import pytest

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


TASKS = [
    ('"M:harvest", {name = "M:threshold", t = 0.3}, {name = "M:Own", pay = 0.5}', ["harvest", "threshold", "own"]),
    ('{name = "M:threshold", t = 0.3, response = {name = "rounded", m = 10}}', ["threshold, rounded(m=10)"]),
    ('{name = "M:threshold", t = 0.3, response = "best"}', ["threshold"]),
]  # fmt: skip


@pytest.mark.parametrize(("tasks", "names"), TASKS)
def test_tasks_in_a_scenario(planned, tasks, names):
    panel = planned(f"[{tasks}]".replace("M:", "plugged_tasks_mine:"))[0].panel
    assert panel.names[4::4] == [f"swap_regret[{name}]" for name in names]


def kept_under(cell):
    """The key of its game, and those of its columns of tasks, which are kept below the game."""
    return cell.key, frozenset(held.key for held in cell.held.values() if held.column.of_task)


@pytest.mark.parametrize("task", ["harvest", "threshold", "Own"])
def test_options_and_source_are_part_of_its_columns(planned, task):
    spec = f'["plugged_tasks_mine:{task}"]'
    numbers = MINE.replace("0.25", "0.75").replace("1.0, 0.1", "1.0, 0.2").replace("t=0.5", "t=0.4")
    texts = (MINE, MINE, MINE + "# a comment\n", numbers, MINE + "HELPER = 1\n")
    found = [kept_under(planned(spec, text)[0]) for text in texts]
    games, (first, again, comment, edited, elsewhere) = zip(*found, strict=True)
    assert len(set(games[:4])) == 1
    assert first == again == comment
    assert not (edited | elsewhere) & first
    specs = [f'[{{name = "plugged_tasks_mine:threshold", t = {t}}}]' for t in (0.3, 0.3, 0.4)]
    assert len({kept_under(planned(spec)[0])[1] for spec in specs}) == 2


@pytest.mark.parametrize(
    ("task", "said"),
    [
        ('"M:number"', r"task 'M:number' is 3; expected a Task \("),
        ('"M:nothing"', r"task 'M:nothing' returned 3; expected a Task \("),
        ('"M:broken"', "'M:broken' cannot be made: ZeroDivisionError"),
        ('"M:out_of_range"', "task 'M:out_of_range': .*payoff"), ('"M:absent"', "module 'M' has no 'absent'"),
        ('{name = "M:harvest", t = 1}', "is a finished task and has no option 't'"),
        ('{name = "M:threshold", u = 1}', "got an unexpected keyword argument 'u'"),
        ('{name = "M:threshold", response = "best?"}', "unknown response 'best[?]'"),
    ],
)  # fmt: skip
def test_what_is_refused(planned, task, said):
    with pytest.raises(ScenarioError, match=said.replace("'M", "'plugged_tasks_mine")) as error:
        planned(f"[{task}]".replace("M:", "plugged_tasks_mine:"))
    assert "\n" not in str(error.value)
