"""What results are kept under: everything that the numbers depend on, and nothing else."""

import copy
import datetime
import decimal
import fractions
import functools
import importlib
import math
import sys
from dataclasses import dataclass, field

import numpy as np
import pytest

import onlinecal as oc
from onlinecal import forecasters as f
from onlinecal import natures as n
from onlinecal.core.content import content, differences, digest, sources
from onlinecal.core.errors import InvalidParameter
from onlinecal.core.guarantee import Sight
from onlinecal.core.modules import locate
from onlinecal.forecasters import Constant, as_forecaster
from tests import versions


def key(thing):
    return digest(content(thing))


# ---------------------------------------------------------------- what is built in


def test_what_is_built_in_is_its_name_version_and_parameters():
    hedging = {"class": "ForecastHedging", "version": 1, "parameters": {"m": "T^(1/3)"}}
    assert content(f.ForecastHedging()) == hedging
    inner = content(f.ExpertMixture((Constant(0.25), f.Doubling(f.CDLMinimiser()))))["parameters"]["of"]
    assert inner[0] == {"class": "Constant", "version": 1, "parameters": {"p": 0.25}}
    assert inner[1]["parameters"]["of"]["class"] == "CDLMinimiser"


def test_a_raised_version_is_another_content(monkeypatch):
    mixture = f.ExpertMixture((Constant(0.25), f.EmpiricalMean()))
    before = key(mixture), key(f.EmpiricalMean()), key(Constant())
    monkeypatch.setattr(f.EmpiricalMean, "version", 2, raising=False)
    after = key(mixture), key(f.EmpiricalMean()), key(Constant())
    assert [a == b for a, b in zip(before, after, strict=True)] == [False, False, True]


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


def keyword(x):
    def measure(gamma, *, y=x):
        return y

    return measure


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


HOLDING = [
    Spec, Plain, maker, keyword, local, Constant, lambda x: lambda gamma: x, lambda x: functools.partial(maker(1), y=x),
    lambda x: Plain(x).measure, lambda x: Spec((1, [x])), lambda x: Spec({"a": x}), lambda x: Spec({x, 3}),
    lambda x: Spec({x: 1}), lambda x: Spec(np.array([1.0, x])), lambda x: Spec(Plain(Plain(x))),
    lambda x: as_forecaster(local(x)),
]  # fmt: skip


@pytest.mark.parametrize("make", HOLDING)
def test_what_something_holds_is_part_of_it(make):
    assert key(make(0.25)) == key(make(0.25))
    assert key(make(0.25)) != key(make(0.5))


def test_values_that_are_the_same_number_are_the_same_value():
    assert key(Spec(1)) == key(Spec(1.0)) == key(Spec(np.float64(1.0))) == key(Spec(np.int32(1)))
    assert key(Spec((1, 2))) == key(Spec([1, 2]))
    assert key(Spec({"a": 1, "b": 2})) == key(Spec({"b": 2, "a": 1}))
    assert key(Spec(1, told="this")) == key(Spec(1, told="that"))
    different = [
        0, 1, True, "1", None, 0.1, math.inf, -math.inf, math.nan, (), (1,), {1}, {"a": 1}, Sight.LAW, Sight.DRAW,
        math.exp, math.log, math, np, versions, len, Plain, Spec, np.zeros(1), np.zeros((1, 1)),
        np.zeros(1, int), lambda gamma: gamma.weight, lambda gamma: -gamma.weight,
    ]  # fmt: skip
    assert len({key(Spec(x)) for x in different}) == len(different)
    loop = Plain(1)
    loop.x = [loop]  # which ends
    assert key(loop) != key(Plain([1]))


