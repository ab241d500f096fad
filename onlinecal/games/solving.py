"""The value of the calibration game on a grid, optimal play of both sides, and the memory that it takes."""

import math
from bisect import bisect_right
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from onlinecal.core.arrays import Floats, locked
from onlinecal.core.errors import InvalidParameter
from onlinecal.core.memory import GIB, cores, free_memory
from onlinecal.core.progress import Progress
from onlinecal.core.validation import choice, count
from onlinecal.games.stage import UNITS, against_draw, against_law, look, moves, stage
from onlinecal.games.states import Alphabet, States, how_many, numbered, words_between
from onlinecal.games.totals import SYMMETRIC, alphabet_for, measure_named, totals
from onlinecal.measures.base import Measure

#: rounds of the longest game: on two steps some 10^10 states
LONGEST = 100_000
#: states that one thread works on at a time
CHUNK = 1 << 17
#: layers that are counted to tell the memory of a game, at most; rounds of the first length tried
LOOKED_AT, COUNTED = 128, 60
#: bytes of layers that are kept beside the two that the programme needs
KEPT = 1 << 26


@dataclass(frozen=True)
class Round:
    """Optimal play of both sides in one state."""

    value: float
    left: int
    forecasts: tuple[float, ...]
    weights: tuple[float, ...]
    q: float
    after: Floats = field(compare=False)


@dataclass
class Solution:
    """A solved game.

    Attributes
    ----------
    measure : str
        Its total T·μ is paid to nature.
    error : float
        The value is wrong by at most this: rounding, and the width of the measure itself.
    states : int
        The most states with the same number of rounds left.
    stages : int
        The number of states that were looked at.
    values : (T,) floats or None
        The values of the games of 1, …, T rounds, each within `error`, where the total depends on the biases alone.
    """

    m: int
    horizon: int
    measure: str
    sight: str
    value: float
    error: float
    states: int
    stages: int
    values: Floats | None = field(repr=False, compare=False)
    _game: Any = field(repr=False, compare=False)

    def at(self, ends: Any, left: int) -> Round:
        """Optimal play with `left` rounds left."""
        return self._game.look(ends, count("left", left, 1, self.horizon))

    @property
    def bracket(self) -> tuple[float, float]:
        """Value − error, value + error."""
        return self.value - self.error, self.value + self.error


def solve(
    m: int, horizon: int, measure: str = "ece", sight: str = "law", *, keep: bool = False,
    progress: bool | None = None, threads: int | None = None,
) -> Solution:  # fmt: skip
    r"""The exact value of the calibration game on the grid 0, 1/m, …, 1.

    In each of T rounds the forecaster states a law on the grid and nature chooses y. A forecast is drawn from the law,
    and both see it. In the end the forecaster pays T·μ. Where nature sees the law, the value with r rounds left is
    V_r(x) = min over laws w of max over y of Σ_i w_i V_{r−1}(x after i and y). Where it sees the draw, it is min_i
    max_y V_{r−1}. With both choosing at once it is as if nature saw the law, by the minimax theorem.

    Source: Backward induction; von Neumann 1928 for the minimax theorem. Deviations: parts of a state that can no
    longer change the play are left out. Each law is within the reported gap of the best one; the gaps add up to at most
    `error`.

    Parameters
    ----------
    m : int
        Steps of the grid, from 1.
    horizon : int
        T, at most 100,000.
    measure : str, default "ece"
        Its total is paid. Those that depend on the biases E_i alone allow far larger games, and total ECE the largest.
    sight : {"law", "draw", "history"}, default "law"
        The sight of nature before it chooses; "history": both choose at once.
    keep : bool, default False
        Whether `Solution.at` answers for any number of rounds left, and not only for the first ones of the game. This
        computes layers twice, and needs room for about 2√T of them.
    progress : bool, optional
        As for `onlinecal.play`.
    threads : int, optional
        Default: as many as there are processors for this process.

    Examples
    --------
    >>> solution = solve(2, 3)
    >>> round(solution.value, 6), solution.error < 1e-13
    (1.035714, True)
    >>> solution.at([0, 0, 0], 3).forecasts
    (0.5,)
    """
    record = measure_named(measure)
    sight = choice("solve", "sight", sight, ("history", "law", "draw"))
    m, horizon = count("m", m), count("horizon", horizon, 1, LONGEST)
    return solved(
        record, alphabet_for(record, m, horizon), sight, keep=keep, progress=progress, threads=threads
    )


