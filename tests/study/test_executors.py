"""Studies by several workers: the same numbers in whatever order, lost units, cells that fail, what is sent."""

import os
import pickle
import subprocess
import sys
import time

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import onlinecal as oc
from onlinecal.core.errors import CellError, InvalidForecast, InvalidParameter
from onlinecal.core.progress import Progress
from onlinecal.decision_makers.tenures import People
from onlinecal.schedules import Constant, Schedule
from onlinecal.study import Batch, Entry, Played, plan, play_batch, play_cells
from onlinecal.study.executors import Serial, executor_of, most_jobs, processes
from onlinecal.study.executors.base import Fault
from onlinecal.study.executors.processes import Processes
from onlinecal.study.executors.units import seconds_of, units
from onlinecal.study.panel import Panel
from onlinecal.study.playing import AGAIN
from onlinecal.study.run import join
from tests.executors import Disorderly, tables, wait_for
from tests.results import F, N, cells, session

PANEL, ECE = Panel.of(["ece", "cdl"], ["umbrella"]), Panel.of(["ece"])
made = oc.forecasters.base.as_forecaster


def rich(runs=7):
    """Both loops, certificates, streams, decision makers, a delay, and a plain class."""
    return plan(
        map(
            Entry.of,
            [
                F.ForecastHedging(),
                F.CDLMinimiser(),
                F.Delayed(F.EmpiricalMean()),
                made(Mean),
            ],
        ),
        [Entry.of(N.Contrarian()), Entry.of(N.Streams((N.Drift(), N.Bernoulli(0.2))))],
        horizons=[60, 90],
        runs=runs,
        seed=3,
        panel=PANEL,
        schedules=[Schedule(), Schedule(delays=Constant(3))],
        people=People.of([{"task": "umbrella", "join": 10, "leave": 50}], 3),
    )


class Mean:
    def __init__(self):
        self.ones, self.rounds = 0, 0

    def forecast(self):
        return (self.ones + 1) / (self.rounds + 2)

    def update(self, forecast, outcome):
        self.rounds += 1
        self.ones += outcome


def into(path, planned, executor):
    with executor, session(path, planned) as opened:
        failed = opened.play(executor)
    return tables(path), failed


# ---------------------------------------------------------------- units


def test_units_have_every_run_once_and_the_shortest_come_first_and_then_the_longest():
    planned = list(cells(horizons=(100, 10**6, 10**7), runs=40))
    planned[0] = planned[0].__class__(**{**vars(planned[0]), "first": 7})
    for workers in (1, 2, 5, 1000):
        cut = list(units(planned, workers))
        for place, cell in enumerate(planned):
            runs = [run for unit in cut if unit.cell == place for run in range(unit.first, unit.last)]
            assert sorted(runs) == list(range(cell.first, cell.runs))
    each = seconds_of()

    def seconds(cell, runs):
        return cell.horizon * runs * each(cell)

    two = list(units(planned, 2))
    long = [seconds(planned[unit.cell], planned[unit.cell].runs) for unit in two]
    assert [planned[unit.cell].horizon for unit in two[:4]] == [100] * 4
    assert long[4:] == sorted(long[4:], reverse=True)
    assert [unit.cell for unit in units(planned, 1)] == sorted(unit.cell for unit in units(planned, 1))
    # No unit takes more than its share, where runs can be parted.
    share = sum(seconds(cell, cell.runs) for cell in planned) / 8
    assert max(seconds(planned[u.cell], u.last - u.first) for u in two) <= 1.01 * share


# ---------------------------------------------------------------- the same numbers


def test_batches_are_joined_in_the_order_of_runs():
    for cell in rich():
        ranges = [range(0, 2), range(2, 3), range(3, 7)]
        batches = [pickle.loads(pickle.dumps(play_batch(cell, runs))) for runs in ranges]
        assert all(isinstance(batch, Batch) for batch in batches)
        assert join(cell, batches, 0.0) == join(cell, [play_batch(cell, range(7))], 0.0)


