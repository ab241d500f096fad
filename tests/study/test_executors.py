"""Studies by several workers: the same numbers in whatever order, lost units, cells that fail."""

import multiprocessing
import os
import re
import threading
import time
from dataclasses import replace

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import onlinecal as oc
from onlinecal.core.errors import CellError, InvalidForecast, InvalidParameter, WorkerError
from onlinecal.core.progress import Progress
from onlinecal.decisions.people import People
from onlinecal.schedules import Constant, Schedule
from onlinecal.study import Batch, Entry, executors, plan, play_batch, play_cells
from onlinecal.study.executors import Processes, Serial, all_cores, executor_of, fault, most_jobs, units
from onlinecal.study.panel import Panel
from tests.executors import Disorderly, all_gone, tables, workers_of
from tests.results import F, N, cells, session

PANEL, ECE = Panel.of(["ece", "cdl"], ["umbrella"]), Panel.of(["ece"])
made = oc.forecasters.base.as_forecaster


class Mean:
    def __init__(self):
        self.ones, self.rounds = 0, 0

    def forecast(self):
        return (self.ones + 1) / (self.rounds + 2)

    def update(self, forecast, outcome):
        self.rounds += 1
        self.ones += outcome


def rich(runs=7):
    """Both loops, certificates, streams, decision makers, a delay, and a plain class."""
    who = F.ForecastHedging(), F.CDLMinimiser(), F.Delayed(F.EmpiricalMean()), made(Mean)
    whom = N.Contrarian(), N.Streams((N.Drift(), N.Bernoulli(0.2)))
    return plan(
        map(Entry.of, who), map(Entry.of, whom), horizons=[60, 90], runs=runs, seed=3, panel=PANEL,
        schedules=[Schedule(), Schedule(delays=Constant(3))],
        people=People.of([{"task": "umbrella", "join": 10, "leave": 50}], 3),
    )  # fmt: skip


def small(forecasters, horizons=(20,), runs=1, panel=ECE):
    return cells(horizons, runs, panel=panel, forecasters=forecasters, natures=[N.Drift()])


def results(planned, executor):
    return [result for _, result in play_cells(planned, Progress(1), executor)]


def into(path, planned, executor):
    with executor, session(path, planned) as opened:
        failed = opened.play(executor)
    return tables(path), failed


# ---------------------------------------------------------------- units


def test_units_have_every_run_once_and_the_longest_come_first():
    planned = list(cells(horizons=(100, 10**6, 10**7), runs=40))
    planned[0] = replace(planned[0], first=7)
    for workers in (1, 2, 5, 1000):
        cut = units(planned, workers)
        for place, cell in enumerate(planned):
            runs = [run for unit in cut if unit.cell == place for run in range(unit.first, unit.last)]
            assert sorted(runs) == list(range(cell.first, cell.runs))
    # One worker ends with those that take long; all others keep their order.
    horizons = [planned[unit.cell].horizon for unit in units(planned)]
    assert horizons == sorted(horizons)
    short = [unit.cell for unit in units(planned) if planned[unit.cell].horizon == 100]
    assert short == sorted(short)
    two = units(planned, 2)
    work = [planned[unit.cell].work for unit in two]
    assert work == sorted(work, reverse=True)
    # No unit takes more than its share, where runs can be parted.
    parts = [replace(planned[u.cell], first=u.first, runs=u.last).work for u in two]
    assert max(parts) <= 1.01 * sum(cell.work for cell in planned) / 8


# ---------------------------------------------------------------- the same numbers


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """The tables of the study where this process plays all of it."""
    played, failed = into(tmp_path_factory.mktemp("alone") / "alone.db", rich(), Serial())
    assert (len(played["games"]), failed) == (len(rich()), [])
    return played


def test_the_order_in_which_units_are_finished_makes_no_difference(tmp_path, seed, monkeypatch, alone):
    """Cells are cut; half of the runs are played first, and then the rest of which some units are lost."""
    monkeypatch.setattr("onlinecal.study.run.BATCH", 3)
    executor = Disorderly(seed=seed, loses=lambda unit: (unit.cell + unit.first) % (Processes.again + 1))
    into(tmp_path / "a.db", rich(runs=4), Disorderly(seed=seed))
    with session(tmp_path / "a.db", rich(), resume=True) as opened:
        assert opened.play(executor) == []
    assert executor.order != sorted(executor.order)
    assert tables(tmp_path / "a.db") == alone


