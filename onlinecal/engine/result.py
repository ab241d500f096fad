"""The result of a game so far: Γ of its runs, transcripts and certificates."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from onlinecal.core.arrays import Floats
from onlinecal.core.errors import InvalidForecast, InvalidParameter
from onlinecal.core.joint import JointDistribution
from onlinecal.core.levels import LevelSets
from onlinecal.core.transcript import Transcript
from onlinecal.engine.history import Chosen
from onlinecal.engine.play import Question
from onlinecal.engine.steps import Player
from onlinecal.engine.transcripts import Transcripts


class Result:
    """The resolved rounds of a game: base of `Game` and of a run of a world."""

    pair: tuple[Any, Any]
    runs: range
    forecaster: Any
    cuts: list[float]
    streams: int
    groups: tuple[str, ...]
    history: Any
    transcripts: Transcripts | None
    #: whether each round counts at every point of its law, too
    of_laws = False
    #: why it is over, or ""
    _stopped: str

    def keep(self, r: int, q: Question, known: float) -> bool:
        """Keeps a resolved question of a run; False if its forecast is not on the grid."""
        part = q.part
        for group in self.groups:
            part = 2 * part + int(q.context[group])
        if not self.history.add(r, part, q.forecast, q.outcome):
            return False
        if self.of_laws:
            self.history.add_law(r, q.law, q.outcome)
        if (rounds := self.transcripts) is not None:
            context = (q.context[kind] for kind in rounds.kinds)
            stream = q.part % self.streams
            rounds.add(r, (q.number, q.forecast, q.outcome, q.time, known, stream, *context))
        return True

    def _check_alive(self) -> None:
        if self._stopped:
            raise InvalidForecast(self._stopped)

    @property
    def resolved(self) -> int:
        """The outcomes that are known, in the run with the fewest."""
        return min(self.history.rounds(r) for r in range(len(self.runs)))

    def gammas(
        self, stream: int | None = None, since: float = -math.inf, until: float = math.inf
    ) -> list[JointDistribution]:
        """Γ of each run over the rounds that are resolved, of one stream or (None) of all; needs one.

        Behind the streams come the groups. It has the questions asked from `since` to before `until`. Each of both is a
        cut or infinite.
        """
        gammas = self.known(stream, since, until)
        if not gammas:
            raise InvalidParameter("no round has been resolved; Γ needs one")
        return gammas

    def known(
        self, stream: int | None = None, since: float = -math.inf, until: float = math.inf
    ) -> list[JointDistribution]:
        """As `gammas`, and empty where no round is resolved."""
        made = (self.gamma(r, stream, since, until) for r in range(len(self.runs)))
        return [gamma for gamma in made if gamma is not None]

    def gamma(
        self, place: int, stream: int | None = None, since: float = -math.inf, until: float = math.inf
    ) -> JointDistribution | None:
        """Γ of the run at one place of `runs`; None where no round is resolved."""
        self._check_alive()
        return self.history.gamma(place, self._chosen(stream, *self.stretches(since, until)))

    def gamma_of_laws(self, place: int) -> Any:
        """Γ of a run of classes in which each round counts with its whole law; None where no round is resolved."""
        self._check_alive()
        if not self.of_laws:
            raise InvalidParameter("Γ of laws in a game without; expected laws=True at its beginning")
        return self.history.gamma_of_laws(place)

    def levels_of(self, stream: int | None = None) -> Iterator[tuple[int, LevelSets]]:
        """The first of several runs, and the level sets of their `gamma`, as `history.Each.levels` says."""
        return self.history.levels(self._chosen(stream, 0, len(self.cuts) + 1))

    def rounds_of(self, place: int, stream: int | None = None) -> Transcript | None:
        """The rounds of the run at one place, where they are kept, as `gamma`; None without any."""
        if self.transcripts is None:
            return None
        streams = len(self.pair[1].streams)
        if stream is None or stream < streams or not self.groups:
            return self.transcripts.of(place, stream)
        return self.transcripts.of(place, None, self.groups[stream - streams])

    def _chosen(self, stream: int | None, first: int, last: int) -> Chosen | None:
        """The parts of a stream, or of all, and of some stretches; None for all parts."""
        if stream is None and (first, last) == (0, len(self.cuts) + 1):
            return None
        groups, streams = len(self.groups), len(self.pair[1].streams)
        # The bit of a group, counted from the last one.
        bit = None if stream is None or stream < streams or not groups else groups - 1 - (stream - streams)

        def chosen(part: int) -> bool:
            own = part >> groups
            if not first <= own // self.streams < last:
                return False
            return stream in (None, own % self.streams) if bit is None else bool(part >> bit & 1)

        return chosen

    def stretches(self, since: float, until: float) -> tuple[int, int]:
        """Which stretches between cuts are from one time to another: from the first up to, not including, the last."""
        return self._stretches_before(since), self._stretches_before(until)

    def _stretches_before(self, cut: float) -> int:
        if math.isinf(cut):
            return 0 if cut < 0.0 else len(self.cuts) + 1
        at = bisect_right(self.cuts, cut)
        if at == 0 or self.cuts[at - 1] != cut:
            raise InvalidParameter(f"time {cut!r}: nothing begins or ends there; expected one of the cuts")
        return at

    def certificates(self) -> dict[str, Floats]:
        """Totals that the forecaster proves of its own play so far: name → (runs,) totals."""
        self._check_alive()
        if isinstance(self.forecaster, Player):
            certify = getattr(self.forecaster, "certify", None)
            return {} if certify is None else certify(self.forecaster)
        if not self.pair[0].certifies:
            return {}
        return certified_by(self.forecaster)


def certified_by(players: Iterable[Any]) -> dict[str, Floats]:
    """The totals that objects in plain Python certify, one for each run: name → (runs,)."""
    said = [player.certificates() for player in players]
    return {name: np.array([float(each[name]) for each in said]) for name in said[0]}
