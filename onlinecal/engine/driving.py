"""Plays a game by lists of events: reserves what they need, and has them played by compiled code or with Python."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from onlinecal.core.errors import OnlinecalError, in_one_line
from onlinecal.engine.events import Events
from onlinecal.engine.loop import LEAST, InPython, Loop, Stopped, made_of_steps
from onlinecal.engine.python import play as play_in_python
from onlinecal.forecasters.base import Lifted
from onlinecal.natures.scalar import LiftedNature

#: rounds for which a state that grows with each of them has memory reserved
BLOCK = 1024
#: run-rounds that the compiled loop plays before it tells of its progress
SEGMENT = 2**21
#: run-rounds that are played at a time where a player is in Python, and questions whose events are listed at a time
IN_PYTHON, LISTED = 2**17, 2**14


def side(player: Any) -> Any:
    """A player as the loop takes it; None for one that states the laws or probabilities of all runs at once."""
    if made_of_steps(player):
        return player
    return InPython(player) if isinstance(player, Lifted | LiftedNature) else None


def drive(game: Any, until: int, progress: Callable[[int], None] | None) -> None:
    """Plays a `Game` until question `until` + 1 would be asked; see `Game.advance`."""
    game._check_alive()
    mine, theirs = (side(player) for player in (game.forecaster, game.nature))
    ledger = game._written(mine.grid)
    keys = game._forecast_uniforms.keys, game._outcome_uniforms.keys
    levels: float = math.inf if mine.grid is None else len(mine.grid)
    # A state that grows with every round has memory reserved before: for few rounds, but enough for all threads.
    few = mine.grows or theirs.growth(levels) > 4 * BLOCK
    most = max(BLOCK * len(game.runs), 2 * LEAST * game.threads) if few else SEGMENT
    if not game.compiled:
        most = max(min(most, IN_PYTHON), 64 * len(game.runs))
    while game.asked < until:
        last = min(until, game.asked + max(1, most // len(game.runs)))
        if not game._agenda.simple:
            # A list costs a pass through the questions that are open.
            last = min(last, game.asked + max(LISTED, game._agenda.open))
        # What is listed cannot be listed again.
        begun = not game._agenda.simple
        try:
            events = game._agenda.upto(game.asked + 1, last)
            resolved = int(events.resolved.sum())
            histories = [ledger.history(part) for part in events.parts]
            for history, rounds in zip(histories, events.resolved.tolist(), strict=True):
                history.reserve(rounds)
            _prepare(mine, events, game.asked + 1)
            mine.reserve(max(resolved, events.asked))
            theirs.reserve(max(resolved, events.asked), levels)
            game._questions.reserve(max(1, game._agenda.slots))
            log = None if game.transcripts is None else np.empty((len(game.runs), resolved, 2))
            loop = Loop(mine, theirs, keys, game._questions, game.asked, events, histories, log)
            begun = True
            if game.compiled:
                loop.advance(game.threads)
            else:
                play_in_python(loop)
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
        if progress is not None:
            progress(events.asked)


def _prepare(forecaster: Any, events: Events, number: int) -> None:
    """Prepares the forecaster for the questions that will be open."""
    try:
        forecaster.prepare(events.open, events.streams)
    except OnlinecalError:
        raise
    except Exception as error:
        raise Stopped(True, number, error) from error
