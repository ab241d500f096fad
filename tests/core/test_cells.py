"""Code that puts a value into a cell compares it with the cell's edges, as a product may round over one."""

import numpy as np

from onlinecal.core.arrays import cell, cells

#: numbers of cells, and edges of each that a product misses or not
EDGES = [(m, np.arange(m + 1)) for m in range(1, 200)] + [
    (m, np.linspace(0, m, 500).astype(np.int64)) for m in (10**6, 3**31, 2**50 - 1, 2**50)
]


def test_a_value_falls_into_the_cell_whose_edges_hold_it():
    missed = 0
    for m, edges in EDGES:
        for v in (edges / m, np.nextafter(edges / m, 0.0), np.nextafter(edges / m, 2.0)):
            v = v[v <= 1.0]
            j = cells(v, m)
            assert ((j / m <= v) & ((v < (j + 1) / m) | (j == m))).all()
            assert [cell(x, m) for x in v[:50]] == j[:50].tolist()
            missed += int((np.floor(v * m) != j).sum())
    assert missed > 2000  # the control
