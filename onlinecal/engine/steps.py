"""A compiled strategy is a few functions of its run, written as plain Python and compiled once by numba.

How to write one. A class has `start(horizon, stream)`, which makes the player from steps and from the numbers with
which a run begins::

    def start(self, horizon: int, stream: Stream) -> Forecaster:
        m = self.steps_at(horizon)
        return Forecaster(hedge, learn_bias, state=[0.0] * (m + 2), shared=[m], size=2, grid=grid_of(m))

    def hedge(run: Run, number: int) -> int:            # A plain function of the module, without a decorator.
        bias, m = state(run), int(shared(run)[0])
        values, weights = law(run)
        …
        return 2                                        # How many atoms the law has.

======================================================  =============================================================
``say(run, number) -> size``                            writes the law of round `number`, from 1, into ``law(run)``.
``learn(run, place, forecast, outcome, number) -> code``  an outcome is known; atom `place` of the law was drawn.
``move(run, size, forecast, number) -> q``              nature's probability of the outcome 1.
``hear(run, place, forecast, outcome, number) -> code``   as `learn`, of a nature; `place` is −1.
``reveal(run, number) -> code``                         writes the context of the question into nature's ``note(run)``.
``draw(run, u, number) -> forecast``                    optional: the forecast that the uniform u draws from the law.
``side(run, number) -> side``                           optional: the mean of the law less 1/2, or any with its sign.
======================================================  =============================================================

- ``state(run)`` is the run's own vector, ``shared(run)`` is the same in all runs and only read. ``note(run)`` is kept
  with the question from `say` (or `reveal`) to `learn` (or `hear`). ``values, weights = law(run)`` are of `size` atoms
  at most. All numbers are floats, whole ones exact up to 2^53: `int(…)` makes an index. Weights sum to 1.
- Of K classes (`classes`) an outcome is 0, …, K − 1. A forecaster has a ``table`` of points in the simplex: a forecast,
  and a value of a law, is the place of a point in it. A nature that sees the law finds the points in ``table(run)``,
  class k of point i at i·K + k. It writes q into the first K numbers of its note, and `move` returns 0, or below 0
  to refuse. y is the first class with u < q_0 + … + q_y.
- A forecaster with a `grid` states values of it, exactly as they are there (`i / m`). Others state any in [0, 1].
- The law is not kept until `learn`, only the forecast, its place, and the note. With `draw` the place is −1, and
  neither `say` is called nor a law there. It is used against natures that do not see the law.
- `needs={place: kind}`: the forecaster finds this kind of context at this place of its note. `ASKED_AT` is the time of
  the question. `reveals={place: kind}`: nature writes it there. Nature's note is its own until `hear`.
- `own_uniform(run, i)` is number i, from 0, of the `stream` given to the player: a function of the index.
- Functions that steps call are marked by `kernel`. A code is 0, or below 0 for a question that is refused.
- A nature sees what its `sight` allows: else `size` is 0, `forecast` NaN. `by_side`: where the forecaster has a step
  `side`, that number is given as `forecast`, with `size` 0.
- A state that grows: `grows(coming)` are the numbers that it needs for the rounds to come (`Coming`). They are never
  fewer than before; new ones are 0. Parts are players of their own (`parts`), reached by ``inner(run, k, note, atom)``.
- ``NUMBA_BOUNDSCHECK=1`` finds indices beyond the ends of all these vectors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property
from typing import Any, NamedTuple

import numpy as np
from numba import float64, int64

from onlinecal.core._compile import kept
from onlinecal.core.arrays import Floats
from onlinecal.core.errors import InvalidParameter
from onlinecal.core.guarantee import Sight
from onlinecal.core.simplex import level_of_rows
from onlinecal.core.strategy import classes_of
from onlinecal.core.streams import Stream
from onlinecal.engine.run import RUN, Run, accessor, inner, kernel, law, note, shared, state, table
from onlinecal.engine.uniforms import generators, own_uniform, uniform

#: what strategies take from here
__all__ = [
    "ASKED_AT", "Coming", "Forecaster", "Nature", "Run", "drawn", "inner", "kernel", "law", "note", "one_of",
    "own_uniform", "shared", "state", "table", "uniform",
]  # fmt: skip

SAY = int64(RUN, int64)
DRAW = float64(RUN, float64, int64)
SIDE = float64(RUN, int64)
LEARN = int64(RUN, int64, float64, int64, int64)
MOVE = float64(RUN, int64, float64, int64)
REVEAL = int64(RUN, int64)

#: the kind of context that is the time of the question
ASKED_AT = "asked at"


@cache
def compiled(signature: Any, step: Callable[..., Any]) -> Any:
    """The step, compiled; loaded from disk where it was compiled before."""
    return step if hasattr(step, "py_func") else kept(step, signature)


def one_of(steps: Sequence[Any]) -> Any:
    """A function (k, …) that calls step k. Numba knows each of its calls: a tuple of functions is far slower."""
    first = steps[0]
    if len(steps) == 1:
        return kernel(lambda k, *given: first(*given))
    rest = one_of(steps[1:])

    @kernel
    def call(k, *given):
        if k == 0:
            return first(*given)
        return rest(k - 1, *given)

    return call


@accessor
def drawn(law, size, u, most=1.0):
    """The first atom at which the summed weights are above u, else the last with weight; −1 if it is no law.

    Its values are from 0 to `most`.
    """
    (values, weights), total, pick = law, 0.0, 0
    for j in range(size):
        weight, value = weights[j], values[j]
        if not (weight >= 0.0 and 0.0 <= value <= most):
            return -1
        if weight > 0.0:  # without a branch on u, which no processor can foresee
            pick += (j - pick) * np.int64(total <= u)
        total += weight
    return pick if abs(total - 1.0) <= 1e-9 else -1


class Coming(NamedTuple):
    """The rounds to come, for which a player must be ready."""

    #: how many questions have been asked by then; no more outcomes are told
    asked: int
    #: questions open at once, at most
    open: int
    #: how many streams of questions there are
    streams: int = 1
    #: how many different forecasts there can be
    levels: float = math.inf


class Player:
    """A strategy at its beginning, in one run or (`spread`) in several.

    `note` is how many numbers are kept with a question; `parts` are players that its steps call. `begins` makes the
    state of each later run, where it is not the same.
    """

    def __init__(
        self,
        state: Any = (),
        shared: Any = (),
        *,
        note: int = 0,
        stream: Stream | None = None,
        grows: Callable[[Coming], int] | None = None,
        parts: Sequence[Player] = (),
        begins: Callable[[int], Any] | None = None,
    ) -> None:
        self.state: Floats = np.array(state, np.float64).reshape(1, -1)
        self.shared: Floats = np.array(shared, np.float64).reshape(-1)
        self.note, self.stream, self.grows, self.parts = note, stream, grows, list(parts)
        self.begins = begins
        self.runs, self.notes = range(1), np.zeros((1, 0))
        self.generators = generators(stream and stream.keys[:1], 1)
        #: whether a part is an object in plain Python, of which no row holds the state
        self.in_python: bool = any(part.in_python for part in self.parts)
        #: the player of which it is a part, as `run.lay` finds it
        self.whole: Player | None = None
        self.laid = False
        self.rows: Floats = np.zeros((1, 0))
        #: the points in the simplex that its forecasts are, (points, K); and whether each run has its own
        self.table: Floats = np.zeros((0, 0))
        self.own_table = False

    def spread(self, runs: range) -> None:
        """Makes a row of state for each run, with uniforms of its own."""
        self.runs, self.state = runs, np.tile(self.state[:1], (len(runs), 1))
        if self.begins is not None:
            for row, run in zip(self.state[1:], runs[1:], strict=True):
                row[:] = self.begins(run)
        self.notes, self.laid = np.zeros((len(runs), 0)), False
        self.generators = generators(self.stream and self.stream.over(runs).keys, len(runs))
        for part in self.parts:
            part.spread(runs)

    def make_room(self, coming: Coming) -> None:
        """Makes the state fit for what is coming."""
        if self.grows is not None:
            self.widen(self.grows(coming))
        for part in self.parts:
            part.make_room(coming)

    def widen(self, numbers: int) -> None:
        """Makes room for this many numbers in the state: at least twice as many as before, if it has fewer."""
        have = self.state.shape[1]
        if numbers > have:
            more = np.zeros((len(self.state), max(numbers, 2 * have) - have))
            self.state, self.laid = np.hstack([self.state, more]), False

    @property
    def laid(self) -> bool:
        """Whether its rows hold it and its parts as they are now."""
        return self._laid

    @laid.setter
    def laid(self, laid: bool) -> None:
        self._laid = laid
        if not laid and self.whole is not None:
            self.whole.laid = False

    def kept(self) -> dict[str, Any]:
        """The attributes that a pickle keeps; the specification makes the steps again."""
        names = "runs", "state", "notes", "generators"
        return {name: vars(self)[name] for name in names} | {"parts": [part.kept() for part in self.parts]}

    def restore(self, kept: dict[str, Any]) -> None:
        """Takes what a pickle kept."""
        for part, own in zip(self.parts, kept["parts"], strict=True):
            part.restore(own)
        vars(self).update(kept | {"parts": self.parts})
        self.laid = False


class Forecaster(Player):
    """A forecaster made of steps, with laws of `size` atoms at most, on a `grid` if there is one.

    One of classes has a `table` of points in the simplex, (points, K), and states places in it. With `own_table` the
    table of a run comes at the beginning of its state, where steps change it: points that were stated stay.
    `certificates`: player ↦ the totals that it proves of its own play, name → (runs,). `refusal`: fault and
    expectation where its `say` states no atom, and its `draw` NaN.
    """

    def __init__(
        self,
        say: Callable[..., Any],
        learn: Callable[..., Any],
        state: Any = (),
        shared: Any = (),
        *,
        size: int = 1,
        grid: Floats | None = None,
        table: Floats | None = None,
        own_table: bool = False,
        needs: Mapping[int, str] | None = None,
        draw: Callable[..., Any] | None = None,
        side: Callable[..., Any] | None = None,
        certificates: Callable[[Any], dict[str, Floats]] | None = None,
        refusal: tuple[str, str] | None = None,
        **memory: Any,
    ) -> None:
        first = () if table is None or not own_table else table.ravel()
        super().__init__(np.append(first, state), shared, **memory)
        self.own_table = own_table
        self.say, self.learn = compiled(SAY, say), compiled(LEARN, learn)
        self.draw = None if draw is None else compiled(DRAW, draw)
        self.side = None if side is None else compiled(SIDE, side)
        self.size, self.grid, self.needs = size, grid, dict(needs or {})
        if table is not None:
            self.table, self.grid = np.ascontiguousarray(table, np.float64), np.arange(float(len(table)))
        self.certify, self.refusal = certificates, refusal
        _check_places(self, self.needs)

    def table_of(self, run: int) -> Floats:
        """The table of a run, as it is now."""
        if not self.own_table:
            return self.table
        return self.state[run, : self.table.size].reshape(self.table.shape)

    def places_of(self, run: int) -> dict[tuple[float, ...], int]:
        """The place of each point in that table; of equal points one."""
        return _places(self.table_of(run)) if self.own_table else self._places

    @cached_property
    def _places(self) -> dict[tuple[float, ...], int]:
        return _places(self.table)

    def mismatch(self, specification: Any) -> str:
        """Describes where it is not as its specification declares; "" for nowhere."""
        undeclared = sorted(set(self.needs.values()) - specification.needs - {ASKED_AT})
        if undeclared:
            return f"its player needs {', '.join(undeclared)}, which the specification does not declare"
        if self.table.shape[1] != classes_of(specification):
            return f"its player has a table of {self.table.shape[1]} columns; expected {classes_of(specification)}"
        twice = len(self.table) > 0 and int(level_of_rows(self.table).max()) + 1 < len(self.table)
        if twice and not self.own_table:
            return "its player has a point twice in its table; expected different ones"
        certifies = self.certify is not None
        if certifies is not bool(specification.certifies):
            return f"its player {'proves' if certifies else 'does not prove'} totals; the specification says otherwise"
        return ""


def _places(table: Floats) -> dict[tuple[float, ...], int]:
    return {tuple(point): place for place, point in enumerate(table.tolist())}


class Nature(Player):
    """A nature made of steps. `streams_of`: (first, last) ↦ the streams of these questions.

    `times` are the places of its note at which it finds the time of the question. One of `classes` writes q at the
    beginning of its note.
    """

    def __init__(
        self,
        move: Callable[..., Any],
        state: Any = (),
        shared: Any = (),
        *,
        sight: Sight = Sight.NOTHING,
        hear: Callable[..., Any] | None = None,
        reveal: Callable[..., Any] | None = None,
        reveals: Mapping[int, str] | None = None,
        times: Sequence[int] = (),
        by_side: bool = False,
        streams_of: Callable[[int, int], Any] | None = None,
        classes: int = 0,
        **memory: Any,
    ) -> None:
        super().__init__(state, shared, **memory)
        self.move, self.sight, self.by_side = compiled(MOVE, move), sight, by_side
        self.hear = None if hear is None else compiled(LEARN, hear)
        self.reveal = None if reveal is None else compiled(REVEAL, reveal)
        self.streams_of, self.times, self.reveals = streams_of, list(times), dict(reveals or {})
        self.classes = classes
        if hear is not None and sight < Sight.HISTORY:
            raise InvalidParameter(f"sight = {sight!r} with a step `hear`; expected HISTORY or more")
        if (reveal is None) is not (not self.reveals):
            raise InvalidParameter(
                f"reveals = {self.reveals!r}; expected kinds of context and a step `reveal`, or neither"
            )
        _check_places(self, self.reveals)

    def mismatch(self, specification: Any) -> str:
        """Describes where it is not as its specification declares; "" for nowhere."""
        if self.sight > specification.sight:
            declared = specification.sight.name
            return f"its player has sight {self.sight.name}, but the specification declares {declared}"
        missing = sorted(specification.reveals - set(self.reveals.values()))
        if missing:
            return f"its player does not reveal {', '.join(missing)}, as the specification declares"
        if specification.streams and self.streams_of is None:
            return "the specification has streams; expected a player with streams_of(first, last)"
        if self.classes != classes_of(specification) or self.note < self.classes:
            expected = f"{classes_of(specification)}, and a note with room for their probabilities"
            return f"its player has classes = {self.classes} and note = {self.note}; expected {expected}"
        return ""


def _check_places(player: Player, kinds: Mapping[int, str]) -> None:
    beyond = sorted(place for place in kinds if not 0 <= place < player.note)
    if beyond:
        raise InvalidParameter(
            f"note = {player.note}; expected room for the context at {beyond}: {dict(kinds)!r}"
        )
