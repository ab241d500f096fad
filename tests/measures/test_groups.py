"""Measures of groups: sums in fractions, who is worst, samples, and what is refused."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import onlinecal as oc
from onlinecal.core.errors import InvalidData, InvalidParameter
from onlinecal.decisions.tasks import DecisionTask
from onlinecal.measures import groups as g

P, Y = [0.25] * 4 + [0.75] * 4, [0, 0, 1, 1, 1, 1, 0, 1]
MEMBERS = {"a": [1, 1, 0, 0, 1, 1, 0, 0], "b": [0, 0, 1, 1, 0, 0, 1, 1], "c": [1, 0] * 4}
FIRST, SECOND = (oc.JointDistribution.from_samples(P[k : k + 4], Y[k : k + 4]) for k in (0, 4))
TWO = DecisionTask("two", [[1.0, 0.0], [0.2, 0.9]])


def test_who_is_the_worst():
    family = g.family_of("by hand", MEMBERS, P, Y)
    assert g.multi_ece.worst(family) == (0.25, "b", None)
    assert g.multi_linf.worst(family) == (0.1875, "b", 0.25)
    assert str(g.multi_linf.worst(family)) == "0.1875: group 'b' at the forecast 0.25"
    assert str(g.swap_multi_ece.worst(family)) == "0.25: the worst group of each forecast"
    whole = oc.JointDistribution.from_samples(P, Y)
    assert g.multi_ece.worst({"same": whole, "all": whole}).group == "all"  # the first of several
    assert g.multi_linf.worst(P, Y, groups={"other": [1] * 8, "same": [1] * 8}).group == "all"


def random_log(rng):
    n, k = rng.integers(1, 40), rng.integers(1, 5)
    p, y = rng.choice(rng.random(6), n), rng.integers(0, 2, n)
    return p, y, {f"g{i}": rng.integers(0, 2, n) * rng.integers(0, 2) for i in range(k)}


def test_against_sums_in_fractions(seed):
    rng = np.random.default_rng([seed, 51])
    for _ in range(60):
        p, y, groups = random_log(rng)
        bias, rounds = {}, {}
        for group, inside in {"all": np.ones(len(p), int), **groups}.items():
            for v, outcome, member in zip(p.tolist(), y.tolist(), inside.tolist(), strict=True):
                if member:
                    bias[group, v] = bias.get((group, v), Fraction(0)) + outcome - Fraction(v)
                    rounds[group, v] = rounds.get((group, v), 0) + 1
        names, levels, n = {group for group, _ in bias}, {v for _, v in bias}, len(p)
        size = {group: sum(m for (one, _), m in rounds.items() if one == group) for group in names}
        error = {group: sum(abs(b) for (one, _), b in bias.items() if one == group) for group in names}
        expected = {
            "multi_ece": max(error.values()),
            "swap_multi_ece": sum(max(abs(bias.get((group, v), 0)) for group in names) for v in levels),
            "multi_linf": max(map(abs, bias.values())),
            "multi_l2": max(sum(b * b / rounds[key] for key, b in bias.items() if key[0] == group) for group in names),
            "multiaccuracy": max(abs(sum(b for (one, _), b in bias.items() if one == group)) for group in names),
        }  # fmt: skip
        for name, total in expected.items():
            assert n * g.OF_GROUPS[name].function(p, y, groups=groups) == pytest.approx(
                float(total), abs=1e-12
            ), name
        root = max(float(error[group]) / size[group] ** 0.5 for group in names)
        assert n * g.multi_ece(p, y, groups=groups, per="root") == pytest.approx(root, abs=1e-12)
        rate = max(error[group] / size[group] for group in names)
        assert g.multi_ece(p, y, groups=groups, per="round") == pytest.approx(float(rate), abs=1e-12)
        family = g.family_of("of Γ", groups, p, y)
        for name, options, of in (("group_swap_regret", {"task": TWO}, lambda each: TWO.account(each).swap),
                                  ("group_cdl", {}, oc.measures.cdl)):  # fmt: skip
            largest = max(each.weight * of(each) for each in family.values())
            assert n * g.OF_GROUPS[name].function(family, **options) == pytest.approx(largest, abs=1e-12)


def test_a_mapping_of_gammas_and_weights():
    whole, inside = oc.JointDistribution.from_samples(P, Y), oc.JointDistribution.from_samples(P[:2], Y[:2])
    assert oc.measures.multi_ece({"odd": inside, "all": whole}) == oc.measures.multi_ece(
        P, Y, groups={"odd": [1, 1] + [0] * 6}
    )
    weights = [1, 2, 3, 4, 5, 6, 7, 8]
    many = [np.repeat(values, weights) for values in (P, Y, MEMBERS["c"])]
    assert oc.measures.swap_multi_ece(P, Y, groups={"c": MEMBERS["c"]}, weights=weights) == pytest.approx(
        oc.measures.swap_multi_ece(many[0], many[1], groups={"c": many[2]})
    )
    assert oc.measures.multi_ece(y_true=Y, y_prob=P, groups=MEMBERS) == oc.measures.multi_ece(
        P, Y, groups=MEMBERS
    )


def test_samples_are_read_once_for_all_groups():
    """Labels that a group lacks, rows that are dropped, and a group whose rows all have weight 0."""
    plain = g.multi_ece.worst(P, Y, groups=MEMBERS, per="round")
    words = ["won" if y else "lost" for y in Y]
    for more in ({}, {"negative": "lost"}):
        given = {"groups": MEMBERS | {"lost": [0, 0, 0, 0, 0, 0, 1, 0]}, "positive": "won", **more}
        assert g.multi_ece.worst(P, words, **given, per="round") == (0.75, "lost", None)
    longer = {name: [*inside, 1, 1] for name, inside in MEMBERS.items()}
    dropped = g.multi_ece.worst(
        [*P, 0.9, 0.9], [*words, "void", "void"], groups=longer, positive="won", drop="void", per="round"
    )
    assert dropped == plain
    weights = [0, 0, 1, 1, 0, 0, 1, 1]
    assert list(g.family_of("of weights", MEMBERS | {"none": [0] * 8}, P, Y, weights)) == ["all", "b", "c"]
    with pytest.raises(InvalidData, match="weights sum to 0"):
        g.multi_ece(P, Y, groups=MEMBERS, weights=[0] * 8)


def frame(columns, first=0):
    return pd.DataFrame(columns, index=range(first, first + 8))


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda: g.multi_ece(P, Y, groups={"odd": ["1"] * 8}), InvalidData, r"groups\['odd'\]\[0\] = '1'"),
        (lambda: g.multi_ece(P, Y, groups={"odd": [None] * 8}), InvalidData, "expected 8 values of 0 or 1"),
        (lambda: g.multi_ece(P, Y), InvalidParameter, "groups = None; expected a mapping"),
        (lambda: g.multi_ece(P, Y, groups=frame(MEMBERS)), InvalidParameter, "expected a mapping name"),
        (lambda: g.multi_ece(frame({"p": P})["p"], Y, groups={"c": frame(MEMBERS, 1)["c"]}), InvalidData, "indices"),
        (lambda: g.multi_ece(P, Y, groups=MEMBERS, week=1), InvalidParameter, "multi_ece has no parameter 'week'"),
        (lambda: g.multi_ece({"odd": oc.JointDistribution.from_samples(P, Y)}), InvalidParameter, "'all', which has"),
        (lambda: g.multi_ece(P, Y, groups={"odd": [1, 0]}), InvalidData, r"groups\['odd'\] is .*; expected 8 values"),
        (lambda: g.multi_ece(P, Y, groups={"odd": [2] * 8}), InvalidData, "expected 8 values of 0 or 1"),
        (lambda: g.multi_ece(P, Y, groups={"all": [1] * 8}), InvalidParameter, "without 'all', which"),
        (lambda: g.multi_ece(P, Y, groups=MEMBERS, per="week"), InvalidParameter, "per = 'week'"),
        *((lambda key=key, value=value: g.multi_ece({"all": FIRST}, **{key: value}), InvalidParameter,
           f"multi_ece: {key} without p; expected p, or")
          for key, value in (("weights", [1] * 4), ("y", Y), ("positive", 1), ("drop", "void"))),
        (lambda: g.multi_ece(g.family_of("a", MEMBERS, P, Y), weights=[1] * 8), InvalidParameter, "weights without p"),
        *((lambda pair=pair: g.swap_multi_ece(dict(zip(("all", "odd"), pair, strict=True))), InvalidData, "'all' lacks")
          for pair in ((FIRST, SECOND), (SECOND, FIRST))),
    ],
)  # fmt: skip
def test_refused(call, error, said):
    with pytest.raises(error, match=said):
        call()
