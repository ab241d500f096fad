"""Plain classes as compiled steps: the bytes of Python, or the reason why not."""

import linecache
import math
import pickle
import random
import re
from functools import cache, partial

import numpy as np
import pytest

import onlinecal as oc
from onlinecal import forecasters as f
from onlinecal.core.errors import InvalidForecast
from onlinecal.engine import record
from onlinecal.engine.game import Game
from onlinecal.natures import Bernoulli, UniformTruth
from onlinecal.schedules import Pareto, Poisson, Schedule
from tests.examples import WHOLES
from tests.marks import slow

# ---------------------------------------------------------------- classes that play as they are

LOW, T, LATE = 0.25, 700, Schedule(Poisson(2), Pareto())


def between(p, low=0.0, high=1.0):
    return min(max(p, low), high)


class EMA:
    def __init__(self, rate=0.1):
        self.rate, self.mean = rate, 0.5

    def forecast(self):
        return self.mean

    def update(self, forecast, outcome):
        self.mean += self.rate * (outcome - self.mean)


class Window:
    """The last outcomes in a ring; its length depends on the horizon."""

    def __init__(self, horizon, share=0.01):
        self.seen = [0] * max(2, int(share * horizon))
        self.at = 0

    def forecast(self):
        total = 0
        for i, y in enumerate(self.seen):
            if i >= 0:
                total += y
        return total / len(self.seen)

    def update(self, forecast, outcome):
        self.at -= 1
        self.seen[self.at % len(self.seen)] = outcome


class Powers:
    """Functions of math and of this module, powers, methods and a while."""

    STEP = 0.3

    def __init__(self):
        self.t, self.x = 1, 0.0

    def rate(self, power=0.5):
        return self.STEP / self.t**power

    def forecast(self):
        return between(0.5 + 0.5 * math.tanh(self.x), high=1 - LOW**2)

    def update(self, forecast, outcome):
        self.t += 1
        self.x += self.rate() * (outcome - forecast) + self.rate(power=2.0) * math.log(self.t)
        while abs(self.x) > 3.0:
            self.x = self.x * 2.0**-1 - (-self.x) % 0.7 // 3


class Biases:
    """Entries of a list, in a loop with break; the number of the round, also later."""

    def __init__(self, m=7):
        self.m, self.bias, self.total = m, [0.0] * (m + 1), 0

    def forecast(self, round):
        i = 0
        for i in range(self.m):
            if self.bias[i] >= 0.0 > self.bias[i + 1] or round.number < i:
                break
        else_ = i + 1
        if self.total % 3:
            return {i / self.m: 0.5, else_ / self.m: 0.5}
        return i / self.m

    def update(self, forecast, outcome, round):
        self.bias[int(forecast * self.m + 0.5)] += forecast - outcome
        self.bias[-1] *= 0.5
        self.total += round.number


class Mean:
    """Laws of one or two atoms, whole arithmetic, and truth values that are kept and added."""

    def __init__(self):
        self.ones, self.rounds, self.last, self.up, self.seed = 0, 0, 0.0, False, 12345

    def forecast(self):
        self.seed = (self.seed * 1103515245 + 12345) % 2147483648
        p = (self.ones + 1) / (self.rounds + 2)
        q = self.seed / 2147483648 if self.up and p > LOW else p
        if self.rounds % 3:
            return q
        return {p: 1 - p, self.last: ((p > LOW) + (p <= LOW)) * p}

    def update(self, forecast, outcome):
        self.ones, self.rounds = self.ones + outcome, self.rounds + 1
        self.last = 1 if outcome else 0.0
        self.up = not self.up or outcome == 1


class Against:
    """A nature that sees the draw, and hears; it depends on the horizon and the number of the round."""

    sight = "draw"

    def __init__(self, horizon, lean=0.4):
        self.lean, self.last, self.half, self.t = lean, 0.5, horizon / 2, 0

    def probability(self, round):
        self.t += 1
        late = (1 - self.last) * float(self.t > self.half) / 10
        return late + 0.5 + self.lean * (1 if round.forecast < 0.5 else -1) * (round.number % 2)

    def update(self, forecast, outcome):
        self.last = forecast


