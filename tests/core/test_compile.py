"""Cached machine code never outlives the sources it was made from, and bounds are checked where that is asked for."""

import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import cloudpickle
import numba
import numpy as np
import pytest

import onlinecal
from onlinecal.core._compile import kernel
from tests.marks import slow

CALLEE = "from onlinecal.core._compile import kernel\n\n\n@kernel\ndef step(x):\n    return x + {}\n"
CALLER = (
    "from onlinecal.core.callee import step\nfrom onlinecal.core._compile import kernel\n\n\n@kernel\ndef twice(x):\n"
    "    return step(step(x))\n"
)
RESULT = "from onlinecal.core.caller import twice\nprint(twice(1), sum(twice.code.stats.cache_hits.values()))"


@pytest.fixture
def result(tmp_path, elsewhere):
    """The result of `twice` in a process of its own, and how often kept code was loaded.

    In a package of the same name with nothing but the decorator and two kernels.
    """
    package = tmp_path / "onlinecal"
    for folder in (package, package / "core", package / "report"):
        folder.mkdir()
        (folder / "__init__.py").write_text("")
    shutil.copy(Path(onlinecal.__file__).parent / "core" / "_compile.py", package / "core")
    (package / "core" / "caller.py").write_text(CALLER)
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    environment.pop("NUMBA_CACHE_DIR", None)  # where tests keep their code

    def found(step, code=RESULT, cache="cache"):
        if elsewhere:
            environment["NUMBA_CACHE_DIR"] = str(tmp_path / cache)
        (package / "core" / "callee.py").write_text(CALLEE.format(step))
        os.utime(package / "core" / "callee.py", (step, step))
        options = {"cwd": tmp_path, "env": environment, "text": True}
        return tuple(map(int, subprocess.check_output([sys.executable, "-c", code], **options).split()))

    return found


ADDING = """
from numba import int64
from onlinecal.core._compile import kept
from onlinecal.core.caller import twice
from onlinecal.core.callee import step

def adding(f, by):
    def add(x):
        return f(x) + by
    return kept(add, int64(int64))

def both(f, g):
    def call(x):
        return f(x) * g(x)
    return kept(call, int64(int64))
"""
CLOSED = """
from onlinecal.core.closures import *
one, two, other = adding(step, 1), adding(step, 2), adding(twice, 1)
nested = both(one, other)
print(twice(1), one(0), two(0), other(0), nested(0))
print(*(sum(f.stats.cache_hits.values()) for f in (twice.code, one, two, other, nested)))
"""
THEIRS = """
from onlinecal.core.closures import *
from numba import njit
theirs = adding(njit(lambda x: x), 1)
print(theirs(0), int(theirs.stats.cache_path is not None))
"""


@pytest.mark.parametrize("elsewhere", [False, slow(True)])
def test_code_is_kept_by_what_it_calls_and_holds(tmp_path, result):
    """That of the package. What a user's function calls may change unseen, so its closures are not kept."""
    (tmp_path / "onlinecal" / "core" / "closures.py").write_text(ADDING)
    assert result(10, CLOSED) == (21, 11, 12, 21, 231, *[0] * 5)
    (tmp_path / "onlinecal" / "report" / "words.py").write_text("")  # of this room no kernel takes anything
    assert result(10, CLOSED) == (21, 11, 12, 21, 231, *[1] * 5)
    assert result(20, CLOSED + THEIRS) == (41, 21, 22, 41, 861, *[0] * 5, 1, 0)
    # Two kernels have an index and the code of one signature: nothing is left of those before.
    assert len([file for file in tmp_path.rglob("*.nb?") if file.stem.startswith("calle")]) == 4


LATE = f"""
import onlinecal.core.caller, os, pathlib
file = pathlib.Path("onlinecal/core/callee.py")
file.write_text({CALLEE.format(20)!r}), os.utime(file, (20, 20))
"""
ASLEEP = "import onlinecal.core._compile as c\nc.STATE = 'same'\n"


@pytest.mark.slow
@pytest.mark.parametrize("elsewhere", [False])
def test_what_is_compiled_late_is_not_taken_for_the_files_of_that_time(result):
    """A file that changes after it was imported, and before its kernel is called."""
    assert [result(10, LATE + RESULT), result(20)] == [(21, 0), (41, 0)]


@pytest.mark.slow
@pytest.mark.parametrize("elsewhere", [False])
def test_without_the_state_of_the_package_numba_plays_the_old_step(result):
    """The control of the tests above."""
    assert [result(10, ASLEEP + RESULT), result(20, ASLEEP + RESULT)] == [(21, 0), (21, 1)]


