"""What compiled code would play in another way than Python is refused with its line, and what changes is read again."""

import importlib
from types import ModuleType

import pytest

import onlinecal as oc
from onlinecal.core.errors import InvalidParameter
from onlinecal.engine import record
from onlinecal.engine.game import Game
from tests.engine.test_compiled import COIN, X, course, made


def refusal(*parts):
    """The message by which a class is refused, compiled or as its game begins; "" where it plays as in Python."""
    try:
        compiled = course(oc.compiled(made(*parts)[0]), runs=3)
    except InvalidParameter as error:
        return str(error)
    assert compiled == course(made(*parts)[0], runs=3)
    return ""


#: the words of a refusal, with its line; then the parts of the class
REFUSED = [
    # a name without a value on one path, at which Python stops in round 500 or never
    ("line 10: `step` may", "self.n += 1\nif self.n < 500: step = 0.1\nself.x = step * outcome"),
    ("line 10: `i` may", "self.n += 1\nfor i in range(500 - self.n): pass\nself.x = 1 / (1 + i)"),
    ("line 10: `step` may", "self.n += 1\nwhile self.n < 500 > self.x: self.x, step = 501.0, 0.1\nself.x = step"),
    ("line 12: `step` may", "self.n += 1\nwhile True:\n if self.n >= 500: break\n step = 0.1; break\nself.x = step"),
    ("line 10: `step` may", "self.n += 1\nif self.n < 500: step = 0.1\nstep += 0.1\nself.x = step / 3"),
    ("step, line 4: `x` may", "self.n += 1\nself.x = step(self.n)", X, "self.x = 0.5",
     "def step(n):\n if n < 500:\n  x = 0.1\n return x\n"),
    ("Mine.late, line 10: it returns a number on some", "self.n += 1\nself.x = self.late()", X, "self.x = 0.5", "",
     " def late(self):\n  if self.n < 500: return 0.75\n"),
    ("Mine.forecast, line 5: it returns a number on some", "self.n += 1", "if self.n < 500: return 0.5"),
    # lists, and what is not compiled
    ("line 8: `self.x.append(1)` is not compiled; expected numbers", "self.x.append(1)", "return 0.5", "self.x = [1]"),
    ("line 8: `self.x` is not compiled", "self.x = 1", "return 0.5", "self.x = [1]"),
    ("line 6: `[x for x in self.x]` is not compiled", "pass", "return max([x for x in self.x])", "self.x = [1]"),
    ("it is not compiled: ", "pass", "return self.x[self.x[0]]", "self.x = [0.5]"),
    ("line 8: `random.random()` is not compiled", "self.x = random.random()"),
    ("line 8: self.r holds a random.Random", "self.x = self.r.random()", X, "self.r, self.x = random.Random(1), 0.5"),
    ("line 8: `np.exp(-self.x)` is not compiled", "self.x = np.exp(-self.x)"),
    ("line 8: `for self.n in range(3):", "for self.n in range(3): pass"), ("line 6: `{}` is not", "pass", "return {}"),
    ("Mine has `certificates`, which is not compiled", "pass", X, "self.x = 0.5", "", " certificates = 1\n"),
    ("Mine has several streams; expected one", "pass", X, "self.x, self.a, self.b = 0.5, stream, stream"),
    ("late is no plain function; expected one by itself", "self.x = rate(self.x)", X, "self.x = 0.5",
     "import functools\n@functools.cache\ndef late(x): return x\n@functools.wraps(late)\ndef rate(x): return x\n"),
    ("line 8: `self.x in (1, 2)` is not compiled", "self.x = self.x in (1, 2)"),
    ("line 8: `'a'` is not compiled", "self.x = 'a'"),
    ("line 8: `self.x = self.n = 1` is not compiled", "self.x = self.n = 1"),
    ("line 8: `(0.25, outcome)` is not compiled", "[a, b] = 0.25, outcome\nself.x += a * (b - self.x)"),
    ("line 9: `step.real` is not compiled", "step = 0.5\nself.x = step.real"),
    ("line 9: `self` is not compiled", "self.x = half(self)", X, "self.x = 0.5", "def half(me): return me.x / 2\n"),
    ("line 6: `{0.2: 1.0}` is not", "pass", "return {0.2: 1.0} if self.n else 0.5"),
    ("line 6: self.x holds a builtins.NoneType", "pass", X, "self.x = None"),
    ("line 6: self.y is not made in __init__", "pass", "return self.y"),
    ("line 6: self.__y is not made in __init__", "pass", "return self.__y", "self.__y = 0.5"),
    ("line 6: it is not compiled", "pass", "return round(self.x, 2)"),
    ("line 9: it is called by what it calls", "self.x = self.late()", X, "self.x = 0.5", "",
     " def late(self): return self.late()\n"),
    # whole numbers: of more bits, which a rehearsal finds, as real ones, and with powers
    ("self.x = 18446744073709551616 is ", "self.x = self.x * 4", "return 0.5", "self.x = 1"),
    ("line 6: self.x holds a builtins.int of more than 64 bits", "pass", X, "self.x = 2**63"),
    ("line 8: `9223372036854775808` is not", "self.x = 9223372036854775808 % 7 / 7"),
    ("line 9: `BIG` is not compiled", "self.x = BIG % 7 / 7", X, "self.x = 0.5", "BIG = 2**63\n"),
    ("line 6: a power of two whole numbers", "pass", "return 2 ** self.x", "self.x = -1"),
    ("line 8: `self.n **= 2` is not compiled", "self.n **= 2"),
    *((f"line {line}: what begins as a whole number gets a real one", update, "return 0.5", "self.v = [0, 0]")
      for line, update in ((9, "self.n += 1\nself.n = self.n / 2 if self.n > 500 else 0"), (8, "self.n += forecast"),
                           (8, "self.n /= 2"), (8, "self.v[0] /= 2"), (8, "self.n, half = outcome / 2, 1"))),
    # the line itself, not those that call the method
    ("line 12: a power of two whole numbers", "self.one()", X, "self.x = 0.5", "",
     " def one(self): self.two()\n def two(self):\n  self.n += 1\n  self.x = self.n ** 2 % 7 / 7\n"),
    # keys of a law that are outcomes, after round 450: compared, and kept as a whole number
    *(("line 6: a truth value or whole number is a forecast of a law", "self.n += 1; self.up = self.n > 450",
       f"return {{{key}: self.far, 0.5: 1.0}}", "self.up, self.x = 0, 0.5")
      for key in ("self.n > 450", "self.up", "True")),
    # what a rehearsal finds: numbers beyond 64 bits that are kept, or stated
    ("Mine, round 51 of a rehearsal: it keeps other numbers compiled",
     "self.n += 1\nif self.n > 50: self.x = 4611686018427387904 * (self.n - 46) % 7 / 7"),
    ("in Python and an error compiled", "self.n += 1\nif self.n > 50: self.x = math.floor(1e300) % 7 / 7"),
    ("Mine, round 3 of a rehearsal: it comes to", "self.n += 1", "return 4611686018427387904 * self.n % 7 / 7"),
    # names that a class makes others of, and arguments by position
    *((f"`{name}` is another name within a class", f"self.n += 1\nif self.n > 450: self.x = {text}", X, "self.x = 0.5",
       "__y, _Mine__y = 0.9, 0.1\ndef __f(): return 0.9\ndef _Mine__f(): return 0.1\n")
      for name, text in (("__y", "__y"), ("__f", "__f()"), ("math.__y", "math.__y"))),
    ("no plain function; expected def, without *, ** and /", "self.n += 1\nif self.n > 450: self.x = half(x=self.x)", X,
     "self.x = 0.5", "def half(x, /): return x / 2\n"),
    # second names of a list
    *(("line 8: ", update, "return self.v[0]", "self.x, self.v, self.w = 0.5, [0.5], [0.5]") for update in (
        "self.v = self.w", "self.v, self.w = self.w, self.v", "v = self.w; v[0] = 0.1", "self.x = self.w")),
    # an entry is assigned after round 450, beyond any rehearsal
    *((words, "self.n += 1\nif self.n > 450: self.v[0] = 0.25", "return self.w[0] + self.v[0]",
       init, "TABLE = [0.5]\ndef all_the_same(): return TABLE\n") for words, init in (
        ("line 8: self.w is the same list as self.v", "self.v = self.w = [0.5, 0.5]"),
        ("line 8: self.w holds a numpy.ndarray", "self.v = np.array([0.5, 0.5]); self.w = self.v[::-1]"),
        ("line 8: self.v is the same list as one of all runs", "self.v = TABLE; self.w = [0.1]"),
        ("line 8: self.v is the same list as one of all runs", "self.v, self.w = all_the_same(), [0.1]"),
        ("line 8: self.v holds a builtins.tuple", "self.v = 0.5, 0.5; self.w = [0.1]"))),
    # what was played in another way after round 500
    ("Mine has a __getattribute__ or __setattr__", "self.n += 1", X, "self.x = 0.5", "",
     " def __setattr__(self, k, v): object.__setattr__(self, k, min(v, 500))\n"),
    ("Mine has a __getattribute__ or __setattr__", "self.n += 1", "return self.n % 7 / 7", "self.x = 0.5", "",
     " def __getattribute__(self, k): return 0 if k == 'n' else object.__getattribute__(self, k)\n"),
    ("self.z is a property", "self.z += 1", "return self.z % 7 / 7", "self.z = 0",
     "class Few:\n def __get__(self, of, cls=None): return 0 if of is None else of.__dict__['y']\n"
     " def __set__(self, of, value): of.__dict__['y'] = min(value, 500)\n", " z = Few()\n"),
    ("line 9: `self.late()` is not compiled", "self.n += 1\nif self.n > 500: self.x = self.late()", X,
     "self.x, self.late = 0.5, lambda: 0.9", "", " def late(self): return 0.1\n"),
    ("forecast is a property, or hides a method", "self.n += 1", X,
     "self.x = 0.5; self.forecast = lambda: 0.5 + (self.n > 500) / 4"),
    ("`K` is not compiled", "self.x = float(self.x / 3 * K)", X, "self.x = 0.5", "K = np.float32(0.1)\n"),
    ("`Share.OF` is not compiled", "self.x = 1 / Share.OF", X, "self.x = 0.5", "class Share: OF = 4\n"),
    # of its own rules are numbers of NumPy, also where they are numbers of Python, and a subclass
    *((f"Mine.update, line 9: self.w holds a numpy.{kind}", "self.n += 1\nself.x = 0.5 + 0 * self.w", X,
       f"self.x, self.w = 0.5, {made}") for kind, made in (
        ("ndarray", "np.zeros(1)"), ("float64", "np.float64(0.0)"), ("bool", "[np.bool_(False)]"))),
    ("self.k holds a texts.Own", "self.n += 1\nself.x = self.k * self.n", X,
     "self.x, self.k = 0.5, Own()", "class Own(float):\n def __mul__(self, n): return min(float(n), 500.0) / 1000\n"),
]  # fmt: skip


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case[0])
def test_what_would_play_in_another_way_is_refused(case):
    words, *parts = case
    said = refusal(*parts)
    assert words in said
    assert "; expected " in said


