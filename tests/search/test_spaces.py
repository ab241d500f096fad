"""Families of natures: tables with ranges, and the natures at their points."""

import pytest

from onlinecal.core.errors import OnlinecalError
from onlinecal.natures import Bernoulli, Drift, Mixture, Sidestepping
from onlinecal.search import SPACES
from onlinecal.search.spaces import Space

Q = {"from": 0.2, "to": 0.8}


def test_a_point_is_a_nature():
    space = Space.of({"name": "bernoulli", "q": Q})
    assert space.label == "bernoulli (q)"
    assert [space.nature([u]) for u in (0, 0.5, 1)] == [Bernoulli(0.2), Bernoulli(0.5), Bernoulli(0.8)]
    assert Space.of("bernoulli").nature([]) == Bernoulli()
    many = Space.of({"name": "sidestepping", "cells": {"from": 2, "to": 200, "spacing": "log"}})
    assert [many.nature([u]) for u in (0, 0.5, 1)] == [Sidestepping(2), Sidestepping(20), Sidestepping(200)]


def test_ranges_within_lists_and_other_natures():
    part = {"name": "bernoulli", "q": Q}
    natures = [part, {"name": "drift"}]
    space = Space.of({"name": "mixture", "natures": natures, "weights": [1.0, {"from": 1, "to": 3}]})
    assert space.label == "mixture (natures.q, weights)"
    assert space.table([0.5, 0.5])["weights"] == [1.0, 2.0]
    assert space.nature([1.0, 0.5]) == Mixture((Bernoulli(0.8), Drift()), (1.0, 2.0))


def test_a_parameter_is_played_as_it_is_written():
    space = Space.of({"name": "bernoulli", "q": {"from": 0.0, "to": 1.0}})
    assert space.table([1 / 3])["q"] == 0.333333
    tiny = Space.of({"name": "bernoulli", "q": {"from": 0.1234567, "to": 0.12345678}})
    assert 0.1234567 <= tiny.table([0.9])["q"] <= 0.12345678


@pytest.mark.parametrize("spec", SPACES, ids=lambda spec: spec["name"])
def test_every_family_that_comes_with_the_package(spec):
    space = Space.of(spec)
    assert space.nature([0.3] * len(space.free)) != space.nature([0.7] * len(space.free)) or not space.free


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"name": "bernoulli", "q": {"from": 0.8, "to": 0.2}}, "expected from < to"),
        ({"name": "bernoulli", "q": {"from": 0.0, "to": 1.0, "step": 0.1}}, "has no 'step'"),
        ({"name": "bernoulli", "q": {"from": 0.0, "to": 2.0}}, "q = 2"),
        ({"name": "sidestepping", "cells": {"from": 2.5, "to": 8.0}}, "expected a whole number"),
        ({"q": Q}, "a table with a name"),
        ({"name": "bernouli", "q": Q}, "did you mean 'bernoulli'"),
        (3, "a table with a name"),
    ],
    ids=str,
)
def test_what_is_no_family(spec, said):
    with pytest.raises(OnlinecalError, match=said):
        Space.of(spec)
