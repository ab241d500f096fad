"""The rules of the forecasters, one run, as one would write them down: no kernels, no shared state.

Only what `forecast` returns beside the law remembers an open round. Each rule is a class with
`forecast(number, context) -> (law, memo)`, a law being a dict value → weight, and
`update(law, memo, value, outcome, context, place)`; the place of the drawn value in the law matters where it repeats.
"""

import math
import operator
from abc import ABC, abstractmethod
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import scipy.optimize


class Stateless:
    """The law is a function of the context."""

    def __init__(self, law):
        self.law = law

    def forecast(self, number, context):
        return self.law(context), None

    def update(self, law, memo, value, outcome, context, place=0): ...


def Constant(p):
    return Stateless(lambda context: {p: 1.0})


def UniformRandom(m):
    return Stateless(lambda context: {i / m: 1 / (m + 1) for i in range(m + 1)})


def Tempered(beta):
    def law(context):
        q = context["truth"]
        return {q**beta / (q**beta + (1 - q) ** beta) if beta != 1 else q: 1.0}

    return Stateless(law)


def Shifted(by):
    return Stateless(lambda context: {min(1.0, max(0.0, context["truth"] + by)): 1.0})


def Logistic(slope, intercept):
    return Stateless(lambda context: {1 / (1 + math.exp(-(slope * context["features"] + intercept))): 1.0})


def Unchanged():
    return Stateless(lambda context: {context["base"]: 1.0})


class EmpiricalMean:
    def __init__(self, prior=1.0):
        self.ones, self.rounds = prior, 2 * prior

    def forecast(self, number, context):
        return {self.ones / self.rounds if self.rounds else 0.5: 1.0}, None

    def update(self, law, memo, value, outcome, context, place=0):
        self.ones, self.rounds = self.ones + outcome, self.rounds + 1


class LastOutcome:
    last = 0.5

    def forecast(self, number, context):
        return {self.last: 1.0}, None

    def update(self, law, memo, value, outcome, context, place=0):
        self.last = float(outcome)


class MinimaxOnHalves:
    """On 0, 1/2, 1, where only the bias of 1/2 can shrink: the value with r rounds left by that bias, in halves."""

    def __init__(self, horizon):
        bias = np.arange(-2 * horizon - 2, 2 * horizon + 3)
        self.zero, self.horizon, self.bias = 2 * horizon + 2, horizon, 0
        self.values = [np.abs(bias) / 2]
        for _ in range(horizon):
            before = self.values[-1]
            low, high = np.append(before[0] + 0.5, before[:-1]), np.append(before[1:], before[-1] + 0.5)
            # The middle alone, or with an end such that both outcomes cost the same, or the two ends.
            value = np.minimum(np.maximum(low, high), before + 0.5)
            for near, far in ((low, high), (high, low)):
                share = 1 / (
                    1 + np.maximum(far - near, 0)
                )  # of the middle, the rest on the end that `far` spares
                mixed = share * far + (1 - share) * before
                value = np.where((far > near) & (near < before), np.minimum(value, mixed), value)
            self.values.append(value)

    def forecast(self, number, context):
        before = self.values[max(self.horizon - number, 0)]
        at = self.zero + self.bias
        here, low, high = before[at], before[at - 1], before[at + 1]
        laws = {max(low, high): {0.5: 1.0}, here + 0.5: {0.0: 0.5, 1.0: 0.5}}
        for near, far, end in ((low, high, 1.0), (high, low, 0.0)):
            if far > near and near < here:
                share = 1 / (1 + far - near)
                laws[share * far + (1 - share) * here] = {0.5: share, end: 1 - share}
        return laws[min(laws)], None

    def update(self, law, memo, value, outcome, context, place=0):
        if value == 0.5:
            self.bias += 2 * outcome - 1


