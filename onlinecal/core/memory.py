"""How much memory there is."""

from __future__ import annotations

import os
from pathlib import Path

GIB = 2**30

_CGROUP = Path("/sys/fs/cgroup")
_MEMINFO = Path("/proc/meminfo")
_STATM = Path("/proc/self/statm")


def free_memory() -> float:
    """Bytes that can be had now without swapping; infinity where the system does not say.

    Memory that the system uses to keep files at hand counts as free. Where the processes are limited to less than the
    machine has (a control group of Linux), or this one is (``ulimit -v``), what is left of the limit counts.
    """
    return min(_available(), _left_of_limit(), _left_of_addresses())


def _available() -> float:
    try:
        for line in _MEMINFO.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return 1024.0 * float(line.split()[1])
    except (OSError, ValueError, IndexError):
        pass  # not Linux
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):  # not a POSIX system
        return float("inf")


def _left_of_limit() -> float:
    try:
        most, used = (float((_CGROUP / name).read_text()) for name in ("memory.max", "memory.current"))
    except (OSError, ValueError):  # no limit: there is no such file, or it says "max"
        return float("inf")
    return max(most - used, 0.0)


def _left_of_addresses() -> float:
    try:
        import resource

        most = resource.getrlimit(resource.RLIMIT_AS)[0]
        if most == resource.RLIM_INFINITY:
            return float("inf")
        used = int(_STATM.read_text().split()[0]) * resource.getpagesize()
    except (
        ImportError,
        OSError,
        ValueError,
        IndexError,
    ):  # not a system with such limits, or it says nothing
        return float("inf")
    return max(float(most - used), 0.0)
