"""How many events a second the monitor takes, and recalibrates: ``python -m tests.benchmarks.monitoring``"""

import statistics
import time

import numpy as np

from onlinecal.logs.reading import Asked
from onlinecal.monitoring.feed import Feed
from onlinecal.monitoring.monitor import Monitor
from onlinecal.recalibration.recalibrator import Recalibrator

EVENTS = 20_000


def one_by_one(take, pairs):
    for p, y in pairs:
        take(p, y)


def recalibrated(pairs):
    recalibrator = Recalibrator("calibeating")
    one_by_one(lambda p, y: recalibrator.tell(recalibrator.ask(p), y), pairs)


def main():
    """Prints the median of five times."""
    rng = np.random.default_rng(0)
    p = rng.random(EVENTS)
    y = (rng.random(EVENTS) < p).astype(float)
    pairs = list(zip(p.tolist(), y.tolist(), strict=True))
    data = b"p,y\n" + b"".join(b"%.6f,%d\n" % pair for pair in pairs)
    for name, play in {
        "as arrays": lambda: Monitor().update(p, y),
        "lines of a file": lambda: Feed(Monitor(), "stream", Asked()).take(data),
        "one by one": lambda: one_by_one(Monitor().update, pairs),
        "recalibrated one by one": lambda: recalibrated(pairs),
    }.items():
        times = []
        for _ in range(6):  # the first compiles
            began = time.process_time()
            play()
            times.append(time.process_time() - began)
        print(f"{name:25}{EVENTS / statistics.median(times[1:]):12,.0f} a second")


if __name__ == "__main__":
    main()
