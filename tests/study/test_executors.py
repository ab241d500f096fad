"""Studies by several workers: the same numbers in whatever order, lost units, cells that fail, what is sent."""

import multiprocessing
import os
import pickle
import random
import re
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import Future, wait
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import onlinecal as oc
from onlinecal.core.errors import CellError, InvalidForecast, InvalidParameter, WorkerError
from onlinecal.core.progress import Progress
from onlinecal.decisions.people import People
from onlinecal.scenario import load
from onlinecal.schedules import Constant, Schedule
from onlinecal.study import Batch, Entry, executors, plan, play_batch, play_cell, play_cells
from onlinecal.study.executors import LOST, Processes, Serial, all_cores, executor_of, fault, most_jobs, units
from onlinecal.study.panel import Panel
from onlinecal.study.run import _stretches
from onlinecal.study.sending import opened, packed, versions
from tests.executors import Disorderly, all_gone, tables, workers_of
from tests.marks import slow
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


class Broken(Mean):
    def forecast(self):
        raise ValueError("boom")


def rich(runs=7):
    """Both loops, certificates, streams, groups, decision makers, a delay, and a plain class."""
    who = F.GroupHedging(), F.AlmostOneStepAhead(), F.Delayed(F.EmpiricalMean()), made(Mean)
    whom = N.Contrarian(), N.Grouped(N.Streams((N.Drift(), N.Bernoulli(0.2))), {"odd": 0.5, "rare": 0.1})
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
    with executor, session(path, planned, resume=True) as opened:
        failed = opened.play(executor)
    return tables(path), failed


# ---------------------------------------------------------------- the same numbers


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """The tables of the study where this process plays all of it."""
    played, failed = into(tmp_path_factory.mktemp("alone") / "alone.db", rich(), Serial())
    assert (len(played["games"]), failed) == (len(rich()), [])
    return played


EXECUTORS = {
    "serial": Serial,
    "disorderly": lambda: Disorderly(loses=lambda unit: (unit.cell + unit.first) % (Processes.again + 1)),
    "processes": lambda: Processes(2),
}
each = pytest.mark.parametrize("executor", ["serial", "disorderly", slow("processes")])


@each
def test_totals_are_those_of_one_process(executor, tmp_path, monkeypatch, alone):
    """Cells are cut; half of the runs are played first, in another order, and then the rest of which some are lost."""
    monkeypatch.setattr("onlinecal.study.run.BATCH", 3)
    into(tmp_path / "a.db", rich(runs=4), EXECUTORS[executor]())
    assert into(tmp_path / "a.db", rich(), EXECUTORS[executor]()) == (alone, [])


@each
def test_progress_counts_every_run_round_once_and_errors_are_those_of_this_process(executor, monkeypatch):
    monkeypatch.setattr("onlinecal.study.run.BATCH", 2)
    planned, progress = cells(), Progress(1, shown=False)
    assert len(list(play_cells(planned, progress, EXECUTORS[executor]()))) == len(planned)
    assert progress._done == sum(cell.work for cell in planned)
    found, mean = results(small([made(Broken), made(Mean)]), EXECUTORS[executor]())
    found, mean = (found, mean) if isinstance(mean, Batch) else (mean, found)
    assert isinstance(found, InvalidForecast)
    assert isinstance(mean, Batch)
    assert re.search(r"'Broken' failed in round 1, run 0: ValueError: boom \(.*test_executors", str(found))


@pytest.mark.parametrize(
    ("seconds", "until", "reached"),
    [
        (1.0, 64, [16, 32, 48, 64]), (0.5, 40, [16, 32, 40]), (1 / 16, 200, [16, 41, 81, 145, 200]),
        (0.0, 1000, [16, 144, 1000]),  # at most eight times as many
    ],
)  # fmt: skip
def test_progress_is_told_of_a_tenth_of_a_second_of_play(monkeypatch, seconds, until, reached):
    """From 16 rounds on, each stretch of which takes as long here."""
    now, game = [0.0], SimpleNamespace(asked=0, compiled=False)
    monkeypatch.setattr("onlinecal.study.run.time", SimpleNamespace(perf_counter=lambda: now[0]))
    found = []
    for rounds in _stretches(game, until, True):
        game.asked, now[0] = rounds, now[0] + seconds
        found.append(rounds)
    assert found == reached
    assert [*_stretches(SimpleNamespace(asked=0, compiled=False), until, False)] == [until]
    assert [*_stretches(SimpleNamespace(asked=0, compiled=True), until, True)] == [until]


