"""Rounds by hand, for tests that drive a player without a game."""

from __future__ import annotations

from functools import cache

import numpy as np
from onlinecal.rounds.record import Recorder, Round, tell

from onlinecal.core.sight import Sight
from onlinecal.natures.base import NatureRound
from onlinecal.rounds.law import Law


def asked(number=1, **context):
    """The question of a round."""
    return Round(number, float(number), {kind: np.array(values, float) for kind, values in context.items()})


def played(law, atoms, outcome, *, question=None):
    """A resolved round in which these atoms were played, whatever `law` says of them, on the grid that it has."""
    atoms = np.atleast_1d(atoms)
    certain = Law(len(atoms), 1, law.grid)
    certain.atoms[:, 0] = atoms
    return drawn(certain, np.zeros(len(atoms), np.int64), outcome, question=question)


def drawn(law, places, outcome, *, question=None):
    """A resolved round in which the atoms at these places of the law were drawn."""
    round = question or asked()
    _recorder(len(law.atoms), None if law.grid is None else law.grid.tobytes()).record(round, law)
    tell(round, np.atleast_1d(places).astype(np.int64), np.atleast_1d(outcome).astype(np.int64))
    return round


@cache
def _recorder(runs, grid):
    """One for all rounds of a kind: it makes room for many rounds at a time."""
    return Recorder(runs)


def stated(law, number=1, sight=Sight.LAW):
    """A round as a nature sees it when it moves; the first atom of each law was drawn."""
    round = asked(number)
    Recorder(len(law.atoms)).draw(round, law, np.zeros((1, len(law.atoms))), 0)
    return NatureRound(round, "nature", sight)


def question(number=1):
    """A round as a nature is asked for context, or moves that looks at nothing."""
    return NatureRound(asked(number), "nature", Sight.NOTHING)


def heard(forecast, outcome, sight=Sight.HISTORY):
    """A past round as a nature sees it, of forecasts without a grid."""
    law = Law(len(np.atleast_1d(forecast)), 1)
    return NatureRound(played(law, np.atleast_1d(forecast).astype(float), outcome), "nature", sight)
