"""Measures of K classes: values by hand, the binary ones for two classes, definitions, and how they relate."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from scipy.optimize import linprog

import onlinecal as oc
from onlinecal import ClassDistribution
from onlinecal.core.errors import InvalidData, InvalidParameter, UnknownName
from onlinecal.measures import classes
from onlinecal.measures.base import ends
from onlinecal.measures.classes import brackets, programs, sums
from onlinecal.measures.classes.catalogue import MEASURES
from tests.marks import slow
from tests.strategies import gammas

LEVELS = ClassDistribution.from_levels
THREE = LEVELS(
    [(0.5, 0.3, 0.2), (0.2, 0.3, 0.5), (0.3, 0.4, 0.3)],
    [0.4, 0.4, 0.2],
    [(0.5, 0.25, 0.25), (0, 0.5, 0.5), (0.5, 0.5, 0)],
)
TWO = LEVELS([[0.7, 0.3]], [1], [[0.5, 0.5]])
BINARY = oc.JointDistribution.from_samples([0.5], [1])
PROGRAMS = ("cdl", "u_calibration", "smooth_ce")
PLAIN = ("ece", "brier", "log_loss", "kernel_ce")


def test_values_by_hand():
    want = {"ece": 4 / 25, "cdl": 0.28, "smooth_ce": 0.088, "u_calibration": 0.88 / 7, "brier": 153 / 500}
    for name, value in want.items():
        assert getattr(classes, name)(THREE) == pytest.approx(value, abs=1e-9), name
    found = classes.classwise(THREE)
    assert [*found.values.values(), found.max, found.mean] == pytest.approx([0.12, 0.08, 0.08, 0.12, 7 / 75])
    assert classes.setwise(THREE) == (pytest.approx(3 / 25), (1, 2))
    assert classes.toplabel(THREE) == classes.toplabel(THREE, conditional=True) == pytest.approx(1 / 50)
    crossed = LEVELS([[0.6, 0.4], [0.4, 0.6]], [3, 1], [[0.8, 0.2], [0.6, 0.4]])
    found = [classes.toplabel(crossed, conditional=each) for each in (False, True)]
    assert found == pytest.approx([0.1, 0.2])
    for function in (classes.classwise, classes.toplabel, classes.setwise):
        for measure in ("brier", oc.measures.brier):
            assert function(measure, THREE) == function(THREE, measure=measure) != function(THREE)
    assert classes.toplabel("ece", [[0.6, 0.4], [0.4, 0.6]], [0, 0], conditional=True) == pytest.approx(0.5)


def test_two_actions_are_the_worst_task_of_one_level(seed):
    rng = np.random.default_rng(seed)
    # Of the last one ⟨v, D⟩ is exactly 0, so the actions tie.
    for v, q in (
        *(rng.dirichlet(np.full(k, 0.5), 2) for k in (2, 3, 5, 9)),
        (np.full(4, 0.25), [0.5, 0.5, 0, 0]),
    ):
        gamma = LEVELS([v], [1], [q])
        for name in ("cdl", "u_calibration"):
            bracket = getattr(classes, f"{name}_bracket")(gamma)
            assert bracket.lower == pytest.approx(getattr(classes, name)(gamma), abs=1e-9)


def test_lower_ends_are_those_of_the_tasks_of_the_64_levels_with_the_largest_errors(seed, monkeypatch):
    """In tasks of two actions those that pay ⟨v, D⟩ more than nothing go, and on a tie whoever regrets that more."""
    tried, find = [], brackets.worst_difference
    monkeypatch.setattr(brackets, "worst_difference", lambda v, q: (tried.append(find(v, q)), tried[-1])[1])
    rng = np.random.default_rng([seed, 9])
    for k in (1, 2, 5, 70):
        gamma = LEVELS(rng.dirichlet([1, 1, 1], k), rng.random(k), rng.dirichlet([1, 1, 1], k))
        worst = sorted(range(k), key=lambda i: -np.abs(gamma.residuals[i]).sum())[:64]
        for name in ("cdl", "u_calibration"):
            tried.clear()
            (lower, upper), regrets = ends(getattr(classes, f"{name}_bracket")(gamma)), []
            assert upper == min(2.0 * classes.ece(gamma), 1.0)
            assert np.array_equal(tried, [find(gamma.predictions[i], gamma.means[i]) for i in worst])
            for better in tried:
                expected, gains = gamma.predictions @ better, gamma.mass * (gamma.means @ better)
                taken = [min(g * (e > 0), g * (e >= 0)) for e, g in zip(expected, gains, strict=True)]
                best = np.maximum(gains, 0.0).sum() if name == "cdl" else max(gains.sum(), 0.0)
                regrets.append(best - sum(taken))
            each = classes.classwise(gamma, measure=name).max
            assert lower == pytest.approx(max(*regrets, each), abs=1e-12)


def as_classes(gamma):
    """The same Γ with a column for outcome 0 and one for outcome 1."""
    v, n, s = gamma.predictions, gamma.counts, gamma.positives
    return ClassDistribution.from_counts(np.stack([1 - v, v], axis=1), np.stack([n - s, s], axis=1))


@given(gammas(max_levels=6))
def test_two_classes_are_the_binary_measures(gamma):
    # Multiples of 1/1024: 1 − v and sums of both are exact.
    gamma = gamma.round(1024)[0]
    both = as_classes(gamma)
    for name in (*PLAIN, *PROGRAMS):
        want = getattr(oc.measures, name)(gamma)
        near = want if math.isinf(want) else pytest.approx(want, abs=1e-8 if name in PROGRAMS else 1e-12)
        assert getattr(classes, name)(both) == near, name
    for name in ("ece", "smooth_ce", "cdl", "brier"):
        want = pytest.approx(getattr(oc.measures, name)(gamma), abs=1e-12)
        assert classes.setwise(both, measure=name).value == want
        assert classes.classwise(both, measure=name).values[1] == want


def some(rng, size=None):
    """A Γ of up to 6 levels: of Dirichlet's law, or fractions with zeros; sometimes calibrated at a level."""
    k, levels = size or int(rng.integers(2, 6)), int(rng.integers(1, 7))
    if rng.random() < 0.5:
        v, q = (rng.dirichlet(np.full(k, 0.7), levels) for _ in range(2))
    else:
        v, q = (rng.multinomial(4, np.full(k, 1 / k), levels) / 4 for _ in range(2))
    same = rng.random(levels) < 0.2
    q[same] = v[same]
    return ClassDistribution.from_counts(v, q * rng.integers(1, 9, levels)[:, None])


