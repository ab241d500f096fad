"""Times of explaining and of verifying beside the measure itself, after compilation.

Run: pytest tests/benchmarks/test_witnesses.py --benchmark-only.
"""

import pytest

from onlinecal.measures import explain
from tests.gammas_metric import many_levels
from tests.witnesses import PROVED


@pytest.mark.parametrize("what", ["measure", "explain", "verify"])
@pytest.mark.parametrize("k", [60, 10**4])
@pytest.mark.parametrize("record", PROVED, ids=lambda m: m.name)
def test_time(benchmark, record, k, what):
    gamma = many_levels(0, k, 0.1)
    why = explain(gamma, record.name, **record.example)
    why.verify()  # compiles
    benchmark.group = f"{record.name}, k = {k}"
    if what == "measure":
        benchmark(record.function, gamma, **record.example)
    elif what == "explain":
        benchmark(explain, gamma, record.name, **record.example)
    else:
        benchmark(why.verify)
