"""Arrays that are handed out row by row: fresh, and in blocks that fit the cache."""

import pickle

import numpy as np

import onlinecal.core.arrays
from onlinecal.core.arrays import Rows, rows_for


def test_rows_are_fresh():
    rows = Rows((2,), np.int64)
    count = 3 * rows_for(16)
    kept = [rows.keep([i, -i]) for i in range(count)]
    own = [rows.fresh() for _ in range(count)]
    for i, array in enumerate(own):
        array[:] = i + count
    assert all(array.tolist() == [i, -i] for i, array in enumerate(kept))
    assert all(array.tolist() == [i + count] * 2 for i, array in enumerate(own))
    again = pickle.loads(pickle.dumps(rows))
    again.fresh()[:] = 0
    assert kept[-1].tolist() == [count - 1, 1 - count]


def test_blocks_fit_the_cache():
    assert rows_for(1) == 1024
    assert rows_for(onlinecal.core.arrays.BYTES // 100) == 100
    assert rows_for(10**9) == 16
