"""Specifications: names, keys, labels, and how they are made from a name and parameters."""

import math
from dataclasses import dataclass, field
from functools import partial

import pytest

from onlinecal import forecasters as f
from onlinecal.core import strategy as s
from onlinecal.core.content import content
from onlinecal.core.errors import InvalidParameter, UnknownName
from onlinecal.forecasters import Scalar, as_forecaster
from onlinecal.natures import GroupContrarian
from tests.engine.games import Mean


@dataclass(frozen=True)
class Plain:
    q: float = 0.5
    m: int | str = "T^(1/3)"


@dataclass(frozen=True)
class FileReader:
    file: str = field(default="a.csv", metadata={"key": False})
    above: float | None = None
    fingerprint = "0f"


@dataclass(frozen=True)
class MadeOfOthers:
    parts: tuple
    inner: object = None
    rule: object = None

    def __post_init__(self):
        if self.inner == 0:
            raise ZeroDivisionError("inner")


@dataclass(frozen=True)
class Grown:
    q: float = 0.5
    later: float = field(default=1.0, metadata={"key": "unless default"})


class CDLMinimiser:
    """Has no parameters."""


class AWalk:
    """Has none either; its first word is no acronym."""


class K29(CDLMinimiser):
    name = "called"


KNOWN = s.registry([Plain, MadeOfOthers])
NESTED = MadeOfOthers((Plain(), 2), inner=Plain(0.25), rule=math.sqrt)
#: strategy, label, key
NAMED = [
    (Plain(), "plain", 'plain(m="T^(1/3)", q=0.5)'), (Plain(0.25, 10), "plain (q=0.25, m=10)", "plain(m=10, q=0.25)"),
    (MadeOfOthers((Plain(1.0), Plain())), "made of others (parts=[plain (q=1), plain])",
     'made_of_others(inner=null, parts=[plain(m="T^(1/3)", q=1), plain(m="T^(1/3)", q=0.5)], rule=null)'),
    (NESTED, None, 'made_of_others(inner=plain(m="T^(1/3)", q=0.25), parts=[plain(m="T^(1/3)", q=0.5), 2], '
     "rule=math:sqrt)"),
    (CDLMinimiser(), "CDL minimiser", None), (AWalk(), "a walk", None), (K29(), "called", None),
    (FileReader("b.csv"), None, "file_reader(above=null, sha256=0f)"),  # wherever it lies
    # A parameter that was added later plays where it is not the default.
    (Grown(0.25), None, "grown(q=0.25)"), (Grown(0.25, 1), None, "grown(q=0.25)"),
    (Grown(0.25, 2.0), None, "grown(later=2, q=0.25)"),
    (GroupContrarian({"odd": 0.5}), 'group contrarian (groups={"odd": 0.5})', None),
    (Scalar(Mean, name="mean"), "mean", 'mean(make=tests.engine.games:Mean, name="mean")'),
    (Scalar(Mean), "scalar (make=tests.engine.games:Mean)", None),
]  # fmt: skip


@pytest.mark.parametrize(("strategy", "label", "key"), NAMED)
def test_labels_say_what_differs_from_the_defaults_and_keys_what_plays(strategy, label, key):
    assert key is None or s.strategy_key(strategy) == key
    assert label is None or s.strategy_label(strategy) == label
    if isinstance(strategy, Grown):
        assert set(content(strategy)["parameters"]) == {name for name in ("q", "later") if f"{name}=" in key}


def test_a_strategy_is_built_from_a_name_and_parameters():
    assert list(KNOWN.items()) == [("plain", Plain), ("made_of_others", MadeOfOthers)]
    assert s.strategy_name(CDLMinimiser) == s.strategy_name(CDLMinimiser()) == "cdl_minimiser"
    assert s.build("nature", KNOWN, "plain", {"q": 0.1}) == Plain(0.1)
    # Lists of a TOML file are tuples.
    assert s.build("nature", KNOWN, "made_of_others", {"parts": [1, 2]}).parts == (1, 2)
    assert s.parameters(Plain(0.1)) == {"q": 0.1, "m": "T^(1/3)"}
    assert (s.required(Plain), s.required(MadeOfOthers)) == ([], ["parts"])


@pytest.mark.parametrize(
    ("name", "options", "error", "said"),
    [
        ("plan", {}, UnknownName, "unknown nature 'plan'; did you mean 'plain'"),
        ("plain", {"Q": 1}, InvalidParameter, "nature 'plain' has no parameter 'Q'; did you mean 'q'"),
        ("made_of_others", {}, InvalidParameter, "nature 'made_of_others' needs the parameter 'parts'"),
        ("made_of_others", {"parts": [1], "inner": 0}, InvalidParameter, "cannot be made: ZeroDivisionError: inner"),
    ],
)  # fmt: skip
def test_what_cannot_be_built_is_said(name, options, error, said):
    with pytest.raises(error, match=said):
        s.build("nature", KNOWN, name, options)


def test_what_cannot_be_made_is_called_as_it_was_asked_for():
    for given, name in ((("mine",), "mine"), ((), "made_of_others")):
        with pytest.raises(InvalidParameter, match=f"nature '{name}' needs the parameter 'parts'"):
            s.make("nature", MadeOfOthers, *given)
        with pytest.raises(InvalidParameter, match=f"nature '{name}' cannot be made: ZeroDivisionError"):
            s.make("nature", MadeOfOthers, *given, parts=(), inner=0)
    with pytest.raises(InvalidParameter, match="forecaster 'rounded' needs the parameter 'of'"):
        as_forecaster(partial(f.Rounded, m=3))


def test_a_plain_class_may_have_attributes_of_any_name():
    class Own:
        of, origin, given = 1, 2, {"rate": 3}

        def __init__(self, rate=0.5): ...
        def forecast(self): ...
        def update(self, forecast, outcome): ...

    made = as_forecaster(Own)
    assert (made.origin, made.settings) == (Own, {"rate": 0.5})
    assert made.classes == f.Constant().classes == 2
    assert as_forecaster(Own(1)).origin.given == {"rate": 3}
    assert as_forecaster(Own, {"rate": 2}).settings == {"rate": 2}


class Holding:
    library, numbers = math, 3

    def __init__(self, *given):
        self.rate, self.word, self.past, self._secret = given

    def forecast(self): ...
    def update(self, forecast, outcome): ...


def test_an_object_is_labelled_by_the_numbers_and_texts_that_it_holds():
    """Its runs share modules, which cannot be copied."""
    made = as_forecaster(Holding(0.5, "x", [1], 2))
    assert s.strategy_label(made) == 'Holding (rate=0.5, word="x")'
    assert made.player(9).library is math


def test_memory_at_a_horizon():
    """Of parameters, also of parts and of somebody's class, of the rounds t and the horizon T."""
    nested = f.ExpertMixture((f.ForecastHedging(8), f.Rounded(f.ForecastHedging("T^(1/2)"), 4)))
    assert [
        s.memory_at(each, 10, 100) for each in (f.Constant(), f.ForecastHedging(8), f.EmpiricalMean())
    ] == [1, 8, 1]
    assert s.memory_at(nested, 10, 100) == 8 + 10
    for stated, said in (("O(zzz)", "has no attribute 'zzz'"), ("t", "expected 'O")):
        with pytest.raises(InvalidParameter, match=said):
            s.memory_at(type("Own", (), {"memory": stated})(), 10, 100)
