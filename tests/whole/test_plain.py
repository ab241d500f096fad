"""Players in plain Python: classes, functions, parameters, objects. tests/whole/test_plug_ins.py has scenarios."""

import functools
import threading
from collections import deque
from dataclasses import dataclass

import pytest

import onlinecal as oc
from onlinecal.core.content import content, digest
from onlinecal.core.errors import OnlinecalError
from onlinecal.core.strategy import memory_at, strategy_key, strategy_label
from onlinecal.forecasters import Constant, as_forecaster
from onlinecal.naming import kind_of
from onlinecal.natures import Bernoulli, Sight, as_nature


class EMA:
    """A moving average of the outcomes."""

    def __init__(self, rate=0.5, start=0.5):
        self.rate, self.level = rate, start

    def forecast(self):
        return self.level

    def update(self, forecast, outcome):
        self.level += self.rate * (outcome - self.level)


class Swing:
    """A coin that leans against the last outcome."""

    safe_under_delay, memory = True, "O(lean)"

    def __init__(self, lean=0.2):
        self.lean, self.last = lean, None

    def probability(self):
        return 0.5 if self.last is None else 0.5 + self.lean * (1 - 2 * self.last)

    def update(self, forecast, outcome):
        self.last = outcome


class Late:
    """One in the second half of the game."""

    def __init__(self, horizon):
        self.half, self.round = horizon / 2, 0

    def probability(self):
        self.round += 1
        return float(self.round > self.half)


@dataclass
class Fixed:
    p: float = 0.25

    def forecast(self):
        return self.p

    def update(self, forecast, outcome):
        self.p = 0.75


class Collecting:
    """Says the mean of what is in a sequence, to which it adds outcomes."""

    def __init__(self, seen):
        self.seen = seen

    def forecast(self):
        return sum(self.seen) / len(self.seen)

    def update(self, forecast, outcome):
        self.seen.append(outcome)


def faster(rate=0.9):
    return EMA(rate, 0.5)


def key(thing):
    return digest(content(thing))


def totals(forecaster, nature=None, seed=0, runs=3):
    options = {"horizon": 60, "runs": runs, "seed": seed, "measures": ["brier"]}
    return oc.play(forecaster, nature or Bernoulli(0.3), **options).curve("brier").totals


PARTIAL = functools.partial
WAYS = {
    "partial": lambda rate: PARTIAL(EMA, rate=rate),
    "positional partial": lambda rate: PARTIAL(EMA, rate),
    "partial of a function": lambda rate: PARTIAL(faster, rate=rate),
    "object": EMA,
    "dataclass": Fixed,
    "function": lambda rate: {0.1: lambda: EMA(0.1), 0.2: lambda: EMA(0.2)}[rate],
}


@pytest.mark.parametrize("way", WAYS)
def test_a_parameter_is_part_of_what_is_played(way, seed):
    one, again, other = (as_forecaster(WAYS[way](rate)) for rate in (0.1, 0.1, 0.2))
    assert key(one) == key(again) or way == "function"  # two functions of one name and text are two
    assert key(one) != key(other)
    assert (totals(one, seed=seed) == totals(again, seed=seed)).all()
    assert (totals(one, seed=seed) != totals(other, seed=seed)).any()
    if way != "function":
        assert strategy_key(one) == strategy_key(again) != strategy_key(other)
        assert strategy_label(one) == strategy_label(again) != strategy_label(other)


def test_labels_say_the_parameters():
    things = EMA, PARTIAL(EMA, rate=0.1), PARTIAL(EMA, 0.1), EMA(0.1), Fixed(0.5), faster
    labels = [strategy_label(as_forecaster(thing)) for thing in things]
    assert labels == ["EMA", "EMA (rate=0.1)", "EMA (rate=0.1)", "EMA (rate=0.1)", "Fixed (p=0.5)", "faster"]
    assert strategy_label(as_nature(PARTIAL(Swing, 0.3))) == "Swing (lean=0.3)"
    # Numbers of plain classes are kept under this key.
    assert strategy_key(as_forecaster(EMA)) == 'EMA(make=tests.whole.test_plain:EMA, name="EMA")'
    assert [kind_of(thing) for thing in (EMA, EMA(), faster, Swing, Bernoulli(), lambda: Swing(), 3, print)] == [
        *["forecaster"] * 3, *["nature"] * 3, "", "",
    ]  # fmt: skip