@pytest.mark.slow
def test_processes_play_the_same(tmp_path, alone):
    assert into(tmp_path / "two.db", rich(), Processes(2)) == (alone, [])


def test_sums_do_not_depend_on_how_many_threads_linear_algebra_has():
    """Above some thousand terms its sums are added in parts. A measure of that many levels would differ in the end."""
    terms = np.random.default_rng(0).random((2, 300_000))

    def total(gamma):
        return float(terms[0] @ terms[1])

    (cell,) = small([F.EmpiricalMean()], panel=Panel.of([total]))
    said = set()
    for threads in (1, 2, 4):
        with threadpool_limits(threads, user_api="blas"):
            said.add(float(play_batch(cell, range(1)).totals[cell.columns[0]][0, 0]))
    assert len(said) == 1


def test_linear_algebra_has_one_thread_until_all_cells_of_a_process_are_played():
    """As where a worker of a cluster has several threads, and one ends before another."""
    begun, inside, found = threading.Event(), threading.Event(), set()

    class First(Mean):
        def forecast(self):
            begun.set()
            return 0.5 * inside.wait(60.0)

    first = threading.Thread(target=play_batch, args=(small([made(First)])[0], range(1)))

    class Second(Mean):
        def forecast(self):
            inside.set()
            first.join(60.0)
            found.update(pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas")
            return 0.5

    def limit(threads):  # by a thread that ends, since one that has set a limit keeps others from it
        setter = threading.Thread(target=threadpool_limits, args=(threads, "blas"))
        setter.start(), setter.join()

    before = max(pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas")
    limit(2)
    try:
        first.start()
        assert begun.wait(60.0)
        play_batch(small([made(Second)])[0], range(1))
    finally:
        limit(before)
    assert found == {1}


# ---------------------------------------------------------------- what goes wrong


@pytest.mark.parametrize(
    "executor",
    [Serial, lambda: Disorderly(loses=lambda unit: 2),
     pytest.param(lambda: Processes(2), marks=pytest.mark.slow)],
)  # fmt: skip
def test_progress_counts_every_run_round_once(executor):
    planned, progress = cells(), Progress(1, shown=False)
    assert len(list(play_cells(planned, progress, executor()))) == len(planned)
    assert progress._done == sum(cell.work for cell in planned)


class Deadly:
    """Kills its process, as the operating system does where memory ends: once, or whenever it plays."""

    def __init__(self, horizon, folder, always=False):
        self.horizon, self.folder, self.always = horizon, folder, always

    def forecast(self):
        mark = os.path.join(self.folder, f"{self.horizon}")
        if self.always or not os.path.exists(mark):
            with open(mark, "a") as file:
                file.write("x")
            os.kill(os.getpid(), 9)
        return 0.5

    def update(self, forecast, outcome):
        pass


@pytest.mark.slow
def test_a_process_that_dies_is_replaced_and_its_units_are_played_again(tmp_path, monkeypatch):
    """One forecaster dies once, and is played again; one always dies, and takes no other with it, nor this process."""
    monkeypatch.setattr(Processes, "again", 2)
    folders = [tmp_path / "once", tmp_path / "always"]
    for folder in folders:
        folder.mkdir()
    dying = [made(Deadly, {"folder": str(f), "always": f.name == "always"}) for f in folders]
    planned = small([*dying, made(Mean)], (20,), 2)
    found = results(planned, Processes(2))
    (dead,) = (what for what in found if isinstance(what, WorkerError))
    assert str(dead).startswith(
        "its worker died 3 times (it was killed by SIGKILL, perhaps for want of memory)"
    )
    assert sum(isinstance(what, Batch) for what in found) == 2
    assert (folders[0] / "20").read_text() == "x"
    # No process that dies takes another with it.
    assert (folders[1] / "20").read_text() == "xxx"


class Forking(Mean):
    """Begins a process that stays, with all that is open."""

    def __init__(self, horizon, folder, home):
        super().__init__()
        if os.getpid() == home:  # where it is only looked at
            return
        child = os.fork()
        if not child:
            time.sleep(60)
            os._exit(0)
        with open(os.path.join(folder, "children"), "a") as file:
            file.write(f"{child}\n")


@pytest.mark.slow
def test_processes_that_players_have_begun_end_with_their_worker(tmp_path):
    (found,) = results(small([made(Forking, {"folder": str(tmp_path), "home": os.getpid()})]), Processes(2))
    assert isinstance(found, Batch)
    (child,) = map(int, (tmp_path / "children").read_text().split())
    all_gone([child], 10.0)


class Broken(Mean):
    def forecast(self):
        raise ValueError("boom")


@pytest.mark.slow
def test_errors_come_back_as_what_they_are_and_a_study_in_order():
    said = r"'Broken' failed in round 1, run 0: ValueError: boom \(.*test_executors"
    with pytest.raises(InvalidForecast, match=said):
        oc.play(Broken, "drift", horizon=90, runs=2, jobs=2)
    asked = {"horizon": [30, 60, 90], "runs": 3, "measures": ["ece"]}
    who = [Mean, F.ForecastHedging()], N.Drift()
    assert oc.play(*who, **asked, jobs=2).cells == oc.play(*who, **asked).cells


def test_errors_are_those_of_this_process_in_others():
    said = r"'Broken' failed in round 1, run 0: ValueError: boom \(.*test_executors"
    for executor in (Serial(), Disorderly()):
        (found,) = results(small([made(Broken)]), executor)
        assert isinstance(found, InvalidForecast)
        assert re.search(said, str(found))
    assert isinstance(fault(KeyError("x")), CellError)
    assert len(str(fault(ValueError("x" * 10**6)))) < 1100


class Slow(Mean):
    def __init__(self, horizon):
        super().__init__()
        self.horizon = horizon

    def update(self, forecast, outcome):
        time.sleep(0.01 if self.horizon > 10 else 0.0)


@pytest.mark.slow
def test_a_study_that_is_stopped_leaves_no_process():
    playing = play_cells(small([made(Slow)], (20, 22, 24, 26), 3), Progress(1), Processes(2))
    next(playing)
    pids = workers_of(os.getpid())
    assert len(pids) == 2
    playing.close()
    all_gone(pids)


# ---------------------------------------------------------------- who is asked


def closes():
    """A class that cannot be sent."""
    held = (i for i in range(3))

    class Closes(Mean):
        def __init__(self):
            super().__init__()
            assert held is not None

    return Closes


@pytest.mark.parametrize("jobs", [0, most_jobs() + 1, 1.5, True])
def test_jobs_out_of_range_are_refused(jobs):
    said = rf"jobs = {jobs!r}; expected an integer from 1 to {most_jobs()}"
    with pytest.raises(InvalidParameter, match=said):
        executor_of(jobs)


def test_without_jobs_only_much_plain_python_takes_processes(monkeypatch):
    assert (executor_of(1).threads, type(executor_of())) == (1, Serial)
    monkeypatch.setattr(executors, "cores", lambda: 2)
    steps, plain = cells((10**6,), 2), small([made(Mean)], (10**6,), 2)
    assert [type(all_cores(planned)) for planned in (steps, small([made(Mean)]), plain)] == [
        Serial,
        Serial,
        Processes,
    ]
    assert isinstance(all_cores(small([made(closes())], (10**6,), 2)), Serial)


def test_where_no_process_may_begin_another_it_is_said_or_this_one_plays(monkeypatch):
    """As within a pool of Python, of which processes are daemons."""
    monkeypatch.setattr(executors, "cores", lambda: 2)
    monkeypatch.setitem(multiprocessing.current_process()._config, "daemon", True)
    assert isinstance(all_cores(small([made(Mean)], (10**6,), 2)), Serial)
    with pytest.raises(
        WorkerError, match=r"no process can be begun: AssertionError: daemonic .* or jobs = 1"
    ):
        results(small([made(Mean)]), Processes(2))
