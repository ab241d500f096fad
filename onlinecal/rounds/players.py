"""Players made of steps (`onlinecal.rounds.steps`): of one run, until their memory is spread."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np

from onlinecal.core.arrays import Floats, Ints
from onlinecal.core.errors import InvalidParameter
from onlinecal.core.guarantee import Sight
from onlinecal.core.validation import count
from onlinecal.rounds.law import Unplayable, brief
from onlinecal.rounds.steps import HEAR, LAW, LEARN, MOVE, RAISED, REVEAL, Memory, Step, check_step, raised


class CompiledForecaster:
    """A forecaster made of steps, with laws of at most `size` atoms: places on a `grid`, or values.

    `needs` are kinds of context, in a run's context in the order of their names. `alone`: its law step looks at
    `drawn_by`, to state the drawn atom alone where the rest is not seen. It then learns nothing of the rest either.
    `tells_side`: its law step calls `state_side` in each round.
    `certificates`: memory ↦ the totals that it proves of its own play, name → (runs,). `reserve`: (memory, rounds) ↦
    room for more rounds, where the state grows. `prepare`: (memory, asked, open, streams) makes ready for `asked`
    questions. At most `open` more than now are open at once, and of each stream at most its number. `refusal`: the
    fault and the expectation where its law step states no atom.
    """

    def __init__(
        self,
        law: Step,
        learn: Step,
        memory: Memory,
        *,
        size: int,
        grid: Floats | None = None,
        needs: Any = (),
        certificates: Callable[[Memory], dict[str, Floats]] | None = None,
        reserve: Callable[[Memory, int], None] | None = None,
        alone: bool = False,
        tells_side: bool = False,
        prepare: Callable[[Any, int, int, Mapping[int, int]], None] | None = None,
        refusal: tuple[str, str] | None = None,
    ) -> None:
        check_step("law", law, LAW)
        check_step("learn", learn, LEARN)
        self.steps, self.memory, self.size, self.grid = (law, learn), memory, count("size", size), grid
        self.needs, self.alone, self.tells_side = tuple(sorted(needs)), alone, tells_side
        self._certify, self._reserve, self._prepare = certificates, reserve, prepare
        self._refusal = refusal
        _check_context(memory, self.needs)

    def mismatch(self, specification: Any) -> str:
        """Describes where it is not as its specification declares; "" for nowhere."""
        undeclared = sorted(set(self.needs) - specification.needs)
        if undeclared:
            return f"its player needs {', '.join(undeclared)}, which the specification does not declare"
        certifies = self._certify is not None
        if certifies is not bool(specification.certifies):
            return f"its player {'proves' if certifies else 'does not prove'} totals; the specification says otherwise"
        return ""

    def no_law(self, code: int, law: tuple[Any, Floats, Floats], run: int) -> Exception:
        """The fault of a law step that returned this code and left these atoms, values and weights."""
        if code == RAISED:
            return raised(self.steps[0], run)
        if code == 0 and self.refusal:
            return Unplayable(*self.refusal, run)
        if not 1 <= code <= self.size:
            return Unplayable(f"stated a law of {code} atoms", f"1 to {self.size}", run)
        (atoms, values, weights), grid = law, self.grid
        if grid is not None:
            points = dict(enumerate(grid.tolist()))
            # The place −1 marks a value that a forecaster inside stated.
            stated = zip(atoms.tolist(), values.tolist(), strict=True)
            values = np.array([value if i == -1 else points.get(i, math.nan) for i, value in stated])
        what = f"stated the forecasts {brief(values)} with weights {brief(weights)}"
        return Unplayable(what, "values in [0, 1] and weights ≥ 0 that sum to 1", run)

    def certificates(self) -> dict[str, Floats]:
        """The totals that it proves of its own play; empty where its specification certifies nothing."""
        return {} if self._certify is None else self._certify(self.memory)

    @property
    def refusal(self) -> tuple[str, str] | None:
        """The error where it, or one of its parts, states no atom."""
        parts = (getattr(player, "refusal", None) for player in getattr(self.memory, "players", ()))
        return self._refusal or next(filter(None, parts), None)

    @property
    def grows(self) -> bool:
        """Whether its state takes more room the longer it plays."""
        return self._reserve is not None

    def reserve(self, rounds: int) -> None:
        """Makes room for this number of rounds more."""
        if self._reserve is not None:
            self._reserve(self.memory, rounds)

    @property
    def prepares(self) -> bool:
        """Whether it must know beforehand which questions come."""
        return self._prepare is not None

    def prepare(self, asked: int, open: int, streams: Mapping[int, int]) -> None:
        """Makes ready for some questions."""
        if self._prepare is not None:
            self._prepare(self.memory, asked, open, streams)


class CompiledNature:
    """A nature made of steps; `hear` is for those that see the history and remember something of it.

    `reveals` are kinds of context, one number each, in the order of their names. `reserve`: (memory, rounds) ↦ room for
    more rounds, where the state grows. That is in each round, or (`grows_with` levels) in those with a new forecast.
    Then the number is at most that of different forecasts. `streams_of`: (first, last) ↦ the streams of these
    questions, as the context "stream" says them. A nature with streams needs it. `by_side`: the step `move` looks at
    nothing of a law but the side of 1/2 on which its mean is.
    """

    def __init__(
        self,
        move: Step,
        memory: Memory,
        *,
        sight: Sight = Sight.NOTHING,
        hear: Step | None = None,
        reveal: Step | None = None,
        reveals: Any = (),
        reserve: Callable[[Memory, int], None] | None = None,
        grows_with: Literal["rounds", "levels"] = "rounds",
        by_side: bool = False,
        streams_of: Callable[[int, int], Ints] | None = None,
    ) -> None:
        check_step("move", move, MOVE)
        for name, step, signature in (("hear", hear, HEAR), ("reveal", reveal, REVEAL)):
            if step is not None:
                check_step(name, step, signature)
        self.reveals = tuple(sorted(reveals))
        if hear is not None and sight < Sight.HISTORY:
            raise InvalidParameter(f"sight = {sight!r} with a step `hear`; expected HISTORY or more")
        if (reveal is None) is not (not self.reveals):
            raise InvalidParameter(
                f"reveals = {self.reveals!r}; expected kinds of context and a step `reveal`, or neither"
            )
        _check_context(memory, self.reveals)
        if grows_with not in ("rounds", "levels"):
            raise InvalidParameter(f"grows_with = {brief(grows_with)}; expected 'rounds' or 'levels'")
        self.steps, self.memory, self.sight = (move, hear, reveal), memory, sight
        self._reserve, self.grows_with, self.streams_of = reserve, grows_with, streams_of
        self.by_side = by_side

    def mismatch(self, specification: Any) -> str:
        """Describes where it is not as its specification declares; "" for nowhere."""
        if self.sight > specification.sight:
            declared = specification.sight.name
            return f"its player has sight {self.sight.name}, but the specification declares {declared}"
        missing = sorted(specification.reveals - set(self.reveals))
        if missing:
            return f"its player does not reveal {', '.join(missing)}, as the specification declares"
        if specification.streams and self.streams_of is None:
            return "the specification has streams; expected a player with streams_of(first, last)"
        return ""

    @property
    def grows(self) -> bool:
        """Whether its state takes more room the longer it plays."""
        return self._reserve is not None

    def growth(self, levels: float) -> float:
        """The number of rounds in which its state may take more room, for this number of different forecasts."""
        if self._reserve is None:
            return 0
        return levels if self.grows_with == "levels" else math.inf

    def reserve(self, rounds: int, levels: float = math.inf) -> None:
        """Makes room for this number of rounds more, in which `levels` different forecasts can be drawn."""
        if self._reserve is not None:
            self._reserve(self.memory, int(min(rounds, self.growth(levels))))


def _check_context(memory: Memory, kinds: tuple[str, ...]) -> None:
    if memory.context < len(kinds):
        raise InvalidParameter(
            f"context = {memory.context}; expected room for {len(kinds)}: {', '.join(kinds)}"
        )


def made_of_steps(player: CompiledForecaster | CompiledNature) -> bool:
    """Whether compiled code plays it alone, without a part in plain Python."""
    return not player.memory.in_python
