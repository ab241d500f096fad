"""Regret against swaps of a family: enumeration over what the swaps allow, least squares, and the order of families."""

import math
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import lsq_linear

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.joint import JointDistribution
from onlinecal.decisions import tasks
from onlinecal.decisions.responses import DecisionMaker, Rounded
from onlinecal.decisions.tasks import TIE, QuadraticTask, restricted_swap_regret, swap_regret
from tests.decisions.test_tasks import decision_tasks
from tests.oracles.tasks import earned
from tests.strategies import close_gammas, gammas

G = JointDistribution
rates = st.sampled_from([0.5, 1.0, 1.5, 3.0, 100.0])
any_task = decision_tasks() | st.just(QuadraticTask())


def regions(task):
    """Where in [0, 1] each action is a best response, up to a tie, in exact arithmetic; None where nowhere."""
    found = []
    for u0, u1 in task.payoffs:
        least, most = Fraction(0), Fraction(1)
        for other0, other1 in task.payoffs:
            # (1 − v) u0 + v u1 is at least that of the other, less a tie.
            start = Fraction(u0) - Fraction(other0) + Fraction(TIE)
            slope = Fraction(u1) - Fraction(u0) - Fraction(other1) + Fraction(other0)
            if slope > 0:
                least = max(least, -start / slope)
            elif slope < 0:
                most = min(most, -start / slope)
            elif start < 0:
                most = Fraction(-1)
        found.append((least, most) if least <= most else None)
    return found


def paid_by_steady_swaps(gamma, task, rate, slack):
    """The most that any row of responses is paid which some Lipschitz κ allows, level by level."""
    places = regions(task)
    v = [Fraction(x) for x in gamma.predictions.tolist()]
    best = -math.inf
    for row in product(range(len(places)), repeat=gamma.levels):
        reach = (Fraction(0), Fraction(1))
        for i, a in enumerate(row):
            step = Fraction(rate) * (v[i] - v[i - 1]) + slack if i else 0
            if places[a] is None:
                break
            reach = max(reach[0] - step, places[a][0]), min(reach[1] + step, places[a][1])
            if reach[0] > reach[1]:
                break
        else:
            best = max(best, earned(gamma, task, list(row)))
    return best


@given(gammas(max_levels=3), decision_tasks(3), rates)
def test_lipschitz_swaps_are_enumerated(gamma, task, rate):
    account = task.account(gamma)
    value = restricted_swap_regret(gamma, task, swaps="lipschitz", lipschitz=rate)
    # Swaps that are allowed at the edge of rounding may be found or not.
    least, most = (paid_by_steady_swaps(gamma, task, rate, slack) for slack in (0, Fraction(2, 10**15)))
    assert min(least - account.payoff, account.swap) - 1e-9 <= value
    assert value <= max(most - account.payoff, 0.0 if rate >= 1 else -1.0) + 1e-9


@given(gammas(max_levels=4), decision_tasks(3))
def test_monotone_swaps_are_enumerated(gamma, task):
    gain = task.table[:, 1] - task.table[:, 0]
    rows = product(range(len(gain)), repeat=gamma.levels)
    best = max(earned(gamma, task, list(row)) for row in rows if (np.diff(gain[list(row)]) >= 0).all())
    expected = best - task.account(gamma).payoff
    assert restricted_swap_regret(gamma, task) == pytest.approx(
        min(expected, swap_regret(gamma, task)), abs=1e-9
    )


@given(gammas(max_levels=4), rates | st.none())
def test_the_nearest_lipschitz_or_ascending_values_by_bounded_least_squares(gamma, rate):
    v, w, q = gamma.predictions, gamma.mass, gamma.means
    # κ is its first value and its steps.
    k = gamma.levels
    root = np.sqrt(w)[:, None]
    ends = (math.inf if rate is None else rate) * np.diff(v)
    low, high = (
        np.append(0.0, np.zeros(k - 1) if rate is None else -ends - 1e-13),
        np.append(1.0, ends + 1e-13),
    )
    found = lsq_linear(root * np.tri(k), root[:, 0] * q, (low, high), tol=1e-14, max_iter=2000)
    expected = float(w @ (v - q) ** 2) - 2.0 * found.cost
    options = {} if rate is None else {"swaps": "lipschitz", "lipschitz": rate}
    assert restricted_swap_regret(gamma, "quadratic", **options) == pytest.approx(expected, abs=1e-7)


