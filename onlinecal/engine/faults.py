"""Errors that stop a game: they name the player, the round and the run."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from onlinecal.core.errors import in_one_line
from onlinecal.engine import loop
from onlinecal.engine.class_seats import bad_places
from onlinecal.engine.law import Unplayable, brief, failed
from onlinecal.engine.outcomes import bad_q
from onlinecal.engine.play import Stopped, not_a_member
from onlinecal.engine.run import NOTE, VALUES, WEIGHTS


def stopped_by(game: Any, draws: bool, fault: int, run: int, number: int, value: float) -> Stopped:
    """How a player stopped a run of a game in the loop; `draws`: whether a step of the forecaster does."""
    mine, size = game.forecaster, int(value) if math.isfinite(value) else 0
    if fault == loop.BAD_SIZE:
        refusal = mine.refusal if size == 0 and mine.refusal else None
        error = Unplayable(*(refusal or (f"stated a law of {size} atoms", f"1 to {mine.size}")))
    elif fault == loop.BAD_LAW:
        row = mine.rows[run]
        values, weights = (row[at : at + size] for at in row.view(np.int64)[[VALUES, WEIGHTS]].tolist())
        what = f"stated the forecasts {brief(values)} with weights {brief(weights)}"
        if mine.draw is not None and draws:
            what = f"drew the forecast {brief(value)}"
        error = Unplayable(what, "values in [0, 1] and weights ≥ 0 that sum to 1")
        if game.classes:
            error = bad_places(values, weights, len(mine.table))
        if math.isnan(value) and mine.refusal:  # a step `draw` that refuses
            error = Unplayable(*mine.refusal)
    elif fault == loop.OFF_GRID:
        error = Unplayable(f"stated the forecast {value!r}", "a point of its grid")
    elif fault == loop.BAD_Q:
        error = Unplayable(f"stated q = {brief(value)}", "a probability in [0, 1]")
        if game.classes:
            row = game.nature.rows[run]
            first = int(row.view(np.int64)[NOTE])
            error = bad_q(row[first : first + game.classes], game.classes)
    elif fault == loop.BAD_CONTEXT:
        error = Unplayable("revealed nothing", "its context")
    elif fault == loop.BAD_GROUP:
        error = not_a_member(game.groups[int(value)])
    else:
        error = Unplayable("refused a round that it had played", "to be told it")
    return Stopped(fault in loop.OF_FORECASTER, number, error, run)


class Stops:
    """Makes an error that stops a game name the player. The game is over if the rounds had `begun`."""

    def __init__(self, game: Any, begun: bool) -> None:
        self.game, self.begun = game, begun

    def __enter__(self) -> None:
        self.game._stopped = (
            "a player asks for a round of the game in which it is asked; expected a game of its own"
        )

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        game = self.game
        game._stopped = ""
        if error is None:
            return
        if isinstance(error, MemoryError):
            error = Stopped(True, game.asked + 1, error)
        if isinstance(error, Stopped):
            role, name = ("forecaster", game.names[0]) if error.forecaster else ("nature", game.names[1])
            said = failed(error.fault, f"{role} {name!r}", error.number, game.runs, error.run)
            # Some runs have played on, others not; nothing more can be asked of this game.
            game._stopped = str(said) if self.begun else ""
            raise said from error.fault
        interrupted = f"a round after round {game.asked} was interrupted"
        game._stopped = (in_one_line(error, str) or interrupted) if self.begun else ""