def test_what_has_the_same_rules_plays():
    """A list of the class is one of each run. An error ends the game in the same round, and a rehearsal."""
    of_class = (
        "self.n += 1\nif self.n > 450: self.w[0] = 1 / self.n",
        "return self.w[0]",
        "pass",
        "",
        "Mine.w = [0.5]\n",
    )
    for parts in (
        of_class,
        *([f"self.x = 1 / ({end} + outcome - self.n); self.n += 1"] for end in (50, 450)),
    ):
        assert not refusal(*parts)


@pytest.mark.parametrize("thing", [3, type("Neither", (), {})])
def test_what_is_no_class_of_players_is_refused(thing):
    with pytest.raises(InvalidParameter, match=r"expected a class with forecast\(\) or probability\(\)"):
        oc.compiled(thing)


def test_a_helper_that_is_not_defined_yet():
    """Its line is named; what stands below the class is defined as a game begins."""
    update = "self.n += 1\nself.x = rate(self.n)"
    cls, space = made(update)
    with pytest.raises(InvalidParameter, match=r"line 9: `rate` is not defined yet; expected it before"):
        course(oc.compiled(cls))
    exec("def rate(n): return 1 / n\n", space)
    with pytest.raises(InvalidParameter, match="rate: its source cannot be read; expected it in a file"):
        course(cls)
    assert not refusal(update, X, "self.x = 0.5", "", "def rate(n): return 1 / n\n")


