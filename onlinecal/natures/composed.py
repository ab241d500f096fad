"""Natures made of other natures, all at once or one after the other; `streams` has one with questions of each."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import zip_longest
from typing import Any

import numpy as np

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.expressions import check_expression, depends_on_horizon
from onlinecal.core.guarantee import Sight
from onlinecal.core.specification import allow, expression, part, parts
from onlinecal.core.strategy import some, strategy_name
from onlinecal.core.streams import Stream
from onlinecal.engine import steps
from onlinecal.engine.loop import hear_nothing, say_nothing
from onlinecal.engine.parts import begin_part
from onlinecal.engine.steps import LEARN, REVEAL, Run, compiled, inner, kernel, note, one_of, shared
from onlinecal.natures.base import Nature, OfNatures, check_weights


def start_part(whole: str, name: str, of: Nature, rounds: int, horizon: int, stream: Stream) -> steps.Nature:
    """A part at its beginning, which plays this number of rounds of a whole."""
    if of.length is not None and rounds > of.length:
        raise InvalidParameter(
            f"{whole}: {rounds} of {horizon} rounds fall to {name} = {strategy_name(of)}, which has {of.length}; "
            "expected at most that"
        )
    return begin_part("nature", of, max(rounds, 1), stream)


#: the note where each round is that of one part: the part, and its number of the round. Then come the kinds of context
#: that all parts reveal, and the note of the part
PART_NOW, NUMBER_OF, KINDS = range(3)


def one_at_a_time(
    choose: Any,
    parts: Sequence[steps.Nature],
    kinds: Sequence[str],
    shared: Sequence[float] = (),
    **more: Any,
) -> steps.Nature:
    """A nature of which each round is that of one part: `choose(run, number)` is the part, and its number of the round.

    The parts' common `kinds` of context are revealed. Its shared numbers begin with the kernels of each part.
    """
    first = KINDS + len(kinds)
    places = [{kind: first + place for place, kind in part.reveals.items()} for part in parts]
    own = [steps_of(part, tuple(at[kind] for kind in kinds)) for part, at in zip(parts, places, strict=True)]
    each = list(dict.fromkeys(own))
    move, hear, reveal = steps_one_at_a_time(choose, tuple(each), first)
    reveals = {KINDS + i: kind for i, kind in enumerate(kinds)} | more.pop("reveals", {})
    return steps.Nature(
        move,
        shared=[*map(each.index, own), *shared],
        hear=hear if any(part.hear is not None for part in parts) else None,
        reveal=reveal if reveals else None,
        reveals=reveals,
        times=sorted({first + place for part in parts for place in part.times}),
        note=first + max(part.note for part in parts),
        parts=parts,
        **more,
    )


def steps_of(part: steps.Nature, places: tuple[int, ...] = ()) -> tuple[Any, ...]:
    """Kernels that call the steps of a part, as far as its sight allows; `places` in the whole's note are revealed."""
    sees = part.sight >= Sight.LAW, part.sight >= Sight.DRAW
    return kernels_of(part.move, part.hear, part.reveal, *sees, places)


@cache
def kernels_of(
    move: Any, hear: Any, reveal: Any, sees_law: bool, sees_draw: bool, places: tuple[int, ...]
) -> tuple[Any, ...]:
    """The kernels of `steps_of`; `first` is where the part's note begins in that of the whole."""
    hear_step, shown = hear or compiled(LEARN, hear_nothing), np.array(places, np.int64)
    reveal_step = reveal or compiled(REVEAL, say_nothing)

    @kernel
    def move_part(run, k, first, size, forecast, number):
        part = inner(run, k, first, 0)
        return move(part, size if sees_law else 0, forecast if sees_draw else np.nan, number)

    @kernel
    def tell_part(run, k, first, forecast, outcome, number):
        return hear_step(inner(run, k, first, 0), -1, forecast, outcome, number)

    @kernel
    def reveal_part(run, k, first, number):
        code, noted = reveal_step(inner(run, k, first, 0), number), note(run)
        for i in range(len(shown)):
            noted[KINDS + i] = noted[shown[i]]
        return code

    return move_part, tell_part, reveal_part


@cache
def steps_one_at_a_time(choose: Any, each: tuple[Any, ...], first: int) -> tuple[Any, ...]:
    """The steps of a nature of which each round is that of one part. Shared are the places of the parts' kernels."""
    moves, tells, reveals = (one_of(kernels) for kernels in zip(*each, strict=True))

    @kernel
    def begin_round(run, number):
        noted, (k, own) = note(run), choose(run, number)
        noted[PART_NOW], noted[NUMBER_OF] = k, own
        return k, own, int(shared(run)[k])

    def move(run: Run, size: int, forecast: float, number: int) -> float:
        k, own, which = begin_round(run, number)
        return moves(which, run, k, first, size, forecast, own)

    def hear(run: Run, place: int, forecast: float, outcome: int, number: int) -> int:
        k, own = int(note(run)[PART_NOW]), int(note(run)[NUMBER_OF])
        return tells(int(shared(run)[k]), run, k, first, forecast, outcome, own)

    def reveal(run: Run, number: int) -> int:
        k, own, which = begin_round(run, number)
        return reveals(which, run, k, first, own)

    return move, hear, reveal


