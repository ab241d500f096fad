"""The memory that is free, and the cores that there are."""

import contextlib
import math
import os
from pathlib import Path

GIB = 2**30

_CGROUP = Path("/sys/fs/cgroup")
_MEMINFO = Path("/proc/meminfo")
_STATM = Path("/proc/self/statm")


def cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def free_memory() -> float:
    """Bytes to be had without swapping, within the limits of group and process; infinity where that is unknown."""
    found = [math.inf]
    for read in (_available, _left_of_limit, _left_of_addresses):
        # Not Linux, or not a POSIX system; no limit, or no such file.
        with contextlib.suppress(OSError, ValueError, IndexError, AttributeError, ImportError):
            found.append(max(read(), 0.0))
    return min(found)


def _available() -> float:
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in _MEMINFO.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return 1024.0 * float(line.split()[1])
    return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))


def _left_of_limit() -> float:
    most, used = (float((_CGROUP / name).read_text()) for name in ("memory.max", "memory.current"))
    return most - used


def _left_of_addresses() -> float:
    import resource

    most = resource.getrlimit(resource.RLIMIT_AS)[0]
    if most == resource.RLIM_INFINITY:
        return math.inf
    return float(most - int(_STATM.read_text().split()[0]) * resource.getpagesize())
