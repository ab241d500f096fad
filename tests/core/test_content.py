"""The key that results are kept under: everything that the numbers depend on, and nothing else."""

import copy
import datetime
import functools
import importlib
import math
import sys
from collections import OrderedDict
from dataclasses import InitVar, dataclass, field
from typing import NamedTuple

import numpy as np
import pytest
import simpy.util

import onlinecal as oc
from onlinecal import forecasters as f
from onlinecal import natures as n
from onlinecal.core.content import content, differences, digest, sources
from onlinecal.core.errors import InvalidParameter
from onlinecal.core.guarantee import Sight
from onlinecal.core.modules import locate
from onlinecal.forecasters import Constant, as_forecaster
from tests import golden


def key(thing):
    return digest(content(thing))


# ---------------------------------------------------------------- what is built in


def test_a_raised_version_is_another_content(monkeypatch):
    things = f.ExpertMixture((Constant(0.25), f.EmpiricalMean())), f.EmpiricalMean(), Constant()
    before = [key(thing) for thing in things]
    monkeypatch.setattr(f.EmpiricalMean, "version", 2, raising=False)
    assert [key(thing) == old for thing, old in zip(things, before, strict=True)] == [False, False, True]


def test_recordings_tasks_and_responses_are_their_numbers(tmp_path):
    for name, text in (("a.csv", "0\n1\n"), ("b.csv", "0\n1\n"), ("c.csv", "1\n1\n")):
        (tmp_path / name).write_text("outcome\n" + text)
    a, b, c = (key(n.Replay(str(tmp_path / name))) for name in ("a.csv", "b.csv", "c.csv"))
    assert a == b != c
    task = oc.tasks.DecisionTask("mine", [[1.0, 0.0], [0.2, 0.9]], ["stay", "go"])
    assert key(task) == key(oc.tasks.DecisionTask("mine", [[1.0, 0.0], [0.2, 0.9]], ["wait", "leave"]))
    assert key(task) != key(oc.tasks.DecisionTask("mine", [[1.0, 0.0], [0.2, 0.8]]))
    r = oc.responses
    answers = r.Rounded(), r.Rounded(10), r.RoundedDown(10), r.Noisy(), r.Noisy(m=101)
    assert len({key(r.DecisionMaker(task, answer)) for answer in answers}) == 5


def test_keys_are_those_on_record():
    """Results of before are found under them."""
    assert [key(thing) for thing in (Constant(0.25), b"ab", np.arange(3.0))] == [
        "b20a47c7b82cfcd7b21c0713f545854e", "4e56e7abc33935890dad2fcfa6df4104", "7a5225009e2c26bc97e325b43008a92c",
    ]  # fmt: skip
    assert [content(each) for each in (math, oc.tasks)] == [
        {"module": name} for name in ("math", "onlinecal.decisions.tasks")
    ]


# ---------------------------------------------------------------- values


@dataclass(frozen=True)
class Spec:
    x: object
    told: str = field(default="", metadata={"key": False})


class Plain:
    def __init__(self, x):
        self.x = x

    def measure(self, gamma):
        return self.x


def maker(x):
    def measure(gamma, y=x):
        return x * gamma.weight

    return measure


def forward(x):
    """Of two values that a function holds one is not there."""

    def measure(gamma):
        return x or later

    return measure
    later = 1


def local(x):
    class Local:
        __slots__ = ("y",)
        p = x

        def forecast(self):
            return self.q

        @property
        def q(self):
            return x

        @staticmethod
        def r():
            return x

        def update(self, forecast, outcome): ...

    return Local


class Beside(n.Drift):
    """Keeps its state outside of the fields of a dataclass."""

    def __init__(self, x):
        super().__init__()
        object.__setattr__(self, "x", x)


HOLDING = [
    Spec, Plain, maker, forward, lambda x: lambda gamma, *, y=x: y, local, Constant, lambda x: lambda gamma: x,
    lambda x: functools.partial(maker(1), y=x),
    lambda x: Plain(x).measure, lambda x: Spec((1, [x])), lambda x: Spec({"a": x}), lambda x: Spec({x, 3}),
    lambda x: Spec({x: 1}), lambda x: Spec(np.array([1.0, x])), lambda x: Spec(Plain(Plain(x))),
    lambda x: as_forecaster(local(x)), Beside,
]  # fmt: skip


