"""`evaluate`: one table of all measures, intervals by resampling, and what noise alone would show."""

from __future__ import annotations

import math
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from scipy.stats import binom

import onlinecal as oc
from onlinecal.core.errors import UnknownName
from onlinecal.core.joint import JointDistribution
from onlinecal.forecasts.evaluation import evaluate
from onlinecal.forecasts.resampling import Resample
from onlinecal.measures import MEASURES, Bracket
from tests.gammas_metric import many_levels
from tests.strategies import gammas

FEW = ["ece", "smooth_ce", "cdl", "brier"]


@settings(max_examples=15)
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
    assert "interval_lower" not in table
    assert "if_calibrated" not in table


def test_no_limit_makes_it_fail():
    gamma = many_levels(0, 200_001)
    value = evaluate(gamma, measures=["interval_ce", {"name": "interval_ce", "width": "max"}]).rows
    assert all(isinstance(row.value, Bracket) for row in value)


def test_measures_can_be_chosen():
    mine = lambda gamma: gamma.base_rate  # noqa: E731
    mine.__name__ = "base_rate"
    specs = ["ece", {"name": "binned_ece", "bins": 3}, oc.measures.cdl, mine]
    result = evaluate([0.1, 0.9], [0, 1], measures=specs)
    assert [row.name for row in result.rows] == ["ece", "binned_ece(bins=3)", "cdl", "base_rate"]
    assert result["base_rate"] == 0.5
    with pytest.raises(UnknownName, match="did you mean 'ece'"):
        result["eec"]


def test_draws_depend_on_the_seed_alone():
    p, y = [0.1, 0.4, 0.4, 0.8] * 40, [0, 1, 0, 1] * 40
    many = evaluate(p, y, bootstrap=20, reference=20, seed=3).table()
    few = evaluate(p, y, measures=["cdl", "ece"], bootstrap=20, reference=20, seed=3).table()
    for column in ("interval_lower", "interval_upper", "if_calibrated", "p_value"):
        assert (few[column] == many.loc[few.index, column]).all()
    alone = evaluate(p, y, measures=["cdl"], reference=20, seed=3).table()
    assert alone["if_calibrated"]["cdl"] == many["if_calibrated"]["cdl"]
    other = evaluate(p, y, measures=["ece"], reference=20, seed=4).table()
    assert other["if_calibrated"]["ece"] != many["if_calibrated"]["ece"]


@pytest.mark.parametrize("weighted", [False, True])
def test_resampling_draws_samples_with_replacement(weighted, seed):
    """Means over 4000 resamples, within 6 standard errors of what they must be; each misses with 2e-9 or so."""
    p = np.array([0.2, 0.2, 0.2, 0.7, 0.7, 0.9])
    y = np.array([0, 1, 0, 1, 1, 0])
    w = np.array([1.0, 2.0, 0.5, 1.0, 0.0, 3.0]) if weighted else np.ones(6)
    gamma = JointDistribution.from_samples(p, y, weights=w if weighted else None)
    resample = Resample(gamma, (p, y.astype(float), w) if weighted else None)
    generator = np.random.default_rng([seed, 17])
    n = resample.total
    kept = w > 0
    assert n == kept.sum()
    draws = np.empty((4000, 4))
    for row in draws:
        new = resample.bootstrap(generator)
        at = {v: (c, s) for v, c, s in zip(new.predictions, new.counts, new.positives, strict=True)}
        row[:] = *at.get(0.2, (0, 0)), *at.get(0.9, (0, 0))
    for column, chosen in enumerate([p == 0.2, (p == 0.2) & (y == 1), p == 0.9, (p == 0.9) & (y == 1)]):
        each = np.where(chosen, w, 0.0)[kept]
        error = math.sqrt(n * each.var() / len(draws))
        assert abs(draws[:, column].mean() - each.sum()) <= 6 * error
        # The variance as well, within 20 %: a factor of two would show.
        assert draws[:, column].var() == pytest.approx(n * each.var(), rel=0.2)


@given(gammas(max_levels=16))
def test_an_upper_end_alone_is_that_of_the_bracket(gamma):
    for record in MEASURES.values():
        if record.upper is not None:
            assert record.upper(gamma) == record.function(gamma).upper


def test_the_p_value_of_calibrated_forecasts_is_uniform(seed, full):
    """p-values of exact Monte Carlo tests with 19 draws: at most 0.05 with probability 0.05.

    More than these have probability below 1e-10 (binomial): 53 of 400, 99 of 1000.
    """
    generator = np.random.default_rng([seed, 19])
    trials, hits = 1000 if full else 400, 0
    for i in range(trials):
        p = generator.integers(0, 11, 100) / 10
        y = generator.random(100) < p
        hits += evaluate(p, y, measures=["smooth_ce"], reference=19, seed=i).rows[0].p_value <= 0.05
    assert hits <= binom.isf(1e-10, trials, 0.05)


