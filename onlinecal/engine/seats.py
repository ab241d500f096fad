"""Players of one run, as `play` asks them: objects in plain Python, and compiled strategies called from Python."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from typing import Any, ClassVar

import numpy as np

from onlinecal.core._compile import kept
from onlinecal.core.errors import SightError
from onlinecal.core.guarantee import Sight
from onlinecal.core.strategy import classes_of, strategy_name
from onlinecal.engine.law import Unplayable, brief, is_scalar, summed
from onlinecal.engine.outcomes import outcomes_of
from onlinecal.engine.play import Question
from onlinecal.engine.run import (
    ATOMS,
    KEPT,
    NOTE,
    NOTES,
    VALUES,
    WEIGHTS,
    lay,
    make_rows,
    shared_width,
    width,
)
from onlinecal.engine.start import takes
from onlinecal.engine.steps import ASKED_AT, Forecaster, Player


def seat(role: str, strategy: Any, player: Any, run: int = 0, forecaster: Any = None) -> Any:
    """One run of a player: an object in plain Python, or a row of a compiled one.

    A nature of classes is told the `forecaster` where that is compiled, and has a table.
    """
    if isinstance(player, Player) and classes_of(strategy):
        from onlinecal.engine.class_seats import ClassForecaster, ClassNature

        return ClassForecaster(player, run) if role == "forecaster" else ClassNature(player, run, forecaster)
    if isinstance(player, Player):
        return (CompiledForecaster if isinstance(player, Forecaster) else CompiledNature)(player, run)
    return (PlainForecaster if role == "forecaster" else PlainNature)(player, strategy)


# ---------------------------------------------------------------- compiled strategies


@cache
def caller(step: Any) -> Any:
    """The step as Python calls it: with a row in place of the pointer to it."""

    def call(row: Any, *given: Any) -> Any:
        return step(row.ctypes, *given)

    return kept(call)


def lay_alone(player: Player, atoms: int, points: int = 0) -> Any:
    """Lays a player into rows of its own, with room for its notes and the atoms of a law.

    Behind them is room for so many more numbers that its runs share; returns it.
    """
    open = max(1, player.notes.shape[1] // max(1, player.note))
    rows, common = make_rows(len(player.state), width(player, open, atoms), shared_width(player) + points)
    return lay(player, rows, open, atoms, common, rows.size)


class Compiled:
    """One run of a compiled player. It uses the last of the notes that its row has room for."""

    #: the names of its steps
    STEPS: ClassVar[tuple[str, ...]] = ()

    def __init__(self, player: Any, run: int) -> None:
        self.player, self.run, self.rows, self.atoms, self.kept = player, run, None, 0, player.note
        steps = {name: getattr(player, name) for name in self.STEPS}
        self.steps = {name: caller(step) for name, step in steps.items() if step is not None}

    def look(self, atoms: int) -> None:
        """Looks where the row is, its note and its law, for a law of this many atoms."""
        p = self.player
        if p.laid and self.rows is p.rows and atoms <= self.atoms:
            return
        if not p.laid or atoms > int(p.rows[0].view(np.int64)[ATOMS]):
            self.lay(atoms)
        self.rows, self.row = p.rows, p.rows[self.run]
        self.heads = heads = self.row.view(np.int64)
        first, kept, self.atoms = int(heads[NOTES]), int(heads[KEPT]), int(heads[ATOMS])
        self.at = first + max(0, p.notes.shape[1] - kept)
        self.note = self.row[self.at : self.at + kept]
        values, weights = int(heads[VALUES]), int(heads[WEIGHTS])
        self.values, self.weights = (self.row[at : at + self.atoms] for at in (values, weights))

    def lay(self, atoms: int) -> None:
        """Lays the player out, for a law of this many atoms."""
        lay_alone(self.player, atoms)

    def forecast(self, q: Question) -> float:
        """The forecast as steps are told it."""
        return float(q.forecast)

    def save(self) -> Any:
        """The row as it is now."""
        self.look(getattr(self.player, "size", 1))
        return self.row.copy()

    def put_back(self, row: Any) -> None:
        """Makes the row what it was."""
        self.row[:] = row

    def call(self, name: str, note: Any, *given: Any) -> Any:
        """The result of a step, given a note."""
        if not self.kept:
            return self.steps[name](self.row, *given)
        self.heads[NOTE] = self.at
        self.note[:] = note
        said = self.steps[name](self.row, *given)
        note[:] = self.note
        return said


class CompiledForecaster(Compiled):
    """Calls the steps of a compiled forecaster from Python."""

    STEPS = "say", "learn"

    def state_law(self, q: Question) -> list[tuple[float, float]]:
        """The law of a question: value and weight of each atom."""
        p = self.player
        if self.kept:
            q.note = np.zeros(self.kept)
            for place, kind in p.needs.items():
                q.note[place] = q.time if kind == ASKED_AT else q.context[kind]
        self.look(p.size)
        size = self.call("say", q.note, q.number)
        if 1 <= size <= p.size:
            return list(zip(self.values[:size].tolist(), self.weights[:size].tolist(), strict=True))
        if size == 0 and p.refusal:
            raise Unplayable(*p.refusal)
        raise Unplayable(f"stated a law of {size} atoms", f"1 to {p.size}")

    def straight(self) -> None:
        """None: compiled forecasters are asked by questions."""

    def learn(self, q: Question) -> None:
        """Tells the outcome of a question."""
        self.look(self.player.size)
        if self.call("learn", q.note, q.place, self.forecast(q), q.outcome, q.number) < 0:
            raise Unplayable("refused a round that it had played", "to be told it")


class CompiledNature(Compiled):
    """Calls the steps of a compiled nature from Python, and shows it what its sight allows."""

    STEPS = "move", "hear", "reveal"

    def reveal(self, q: Question) -> None:
        """Reveals the context of a question."""
        p = self.player
        if self.kept:
            q.hidden = np.zeros(self.kept)
            q.hidden[p.times] = q.time
        if p.reveal is not None:
            self.look(1)
            if self.call("reveal", q.hidden, q.number) < 0:
                raise Unplayable("revealed nothing", "its context")
            q.context = {kind: float(q.hidden[place]) for place, kind in p.reveals.items()}

    def move(self, q: Question) -> Any:
        """The probability of the outcome 1."""
        self.look(1)
        forecast = q.forecast if self.player.sight >= Sight.DRAW else math.nan
        return float(self.call("move", q.hidden, self.show_law(q.law), forecast, q.number))

    def show_law(self, law: list[tuple[float, float]]) -> int:
        """Writes the law where it is seen; how many atoms are."""
        if self.player.sight < Sight.LAW:
            return 0
        if len(law) > self.atoms:
            self.look(len(law))
        for i, (value, weight) in enumerate(law):
            self.values[i], self.weights[i] = value, weight
        return len(law)

    def straight(self) -> Any:
        """How it is asked and told without questions: (number, law, forecast) ↦ q, and (forecast, outcome, number).

        None where it keeps something with a question.
        """
        p = self.player
        if p.note or p.reveal is not None:
            return None
        draws, step = p.sight >= Sight.DRAW, self.steps["move"]
        hears: Any = self.steps.get("hear")
        self.look(1)

        def move(number: int, law: list[tuple[float, float]], forecast: float) -> float:
            size = self.show_law(law)
            return step(self.row, size, forecast if draws else math.nan, number)

        def hear(forecast: float, outcome: int, number: int) -> None:
            if hears(self.row, -1, forecast, outcome, number) < 0:
                raise Unplayable("refused a round that it had played", "to be told it")

        return move, None if hears is None else hear

    def learn(self, q: Question) -> None:
        """Tells the outcome of a question."""
        p = self.player
        if p.hear is not None:
            self.look(1)
            if self.call("hear", q.hidden, -1, self.forecast(q), q.outcome, q.number) < 0:
                raise Unplayable("refused a round that it had played", "to be told it")


# ---------------------------------------------------------------- objects in plain Python


class Round:
    """A round as a plain player sees it, with its number and the time of the question.

    `context` has the kinds that a forecaster `needs`, or that a nature revealed; `groups` has the groups among them
    where its class declares `needs = "groups"`. `memo` is the player's own: it comes back with the outcome of the
    round. A player that asks for more than its sight allows raises `SightError`.
    """

    __slots__ = ("_forecast", "_law", "_name", "_sight", "context", "groups", "memo", "number", "time")

    def __init__(
        self,
        name: str,
        number: int,
        time: float,
        *,
        sight: Sight = Sight.NOTHING,
        context: Mapping[str, float] | None = None,
    ) -> None:
        self._name, self._sight = name, sight
        self._law: Any = None
        self._forecast: Any = None
        self.number, self.time, self.context, self.memo = number, time, dict(context or {}), None
        self.groups: dict[str, int] = {}

    @property
    def law(self) -> dict[Any, float]:
        """The law of the forecast, value → probability; for natures of sight LAW. Of K classes a value is a tuple."""
        if self._law is None:
            raise self._refused("the law", Sight.LAW)
        return self._law

    @property
    def forecast(self) -> Any:
        """The forecast that was drawn; for natures of sight DRAW."""
        if self._forecast is None:
            raise self._refused("the drawn forecast", Sight.DRAW)
        return self._forecast

    def _refused(self, what: str, needed: Sight) -> SightError:
        return SightError(
            f"{self._name!r} asked for {what} in round {self.number} but declares sight {self._sight.name}; expected "
            f"sight {needed.name}"
        )


class Plain:
    """One run of an object in plain Python, which keeps its state to itself."""

    def save(self) -> Any:
        """Nothing: an object that is asked once more is asked once more."""

    def put_back(self, row: Any) -> None:
        """Does nothing."""


class PlainForecaster(Plain):
    """An object with `forecast()` and `update(forecast, outcome)`, and a round behind where they take one."""

    def __init__(self, player: Any, strategy: Any) -> None:
        self.player, self.name, self.kinds = player, strategy_name(strategy), sorted(strategy.needs)
        self.takes_all = getattr(strategy, "takes_all", False)
        self.groups: tuple[str, ...] = strategy.groups if getattr(strategy, "takes_groups", False) else ()
        self.shown, self.kept = not takes(player.forecast, 0), not takes(player.update, 2)
        self.law_of = outcomes_of(strategy).law

    def state_law(self, q: Question) -> list[tuple[Any, float]]:
        """The law of a question: value and weight of each atom."""
        if self.shown or self.kept:
            context = q.context if self.takes_all else {kind: q.context[kind] for kind in self.kinds}
            q.note = Round(self.name, q.number, q.time, context=context)
            q.note.groups = {group: int(q.context[group]) for group in self.groups}
        return self.law_of(self.player.forecast(q.note) if self.shown else self.player.forecast())

    def straight(self) -> Any:
        """Its methods, where they take no round; else None."""
        return None if self.shown or self.kept else (self.player.forecast, self.player.update)

    def learn(self, q: Question) -> None:
        """Tells the outcome of a question."""
        self.player.update(q.forecast, q.outcome, *[q.note] * self.kept)


class PlainNature(Plain):
    """An object with `probability()` or `probability(round)`, maybe `update(…)`, and `context(round)`."""

    def __init__(self, player: Any, strategy: Any) -> None:
        self.player, self.name, self.sight = player, strategy_name(strategy), strategy.sight
        self.kinds, self.streams_of = sorted(strategy.reveals), getattr(player, "streams_of", None)
        self.probability_of = outcomes_of(strategy).probability
        update = getattr(player, "update", None) if self.sight >= Sight.HISTORY else None
        self.shown, self.hears = not takes(player.probability, 0), update is not None
        self.kept = update is not None and not takes(update, 2)

    def show(self, q: Question) -> None:
        """Makes the round that it is shown, where it takes one."""
        if self.kinds or self.shown or self.kept:
            q.hidden = Round(self.name, q.number, q.time, sight=self.sight)

    def reveal(self, q: Question) -> None:
        """Reveals the context of a question."""
        self.show(q)
        if not self.kinds:
            return
        said = self.player.context(q.hidden)
        for kind in self.kinds:
            try:
                value = said[kind]
            except (KeyError, IndexError, TypeError):
                raise Unplayable(f"revealed {brief(said)}", f"a dict with {kind!r}") from None
            if not is_scalar(value) or not math.isfinite(value):
                raise Unplayable(f"revealed {kind} = {brief(value)}", "a finite number")
            if (
                kind == "stream"
                and self.streams_of
                and value != (own := self.streams_of(q.number, q.number)[0])
            ):
                raise Unplayable(f"revealed stream = {brief(value)}", f"{own}, which its streams_of gives")
            q.context[kind] = float(value)
        q.hidden.context = dict(q.context)

    def move(self, q: Question) -> Any:
        """The probability of the outcome 1, or of each class."""
        return self._said(q.hidden, q.law, q.forecast)

    def _said(self, round: Any, law: list[tuple[Any, float]], forecast: Any) -> Any:
        if not self.shown:
            said = self.player.probability()
        else:
            if self.sight >= Sight.LAW:
                round._law = summed(*zip(*law, strict=True))
                if self.sight >= Sight.DRAW:
                    round._forecast = forecast
            said = self.player.probability(round)
        return said if type(said) is float else self.probability_of(said)

    def straight(self) -> Any:
        """As `CompiledNature.straight`; None where it reveals something, or keeps a round until it is told."""
        if self.kinds or self.kept:
            return None
        name, sight, update = self.name, self.sight, self.player.update if self.hears else None

        def move(number: int, law: list[tuple[float, float]], forecast: float) -> float:
            return self._said(Round(name, number, float(number), sight=sight), law, forecast)

        def unseen(number: int, law: list[tuple[float, float]], forecast: float) -> float:
            return self._said(None, law, forecast)

        def hear(forecast: float, outcome: int, number: int) -> None:
            self.player.update(forecast, outcome)

        return move if self.shown else unseen, None if update is None else hear

    def learn(self, q: Question) -> None:
        """Tells the outcome of a question."""
        if self.hears:
            self.player.update(q.forecast, q.outcome, *[q.hidden] * self.kept)