def test_a_unit_that_is_lost_each_time_fails_its_cell_alone():
    lost, mean = results(
        small([F.Constant(), made(Mean)]), Disorderly(loses=lambda unit: 9 * (unit.cell == 0))
    )
    lost, mean = (mean, lost) if isinstance(lost, Batch) else (lost, mean)
    assert (type(lost), type(mean)) == (WorkerError, Batch)
    assert str(lost).startswith(
        "its worker died 2 times (it was killed by SIGKILL, perhaps for want of memory); exp"
    )


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("its exit codes: {SIGSEGV(-11)}", "it was killed by SIGSEGV"), ("its exit codes: {EXIT(3)}", "it ended"),
        ("its exit codes: {SIGKILL(-9)}", "it was killed by SIGKILL, perhaps for want of memory"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("name", sorted(LOST))
def test_a_worker_that_is_gone_is_told_from_one_that_cannot_play(name, said, why):
    gone = type(name, (Exception,), {})(said)
    (found,) = results(small([F.Constant()]), Disorderly(loses=lambda unit: 9, why=gone))
    assert str(found).startswith(f"its worker died 2 times ({why}); expected")


def test_of_a_cell_in_parts_the_first_error_is_told_and_of_the_workers_any_ends_the_study(monkeypatch):
    monkeypatch.setattr("onlinecal.study.run.BATCH", 1)
    found = results(small([made(Broken), made(Mean)], runs=4), Disorderly())
    assert sorted(type(each).__name__ for each in found) == ["Batch", "InvalidForecast"]
    with pytest.raises(WorkerError, match="the workers cannot play: KeyError: 'x'"):
        results(small([made(Mean)]), Disorderly(loses=lambda unit: 1, why=KeyError("x")))


@pytest.mark.parametrize(("free", "size"), [(8e9, "4000000000"), (np.inf, "1000000000000000")])
@pytest.mark.parametrize("own", [None, "7"])
def test_processes_share_the_memory_that_is_free_and_begin_without_hearing_an_interrupt(
    monkeypatch, free, size, own
):
    begun = []

    class Pool:
        def __init__(self, *_, env, **options):
            begun.append((env, signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, [])))

        def submit(self, *_):
            return Future()

        def shutdown(self, **_): ...

    monkeypatch.setattr("loky.ProcessPoolExecutor", Pool)
    monkeypatch.setattr(executors, "free_memory", lambda: free)
    monkeypatch.delenv(executors.KEPT, raising=False)
    if own:
        monkeypatch.setenv(executors.KEPT, own)
    with Processes(2) as executor:
        executor.submit(None)
    assert begun == [({executors.KEPT: own or size}, True)]
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


def test_a_batch_says_how_long_it_took():
    (cell,), began = small([F.Constant()]), time.perf_counter()
    assert 0.0 < play_batch(cell, range(1)).seconds < time.perf_counter() - began


def test_as_many_units_are_given_at_once_as_the_executor_takes(monkeypatch):
    sizes, executor = [], Serial()
    executor.at_once = 3

    def waits(running, *rest):
        sizes.append(len(running))
        return wait(running, *rest)

    monkeypatch.setattr(executors, "wait", waits)
    assert len(results(cells(), executor)) == 8
    assert sizes == [3, 3, 2]


def test_errors_of_other_kinds_are_short():
    assert isinstance(fault(KeyError("x")), CellError)
    assert len(str(fault(ValueError("x" * 10**6)))) < 1100


