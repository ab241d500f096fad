"""Worlds with groups: members are counted, and are 0 or 1."""

import numpy as np
import pytest

import onlinecal as oc
from onlinecal.core.errors import InvalidData


class Desk:
    """Each third question is of the group; the outcomes alternate."""

    reveals, groups, member = frozenset({"big"}), ("big",), 1

    def run(self, env, market):
        for number in range(1, 1000):
            question = market.ask(big=self.member if number % 3 == 0 else 0)
            yield env.timeout(1.0)
            market.resolve(question, number % 2)


def played(member):
    desk = type("Desk", (Desk,), {"member": member})
    return oc.play("group_hedging", desk, horizon=60, runs=2, measures=["ece", "multi_ece"], progress=False)


@pytest.mark.parametrize("member", [1, True, np.True_, np.float32(1)])
def test_groups_of_a_world(member):
    study = played(member)
    assert study.curve("rounds @ big").totals[-1].tolist() == [20, 20]
    gamma = study.gamma(stream="big")
    assert (gamma.weight, gamma.positives.sum()) == (20, 10)


def test_other_members_of_a_world_are_refused():
    with pytest.raises(InvalidData, match=r"gave big = 2 with question 3; expected 0 or 1"):
        played(2)