@pytest.mark.parametrize("make", HOLDING)
def test_what_something_holds_is_part_of_it(make):
    assert key(make(0.25)) == key(make(0.25))
    assert key(make(0.25)) != key(make(0.5))


class Low(NamedTuple):
    x: float


class High(NamedTuple):
    x: float


@dataclass
class Made:
    """Of a parameter that is no field."""

    x: InitVar[float]

    def __post_init__(self, x):
        self.kept = x


def factory(x):
    return type("Factory", (), {"forecast": lambda self: x})


def plainly(x):
    return x


def half(function):
    return functools.wraps(function)(lambda x: function(x) / 2)


def less(function):
    return functools.wraps(function)(lambda x: function(x) - 2)


#: each two at one place, or of one text, or with one state; then values of which pickling makes bytes
PAIRS = [
    (Low(1), High(1)), (Low(1), (1,)), (OrderedDict(a=1), {"a": 1}), (Made(1), Made(2)), (factory(1), factory(2)),
    (half(plainly), less(plainly)), (lambda: lambda: 1, lambda: lambda: 2), (b"one", b"two"),
    (bytearray(b"one"), bytearray(b"two")), (datetime.datetime(2024, 1, 1, 3), datetime.datetime(2024, 1, 1, 4)),
    (1 + 2j, 1 + 3j), (range(3), range(4)), (np.datetime64("2024-01-01", "ns"), np.datetime64("2024-01-02", "ns")),
    (simpy.util.start_delayed, simpy.util.subscribe_at), (np.exp, np.log), (simpy.Environment(1), simpy.Environment(2)),
]  # fmt: skip


@pytest.mark.parametrize(("one", "other"), PAIRS, ids=lambda value: type(value).__name__)
def test_what_looks_alike_is_told_apart(one, other):
    assert key(one) != key(other)
    assert key(one) == key(copy.deepcopy(one))
    assert key({"first": one}) != key({"first": other})


class Above:
    rates, rate = [0.1], 0.1

    def forecast(self):
        return self.rate


class Below(Above):
    pass


CHANGED = [("rates", [0.2]), ("rates", {1: 2}), ("rate", 0.2), ("forecast", lambda self: 0.2)]


@pytest.mark.parametrize(("name", "value"), CHANGED)
def test_a_changed_attribute_of_a_class_counts_in_those_below(monkeypatch, name, value):
    before = key(Above), key(Below), key(Below())
    monkeypatch.setattr(Above, name, value)
    assert not {key(Above), key(Below), key(Below())} & set(before)


def test_values_that_are_the_same_number_are_the_same_value():
    assert key(Spec(1)) == key(Spec(1.0)) == key(Spec(np.float64(1.0))) == key(Spec(np.int32(1)))
    assert key(Spec((1, 2))) == key(Spec([1, 2]))
    assert key(Spec({"a": 1, "b": 2})) == key(Spec({"b": 2, "a": 1}))
    assert key(Spec(1, told="this")) == key(Spec(1, told="that"))
    different = [
        0, 1, True, "1", None, 0.1, math.inf, -math.inf, math.nan, (), (1,), {1}, {"a": 1}, Sight.LAW, Sight.DRAW,
        math.exp, math.log, math, np, golden, len, Plain, Spec, np.zeros(1), np.zeros((1, 1)),
        np.zeros(1, int), lambda gamma: gamma.weight, lambda gamma: -gamma.weight,
    ]  # fmt: skip
    assert len({key(Spec(x)) for x in different}) == len(different)
    loop = Plain(1)
    loop.x = [loop]  # which ends
    assert key(loop) != key(Plain([1]))


def test_a_mark_of_ones_own():
    """Of an object, of a class that plays, and of a measure."""
    for make in (lambda: Plain(1), lambda: as_forecaster(local(1)).make, lambda: maker(1)):
        first, second = make(), make()
        assert key(first) == key(second)
        second.fingerprint = "b"
        assert key(first) != key(second)


def test_what_cannot_be_told_is_refused():
    space: dict = {"__name__": "typed_in"}
    exec("def measure(gamma): return 0.0", space)
    for thing, said in (
        *(
            (Spec(thing), "holds cannot be told .* so results cannot be kept")
            for thing in (sys.__stdout__, (i for i in "ab"))
        ),
        (space["measure"], "the source of typed_in:measure cannot be read"),
    ):
        with pytest.raises(InvalidParameter, match=said):
            content(thing)