@pytest.mark.slow
def test_functions_of_an_installed_package_are_told_apart():
    """The source of all its modules is read: of NumPy in three seconds."""
    assert len({key(Spec(x)) for x in (np.exp, np.log, np.expm1, math.exp, math.log)}) == 5
    one, same, other = map(np.random.default_rng, (1, 1, 2))  # of a class of NumPy
    assert key(one) == key(same) != key(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (b"one", b"two"), (bytearray(b"one"), bytearray(b"two")),
        (datetime.datetime(2024, 1, 1, 3), datetime.datetime(2024, 1, 1, 4)),
        (datetime.timedelta(1), datetime.timedelta(2)),
        (np.datetime64("2024-01-01", "ns"), np.datetime64("2024-01-02", "ns")),
        (fractions.Fraction(1, 3), fractions.Fraction(2, 3)), (decimal.Decimal(1), decimal.Decimal(2)),
        (1 + 2j, 1 + 3j), (range(3), range(4)), (slice(3), slice(4)),
    ],
    ids=lambda value: type(value).__name__,  # the text of some holds an address
)  # fmt: skip
def test_values_of_the_standard_library_are_told_apart(one, other):
    """Pickling makes bytes of some of them, and of bytes themselves."""
    assert key(one) != key(other)
    assert key(one) == key(copy.deepcopy(one))
    assert key({"first": one}) != key({"first": other})


def test_a_mark_of_ones_own():
    """Of an object, of a class that plays, and of a measure."""
    for make in (lambda: Plain(1), lambda: as_forecaster(local(1)).make, lambda: maker(1)):
        first, second = make(), make()
        assert key(first) == key(second)
        second.fingerprint = "b"
        assert key(first) != key(second)


def test_what_cannot_be_told_is_refused():
    for thing in (sys.__stdout__, (i for i in "ab")):
        with pytest.raises(
            InvalidParameter, match=r"holds cannot be told .* so results cannot be kept under it"
        ):
            content(Spec(thing))
    space: dict = {"__name__": "typed_in"}
    exec("def measure(gamma): return 0.0", space)
    with pytest.raises(InvalidParameter, match="the source of typed_in:measure cannot be read"):
        content(space["measure"])


# ---------------------------------------------------------------- source


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Writes a module, imports it anew, and returns what is named in it."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    mine = set()

    def make(name, text, thing=None):
        file = tmp_path / (name.replace(".", "/") + ".py")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        mine.add(name.partition(".")[0])
        for loaded in [m for m in sys.modules if m.partition(".")[0] in mine]:
            del sys.modules[loaded]
        importlib.invalidate_caches()
        if thing is not None:
            return getattr(importlib.import_module(name.removesuffix(".__init__")), thing)

    yield make
    for loaded in [m for m in sys.modules if m.partition(".")[0] in mine]:
        del sys.modules[loaded]


HALF = "class Half:\n    def forecast(self): return 0.5\n    def update(self, forecast, outcome): pass\n"


def test_the_source_counts_and_comments_do_not(module):
    first = key(as_forecaster(module("plug_a", HALF, "Half")))
    same = HALF.replace("0.5", "(0.5)  # one half").replace("class", "# mine\nclass")
    assert key(as_forecaster(module("plug_a", same, "Half"))) == first
    other = HALF.replace("0.5", "0.6")
    assert key(as_forecaster(module("plug_a", other, "Half"))) != first
    # Of one name and text, in another module.
    assert key(as_forecaster(module("plug_b", HALF, "Half"))) != first


@pytest.mark.parametrize(
    "how",
    [
        "import plug_h\n{0}",
        "from plug_h import P\n{0}",
        "{0}def later():\n    import plug_h\n",
        "import plug_between\n{0}",
        "import importlib\nh = importlib.import_module('plug_h')\n{0}",
        "try:\n    from plug_h import P\nexcept ImportError:\n    P = 1\n{0}",
    ],
)
def test_modules_beside_it_that_it_imports_count_too(module, how):
    module("plug_between", "import plug_h\n")
    module("plug_unrelated", "P = 1\n")
    module("plug_h", "P = 1\n")
    first = module("plug_a", how.format(HALF), "Half")
    before = sources(first)
    assert {"plug_a", "plug_h"} <= before.keys() <= {"plug_a", "plug_h", "plug_between"}
    module("plug_unrelated", "P = 2\n")
    assert sources(module("plug_a", how.format(HALF), "Half")) == before
    module("plug_h", "P = 2\n")
    after = sources(module("plug_a", how.format(HALF), "Half"))
    assert {name for name in before if before[name] != after[name]} == {"plug_h"}


