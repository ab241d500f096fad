"""Runs that are read together: totals and kept Γ are those of each run alone. What is read at all."""

import itertools

import numpy as np
import pytest

import onlinecal as oc
from onlinecal.core.errors import InvalidData
from onlinecal.engine import history
from onlinecal.study import gammas
from onlinecal.study.panel import Panel

F, N = oc.forecasters, oc.natures
TWO = N.Streams((N.Drift(), N.Bernoulli(0.2)))
#: several measures with a form for many Γ; a task; and measures without one
PANELS = [["ece", "brier", "smooth_ce", "cdl"], ["log_loss", "step_ce", {"name": "ece", "order": 2.0}, "nce"]]


@pytest.mark.parametrize("measures", PANELS)
@pytest.mark.parametrize("forecaster", [F.ForecastHedging(), F.EmpiricalMean()], ids=str)
def test_totals_are_those_of_each_gamma(forecaster, measures, seed):
    """In a study that reads all runs together, and of several streams of which some have no round yet."""
    tasks = ["umbrella", "quadratic", {"name": "umbrella", "response": {"name": "rounded", "m": 4}}]
    options = {"horizon": 60, "runs": 7, "seed": seed, "measures": measures, "tasks": tasks}
    played = oc.play(forecaster, TWO, **options).cells[0]
    panel = Panel.of(measures, tasks)
    assert any(asked.many is not None for asked in panel.measures)

    def alone(gamma):
        return [gamma.weight * value for asked in panel.asked for value in asked.read(gamma)]

    for i, run in itertools.product(range(len(played.rounds)), range(7)):
        each = [played.gamma(i, run, stream) for stream in (None, 0, 1)]
        empty = [0.0] * len(panel.columns)
        expected = [total for gamma in each for total in (empty if gamma is None else alone(gamma))]
        found = [totals[i, run] for totals in played.totals.values()]
        assert np.array(found).tobytes() == np.array(expected, float)[: len(found)].tobytes()


@pytest.mark.parametrize("forecaster", [F.ForecastHedging(), F.EmpiricalMean()], ids=str)
@pytest.mark.parametrize(("at_once", "held", "keep"), [(40, 1, "all"), (500, 300, 30), (1, 2**22, 30)])
def test_what_is_kept_is_the_same_in_parts_of_any_size(forecaster, at_once, held, keep, monkeypatch, seed):
    """Parts of the runs get smaller as a history grows; bytes are compressed as they come, or in the end."""
    options = {"horizon": 300, "runs": 4, "measures": ["ece"], "keep": keep, "seed": seed}
    whole = oc.play(forecaster, TWO, **options).cells[0]
    monkeypatch.setattr(history, "AT_ONCE", at_once)
    monkeypatch.setattr(gammas, "HELD", held)
    parts = oc.play(forecaster, TWO, **options).cells[0]
    assert parts == whole
    for i, run, stream in itertools.product(range(len(whole.rounds)), range(4), (None, 0, 1)):
        one, other = whole.gamma(i, run, stream), parts.gamma(i, run, stream)
        assert (one is None) == (other is None)
        for part in ("predictions", "counts", "positives") if one else ():
            assert getattr(one, part).tobytes() == getattr(other, part).tobytes()


def test_a_list_of_one_horizon_is_read_at_its_end_alone():
    seen = []

    def levels(gamma):
        seen.append(gamma.levels)
        return 0.0

    options = {"runs": 5, "measures": ["ece", levels]}
    on_the_way = oc.play("forecast_hedging", "drift", horizon=100, **options).cells[0]
    assert len(seen) == 1 + 5 * len(on_the_way.rounds)  # and once on a sample, before the game
    seen.clear()
    end = oc.play("forecast_hedging", "drift", horizon=[100], **options).cells[0]
    assert len(seen) == 1 + 5
    assert end.rounds.tolist() == [100]
    assert len(on_the_way.rounds) > 1
    for name, totals in end.totals.items():
        assert totals[-1].tobytes() == on_the_way.totals[name][-1].tobytes()


def test_an_error_names_the_run_whatever_is_read_together():
    """NaN of a form for many Γ cannot be; of another measure the message is that of the run."""

    def strange(gamma):
        return float("nan") if gamma.weight == 100.0 and strange.left.pop() else 0.0

    strange.left = [False, True, False, False]
    with pytest.raises(
        InvalidData, match=r"strange is NaN .*; after round 100 of 'constant' against 'drift', run 2$"
    ):
        oc.play("constant", "drift", horizon=[100], runs=4, measures=["ece", strange])
