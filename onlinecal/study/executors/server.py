"""Imported by the process from which workers are forked: all that each of them would load before its first unit."""

from onlinecal.core.streams import Stream
from onlinecal.study.executors import processes as processes

# Any compiled function has numba load what it has for all of them.
Stream(0, ("server",), range(1)).block(1)