class Pairs:
    """Forecast hedging and the CDL minimiser: `weight` makes one of the other."""

    def __init__(self, m, weight):
        self.m, self.weight = m, weight
        self.bias, self.rounds = [0] * (m + 1), [0] * (m + 1)  # m·E_i, n_i

    def pair(self):
        low, high = 0, self.m
        while high - low > 1:
            middle = (low + high) // 2
            if self.bias[middle] > 0:
                low = middle
            elif self.bias[middle] < 0:
                high = middle
            elif self.bias[middle + 1] <= 0:
                return middle
            else:
                low = middle + 1
        return low

    def forecast(self, number, context):
        i = self.pair()
        a, b = (abs(self.weight(self.bias[j] / self.m, self.rounds[j])) for j in (i, i + 1))
        share = 0.5 if a + b == 0 else b / (a + b)
        return {i / self.m: share, (i + 1) / self.m: 1 - share}, None

    def update(self, law, memo, value, outcome, context, place=0):
        i = round(value * self.m)
        self.bias[i] += self.m * outcome - i
        self.rounds[i] += 1


def bias_itself(bias, rounds):
    return bias


def ada_normal_hedge(bias, rounds):
    def w(r):
        c = 3 * (rounds + 1)
        return 0.5 * (math.exp(max(r + 1, 0) ** 2 / c) - math.exp(max(r - 1, 0) ** 2 / c))

    return w(bias) - w(-bias)


class GroupHedging:
    """In fractions; groups is a list of names, of which a round is in those with context 1, each with a weight."""

    def __init__(self, m, groups, weights=None):
        self.m, self.groups = m, ["all", *groups]
        self.weights = weights or dict.fromkeys(self.groups, 1)
        self.bias = {(g, i): Fraction(0) for g in self.groups for i in range(m + 1)}

    def members(self, context):
        return [g for g in self.groups if g == "all" or context[g] == 1]

    def forecast(self, number, context):
        mine, m = self.members(context), self.m

        def total(i):
            return sum(self.weights[g] * self.bias[g, i] for g in mine)

        if total(0) <= 0:
            return {Fraction(0): 1}, Fraction(0)
        if total(m) >= 0:
            return {Fraction(1): 1}, Fraction(1)
        low, high = 0, m
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if total(middle) > 0 else (low, middle)
        share = abs(total(high)) / (abs(total(low)) + abs(total(high)))
        return {Fraction(low, m): share, Fraction(high, m): 1 - share}, Fraction(2 * low + 1, 2 * m)

    def update(self, law, memo, value, outcome, context, place=0):
        for g in self.members(context):
            self.bias[g, round(value * self.m)] += outcome - memo


