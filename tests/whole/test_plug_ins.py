"""Players, measures and tasks by ``module:name`` in scenarios: options, refusals, and sources as part of them."""

import importlib
import sys

import pytest

from onlinecal.core.errors import ScenarioError
from onlinecal.core.joint import JointDistribution
from tests.whole.test_scenario import loaded

MINE = """
from dataclasses import dataclass
from onlinecal.decisions.tasks import Account, DecisionTask
from onlinecal.forecasters import Constant

class EMA:
    def __init__(self, rate=0.5):
        if not 0 < rate <= 1:
            raise ValueError(f"rate = {rate}, beyond (0, 1]")
        self.rate, self.level = rate, 0.5
    def forecast(self):
        return self.level
    def update(self, forecast, outcome):
        self.level += self.rate * (outcome - self.level)

class Swing:
    def __init__(self, lean=0.2):
        self.lean, self.last = lean, 0
    def probability(self):
        return 0.5 + self.lean * (1 - 2 * self.last)
    def update(self, forecast, outcome):
        self.last = outcome

class Bad(Constant):
    def __init__(self): 1 / 0

@dataclass(frozen=True)
class Own:
    name: str = "own"
    pay: float = 0.25
    def account(self, gamma):
        return Account(self.pay, 0.0, 0.0, 0.0)

def slow(rate=0.01): return EMA(rate)
def bias(gamma): return float(gamma.residuals.sum())
def tail(gamma, power=2): return float((abs(gamma.residuals) ** power).sum())
def threshold(t=0.5, name="threshold"): return DecisionTask(name, [[t, t], [0.0, 1.0]])
def broken(): return 1 / 0
def out_of_range(t=2.0): return threshold(t)
def nothing(): return 3
harvest = DecisionTask("harvest", [[0.6, 0.6], [1.0, 0.1]])
ready, number = EMA(0.25), 3
"""
LISTS = {"forecasters": '"constant"', "natures": '"bernoulli"', "measures": '"ece"', "tasks": ""}


@pytest.fixture
def planned(tmp_path, monkeypatch):
    """The cells of a scenario with these lists, in which ``M`` is the module beside it, imported once more."""
    monkeypatch.setattr(sys, "path", sys.path[:])
    monkeypatch.chdir("/")

    def cells(text=MINE, **lists):
        (tmp_path / "plugged_in.py").write_text(text)
        sys.modules.pop("plugged_in", None)
        importlib.invalidate_caches()
        said = "\n".join(f"{key} = [{items}]" for key, items in (LISTS | lists).items()).replace(
            "M:", "plugged_in:"
        )
        return loaded(tmp_path, f"horizons = [20, 40]\nruns = 2\n{said}\n").cells

    yield cells
    sys.modules.pop("plugged_in", None)


def test_players_and_their_parameters(planned):
    forecasters = ', '.join(['"M:EMA"', '"M:ready"', '{name = "M:slow", rate = 0.03}', *(
        f'{{name = "M:EMA", rate = {rate}}}' for rate in (0.1, 0.2)
    )])  # fmt: skip
    cells = planned(forecasters=forecasters, natures='{name = "M:Swing", lean = 0.4}, "M:Swing"')
    labels = ["EMA", "EMA (rate=0.25)", "slow (rate=0.03)", "EMA (rate=0.1)", "EMA (rate=0.2)"]
    assert list(dict.fromkeys(cell.forecaster.label for cell in cells)) == labels
    assert list(dict.fromkeys(cell.nature.label for cell in cells)) == ["Swing (lean=0.4)", "Swing"]
    assert len({cell.key for cell in cells}) == len(cells) == 5 * 2 * 2


def test_measures(planned):
    panel = planned(measures='"M:bias", "M:tail", {name = "M:tail", power = 3}')[0].panel
    assert panel.names == ["bias", "tail", "tail(power=3)"]
    gamma = JointDistribution.from_levels([0.25, 0.75], [0.5, 0.5], [0.75, 0.75])
    assert panel.read(gamma) == [0.25, 0.0625, 0.015625]


