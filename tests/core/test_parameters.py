"""A parameter that is not there is refused with those that are, in Python and in a scenario alike."""

import copy
import dataclasses
import inspect
import pickle

import pytest

import onlinecal as oc
from onlinecal.core.errors import InvalidParameter, UnknownParameter
from onlinecal.decisions.responses import RESPONSES, as_response
from onlinecal.decisions.tasks import TASKS, DecisionTask, QuadraticTask
from onlinecal.measures import MEASURES
from onlinecal.naming import STRATEGIES, strategy_of
from onlinecal.schedules import ARRIVALS, DELAYS, Schedule, as_arrivals, as_delays
from onlinecal.study.panel import Panel

KNOWN = STRATEGIES["forecaster"], STRATEGIES["nature"], ARRIVALS, DELAYS, RESPONSES, TASKS
MADE = [*(made for table in KNOWN for made in table.values()), DecisionTask, QuadraticTask, Schedule]


@dataclasses.dataclass(frozen=True)
class Own(oc.natures.Bernoulli):
    more: int = 3


@pytest.mark.parametrize("made", [*MADE, Own, oc.measures.binned_ece], ids=lambda made: made.__name__)
def test_everything_that_is_made_or_called_says_what_it_takes(made):
    measure = made is oc.measures.binned_ece
    given = ([0.2, 0.4], [0, 1]) if measure else ()
    names = [name for name, p in inspect.signature(made).parameters.items() if p.kind is not p.VAR_KEYWORD]
    with pytest.raises(UnknownParameter) as caught:
        made(*given, zzz9=1)
    if not measure:
        known = f"known: {', '.join(sorted(names))}" if names else "there are none"
        assert str(caught.value) == f"{made.__name__} has no parameter 'zzz9'; {known}"
    assert {TypeError, InvalidParameter} < {*type(caught.value).__mro__}
    for name in (name for name in names if len(name) > 3):
        with pytest.raises(TypeError, match=rf"has no parameter '{name}s'; did you mean '{name}'\?"):
            made(*given, **{f"{name}s": 1})


@pytest.mark.parametrize(
    "table",
    [
        lambda: strategy_of("nature", "bernoulli", {"p": 0.5}), lambda: as_response({"name": "rounded", "k": 3}),
        lambda: as_arrivals({"name": "poisson", "m": 1}), lambda: strategy_of("forecaster", "constant", {"grid": 3}),
        lambda: as_delays({"name": "geometric", "q": 0.5}), lambda: Panel.of([{"name": "binned_ece", "m": 3}]),
        lambda: Panel.of(tasks=[{"name": "v_shaped", "kink": 0.5}]),
        lambda: dataclasses.replace(oc.natures.Bernoulli(0.5), p=0.2),
    ],
)  # fmt: skip
def test_a_table_is_refused_alike(table):
    with pytest.raises(UnknownParameter, match=r" has no (parameter|option) '\w+'; (known: |did you mean )"):
        table()


def test_copies_and_classes_of_users_are_made_as_before():
    class Any(oc.natures.Bernoulli):
        def __init__(self, **options):
            super().__init__(options["p"])

    for thing in (oc.natures.Bernoulli(q=0.5), oc.tasks.v_shaped(t=0.25), oc.schedules.Poisson(2.0)):
        assert copy.deepcopy(thing) == pickle.loads(pickle.dumps(thing)) == thing
    assert Own(0.5, more=4).more == 4
    assert Any(p=0.25).q == 0.25
    assert [*inspect.signature(oc.natures.Bernoulli).parameters] == ["q"]
    assert set(MEASURES["binned_ece"].options) >= {"bins"}
