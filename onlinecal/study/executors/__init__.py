"""Executors of the units of a study: this process, processes beside it, or a cluster; all behind one interface."""

from __future__ import annotations

from onlinecal.core.errors import InvalidParameter, shown
from onlinecal.core.validation import is_whole
from onlinecal.core.words import number_of
from onlinecal.study.executors.base import Executor, Serial
from onlinecal.study.run import cores

__all__ = ["Executor", "Serial", "executor_of", "most_jobs"]


def most_jobs() -> int:
    """The largest number of processes that may be asked for: more than there are cores do little harm."""
    return max(16, 4 * cores())


def executor_of(jobs: int | None = None, scheduler: str | None = None) -> Executor:
    """The executor of that many cores, 1 for this process with one thread, or of a Dask scheduler's address.

    Default: all cores, by this process alone where the study takes no more than some seconds.
    """
    if jobs is not None and scheduler is not None:
        raise InvalidParameter(
            f"jobs = {jobs!r} are processes of this machine, and a scheduler has workers of its own; expected one of "
            "the two"
        )
    if scheduler is not None:
        from onlinecal.study.executors.cluster import Cluster

        return Cluster(scheduler)
    if jobs is not None and not (is_whole(jobs) and 1 <= jobs <= most_jobs()):
        raise InvalidParameter(
            f"jobs = {shown(jobs)}; expected an integer from 1 to {most_jobs()}, as this process may use "
            f"{number_of(cores(), 'core')}"
        )
    if (jobs or cores()) == 1:
        return Serial(threads=1)
    from onlinecal.study.executors.processes import Processes

    return Processes(cores() if jobs is None else int(jobs), asked=jobs is not None)
