"""Natures with free parameters: tables as in a scenario, in which numbers may be ranges."""

import dataclasses
import inspect
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.strategy import named_table, parameters, strategy_name
from onlinecal.naming import STRATEGIES, class_of, strategies_in
from onlinecal.sweeping import check_range

#: significant digits of a parameter, so that the nature that is written is the one that was played
DIGITS = 6


def _range(low: float, high: float, spacing: str = "linear") -> dict[str, Any]:
    return {"from": low, "to": high, "spacing": spacing}


_KINK = _range(0.2, 0.8)
_APPROACH = {"name": "kink_approach", "kink": _KINK, "dwell": _range(0.01, 10.0, "log")}

#: the default: thresholds and ratchets on biases, coins, drifts, Markov chains, pieces, and mixtures
SPACES: tuple[dict[str, Any], ...] = (
    _APPROACH,
    {"name": "ratchet", "kink": _KINK, "low": _range(-3.0, 1.0), "width": _range(0.01, 3.0, "log")},
    {"name": "logistic_policy", "weights": [_range(-1.0, 1.0)] * 8},
    {"name": "sparse_bias", "kink": _KINK, "reach": _range(0.01, 1.0, "log")},
    {"name": "greedy", "target": "kink", "kink": _KINK},
    {"name": "greedy", "target": "ece"},
    {"name": "contrarian"},
    {"name": "bernoulli", "q": _range(0.0, 1.0)},
    {"name": "drift", "first": _range(0.0, 1.0), "last": _range(0.0, 1.0)},
    {"name": "markov", "p01": _range(0.0, 1.0), "p10": _range(0.0, 1.0)},
    {"name": "piecewise", "change_rate": _range(1e-5, 0.1, "log")},
    {"name": "sidestepping", "cells": _range(2, 200, "log")},
    {
        "name": "mixture",
        "natures": [_APPROACH, {"name": "bernoulli", "q": _range(0.0, 1.0)}],
        "weights": [1.0, _range(0.001, 1.0, "log")],
    },
)


@dataclass(frozen=True)
class _Free:
    """A parameter that is searched."""

    name: str
    low: float
    high: float
    log: bool
    whole: bool

    def at(self, u: float) -> int | float:
        if self.log:
            value = math.exp(math.log(self.low) + u * (math.log(self.high) - math.log(self.low)))
        else:
            value = self.low + u * (self.high - self.low)
        value = min(max(float(f"{value:.{DIGITS}g}"), self.low), self.high)
        return round(value) if self.whole else float(value)


@dataclass(frozen=True)
class Space:
    """The natures that a table with ranges stands for: one for each point of the unit cube."""

    template: Mapping[str, Any]
    free: tuple[_Free, ...]

    @classmethod
    def of(cls, spec: Any) -> "Space":
        """Of a name, or a table with a name in which numbers may be ranges."""
        name, options = named_table("nature", spec)
        free: list[_Free] = []
        found = cls(_read({"name": name, **options}, free), tuple(free))
        # The ends of the diagonal and its middle.
        for u in (0.0, 0.5, 1.0):
            found.nature([u] * len(free))
        return found

    @property
    def label(self) -> str:
        """The family in words."""
        names = ", ".join(dict.fromkeys(re.sub(r"\[\d+\]", "", each.name) for each in self.free))
        return f"{self.template['name']} ({names})" if names else str(self.template["name"])

    def table(self, point: Iterable[float]) -> dict[str, Any]:
        """The table of the nature at a point of [0, 1]^d."""
        made: dict[str, Any] = _filled(self.template, iter(point))
        return made

    def nature(self, point: Iterable[float]) -> Any:
        return nature_of(self.table(point))


def nature_of(table: Mapping[str, Any]) -> Any:
    return strategies_in("nature", dict(table))


def _read(value: Any, free: list[_Free], name: str = "", whole: bool = False) -> Any:
    """The same value with a `_Free` in the place of each range."""
    if isinstance(value, Mapping):
        if isinstance(value.get("name"), str):
            known = inspect.signature(class_of("nature", value["name"])).parameters
            prefix = f"{name}." if name else ""
            return {
                key: _read(item, free, prefix + key, key in known and _whole(known[key]))
                for key, item in value.items()
            }
        free.append(_ranged(name, value, whole))
        return free[-1]
    if isinstance(value, list | tuple):
        return [_read(item, free, f"{name}[{i}]", whole) for i, item in enumerate(value)]
    return value


def _whole(parameter: inspect.Parameter) -> bool:
    """Whether it takes integers only, by its annotation, or else its default."""
    if parameter.annotation is parameter.empty:
        return type(parameter.default) is int
    words = re.findall(r"\w+", str(parameter.annotation))
    return "int" in words and "float" not in words


def _ranged(name: str, spec: Mapping[str, Any], whole: bool) -> _Free:
    log = check_range(name, spec, ("from", "to"))
    for key in ("from", "to"):
        if whole and spec[key] != int(spec[key]):
            expected = f"expected a whole number, as {name} is one"
            raise InvalidParameter(f"{name} = {dict(spec)!r}: {key} = {spec[key]!r}; {expected}")
    return _Free(name, spec["from"], spec["to"], log, whole)


def _filled(value: Any, point: Iterator[float]) -> Any:
    if isinstance(value, _Free):
        return value.at(float(next(point)))
    if isinstance(value, Mapping):
        return {key: _filled(item, point) for key, item in value.items()}
    if isinstance(value, list):
        return [_filled(item, point) for item in value]
    return value


def table_of(kind: str, strategy: Any) -> dict[str, Any]:
    """The table of a registered strategy, as in a scenario: its name, and the parameters that are not the defaults."""
    name = strategy_name(strategy)
    if STRATEGIES[kind].get(name) is not type(strategy):
        raise InvalidParameter(
            f"{strategy!r} is not a registered {kind}; expected one, its name, module:Class, or a table with a name"
        )
    defaults = {field.name: field.default for field in dataclasses.fields(strategy)}
    return {"name": name} | {
        key: _value(kind, value) for key, value in parameters(strategy).items() if value != defaults[key]
    }


def _value(kind: str, value: Any) -> Any:
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, tuple | list):
        return [_value(kind, item) for item in value]
    return table_of(kind, value)


def toml(value: Any) -> str:
    """A value in one line of TOML: `{ name = "bernoulli", q = 0.25 }`."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {toml(item)}" for key, item in value.items()) + " }"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Sequence):
        return "[" + ", ".join(map(toml, value)) + "]"
    if isinstance(value, int | float):
        return repr(value)
    raise InvalidParameter(f"{value!r} cannot be written in a scenario; expected number, text, list or table")