class SimplexHedging:
    """In fractions; a point is its K whole numbers of steps, and so is 3m or 2m or m times the centre of a cell."""

    def __init__(self, m, classes, centred=True):
        self.m, self.centred, self.last = m, centred, 0
        ends = range(m + 1)
        self.ring = []
        for a, b in product(ends, ends) if classes == 3 else ():
            c = m - 1 - a - b
            if c < 0:
                continue
            self.ring.append([(a + 1, b, c), (a, b + 1, c), (a, b, c + 1)])
            if c > 0:
                self.ring.append([(a, b + 1, c), (a + 1, b, c), (a + 1, b + 1, c - 1)])
        for i, j in ((0, 1), (1, 2), (2, 0)) if classes == 3 else ((0, 1), (1, None)):
            side = [tuple(m - s if k == i else s if k == j else 0 for k in range(classes)) for s in ends]
            self.ring.append(side[:1])
            self.ring += [] if j is None else [list(each) for each in pairwise(side)]
        self.zero = (Fraction(0),) * classes
        self.bias = {}

    def of(self, point):
        return self.bias.get(point, self.zero)

    def cells(self):
        """The last one, then always the nearest in the ring of those that are left, of two the next one."""
        many = len(self.ring)
        far = {t: min((t - self.last) % many, (self.last - t) % many) for t in range(many)}
        for t in sorted(far, key=lambda t: (far[t], (t - self.last) % many)):
            yield t, self.ring[t]

    def centre(self, cell):
        return tuple(Fraction(sum(each), len(cell) * self.m) for each in zip(*cell, strict=True))

    def forecast(self, number=0, context=None):
        for place, cell in self.cells():
            weights = self.weights(cell)
            if weights:
                return dict(zip(cell, weights, strict=True)), (place, self.centre(cell))
        raise AssertionError("no cell")

    def weights(self, cell):
        b = [self.of(point) for point in cell]
        if len(cell) == 1:
            return [Fraction(1)] if b[0][cell[0].index(self.m)] == max(b[0]) else None
        if len(cell) == 2:
            i, j = (k for k in range(len(b[0])) if any(point[k] for point in cell))
            x, y = (each[i] - each[j] for each in b)
            s, t = (each[i] + each[j] for each in b)
            found = (abs(y), abs(x)) if x * y <= 0 else None
            if x == y == 0:
                found = int(s >= 0), int(t >= 0)
            good = found and any(found) and found[0] * s + found[1] * t >= 0
            return [Fraction(f, 1) / sum(found) for f in found] if good else None
        areas = [b[i][0] * b[j][1] - b[i][1] * b[j][0] for i, j in ((1, 2), (2, 0), (0, 1))]
        if not any(areas):
            sizes = [sum(map(abs, each)) for each in b]
            if 0 in sizes:
                return [Fraction(int(size == 0), sizes.count(0)) for size in sizes]
            for i, j in ((0, 1), (0, 2), (1, 2)):
                if sum(map(operator.mul, b[i], b[j])) < 0:
                    areas = [sizes[j] if k == i else sizes[i] if k == j else Fraction(0) for k in range(3)]
                    break
            else:
                return None
        return None if min(areas) < 0 < max(areas) else [area / sum(areas) for area in areas]

    def update(self, law, memo, point, outcome, context=None):
        self.last, centre = memo
        if not self.centred:
            centre = tuple(Fraction(k, self.m) for k in point)
        self.bias[point] = tuple(
            b - c + (k == outcome) for k, (b, c) in enumerate(zip(self.of(point), centre, strict=True))
        )


class Ahead(Pairs):
    def __init__(self, m):
        super().__init__(m, None)

    def forecast(self, number, context):
        return {self.pair() / self.m: 1.0}, None

    def update(self, law, memo, value, outcome, context, place=0):
        i = round(value * self.m) + outcome
        self.bias[i] += self.m * outcome - i


class SoftHedging:
    """A forecast counts at each soft bin with the weight by which `scdl_binned` defines these."""

    def __init__(self, m):
        self.m, self.bias, self.weight = m, [0.0] * (m + 1), [0.0] * (m + 1)

    def off(self, j, sign):
        """By how much a bin is too low (1) or too high (−1), beyond half a step."""
        return sign * self.bias[j] - self.weight[j] / (2 * self.m)

    def forecast(self, number, context):
        low, high = 0, self.m
        while high - low > 1:
            middle = (low + high) // 2
            if self.off(middle, 1) > 0:
                low = middle
            elif self.off(middle, -1) > 0:
                high = middle
            else:
                return {middle / self.m: 1.0}, None
        if self.off(low, 1) <= 0 or self.off(high, -1) <= 0:
            return {(low if self.off(low, 1) <= 0 else high) / self.m: 1.0}, None
        a, b = (ada_normal_hedge(self.off(j, sign), self.weight[j]) for j, sign in ((low, 1), (high, -1)))
        return {(low + a / (a + b)) / self.m: 1.0}, None

    def update(self, law, memo, value, outcome, context, place=0):
        for j in range(self.m + 1):
            w = max(0.0, 1 - self.m * abs(value - j / self.m))
            self.bias[j] += w * (outcome - j / self.m)
            self.weight[j] += w