def solved(
    record: Measure, alphabet: Alphabet, sight: str, *, keep: bool = False, progress: bool | None, threads: int | None
) -> Solution:  # fmt: skip
    """The game with these letters; `InvalidParameter` where memory has no room for it."""
    game = _Game(record, alphabet, sight, keep, cores() if threads is None else count("threads", threads))
    check_memory(alphabet, record.name, keep)
    return game.solve(progress)


class _Game:
    """The layers of a game: the values of all states by the number of rounds left."""

    def __init__(self, measure: Measure, alphabet: Alphabet, sight: str, keep: bool, threads: int) -> None:
        self.measure, self.alphabet, self.keep, self.threads = measure, alphabet, keep, threads
        self.m, self.horizon = alphabet.m, alphabet.horizon
        self.sight, self.drawn = sight, sight == "draw"
        self.symmetric = measure.name in SYMMETRIC and self.m > 1
        self.apart = math.isqrt(self.horizon - 1) + 1
        #: rounds left → values
        self.layers: dict[int, Floats] = {}

    def __getstate__(self) -> dict[str, Any]:
        """A measure of the catalogue is kept by its name: its functions have none of their own."""
        return {**self.__dict__, "measure": self.measure.name}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, measure=measure_named(state["measure"]))

    def solve(self, progress: bool | None) -> Solution:
        its = numbered(self.alphabet, 0)
        values, error = self.ends(its)
        self._store(0, values)
        shorter, sizes = list[float](), [its.number]
        work = int(np.interp(np.arange(1, self.horizon + 1), *layer_sizes(self.alphabet)).sum())
        with Progress(work, shown=progress, unit="states") as bar, ThreadPoolExecutor(self.threads) as pool:
            bar.describe(f"m = {self.m}, T = {self.horizon}")
            for left in range(1, self.horizon + 1):
                now = numbered(self.alphabet, left)
                values, own = self.stage(left, now, its, values, pool.map)
                error += own
                its = now
                sizes.append(now.number)
                self._store(left, values)
                shorter.append(float(values[0]))  # of the state without any bias, which is the first
                bar.advance(now.number)
        return Solution(
            self.m, self.horizon, self.measure.name, self.sight, float(values[0]), error, max(sizes), sum(sizes[1:]),
            None if self.alphabet.counted else locked(np.array(shorter)), self,
        )  # fmt: skip

    def _store(self, left: int, values: Floats) -> None:
        """Keeps one layer in `apart`, or the last ones that there is room for."""
        self.layers[left] = values
        if self.keep:
            if (left - 1) % self.apart:
                self.layers.pop(left - 1, None)
            return
        while len(self.layers) > 1 and sum(each.nbytes for each in self.layers.values()) > KEPT:
            del self.layers[min(self.layers)]

    def ends(self, its: States) -> tuple[Floats, float]:
        """The totals at the end, and a bound on their error."""
        if self.alphabet.separate:
            return np.zeros(its.number), 0.0  # all of Σ |E_i| is counted when it comes
        values, error = np.empty(its.number), 0.0
        grid = np.arange(self.m + 1) / self.m
        codes = [self.alphabet.letters(point, 0)[1] for point in self.alphabet.points]
        for low in range(0, its.number, CHUNK):
            rows = words_between(low, min(low + CHUNK, its.number), its)
            given = np.stack([code[row] for code, row in zip(codes, rows.T, strict=True)], axis=1)
            values[low : low + CHUNK], own = totals(self.measure, grid, self.alphabet.given(given))
            error = max(error, own)
        return values, error

    def stage(self, left: int, now: States, then: States, values: Floats, each: Any) -> tuple[Floats, float]:
        """The values with `left` rounds left, from those with one fewer, and a bound on the error added."""
        made = np.empty(now.number)
        change = moves(self.alphabet, left, self.symmetric)
        chunks = [(low, min(low + CHUNK, now.number)) for low in range(0, now.number, CHUNK)]

        def work(ends: tuple[int, int]) -> tuple[float, float]:
            found = stage(*ends, self.drawn, now, change, then, values, made)
            return float(found[0]), float(found[1])

        found = list((each if len(chunks) > 1 else map)(work, chunks))
        gap, largest = np.max(found, axis=0)
        return made, float(gap) + UNITS * 2.0**-53 * float(largest)

    def layer(self, left: int) -> Floats:
        """The values with `left` rounds left, computed again if need be."""
        if left in self.layers:
            return self.layers[left]
        if not self.keep:
            expected = "one of the first rounds of the game, or solve(…, keep=True)"
            raise InvalidParameter(f"left = {left} was not kept; expected {expected}")
        base = left - left % self.apart
        self.layers = {r: values for r, values in self.layers.items() if r % self.apart == 0}
        its, values = numbered(self.alphabet, base), self.layers[base]
        for r in range(base + 1, min(base + self.apart, self.horizon + 1)):
            now = numbered(self.alphabet, r)
            values, _ = self.stage(r, now, its, values, map)
            self.layers[r], its = values, now
        return self.layers[left]

    def look(self, ends: Any, left: int) -> Round:
        alphabet, codes = self.alphabet, self._codes(ends, left)
        word = [int(alphabet.at(point, left, codes[point])) for point in alphabet.points]
        change = moves(alphabet, left, self.symmetric)
        own_a, own_b = look(word, change, numbered(alphabet, left - 1), self.layer(left - 1))
        order = np.argsort([*alphabet.points, *alphabet.fixed_points])
        a, b = own_a[order], own_b[order]
        find: Callable[..., Any] = against_draw if self.drawn else against_law
        value, _, i, j, share, q = find(a, b)
        so_far = sum(map(abs, codes)) / self.m if alphabet.separate else 0.0
        law = {i: 1.0} if i == j else {i: share, j: 1.0 - share}
        places = sorted(law)
        return Round(
            float(value) + so_far, left, tuple(p / self.m for p in places), tuple(float(law[p]) for p in places),
            float(q), np.stack([a, b], axis=1) + so_far,
        )  # fmt: skip

    def _codes(self, ends: Any, left: int) -> list[int]:
        """The codes of all points, of rounds and outcomes or of biases; refused where rounds cannot come to them."""
        given, alphabet, played = np.asarray(ends), self.alphabet, self.horizon - left
        counted = given.shape == (self.m + 1, 2)
        if (
            not (counted or (given.shape == (self.m + 1,) and not alphabet.counted))
            or given.dtype.kind not in "iu"
        ):
            wanted = "rounds and outcomes 1" if alphabet.counted else "biases m·E"
            raise InvalidParameter(f"a state of shape {given.shape}; expected {self.m + 1} whole {wanted}")
        if counted:
            rounds, ones = given.T
            possible = ((ones >= 0) & (ones <= rounds)).all() and rounds.sum() == played
            codes = [alphabet.code_of(i, *map(int, pair)) for i, pair in enumerate(given)]
        else:
            codes = given.tolist()
            possible = sum(alphabet.rounds(i, code) for i, code in enumerate(codes)) <= played
        if not possible:
            said = f"{given.tolist()} with {left} rounds left"
            raise InvalidParameter(f"{said}; expected what {played} rounds can come to")
        return codes