def moved(gamma, columns):
    """Γ with other columns: classes in another order, or (by a matrix) some together."""
    return ClassDistribution.from_counts(gamma.predictions @ columns, gamma.tallies @ columns)


@pytest.mark.parametrize("many", [15, slow(500)])
def test_brackets_and_classes_in_another_order_or_together(many, seed):
    """They are theorems, with room for rounding: no seed can fail. Those of ECE: tests/core/test_relations.py."""
    rng, e = np.random.default_rng(seed), 1e-9
    for _ in range(many):
        gamma = some(rng)
        k = gamma.classes
        values = {name: getattr(classes, name)(gamma) for name in ("ece", *PROGRAMS)}
        for name in PROGRAMS:
            bracket = getattr(classes, f"{name}_bracket")(gamma)
            assert bracket.lower - e <= values[name] <= bracket.upper + e
        found = [getattr(classes, name)(gamma, measure="smooth_ce") for name in ("classwise", "setwise")]
        assert found[0].max <= found[1].value + e
        permuted = moved(gamma, np.eye(k)[rng.permutation(k)])
        for name, value in values.items():
            assert getattr(classes, name)(permuted) == pytest.approx(value, abs=1e-8)
        assert classes.classwise(permuted, measure="smooth_ce").max == pytest.approx(found[0].max, abs=1e-9)
        assert classes.setwise(permuted, measure="smooth_ce").value == pytest.approx(found[1].value, abs=1e-9)
        if k > 2:
            joined = moved(gamma, np.eye(k)[:, 1:] + np.outer(np.eye(k)[0], np.eye(k)[0, : k - 1]))
            for name in ("ece", "cdl"):
                assert getattr(classes, name)(joined) <= values[name] + 1e-8


def definitions(gamma):
    """CDL and smooth calibration by the programs of the definitions, with every inequality, as dense matrices."""
    v, w, q = gamma.predictions, gamma.mass, gamma.means
    k, size = v.shape
    z, costs = np.vstack([v, q]), np.concatenate([w[:, None] * q, -w[:, None] * q]).ravel()
    rows = np.zeros((4 * k * k, 2 * k, size))
    for row, (a, b) in zip(rows, itertools.product(range(2 * k), repeat=2), strict=True):
        row[b] += z[a]
        row[a] -= z[a]
    found = linprog(costs, A_ub=rows.reshape(len(rows), -1), b_ub=np.zeros(len(rows)), bounds=(0, 1))
    total = 0.0
    pairs = [(i, j) for i in range(k) for j in range(k) if i != j]
    rows, apart = np.zeros((max(len(pairs), 1), k)), np.ones(max(len(pairs), 1))
    for at, (i, j) in enumerate(pairs):
        rows[at, i], rows[at, j], apart[at] = 1, -1, 0.5 * np.abs(v[i] - v[j]).sum()
    for c in range(size):
        total -= linprog(-w * (q - v)[:, c], A_ub=rows, b_ub=apart, bounds=(-1, 1)).fun
    return -found.fun, 0.5 * total


