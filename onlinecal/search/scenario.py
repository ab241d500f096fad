"""The result of a search, as a scenario."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.strategy import parameters, strategy_label, strategy_name
from onlinecal.naming import STRATEGIES, strategies_in

if TYPE_CHECKING:
    from onlinecal.search.worst import Found


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
    """A value in one line of TOML.

    Examples
    --------
    >>> toml({"name": "bernoulli", "q": 0.25})
    '{ name = "bernoulli", q = 0.25 }'
    """
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
    raise InvalidParameter(
        f"{value!r} cannot be written in a scenario; expected a number, text, list or table"
    )


def scenario_text(found: Found) -> str:
    """A scenario of the fresh games."""
    who = strategy_label(strategies_in("forecaster", dict(found.against)))
    runs = max(len(found.totals), 2)
    lines = [
        f"# The worst nature of {found.evaluations} for {who}: found by `onlinecal search`, seed {found.seed}."
    ]
    if len(found.totals):
        low, high = found.interval
        lines.append(
            f"# T·{found.measure} in these fresh games: {found.mean:.6g}, 95 % interval {low:.6g} to {high:.6g}."
        )
    lines += [
        f"title = {toml(f'The worst nature found for {who}, T = {found.horizon:,}')}",
        f"seed = {found.fresh_seed}",
        f"runs = {runs}",
        f"horizons = [{found.horizon}]",
        f"measures = [{toml(found.measure)}]",
        f"forecasters = [{toml(found.against)}]",
        f"natures = [{toml(found.nature)}]",
    ]
    return "\n".join(lines) + "\n"