def memory_there() -> float:
    """Bytes that this process may take now; of a machine that does not say, 8 GB."""
    return free if (free := free_memory()) < math.inf else 8e9


def layer_sizes(alphabet: Alphabet) -> tuple[Floats, Floats]:
    """Numbers of rounds left, all or some of them, and the number of states for each."""
    horizon = alphabet.horizon
    lefts = np.unique(np.linspace(0, horizon, min(horizon + 1, LOOKED_AT)).astype(int))
    return lefts, np.array([how_many(alphabet, left) for left in lefts.tolist()])


def check_memory(alphabet: Alphabet, measure: str, keep: bool) -> None:
    room, horizon = memory_there(), alphabet.horizon

    def needed(length: int) -> float:
        """Bytes for a game of this length, interpolated for long ones; counting stops above `room`."""
        shorter = replace(alphabet, horizon=length)
        tables = KEPT + shorter.tables()
        layers = 2.0 * math.sqrt(length) + 2.0 if keep else 2.0
        return tables if tables > room else tables + 8.0 * layers * float(layer_sizes(shorter)[1].max())

    # Of a game that is far too long the states are not even counted: a shorter one does not fit.
    low, high = 0, min(horizon, COUNTED)
    while (least := needed(high)) <= room:
        if high == horizon:
            return
        low, high = high, min(2 * high, horizon)
    needs = f"{'' if high == horizon else 'more than '}{size_text(least)}"
    low = bisect_right(range(high), room, lo=low + 1, key=needed) - 1
    longest = f"the largest T that fits is {low}" if low else "none of this grid fits"
    said = f"m = {alphabet.m}, T = {horizon}: the game of {measure} needs {needs}"
    raise InvalidParameter(f"{said}, and there are {size_text(room)}; {longest}")


def size_text(number: float) -> str:
    size = number / GIB
    return f"{size:,.1f} GiB" if size < 1e6 else f"{size:.1e} GiB"
