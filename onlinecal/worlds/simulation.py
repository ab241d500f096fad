"""Plays a forecaster in several runs of a world."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.joint import JointDistribution, Transcript
from onlinecal.core.validation import count, is_whole
from onlinecal.engine.horizon import check_horizon, check_runs, check_time
from onlinecal.engine.keeping import as_history
from onlinecal.engine.transcripts import check_kept
from onlinecal.forecasters.base import as_forecaster
from onlinecal.rounds.protocol import check_pair
from onlinecal.worlds.base import as_world
from onlinecal.worlds.course import Course

#: of worlds: what they ask, hear and are told; raised when a simulation comes out otherwise
VERSION = 1


class Simulation:
    """A forecaster in several runs of a world; each has questions, times and outcomes of its own.

    Parameters
    ----------
    forecaster : Forecaster
    world : World
    horizon : int
        Questions of a run, from 1 to 10^9; what is open when the next one would be asked, stays so.
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

    Notes
    -----
    A simulation can be pickled between calls, and continues identically: the world is played again with the forecasts
    that it heard. So a world must depend on `market.rng` and the forecasts alone.
    """

    compiled = False

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
        if not is_whole(seed):
            raise InvalidParameter(f"seed = {seed!r}; expected an integer")
        check_runs(runs)
        check_pair(forecaster, world, horizon)
        self.horizon, self.runs, self.asked = horizon, runs, 0
        times = tuple(sorted({check_time(cut) for cut in cuts}))
        kept = None if keeps is None else check_kept(keeps, world)
        self.parts = [
            Course(
                forecaster, world, horizon=horizon, run=run, seed=seed, cuts=times, keeps=kept,
                keeping=as_history(history),
            )
            for run in runs
        ]  # fmt: skip

    def advance(self, until: int, progress: Callable[[int], None] | None = None) -> None:
        """Plays each run until its question `until` + 1 would be asked; see `Course.advance` for errors.

        Parameters
        ----------
        until : int
            From 0 to the horizon.
        progress : callable, optional
            Told the number of questions asked in each run since it was last told.
        """
        if count("until", until, least=0) > self.horizon:
            raise InvalidParameter(f"question {until} is beyond the horizon {self.horizon}")
        if until <= self.asked:
            return
        for part in self.parts:
            part.advance(until)
        before, self.asked = self.asked, until
        if progress is not None:
            progress(until - before)

    @property
    def most(self) -> int:
        """The most questions that were open at once in a run."""
        return max(part.most for part in self.parts)

    @property
    def resolved(self) -> int:
        """The outcomes that are known in the run with the fewest."""
        return min(part.resolved for part in self.parts)

    def known(self, stream: int | None = None) -> list[JointDistribution]:
        """Γ of each run in which an outcome is known."""
        return [gamma for part in self.parts for gamma in part.each(stream)]

    def gammas(self, stream: int | None = None) -> list[JointDistribution]:
        """Γ of each run; needs a known outcome in each."""
        gammas = self.known(stream)
        if len(gammas) < len(self.parts):
            raise InvalidParameter("a run has no known outcome; Γ needs one")
        return gammas


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
