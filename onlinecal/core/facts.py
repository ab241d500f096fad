"""Facts that strategies state of themselves as class data: what each means, and what follows from those of the parts.

None stands for "does not say". All are tried: `onlinecal.checks.facts` has the measurements.

`deterministic`
    Of forecasters: every law is a single forecast that depends on the past alone.
`needs_horizon`
    The play may depend on the horizon that the player is started with. False: it is the same for every horizon.
`safe_under_delay`
    Rounds may be resolved late and in any order: what is stated in a round depends on its number, on its context or
    what nature sees of it, and on the rounds told before, in the order in which they were told; not on when other
    questions were asked, answered or not. "The last outcome" then is the last that was told. What is proved of play
    without delays is not said to hold with them. Only who shares questions out by what is open (`counts_open`, of
    `Delayed` and what is made of it) may depend on that, too.
`memory`
    How the state of a run grows, ``"O(m)"``: in t, the rounds played, in T, and in parameters, at most so fast. Beside
    it there may be what all runs share, which grows with t no faster. Rounds that are open have memory of their own.
    `unit_bytes` says how many bytes one unit takes, at most; batches of runs are made so that they fit.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping
from typing import Any

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.expressions import value_at
from onlinecal.core.strategy import parameters
from onlinecal.core.validation import is_number

#: names of facts that are true or false, and of all, as they are listed
TRUTHS = ("deterministic", "needs_horizon", "safe_under_delay")
FACTS = (*TRUTHS, "memory")

_GROWTH = re.compile(r"O\((.+)\)")
#: a parameter in a growth, maybe of a part: ``m``, ``of.m``, ``natures[1].cells``
_PARAMETER = re.compile(
    r"(?<![\w.])(?!(?:t|T|sqrt|log|ceil|floor|min|max)\b)[A-Za-z_]\w*(?:\[\d+\]|\.[A-Za-z_]\w*)*"
)


def some(facts: Iterable[bool | None]) -> bool | None:
    """Whether one of the facts is true: None where that hangs on one that is not said.

    >>> some([False, None, True]), some([False, None]), some([])
    (True, None, False)
    """
    known = set(facts)
    return True if True in known else None if None in known else False


def every(facts: Iterable[bool | None]) -> bool | None:
    """Whether all are true: None where that hangs on one that is not said.

    >>> every([True, None, False]), every([True, None]), every([])
    (False, None, True)
    """
    known = set(facts)
    return False if False in known else None if None in known else True


def counts_open(strategy: Any) -> bool:
    """Whether what it states may depend on which questions are open: it declares so, or one of its parts does."""
    if getattr(strategy, "counts_open", False) is True:
        return True
    return any(counts_open(part) for part in _parts(strategy))


def memory_of(parts: Mapping[str, Any]) -> str | None:
    """The growth of a strategy made of others that keeps nothing but their states.

    Parameters
    ----------
    parts : mapping
        Where a part is to be found in the whole, ``"of[0]"``, and the part.

    Examples
    --------
    >>> from onlinecal.forecasters import Constant, ForecastHedging
    >>> memory_of({"of[0]": Constant(), "of[1]": ForecastHedging()})
    'O(of[1].m)'
    """
    terms = []
    for path, part in parts.items():
        stated = part.memory
        if stated is None:
            return None
        terms.append(_PARAMETER.sub(rf"{path}.\g<0>", _inside(stated)))
    grow = list(dict.fromkeys(term for term in terms if term != "1"))
    return f"O({' + '.join(grow) or '1'})"


def memory_at(strategy: Any, rounds: int, horizon: int) -> float:
    """The value of the growth that a strategy states, after so many rounds of a game of this horizon.

    Raises
    ------
    InvalidParameter
        It is not of the form ``"O(…)"``, or speaks of a parameter that is not there or is no number.
    """

    def number(found: re.Match[str]) -> str:
        value = strategy
        for part in re.findall(r"\w+", found[0]):
            settings = getattr(value, "settings", {})  # of what is made of somebody's plain class
            value = value[int(part)] if part.isdigit() else settings.get(part) or getattr(value, part)
        return repr(float(value) if is_number(value) else value_at(value, horizon))

    text = _inside(strategy.memory)
    try:
        text = _PARAMETER.sub(number, text)
        return value_at(re.sub(r"\bt\b", str(rounds), text), horizon)
    except (AttributeError, IndexError, TypeError) as error:
        raise InvalidParameter(f"memory = {strategy.memory!r}: {error}") from None


def bytes_at(strategy: Any, rounds: int, horizon: int) -> float:
    """How many bytes the state of a run takes at most, about, after so many rounds of a game of this horizon.

    `memory` times `unit_bytes`; of a strategy made of others the largest of theirs. 0 where it does not say.
    """
    if getattr(strategy, "memory", None) is None:
        return 0.0
    return memory_at(strategy, rounds, horizon) * _unit(strategy)


def _unit(strategy: Any) -> float:
    return max(
        [
            float(strategy.unit_bytes),
            *(_unit(part) for part in _parts(strategy) if hasattr(part, "unit_bytes")),
        ]
    )


def _parts(strategy: Any) -> list[Any]:
    """The strategies that it is made of."""
    held = parameters(strategy).values()
    every = [each for value in held for each in (value if isinstance(value, tuple) else (value,))]
    return [part for part in every if dataclasses.is_dataclass(part)]


def check_facts(strategy: Any) -> str:
    """What is wrong with the form of the facts that a strategy states, in words; "" if nothing is."""
    for name in TRUTHS:
        fact = getattr(strategy, name, None)
        if fact is not None and not isinstance(fact, bool):
            return f"{name} = {fact!r}; expected True, False, or None for 'does not say'"
    if getattr(strategy, "memory", None) is not None:
        try:
            memory_at(strategy, 1000, 1000)
        except InvalidParameter as error:
            return str(error)
    return ""


def _inside(growth: Any) -> str:
    found = _GROWTH.fullmatch(growth) if isinstance(growth, str) else None
    if found is None:
        raise InvalidParameter(
            f"memory = {growth!r}; expected 'O(…)' of t, T and parameters, such as 'O(1)', 'O(m)' or 'O(t)'"
        )
    return found[1]
