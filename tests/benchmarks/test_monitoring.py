"""How many events a second the monitor takes, at once and one by one, and how many forecasts are recalibrated.

Run `python -m pytest tests/benchmarks/test_monitoring.py`; the aim is 10^5 events a second.
"""

import numpy as np
import pytest

from onlinecal.forecasts.reading import Asked
from onlinecal.monitoring.feed import Feed
from onlinecal.monitoring.monitor import Monitor
from onlinecal.recalibration.recalibrator import Recalibrator


@pytest.fixture(scope="module")
def stream():
    rng = np.random.default_rng(0)
    p = rng.random(20_000)
    Monitor().update(p[:10], (p[:10] > 0.5) * 1)
    return p, (rng.random(20_000) < p).astype(float)


def test_at_once(benchmark, stream):
    benchmark(lambda: Monitor().update(*stream))


def test_one_by_one(benchmark, stream):
    pairs = list(zip(*(values.tolist() for values in stream), strict=True))

    def take():
        monitor = Monitor()
        for p, y in pairs:
            monitor.update(p, y)

    benchmark(take)


def test_lines_of_a_file(benchmark, stream):
    data = b"p,y\n" + b"".join(b"%.6f,%d\n" % pair for pair in zip(*stream, strict=True))
    benchmark(lambda: Feed(Monitor(), "stream", Asked()).take(data))


def test_recalibration_one_by_one(benchmark, stream):
    pairs = list(zip(*(values.tolist() for values in stream), strict=True))[:5000]

    def take():
        mender = Recalibrator("calibeating")
        for p, y in pairs:
            mender.tell(mender.ask(p), y)

    benchmark(take)
