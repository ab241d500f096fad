"""A parameter that is not there is refused with those that are, in Python and in a scenario alike."""

import copy
import dataclasses
import inspect
import pickle

import pytest

import onlinecal as oc
from onlinecal.core.errors import InvalidParameter, OnlinecalError, UnknownParameter
from onlinecal.decisions.responses import RESPONSES, as_response
from onlinecal.decisions.tasks import TASKS, DecisionTask, QuadraticTask
from onlinecal.measures import MEASURES
from onlinecal.naming import STRATEGIES, strategy_of
from onlinecal.schedules import ARRIVALS, DELAYS, Schedule, as_arrivals, as_delays
from onlinecal.study.panel import Panel

MADE = {
    **{f"forecaster {name}": cls for name, cls in STRATEGIES["forecaster"].items()},
    **{f"nature {name}": cls for name, cls in STRATEGIES["nature"].items()},
    **{f"arrivals {name}": cls for name, cls in ARRIVALS.items()},
    **{f"delay {name}": cls for name, cls in DELAYS.items()},
    **{f"response {name}": cls for name, cls in RESPONSES.items()},
    **{f"task {name}": function for name, function in TASKS.items()},
    **{cls.__name__: cls for cls in (DecisionTask, QuadraticTask, Schedule)},
}


def expected(names):
    return f"known: {', '.join(sorted(names))}" if names else "there are none"


@pytest.mark.parametrize("made", MADE.values(), ids=MADE)
def test_every_constructor_says_what_it_takes(made):
    names = [name for name, p in inspect.signature(made).parameters.items() if p.kind is not p.VAR_KEYWORD]
    said = f"{made.__name__} has no parameter 'zzz9'; {expected(names)}"
    with pytest.raises(UnknownParameter) as caught:
        made(zzz9=1)
    assert str(caught.value) == said
    assert {TypeError, InvalidParameter} < {*type(caught.value).__mro__}
    for name in (name for name in names if len(name) > 3):
        with pytest.raises(TypeError, match=rf"has no parameter '{name}s'; did you mean '{name}'\?"):
            made(**{f"{name}s": 1})


def test_a_bernoulli_has_no_p():
    with pytest.raises(OnlinecalError, match=r"^Bernoulli has no parameter 'p'; known: q$"):
        oc.natures.Bernoulli(p=0.5)
    with pytest.raises(OnlinecalError, match=r"^Bernoulli has no parameter 'p'; known: q$"):
        dataclasses.replace(oc.natures.Bernoulli(0.5), p=0.2)
    with pytest.raises(TypeError, match=r"^binned_ece has no parameter 'bin'; did you mean 'bins'"):
        oc.measures.binned_ece([0.2, 0.4], [0, 1], bin=3)


@pytest.mark.parametrize(
    "table",
    [
        lambda: strategy_of("nature", "bernoulli", {"p": 0.5}), lambda: as_response({"name": "rounded", "k": 3}),
        lambda: as_arrivals({"name": "poisson", "m": 1}), lambda: strategy_of("forecaster", "constant", {"grid": 3}),
        lambda: as_delays({"name": "geometric", "q": 0.5}), lambda: Panel.of([{"name": "binned_ece", "m": 3}]),
        lambda: Panel.of(tasks=[{"name": "v_shaped", "kink": 0.5}]),
    ],
)  # fmt: skip
def test_a_table_is_refused_alike(table):
    with pytest.raises(UnknownParameter, match=r" has no (parameter|option) '\w+'; (known: |did you mean )"):
        table()


def test_copies_and_classes_of_users_are_made_as_before():
    @dataclasses.dataclass(frozen=True)
    class Own(oc.natures.Bernoulli):
        more: int = 3

    class Any(oc.natures.Bernoulli):
        def __init__(self, **options):
            super().__init__(options["p"])

    task = oc.tasks.v_shaped(t=0.25)
    for thing in (oc.natures.Bernoulli(q=0.5), task, oc.schedules.Poisson(2.0)):
        assert copy.deepcopy(thing) == pickle.loads(pickle.dumps(thing)) == thing
    assert Own(0.5, more=4).more == 4
    with pytest.raises(UnknownParameter, match="Own has no parameter 'p'; known: more, q"):
        Own(p=0.5)
    assert Any(p=0.25).q == 0.25
    assert [*inspect.signature(oc.natures.Bernoulli).parameters] == ["q"]
    assert set(MEASURES["binned_ece"].options) >= {"bins"}