def test_units_have_every_run_once_and_the_longest_come_first():
    planned = list(cells(horizons=(100, 10**6, 10**7), runs=40))
    planned[0] = replace(planned[0], first=7)
    for workers in (1, 2, 5, 1000):
        cut = units(planned, workers)
        for place, cell in enumerate(planned):
            runs = [run for unit in cut if unit.cell == place for run in range(unit.first, unit.last)]
            assert sorted(runs) == list(range(cell.first, cell.runs))
    # One worker ends with those that take long; all others keep their order.
    alone, two = units(planned), units(planned, 2)
    assert [u.cell for u in alone] == sorted((u.cell for u in alone), key=lambda i: (planned[i].horizon, i))
    work = [planned[unit.cell].work for unit in two]
    assert work == sorted(work, reverse=True)
    # No unit takes more than its share, where runs can be parted.
    parts = [replace(planned[u.cell], first=u.first, runs=u.last).work for u in two]
    assert max(parts) <= 1.01 * sum(cell.work for cell in planned) / 8


class Plain(Mean):
    """Any player in plain Python."""


@pytest.mark.parametrize(
    ("forecaster", "horizon", "runs", "workers", "count"),
    [
        # A tenth of a second is not cut: 2 million compiled run-rounds, or a hundred thousand in plain Python.
        (F.Constant(), 10**5, 20, 9, 1), (F.Constant(), 10**5, 21, 9, 2),
        (made(Plain), 10**4, 10, 9, 1), (made(Plain), 10**4, 11, 9, 2),
        # Four for each worker.
        (F.Constant(), 10**6, 40, 2, 8), (F.Constant(), 10**6, 64, 4, 16), (F.Constant(), 10**6, 40, 1, 1),
    ],
)  # fmt: skip
def test_cells_are_cut_into_four_units_a_worker_while_they_take_long(
    forecaster, horizon, runs, workers, count
):
    assert len(units(small([forecaster], (horizon,), runs), workers)) == count


