"""Several natures at once, each with questions of its own."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.strategy import strategy_label, strategy_name
from onlinecal.core.streams import Stream
from onlinecal.natures._composed import streams
from onlinecal.natures.base import Nature, OfNatures, check_list, check_nature, check_weights
from onlinecal.rounds.law import Floats, Ints
from onlinecal.rounds.players import CompiledNature
from onlinecal.rounds.protocol import begin

#: rounds whose streams are drawn at a time when they are counted before the game
COUNTED = 2**20


@dataclass(frozen=True)
class Streams(OfNatures):
    """Several natures at once: each question is one of theirs, and reveals which one's.

    Each part plays the game of its own questions, counted from 1, with their number as its horizon. The order of the
    parts is the same in all runs.

    Parameters
    ----------
    parts : sequence of Nature
        At least one. In a scenario, a list of tables with a name.
    order : {"turns", "random"}, default "turns"
        Whether they take turns, the first one first, or each question is drawn independently.
    weights : sequence of float, optional
        With "random": how likely each is, ≥ 0 and not all 0; they are scaled to sum to 1. Default: equal.
    labels : sequence of str, optional
        What the streams are called, all different. Default: the labels of the parts, numbered where they are equal.

    Attributes
    ----------
    streams : tuple of str
        Their names, in the order of the indices.

    Information
    -----------
    Has the largest sight of its parts; each part is shown only what its own sight allows, of its own questions. Reveals
    ``stream``, the index of the part from 0, and the kinds of context that all parts reveal. Under "random" a game
    begins with a count of the questions of each, in time of order T.

    Source
    ------
    Folklore.

    Examples
    --------
    >>> from onlinecal.natures import Bernoulli, Drift
    >>> Streams((Bernoulli(0.2), Drift(), Drift())).streams
    ('bernoulli (q=0.2)', 'drift 1', 'drift 2')
    """

    parts: tuple[Nature, ...]
    order: Literal["turns", "random"] = "turns"
    weights: tuple[float, ...] | None = None
    labels: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        check_list("parts", self.parts, "natures")
        for i, part in enumerate(self.parts):
            check_nature(f"parts[{i}]", part)
            if "stream" in part.reveals:
                raise InvalidParameter(
                    f"parts[{i}] = {strategy_name(part)} has streams of its own; expected its parts beside the others"
                )
        object.__setattr__(self, "parts", tuple(self.parts))
        if self.order not in ("turns", "random"):
            raise InvalidParameter(f"order = {self.order!r}; expected 'turns' or 'random'")
        if self.weights is not None:
            self._check_weights()
        if self.labels is not None:
            self._check_labels()

    def _check_weights(self) -> None:
        if self.order != "random":
            raise InvalidParameter(
                f"weights = {self.weights!r} with order = {self.order!r}; expected order = 'random', or no weights"
            )
        weights = check_weights(self.weights, "part", len(self.parts))
        object.__setattr__(self, "weights", weights)

    def _check_labels(self) -> None:
        labels = check_list("labels", self.labels, "texts, one a part", len(self.parts))
        if not all(isinstance(label, str) and label for label in labels) or len(set(labels)) < len(labels):
            raise InvalidParameter(f"labels = {labels!r}; expected texts that are all different")
        object.__setattr__(self, "labels", labels)

    @property
    def streams(self) -> tuple[str, ...]:
        """The names of the parts."""
        if self.labels is not None:
            return self.labels
        names = [strategy_label(part) for part in self.parts]
        many, seen, found = Counter(names), Counter[str](), []
        for name in names:
            seen[name] += 1
            found.append(f"{name} {seen[name]}" if many[name] > 1 else name)
        return tuple(found)

    @property
    def reveals(self) -> frozenset[str]:  # type: ignore[override]
        return frozenset.intersection(*(frozenset(part.reveals) for part in self.parts)) | {"stream"}

    @property
    def length(self) -> int | None:
        if self.order == "random":
            return None
        many = len(self.parts)
        lengths = [many * part.length + i for i, part in enumerate(self.parts) if part.length is not None]
        return min(lengths, default=None)

    @property
    def _parts(self) -> dict[str, Nature]:
        return {f"parts[{i}]": part for i, part in enumerate(self.parts)}

    def start(self, horizon: int, stream: Stream) -> CompiledNature:
        many = len(self.parts)
        if self.order == "turns":
            order: _Turns | _Drawn = _Turns(many)
        else:
            weights = np.array(self.weights if self.weights is not None else [1.0] * many, np.float64)
            order = _Drawn(stream.common("order"), weights)
        players = []
        for i, (part, rounds) in enumerate(zip(self.parts, order.shares(horizon), strict=True)):
            if part.length is not None and rounds > part.length:
                raise InvalidParameter(
                    f"streams: {rounds} of {horizon} rounds fall to parts[{i}] = {strategy_name(part)}, which has "
                    f"{part.length}; expected at most that"
                )
            players.append(begin("nature", part, max(rounds, 1), stream.child(f"part {i}")))
        return streams(players, sorted(self.reveals), self.sight, order.whose, *order.drawn)


class _Turns:
    """One part after the other."""

    #: the arguments of the steps
    drawn: tuple[Any, ...] = ()

    def __init__(self, many: int) -> None:
        self.many = many

    def whose(self, first: int, last: int) -> Ints:
        """The parts of some rounds."""
        return np.arange(first - 1, last) % self.many

    def shares(self, horizon: int) -> list[int]:
        """How many rounds fall to each."""
        return [(horizon - i + self.many - 1) // self.many for i in range(self.many)]


class _Drawn:
    """Each round drawn by itself, from a stream that all runs share."""

    def __init__(self, stream: Stream, weights: Floats) -> None:
        self.stream, self.below = stream, np.cumsum(weights) / np.sum(weights)
        self.below /= self.below[-1]  # so that nothing is left above the last part with weight

    def _draw(self, first: int, rounds: int) -> Ints:
        return np.searchsorted(self.below, self.stream.block_from(first, rounds)[:, 0], side="right")

    @property
    def drawn(self) -> tuple[Any, ...]:
        """The arguments of the steps: sums of weights, and a stream."""
        return self.below.tolist(), self.stream

    def whose(self, first: int, last: int) -> Ints:
        """The parts of some rounds."""
        return self._draw(first - 1, last - first + 1)

    def shares(self, horizon: int) -> list[int]:
        counts = np.zeros(len(self.below), np.int64)
        for first in range(0, horizon, COUNTED):
            counts += np.bincount(self._draw(first, min(COUNTED, horizon - first)), minlength=len(counts))
        return counts.tolist()