class Stationary(ABC):
    """Laws that a matrix leaves as it is, on a closed set to which the point played last leads.

    Where there are several such sets any will do, so `agrees` tells whether a law is one, instead of `forecast`.
    """

    def __init__(self, m):
        self.m, self.last = m, m // 2

    @abstractmethod
    def flow(self):
        """The matrix of flows between points."""

    def agrees(self, law):
        flow, points = self.flow(), [round(v * self.m) for v, w in law.items() if w > 0]
        q = np.array([w for w in law.values() if w > 0])
        np.fill_diagonal(flow, 0.0)
        reached = np.arange(self.m + 1) == self.last
        for _ in range(self.m):
            reached |= (flow[reached] > 0).any(axis=0)
        inner = flow[np.ix_(points, points)]
        # A wish that is a point up to rounding flows to its neighbour, or does not.
        closed = (np.delete(flow[points], points, axis=1) <= 1e-12).all()
        stationary = np.abs(q @ inner - q * inner.sum(axis=1)).max() <= 1e-9 * max(1.0, inner.max())
        return closed and stationary and reached[points].all() and abs(q.sum() - 1) < 1e-9


class FosterVohra(Stationary):
    def __init__(self, m, swaps):
        super().__init__(m)
        self.swaps, self.counts, self.ones = swaps, np.zeros(m + 1), np.zeros(m + 1)

    def flow(self):
        grid = np.arange(self.m + 1)
        loss = np.outer(self.ones, (grid - self.m) ** 2) + np.outer(self.counts - self.ones, grid**2)
        flow = np.maximum(np.diag(loss)[:, None] - loss, 0)
        return flow * (np.abs(np.subtract.outer(grid, grid)) <= 1) if self.swaps == "next" else flow

    def update(self, law, memo, value, outcome, context, place=0):
        self.last = round(value * self.m)
        self.counts[self.last] += 1
        self.ones[self.last] += outcome


class BlumMansour(Stationary):
    """Each point wishes for its regularised mean outcome, and flows to the two points around it."""

    def __init__(self, m, grid=None):
        super().__init__(m)
        self.grid = np.arange(m + 1) / m if grid is None else grid
        self.weight, self.ones = np.zeros(m + 1), np.zeros(m + 1)

    def flow(self):
        wish = (self.grid + self.ones) / (1 + self.weight)
        flow = np.array([np.interp(wish, self.grid, unit) for unit in np.eye(self.m + 1)]).T
        # A wish that is a point up to rounding flows to its neighbour, or does not.
        return np.where(flow > 1e-12, flow, 0.0)

    def place(self, value):
        return int(np.abs(self.grid - value).argmin())

    def agrees(self, law):
        return super().agrees({self.place(v) / self.m: w for v, w in law.items()})

    def update(self, law, memo, value, outcome, context, place=0):
        self.last = self.place(value)
        for v, w in law.items():
            self.weight[self.place(v)] += w
            self.ones[self.place(v)] += w * outcome


def BlumMansourLog(m):
    rule = BlumMansour(m, np.sin(np.pi * (2 * np.arange(m + 1) + 1) / (4 * (m + 1))) ** 2)
    rule.last = (m + 1) // 2
    return rule