@pytest.mark.parametrize("many", [10, slow(150)])
def test_the_programs_are_those_of_the_definitions(many, seed):
    rng = np.random.default_rng(seed)
    for _ in range(many):
        gamma = some(rng)
        found = classes.cdl(gamma), classes.smooth_ce(gamma)
        assert found == pytest.approx(definitions(gamma), abs=1e-8)


def test_programs_of_many_levels_miss_no_inequality(seed, monkeypatch):
    """They begin with those of near levels; the definitions have all."""
    monkeypatch.setattr(programs, "FIRST", 3)
    rng = np.random.default_rng(seed)
    v, q = rng.dirichlet([1, 1, 1], (2, 20))
    gamma = LEVELS(v, rng.random(20), 0.7 * v + 0.3 * q)
    assert (classes.cdl(gamma), classes.smooth_ce(gamma)) == pytest.approx(definitions(gamma), abs=1e-8)


def test_a_few_inequalities_give_what_all_give(seed, monkeypatch):
    """On levels of a grid, with ties and zeros, some calibrated. Some nearly equal: as exactly as the page says."""
    rng = np.random.default_rng([seed, 5])
    for m, near, within in ((3, 0, 1e-9), (6, 0, 1e-9), (9, 0, 1e-9), (6, 1e-6, 1e-8)):
        v = rng.multinomial(m, rng.dirichlet([1, 1, 1], 40)) / m
        v = np.unique(np.concatenate((v, (1 - near) * v[:5] + near * v[5:10])), axis=0)
        q = np.where(rng.random((len(v), 1)) < 0.2, v, rng.dirichlet([1, 1, 1], len(v)).round(1))
        q /= q.sum(axis=1, keepdims=True)
        gamma = LEVELS(v, rng.integers(1, 5, len(v)), q)
        for measure in (classes.cdl, classes.u_calibration):
            few = measure(gamma)
            with monkeypatch.context() as patch:
                patch.setattr(programs, "FIRST", 10**6)
                assert few == pytest.approx(measure(gamma), abs=within)


@pytest.mark.parametrize("many", [20, slow(300)])
def test_no_task_regrets_more_than_the_worst_one(many, seed):
    rng = np.random.default_rng(seed)
    for _ in range(many):
        gamma = some(rng)
        cdl, worst = classes.cdl(gamma), classes.worst_task(gamma)
        account = worst.account(gamma)
        assert cdl - 4e-6 <= account.swap <= cdl + 1e-9
        assert account.swap == pytest.approx(account.levels.sum())
        assert account.external <= account.action_swap <= account.swap
        task = classes.ClassTask("random", rng.random((int(rng.integers(1, 5)), gamma.classes)))
        regret = task.account(gamma)
        assert 0 <= regret.action_swap <= regret.swap <= cdl + 1e-9
        assert regret.external <= classes.u_calibration(gamma) + 1e-9
        # By definition, level by level.
        pays = [(m, task.payoffs[task.actions.index(task.respond(v))], q)
                for m, v, q in zip(gamma.mass, gamma.predictions, gamma.means, strict=True)]  # fmt: skip
        want = [m * (max(q @ np.array(task.payoffs).T) - q @ np.array(row)) for m, row, q in pays]
        assert regret.levels == pytest.approx(want, abs=1e-12)
        got = sum(m * float(q @ np.array(row)) for m, row, q in pays)
        fixed = max(sum(m * float(q @ np.array(row)) for m, _, q in pays) for row in task.payoffs)
        assert (regret.payoff, regret.external) == pytest.approx((got, fixed - got), abs=1e-12)


def test_ties_of_the_worst_task_are_broken_for_near_levels_too(seed):
    """Pairs are 0.01 apart. Others are within 1e-4, where less is stated, for one seed in 10,000 at most."""
    for each in range(6):
        rng = np.random.default_rng([seed, each])
        v, q = rng.dirichlet([3, 3, 3], 3), rng.dirichlet([1, 1, 1], 6)
        inwards = (1 / 3 - v) / np.linalg.norm(1 / 3 - v, axis=1, keepdims=True)
        gamma = LEVELS(np.concatenate((v, v + 0.01 * inwards)), np.ones(6), q)
        assert classes.worst_task(gamma).account(gamma).swap >= classes.cdl(gamma) - 2e-6 - 1e-9


