"""One writer for a thousand workers, with a clock that is made up: whether it keeps up, and how long they wait."""

import heapq
import time

import numpy as np

from onlinecal.study import play_cell
from onlinecal.study.panel import Panel
from onlinecal.study.session import Session
from tests.results import F, N, cells, played, read
from tests.results import session as opened

WORKERS, SECONDS = 1000, 10.0
PANEL = Panel.of(["ece", "smooth_ce", "cdl"], ["umbrella"])


def simulated(each, commit, together=True, count=20_000, seed=0):
    """Workers that play cells of ten seconds, give or take a half, and a writer to whom each cell takes `each` seconds
    and each transaction `commit`; in one it puts away all that is finished by then, or a single cell.

    Returns cells a second, and the mean time from when a cell is finished until it is in the file.
    """
    rng = np.random.default_rng(seed)
    ends = [SECONDS * rng.uniform(0.0, 1.0) for _ in range(WORKERS)]
    heapq.heapify(ends)
    clock = waited = 0.0
    written = 0
    while written < count:
        clock = max(clock, ends[0])
        group = [heapq.heappop(ends)]
        while together and ends[0] <= clock:
            group.append(heapq.heappop(ends))
        clock += commit + each * len(group)
        for end in group:
            waited += clock - end
            heapq.heappush(ends, clock + SECONDS * rng.uniform(0.5, 1.5))
        written += len(group)
    return written / clock, waited / written


def test_the_simulation_finds_what_can_be_reckoned():
    rate, waited = simulated(0.001, 0.0, together=False)
    assert abs(rate - WORKERS / SECONDS) < 3.0  # they play all the time
    assert waited < 0.003
    # Negative control: a transaction for each cell, of 40 ms as a busy disk takes, lets no more than 25 through.
    rate, waited = simulated(0.001, 0.04, together=False)
    assert rate < 25.0
    assert waited > SECONDS
    rate, waited = simulated(0.001, 0.04)
    assert rate > 0.98 * WORKERS / SECONDS
    assert waited < 0.1


def measured(folder):
    """Seconds of a cell and of a transaction: the medians of transactions of one cell, and of twenty."""
    planned = cells(
        horizons=tuple(range(100, 200)),
        runs=16,
        panel=PANEL,
        forecasters=[F.ForecastHedging()],
        natures=[N.Drift()],
    )
    ready = [(cell.key, cell.content, cell.held, play_cell(cell)) for cell in planned]
    took = {1: [], 20: []}
    with Session.open(planned, {"name": "a", "title": ""}, folder / "a.db") as session:
        while ready:
            size = 20 if len(ready) > 20 else 1
            group, ready = ready[:size], ready[size:]
            began = time.perf_counter()
            with session._store.together():
                for each in group:
                    session._store.add(*each)
            took[size].append(time.perf_counter() - began)
    one, twenty = np.median(took[1]), np.median(took[20])
    each = max(0.0, (twenty - one) / 19)
    return each, max(0.0, one - each)


def test_one_writer_keeps_up_with_a_thousand_workers(tmp_path):
    """Cells as studies have them: a horizon, 16 runs, three measures and a task."""
    each, commit = measured(tmp_path)
    rate, waited = simulated(each, commit)
    share = each * WORKERS / SECONDS
    print(
        f"{1e3 * each:.1f} ms a cell, {1e3 * commit:.1f} ms a transaction: {share:.0%} of the writer's time but for "
        f"transactions, {rate:.0f} cells a second, in the file after {waited:.2f} s"
    )
    assert rate > 0.95 * WORKERS / SECONDS
    assert waited < 0.05 * SECONDS


def test_what_is_finished_together_is_put_away_together(tmp_path, monkeypatch):
    """And where one cannot be put away, none of them is, nor are those of before lost."""
    from onlinecal.study.executors.base import Executor
    from tests.executors import Disorderly

    class Together(Disorderly):
        def events(self):
            return [event for _ in range(len(self._held)) for event in Disorderly.events(self)]

    assert issubclass(Together, Executor)
    path, planned, commits = tmp_path / "a.db", cells(), []
    with opened(path, planned) as session:
        session._store._db._connection.set_trace_callback(
            lambda statement: commits.append(statement) if statement == "COMMIT" else None
        )
        session.play(Together(workers=3))
    assert len(commits) <= len(planned) / 2
    assert read(path).cells == played(tmp_path / "b.db", planned)[0].cells