@pytest.mark.parametrize(
    ("tasks", "names"),
    [
        (
            '"M:harvest", {name = "M:threshold", t = 0.3}, {name = "M:Own", pay = 0.5}',
            ["harvest", "threshold", "own"],
        ),
        (
            '{name = "M:threshold", t = 0.3, response = {name = "rounded", m = 10}}',
            ["threshold, rounded(m=10)"],
        ),
        ('{name = "M:threshold", t = 0.3, response = "best"}', ["threshold"]),
    ],
)
def test_tasks(planned, tasks, names):
    assert planned(tasks=tasks)[0].panel.names[4::4] == [f"swap_regret[{name}]" for name in names]


def kept_under(cell):
    """The key of its game, and those of its columns of tasks, which are kept below the game."""
    return cell.key, frozenset(held.key for held in cell.held.values() if held.column.of_task)


def test_options_and_source_are_part_of_the_columns_of_tasks(planned):
    """See tests/core/test_content.py for other sources."""
    numbers = MINE.replace("= 0.25", "= 0.75").replace("1.0, 0.1", "1.0, 0.2").replace("t=0.5", "t=0.4")
    texts = (MINE, MINE, numbers, MINE + "HELPER = 1\n")
    found = [kept_under(planned(text, tasks='"M:harvest", "M:threshold", "M:Own"')[0]) for text in texts]
    games, (first, again, edited, elsewhere) = zip(*found, strict=True)
    assert len(set(games[:3])) == 1
    assert first == again
    assert not edited & first
    # The payoffs of two tasks are all that there is of them; the third has a class of its own.
    assert 3 * len(elsewhere & first) == 2 * len(first)
    options = [planned(tasks=f'{{name = "M:threshold", t = {t}}}')[0] for t in (0.3, 0.3, 0.4)]
    assert len({kept_under(cell)[1] for cell in options}) == 2


@pytest.mark.parametrize(
    ("key", "given", "said"),
    [
        ("forecasters", '"M:Hal"', "module 'M' has no 'Hal'"),
        ("forecasters", '"M:Bad"', r"'M:Bad' cannot be made: ZeroDivisionError: division by zero \(.*plugged_in.py:"),
        ("forecasters", '{name = "M:EMA", rat = 0.1}', "'M:EMA' has no parameter 'rat'; did you mean"),
        ("forecasters", '{name = "M:nothing", a = 1}', "'M:nothing' has no parameter 'a'; there are none"),
        ("forecasters", '{name = "M:ready", rate = 0.1}', "takes no parameter 'rate'; expected parameters with"),
        ("forecasters", '{name = "M:EMA", rate = 2}', r"rate = 2, beyond \(0, 1\]"),
        ("forecasters", '"M:Swing"', r"is not a forecaster; expected a Forecaster, or a class with forecast\(\)"),
        ("measures", '"M:bas"', "measure 'M:bas': module 'M' has no 'bas'"),
        ("measures", '"M:number"', "measure 'M:number' is 3; expected a function of a"),
        ("measures", '{name = "M:tail", pow = 3}', "measure 'tail': got an unexpected keyword argument 'pow'"),
        ("measures", '{name = "M:tail", gamma = 3}', "measure 'tail': multiple values for argument 'gamma'"),
        ("tasks", '"M:number"', r"task 'M:number' is 3; expected a Task \("),
        ("tasks", '"M:nothing"', r"task 'M:nothing' returned 3; expected a Task \("),
        ("tasks", '"M:broken"', "'M:broken' cannot be made: ZeroDivisionError"),
        ("tasks", '"M:out_of_range"', "task 'M:out_of_range': .*payoff"),
        ("tasks", '{name = "M:harvest", t = 1}', "is a finished task and has no option 't'"),
        ("tasks", '{name = "M:threshold", u = 1}', "got an unexpected keyword argument 'u'"),
        ("tasks", '{name = "M:threshold", response = "best?"}', "unknown response 'best[?]'"),
    ],
)  # fmt: skip
def test_what_is_refused(planned, key, given, said):
    with pytest.raises(ScenarioError, match=said.replace("'M", "'plugged_in")) as error:
        planned(**{key: given})
    assert "\n" not in str(error.value)