@pytest.mark.parametrize("rows", [1, 5, 100])
def test_pairs_are_added_some_rows_at_a_time(rows, monkeypatch, seed):
    rng = np.random.default_rng([seed, 7])
    gamma = ClassDistribution.from_samples(rng.dirichlet([1, 1, 1], 30), rng.integers(0, 3, 30))
    v, r = gamma.predictions, gamma.residuals
    apart = 0.5 * np.abs(v[:, None] - v).sum(axis=2)
    square = 0.5 * (np.exp(-apart) * (r @ r.T)).sum()
    monkeypatch.setattr(sums, "BLOCK", rows * 30)
    assert classes.kernel_ce(gamma) == pytest.approx(math.sqrt(square), rel=1e-12)
    monkeypatch.setattr(sums, "MOST_PAIRS", 30)
    assert classes.kernel_ce(gamma) == pytest.approx(math.sqrt(square), rel=1e-12)
    monkeypatch.setattr(sums, "MOST_PAIRS", 29)
    with pytest.raises(InvalidParameter, match="30 levels; expected at most 29"):
        classes.kernel_ce(gamma)


def test_all_pairs_of_20000_levels_are_added(monkeypatch):
    monkeypatch.setattr(sums, "_quadratic", lambda v, r: 0.25)
    v = (np.arange(20_001) + 0.5) / 20_001
    p = np.stack((v, 1.0 - v), axis=1)
    assert classes.kernel_ce(p[1:], np.zeros(20_000, int)) == 0.5
    with pytest.raises(InvalidParameter, match="20001 levels; expected at most 20,000"):
        classes.kernel_ce(p, np.zeros(20_001, int))


def test_blocks_are_of_rows_in_the_order_of_their_seed(seed):
    """Two blocks of three rows, the last one left out: the mean of both; the seed decides which rows."""
    rng = np.random.default_rng([seed, 8])
    p, y = rng.dirichlet([1, 1, 1], 7), rng.integers(0, 3, 7)
    found = classes.kernel_ce_squared(p, y, block=3, seed=seed)
    order = np.random.default_rng(seed).permutation(7)
    gamma = ClassDistribution.from_samples(p, y)
    level, outcome = np.nonzero(gamma.tallies)
    halves = [
        classes.kernel_ce_squared(gamma.predictions[level[rows]], outcome[rows])
        for rows in order[:6].reshape(2, 3)
    ]
    assert found == pytest.approx(np.mean(halves), abs=1e-14)
    assert found == classes.kernel_ce_squared(p, y, block=3, seed=seed)
    if seed:
        assert found != classes.kernel_ce_squared(p, y, block=3)


def test_a_tie_goes_to_the_first_action():
    gamma = LEVELS([[0.5, 0.5, 0.0]], [1], [[0.0, 1.0, 0.0]])
    first = classes.ClassTask("a", [[1, 0, 0], [0, 1, 0]])
    assert classes.swap_regret(gamma, task=first) == 1.0
    account = classes.ClassTask("b", [[0, 1, 0], [1, 0, 0]], ["one", "two"]).account(gamma)
    assert (account.swap, account.actions) == (0.0, {"one": 0.0})


def test_the_square_is_estimated_without_bias():
    """Over all samples of 3 rows of Γ, weighted by their probabilities; and blocks of all rows are all rows."""
    gamma = LEVELS([[0.5, 0.3, 0.2], [0.1, 0.2, 0.7]], [0.4, 0.6], [[0.2, 0.5, 0.3], [0.3, 0.3, 0.4]])
    cells = [
        (v, y, m * p)
        for v, m, q in zip(gamma.predictions, gamma.mass, gamma.means, strict=True)
        for y, p in enumerate(q)
    ]
    mean = 0.0
    for rows in itertools.product(cells, repeat=3):
        p, y, chance = zip(*rows, strict=True)
        found = classes.kernel_ce_squared(p, y)
        assert classes.kernel_ce_squared(p, y, block=3) == pytest.approx(found, abs=1e-15)
        mean += math.prod(chance) * found
    assert mean == pytest.approx(classes.kernel_ce(gamma) ** 2, abs=1e-12)


