"""Several natures at once, each with questions of its own."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

from onlinecal.core.arrays import Floats, Ints
from onlinecal.core.errors import InvalidParameter
from onlinecal.core.specification import allow, list_of, parts, word
from onlinecal.core.strategy import strategy_label, strategy_name
from onlinecal.core.streams import Stream
from onlinecal.engine import steps
from onlinecal.engine.steps import kernel, own_uniform, shared, state
from onlinecal.natures.base import Nature, OfNatures, check_weights
from onlinecal.natures.composed import PART_NOW, one_at_a_time, start_part

#: rounds that are drawn at a time when those of each part are counted before the game
COUNTED = 2**20


@dataclass(frozen=True)
class Streams(OfNatures):
    """Several natures at once: each question is one of theirs, and reveals which one's.

    Each part plays the game of its own questions, counted from 1, with their number as its horizon. The order of the
    parts is the same in all runs. A game begins with a count of the questions of each, in time of order T.

    Information: Has the largest sight of its parts. Each part is shown only what its own sight allows, of its own
    questions. Reveals ``stream``, the index of the part from 0, and the kinds of context that all parts reveal.

    Parameters
    ----------
    parts : sequence of Nature
        At least one. In a scenario, a list of tables with a name.
    order : {"turns", "random"}, default "turns"
        Whether they take turns, the first one first, or each question is drawn independently.
    weights : sequence of float, optional
        With "random": how likely each is, in [0, 10^9] and not all 0; they are scaled to sum to 1. Default: equal.
    labels : sequence of str, optional
        What the streams are called, all different. Default: the labels of the parts, numbered where they are equal.

    Attributes
    ----------
    streams : tuple of str
        Their names, in the order of the indices.
    """

    allowed = allow(parts=parts("nature"), order=word("turns", "random"))

    parts: tuple[Nature, ...]
    order: Literal["turns", "random"] = "turns"
    weights: tuple[float, ...] | None = None
    labels: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        for i, part in enumerate(self.parts):
            if "stream" in part.reveals:
                raise InvalidParameter(
                    f"parts[{i}] = {strategy_name(part)} has streams of its own; expected its parts beside the others"
                )
        if self.weights is not None:
            if self.order != "random":
                raise InvalidParameter(
                    f"weights = {self.weights!r} with order = {self.order!r}; expected order = 'random', or no weights"
                )
            check_weights(self.weights, "part", len(self.parts))
        if self.labels is not None:
            labels = list_of("labels", self.labels, "texts, one a part", len(self.parts))
            good = all(isinstance(label, str) and label for label in labels)
            if not good or len(set(labels)) < len(labels):
                raise InvalidParameter(f"labels = {labels!r}; expected texts that are all different")

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

    def start(self, horizon: int, stream: Stream) -> steps.Nature:
        many, given = len(self.parts), dict[str, Any]()
        if self.order == "turns":
            choose, below, parts_of = in_turn, np.zeros(0), partial(_in_turn, many)
        else:
            common, weights = stream.common("order"), np.array(self.weights or [1.0] * many, np.float64)
            below = np.cumsum(weights) / np.sum(weights)
            below /= below[-1]  # so that nothing is left above the last part with weight
            choose, parts_of = drawn_part, partial(_drawn, common, below)
            given = {"state": [0.0] * (COUNTED_FROM + many), "stream": common}
        players = [
            start_part("streams", f"parts[{i}]", part, rounds, horizon, stream.child(f"part {i}"))
            for i, (part, rounds) in enumerate(zip(self.parts, _rounds(parts_of, many, horizon), strict=True))
        ]
        return one_at_a_time(
            choose, players, sorted(self.reveals - {"stream"}), [*below], sight=self.sight,
            reveals={PART_NOW: "stream"}, streams_of=parts_of, **given,
        )  # fmt: skip


@kernel
def in_turn(run, number):
    """The part that plays a round, and its number of it, in turn; shared is one number for each part."""
    many = len(shared(run))
    return (number - 1) % many, (number - 1) // many + 1


#: the state where parts are drawn: how many rounds are counted, the part of the last, the rounds of each
ROUNDS, LAST_PART, COUNTED_FROM = range(3)


@kernel
def drawn_part(run, number):
    """The same where it is drawn; shared, behind one number for each part, are the sums of weights."""
    mine, given = state(run), shared(run)
    many = len(given) // 2
    while mine[ROUNDS] < number:
        u, k = own_uniform(run, int(mine[ROUNDS])), 0
        while k < many - 1 and given[many + k] <= u:
            k += 1
        mine[ROUNDS] += 1.0
        mine[LAST_PART] = k
        mine[COUNTED_FROM + k] += 1.0
    k = int(mine[LAST_PART])
    return k, int(mine[COUNTED_FROM + k])


def _in_turn(many: int, first: int, last: int) -> Ints:
    """The parts of rounds in turn."""
    return np.arange(first - 1, last) % many


def _drawn(stream: Stream, below: Floats, first: int, last: int) -> Ints:
    """The parts of rounds that are drawn by sums of weights, from a stream that all runs share."""
    return np.searchsorted(below, stream.block_from(first - 1, last - first + 1)[:, 0], side="right")


def _rounds(parts_of: Callable[[int, int], Ints], many: int, horizon: int) -> list[int]:
    """How many rounds each part has."""
    counts = np.zeros(many, np.int64)
    for first in range(1, horizon + 1, COUNTED):
        counts += np.bincount(parts_of(first, min(first + COUNTED - 1, horizon)), minlength=many)
    return counts.tolist()