def test_sums_do_not_depend_on_how_many_threads_linear_algebra_has():
    """Above some thousand terms its sums are added in parts. A measure of that many levels would differ in the end."""
    terms, said, threads = np.random.default_rng(0).random((2, 300_000)), set(), set()

    def total(gamma):
        threads.update(pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas")
        return float(terms[0] @ terms[1])

    (cell,) = small([F.EmpiricalMean()], panel=Panel.of([total]))
    for count in (1, 2, 4):
        threads.clear()
        with threadpool_limits(count, user_api="blas"):
            said.add(float(play_batch(cell, range(1)).totals[cell.columns[0]][0, 0]))
        assert threads == {1}
    assert len(said) == 1


def test_of_a_world_the_most_open_questions_of_any_run_count(monkeypatch):
    (cell,) = cells([40], 4, panel=ECE, forecasters=[F.Constant()], natures=[oc.worlds.Queue()])
    alone = [play_batch(cell, range(run, run + 1)).open for run in range(4)]
    most = tuple(map(max, zip(*alone, strict=True)))
    assert most not in alone  # of different runs at different checkpoints
    monkeypatch.setattr("onlinecal.study.run.BATCH", 1)
    assert play_cell(cell).open == play_batch(cell, range(4)).open == most


# ---------------------------------------------------------------- processes that die or stay


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
    found = results(small([*dying, made(Mean)], (20,), 2), Processes(2))
    (dead,) = (what for what in found if isinstance(what, WorkerError))
    assert str(dead).startswith("its worker died 3 times (it was killed by SIGKILL")
    assert sum(isinstance(what, Batch) for what in found) == 2
    assert [(folder / "20").read_text() for folder in folders] == ["x", "xxx"]


class Endless(Mean):
    """Plays on until its process is ended, once it has begun another that stays."""

    def __init__(self, horizon, folder, home):
        super().__init__()
        self.folder, self.first = folder, horizon == 24  # which is played first
        if os.getpid() != home and self.first:
            child = subprocess.Popen(["sleep", "60"])
            with open(os.path.join(folder, "children"), "a") as file:
                file.write(f"{child.pid}\n")

    def update(self, forecast, outcome):
        while not self.first:
            threading.Event().wait(0.01)


@pytest.mark.slow
def test_a_study_that_is_stopped_leaves_no_process(tmp_path):
    """Nor what players have begun."""
    who = made(Endless, {"folder": str(tmp_path), "home": os.getpid()})
    playing = play_cells(small([who], (20, 22, 24), 1), Progress(1), Processes(2))
    next(playing)
    pids = [*workers_of(os.getpid()), *map(int, (tmp_path / "children").read_text().split())]
    assert len(pids) >= 3
    playing.close()
    all_gone(pids, 10.0)


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
    with pytest.raises(
        InvalidParameter, match=f"jobs = {jobs!r}; expected an integer from 1 to {most_jobs()}"
    ):
        executor_of(jobs)


@pytest.mark.parametrize(("count", "most"), [(1, 16), (4, 16), (5, 20)])
def test_as_many_processes_may_be_asked_for_as_is_said(monkeypatch, count, most):
    monkeypatch.setattr(executors, "cores", lambda: count)
    assert executor_of(most).workers == most
    with pytest.raises(
        InvalidParameter, match=f"expected an integer from 1 to {most}, as this process may use"
    ):
        executor_of(most + 1)


def test_without_jobs_only_much_plain_python_takes_processes(monkeypatch):
    assert (executor_of(1).threads, type(executor_of())) == (1, Serial)
    assert executor_of(scheduler="tcp://there:8786").address == "tcp://there:8786"
    monkeypatch.setattr(executors, "cores", lambda: 2)
    much = small([made(Mean)], (10**6,), 2)
    for planned, kind in (
        (cells((10**6,), 2), Serial), (small([made(Mean)]), Serial), (much, Processes),
        (small([made(Mean)], (10**6,), 1), Serial),  # up to a million run-rounds
        (small([made(closes())], (10**6,), 2), Serial),
    ):  # fmt: skip
        assert type(all_cores(planned)) is kind
    with monkeypatch.context() as patch:
        patch.setattr(executors, "cores", lambda: 1)
        assert isinstance(all_cores(much), Serial)
    # As within a pool of Python, of which processes are daemons.
    monkeypatch.setitem(multiprocessing.current_process()._config, "daemon", True)
    assert isinstance(all_cores(much), Serial)
    with pytest.raises(
        WorkerError, match=r"no process can be begun: AssertionError: daemonic .* or jobs = 1"
    ):
        results(small([made(Mean)]), Processes(2))


# ---------------------------------------------------------------- what is sent


def test_what_cannot_be_sent_and_other_versions_are_refused_by_name(monkeypatch):
    with pytest.raises(
        InvalidParameter, match=r"'Closes' cannot be sent to other processes: TypeError: .*generator"
    ):
        results(small([made(closes())]), Processes(2))
    ours, blob = versions(), packed(cells())
    assert set(ours) == {"Python", "onlinecal", "numpy", "numba", "scipy", "the source of onlinecal"}
    for name in ours:
        monkeypatch.setattr("onlinecal.study.sending.versions", lambda name=name: {**ours, name: "0.1"})
        opened.cache_clear()
        with pytest.raises(WorkerError, match=f"a worker has {name} 0.1, and not {ours[name]}"):
            opened(blob)
    monkeypatch.undo()
    with pytest.raises(WorkerError, match="a worker cannot load what is to be played: UnpicklingError"):
        opened(pickle.dumps((versions(), b"x")))


PLAYS = """
import pickle
from onlinecal.study.executors import play_unit
with open("in", "rb") as file:
    blob, units = pickle.load(file)
with open("out", "wb") as file:
    pickle.dump([play_unit(blob, unit) for unit in units], file)
"""
STEPS = """
import onlinecal as oc
from dataclasses import dataclass
from onlinecal.forecasters import Forecaster
from onlinecal.engine.steps import Forecaster as Player, kernel, law, state

@kernel
def nearer(mean, outcome):
    return mean + 0.1 * (outcome - mean)

def say(run, number):
    values, weights = law(run)
    values[0], weights[0] = state(run)[0], 1.0
    return 1

def follow(run, place, forecast, outcome, number):
    state(run)[0] = nearer(state(run)[0], outcome)
    return 0

@dataclass(frozen=True)
class Smoothing(Forecaster):
    def start(self, horizon, stream):
        return Player(say, follow, [0.5])

@oc.compiled
class Follows:
    def __init__(self): self.mean = 0.5
    def forecast(self): return self.mean
    def update(self, forecast, outcome): self.mean += 0.1 * (outcome - self.mean)
"""
OWN = f"""
{STEPS}
from MARK.deep import Rate
import MARK_late as MARK_deep
class Own:
    def __init__(self, rate=Rate(0.25)): self.rate = rate
    def forecast(self): return {{self.rate.r: 0.5, MARK_deep.high(0): 0.5}}
    def update(self, forecast, outcome): pass
def measure(gamma): return gamma.predictions.max()
"""
LATE = """
from numba import njit
HIGH = 0.75
@njit
def high(i): return HIGH + twice(i)
@njit
def twice(i): return 2 * i
"""
SCENARIO = """
runs = 3
horizons = [20, 40]
measures = ["ece", "MARK_own:measure"]
natures = ["drift"]
forecasters = [{ name = "MARK_own:Own" }]
"""


def test_plug_ins_are_sent_with_their_text(tmp_path, monkeypatch):
    """To a machine where their files do not lie: modules, a package, modules that they import, and machine code that is
    kept of them. Parameters that are objects of theirs are told apart as here: a player's randomness depends on them.
    """
    mark = f"p{random.randrange(10**9)}"
    (tmp_path / mark).mkdir()
    deep = "class Rate:\n    def __init__(self, r): self.r = r\n"
    files = {
        f"{mark}/__init__.py": "",
        f"{mark}/deep.py": deep,
        f"{mark}_own.py": OWN,
        f"{mark}_late.py": LATE,
    }
    for name, text in (files | {"s.toml": SCENARIO}).items():
        (tmp_path / name).write_text(text.replace("MARK", mark))
    monkeypatch.setattr(sys, "path", list(sys.path))
    planned = list(load(tmp_path / "s.toml").cells)
    own = sys.modules[f"{mark}_own"]
    given = made(own.Own, {"rate": sys.modules[f"{mark}.deep"].Rate(0.125)}), "given"
    planned += cells(forecasters=[given, own.Smoothing(), made(own.Follows)], natures=[N.Bernoulli(0.5)])
    blob, cut = packed(planned), units(planned, 2)
    here = [play_batch(planned[unit.cell], range(unit.first, unit.last)) for unit in cut]
    for name in files:
        (tmp_path / name).unlink()
    # The file that lies there under the name is not played.
    (tmp_path / f"{mark}_late.py").write_text("HIGH = 0.9\n")
    (tmp_path / "in").write_bytes(pickle.dumps((blob, cut)))
    subprocess.run([sys.executable, "-c", PLAYS], cwd=tmp_path, check=True)
    for one, other in zip(here, pickle.loads((tmp_path / "out").read_bytes()), strict=True):
        assert one.totals.keys() == other.totals.keys()
        assert all((one.totals[column] == other.totals[column]).all() for column in one.totals)


SCRIPT = f"""
{STEPS}
class Plain:
    def forecast(self): return FORECAST
    def update(self, forecast, outcome): pass
FORECAST = 0.3

print("begun")
asked = dict(horizon=[50, 100], runs=2, progress=False, measures=["ece", lambda gamma: gamma.weight])
one, two = (oc.play([Smoothing(), Follows, Plain], "drift", **asked, jobs=jobs) for jobs in (None, 2))
print(one.cells == two.cells, [cell.loop for cell in two.cells])
"""


@pytest.mark.slow
def test_a_script_without_a_guard_sends_what_it_defines(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    command = [sys.executable, "script.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    loops = ["compiled"] * 4 + ["python"] * 2
    assert (done.stderr, done.stdout) == ("", f"begun\nTrue {loops}\n")
