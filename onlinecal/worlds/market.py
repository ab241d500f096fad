"""The place where a world asks its questions and answers them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import simpy

from onlinecal.core.errors import in_one_line
from onlinecal.core.streams import Stream
from onlinecal.engine import play

if TYPE_CHECKING:
    from onlinecal.worlds.run import Course


class Question:
    """A question that a world has asked; its attributes are read-only.

    Attributes
    ----------
    number : int
        1, 2, … in the order of asking.
    time : float
        When it was asked, by the world's clock.
    forecast : float
        The probability of the outcome 1 that was drawn from the forecaster's law.
    stream : int
        The stream that it is of; 0 where there is one.
    resolved : bool
        Whether its outcome is known.
    """

    __slots__ = ("_asked", "_course")

    _asked: play.Question
    _course: Course

    number = property(lambda self: self._asked.number)
    time = property(lambda self: self._asked.time)
    forecast = property(lambda self: self._asked.forecast)
    stream = property(lambda self: int(self._asked.context.get("stream", 0)))
    resolved = property(lambda self: self._asked.resolved)

    def __init__(self, asked: play.Question, course: Course) -> None:
        object.__setattr__(self, "_asked", asked)
        object.__setattr__(self, "_course", course)

    def __setattr__(self, name: str, value: Any) -> None:
        said = f"{name} of {self} is read-only, and was set to {in_one_line(value)}"
        raise AttributeError(f"{said}; expected numbers of your own elsewhere")

    def __repr__(self) -> str:
        return f"question {self.number}, asked at {self.time:g}"


class Market:
    """Takes the questions and the outcomes of one run of a world.

    Attributes
    ----------
    rng : numpy.random.Generator
        The randomness of the run, by seed, world, horizon and run, the same for every forecaster. A world that draws
        all that a customer needs when it is born is the same world for every forecaster.
    horizon : int
        Questions after which the run ends.
    """

    def __init__(self, course: Course, env: simpy.Environment, stream: Stream) -> None:
        self._course, self._env, self._stream = course, env, stream
        self._generators: dict[tuple[str, ...], np.random.Generator] = {}
        self.horizon, self.rng = course.horizon, self.generator()

    def generator(self, *path: str) -> np.random.Generator:
        """Randomness for a part of the world, which does not depend on how much others draw.

        The same names give the same generator, which goes on.
        """
        if path not in self._generators:
            keys = self._stream.child(*path).keys[0] if path else self._stream.keys[0]
            self._generators[path] = np.random.Generator(np.random.Philox(key=keys))
        return self._generators[path]

    def ask(self, **context: float) -> Question:
        """Asks a question now, and returns it with its forecast.

        Parameters
        ----------
        **context : float
            One finite number for each kind that the world `reveals`.

        Raises
        ------
        InvalidData
            Context that the world does not declare, or lacks.
        """
        return self._course.ask(self._env.now, context)

    def resolve(self, question: Question, outcome: int) -> None:
        """Makes an outcome known now to the forecaster and the history.

        Parameters
        ----------
        question : Question
            Of this market, each once.
        outcome : {0, 1}

        Raises
        ------
        InvalidData
            A question of another market, or one that is resolved; an outcome other than 0 and 1.
        """
        self._course.resolve(self._env.now, question, outcome)

    def deadline(self, question: Question, delay: float, outcome: int) -> None:
        """Makes this the outcome after a delay, if the question is still open then."""

        def come(_: simpy.Event) -> None:
            if not question.resolved:
                self.resolve(question, outcome)

        if not isinstance(question, Question) or not delay >= 0.0:
            said = f"gave {in_one_line(question)} the deadline {delay}; expected its question, in a time from 0 on"
            raise self._course.misuse(said)
        # A callback: a process that waits would cost as much as a question.
        simpy.Timeout(self._env, delay).callbacks.append(come)