class StepCE:
    """Two neighbouring points, or one, such that no outcome gains for the weights of all signed thresholds."""

    def __init__(self, m, horizon):
        self.m, self.rate = m, math.sqrt(8 * math.log(2 * m + 2) / horizon)
        self.bias = np.zeros(m + 1, np.int64)  # m·E_i

    def gain(self, i):
        """H(i), divided by the sum of the sizes of its terms, and the logarithm of that sum."""
        exponents = self.rate * (np.cumsum(self.bias)[i:] / self.m + 0.5 - i / self.m)
        most = np.abs(exponents).max()
        size = (np.exp(np.abs(exponents) - most)).sum()
        return (np.exp(exponents - most) - np.exp(-exponents - most)).sum() / size, most + math.log(size)

    def agrees(self, law):
        points = sorted(round(v * self.m) for v, w in law.items() if w > 0)
        weights = [law[v] for v in sorted(law) if law[v] > 0]
        (first, size), (last, other) = self.gain(points[0]), self.gain(points[-1])
        if len(points) == 1:
            low, high = points[0] == 0, points[0] == self.m
            return abs(first) <= 1e-9 or (low and first < 0) or (high and first > 0)
        most = max(size, other)
        left, right = first * math.exp(size - most), last * math.exp(other - most)
        equal = abs(weights[0] * left + weights[1] * right) <= 1e-9
        return points[1] == points[0] + 1 and first >= -1e-9 and last <= 1e-9 and equal

    def update(self, law, memo, value, outcome, context, place=0):
        i = round(value * self.m)
        self.bias[i] += self.m * outcome - i


class Defensive:
    def __init__(self, kernel, scale):
        self.kernel, self.scale, self.past = kernel, scale, []

    def sum(self, p):
        d = np.array([s for s, _ in self.past]) - p
        k = np.exp(-np.abs(d) / self.scale) if self.kernel == "laplace" else np.exp(-((d / self.scale) ** 2))
        return float(k @ np.array([y - s for s, y in self.past])) + 0.5 - p if self.past else 0.5 - p

    def agrees(self, law):
        (p,) = law
        s = self.sum(p)
        if self.sum(0.0) <= -1e-9 or self.sum(1.0) >= 1e-9:
            return p == (0.0 if self.sum(0.0) <= 0 else 1.0)
        return abs(s) <= 1e-12 * (len(self.past) + 1) / self.scale + 1e-12 or p in (0.0, 1.0)

    def update(self, law, memo, value, outcome, context, place=0):
        self.past.append((value, outcome))


class PerturbedLeader:
    def __init__(self, uniforms, atoms, mean):
        self.uniforms, self.atoms, self.mean, self.ones, self.rounds = uniforms, atoms, mean, 0, 0

    def forecast(self, number, context):
        u = self.uniforms[(number - 1) * 2 * self.atoms : number * 2 * self.atoms]
        z = np.floor(np.log1p(-u) / math.log(self.mean / (1 + self.mean)))
        law = []
        for z0, z1 in z.reshape(self.atoms, 2):
            total = self.rounds + z0 + z1
            law.append((self.ones + z1) / total if total else 0.5)
        return summed((v, 1 / self.atoms) for v in law), None

    def update(self, law, memo, value, outcome, context, place=0):
        self.ones, self.rounds = self.ones + outcome, self.rounds + 1


class ThresholdHedging:
    """Exponential weights at each threshold (i − 1/2)/m: the probabilities of acting, and what is between them."""

    def __init__(self, m):
        self.m, self.ones, self.rounds = m, 0, 0

    def forecast(self, number, context):
        t, acts = self.rounds + 1, [1.0]
        for i in range(1, self.m + 1):
            z = 4 / math.sqrt(t) * (self.ones + 0.5 - (i - 0.5) / self.m * t)
            acts.append(0.5 * (1 + math.tanh(z / 2)))
        acts.append(0.0)
        return {i / self.m: acts[i] - acts[i + 1] for i in range(self.m + 1)}, None

    def update(self, law, memo, value, outcome, context, place=0):
        self.ones, self.rounds = self.ones + outcome, self.rounds + 1


