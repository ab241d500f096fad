"""Many Γ at once: their level sets, and the measures that have a form for them, to the last bit."""

import inspect
import itertools

import numpy as np
import pytest

from onlinecal.core.joint import JointDistribution, encode
from onlinecal.core.levels import LevelSets
from onlinecal.engine import history
from onlinecal.engine.history import Counted, Each
from onlinecal.measures import MEASURES

#: values of options; those of a name that is not here are the default alone
OPTIONS = {
    "order": (1.0, 2.0, np.inf), "bins": (1, 7, 10, 300), "strategy": ("width", "quantile"),
    "metric": ("identity", "logit"),
}  # fmt: skip
PARTS = "predictions", "counts", "positives", "means"


def grids(rng):
    """Level sets of counts on grids from coarse to fine: NumPy adds few and many in different orders."""
    for m in (1, 2, 6, 7, 8, 9, 20, 127, 128, 129, 700):
        counts = rng.poisson(rng.exponential(2.0, (40, 1)), (40, m + 1))
        counts[:, rng.integers(m + 1)] += 1  # each has a round
        share = rng.choice([0.0, 0.3, 0.9, 1.0], (40, 1))
        yield np.arange(m + 1) / m, counts, rng.binomial(counts, share)


def keys(rng):
    """Sorted keys of forecasts without a grid: all distinct, few different ones, and 0 and 1 among them."""
    for rounds in (1, 2, 9, 100, 400):
        p = rng.random((30, rounds)).round(rng.integers(1, 17))
        p[rng.random(p.shape) < 0.1] = rng.integers(2)
        yield np.sort(encode(p, (rng.random(p.shape) < 0.4).astype(float)), axis=1)


def many(rng):
    yield from (LevelSets.of_counts(*each) for each in grids(rng))
    yield from (LevelSets.of_keys(each) for each in keys(rng))


def forms():
    """Each measure with a form for many Γ, with each combination of its options."""
    for name, record in MEASURES.items():
        if record.many is not None:
            known = inspect.signature(record.many).parameters
            assert list(known)[1:] == list(record.options)
            each = [OPTIONS.get(option, (default,)) for option, default in record.options.items()]
            for values in itertools.product(*each):
                yield pytest.param(
                    record, dict(zip(record.options, values, strict=True)), id=f"{name} {values}"
                )


def bits(values):
    return np.array(values, np.float64).tobytes()


@pytest.mark.parametrize(("record", "options"), list(forms()))
def test_values_of_many_are_those_of_each(record, options, seed):
    rng = np.random.default_rng([seed, 1])
    for sets in many(rng):
        values = record.many(sets, **options)
        if values is None:  # no form with these options, but there is one with the defaults
            assert options != dict(record.options)
            return
        assert bits(values) == bits([record.function(gamma, **options) for gamma in sets])


def check(sets, alone):
    """Each Γ, and what is known of all of them, is the same."""
    assert len(sets) == len(alone)
    for found, gamma in zip(sets, alone, strict=True):
        assert all(bits(getattr(found, part)) == bits(getattr(gamma, part)) for part in PARTS)
        assert not any(getattr(found, part).flags.writeable for part in PARTS)
    for part in ("mass", "residuals"):
        assert bits(getattr(sets, part)) == bits(np.concatenate([getattr(gamma, part) for gamma in alone]))
    assert bits(sets.weights) == bits([gamma.weight for gamma in alone])
    assert bits(sets.sums(sets.residuals)) == bits([gamma.residuals.sum() for gamma in alone])


@pytest.mark.parametrize("at_once", [1, 30, 2**18])
def test_runs_are_made_in_parts_of_any_size(at_once, monkeypatch, seed):
    rng = np.random.default_rng([seed, 3])
    monkeypatch.setattr(history, "AT_ONCE", at_once)
    for grid, counts, positives in grids(rng):
        alone = [JointDistribution.from_counts(grid, n, s) for n, s in zip(counts, positives, strict=True)]
        check(LevelSets.of_counts(grid, counts, positives), alone)
        check(LevelSets.of(alone), alone)
        check(LevelSets.of(alone), [g for _, sets in counted(grid, counts, positives).levels() for g in sets])
    for each in keys(rng):
        check(LevelSets.of_keys(each), [JointDistribution.from_sorted_keys(row) for row in each])
        kept = Each(*each.shape, False)
        kept.keys, kept.filled[:] = rng.permuted(each, axis=1), each.shape[1]
        check(LevelSets.of_keys(each), [gamma for _, sets in kept.levels() for gamma in sets])


def counted(grid, counts, positives):
    """A history on a grid with these counts."""
    kept = Counted(len(counts), grid, False)
    kept.of(0)[:, 0] = np.stack([counts - positives, positives], axis=-1)
    return kept


def test_a_grid_in_another_order_gives_the_same():
    grid, counts = np.array([0.5, 0.0, 1.0, 0.5]), np.array([[1, 2, 0, 3], [0, 1, 1, 1]])
    found = [gamma for _, sets in counted(grid, counts, counts // 2).levels() for gamma in sets]
    check(LevelSets.of(found), [JointDistribution.from_counts(grid, n, n // 2) for n in counts])