@dataclass(frozen=True)
class Mixture(OfNatures):
    """Mixes natures: each round is that of one of them, drawn with fixed probabilities, so q_t = Σ_i w_i q_t^i.

    Information: Has the largest sight of its parts. Each part is shown only what its own sight allows, and hears of
    every round. Reveals nothing, as a part's context would not be about the mixture's q_t.

    Parameters
    ----------
    natures : sequence of Nature
        At least one. In a scenario, a list of tables with a name.
    weights : sequence of float, optional
        One for each, in [0, 10^9] and not all 0; they are scaled to sum to 1. Default: equal.
    """

    allowed = allow(natures=parts("nature"))

    natures: tuple[Nature, ...]
    weights: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.weights is not None:
            check_weights(self.weights, "nature", len(self.natures))

    @property
    def length(self) -> int | None:
        return min((part.length for part in self.natures if part.length is not None), default=None)

    def start(self, horizon: int, stream: Stream) -> steps.Nature:
        players = [
            begin_part("nature", part, horizon, stream.child(f"part {i}"))
            for i, part in enumerate(self.natures)
        ]
        own = [steps_of(player) for player in players]
        each = list(dict.fromkeys(own))
        weights = np.array(self.weights or [1.0] * len(players), np.float64)
        notes = np.cumsum([0] + [player.note for player in players])
        move, hear = steps_of_mixture(tuple(each))
        hears = any(player.hear is not None for player in players)
        return steps.Nature(
            move, shared=[len(players), *weights / weights.sum(), *map(each.index, own), *notes[:-1]],
            sight=self.sight, hear=hear if hears else None, note=int(notes[-1]), parts=players,
            times=[int(notes[k]) + place for k, player in enumerate(players) for place in player.times],
        )  # fmt: skip


@cache
def steps_of_mixture(each: tuple[Any, ...]) -> tuple[Any, ...]:
    """The steps of a mixture. Shared: how many parts; the weights, the places of kernels, where the notes begin."""
    moves, tells, _ = (one_of(kernels) for kernels in zip(*each, strict=True))

    def move(run: Run, size: int, forecast: float, number: int) -> float:
        given, q = shared(run), 0.0
        many = int(given[0])
        for k in range(many):
            which, first = int(given[1 + many + k]), int(given[1 + 2 * many + k])
            own = moves(which, run, k, first, size, forecast, number)
            if not 0.0 <= own <= 1.0:
                return own  # weighed, it could hide among the others
            # Only rounding could bring the sum above 1.
            q = min(q + given[1 + k] * own, 1.0)
        return q

    def hear(run: Run, place: int, forecast: float, outcome: int, number: int) -> int:
        given = shared(run)
        many = int(given[0])
        for k in range(many):
            which, first = int(given[1 + many + k]), int(given[1 + 2 * many + k])
            code = tells(which, run, k, first, forecast, outcome, number)
            if code < 0:
                return code
        return 0

    return move, hear


@dataclass(frozen=True)
class Switch(OfNatures):
    """One nature for some rounds, then another.

    Each has a game of its own: `first` with `at` rounds as its horizon, `then` with the T − `at` that remain. `then`
    counts rounds from 1 and hears of no earlier ones.

    Information: Has the larger sight of its parts; each is shown only what its own allows. Reveals the kinds of context
    of both.

    Parameters
    ----------
    first, then : Nature
        In a scenario, tables with a name.
    at : float or str, default "T/2"
        How many rounds `first` plays, from 0 to 10^12; a number or an expression in T, rounded to the nearest. If it
        is T or more, `then` never plays.
    """

    allowed = allow(first=part("nature"), then=part("nature"), at=expression(0.0, 1e12))

    first: Nature
    then: Nature
    at: float | str = "T/2"

    @property
    def reveals(self) -> frozenset[str]:  # type: ignore[override]  # read only, as all do
        return self.first.reveals & self.then.reveals

    @property
    def streams(self) -> tuple[str, ...]:
        """Those of both, by their numbers; none where a part has none."""
        if not (self.first.streams and self.then.streams):
            return ()
        pairs = zip_longest(self.first.streams, self.then.streams, fillvalue="")
        return tuple(a if a == b else " → ".join(filter(None, (a, b))) for a, b in pairs)

    @property
    def needs_horizon(self) -> bool | None:  # type: ignore[override]
        return some([depends_on_horizon(self.at), super().needs_horizon])

    def start(self, horizon: int, stream: Stream) -> steps.Nature:
        at = min(round(check_expression("at", self.at, 0.0, 1e12, horizon)), horizon)
        players = [
            start_part("switch", name, of, rounds, horizon, stream.child(name))
            for name, of, rounds in (("first", self.first, at), ("then", self.then, horizon - at))
        ]
        streams_of = None
        if self.streams:
            streams_of = partial(_streams_now, players[0].streams_of, players[1].streams_of, at)
        kinds = sorted(self.reveals)
        return one_at_a_time(now, players, kinds, [at], sight=self.sight, streams_of=streams_of)


@kernel
def now(run, number):
    """The part that plays a round, and its number of it. The rounds of the first one are shared, behind two numbers."""
    at = int(shared(run)[2])
    return (0, number) if number <= at else (1, number - at)


def _streams_now(first: Any, then: Any, at: int, low: int, high: int) -> Any:
    """The streams of some rounds, of which the first `at` are those of the first part."""
    early = [first(low, min(high, at))] if low <= at else []
    late = [then(max(low, at + 1) - at, high - at)] if high > at else []
    return np.concatenate(early + late)
