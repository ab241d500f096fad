"""Imported by the process from which workers are forked: all that each of them would load before its first unit."""

from onlinecal.core.arrays import cell
from onlinecal.study.executors import processes as processes

# Any compiled function has numba load what it has for all of them.
cell(0.5, 2)
