"""The face in Python: play, and look at what came out."""

import json
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from onlinecal.core.errors import (
    CellError,
    InvalidParameter,
    OnlinecalError,
    WorkerError,
    in_one_line,
)
from onlinecal.core.progress import Progress
from onlinecal.core.strategy import named_table, title
from onlinecal.naming import as_strategy, found, kind_of, with_strategies
from onlinecal.study.curves import Study
from onlinecal.study.executors import executor_of, play_cells
from onlinecal.study.gammas import KEEP
from onlinecal.study.planning import Cell, Entry
from onlinecal.study.played import Origin
from onlinecal.study.run import result
from onlinecal.study.store import Store
from onlinecal.sweeping import Named, lists_are_values, planned, strategies
from onlinecal.sweeping import sweep as expand


def sweep(strategy: Any, /, *, label: str | None = None, **parameters: Any) -> list[Entry]:
    """A forecaster or nature with every combination of several values of its parameters, for `play`.

    Parameters
    ----------
    strategy : class, function, functools.partial, name or table
        As in `play`; parameters of a table and those beside it go together.
    label : str, optional
        What labels begin with. Default: the name, and the parameters that have one value if there is room.
    **parameters
        Each a value, or several: ``{"each": […]}`` of a list, tuple, range or array. A range of numbers is
        ``{"from": 0.1, "to": 0.9, "steps": 9}``, maybe with ``"spacing": "log"``. A bare list is one value. Tables with
        a name, ``{"name": "forecast_hedging", "m": {"each": [10, 20]}}``, are strategies, which may be swept
        themselves.

    Returns
    -------
    list of Entry
        Each a strategy and its label.

    Raises
    ------
    InvalidParameter, UnknownName

    Examples
    --------
    >>> import onlinecal as oc
    >>> [entry.label for entry in oc.sweep("forecast_hedging", m={"each": ["T^(1/3)", 20]})]
    ['forecast hedging, m = T^(1/3)', 'forecast hedging, m = 20']
    >>> study = oc.play(oc.sweep(oc.forecasters.Constant, p={"each": [0.2, 0.5]}), "drift", horizon=100, runs=2)
    >>> study.forecasters
    ['constant, p = 0.2', 'constant, p = 0.5']
    """
    if isinstance(strategy, Mapping):
        strategy, table = named_table("strategy", strategy)
        if twice := sorted(table.keys() & parameters.keys()):
            raise InvalidParameter(f"{strategy!r}: {twice[0]} is in the table and beside it; expected one")
        label, parameters = table.pop("label", label), table | parameters
    what = "forecaster or nature"
    kind, thing = found(what, strategy) if isinstance(strategy, str) else (kind_of(strategy), strategy)
    if not kind:
        raise InvalidParameter(f"{in_one_line(thing)} is neither a forecaster nor a nature; expected one")
    inner = strategies(kind)
    top = Named(title(thing), lambda table: as_strategy(kind, thing, with_strategies(kind, thing, table)))
    with lists_are_values():
        return expand(kind, parameters, lambda table: inner(table) if "name" in table else top).entries(label)


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
    laws: bool = False,
    progress: bool | None = None,
    jobs: int | None = None,
    scheduler: str | None = None,
) -> Study:
    """Plays forecasters against natures and returns the curves.

    Parameters
    ----------
    forecaster : Forecaster, its name or table, plain class, object or partial, what `sweep` returns, or list of them
        A class with ``forecast()`` and ``update(forecast, outcome)`` plays as it is, one object a run. Parameters are
        given by ``functools.partial(Mine, rate=0.1)``. Of an object ``Mine(0.1)`` each run has a deep copy. A name
        (``"forecast_hedging"``, or ``"module:Class"``) has its default parameters. A table as in a scenario,
        ``{"name": "forecast_hedging", "m": 8}``, has parameters, each with one value or several, as in `sweep`.
        ``"all"`` stands for all of the package that need no parameter, ``"all hedging"`` for those of a family.
    nature : Nature, its name or table, plain class, object or partial, what `sweep` returns, or list of them
        The same; a plain class has ``probability()``, and ``update(forecast, outcome)`` if it is to be told the past.
        With ``sight = "law"`` or ``"draw"`` it has ``probability(round)`` (see `onlinecal.natures.Scalar`). A world
        (`onlinecal.worlds`), or a plain class with ``run(env, market)``, asks and answers at times of its own.
    horizon : int or sequence of int
        A number: one game, read at geometric checkpoints. A list: a game of each, tuned to its own horizon and read
        at its end. This is how the growth rate of a tuned forecaster is measured. They are fresh games, unless the
        nature replays recorded outcomes.
    runs : int, default 16
        Independent runs.
    seed : int, default 0
    measures, tasks : iterable
        Names, tables with options, functions of Γ, or tasks (see `Panel.of`); a single one stands for itself.
        ``"all"`` stands for all other measures that these games can have. An option
        with several values, as in `sweep`, gives several. ``"module:function"`` names a measure, a task, or a function
        that makes a task of the options.
    per_decade : int, default 8
        Checkpoints for each factor of ten, where the horizon is a number; from 1 to 100.
    arrivals : Arrivals, or its name or table
        When questions are asked (see `onlinecal.schedules`). Default: one a unit of the clock.
    delays : number, Delays, or its name or table; or a list of them
        How long after its question an outcome becomes known; a game of each. Default: at once. Totals are over the
        questions with a known outcome; `Played.open` says how many are not.
    decision_makers : list of mappings, `Person`s or tasks
        Those that join and leave (see `Group` in `onlinecal.decisions.people`); `Played.people` has their accounts.
    keep : int, "all" or "none", default 4096
        Which Γ of each run at its checkpoints are kept, for `Played.gamma` and for later questions. They are those with
        at most this number of levels, and all of forecasters with a grid. Totals do not depend on it.
    laws : bool, default False
        Of games of classes: whether there are columns "of laws", too. Their Γ has each round at every point of its law,
        with its probability. Forecasters are then drawn from stated laws, also where they could draw faster.
    progress : bool, optional
        A bar on stderr. Default: where that is a terminal, for what takes over two seconds.
    jobs : int, optional
        How many processes play; the numbers do not depend on it. Players must be such as `cloudpickle` can send.
        Default: this process alone, in which pairs that are made of compiled steps take a thread for each core.
    scheduler : str, optional
        Address of a Dask scheduler, ``"tcp://host:port"``; its workers play.

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
    several = isinstance(horizon, Iterable) and not isinstance(horizon, str)
    horizons: list[Any] = list(horizon) if several else [horizon]  # type: ignore[arg-type]
    cells = planned(
        forecaster, nature, horizons=horizons, ends=several, runs=runs, seed=seed,
        measures=measures, tasks=tasks, per_decade=per_decade, arrivals=arrivals, delays=delays,
        decision_makers=decision_makers, keep=keep, laws=laws,
    )  # fmt: skip
    for pair in cells.incompatible:
        warnings.warn(
            f"{pair.forecaster!r} against {pair.nature!r} is not played: {pair.reason}",
            RuntimeWarning,
            stacklevel=2,
        )
    executor = executor_of(jobs, scheduler)
    played = {}
    # Before the game, whatever becomes of a plug-in's source meanwhile.
    origins = [_origin(cell) for cell in cells]
    with executor, Progress(cells.work, shown=progress) as bar:
        for cell, found in play_cells(cells, bar, executor):
            if isinstance(found, OnlinecalError):
                if isinstance(found, CellError | WorkerError):  # the two that name no cell
                    found.args = (f"{cell.players} at T = {cell.horizon}: {found}",)
                raise found
            played[id(cell)] = result(cell, found)
    return Study(
        tuple(replace(played[id(cell)], origin=origin) for cell, origin in zip(cells, origins, strict=True))
    )


def _origin(cell: Cell) -> Origin | None:
    """The origin of the numbers of a cell; None where that cannot be told."""
    try:
        return Origin(json.dumps(cell.content, sort_keys=True), cell.held)
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
        It is missing, not one of ours or damaged, or nothing in it is finished.
    """
    with Store.open(Path(path)) as store:
        store.insist()
        return Study.of(store)
