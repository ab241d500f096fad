"""What a forecast is, and how an outcome is drawn: of the outcomes 0 and 1, or of K classes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any

from onlinecal.core.simplex import UNIT
from onlinecal.core.strategy import classes_of
from onlinecal.core.streams import Stream
from onlinecal.engine.law import Unplayable, as_law, brief, check_law, draw, is_scalar

#: by how much the sum of weights, or of q, may miss 1
ROUNDING = 1e-9
#: value and weight of each atom
Law = list[tuple[Any, float]]


class Outcomes:
    """The meaning of what players state. A forecast is a number in [0, 1], and q the probability of the outcome 1."""

    def law(self, said: Any) -> Law:
        """The atoms of what a forecaster in plain Python stated."""
        return as_law(said)

    def check(self, law: Law) -> Law:
        """The law, if it is one."""
        return check_law(law)

    def probability(self, said: Any) -> Any:
        """What a nature in plain Python stated."""
        if is_scalar(said):
            return float(said)
        raise Unplayable(f"stated q = {brief(said)}", "a number in [0, 1]")

    def outcome(self, q: Any, uniforms: Stream, index: int) -> int:
        """The outcome that a uniform draws."""
        if not 0.0 <= q <= 1.0:
            raise Unplayable(f"stated q = {brief(q)}", "a probability in [0, 1]")
        outcome = int(q == 1.0)
        return outcome if outcome == q else int(uniforms.uniform(index) < q)


class Classes(Outcomes):
    """A forecast is a tuple of K probabilities, and so is q; the outcome is the first y with u < q_0 + … + q_y."""

    def __init__(self, many: int) -> None:
        self.many = many

    def law(self, said: Any) -> Law:
        if not isinstance(said, dict):
            return [(self._point("", said), 1.0)]
        if not all(map(is_scalar, said.values())):
            raise Unplayable(f"stated {brief(said)}", "a dict {forecast: weight}")
        return [(self._point("a law on ", value), float(weight)) for value, weight in said.items()]

    def check(self, law: Law) -> Law:
        for point, _ in law:
            if not (min(point) >= 0.0 and abs(sum(point) - 1.0) <= UNIT):
                raise Unplayable(
                    f"stated the forecast {brief(point)}",
                    f"{self.many} probabilities that sum to 1 within {UNIT:g}",
                )
        weights = [weight for _, weight in law]
        if not (weights and min(weights) >= 0.0 and abs(sum(weights) - 1.0) <= ROUNDING):
            raise Unplayable(f"stated a law with weights {brief(weights)}", "weights ≥ 0 that sum to 1")
        return law

    def probability(self, said: Any) -> tuple[float, ...]:
        return self._point("q = ", said)

    def outcome(self, q: Any, uniforms: Stream, index: int) -> int:
        if type(q) is float:
            raise Unplayable(f"stated q = {brief(q)}", f"{self.many} probabilities, one for each class")
        if not (min(q) >= 0.0 and abs(sum(q) - 1.0) <= ROUNDING):
            raise bad_q(q, self.many)
        return draw([(0.0, weight) for weight in q], uniforms.uniform(index))[0]

    def _point(self, name: str, said: Any) -> tuple[float, ...]:
        # A set has no order, and a dict or a word is no list of its keys or letters.
        listed = isinstance(said, Iterable) and not isinstance(said, Mapping | Set | str)
        point = tuple(said) if listed else ()
        if len(point) != self.many or not all(map(is_scalar, point)):
            expected = f"{self.many} probabilities, one for each class"
            raise Unplayable(f"stated {name}{brief(said)}", expected)
        return tuple(float(each) + 0.0 for each in point)  # −0.0 becomes 0.0


def bad_q(q: Sequence[float], classes: int) -> Unplayable:
    """The fault of a nature that stated something else than probabilities of the classes."""
    expected = f"{classes} probabilities that sum to 1 within {ROUNDING:g}"
    return Unplayable(f"stated q = {brief(list(map(float, q)))}", expected)


TWO = Outcomes()


def outcomes_of(strategy: Any) -> Outcomes:
    """The outcomes of which a strategy is."""
    return Classes(classes_of(strategy)) if classes_of(strategy) else TWO