@given(gammas() | close_gammas(), any_task)
def test_larger_families_regret_more_and_all_swaps_most(gamma, task):
    swap = swap_regret(gamma, task)
    chain = [
        restricted_swap_regret(gamma, task, swaps="lipschitz", lipschitz=c) for c in (0, 0.5, 1, 2, math.inf)
    ]
    assert all(a <= b + 1e-12 for a, b in pairwise(chain))
    assert chain[-1] == pytest.approx(swap, abs=1e-12)
    assert 0.0 <= restricted_swap_regret(gamma, task) <= swap
    assert 0.0 <= chain[2] <= swap
    assert chain[0] == pytest.approx(tasks.external_regret(gamma, task), abs=1e-12)


@given(gammas(), any_task, st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_a_swap_that_is_given_is_at_most_the_best_of_its_family(gamma, task, a, b):
    low, high = min(a, b), max(a, b)
    swaps = [lambda v: low + (high - low) * v, lambda v: high - (high - low) * v, lambda v: v]
    gains = [restricted_swap_regret(gamma, task, swaps=[swap]) for swap in swaps]
    together = restricted_swap_regret(gamma, task, swaps=[swap(gamma.predictions) for swap in swaps])
    assert together == max(gains)
    assert gains[0] <= restricted_swap_regret(gamma, task) + 1e-12
    assert max(gains) <= restricted_swap_regret(gamma, task, swaps="lipschitz") + 1e-12
    assert gains[2] == pytest.approx(0.0, abs=1e-12)


def test_levels_on_kinks_and_steps_that_just_suffice():
    """κ(1/4) = 1/4 and κ(3/4) = 3/4 are ties, of which the swap takes the actions that it needs."""
    gamma = G.from_levels([0.25, 0.5, 0.75], [0.4, 0.2, 0.4], [0.0, 0.5, 1.0])
    value = restricted_swap_regret(gamma, "three_action", swaps="lipschitz")
    assert value == pytest.approx(swap_regret(gamma, "three_action"), abs=1e-15)
    tenths = G.from_levels(np.arange(1, 10) / 10, np.full(9, 1 / 9), [0, 0, 0, 0, 0.5, 1, 1, 1, 1])
    task = tasks.DecisionTask("tenths", [[1.0, 0.0], [0.72, 0.84 - 0.72 + 0.52], [0.0, 1.0]])
    low, high = (float(x) for x in (task.envelope[2][0], task.envelope[2][1]))
    needed = (high - low) / 0.2  # from the level 0.4 to the level 0.6
    for rate, whole in ((needed + 1e-9, True), (needed - 1e-3, False)):
        value = restricted_swap_regret(tenths, task, swaps="lipschitz", lipschitz=rate)
        assert (value > swap_regret(tenths, task) - 1e-12) == whole


def test_any_task_takes_a_list():
    gamma = G.from_levels([0.2, 0.8], [0.5, 0.5], [0.8, 0.2])
    who = DecisionMaker(tasks.umbrella(), Rounded(10))
    assert restricted_swap_regret(gamma, who, swaps=[[0.8, 0.2]]) == pytest.approx(swap_regret(gamma, who))
    with pytest.raises(InvalidParameter, match="expected a table of payoffs"):
        restricted_swap_regret(gamma, who)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        *(({"swaps": wrong}, "'monotone', 'lipschitz' or a list") for wrong in ("convex", np.square, 3)),
        ({"swaps": []}, "at least one"), ({"swaps": [[0.1, 0.2, 0.3]]}, r"shape \(3,\); expected \(2,\)"),
        ({"swaps": [np.square, [0.1, 1.5]]}, r"swaps\[1\]\[1\] = 1.5"), ({"swaps": [[0.1, math.nan]]}, "= nan"),
        ({"swaps": [lambda v: 0.5]}, r"shape \(\)"), ({"swaps": "lipschitz", "lipschitz": -1}, "lipschitz = -1"),
        ({"swaps": "lipschitz", "lipschitz": math.nan}, "lipschitz = nan"),
    ],
)  # fmt: skip
def test_what_is_no_family_is_refused(options, said):
    with pytest.raises(InvalidParameter, match=said):
        restricted_swap_regret(G.from_levels([0.2, 0.8], [0.5, 0.5], [0.8, 0.2]), "umbrella", **options)
