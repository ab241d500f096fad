"""Responses: the laws of their beliefs, the accounts of decision makers, names and refusals."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import stats

from onlinecal.core.errors import InvalidParameter, UnknownName
from onlinecal.core.joint import JointDistribution
from onlinecal.decisions import tasks
from onlinecal.decisions.responses import (
    RESPONSES,
    Best,
    DecisionMaker,
    Noisy,
    Rounded,
    RoundedDown,
    as_response,
)
from onlinecal.measures import cdl, scdl
from onlinecal.study.panel import Panel
from tests.strategies import gammas

FUNCTIONS = tasks.payoff, tasks.external_regret, tasks.action_swap_regret, tasks.swap_regret
LAWS = {
    "laplace": lambda scale: stats.laplace(scale=scale),
    "gaussian": lambda scale: stats.norm(scale=scale),
    "uniform": lambda scale: stats.uniform(-scale, 2 * scale),
}


def all_responses():
    m, noisy = st.integers(1, 50), (st.floats(1e-3, 2.0), st.sampled_from(sorted(LAWS)))
    fixed = st.sampled_from([Best(), Rounded()])
    return fixed | st.builds(Rounded, m) | st.builds(RoundedDown, m) | st.builds(Noisy, *noisy, m)


def shares(response, v):
    """Belief → probability, given the forecast v: from the descriptions of the responses."""
    if isinstance(response, Best):
        return {v: 1.0}
    m = response.m
    if isinstance(response, RoundedDown):
        return {max(j / m for j in range(m + 1) if j / m <= v): 1.0}
    if isinstance(response, Rounded):
        return {j / m: max(0.0, 1 - m * abs(v - j / m)) for j in range(m + 1)}
    edges = [-math.inf, *((j + 0.5) / m - v for j in range(m)), math.inf]
    return {j / m: share for j, share in enumerate(np.diff(LAWS[response.noise](response.scale).cdf(edges)))}


SPREAD = JointDistribution.from_levels([0.0, 0.32, 0.5, 1.0], [1, 2, 3, 4], [0.0, 0.5, 0.25, 1.0])


@given(gamma=gammas(), response=all_responses().filter(lambda r: r != Rounded()))
@example(gamma=SPREAD, response=RoundedDown(7))
@example(gamma=SPREAD, response=Rounded(7))
@example(gamma=SPREAD, response=Noisy(0.1, "laplace", 7))
@example(gamma=SPREAD, response=Noisy(0.1, "gaussian", 7))
@example(gamma=SPREAD, response=Noisy(0.1, "uniform", 7))
def test_beliefs_are_those_of_the_description(gamma, response):
    """The account of a decision maker is that of its task on them, which test_tasks.py enumerates."""
    mass, ones = {}, {}
    for v, w, q in zip(gamma.predictions.tolist(), gamma.mass.tolist(), gamma.means.tolist(), strict=True):
        for x, share in shares(response, v).items():
            mass[x] = mass.get(x, 0.0) + w * share
            ones[x] = ones.get(x, 0.0) + w * share * q
    beliefs = response.beliefs(gamma)
    assert beliefs.weight == pytest.approx(gamma.weight, rel=1e-9)
    got = dict(zip(beliefs.predictions.tolist(), beliefs.mass.tolist(), strict=True))
    got_ones = beliefs.positives / beliefs.weight
    assert {x for x in mass if mass[x] > 1e-12} <= set(got) <= set(mass)
    for (x, w), s in zip(got.items(), got_ones, strict=True):
        assert w == pytest.approx(mass[x], abs=1e-12)
        assert s == pytest.approx(ones[x], abs=1e-12)
    task = tasks.random_task(gamma.levels, 3)
    account = tuple(function(gamma, DecisionMaker(task, response)) for function in FUNCTIONS)
    assert account == task.account(beliefs)


def test_without_rounding_the_promise_is_broken():
    """The controls: forecasts a hair beside a kink, on the wrong side; only random rounding forgives them."""
    gamma = JointDistribution.from_samples([0.5 - 1e-9, 0.5 + 1e-9], [1, 0])
    task = tasks.v_shaped(0.5)
    promise = 4 * scdl(gamma)
    assert promise < 1e-3
    assert tasks.swap_regret(gamma, DecisionMaker(task, Rounded())) <= promise
    assert tasks.swap_regret(gamma, DecisionMaker(task, Best())) == 1.0
    assert tasks.swap_regret(gamma, DecisionMaker(task, RoundedDown(10))) == 1.0  # 0.4 and the tie 0.5
    assert cdl(gamma) == pytest.approx(1.0, abs=1e-6)


def test_noise_forgives_what_best_response_does_not():
    """Hartline, Wu and Yang's point: noise of scale √distance bounds the swap regret by its order."""
    task = tasks.v_shaped(0.5)
    for distance in (1e-4, 1e-6):
        gamma = JointDistribution.from_samples([0.5 - distance, 0.5 + distance], [1, 0])
        assert tasks.swap_regret(gamma, DecisionMaker(task, Best())) == 1.0
        for noise in LAWS:
            scale = math.sqrt(distance)
            who = DecisionMaker(task, Noisy(scale, noise, m=100_000))
            # The beliefs of the two levels differ by at most distance/scale in total variation; reading adds 1/m.
            assert tasks.swap_regret(gamma, who) <= 4 * scale + 1e-4