# Too long for a compiler to put it in place of its call.
FACTORY = f"""
import math, os, shutil
from numba import float64
from onlinecal.core._compile import kept, linked

def adding(by):
    def add(x):
        return {" + ".join(f"math.cos({i} * x)" for i in range(60))} - 60 + by
    add = linked(add)
    def call(x):
        return add(x)
    return kept(call, float64(float64))
"""
FIRST = "from onlinecal.core.factory import *\nprint(int(adding(1.0)(0.0)))"
SECOND = """
from onlinecal.core.factory import *
two = adding(2.0)
shutil.copytree("first", "second", dirs_exist_ok=True)
one = adding(1.0)
print(int(two(0.0)), int(one(0.0)), sum(one.stats.cache_hits.values()))
"""
ONE_NAME = "import uuid, onlinecal.core._compile as c\nc.uuid4 = lambda: uuid.UUID(int=0)\n"


@pytest.mark.parametrize("elsewhere", [True])
def test_two_processes_that_compile_two_kernels_of_one_factory_do_not_mix_them_up(tmp_path, result):
    """Each is the first that its process compiles, so that numba gives both one number."""
    (tmp_path / "onlinecal" / "core" / "factory.py").write_text(FACTORY)
    assert result(10, FIRST, "first") == (1,)
    assert result(10, SECOND, "second") == (2, 1, 1)


MINE = "from numba import float64\nfrom onlinecal.core._compile import kept\n\n\ndef rate(x):\n    return x + {}\n\n\n"
RELOADED = f"""
import importlib, os, pathlib, subprocess, sys
from numba import float64, njit, types
file, rates = pathlib.Path("mine.py"), []
for by in (1, 2):
    file.write_text({MINE!r}.format(by) + "rate = kept(rate, float64(float64))")
    os.utime(file, (by, by))
    subprocess.check_call([sys.executable, "-c", "import mine"])
    import mine
    rates.append(importlib.reload(mine).rate)
call = njit(float64(types.FunctionType(float64(float64)), float64))(lambda function, x: function(x))
print(*(int(call(rate, 0.0)) for rate in rates), *(sum(rate.stats.cache_hits.values()) for rate in rates))
"""


@pytest.mark.parametrize("elsewhere", [False])
def test_what_was_loaded_of_a_users_file_stays_when_it_is_changed_and_loaded_again(result):
    """As steps are called by the loop; another process compiles each state of the file."""
    assert result(10, RELOADED) == (1, 2, 1, 1)


@pytest.mark.slow
@pytest.mark.parametrize("elsewhere", [True])
def test_under_one_name_numba_mixes_them_up(tmp_path, result):
    """The control of the test above."""
    (tmp_path / "onlinecal" / "core" / "factory.py").write_text(FACTORY)
    assert result(10, ONE_NAME + FIRST, "first") == (1,)
    assert result(10, ONE_NAME + SECOND, "second") == (2, 2, 1)


IMPORTED = """
import sys, onlinecal, onlinecal.cli, onlinecal.core.streams
from onlinecal import measures
measures.smooth_ce
print("numba" in sys.modules, measures.smooth_ce([0.25, 0.75], [1, 0]), "numba" in sys.modules)
"""


def test_numba_is_not_imported_before_a_kernel_is_called():
    said = subprocess.check_output([sys.executable, "-c", IMPORTED], text=True)
    assert said.split() == ["False", "0.1875", "True"]


#: as where neither the package nor the home can be written
NO_CACHE = """
from onlinecal.engine.game import Game
from onlinecal.forecasters import Constant
from onlinecal.measures.cutoff import cutoff_ce
from onlinecal.natures import Bernoulli
game = Game(Constant(), Bernoulli(), horizon=9, runs=range(1))
game.advance(9)
print(game.compiled, game.gammas()[0].counts.sum(), cutoff_ce([0.25, 0.75], [1, 0]) > 0.0)
"""


@pytest.mark.slow
def test_without_a_cache_it_works_and_says_so_once():
    environment = os.environ | {"NUMBA_CACHE_LOCATOR_CLASSES": "IPythonCacheLocator"}
    environment.pop("NUMBA_CACHE_DIR", None)
    done = subprocess.run([sys.executable, "-c", NO_CACHE], capture_output=True, text=True, env=environment)
    assert done.stdout.split() == ["True", "9.0", "True"], done.stderr
    assert done.stderr.count("compiled code cannot be kept") == 1


def test_a_kernel_that_is_sent_gives_the_same_and_its_bounds_are_checked_if_asked_for():
    """.ci/run plays the tests of compiled code with NUMBA_BOUNDSCHECK=1."""
    assert pickle.loads(cloudpickle.dumps(_at))(np.arange(3.0), 1) == 1.0
    if numba.config.BOUNDSCHECK:
        with pytest.raises(IndexError):
            _at(np.zeros(3), 3)


@kernel
def _at(array, place):
    return array[place]