FILE = """
class Mine:
    def forecast(self): return rate()
    def update(self, forecast, outcome): pass
def rate(): return 0.25
"""
#: each changes a class or its names, and its numbers
CHANGES = {
    "a number": lambda cls, space: space.update(STEP=0.4),
    "a number that is a default, too": lambda cls, space: space.update(POWER=3),
    "a function": lambda cls, space: space.update(rate=space["two"]),
    "a number of a module": lambda cls, space: setattr(space["own"], "STEP", 0.5),
    "a default": lambda cls, space: setattr(space["half"], "__defaults__", (3,)),
    "new code, as a notebook has": lambda cls, space: setattr(
        cls.update, "__code__", made("self.x = 0.75 * forecast")[0].update.__code__
    ),
    "a method": lambda cls, space: setattr(cls, "update", made("self.x = 0.5 * forecast")[0].update),
}


def test_methods_are_read_once_until_anything_of_them_changes(monkeypatch):
    read, method = [], record.Method
    monkeypatch.setattr(record, "Method", lambda *given: read.append(given) or method(*given))
    parts = {
        "before": "STEP, POWER = 0.25, 2\ndef one(x): return x * STEP\ndef two(x): return x / 3\nrate = one\n"
        "def half(x, power=POWER): return x * power / 4\n",
        "update": "self.x = (rate(outcome) + half(forecast) + STEP * POWER + own.STEP) / 4",
    }
    (plain, one), (compiled, two) = made(**parts), made(**parts)
    one["own"], two["own"] = ModuleType("own"), ModuleType("own")
    one["own"].STEP = two["own"].STEP = 0.125
    last = course(oc.compiled(compiled), 50)
    for name, change in CHANGES.items():
        read.clear()
        assert course(compiled, 50) == course(plain, 50) == last
        assert read == []
        change(plain, one), change(compiled, two)
        found = course(compiled, 50)
        assert found == course(plain, 50) != last, name
        assert read, name
        last = found


