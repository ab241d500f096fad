"""Cached machine code never outlives the sources it was made from, and bounds are checked where that is asked for."""

import gc
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest

import onlinecal
from onlinecal.core._compile import kernel

CALLEE = "from onlinecal.core._compile import kernel\n\n\n@kernel\ndef step(x):\n    return x + {}\n"
CALLER = (
    "from onlinecal.core.callee import step\nfrom onlinecal.core._compile import kernel\n\n\n@kernel\ndef twice(x):\n"
    "    return step(step(x))\n"
)


@pytest.mark.slow
@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_kernel_is_renewed_when_one_that_it_calls_changes(tmp_path, elsewhere):
    """In a package of the same name with nothing but the decorator and two kernels."""
    package = tmp_path / "onlinecal"
    (package / "core").mkdir(parents=True)
    for folder in (package, package / "core"):
        (folder / "__init__.py").write_text("")
    for name in ("_compile.py", "_expressions.py", "_lowering.py", "_machine_code.py"):
        shutil.copy(Path(onlinecal.__file__).parent / "core" / name, package / "core")
    (package / "core" / "caller.py").write_text(CALLER)
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    if elsewhere:
        environment["NUMBA_CACHE_DIR"] = str(tmp_path / "cache")

    def result(step, before=""):
        (package / "core" / "callee.py").write_text(CALLEE.format(step))
        os.utime(package / "core" / "callee.py", (step, step))
        code = f"{before}\nfrom onlinecal.core.caller import twice\nprint(twice(1), len(twice.code.stats.cache_hits))"
        options = {"cwd": tmp_path, "env": environment, "text": True}
        return tuple(map(int, subprocess.check_output([sys.executable, "-c", code], **options).split()))

    assert result(10) == (21, 0)
    assert result(10) == (21, 1)  # unchanged: the code is kept
    assert result(20) == (41, 0)
    if elsewhere:
        return
    (package / "core" / "words.py").write_text('"""Words."""\n# A comment.\n')
    assert result(20) == (41, 0)  # a new file
    (package / "core" / "words.py").write_text('"""Other\n\nwords."""\n    # Another comment.\n')
    assert result(20) == (41, 1)
    # The control: without looking numba does play the old step.
    asleep = "import onlinecal.core._machine_code as c\nc._forget_stale = lambda folder: None"
    assert result(30, asleep) == (41, 1)


SHOWN = """
@kernel
def shown(x, by):
    if by > 2:
        raise ValueError("too far")
    if by > 1:
        print(x)
    return x + by

@kernel
def twice(x, by):
    return shown(x, 1) + shown(x, by)
"""


def test_a_part_is_compiled_once_and_only_as_a_part(capfd):
    """Not for each constant, and not to machine code of its own; it prints and raises all the same."""
    space = {"kernel": kernel, "__name__": "typed"}
    exec(SHOWN, space)  # without a file: nothing of it has been kept
    shown, twice = space["shown"], space["twice"]
    assert twice(4, 2) == 11
    assert (len(shown.part.signatures), len(shown.code.signatures)) == (1, 0)
    assert capfd.readouterr().out == "4\n"
    with pytest.raises(ValueError, match="too far"):
        twice(4, 3)
    assert shown(4, 1) == 5
    assert len(shown.code.signatures) == 1


def test_garbage_is_searched_for_as_before():
    for on in (False, True):
        (gc.enable if on else gc.disable)()
        kernel(lambda x: x)(1)
        assert gc.isenabled() is on


#: as where neither the package nor the home can be written
NO_CACHE = """
import numba.core.caching as caching
caching.CacheImpl._locator_classes = []
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
    done = subprocess.run([sys.executable, "-c", NO_CACHE], capture_output=True, text=True)
    assert done.stdout.split() == ["True", "9.0", "True"], done.stderr
    assert done.stderr.count("compiled code cannot be kept") == 1


@pytest.mark.slow
@pytest.mark.skipif(
    not numba.config.BOUNDSCHECK,
    reason="checks that NUMBA_BOUNDSCHECK=1, with which .ci/run plays the slow tests, works",
)
def test_bounds_are_checked():
    with pytest.raises(IndexError):
        _beyond(np.zeros(3))


@kernel
def _beyond(array):
    return array[len(array)]
