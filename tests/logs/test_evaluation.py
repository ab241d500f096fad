"""`evaluate`: one table of all measures, what noise alone would show, and draws that are as stated."""

import math
import threading
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings

import onlinecal as oc
from onlinecal.core.errors import UnknownName
from onlinecal.core.joint import JointDistribution
from onlinecal.logs import evaluated
from onlinecal.logs.evaluation import evaluate
from onlinecal.measures import MEASURES, Bracket
from tests.strategies import gammas, many_levels


@settings(max_examples=8)
@given(gammas())
def test_every_row_is_the_measure(gamma):
    result = evaluate(gamma)
    assert len(result.rows) == len(MEASURES)
    table = result.table()
    for row, record in zip(result.rows, MEASURES.values(), strict=True):
        value = record.function(gamma, **record.example)
        assert row.value == result[row.name] == value
        line = table.loc[row.name]
        low, high = (value.lower, value.upper) if isinstance(value, Bracket) else (value, value)
        assert (line["lower"], line["upper"]) == (low, high)
        assert line["value"] == low if low == high else math.isnan(line["value"])
        assert line["symbol"] == record.symbol
        assert record.upper is None or record.upper(gamma) == high
    assert not {"interval_lower", "if_calibrated"} & set(table)


def test_measures_can_be_chosen_and_notes_fit_a_terminal():
    mine = lambda gamma: gamma.base_rate  # noqa: E731
    mine.__name__ = "base_rate"
    specs = ["ece", {"name": "binned_ece", "bins": 3}, oc.measures.cdl, mine]
    result = evaluate([0.1, 0.9], [0, 1], measures=specs)
    assert [row.name for row in result.rows] == ["ece", "binned_ece(bins=3)", "cdl", "base_rate"]
    assert result["base_rate"] == 0.5
    with pytest.raises(UnknownName, match="did you mean 'ece'"):
        result["eec"]
    result = evaluate([0.2, 0.2, 0.7, 0.7, 0.9], [0, 1, 1, 0, 1], bootstrap=20, reference=20)
    below = str(result).splitlines()[2 + len(result.rows) :]
    assert len(below) > len(result.notes) > 0  # some are broken
    assert max(map(len, below)) <= 80
    for line, after in pairwise(below):
        assert not after.startswith("  ") or len(f"{line} {after.split()[0]}") > 80
    assert " ".join(" ".join(below).split()) == " ".join(" ".join(result.notes).split())


def test_p_values_for_large_n_are_noted_or_missing_for_few_outcomes_and_for_clusters():
    """Of measures with such a law; clusters have none of any number."""
    few = "no p for large n for cutoff_ce: few outcomes of a kind are expected"
    for n, clusters, notes in (
        (40, None, "p for large n: cutoff_ce 1"),
        (20, None, few),
        (40, np.arange(40) // 2, ""),
    ):
        result = evaluate(
            [0.5] * n, [0, 1] * (n // 2), clusters=clusters, measures=["ece", "cutoff_ce"], reference=9
        )
        assert "\n".join(result.notes) == notes


def test_no_limit_makes_it_fail():
    gamma = many_levels(0, 200_001)
    value = evaluate(gamma, measures=["interval_ce", {"name": "interval_ce", "width": "max"}]).rows
    assert all(isinstance(row.value, Bracket) for row in value)


def test_draws_depend_on_the_seed_alone(monkeypatch):
    """Not on what else is measured, nor on threads. Own functions stay with the thread that asks."""
    p, y = [0.1, 0.4, 0.4, 0.8] * 40, [0, 1, 0, 1] * 40
    many = evaluate(p, y, bootstrap=20, reference=20, seed=3).table()
    few = evaluate(p, y, measures=["cdl", "ece"], bootstrap=20, reference=20, seed=3).table()
    for column in ("interval_lower", "interval_upper", "if_calibrated", "p_value"):
        assert (few[column] == many.loc[few.index, column]).all()
    other = evaluate(p, y, measures=["ece"], reference=20, seed=4).table()
    assert other["if_calibrated"]["ece"] != many["if_calibrated"]["ece"]
    caller, seen, tables = threading.get_ident(), set(), set()

    def own(gamma):
        seen.add(threading.get_ident())
        return float(gamma.residuals.sum())

    for threads in (1, 3):
        monkeypatch.setattr(evaluated, "cores", lambda threads=threads: threads)
        tables.add(str(evaluate(p, y, measures=[own, "cdl", "smooth_ece"], reference=40)))
    assert (len(tables), seen) == (1, {caller})

    def fails(gamma):
        if gamma.base_rate != 0.5:
            raise ZeroDivisionError
        return 0.0

    with pytest.raises(Exception, match=r"ZeroDivisionError|division"):
        evaluate([0.5] * 40, [0, 1] * 20, measures=[fails, "cdl"], reference=200)


def test_a_value_that_every_draw_has_is_no_evidence():
    """Forecasts of 0 and 1 have one outcome in all draws."""
    for row in evaluate([0, 1, 1], [0, 1, 1], measures=["ece", "brier", "cdl"], reference=19).rows:
        assert row.p_value == 1.0


def test_what_is_infinite_in_a_sample_lasts_or_says_nothing():
    row = evaluate([0.0, 0.5, 0.5], [1, 1, 0], measures=["log_loss"], bootstrap=20, reference=5).rows[0]
    assert row.interval == (math.inf, math.inf)
    assert row.p_value < 0.2
    finite = evaluate([0.5, 0.5], [0, 1], measures=["nce"], bootstrap=50).rows[0]
    # Of all base rates that two samples leave open, 1/2 has the least value, and 0 has none.
    assert (finite.value, finite.interval) == (1.0, pytest.approx((1.0, math.inf)))
    # Normalised by the entropy of outcomes that are all equal it is infinite; of one more outcome it is not.
    p = np.full(20, 0.1)
    row = evaluate(p, np.zeros(20), measures=["nce"], bootstrap=50).rows[0]
    assert (row.value, row.interval) == (math.inf, (0.0, math.inf))
    for sign in (-1.0, 1.0):
        odds = lambda gamma, sign=sign: sign * math.inf if gamma.base_rate == 0.0 else 1.0  # noqa: E731
        both = evaluate(p, np.zeros(20), measures=[odds], bootstrap=20).rows[0].interval
        assert both == (-math.inf, math.inf)


def test_a_bracket_has_the_interval_of_all_its_values():
    gamma = many_levels(1, 300, 0.2)
    for row in evaluate(
        gamma, measures=["distance_upper", "interval_ce", "distance_lower"], bootstrap=30
    ).rows:
        assert row.interval[0] <= row.ends[0] <= row.ends[1] <= row.interval[1]
    assert row.ends[0] < row.ends[1]


def test_a_large_number_of_rows_is_no_reason_to_stop():
    """smooth_ece looks at scales that shrink with n, down to the least at which it is found."""
    n = 10**10
    gamma = JointDistribution.from_counts([0.2, 0.6], [n, n], [0.2001 * n, 0.6 * n])
    (row,) = evaluate(gamma, measures=["smooth_ece"], bootstrap=20, reference=20).rows
    assert row.interval[0] <= row.value <= row.interval[1] < 0.01