class Calibeating:
    def __init__(self, bins, inner=None):
        self.bins, self.inner, self.seen = bins, inner, {}

    def bin(self, b):
        return sum(b >= j / self.bins for j in range(1, self.bins))

    def forecast(self, number, context):
        memo = None
        base = context["base"]
        if self.inner is not None:
            law, memo = self.inner.forecast(number, context)
            (base,) = law
        n, s = self.seen.get(self.bin(base), (0, 0))
        return {(s + base) / (n + 1): 1.0}, (base, memo)

    def update(self, law, memo, value, outcome, context, place=0):
        base, inner = memo
        n, s = self.seen.get(self.bin(base), (0, 0))
        self.seen[self.bin(base)] = n + 1, s + outcome
        if self.inner is not None:
            self.inner.update({base: 1.0}, inner, base, outcome, context)


class OnlinePlatt:
    def __init__(self, rate, ridge, radius, edge):
        self.edge = edge
        self.theta, self.a = np.array([1.0, 0.0]), ridge * np.eye(2)
        self.rate, self.radius = rate, radius

    def forecast(self, number, context):
        b = min(max(context["base"], self.edge), 1 - self.edge)
        x = np.array([math.log(b / (1 - b)), 1.0])
        p = 1 / (1 + math.exp(-float(self.theta @ x))) if self.theta @ x > -700 else 0.0
        return {p: 1.0}, (x, p)

    def update(self, law, memo, value, outcome, context, place=0):
        x, p = memo
        g = (p - outcome) * x
        self.a = self.a + np.outer(g, g)
        self.theta = self.theta - np.linalg.solve(self.a, g) / self.rate
        if self.theta @ self.theta > self.radius**2:  # onto the disc, in the norm of A
            target, low, high = self.a @ self.theta, 0.0, 1e12
            for _ in range(200):
                middle = (low + high) / 2
                self.theta = np.linalg.solve(self.a + middle * np.eye(2), target)
                low, high = (middle, high) if self.theta @ self.theta > self.radius**2 else (low, middle)