def test_the_p_value_sees_miscalibration(seed):
    generator = np.random.default_rng([seed, 20])
    p = generator.integers(0, 11, 4000) / 10
    y = generator.random(4000) < 0.1 + 0.8 * p
    for row in evaluate(p, y, measures=FEW[:3], reference=99).rows:
        assert row.p_value == 0.01
        assert row.if_calibrated < row.value


def bias(gamma):
    """Signed: negative where outcomes fall short."""
    return float(gamma.residuals.sum())


@pytest.mark.parametrize("shift", [-0.2, 0.0, 0.2])
def test_a_signed_measure_has_the_interval_of_its_mirror(shift, seed):
    """Of the bias of flipped samples, both ends change sign; nothing cuts them at 0."""
    generator = np.random.default_rng([seed, 22])
    p = generator.integers(2, 7, 1600) / 8
    y = generator.random(1600) < p + shift
    row = evaluate(p, y, measures=[bias], bootstrap=100).rows[0]
    low, high = row.interval
    assert low < row.value < high
    # Hoeffding: the mean of 1600 residuals, and that of a resample, is off by 0.1 with probability below 2e-14.
    if shift:
        assert high < 0.0 if shift < 0.0 else low > 0.0
    mirror = evaluate(p, y, measures=[lambda gamma: -bias(gamma)], bootstrap=100).rows[0]
    assert mirror.interval == pytest.approx((-high, -low), abs=1e-12)


def test_an_infinite_score_is_infinite():
    row = evaluate([0.0, 0.5, 0.5], [1, 1, 0], measures=["log_loss"], bootstrap=20, reference=5).rows[0]
    assert row.interval == (math.inf, math.inf)
    assert row.p_value < 0.2
    finite = evaluate([0.5, 0.5], [0, 1], measures=["nce"], bootstrap=50).rows[0]
    assert finite.value == 1.0
    # Of all base rates that two samples leave open, 1/2 has the least value, and 0 has none.
    assert finite.interval == pytest.approx((1.0, math.inf))


def test_an_infinite_value_says_nothing_of_the_population_unless_it_lasts():
    """Normalised by the entropy of outcomes that are all equal, a score is infinite; of one more outcome it is not."""
    p = np.full(20, 0.1)
    row = evaluate(p, np.zeros(20), measures=["nce"], bootstrap=50).rows[0]
    assert row.value == math.inf
    assert row.interval == (0.0, math.inf)
    more = JointDistribution.from_samples([*p, 0.1], [0] * 20 + [1])
    assert row.interval[0] <= MEASURES["nce"].function(more) < math.inf
    for sign in (-1.0, 1.0):

        def odds(gamma, sign=sign):
            return sign * math.inf if gamma.base_rate == 0.0 else (1.0 - gamma.base_rate) / gamma.base_rate

        assert evaluate(p, np.zeros(20), measures=[odds], bootstrap=20).rows[0].interval == (
            -math.inf,
            math.inf,
        )


def test_a_bracket_has_the_interval_of_all_its_values():
    gamma = many_levels(1, 300, 0.2)
    rows = evaluate(gamma, measures=["distance_upper", "smooth_ce"], bootstrap=30, reference=5).rows
    low, high = rows[0].interval
    assert low <= rows[0].value.lower <= rows[0].value.upper <= high


def test_draws_do_not_depend_on_how_many_threads_look_at_them(monkeypatch):
    """Own functions stay with the thread that asks; the catalogue's measures go to others."""
    from onlinecal.forecasts import evaluation

    rng = np.random.default_rng(6)
    p = np.round(rng.random(300), 2)
    y = rng.random(300) < p
    caller, seen = threading.get_ident(), set()

    def own(gamma):
        seen.add(threading.get_ident())
        return float(gamma.residuals.sum())

    tables = []
    for threads in (1, 3):
        monkeypatch.setattr(evaluation, "cores", lambda threads=threads: threads)
        measures = [own, "cdl", {"name": "random_interval_ce", "epsilon": 0.2}, "smooth_ece"]
        tables.append(str(oc.evaluate(p, y, measures=measures, reference=40)))
    assert tables[0] == tables[1]
    assert seen == {caller}


def test_an_error_in_a_draw_ends_the_others():
    def fails(gamma):
        if gamma.base_rate != 0.5:
            raise ZeroDivisionError
        return 0.0

    with pytest.raises(Exception, match=r"ZeroDivisionError|division"):
        oc.evaluate([0.5] * 40, [0, 1] * 20, measures=[fails, "cdl"], reference=200)


def test_notes_below_the_table_fit_a_terminal():
    result = evaluate([0.2, 0.2, 0.7, 0.7, 0.9], [0, 1, 1, 0, 1], bootstrap=20, reference=20)
    below = str(result).splitlines()[2 + len(result.rows) :]
    assert len(below) > len(result.notes) > 0  # some are broken
    assert max(map(len, below)) <= 80
    assert " ".join(" ".join(below).split()) == " ".join(" ".join(result.notes).split())
