"""Plays events of a game: reserves what they need, has them played, and takes note of what came of it."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from onlinecal.core.errors import OnlinecalError, in_one_line
from onlinecal.engine.events import Events
from onlinecal.engine.loop import LEAST, Stopped

#: rounds for which a state that grows with each of them has memory reserved
BLOCK = 1024
#: run-rounds that are played before the game tells of its progress
SEGMENT = 2**21
#: run-rounds that are played at a time where a player is in Python, and questions whose events are listed at a time
IN_PYTHON, LISTED = 2**17, 2**14


def drive(game: Any, until: int, progress: Callable[[int], None] | None) -> None:
    """Plays a `Game` until question `until` + 1 would be asked; see `Game.advance`."""
    game._check_alive()
    mine, theirs, agenda, runs = game.forecaster, game.nature, game._agenda, len(game.runs)
    # A state that grows with every round has memory reserved before: for few rounds, but enough for all threads.
    few = mine.grows or theirs.growth(_levels(mine)) > 4 * BLOCK
    most = max(BLOCK * runs, 2 * LEAST * game.threads) if few else SEGMENT
    if not game.compiled:
        most = max(min(most, IN_PYTHON), 64 * runs)
    while game.asked < until:
        last = min(until, game.asked + max(1, most // runs))
        if agenda.lag is None:
            # A list costs a pass through the questions that are open.
            last = min(last, game.asked + max(LISTED, agenda.open))
        # What is listed cannot be listed again.
        events = play(game, partial(agenda.upto, game.asked + 1, last), begun=agenda.lag is None)
        if progress is not None:
            progress(events.asked)


def play(
    game: Any, listed: Callable[[], Events], *, begun: bool, whole: bool = False, look: bool = False
) -> Events:
    """Plays the events that `listed` returns.

    Parameters
    ----------
    game : Game
    listed : callable
    begun : bool
        Whether the game is over if `listed` fails.
    whole : bool, default False
        Whether forecasters state the whole law where the atom that is drawn would do.
    look : bool, default False
        Whether the events change nothing.
    """
    mine, theirs = game.forecaster, game.nature
    try:
        events = listed()
        ledger = game._written()
        resolved = int(events.resolved.sum())
        histories = [ledger.history(part) for part in events.parts]
        for history, rounds in zip(histories, events.resolved.tolist(), strict=True):
            history.reserve(rounds)
        _prepare(mine, events, game.asked + 1)
        mine.reserve(max(resolved, events.asked))
        theirs.reserve(max(resolved, events.asked), _levels(mine))
        game._loop.reserve(max(1, game._agenda.slots + look))
        log = None
        if game.transcripts is not None:
            log = np.empty((len(game.runs), resolved, 2 + len(game.transcripts.kinds)))
        begun = begun or not look
        game._loop.play(game.asked, events, histories, log, game.threads, whole)
        if not look:
            game.asked, game.resolved = game.asked + events.asked, game.resolved + resolved
        for history, rounds in zip(histories, events.resolved.tolist(), strict=True):
            history.played(rounds)
        if game.transcripts is not None:
            game.transcripts.extend(events.told(game.asked), log)
    except (Stopped, MemoryError) as stop:
        error = game._failed(stop, stop.number if isinstance(stop, Stopped) else game.asked + 1)
        # Some runs have played on, others not; nothing more can be asked of this game.
        if begun:
            game._stopped = str(error)
        raise error from getattr(stop, "fault", stop)
    except BaseException as error:
        if begun:
            game._stopped = in_one_line(error, str) or f"a round after round {game.asked} was interrupted"
        raise
    return events


def _levels(forecaster: Any) -> float:
    return math.inf if forecaster.grid is None else len(forecaster.grid)


def _prepare(forecaster: Any, events: Events, number: int) -> None:
    """Prepares the forecaster for the questions that come."""
    try:
        forecaster.prepare(events.asked, events.open, events.streams)
    except OnlinecalError:
        raise
    except Exception as error:
        raise Stopped(True, number, error) from error