MADE = (
    "def make(p):\n    class Made:\n        x = p\n    return Made\n"
    "class Made:\n    x = 1\ndef f(gamma):\n    return Made.x\n"
)


@pytest.mark.parametrize(
    "text",
    [
        "import plug_h\nplug_h.Made.x = {0}\nfrom plug_h import Made as X\n",
        "import plug_h\nplug_h.Made.x = {0}\nX = plug_h.Made()\n",
        "import plug_h\nX = type('X', (plug_h.Made,), {{'x': {0}}})\n",
        "import plug_h\nX = plug_h.make({0})\n",
        "import numba\nP = {0}\n@numba.njit\ndef X(gamma): return P\n",
        "from onlinecal.forecasters import Constant\nX = Constant({0} / 4)\n",
    ],
)
def test_the_module_under_which_a_thing_is_named_counts_too(module, text):
    """It may have changed what it only passes on."""
    keys = []
    for number in (2, 3):
        module("plug_h", MADE)
        module("plug_a", text.format(number))
        keys.append(key(locate("measure", "plug_a:X")))
    assert keys[0] != keys[1]
    # As long as nothing is edited, it is the same.
    module("plug_a", text.format(3) + "# a comment\n")
    assert key(locate("measure", "plug_a:X")) == keys[1]


def test_packages_with_relative_imports(module):
    module("plug_p.__init__", "from .inner import helper\n")
    module("plug_p.inner.__init__", "")
    module("plug_p.inner.helper", "from ..other import Q\n")
    module("plug_p.other", "Q = 1\n")
    module("plug_p.unused", "Q = 1\n")
    cls = module("plug_p.players", "from . import inner\nfrom .inner import helper\n" + HALF, "Half")
    names = {"plug_p", "plug_p.players", "plug_p.inner", "plug_p.inner.helper", "plug_p.other"}
    assert sources(cls).keys() == names


def test_libraries_do_not_count_and_installed_plug_ins_do(module, tmp_path, monkeypatch):
    heavy = "import os, math, numpy as np, scipy.special\nfrom onlinecal.forecasters import Constant\n"
    assert sources(module("plug_a", heavy + HALF, "Half")).keys() == {"plug_a"}
    folder = tmp_path / "lib" / "site-packages"
    monkeypatch.syspath_prepend(str(folder))
    for name in ("plugpack", "plugother"):
        (folder / name).mkdir(parents=True)
        (folder / name / "__init__.py").write_text("")
        (folder / name / "part.py").write_text("P = 1\n")
    text = "from plugpack.part import P\nimport plugother.part\n" + HALF
    (folder / "plugpack" / "players.py").write_text(text)
    importlib.invalidate_caches()
    cls = importlib.import_module("plugpack.players").Half
    before = sources(cls)
    assert before.keys() == {"plugpack"}
    (folder / "plugother" / "part.py").write_text("P = 22\n")
    assert sources(cls) == before
    (folder / "plugpack" / "part.py").write_text("P = 22\n")
    assert sources(cls) != before


def test_state_outside_of_the_fields_of_a_dataclass(module):
    text = (
        "from onlinecal.natures import Drift\nclass Mine(Drift):\n    def __init__(self, x):\n"
        "        super().__init__()\n        object.__setattr__(self, 'x', x)\n"
    )
    mine = module("plug_a", text, "Mine")
    assert key(mine(1)) == key(mine(1))
    assert key(mine(1)) != key(mine(2))


def test_differences_lead_to_what_differs(module):
    before = content(as_forecaster(module("plug_a", HALF, "Half")))
    after = content(as_forecaster(module("plug_a", HALF.replace("0.5", "0.6"), "Half")))
    assert list(differences(before, after)) == [("parameters", "make", "source", "plug_a")]
    assert list(differences({"a": 1}, {"b": 1})) == [("a",), ("b",)]
    assert list(differences([1], [1])) == []