@pytest.mark.slow
def test_the_order_in_which_units_are_finished_makes_no_difference(tmp_path, seed, monkeypatch):
    monkeypatch.setattr("onlinecal.study.run.BATCH", 3)  # so that cells are cut
    alone, failed = into(tmp_path / "alone.db", rich(), Serial())
    assert not failed
    assert len(alone["games"]) == len(rich())
    for i in range(2):
        executor = Disorderly(seed=seed + i, loses=lambda unit: (unit.cell + unit.first) % (AGAIN + 1))
        assert into(tmp_path / f"{i}.db", rich(), executor) == (alone, [])
        assert executor.order != sorted(executor.order)
    # In half of the runs first, then in the rest.
    with session(tmp_path / "half.db", rich(runs=4)) as opened:
        opened.play(Disorderly(seed=seed))
    with session(tmp_path / "half.db", rich(), resume=True) as opened:
        opened.play(Disorderly(seed=seed + 9))
    assert tables(tmp_path / "half.db") == alone


def test_processes_play_the_same(tmp_path):
    alone, _ = into(tmp_path / "alone.db", rich(), Serial())
    assert into(tmp_path / "two.db", rich(), Processes(2, alone=0)) == (alone, [])
    # The same again, begun here and taken over by others.
    executor = Processes(3, alone=1e-9)
    processes_worth, processes.WORTH = processes.WORTH, -1.0
    try:
        assert into(tmp_path / "over.db", rich(), executor) == (alone, [])
    finally:
        processes.WORTH = processes_worth


def test_a_study_in_python_comes_back_in_order():
    asked = {"horizon": [30, 60, 90], "runs": 3, "measures": ["ece"]}
    who = [Mean, oc.forecasters.ForecastHedging()], oc.natures.Drift()
    assert oc.play(*who, **asked, jobs=2).cells == oc.play(*who, **asked).cells


def test_sums_do_not_depend_on_how_many_threads_linear_algebra_has():
    """Above some thousand terms its sums are added in parts; a measure of so many levels would differ in the end."""
    terms = np.random.default_rng(0).random((2, 300_000))

    def total(gamma):
        return float(terms[0] @ terms[1])

    (cell,) = cells(
        horizons=(20,), runs=1, panel=Panel.of([total]), forecasters=[F.EmpiricalMean()], natures=[N.Drift()]
    )
    said = set()
    for threads in (1, 2, 4):
        with threadpool_limits(threads, user_api="blas"):
            said.add(float(play_batch(cell, range(1)).totals[cell.columns[0]][0, 0]))
    assert len(said) == 1


# ---------------------------------------------------------------- what goes wrong


class Broken:
    def __init__(self, horizon):
        self.horizon = horizon

    def forecast(self):
        if self.horizon == 90:
            raise ValueError("boom")
        return 0.5

    def update(self, forecast, outcome):
        pass


def with_broken():
    return cells(horizons=(60, 90), forecasters=[made(Broken), made(Mean)])


class Counted(Progress):
    def __init__(self):
        super().__init__(1, shown=False)
        self.done = 0

    def advance(self, work):
        self.done += work


@pytest.mark.parametrize(
    "executor", [Serial, lambda: Disorderly(loses=lambda unit: 2), lambda: Processes(2, alone=0)]
)
def test_progress_counts_every_run_round_once(executor):
    planned, progress = cells(), Counted()
    assert len(list(play_cells(planned, progress, executor()))) == len(planned)
    assert progress.done == sum(cell.work for cell in planned)


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


def test_a_process_that_dies_is_replaced_and_its_units_are_played_again(tmp_path):
    who = [made(Deadly, {"folder": str(tmp_path)}), made(Mean)]
    planned = cells(horizons=(20, 30), runs=2, panel=ECE, forecasters=who, natures=[N.Drift()])
    study = oc.Study(tuple(result for _, result in play_cells(planned, Progress(1), Processes(2, alone=0))))
    assert (tmp_path / "20").read_text() == (tmp_path / "30").read_text() == "x"
    assert sorted((c.forecaster.split()[0], c.horizon) for c in study.cells) == [
        ("Deadly", 20), ("Deadly", 30), ("Mean", 20), ("Mean", 30)
    ]  # fmt: skip
    # One that always dies takes nobody with it.
    who = [made(Deadly, {"folder": str(tmp_path), "always": True}), made(Mean)]
    planned = cells(horizons=(21,), runs=1, panel=ECE, forecasters=who, natures=[N.Drift()])
    (fault,) = [r for _, r in play_cells(planned, Progress(1), Processes(2, alone=0)) if isinstance(r, Fault)]
    assert fault.text.startswith(
        "its worker was gone 4 times (it was killed by SIGKILL, perhaps for want of memory)"
    )
    assert (tmp_path / "21").read_text() == "x" * 4


