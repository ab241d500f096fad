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


#: rooms of tests of compiled code, which `.ci/run` plays with checks of bounds
COMPILED = {"core", "engine", "exploit", "forecasters", "forecasts", "games", "measures", "natures"}
#: those of classes that tests write, in Python or compiled: of our own code they play what others play, too
WRITTEN = {"test_careless.py", "test_compiled.py", "test_objects.py", "test_plain.py", "test_silent.py"}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Marks the tests of compiled code."""
    for item in items:
        # Each strategy is in a fast pair: all pairs need no checks of bounds.
        all_pairs = item.path.name == "test_same.py" and item.get_closest_marker("slow")
        if item.path.parent.name in COMPILED and item.path.name not in WRITTEN and not all_pairs:
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