# ---------------------------------------------------------------- source


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Writes a module, imports it again, and returns what is named in it."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    mine = set()

    def forget():
        for loaded in [m for m in sys.modules if m.partition(".")[0] in mine]:
            del sys.modules[loaded]

    def make(name, text, thing=None):
        file = tmp_path / (name.replace(".", "/") + ".py")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        mine.update((name.partition(".")[0], "plug_a", "plug_b"))
        forget()
        importlib.invalidate_caches()
        if thing is not None:
            return getattr(importlib.import_module(name.removesuffix(".__init__")), thing)

    yield make
    forget()


HALF = "class Half:\n    def forecast(self): return 0.5\n    def update(self, forecast, outcome): pass\n"


def test_the_source_counts(module):
    first = content(as_forecaster(module("plug_a", HALF, "Half")))
    assert content(as_forecaster(module("plug_a", HALF, "Half"))) == first
    whole = content(sys.modules["plug_a"])
    other = content(as_forecaster(module("plug_a", HALF.replace("0.5", "0.6"), "Half")))
    assert [*differences(whole, content(sys.modules["plug_a"]))] == [("source", "plug_a")]
    assert list(differences(first, other)) == [("parameters", "make", "source", "plug_a")]
    # Of one name and text, in another module.
    assert content(as_forecaster(module("plug_b", HALF, "Half"))) != first


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("import os, math, numpy as np, scipy.special\nfrom onlinecal.forecasters import Constant", ""),
        ("import plug_h", "plug_h"), ("from plug_h import P", "plug_h"), ("def f():\n    import plug_h", "plug_h"),
        ("import plug_between", "plug_between plug_h"),
        ("from . import inner\nfrom .inner import helper", "plug_p.inner plug_p.inner.helper plug_p.other"),
    ],
)  # fmt: skip
def test_modules_that_it_imports_count_too(module, text, names):
    for name, its in {
        "plug_h": "P = 1", "plug_between": "import plug_h", "plug_p.__init__": "", "plug_p.inner.__init__": "",
        "plug_p.inner.helper": "from ..other import Q", "plug_p.other": "Q = 1", "plug_p.unused": "",
    }.items():  # fmt: skip
        module(name, its)
    cls = module("plug_p.players", f"{text}\n{HALF}", "Half")
    assert sources(cls).keys() == {"plug_p", "plug_p.players", *names.split()}
    assert {*map(len, sources(cls).values())} == {16}
    assert sources(simpy.util.start_delayed).keys() == {"simpy"}  # of an installed package, all of it


MADE = (
    "def make(p):\n    class Made:\n        x = p\n    return Made\n"
    "class Made:\n    x = 1\ndef f(gamma):\n    return Made.x\n"
)
PASSES_ON = [
    "import plug_h\nplug_h.Made.x = {0}\nfrom plug_h import Made as X\n",
    "import plug_h\nplug_h.Made.x = {0}\nX = plug_h.Made()\n",
    "import plug_h\nX = type('X', (plug_h.Made,), {{'x': {0}}})\n",
    "import plug_h\nX = plug_h.make({0})\n",
    "import numba\nP = {0}\n@numba.njit\ndef X(gamma): return P\n",
    "from onlinecal.forecasters import Constant\nX = Constant({0} / 4)\n",
]


@pytest.mark.parametrize("text", PASSES_ON)
def test_a_module_that_passes_something_on_may_have_changed_it(module, text):
    keys = []
    for number in (2, 3, 3):  # as long as nothing is edited, it is the same
        module("plug_h", MADE)
        module("plug_a", text.format(number))
        keys.append(key(locate("measure", "plug_a:X")))
    assert keys[0] != keys[1] == keys[2]


def test_of_installed_plug_ins_their_own_package_counts(module, tmp_path, monkeypatch):
    folder = tmp_path / "lib" / "site-packages"
    monkeypatch.syspath_prepend(str(folder))
    for name in ("plug_a.__init__", "plug_a.part", "plug_b.__init__"):
        module(f"lib.site-packages.{name}", "P = 1\n")
    module("lib.site-packages.plug_a.players", "from plug_a.part import P\nimport plug_b\n" + HALF)
    cls = importlib.import_module("plug_a.players").Half
    before = sources(cls)
    assert {name: len(digest) for name, digest in before.items()} == {"plug_a": 16}
    for name, counts in (("plug_b/__init__.py", False), ("plug_a/part.py", True)):
        (folder / name).write_text("P = 22\n")
        assert (sources(cls) != before) is counts