class Noisy:
    """Numbers of the run, in `__init__` and later, and of the context."""

    needs = frozenset({"truth"})

    def __init__(self, horizon, stream):
        self.stream, self.seen, self.begin = stream, 0, stream.uniform(horizon)
        self.noise = stream.block(5)[:, 0].tolist()

    def forecast(self, round):
        mean = self.noise[round.number % 5] + self.stream.uniform(round.number) + self.begin
        return (mean + round.context["truth"]) / 4

    def update(self, forecast, outcome, round):
        self.seen += outcome
        self.begin = (self.begin + round.context["truth"] * self.stream.uniform(self.seen)) % 1


COIN = Bernoulli(0.4)
PAIRS = [(Window, COIN), slow((Powers, COIN)), slow((Biases, COIN)), (Mean, Against), (Noisy, UniformTruth())]


def played(forecaster, nature, **options):
    game = Game(forecaster, nature, horizon=T, runs=range(7, 10), seed=5, keeps=(), **options)
    game.advance(T // 2)
    game = pickle.loads(pickle.dumps(game))
    game.advance(T)
    rounds = [game.transcripts.of(run) for run in range(3)]
    return game, [(each.forecasts.tobytes(), each.outcomes.tobytes()) for each in rounds]


@pytest.fixture
def marked(monkeypatch):
    def mark(*things):
        for thing in things:
            if isinstance(thing, type):
                monkeypatch.setattr(thing, "oc_compiled", True, raising=False)
                oc.compiled(thing)

    return mark


@pytest.mark.parametrize(("mine", "theirs"), PAIRS, ids=str)
def test_a_compiled_class_plays_the_same_bytes(mine, theirs, marked):
    options = {}, {"schedule": LATE, "threads": 2}
    plain = [played(mine, theirs, **each) for each in options]
    marked(mine, theirs)
    for each, (game, numbers) in zip(options, plain, strict=True):
        compiled, same = played(mine, theirs, **each)
        assert same == numbers, each
        assert compiled.compiled is not game.compiled


def test_it_is_no_other_strategy_and_its_subclass_is_plain(marked):
    study = {"horizon": [50, 100], "runs": 2, "measures": ["ece"], "seed": 3}
    plain = oc.play([partial(EMA, rate=0.3), EMA(0.2)], Against, **study)
    marked(EMA, Against)
    compiled = oc.play([partial(EMA, rate=0.3), EMA(0.2)], Against, **study)
    assert plain.forecasters == compiled.forecasters
    for who in plain.forecasters:
        one, two = (each.curve("ece", who).totals.tobytes() for each in (plain, compiled))
        assert one == two
    for cls, steps in ((EMA, True), (type("Own", (EMA,), {}), False)):
        assert Game(cls, COIN, horizon=5, runs=range(1)).compiled is steps


@pytest.mark.parametrize("whole", [f.Doubling, slow(f.Delayed), slow(WHOLES["nested"])])
def test_parts_are_compiled_once_for_a_class(whole, marked, monkeypatch):
    """Copies and epochs have the same steps, as their lists are as long."""
    made, part = [], f.as_forecaster(partial(Window, share=0.001))

    def end():
        return played(whole(part), COIN, schedule=LATE)[1]

    plain = end()
    marked(Window)
    record._kept.cache_clear()
    monkeypatch.setattr(
        record, "Record", lambda *given, of=record.Record: made.append(of(*given)) or made[-1]
    )
    assert end() == plain
    assert len(made) == 1


def test_it_is_played_beside_the_plain_object_once_for_the_same_beginning(marked, monkeypatch):
    """In other games and copies not again; with other numbers at the beginning it is."""
    beginnings = []
    marked(EMA)
    record._kept.cache_clear()
    monkeypatch.setattr(
        record, "rehearse", lambda role, strategy, made, thing, of: beginnings.append(thing.rate)
    )
    for rate, horizon in ((0.1, 50), (0.1, 60), (0.2, 50), (0.1, 50)):
        whole = f.Delayed(f.as_forecaster(partial(EMA, rate)))
        Game(whole, COIN, horizon=horizon, runs=range(2), schedule=LATE).advance(horizon)
    assert beginnings == [0.1, 0.2]


# ---------------------------------------------------------------- classes in texts

X = "return min(max(self.x, 0.0), 1.0)"


def made(update="pass", forecast=X, init="self.x = 0.5", before="", below=""):
    """A class in a text, and its names. Without `before`, and with one line each, `update` begins in line 8."""
    text = f"{before}class Mine:\n def __init__(self, stream, far=0.0, which=0):\n"
    text += "  self.n, self.far, self.which = 0, far, which\n"
    heads = "", " def forecast(self):\n", " def update(self, forecast, outcome):\n"
    for head, body in zip(heads, (init, forecast, update), strict=True):
        text += head + "".join(f"  {line}\n" for line in body.splitlines())
    file = f"<text {len(linecache.cache)}>"
    space = {"__name__": "texts", "math": math, "np": np, "random": random}
    linecache.cache[file] = len(text + below), None, (text + below).splitlines(True), file
    exec(compile(text + below, file, "exec"), space)
    return space["Mine"], space


def course(cls, horizon=T, runs=1, **given):
    """The forecasts of a game and its outcomes, as bytes; or the round in which it stops."""
    game = Game(partial(cls, **given), COIN, horizon=horizon, runs=range(runs), seed=2, keeps=())
    try:
        game.advance(horizon)
    except InvalidForecast as error:
        return int(re.search(r"in round (\d+)", str(error))[1])
    rounds = [game.transcripts.of(run) for run in range(runs)]
    return [(each.forecasts.tobytes(), each.outcomes.tobytes()) for each in rounds]


BIG = "big = self.n * 2541865828329\n"
#: names with a value on every path, and numbers below 2^53 that are whole on one path
SAME = {
    "both_branches": "if outcome: step = 0.1\nelse: step = 0.2\nself.x = step",
    "a_return": "if outcome:\n self.x = 0.25\n return\nelse: step = 0.2\nself.x = step",
    "a_break": "while True:\n step = 0.1\n if outcome or step > 0: break\nself.x = forecast / 3",
    "a_continue": "for i in range(3):\n if i: step = i\n else: continue\n self.x = step / 4",
    "a_list": "self.w[outcome] += 1\nfor x in self.w: self.x = (self.x + x) % 7 / 7",
    "a_swap": "step = 0.5\nstep, self.x = self.x, step\nstep += outcome\nself.x = step / 3",
    "a_raise": "if outcome > 1: raise ValueError\nelse: step = 0.3\nself.x = step",
    "comparisons": "self.w[int(forecast > 0.5)] += 1\nself.x = ((self.w[0] > 9) + (self.n > 5) + (self.w[1] > 9)) / 4",
    "a_choice": BIG + "self.x = (big if self.n > 450 else 0.5) % 7 / 7",
    "a_branch_that_goes_on": "y = 0.5\nif self.n > 450:\n y = self.n\n y = y * y\nself.x = y % 7 / 7",
    "the_larger": BIG + "self.x = max(big, 1.5) % 7 / 7 if self.n > 450 else 0.5",
    "compared": BIG + "self.x = (big == big * 1.0) / 2 if self.n > 450 else 0.5",
    "a_power": "if self.n > 450: self.x = 3.0 ** -(-30 - self.n % 2) % 7 / 7",
    "a_large_power": "self.x = 0.5 + 0.25 * (-1.0) ** (self.n * 1000000000 + self.n)",
    "a_helper": "self.x = self.two() % 7 / 7",
    "a_whole_number": "big = self.n * 5559060566555523\nself.x = big % 1009 / 1009",
    "an_outcome": "y = 1 if outcome else 0.5\ny = 3 * y + outcome\nself.x = y % 7 / 7",
    "a_large_product": "y = self.n if outcome else 0.5\nself.x = min(y * 1e300, 1e307) % 7 / 7",
    "a_total": "total = 0\nfor i in range(9): total += outcome / 3\nself.x = total / 9",
}
#: numbers that differ from round 451 on, as docs/writing.md says: the controls
OTHER = {
    "a_product": "4611686018427387904 * (self.n - 446) % 7 / 7",
    "a_real_name": "(9007199254740992 + self.n - 450 if self.n > 450 else 0.5) % 7 / 7",
    "a_quotient": "(9007199254740994 + self.n) / 10 % 1",
    "a_comparison": "0.25 + 0.5 * (9007199254740542 + self.n == 9007199254740992.0)",
    "a_zero": "0.5 + math.copysign(0.25, -(0 if self.n > 450 else 0.5))",
}
BODIES = SAME | {name: f"if self.n > 450: self.x = {number}" for name, number in OTHER.items()}
#: a forecast that is another for each x, but for what is no number
WITHIN = "return self.x if 0.0 <= self.x <= 1.0 else 1 / (2 + abs(self.x))"


@cache
def both():
    """The plain and the compiled class that does one of these things, by `which`, so that all are compiled at once."""
    update, methods = (
        "self.n += 1\n",
        " def two(self):\n  if self.n <= 450: return 0.5\n  return self.n * 2541865828329\n",
    )
    for i, (name, body) in enumerate(BODIES.items()):
        update += f"if self.which == {i}: self.{name}(forecast, outcome)\n"
        methods += f" def {name}(self, forecast, outcome):\n"
        methods += "".join(f"  {line}\n" for line in body.splitlines())
    init = "self.x, self.w = 0.5, [0, 0]"
    plain, compiled = (made(update, WITHIN, init, below=methods)[0] for _ in range(2))
    return plain, oc.compiled(compiled)


@pytest.mark.parametrize("name", BODIES)
def test_numbers_are_those_of_python_but_where_the_page_says_so(name):
    horizon = 452 if name in OTHER else T
    plain, compiled = (course(cls, horizon, which=list(BODIES).index(name)) for cls in both())
    assert isinstance(plain, list)
    assert isinstance(compiled, list)
    assert (compiled == plain) is (name in SAME)


FUNCTIONS = ("sqrt", "exp", "expm1", "log", "log1p", "sin", "cos", "atan", "tanh", "fabs", "floor", "ceil")
FUNCTIONS = (*(f"math.{f}" for f in FUNCTIONS), "int", "round", "abs", "4 **", "2.5 // ", "3.5 % ")


@cache
def functions():
    """The plain and the compiled class of all functions; `far` is given from round 46 on: after a short rehearsal."""
    update = "self.n += 1\nx = self.far if self.n > 45 else 0.5\n"
    update += "".join(f"if self.which == {i}: self.x = {name}(x)\n" for i, name in enumerate(FUNCTIONS))
    plain, compiled = (made(update, WITHIN)[0] for _ in range(2))
    return plain, oc.compiled(compiled)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_functions_beyond_their_values_end_or_play_as_in_python(function, monkeypatch):
    """At the ends of the numbers."""
    monkeypatch.setattr(record, "REHEARSED", 40)
    for far in (math.inf, -math.inf, math.nan, -1.0, -0.0, -1.5, 1e308, -1e308, 2.0**63, -(2.0**63), 5e-324):
        given = {"which": FUNCTIONS.index(function), "far": far}
        plain, compiled = (course(cls, 55, **given) for cls in functions())
        # A whole number beyond 64 bits ends the game.
        whole = abs(far) == 1e308 or far == 2.0**63
        whole &= function in ("math.floor", "math.ceil", "int", "round")
        assert compiled == (46 if whole else plain), far


def test_powers_of_real_numbers_are_those_of_python_but_for_the_last_digit(seed):
    """docs/writing.md says so; here within two units in the last place, at 2,000 bases and exponents."""
    bases, exponents = np.random.default_rng(seed).uniform((0.0, -30.0), (3.0, 30.0), (2000, 2)).T.tolist()

    class Each:
        def __init__(self):
            self.a, self.b, self.n, self.y = list(bases), list(exponents), 0, [0.0] * 2000

        def forecast(self):
            return self.n % 2 / 2

        def update(self, forecast, outcome):
            self.y[self.n] = self.a[self.n] ** self.b[self.n]
            self.n += 1

    game = Game(oc.compiled(Each), COIN, horizon=2000, runs=range(1))
    game.advance(2000)
    found = game.forecaster.state[0][-2000:]
    powers = np.array([a**b for a, b in zip(bases, exponents, strict=True)])
    assert (np.abs(found - powers) <= 2.0 * np.spacing(powers)).all()
