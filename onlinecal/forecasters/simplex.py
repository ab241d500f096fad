"""Hedging between neighbouring points of the simplex, for games of three classes (or two)."""

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from onlinecal.core.arrays import Floats
from onlinecal.core.columns import Column
from onlinecal.core.guarantee import Guarantee, Sight
from onlinecal.core.simplex import grid_points, simplex_grid, simplex_parts
from onlinecal.core.streams import Stream
from onlinecal.engine import steps
from onlinecal.engine.steps import Run, kernel, law, note, shared, state
from onlinecal.forecasters.base import OnSimplex


@dataclass(frozen=True)
class SimplexHedging(OnSimplex):
    r"""Hedges between the points of a small triangle, so that none of their errors can be expected to grow.

    A cell is a triangle of the grid 1/m, a step of the grid on the boundary, or a corner. It has three points, two or
    one, and its centre c is their mean. B_i is the sum of e_y − c over the rounds with forecast i. The play is in the
    first cell that has weights w for which d = Σ_i w_i B_i makes ⟨d, e_y − c⟩ ≤ 0 for all classes y: d = 0 in a
    triangle, d_i = d_j ≥ 0 on a step between classes i and j, d_k ≥ d_y for all y in the corner k. There always is one.
    The cell of the last round comes first, then its neighbours on both sides in a list of all: triangles in strips,
    then round the boundary. All B are whole multiples of 1/(6m), so the choice is exact.

    Guarantee: Against natures that see the law E[T·ECE] ≤ √(1.5nT) + 2T/(3m), with the n = (m + 1)(m + 2)/2 points of
    the grid. That is O(T^{3/4}). Of two classes it is √((m + 1)T) + T/(2m). With at most b questions open at once, T
    under the root becomes (2b − 1)T, and b is added. Proof: docs/proofs.md.

    Information: Of 2 or 3 classes. O(m²) a round at most, mostly far less.

    Source: This package, after Foster 1999 for two classes; Mannor and Stoltz 2010, "A geometric proof of calibration",
    for the rate.

    Parameters
    ----------
    m : int or str, optional
        Steps of the grid: a number or an expression in T. Default: 0.9 T^{1/4}, rounded up; of two classes T^{1/3},
        rounded.
    """

    version: ClassVar[int] = 2
    deterministic, safe_under_delay, most_classes = False, True, 3

    m: int | str | None = None

    @property
    def memory(self) -> str:  # type: ignore[override]
        return "O(T^(1/2))" if self.m is None else "O(m^2)"

    def steps_at(self, horizon: int) -> int:
        if self.m is not None:
            return super().steps_at(horizon)
        if self.classes == 2:
            return round(horizon ** (1.0 / 3.0))
        return math.ceil(0.9 * horizon**0.25)

    def start(self, horizon: int, stream: Stream) -> steps.Forecaster:
        m, k = self.steps_at(horizon), self.classes
        return steps.Forecaster(
            hedge_cells, learn_centre, [0.0] * (k * grid_points(m, k) + 1), cells_of(m, k), size=k,
            table=simplex_grid(m, k), note=k + 1,
        )  # fmt: skip

    @property
    def guarantees(self) -> tuple[Guarantee, ...]:
        k = self.classes or 3

        def bound(horizon: float, energy: float = 2.0, more: float = 0.0) -> float:
            """The bound if Σ‖B‖² is at most that many times T."""
            m = self.steps_at(int(horizon))
            apart = 2.0 / (3.0 * m) if k == 3 else 1.0 / (2.0 * m)
            return 0.5 * math.sqrt(k * grid_points(m, k) * energy * horizon) + apart * horizon + more

        def slack(horizon: float, runs: int, rate: float) -> float:
            # √(Φ + T) grows by T/√T at most in expectation, and in a round by √2 at most: Azuma and Hoeffding.
            moves = math.sqrt(4.0 * horizon * math.log(1.0 / rate) / runs)
            root = math.sqrt(k * grid_points(self.steps_at(int(horizon)), k))
            return 0.5 * root * ((2.0 - math.sqrt(2.0)) * math.sqrt(horizon) + moves)

        formula = "√(3(m + 1)(m + 2)T)/2 + 2T/(3m)" if k == 3 else "√((m + 1)T) + T/(2m)"
        source = "this package; proof in docs/proofs.md"
        return (
            Guarantee(
                Column("measure", "ece"), formula, bound, "expected", Sight.LAW, source, slack=slack,
                delayed=lambda horizon, most: bound(horizon, 4.0 * most - 2.0, most),
            ),
        )  # fmt: skip


#: the numbers before the cells, of a cell: how many points it has, their places, and the classes of a step or corner
HEAD, WIDTH = 2, 5


