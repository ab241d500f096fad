"""How much memory is free, as the system says it."""

import subprocess
import sys

import pytest

from onlinecal.core import memory
from onlinecal.core.errors import InvalidParameter
from onlinecal.engine.memory import check_history


def test_free_memory_is_what_is_left(monkeypatch, tmp_path):
    monkeypatch.setattr(memory, "_MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(memory, "_CGROUP", tmp_path)
    monkeypatch.setattr("os.sysconf", lambda name: 10, raising=False)
    assert memory.free_memory() == 100.0  # all there is, where it does not say what is free

    def unknown(name):
        raise ValueError(name)

    monkeypatch.setattr("os.sysconf", unknown, raising=False)
    assert memory.free_memory() == float("inf")
    (tmp_path / "meminfo").write_text("MemTotal: 9 kB\nMemAvailable:   4 kB\n")
    assert memory.free_memory() == 4096.0
    (tmp_path / "memory.current").write_text("900\n")
    (tmp_path / "memory.max").write_text("max\n")
    assert memory.free_memory() == 4096.0
    (tmp_path / "memory.max").write_text("1000\n")
    assert memory.free_memory() == 100.0


def test_memory_is_told_in_gibibytes():
    with pytest.raises(InvalidParameter, match=r"0\.5 of 4\.0 GiB that are free may be used"):
        check_history(1, 10**12, None, 1, 4 * 1024.0**3)


def test_cores_are_all_of_the_machine_where_a_process_may_have_any(monkeypatch):
    monkeypatch.delattr("os.sched_getaffinity", raising=False)
    for count, cores in ((3, 3), (None, 1)):
        monkeypatch.setattr("os.cpu_count", lambda count=count: count)
        assert memory.cores() == cores


def test_a_limit_of_a_shell_counts():
    """In a process of its own, as a limit cannot be raised again."""
    code = (
        "import resource; from onlinecal.core.memory import free_memory; "
        "resource.setrlimit(resource.RLIMIT_AS, (2**31, 2**31)); "
        "left = free_memory(); room = bytearray(2**28); print(left <= 2**31, left - free_memory() >= 2**28 - 2**20)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "True"]
