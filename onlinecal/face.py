"""The face in Python: play, and look at what came out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from onlinecal.core.errors import InvalidParameter, StoreError
from onlinecal.core.progress import Progress
from onlinecal.core.validation import is_whole
from onlinecal.decision_makers.tenures import People
from onlinecal.forecasters.base import as_forecaster
from onlinecal.natures import as_nature
from onlinecal.report.curves import Study
from onlinecal.scenario import decision_maker_of, measure_of, named, task_of
from onlinecal.schedules import Schedule, as_arrivals, as_delays
from onlinecal.study.gammas import KEEP
from onlinecal.study.panel import Panel, listed
from onlinecal.study.plan import Cell, Entry, plan
from onlinecal.study.played import Given
from onlinecal.study.run import play_cells
from onlinecal.study.store import Store


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
    keep: Any = KEEP,
    progress: bool | None = None,
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
    keep : int, "all" or "none", default 4096
        What is kept of each run's Γ at its checkpoints, for `Played.gamma` and for what is asked later: exactly Γ with
        at most so many levels, and all of forecasters with a grid. The predictions of others are moved to a grid of so
        many points, and how far is kept with them. Totals do not depend on it.
    progress : bool, optional
        A bar on stderr. Default: where that is a terminal, for what takes over two seconds.

    Returns
    -------
    Study

    Raises
    ------
    InvalidParameter, UnknownName
        Something that cannot be played.
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
        keep=keep,
    )
    # Before the game, whatever becomes of a plug-in's source meanwhile.
    origins = [_origin(cell) for cell in cells]
    with Progress(sum(cell.work for cell in cells), shown=progress) as bar:
        played = [played for _, played in play_cells(cells, bar)]
    return Study(tuple(replace(cell, origin=origin) for cell, origin in zip(played, origins, strict=True)))


def _origin(cell: Cell) -> Given | None:
    """What the numbers of a cell depend on; None where that cannot be told."""
    try:
        return Given(cell.content, cell.held)
    except InvalidParameter:
        return None


def load(path: Path | str) -> Study:
    """The study in a results file: what `play` would have returned, of the cells that are finished.

    What is kept of level sets is read from the file when it is asked for.

    Parameters
    ----------
    path : path
        A file that ``onlinecal run`` or `Study.save` has made.

    Raises
    ------
    StoreError
        There is none, it is not one of ours or damaged, or nothing in it is finished.
    """
    path = Path(path)
    with Store.open(path) as store:
        study = Study.of(store.results())
    if not study.cells:
        raise StoreError(f"{path} has no finished cells yet; go on with: onlinecal run SCENARIO --resume")
    return study
