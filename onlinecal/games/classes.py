"""Exact values of small games of K classes, in rational numbers."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import permutations

import numpy as np

from onlinecal.core.arrays import Ints
from onlinecal.core.errors import InvalidParameter
from onlinecal.core.simplex import simplex_parts
from onlinecal.core.validation import choice, count
from onlinecal.games.states import how_many

#: outcomes of points in states, and in those that permutations of the classes make of them, at most: about a minute
MOST = 2_000_000
#: rounds of the longest game: values have some 5 times as many digits in each round
LONGEST = 7

Point = tuple[int, ...]
#: the biases m·E of the points that have one, by their points
State = tuple[tuple[Point, Point], ...]


@dataclass(frozen=True)
class ClassSolution:
    """A solved game of K classes.

    Attributes
    ----------
    value : Fraction
        The total ECE that the forecaster pays.
    law : dict
        An optimal law of the first round, point ↦ probability. A point is whole numbers, in units of 1/m.
    q : tuple of Fraction
        Probabilities of the classes in the first round that hold every law to the value.
    states, stages : int
        States that are looked at, up to permutations of the classes: at most with the same rounds left, and in all.
    """

    classes: int
    m: int
    horizon: int
    sight: str
    value: Fraction
    law: dict[Point, Fraction]
    q: tuple[Fraction, ...]
    states: int
    stages: int


def solve_classes(classes: int, m: int, horizon: int, sight: str = "law") -> ClassSolution:
    r"""The exact value of the game of K classes with forecasts of whole multiples of 1/m.

    In each of T rounds the forecaster states a law on the points, and nature chooses a class. In the end the forecaster
    pays the total ECE ½ Σ_v ‖E_v‖₁, with E_v = Σ (e_y − v) of the rounds at v. With r rounds left the value is
    V_r(x) = min over laws w of max over y of Σ_v w_v V_{r−1}(x after v and y), and 0 at the end; |E| is counted when it
    comes. Where nature sees the draw, it is min_v max_y.

    Source: Backward induction; each round is a linear program, solved in rational numbers by the simplex method.

    Parameters
    ----------
    classes : int
        K, from 2.
    m : int
        Steps of the grid, from 1.
    horizon : int
        T, at most 7; shorter on fine grids, or for many classes.
    sight : {"law", "draw", "history"}, default "law"
        As for `onlinecal.games.solve`.

    Examples
    --------
    >>> print(solve_classes(3, 3, 2).value)
    16/15
    """
    classes, m = count("classes", classes, 2), count("m", m)
    horizon = count("horizon", horizon, 1, LONGEST)
    sight = choice("solve_classes", "sight", sight, ("history", "law", "draw"))
    check_size(classes, m, horizon)
    points, mixed = grid(classes, m), against_draw if sight == "draw" else against_law
    orders = list(permutations(range(classes)))
    seen = [0] * (horizon + 1)

    def least(state: State) -> State:
        """The first of the states that are this one but for the names of the classes."""
        return min(
            tuple(sorted((tuple(v[k] for k in order), tuple(bias[k] for k in order)) for v, bias in state))
            for order in orders
        )

    @cache
    def stage(left: int, state: State) -> tuple[Fraction, dict[int, Fraction], list[Fraction]]:
        seen[left] += 1
        return mixed([[after(left, state, v, y) for y in range(classes)] for v in points])

    def after(left: int, state: State, v: Point, y: int) -> Fraction:
        """What is added to the total from this round on."""
        biases = dict(state)
        before = biases.get(v, (0,) * classes)
        biases[v] = now = moved(m, v, before, y)
        gain = Fraction(sum(map(abs, now)) - sum(map(abs, before)), 2 * m)
        if left == 1:
            return gain
        told = ((u, settled(m, left - 1, u, bias)) for u, bias in biases.items())
        return gain + stage(left - 1, least(tuple((u, bias) for u, bias in told if any(bias))))[0]

    value, law, q = stage(horizon, ())
    told = {points[i]: w for i, w in sorted(law.items())}
    return ClassSolution(classes, m, horizon, sight, value, told, tuple(q), max(seen), sum(seen))


def grid(classes: int, m: int) -> list[Point]:
    """The points of the simplex with whole multiples of 1/m, in these units."""
    return [tuple(point) for point in simplex_parts(m, classes).tolist()]


def moved(m: int, v: Point, bias: Point, y: int) -> Point:
    """The bias m·E of a point after a round with the outcome y."""
    return tuple(b - p + m * (k == y) for k, (b, p) in enumerate(zip(bias, v, strict=True)))


def settled(m: int, left: int, v: Point, bias: Point) -> Point:
    """The same where the sign of a part cannot change any more: one bias stands for all."""
    return tuple(max(-left * (m - p), min(b, left * p)) for b, p in zip(bias, v, strict=True))


def against_law(values: Sequence[Sequence[Fraction]]) -> tuple[Fraction, dict[int, Fraction], list[Fraction]]:
    """The value of a matrix game in which rows are mixed to be small: the value, the law of rows, that of columns.

    With all numbers above 0, u = w/value has the largest sum that keeps Σ_i u_i A_iy ≤ 1 for all columns y. By the
    simplex method, with Bland's rule.
    """
    n, k = len(values), len(values[0])
    shift = 1 - min(map(min, values))
    rows = [
        [row[y] + shift for row in values] + [Fraction(z == y) for z in range(k)] + [Fraction(1)]
        for y in range(k)
    ]
    cost, basis = [Fraction(1)] * n + [Fraction(0)] * (k + 1), list(range(n, n + k))
    while (j := next((j for j in range(n + k) if cost[j] > 0), None)) is not None:
        i = min((i for i in range(k) if rows[i][j] > 0), key=lambda i: (rows[i][-1] / rows[i][j], basis[i]))
        basis[i], rows[i] = j, [x / rows[i][j] for x in rows[i]]
        for other in (*rows[:i], *rows[i + 1 :], cost):
            if share := other[j]:
                other[:] = [x - share * z for x, z in zip(other, rows[i], strict=True)]
    total = -cost[-1]
    law = {j: row[-1] / total for j, row in zip(basis, rows, strict=True) if j < n and row[-1] > 0}
    return 1 / total - shift, law, [-cost[n + y] / total for y in range(k)]


def against_draw(
    values: Sequence[Sequence[Fraction]],
) -> tuple[Fraction, dict[int, Fraction], list[Fraction]]:
    """The same where who chooses columns sees the row."""
    i = min(range(len(values)), key=lambda i: max(values[i]))
    value = max(values[i])
    return value, {i: Fraction(1)}, [Fraction(y == values[i].index(value)) for y in range(len(values[i]))]


@dataclass(eq=False)
class ClassBiases:
    """The states of a game as `states` counts them, without those that permutations of the classes leave out."""

    classes: int
    m: int
    horizon: int

    counted = False

    def __post_init__(self) -> None:
        self.points = tuple(grid(self.classes, self.m))

    def letters(self, point: Point, left: int) -> tuple[Ints, list[Point]]:
        """Costs and biases m·E of a point with `left` rounds left."""
        cost: dict[Point, int] = {}
        for n in range(self.horizon - left + 1):
            for outcomes in grid(self.classes, n):
                bias = tuple(self.m * s - n * p for s, p in zip(outcomes, point, strict=True))
                cost.setdefault(settled(self.m, left, point, bias), n)
        return np.array([*cost.values()]), [*cost]


def check_size(classes: int, m: int, horizon: int) -> None:
    """Refuses games that take long, and says which T fits."""
    outcomes = math.comb(m + classes - 1, m) * classes

    def steps(length: int) -> float:
        """Outcomes of points that are looked at, where each permutation of the classes is one more."""
        alphabet = ClassBiases(classes, m, length)
        states = (max(how_many(alphabet, left), math.factorial(classes)) for left in range(1, length + 1))
        return outcomes * sum(states)

    low, found = 0, outcomes * float(math.factorial(classes))
    while low < horizon and found <= MOST and (found := steps(low + 1)) <= MOST:
        low += 1
    if low < horizon:
        longest = f"the largest T that fits is {low}" if low else "none of this grid fits"
        said = (
            f"classes = {classes}, m = {m}, horizon = {horizon}: {found:.2g} steps already for T = {low + 1}"
        )
        expected = f"at most {MOST:,} steps: fewer rounds, a smaller m"
        raise InvalidParameter(f"{said}; {longest}; expected {expected}")
