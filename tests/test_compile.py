"""Cached machine code never outlives the sources it was made from."""

import os
import subprocess
import sys
from pathlib import Path

from onlinecal import _compile

CALLEE = "from onlinecal._compile import kernel\n\n\n@kernel\ndef step(x):\n    return x + {}\n"
CALLER = (
    "from inner.callee import step\nfrom onlinecal._compile import kernel\n\n\n@kernel\ndef twice(x):\n"
    "    return step(step(x))\n"
)


def test_a_kernel_is_renewed_when_one_that_it_calls_changes(tmp_path):
    package = tmp_path / "inner"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "caller.py").write_text(CALLER)

    def result(step, forget):
        (package / "callee.py").write_text(CALLEE.format(step))
        os.utime(package / "callee.py", (step, step))
        code = "from pathlib import Path\nfrom onlinecal import _compile\n"
        code += f"_compile._forget_stale(Path({str(package)!r}))\n" if forget else ""
        code += "from inner.caller import twice\nprint(twice(1))"
        root = str(Path(_compile.__file__).parents[1])
        path = os.pathsep.join([str(tmp_path), root])
        ran = subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | {"PYTHONPATH": path},
            capture_output=True,
            text=True,
        )
        return int(ran.stdout) if ran.returncode == 0 else ran.stderr

    assert result(10, forget=True) == 21
    assert result(20, forget=True) == 41
    # The control: without it numba does play the old step.
    assert result(30, forget=False) == 41


def test_unchanged_sources_keep_their_code(tmp_path):
    (tmp_path / "module.py").write_text("x = 1\n")
    assert _compile._forget_stale(tmp_path)
    cached = tmp_path / "__pycache__" / "module.step.nbi"
    cached.write_text("")
    assert not _compile._forget_stale(tmp_path)
    assert cached.exists()
    (tmp_path / "module.py").write_text("x = 12\n")
    assert _compile._forget_stale(tmp_path)
    assert not cached.exists()
