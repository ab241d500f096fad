"""Settings of all tests."""

import os

# As many processes run tests as there are cores. Threads of linear algebra in each would wait for each other, and
# small problems take four times as long. NumPy reads it when it is imported, also in processes that tests start.
for threads in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(threads, "1")

import gc  # noqa: E402
from collections import Counter  # noqa: E402
from zlib import crc32  # noqa: E402

import pytest  # noqa: E402
from hypothesis import settings  # noqa: E402

# The first example may pay for a compilation, so examples have no deadline. A failure prints how to get it again. They
# are others each time, so that few in a run are many in all.
settings.register_profile("onlinecal", deadline=None, print_blob=True, max_examples=15)
settings.register_profile("full", settings.get_profile("onlinecal"), max_examples=400)
settings.load_profile("onlinecal")


def pytest_configure(config):
    if config.getoption("--full"):
        settings.load_profile("full")


#: rooms of tests of compiled code; `.ci/run` plays their slow tests with checks of bounds
COMPILED = {"core", "engine", "exact", "exploit", "forecasters", "forecasts", "measures", "natures", "rounds"}
#: files of dear tests, which are marked `one_in(8)`
DEAR = """
    checks/every_strategy checks/facts checks/guarantees core/content core/relations decisions/swaps engine/game
    engine/memory engine/people exact/brackets exact/players exact/solve forecasters/delayed
    forecasters/deterministic forecasters/guarantees forecasters/in_flight forecasters/internal_regret
    forecasters/proofs forecasters/recalibration forecasters/threshold_hedging forecasts/clusters
    forecasts/evaluation forecasts/intervals forecasts/measuring forecasts/reading forecasts/regression
    growth/growth growth/orders measures/catalogue measures/decision measures/distance measures/distance_metric
    measures/interval measures/sampling measures/smooth measures/subsampled measures/witnesses monitoring/bets
    monitoring/monitor monitoring/sequences monitoring/watching natures/composed natures/forced natures/rules
    papers/bhnu26 papers/bn24 papers/estimators papers/exact recalibration/adapters recalibration/replay
    report/forecast_plots report/late report/measured report/page report/paired report/pictures report/plots
    report/ranking report/run_plots report/style schedules/by_outcome search/search study/cluster study/copies
    study/executors study/files study/gammas study/later study/moved_columns study/results whole/commands
    whole/late_scenarios whole/options whole/results_cli whole/terminals worlds/worlds
"""
ONE_IN = {f"tests/{path.replace('/', '/test_')}.py": 8 for path in DEAR.split()} | {"docs/gallery.md": 8}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Of tests marked `one_in(k)` one case in k is fast, other ones for other seeds, and the rest slow."""
    cases, seed = Counter(), config.getoption("--seed")
    for item in items:
        name = item.nodeid.partition("[")[0]
        if item.path.parent.name in COMPILED and item.get_closest_marker("slow"):
            item.add_marker(pytest.mark.compiled)
        marks = [mark.args[0] for mark in item.iter_markers("one_in")]
        # Marked tables of a file are in the same parts, which compile the same: they begin with the same case.
        first = seed if marks else seed + crc32(name.encode())
        if (cases[name] + first) % max(*marks, ONE_IN.get(name.partition("::")[0], 1), 1):
            item.add_marker(pytest.mark.slow)
        cases[name] += 1


def pytest_collection_finish(session):
    """Keeps objects that are older than the tests out of searches for garbage: half a million stay to the end.

    What the tests leave is searched for when there is some more of it than by default.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)


def pytest_addoption(parser):
    parser.addoption("--full", action="store_true", help="slow tests at their full size, and more examples")
    parser.addoption("--seed", type=int, default=0, help="seed of the stochastic tests; they hold for any")


@pytest.fixture(scope="session")
def full(request):
    """Whether slow tests run at full size."""
    return request.config.getoption("--full")


@pytest.fixture(scope="session")
def seed(request):
    """The seed of stochastic tests."""
    return request.config.getoption("--seed")


@pytest.fixture(scope="session")
def _played(tmp_path_factory):
    from tests.results import cells, played

    path = tmp_path_factory.mktemp("whole") / "a.db"
    return path, played(path, cells())[0]


@pytest.fixture(scope="session")
def whole(_played):
    """The study of `tests.results.cells`."""
    return _played[1]


@pytest.fixture
def results(_played, tmp_path):
    """A results file that holds it, of the test's own."""
    path = tmp_path / "a.db"
    path.write_bytes(_played[0].read_bytes())
    return path
