"""The command line, as tests call it: in this process, without the cost of imports, or in another."""

import contextlib
import io
import linecache
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from typing import NamedTuple

import pytest

from onlinecal.cli import main
from onlinecal.study import executors


class Said(NamedTuple):
    """The output of a command, and its exit status."""

    stdout: str
    stderr: str
    returncode: int


def onlinecal(*arguments, cwd, rc=0, columns=120, encoding="utf-8", errors="strict", input=""):
    """The command line in this process, in the folder `cwd`; nothing of what it imports from there is left behind.

    One argument alone is a line as a shell takes it. `rc` is the exit status that it must have, or several that it may
    have. An exception that gets out is one here, too. `errors` is how what is no text in the encoding is read.
    """
    if len(arguments) == 1:
        arguments = shlex.split(str(arguments[0]))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(cwd)
        patch.setenv("COLUMNS", str(columns))
        patch.setenv("NO_COLOR", "1")
        patch.setattr(executors, "LONG", 10**9)  # small studies take one process
        patch.setattr(sys, "path", sys.path[:])
        patch.setattr(sys, "argv", ["onlinecal", *map(str, arguments)])
        for name in ("stdout", "stderr"):
            patch.setattr(sys, name, io.TextIOWrapper(io.BytesIO(), encoding=encoding))
        try:
            with _given(input.encode(encoding)), pytest.raises(SystemExit) as end:
                main()
        finally:
            _forget(cwd)
        said = []
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
            said.append(stream.buffer.getvalue().decode(encoding, errors))
    done = Said(*said, end.value.code)
    assert done.returncode in (rc if isinstance(rc, tuple) else (rc,)), done.stdout + done.stderr
    return done


@contextlib.contextmanager
def _given(text):
    """Standard input, also for reads from the system; and stdout to the system is afterwards what it was.

    A command puts the null device there where nothing takes its output.
    """
    outside = [os.dup(descriptor) for descriptor in (0, 1)]
    before = sys.stdin
    try:
        with tempfile.TemporaryFile() as file:
            file.write(text)
            file.seek(0)
            os.dup2(file.fileno(), 0)
            with open(0, encoding="utf-8", closefd=False) as sys.stdin:
                yield
    finally:
        sys.stdin = before
        for descriptor, was in enumerate(outside):
            os.dup2(was, descriptor)
            os.close(was)


def _forget(folder):
    """Modules of a folder, and what was remembered of their files: the next command may find others there."""
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", "")).startswith(f"{folder}{os.sep}"):
            del sys.modules[name]
    linecache.clearcache()


def begun(*arguments, cwd, when):
    """The command line in a process of its own that has come to where `when` holds; interrupts reach it."""
    running = subprocess.Popen(
        [sys.executable, "-m", "onlinecal", *map(str, arguments)], cwd=cwd, text=True, stdout=subprocess.PIPE,
        # A shell's background job, which these tests may be, hands down that interrupts are ignored.
        stderr=subprocess.PIPE, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    deadline = time.monotonic() + 120
    while not when():
        assert running.poll() is None, running.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return running