class Forking(Mean):
    """Begins a process that stays, with all that is open; and ends its own."""

    def __init__(self, horizon, folder, dies, home):
        super().__init__()
        if os.getpid() == home:  # where it is only looked at
            return
        child = os.fork()
        if not child:
            time.sleep(60)
            os._exit(0)
        with open(os.path.join(folder, "children"), "a") as file:
            file.write(f"{child}\n")
        if dies:
            os.kill(os.getpid(), 9)


def runs(pid):
    """Whether a process is there and has not ended."""
    said = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True).stdout
    return bool(said.strip()) and not said.startswith("Z")


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
@pytest.mark.parametrize("dies", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_processes_that_players_have_begun_end_with_their_worker(tmp_path, dies):
    who = [made(Forking, {"folder": str(tmp_path), "dies": dies, "home": os.getpid()})]
    planned = cells(horizons=(20,), runs=1, panel=ECE, forecasters=who, natures=[N.Drift()])
    began = time.monotonic()
    ((_, found),) = play_cells(planned, Progress(1), Processes(2, alone=0))
    assert time.monotonic() - began < 55.0  # none is waited for
    if dies:
        assert found.text.startswith(f"its worker was gone {AGAIN + 1} times (it was killed by SIGKILL")
    else:
        assert isinstance(found, Played)
    children = list(map(int, (tmp_path / "children").read_text().split()))
    assert len(children) == (AGAIN + 1 if dies else 1)
    wait_for(lambda: not any(map(runs, children)), 10.0)


def test_errors_come_back_as_what_they_are():
    for jobs in (None, 2):
        with pytest.raises(
            InvalidForecast, match=r"'Broken' failed in round 1, run 0: ValueError: boom \(.*test_executors"
        ):
            oc.play(Broken, "drift", horizon=90, runs=2, jobs=jobs)
    assert isinstance(Fault.of(KeyError("x")).error(), CellError)


class Slow(Mean):
    def __init__(self, horizon):
        super().__init__()
        self.horizon = horizon

    def update(self, forecast, outcome):
        time.sleep(0.01 if self.horizon > 10 else 0.0)


@pytest.mark.slow
def test_a_study_that_is_stopped_leaves_no_process():
    planned = cells(
        horizons=(20, 25),
        forecasters=[made(Slow)],
        natures=[N.Drift(), N.RandomWalk()],
    )
    executor = Processes(2, alone=0)
    playing = play_cells(planned, Progress(1), executor)
    next(playing)
    pids = [worker._process.pid for worker in executor._team]
    assert len(pids) == 2
    began = time.monotonic()
    playing.close()
    assert time.monotonic() - began < 2.0
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


# ---------------------------------------------------------------- who is asked


def test_jobs_out_of_range_are_refused():
    for jobs in (0, -1, most_jobs() + 1, 1000, 1.5, True, "2"):
        with pytest.raises(
            InvalidParameter, match=rf"jobs = {jobs!r}; expected an integer from 1 to {most_jobs()}"
        ):
            executor_of(jobs)
    with pytest.raises(InvalidParameter, match="expected one of the two"):
        executor_of(2, "tcp://127.0.0.1:1")
    assert isinstance(executor_of(1), Serial)
    assert executor_of(1).threads == 1


def test_what_is_small_begins_no_process(monkeypatch):
    monkeypatch.setattr(processes, "_Worker", None)
    monkeypatch.setattr(processes, "ALONE", 20.0)  # the machine may be busy
    assert len(oc.play("forecast_hedging", "drift", horizon=[100, 1000], runs=4, jobs=4).cells) == 2


def test_what_cannot_be_sent_is_played_here_or_refused():
    class Holds:
        def __init__(self):
            self.file = open(os.devnull)  # noqa: SIM115

        def forecast(self):
            return 0.5

        def update(self, forecast, outcome):
            pass

    generator = (i for i in range(3))

    class Closes(Holds):
        def __init__(self, held=generator):
            pass

    planned = cells(horizons=(20,), forecasters=[made(Closes)], natures=[N.Drift()])
    with pytest.raises(
        InvalidParameter, match=r"'Closes' cannot be sent to other processes: TypeError: .*generator"
    ):
        list(play_cells(planned, Progress(1), Processes(2, alone=0)))
    executor = Processes(2, asked=False, alone=0)
    assert len(list(play_cells(planned, Progress(1), executor))) == 1
    assert executor.remarks[0].startswith("played by this process alone: 'Closes' cannot be sent")
