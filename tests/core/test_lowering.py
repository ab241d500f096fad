"""Functions that are compiled from their text: the same numbers as by numba from their bytecode."""

import random
import re
from importlib import import_module
from itertools import chain
from zlib import crc32

import numpy as np
import pytest
from numba import njit, types
from numba.core.errors import NumbaError
from numba.core.runtime import nrt

from onlinecal.core._compile import kernel, part_of_kernel
from onlinecal.core._lowering import from_text
from onlinecal.core.joint import levels_of_keys
from onlinecal.measures.decision import cdl_of_levels

STEP = 3
HOW = {"error_model": "numpy"}


@part_of_kernel
def half(x, by=2.0):
    return x / by


@kernel
def signed(x):
    if x > 0.0:
        return 1, x
    return -1, -x


def tuples(x, n):
    (sign, size), rest = signed(x - 0.5), n
    facts, total = (size, n, (2.5, 1)), 0.0
    for a, b in ((sign, 2.0), (n, size)):
        total += a * b
    total += half(x) if n in (2, STEP) else abs(-x) ** 2 - x**0.5 + half(x, 3.0)
    rest, n = n & 5 | 2 ^ n << 1, rest
    return total + facts[0] + facts[2][0] * rest - np.int64(x * 10.0) + ~n


def arrays(x, n):
    values, counts = np.zeros(n + 2), np.empty((2, n), np.int64)
    for i in range(n):
        counts[0, i], counts[1, i] = i, n - i
        values[i + 1] += x * counts[1, i]
    ends, total = values[1 : n + 1], 0.0
    for value in ends:
        total += value
    return total + len(ends) + counts.shape[1] + values.view(np.int64)[1]


@pytest.mark.parametrize("function", [tuples, arrays])
def test_the_numbers_are_those_of_numba(function):
    plain = njit(**HOW)(function)
    made = njit(**HOW)(from_text(function, types.float64))
    for x in (0.0, 0.3, 0.5, 0.75, 17.0):
        for n in (1, 2, 9):
            assert made(x, n) == plain(x, n)


