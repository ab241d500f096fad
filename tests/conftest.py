"""Settings of all tests."""

import os

# As many processes run tests as there are cores. Threads of linear algebra in each would wait for each other, and
# small problems take four times as long. NumPy reads it when it is imported, also in processes that tests start.
for threads in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(threads, "1")

import gc  # noqa: E402

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


#: Files of tests that `.ci/run` plays with checks of bounds. They play each step of each strategy, as each is
#: once in a pair of test_same.py. They play both drivers, and each kernel of measures, decisions, games and monitors.
#: Only the fast tests of each: other numbers through the same code find no other index.
COMPILED = {
    "core": {"test_joint.py"},
    "decisions": {"test_people.py", "test_responses.py", "test_swaps.py"},
    "engine": {"test_same.py", "test_history.py", "test_steps.py"},
    "logs": {"test_thresholds.py"},
    "games": {"test_players.py", "test_solve.py"},
    "measures": {
        "test_binned.py", "test_catalogue.py", "test_decision.py", "test_distances.py", "test_many.py",
        "test_oracles.py", "test_sampling.py", "test_witnesses.py",
    },
    "monitoring": {"test_bets.py"},
}  # fmt: skip


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Marks the tests of compiled code."""
    for item in items:
        if item.path.name in COMPILED.get(item.path.parent.name, ()) and not item.get_closest_marker("slow"):
            item.add_marker(pytest.mark.compiled)


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
