"""Executors of the units of a study: this process, processes beside it, or a cluster; all behind one interface."""

from onlinecal.study.executors.base import Executor, Serial, executor_of, most_jobs

__all__ = ["Executor", "Serial", "executor_of", "most_jobs"]
