"""Decision makers that join and leave: the group, and tenures in which nothing can be decided."""

import numpy as np
import pytest

import onlinecal as oc
from onlinecal.core.errors import InvalidParameter
from onlinecal.decision_makers.tenures import People, Tenure


@pytest.mark.parametrize("delays", [0, 5])
def test_a_stay_of_no_time_and_a_join_after_all_have_left_are_no_error(delays, seed):
    """Random times may be so: a geometric stay is 0 with probability 1/2 here, and 40 joins at once go on after 20."""
    group = {
        "task": "umbrella", "count": 40, "leave": 20.0, "arrivals": {"name": "poisson", "rate": 1},
        "stay": {"name": "geometric", "mean": 1},
    }  # fmt: skip
    tenures = People.of(group, seed).tenures
    empty = np.array([t.leave == t.join for t in tenures])
    assert empty.any()  # all 40 have a stay of 1 or more and join before 20 with a probability below 1e-9
    assert all(t.join <= t.leave <= max(t.join, 20.0) for t in tenures)
    for forecaster in (oc.forecasters.ForecastHedging(), oc.forecasters.EmpiricalMean()):
        options = {"horizon": 100, "runs": 2, "seed": seed, "delays": delays}
        people = oc.play(forecaster, "drift", decision_makers=group, **options).cells[0].people
        for entry in people.entries.values():
            assert not entry[:, empty].any()
        assert not people.cdl[empty].any()


def test_nobody_leaves_before_joining():
    with pytest.raises(
        InvalidParameter, match="'umbrella' leaves at 3 and joins at 5; expected leave at join"
    ):
        Tenure(oc.tasks.umbrella(), 5, 3)
    with pytest.raises(InvalidParameter, match="join from 5 on and leave at 3; expected to join before"):
        People.of({"task": "umbrella", "join": 5, "leave": 3}, 0)