def test_a_file_that_was_edited_is_not_read(tmp_path, monkeypatch):
    """Its lines are those of other code than what Python plays; also where they are as many."""
    (file := tmp_path / f"edited_{tmp_path.name}.py").write_text(text := "\n" + FILE)
    monkeypatch.syspath_prepend(str(tmp_path))
    module = importlib.import_module(file.stem)
    for other in (FILE, text.replace("0.25", "0.75"), text.replace("0.25", "1"), "def"):
        file.write_text(other)
        with pytest.raises(
            InvalidParameter, match=r"line \d+: its file is another|its source cannot be read"
        ):
            course(oc.compiled(module.Mine), 9)
    file.write_text(text)
    game = Game(oc.compiled(module.Mine), COIN, horizon=9, runs=range(1), keeps=())
    file.write_text("def")  # what has been read is kept
    assert course(module.Mine, 9) == course(type("Plain", (module.Mine,), {}), 9)
    assert game.compiled


def test_a_constant_of_a_module_is_taken_as_a_game_begins():
    """docs/writing.md says so: the plain class has a new one within the game."""
    ends = []
    for mark in (lambda cls: cls, oc.compiled):
        cls, space = made("pass", "return K", before="K = 0.25\n")
        game = Game(mark(cls), COIN, horizon=20, runs=range(1), keeps=())
        game.advance(10)
        space["K"] = 0.5
        game.advance(20)
        ends.append(game.transcripts.of(0).forecasts[-1])
    assert ends == [0.5, 0.25]
    assert course(cls, 5) == course(made("pass", "return K", before="K = 0.5\n")[0], 5)
