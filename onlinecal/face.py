"""The face in Python: play, and look at what came out."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import numpy as np

from onlinecal.core.progress import Progress
from onlinecal.core.validation import is_whole
from onlinecal.decision_makers.tenures import People
from onlinecal.forecasters.base import as_forecaster
from onlinecal.natures import as_nature
from onlinecal.report.curves import Study
from onlinecal.scenario import decision_maker_of, measure_of, named, task_of
from onlinecal.schedules import Schedule, as_arrivals, as_delays
from onlinecal.study.executors import Serial, executor_of
from onlinecal.study.executors.base import Fault
from onlinecal.study.panel import Panel, listed
from onlinecal.study.plan import Entry, plan
from onlinecal.study.playing import play_cells


def _named(kind: Literal["forecaster", "nature"], thing: Any) -> Any:
    if isinstance(thing, str):
        return named(kind, thing)
    return as_forecaster(thing) if kind == "forecaster" else as_nature(thing)


def play(
    forecaster: Any,
    nature: Any,
    *,
    horizon: int | Sequence[int],
    runs: int = 16,
    seed: int = 0,
    measures: Iterable[Any] = ("ece", "smooth_ce", "cdl"),
    tasks: Iterable[Any] = (),
    per_decade: int = 8,
    arrivals: Any = "every_unit",
    delays: Any = 0,
    decision_makers: Any = (),
    progress: bool | None = None,
    jobs: int | None = None,
    scheduler: str | None = None,
) -> Study:
    """Plays forecasters against natures and returns the curves.

    Parameters
    ----------
    forecaster : Forecaster, its name, plain class, object or partial, or list of them
        A class with ``forecast()`` and ``update(forecast, outcome)`` plays as it is, one object a run;
        ``functools.partial(Mine, rate=0.1)`` with parameters; of an object ``Mine(0.1)`` each run has a deep copy. A
        name is a registered one, ``"forecast_hedging"``, or ``"module:Class"``, with its default parameters.
    nature : Nature, its name, plain class, object or partial, or list of them
        The same; a plain class has ``probability()``, and ``update(forecast, outcome)`` if it is to be told the past.
    horizon : int or sequence of int
        One horizon: one game, read at geometric checkpoints. Several: a game of each, tuned to its own horizon and read
        at its end; this is how the growth rate of a tuned forecaster is measured. They are fresh games, unless the
        nature replays recorded outcomes.
    runs : int, default 16
        Independent runs.
    seed : int, default 0
    measures, tasks : iterable
        Names, tables with options, functions of Γ, or tasks (see `Panel.of`); a single one stands for itself. A name
        may be ``"module:function"`` of a measure, of a task, or of a function that makes a task of the options.
    per_decade : int, default 8
        Checkpoints for each factor of ten, with one horizon; from 1 to 100.
    arrivals : Arrivals, or its name or table
        When questions are asked (see `onlinecal.schedules`). Default: one a unit of the clock.
    delays : number, Delays, or its name or table; or a list of them
        How long after its question an outcome becomes known; a game of each. Default: at once. Totals are over the
        questions whose outcome is known; `Played.open` says how many are not.
    decision_makers : list of mappings, tenures or tasks
        Who join and leave (see `onlinecal.decision_makers.tenures.Group`); `Played.people` has their accounts.
    progress : bool, optional
        A bar on stderr. Default: where that is a terminal, for what takes over two seconds.
    jobs : int, optional
        How many processes play; the numbers do not depend on it. What is over within a second is played by this one;
        players must be such as `cloudpickle` can send. Default: this process alone, in which pairs that are made of
        compiled steps take a thread for each core.
    scheduler : str, optional
        Address of a Dask scheduler, ``"tcp://host:port"``, whose workers play.

    Returns
    -------
    Study
        Pairs that cannot play each other are left out, with a warning.

    Raises
    ------
    InvalidParameter, UnknownName
        Something that cannot be played.
    WorkerError
        Processes or a cluster that cannot be had, or are gone.
    InvalidForecast
        A player stated something that is not a probability.

    Examples
    --------
    >>> import onlinecal as oc
    >>> study = oc.play(oc.forecasters.Constant(0.5), oc.natures.Bernoulli(1.0), horizon=1000, runs=2)
    >>> study.curve("ece").mean[-1]
    np.float64(500.0)
    """
    many = isinstance(forecaster, (list, tuple)), isinstance(nature, (list, tuple))
    horizons = list(horizon) if isinstance(horizon, Iterable) else [horizon]
    rounds = max((t for t in horizons if isinstance(t, (int, np.integer))), default=None)
    cells = plan(
        [Entry.of(_named("forecaster", f)) for f in (forecaster if many[0] else [forecaster])],
        [Entry.of(_named("nature", n)) for n in (nature if many[1] else [nature])],
        horizons=horizons,
        runs=runs,
        seed=seed,
        panel=Panel.of(map(measure_of, listed(measures)), map(task_of, listed(tasks)), rounds=rounds),
        per_decade=per_decade,
        schedules=[
            Schedule(as_arrivals(arrivals), as_delays(delay))
            for delay in (delays if isinstance(delays, list | tuple) else [delays])
        ],
        people=People.of(
            [decision_maker_of(spec) for spec in listed(decision_makers)], seed if is_whole(seed) else 0
        ),
    )
    for pair in cells.incompatible:
        warnings.warn(
            f"{pair.forecaster!r} against {pair.nature!r} is not played: {pair.reason}",
            RuntimeWarning,
            stacklevel=2,
        )
    executor = Serial() if jobs is None and scheduler is None else executor_of(jobs, scheduler)
    played = {}
    with executor, Progress(sum(cell.work for cell in cells), shown=progress) as bar:
        for cell, result in play_cells(cells, bar, executor):
            if isinstance(result, Fault):
                raise result.error()
            played[id(cell)] = result
    return Study(tuple(played[id(cell)] for cell in cells))