def cells_of(m: int, k: int) -> Floats:
    """How many classes and cells there are, these cells, and the whole numbers of steps of all points.

    Triangles are in strips, and steps and corners in their order on the boundary: neighbours mostly follow each other.
    """
    parts, unit = simplex_parts(m, k), np.eye(k, dtype=np.int64)
    place = {point: i for i, point in enumerate(map(tuple, parts.tolist()))}

    def places(points: Any) -> list[int]:
        return [place[tuple(point)] for point in points.tolist()]

    cells: list[Any] = []
    if k == 3:
        upright, turned = simplex_parts(m - 1, k), simplex_parts(m - 2, k)
        triangles = [v + unit for v in upright] + [v + 1 - unit for v in turned]
        triangles.sort(key=lambda cell: (cell[:, 0].sum() // 3, cell[:, 1].sum()))
        cells = [[3, *places(cell), 0] for cell in triangles]
    for i in range(k):
        j = (i + 1) % k
        side = [(m - s) * unit[i] + s * unit[j] for s in range(m + 1)]
        cells.append([1, *places(np.array(side[:1])), i, 0, 0])
        if i < j or k == 3:  # two classes have one side
            cells += [[2, *places(np.array(ends)), i, j] for ends in pairwise(side)]
    return np.concatenate([[k, len(cells)], *cells, parts.ravel()]).astype(np.float64)


@kernel
def cross(b, i, j):
    """The product of the errors of two points of three classes, as vectors of the plane; exact below 2^31."""
    return int(b[3 * i]) * int(b[3 * j + 1]) - int(b[3 * i + 1]) * int(b[3 * j])


@kernel
def size_of(b, i):
    """The sum of the absolute errors of a point of three classes."""
    return abs(b[3 * i]) + abs(b[3 * i + 1]) + abs(b[3 * i + 2])


@kernel
def mix_two(b, i, j, weights, first, second):
    """Writes the weights of two points whose errors lie on a line and cancel each other; whether they do."""
    if b[3 * i] * b[3 * j] + b[3 * i + 1] * b[3 * j + 1] + b[3 * i + 2] * b[3 * j + 2] >= 0.0:
        return False
    weights[0] = weights[1] = weights[2] = 0.0
    one, other = size_of(b, i), size_of(b, j)
    weights[first], weights[second] = other / (one + other), one / (one + other)
    return True


@kernel
def mix_triangle(b, i, j, k, weights):
    """Writes weights with which the errors of three points cancel; whether there are any."""
    x, y, z = cross(b, j, k), cross(b, k, i), cross(b, i, j)
    if min(x, y, z) < 0 < max(x, y, z):
        return False
    total = abs(x) + abs(y) + abs(z)
    if total > 0:
        weights[0], weights[1], weights[2] = abs(x) / total, abs(y) / total, abs(z) / total
        return True
    # All are on a line.
    x, y, z = size_of(b, i) == 0.0, size_of(b, j) == 0.0, size_of(b, k) == 0.0
    total = int(x) + int(y) + int(z)
    if total > 0:
        weights[0], weights[1], weights[2] = x / total, y / total, z / total
        return True
    return (
        mix_two(b, i, j, weights, 0, 1) or mix_two(b, i, k, weights, 0, 2) or mix_two(b, j, k, weights, 1, 2)
    )


@kernel
def mix_step(b, k, low, high, i, j, weights):
    """Writes weights of the two points of a step with d_i = d_j ≥ 0 for its two classes; whether there are any."""
    low, high = k * low, k * high
    x, y = int(b[low + i] - b[low + j]), int(b[high + i] - b[high + j])
    s, t = int(b[low + i] + b[low + j]), int(b[high + i] + b[high + j])
    if x > 0 < y or x < 0 > y:
        return False
    x, y = abs(x), abs(y)
    if x == y == 0:  # any weights have d_i = d_j
        x, y = int(t >= 0), int(s >= 0)
    if x == y == 0 or y * s + x * t < 0:
        return False
    weights[0], weights[1] = y / (x + y), x / (x + y)
    return True


@kernel
def mix_cell(b, k, cell, weights):
    """Writes weights of the points of a cell with ⟨d, e_y − c⟩ ≤ 0 for all y; whether there are any."""
    size, i, j = int(cell[0]), int(cell[1]), int(cell[2])
    if size == 3:
        return mix_triangle(b, i, j, int(cell[3]), weights)
    if size == 2:
        return mix_step(b, k, i, j, int(cell[3]), int(cell[4]), weights)
    weights[0] = 1.0
    return b[k * i + j] == b[k * i : k * i + k].max()


@kernel
def find_cell(b, given, values, weights):
    """Writes places and weights of the cell that is played: how many points it has, and its place among cells.

    The errors of each point, and the last cell, are in `b`; `given` is as `cells_of` has it.
    """
    k, cells = int(given[0]), int(given[1])
    for s in range(cells):
        # By 0, 1, −1, 2, −2, … from the last.
        t = (int(b[-1]) + ((s + 1) // 2 if s % 2 == 1 else cells - s // 2)) % cells
        cell = given[HEAD + WIDTH * t : HEAD + WIDTH * t + WIDTH]
        if mix_cell(b, k, cell, weights):
            size = int(cell[0])
            values[:size] = cell[1 : 1 + size]
            return size, t
    return 0, -1  # never


@kernel
def write_centre(given, values, size, centre):
    """Writes 6m times the centre of a cell with these points."""
    k = int(given[0])
    parts = given[HEAD + WIDTH * int(given[1]) :]
    centre[:k] = 0.0
    for j in range(size):
        for c in range(k):
            centre[c] += (6 // size) * parts[k * int(values[j]) + c]


def hedge_cells(run: Run, number: int) -> int:
    """The state is 6m·B of each point, and the last cell; the note has 6m·c, and the cell."""
    (values, weights), noted = law(run), note(run)
    size, cell = find_cell(state(run), shared(run), values, weights)
    write_centre(shared(run), values, size, noted)
    noted[-1] = cell
    return size


def learn_centre(run: Run, place: int, forecast: float, outcome: int, number: int) -> int:
    b, noted = state(run), note(run)
    k = len(noted) - 1
    own = b[k * int(forecast) : k * int(forecast) + k]
    own -= noted[:k]
    own[outcome] += noted[:k].sum()  # 6m
    b[-1] = noted[k]
    return 0