class Rounded:
    """`place` is the drawn atom's in the law that the player states: `fold` atoms for each inner one."""

    def __init__(self, inner, m, how):
        self.inner, self.m, self.how, self.fold = inner, m, how, 2 if how == "random" else 1

    def onto(self, v):
        """Grid points with their shares."""
        low = max(i for i in range(self.m + 1) if i / self.m <= v)
        if self.how == "nearest":
            return [(float(np.rint(v * self.m)) / self.m, 1.0)]
        if self.how == "down":
            return [(low / self.m, 1.0)]
        low = min(low, self.m - 1)
        up = (v - low / self.m) * self.m
        return [(low / self.m, 1 - up), ((low + 1) / self.m, up)]

    def forecast(self, number, context):
        law, memo = self.inner.forecast(number, context)
        return summed((p, w * share) for v, w in law.items() for p, share in self.onto(v)), (law, memo)

    def update(self, law, memo, value, outcome, context, place=0):
        law, memo = memo
        self.inner.update(law, memo, list(law)[place // self.fold], outcome, context)


class Aggregation:
    """The root of what both outcomes would make of the sum, by its definition and without derivatives."""

    LOSSES = (lambda p, y: -math.log(p if y else 1.0 - p)), (lambda p, y: 2.0 * (p - y) ** 2)

    def __init__(self, experts):
        self.experts, self.regret = experts, np.zeros((2, len(experts)))

    def after(self, p, said, y):
        return np.array([[loss(p, y) - loss(q, y) for q in said] for loss in self.LOSSES])

    def forecast(self, number, context):
        stated = [expert.forecast(number, context) for expert in self.experts]
        said = [min(max(next(iter(law)), 1e-6), 1.0 - 1e-6) for law, _ in stated]
        shares = np.exp(self.regret - self.regret.max())

        def gap(p):
            return sum(
                sign * (shares * np.exp(self.after(p, said, y))).sum() for y, sign in ((1, 1.0), (0, -1.0))
            )

        p = (
            said[0]
            if min(said) == max(said)
            else scipy.optimize.brentq(gap, min(said), max(said), xtol=1e-15)
        )
        return {p: 1.0}, (p, said, stated)

    def update(self, law, memo, value, outcome, context, place=0):
        p, said, stated = memo
        self.regret += self.after(p, said, outcome)
        for expert, (own, inner) in zip(self.experts, stated, strict=True):
            expert.update(own, inner, next(iter(own)), outcome, context)


class Mixture:
    """Hedged over experts; an expert that was not drawn believes in a draw of its own, with the mixture's uniforms."""

    def __init__(self, experts, rate, uniforms):
        self.experts, self.rate, self.uniforms, self.loss = experts, rate, uniforms, np.zeros(len(experts))

    def forecast(self, number, context):
        said = [expert.forecast(number, context) for expert in self.experts]
        shares = np.exp(-self.rate * (self.loss - self.loss.min()))
        shares /= shares.sum()
        law = summed(
            (v, w * share) for (own, _), share in zip(said, shares, strict=True) for v, w in own.items()
        )
        k = len(self.experts)
        return law, (said, self.uniforms[(number - 1) * k : number * k])

    def update(self, law, memo, value, outcome, context, place=0):
        said, uniforms = memo
        for k, (expert, (own, memo_)) in enumerate(zip(self.experts, said, strict=True)):
            self.loss[k] += sum(w * (v - outcome) ** 2 for v, w in own.items())
            values = list(own)
            if 0 <= place < len(values):
                believed = values[place]
            else:
                below = np.cumsum([0.0, *own.values()])[:-1]
                believed = [v for v, b in zip(values, below, strict=True) if own[v] > 0 and b <= uniforms[k]][
                    -1
                ]
            place -= len(values)
            expert.update(own, memo_, believed, outcome, context)


class Doubling:
    def __init__(self, make, first):
        self.make, self.first = make, first
        self.begin, self.length, self.inner = 0, first, make(first)

    def forecast(self, number, context):
        while number > self.begin + self.length:
            self.begin, self.length = self.begin + self.length, 2 * self.length
            self.inner = self.make(self.length)
        law, memo = self.inner.forecast(number - self.begin, context)
        return law, (self.inner, memo)

    def update(self, law, memo, value, outcome, context, place=0):
        inner, memo = memo
        inner.update(law, memo, value, outcome, context, place)


class Delayed:
    """A list of copies, each with a rule, the rounds that it was asked, and whether one of them is open.

    A copy that was asked `each` rounds is asked no more; `make` takes the number of the copy.
    """

    def __init__(self, make, each=math.inf):
        self.make, self.each, self.copies = make, each, []

    def forecast(self, number, context):
        free = (copy for copy in self.copies if not copy["open"] and copy["asked"] < self.each)
        copy = next(free, None)
        if copy is None:
            copy = {"rule": self.make(len(self.copies)), "asked": 0}
            self.copies.append(copy)
        copy["asked"] += 1
        copy["open"] = True
        law, memo = copy["rule"].forecast(copy["asked"], context)
        return law, (copy, memo)

    def update(self, law, memo, value, outcome, context, place=0):
        copy, memo = memo
        copy["open"] = False
        copy["rule"].update(law, memo, value, outcome, context, place)


class Separate:
    """A rule for each stream, or each value of these kinds of context."""

    def __init__(self, make, kinds=("stream",)):
        self.make, self.kinds, self.rules = make, kinds, {}

    def forecast(self, number, context):
        stream = tuple(int(context[kind]) for kind in self.kinds)
        stream = stream[0] if len(stream) == 1 else stream
        rule, asked = self.rules.get(stream) or (self.make(stream), 0)
        self.rules[stream] = rule, asked + 1
        law, memo = rule.forecast(asked + 1, context)
        return law, (rule, memo)

    def update(self, law, memo, value, outcome, context, place=0):
        rule, memo = memo
        rule.update(law, memo, value, outcome, context, place)


def summed(pairs):
    """A law of values that may repeat."""
    law = {}
    for value, weight in pairs:
        law[value] = law.get(value, 0.0) + weight
    return law