def test_a_certain_forecast_of_what_does_not_happen():
    p = [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    right, wrong = (ClassDistribution.from_samples(p, y) for y in ([0, 2], [1, 0]))
    assert [getattr(classes, name)(right) for name in (*PLAIN, *PROGRAMS)] == [0.0] * 7
    assert classes.log_loss(wrong) == math.inf
    assert classes.ece(wrong) == classes.brier(wrong) == 1.0
    assert classes.cdl(wrong) == pytest.approx(1.0)
    assert classes.worst_task(right).account(right).swap == 0.0


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda: classes.setwise(np.full((2, 13), 1 / 13), [0, 1]), InvalidParameter, "sets; expected at most 12"),
        (lambda: classes.classwise(THREE, measure="distance_lower"), InvalidParameter, "one number"),
        (lambda: classes.classwise(THREE, measure="smoth_ce"), UnknownName, "did you mean 'smooth_ce'"),
        (lambda: classes.classwise(THREE, measure=oc.measures.ece, bins=3), InvalidParameter, "or a function"),
        (lambda: classes.setwise(THREE, "smooth_ce"), InvalidParameter, "options by their names"),
        (lambda: classes.ece(BINARY), InvalidData, "JointDistribution given; expected a ClassD"),
        (lambda: classes.ece([[0.5, 0.5]]), InvalidData, "list given"),
        (lambda: classes.ece(THREE, y=[1]), InvalidData, "expected a ClassDistribution"),
        (lambda: classes.ece([[0.5, 0.5]], [1], order=2), InvalidParameter, "order"),
        (lambda: classes.kernel_ce_squared(THREE), InvalidData, "without weights"),
        (lambda: classes.kernel_ce_squared([[0.5, 0.5]], [0]), InvalidData, "weight 1; expected two rows or more"),
        (lambda: MEASURES["classwise"].bind(mean=1)(THREE), InvalidParameter, "mean = 1"),
        (lambda: MEASURES["toplabel"].bind(conditional=0)(THREE), InvalidParameter, "conditional = 0"),
        (lambda: classes.ClassTask("a", [[1, 0, 0], [1]]), InvalidParameter, r"payoffs\[1\] = \[1\]; expected 3"),
        (lambda: classes.ClassTask("a", [[1, 0, 2]]), InvalidParameter, r"payoffs\[0\]\[2\] = 2"),
        (lambda: classes.swap_regret(THREE, task="umbrella"), InvalidParameter, "expected a ClassTask"),
        (lambda: classes.swap_regret(TWO, task=classes.ClassTask("a", [[1, 0, 0]])), InvalidParameter, "expected 2"),
    ],
)  # fmt: skip
def test_what_is_refused(call, error, said):
    with pytest.raises(error, match=said):
        call()


def test_many_levels_are_bracketed_only():
    rng = np.random.default_rng(0)
    gamma = ClassDistribution.from_samples(rng.dirichlet([1, 1, 1], 401), rng.integers(0, 3, 401))
    for name in (*PROGRAMS, "worst_task"):
        with pytest.raises(InvalidParameter, match="401 levels; expected at most 400"):
            getattr(classes, name)(gamma)
    programs.check_levels("cdl", ClassDistribution.from_samples(rng.dirichlet([1, 1, 1], 400), [0] * 400))
    classes.setwise(np.full((2, 12), 1 / 12), [0, 1])
    for name in PROGRAMS:
        bracket = getattr(classes, f"{name}_bracket")(gamma)
        assert 0 < bracket.lower < bracket.upper <= 1
    for name, most in (("cdl", 100), ("u_calibration", 100), ("smooth_ce", 400)):  # in games
        more = ClassDistribution.from_levels(
            rng.dirichlet([1, 1, 1], most + 1), np.ones(most + 1), rng.dirichlet([1, 1, 1], most + 1)
        )
        assert isinstance(MEASURES[name].bind()(more), oc.measures.Bracket)
        assert [MEASURES[name].may_bracket({}, levels) for levels in (most, most + 1, None)] == [
            False,
            True,
            True,
        ]


@pytest.mark.parametrize("gap", [1e-12, 1e-9, 1e-6])
def test_near_levels_and_masses_of_all_sizes_of_two_classes(gap):
    """The order of levels nearer than a solver's tolerance decides; nothing is lost beside large masses."""
    rng = np.random.default_rng(0)
    for _ in range(8):
        levels = int(rng.integers(2, 9))
        p = np.unique(rng.choice([0.3, 0.625], levels) + gap * rng.integers(-3, 4, levels))
        weight = 10.0 ** rng.uniform(-12, 6, len(p))
        binary = oc.JointDistribution.from_counts(p, weight, weight * rng.random(len(p)))
        both = as_classes(binary)
        for name in PROGRAMS:
            want = getattr(oc.measures, name)(binary)
            assert getattr(classes, name)(both) == pytest.approx(want, abs=1e-8), name
