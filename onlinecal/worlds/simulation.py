"""Plays a forecaster in several runs of a world."""

from collections.abc import Iterable
from typing import Any

from onlinecal.core.transcript import Transcript
from onlinecal.core.validation import integer
from onlinecal.engine.horizon import check_horizon, check_runs, check_time
from onlinecal.engine.keeping import as_history
from onlinecal.engine.separate import Separate
from onlinecal.engine.transcripts import check_kept
from onlinecal.forecasters.base import as_forecaster
from onlinecal.rounds.protocol import check_pair
from onlinecal.worlds.base import as_world
from onlinecal.worlds.course import Course

#: of worlds: what they ask, hear and are told; raised when a simulation comes out otherwise
VERSION = 2


class Simulation(Separate):
    """A forecaster in several runs of a world; each has questions, times and outcomes of its own.

    Notes: A simulation can be pickled, and continues identically: the world is played again with the forecasts that it
    heard. So a world must depend on `market.rng` and the forecasts alone.

    Parameters
    ----------
    forecaster : Forecaster
    world : World
    horizon : int
        From 1 to 10^9 questions; those open when the next one would be asked stay so.
    runs : range
        Run r is the same in whatever batch it is played.
    seed : int
    cuts, keeps, history
        As in `onlinecal.engine.game.Game`; `cuts` are times of the world's clock.

    Attributes
    ----------
    parts : list of Course
        The runs.
    asked : int
        Questions of each run that are read now.
    """

    def __init__(
        self,
        forecaster: Any,
        world: Any,
        *,
        horizon: int,
        runs: range,
        seed: int = 0,
        cuts: Iterable[float] = (),
        keeps: Iterable[str] | None = None,
        history: Any = "exact",
    ) -> None:
        check_horizon(horizon)
        integer("", "seed", seed)
        check_runs(runs)
        check_pair(forecaster, world, horizon)
        times = tuple(sorted({check_time(cut) for cut in cuts}))
        kept = None if keeps is None else check_kept(keeps, world)
        super().__init__([
            Course(
                forecaster, world, horizon=horizon, run=run, seed=seed, cuts=times, keeps=kept,
                keeping=as_history(history),
            )
            for run in runs
        ])  # fmt: skip

    @property
    def most(self) -> int:
        """The most questions that were open at once in a run."""
        return max(part.most for part in self.parts)


def observe(forecaster: Any, world: Any, *, horizon: int, seed: int = 0, run: int = 0) -> Transcript:
    """Resolved questions of one run of a world, with their context and times.

    Parameters
    ----------
    forecaster, world
        Specifications, or plain classes or objects.
    horizon, seed, run : int
        As in `Simulation`.

    Returns
    -------
    Transcript
        In the order in which the outcomes became known.

    Raises
    ------
    InvalidParameter, InvalidForecast, InvalidData
        As from `Simulation`.

    Examples
    --------
    >>> from onlinecal.forecasters import Unchanged
    >>> from onlinecal.worlds import Queue
    >>> rounds = observe(Unchanged(), Queue(), horizon=200)
    >>> bool((rounds.known >= rounds.asked).all()), sorted(rounds.context)
    (True, ['base', 'queue'])
    """
    played = as_world(world)
    simulation = Simulation(
        as_forecaster(forecaster),
        played,
        horizon=horizon,
        runs=range(run, run + 1),
        seed=seed,
        keeps=played.reveals,
    )
    simulation.advance(horizon)
    transcripts = simulation.parts[0].transcripts
    rounds = None if transcripts is None else transcripts.of(0)
    assert rounds is not None
    return rounds