@pytest.fixture
def written(tmp_path, monkeypatch):
    """Imports a module of this text."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def make(text):
        name = f"written_{crc32(text.encode())}"
        head = "import math\nimport numpy as np\nfrom tests.core.test_lowering import STEP, half\n"
        (tmp_path / f"{name}.py").write_text(head + text)
        return import_module(name)

    return make


@pytest.mark.parametrize(
    "lines",
    [
        ["x = 1", "return x"], ["for _ in range(n):", "    x += len(np.empty(n))", "return x"],
        ["return (np.zeros(n) + x).sum()"], ["return sum([x for _ in range(n)])"],
        ["while n > 0:", "    if n < 2:", "        x += before", "    n, before = n - 1, x", "return x"],
    ],
)  # fmt: skip
def test_what_is_not_listed_is_left_to_numba(lines, written):
    function = written("\n    ".join(["def function(x, n):", *lines])).function
    with pytest.raises(NumbaError, match="Unlisted"):
        njit(**HOW)(from_text(function, types.float64))(1.0, 2)


def around(a):
    def within(x, n):
        return x * n + a

    return within


def test_a_function_of_another_text_is_left_to_numba():
    """One with a closure, too."""
    assert njit(**HOW)(from_text(around(0.25), types.float64))(1.5, 2) == 3.25
    changed = around(0.25)
    changed.__code__ = changed.__code__.replace(co_consts=(None, 2.0))
    with pytest.raises(NumbaError, match="another"):
        njit(**HOW)(from_text(changed, types.float64))(1.5, 2)


def test_arrays_are_given_back_and_results_belong_to_the_caller():
    v, q, keys = np.linspace(0, 1, 50), np.full(50, 0.5), np.arange(2**40, 2**40 + 99)

    def play():
        cdl_of_levels(v, np.ones(50), q)
        return levels_of_keys(keys)

    play()  # compiles
    nrt._nrt.memsys_enable_stats()
    before, levels = nrt.rtsys.get_allocation_stats(), play()
    assert levels[1].sum() == 99.0
    del levels
    after = nrt.rtsys.get_allocation_stats()
    assert after.mi_alloc - before.mi_alloc == after.mi_free - before.mi_free > 0


# ---------------------------------------------------------------- random functions


class Writes:
    """Writes random functions of a float and an integer."""

    def __init__(self, seed):
        self.random, self.loops = random.Random(seed), 0

    def any(self, *forms):
        """One of these forms, with other expressions at the places of F, N and B: float, integer and boolean."""
        form = self.random.choice(forms)
        return re.sub("[FNB]", lambda at: {"F": self.float, "N": self.whole, "B": self.truth}[at[0]](), form)

    def simple(self, *names):
        return self.random.choice(names) if self.random.random() < 0.65 else None

    def float(self):
        return self.simple("x", "f", "g", "0.3", "-0.5", "1e300") or self.any(
            "(F + F)", "(F - N)", "(F * F)", "(F / F)", "(N / N)", "(F // N)", "(F % F)", "max(F, N)", "min(F, F)",
            "abs(F)", "math.exp(F)", "(F if B else F)", "(F) ** 2", "abs(F) ** 0.5", "(-F)", "pair[0]", "half(F)",
            "half(F, 3.0)",
        )  # fmt: skip

    def whole(self):
        return self.simple("n", "i", "j", "0", "-2", "7") or self.any(
            "(N + N)", "(N * N)", "(N // N)", "(N % N)", "(N & N)", "(N ^ N)", "(N << 1)", "(N >> 3)", "(~N)",
            "min(N, N)", "(N if B else N)", "STEP", "np.int64(min(max(F, -1e6), 1e6))",
        )  # fmt: skip

    def truth(self):
        return self.simple("b", "True") or self.any(
            "(F < F)", "(N <= N < N)", "(not B)", "(B and B)", "(B or F == N)", "(N in (3, 5))"
        )

    def lines(self, depth, within=False):
        return list(chain(*(self.line(depth, within) for _ in range(self.random.randrange(1, 4)))))

    def line(self, depth, within):
        kind = self.random.randrange(6) if depth else 5
        if kind == 0:
            head, other = self.any("if B:"), ["else:", *self.below(depth, within)]
            return [head, *self.below(depth, within), *(other if self.random.random() < 0.5 else [])]
        if kind == 1:
            return [self.any("for i in range(4):", "for i in range(n, -3, -2):"), *self.below(depth, True)]
        if kind == 2:
            self.loops += 1
            name = f"k{self.loops}"
            head = [f"{name} = 0", self.any(f"while {name} < 5 and B:"), f"    {name} += 1"]
            return [*head, *self.below(depth, True)]
        if kind == 3:
            leave = self.any("return F", "break", "continue") if within else self.any("return F")
            return [self.any("if B:"), f"    {leave}"]
        return [
            self.any(
                "f = F", "g = F", "j = N", "b = B", "f += F", "g -= N", "j *= N", "f, g = g, f", "pair = (F, N)",
                "(f, j), g = (g, i), f", "b |= B",
            )
        ]  # fmt: skip

    def below(self, depth, within):
        return [f"    {line}" for line in self.lines(depth - 1, within)]

    def function(self, name):
        lines = ["f, g, i, j, b, pair = 0.5, x, 2, n, x > 0.0, (1.5, 3)", *self.lines(3), *self.lines(2)]
        lines += ["return f - 2.0 * g + i - 3 * j + pair[0] * pair[1] + (0.5 if b else 0.0)"]
        return "\n    ".join([f"def {name}(x, n):", *lines]) + "\n"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # numbers are compared with `is`, and divided by 0, at random
def test_random_functions_have_the_numbers_of_numba(written, seed, full):
    """To the last bit. A function in which a name has two types is left to numba, as are a few of these."""
    writes, count, same = Writes(seed), 100 if full else 8, 0
    module = written("".join(writes.function(f"random_{i}") for i in range(count)))
    for i in range(count):
        function = getattr(module, f"random_{i}")
        plain = njit(**HOW)(function)
        try:
            numbers = [(x, n) for x in (0.0, 0.3, -1.7, 25.0) for n in (0, 1, 4, -5)]
            expected = [plain(*each) for each in numbers]
            made = njit(**HOW)(from_text(function, types.float64))
            found = [made(*each) for each in numbers]
        except NumbaError:
            continue
        np.testing.assert_array_equal(found, np.array(expected, float), str(function))
        same += 1
    assert same >= count / 3