def test_every_run_has_an_object_of_its_own(seed):
    given = EMA(0.3)
    spec = as_forecaster(given)
    given.rate = 0.9
    whole = totals(spec, seed=seed)
    assert given.level == 0.5  # the one that was given does not play
    assert (whole == totals(PARTIAL(EMA, rate=0.3), seed=seed)).all()
    for give in (lambda x: PARTIAL(Collecting, x), lambda x: PARTIAL(Collecting, seen=x)):
        shared = deque([0, 1])
        together = totals(give(shared), seed=seed)
        assert list(shared) == [0, 1]
        assert (totals(give(shared), seed=seed, runs=1) == together[..., :1]).all()


def test_a_plain_nature(seed):
    late, swing = as_nature(Late), as_nature(Swing)
    assert (late.sight, late.needs_horizon) == (Sight.NOTHING, True)
    assert (swing.sight, swing.needs_horizon, swing.safe_under_delay) == (Sight.HISTORY, False, True)
    assert [memory_at(as_nature(thing), 10, 10) for thing in (Swing, Swing(0.4))] == [0.2, 0.4]
    natures = [Late, Swing(0.5), PARTIAL(Swing, lean=-0.5)]
    study = oc.play(Constant(0.5), natures, horizon=100, runs=2, seed=seed, measures=["ece"])
    assert study.natures == ["Late", "Swing (lean=0.5)", "Swing (lean=-0.5)"]
    assert study.curve("ece", nature="Late").mean[-1] == 0.0
    assert study.curve("ece", nature="Swing (lean=0.5)").mean[-1] <= 0.5  # 0, 1, 0, 1, …
    assert study.curve("ece", nature="Swing (lean=-0.5)").mean[-1] == 50.0  # one outcome for ever
    assert oc.natures.Switch(swing, late).sight is Sight.HISTORY


# ---------------------------------------------------------------- what is refused, in one line


class Needy(EMA):
    def __init__(self, rate):
        super().__init__(rate)


class Uncopied(EMA):
    def __deepcopy__(self, memo):
        raise TypeError("there is one of me")


def given(thing):
    return (as_nature if isinstance(thing, Bernoulli) else as_forecaster)(thing, {"p": 0.5})


NO_FORECASTER = r"is not a forecaster; expected a Forecaster, or a class with forecast\(\) and update\("
NO_NATURE = r"is not a nature; expected a Nature, or a class with probability\(\)"
MADE = "has been made and takes no parameter 'p'; expected parameters with"
REFUSED = [
    (as_forecaster, 3, f"3 {NO_FORECASTER}"), (as_forecaster, "ema", f"'ema' {NO_FORECASTER}"),
    (as_forecaster, Swing, NO_FORECASTER), (as_nature, EMA(), NO_NATURE),
    (as_forecaster, type("Typo", (), {"forcast": len, "update": len}), "it has forcast; is forecast meant"),
    (as_forecaster, type("Told", (), {"forecast": 0.5, "update": len}), "its forecast is no method; expected"),
    (as_forecaster, Needy, "'Needy' cannot be made without arguments: .* needs rate; expected defaults for all but"),
    (as_forecaster, PARTIAL(EMA, rat=1), "forecaster 'EMA' has no parameter 'rat'; did you mean 'rate'"),
    (as_forecaster, PARTIAL(EMA, 1, 2, 3), "forecaster 'EMA' cannot be made: too many positional arguments"),
    (as_forecaster, lambda: 3, "forecaster '<lambda>' made 3, which has no method forecast"),
    (as_nature, lambda: 1 / 0, "nature '<lambda>' cannot be made: ZeroDivisionError"),
    (as_forecaster, Uncopied(), "'Uncopied' cannot be copied, .*there is one of me.*; expected its class"),
    (as_forecaster, PARTIAL(Collecting, threading.Lock()),
     "has parameters, which cannot be copied, and each run needs its own"),
    (given, EMA(), MADE), (given, Bernoulli(), MADE),
]  # fmt: skip


@pytest.mark.parametrize(("take", "thing", "said"), REFUSED)
def test_what_is_refused(take, thing, said):
    with pytest.raises(OnlinecalError, match=said) as error:
        take(thing)
    assert "\n" not in str(error.value)
