"""Memory of the counts of many decision makers."""

import pytest

import onlinecal as oc
from onlinecal.core.errors import InvalidParameter
from onlinecal.forecasters import ForecastHedging
from onlinecal.natures import Drift


def test_many_decision_makers_on_a_large_grid_get_smaller_batches_or_a_message(batches, monkeypatch):
    """Every stretch has counts of its own: 16 bytes a point, and as much for what was before it."""
    monkeypatch.setattr("onlinecal.study.run.ROOM", 2**26)
    monkeypatch.setattr("onlinecal.engine.memory.free_memory", lambda: 2.0**29)
    who = [{"task": "umbrella", "join": 0.5 + i, "label": str(i)} for i in range(300)]

    def play(m):
        return oc.play(
            ForecastHedging(m), Drift(), horizon=400, runs=7, seed=1, measures="ece", decision_makers=who
        )

    with pytest.raises(InvalidParameter, match=r"1 runs with 1204 tables of 100001 counts.* expected fewer"):
        play(10**5)
    batches.clear()
    small = play(1000)
    assert max(size for size, _ in batches) * 32 * 301 * 1000 <= 2**26
    monkeypatch.undo()
    assert small.cells == play(1000).cells