# ---------------------------------------------------------------- names, panels, refusals


def test_columns_of_a_panel():
    panel = Panel.of(
        tasks=[
            "umbrella", {"name": "umbrella", "response": {"name": "rounded", "m": 10}},
            {"name": "v_shaped", "t": 0.3, "response": "rounded_down"},
            {"name": "mine", "payoffs": [[1, 0], [0, 1]], "response": {"name": "noisy", "scale": 0.2}},
            DecisionMaker(tasks.quadratic(), Rounded()),
        ]
    )  # fmt: skip
    assert [c.removeprefix("swap_regret") for c in panel.names if c.startswith("swap")] == [
        "[umbrella]", "[umbrella, rounded(m=10)]", "[v_shaped(t=0.3), rounded_down]", "[mine, noisy(scale=0.2)]",
        "[quadratic, rounded]",
    ]  # fmt: skip
    gamma = JointDistribution.from_samples([0.33, 0.33, 0.8], [0, 0, 1])
    row = dict(zip(panel.names, panel.read(gamma), strict=True))
    # 0.33 is read as 0.3 (a tie, broken against the forecaster: carry) or 0.4.
    assert row["payoff[umbrella]"] == row["payoff[umbrella, rounded(m=10)]"] == pytest.approx(3 * 0.7)
    with pytest.raises(InvalidParameter, match="asked for twice"):
        Panel.of(tasks=["umbrella", {"name": "umbrella", "response": "best"}])


@pytest.mark.parametrize(
    ("make", "given"),
    [(Noisy, (0.1, "cauchy")), (DecisionMaker, ("umbrella", Best())), (DecisionMaker, (tasks.umbrella(), "best")),
     (as_response, (Rounded,)), (as_response, ({"m": 3},)),
     *((function, (JointDistribution.from_samples([0.2], [1]), wrong)) for function in FUNCTIONS
       for wrong in (3, None, tasks.umbrella, tasks.QuadraticTask))],
)  # fmt: skip
def test_bad_parameters(make, given):
    with pytest.raises(InvalidParameter, match="expected"):
        make(*given)


def test_names():
    gamma = JointDistribution.from_samples([0.2, 0.2, 0.7], [0, 1, 1])
    assert [as_response(name) for name in RESPONSES] == [response() for response in RESPONSES.values()]
    for function in (as_response, *(partial(function, gamma) for function in FUNCTIONS)):
        with pytest.raises(UnknownName):
            function("umbrela")
    for function in FUNCTIONS:
        assert function(gamma, "umbrella") == function(gamma, tasks.umbrella())
