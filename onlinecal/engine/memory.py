"""How much memory a game needs of what there is."""

from __future__ import annotations

from typing import Any

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.memory import GIB, free_memory
from onlinecal.core.strategy import bytes_at, strategy_name


def bytes_of_run(forecaster: Any, nature: Any, horizon: int, kept: float) -> float:
    """The bytes that a run of a game takes at most, about, with the last states of both players."""
    return kept + sum(bytes_at(player, horizon, horizon) for player in (forecaster, nature))


def check_players(forecaster: Any, nature: Any, horizon: int) -> float:
    """Refuses players of which a single run has no room; the free memory."""
    players, free = (forecaster, nature), free_memory()
    bytes_of = [bytes_at(player, horizon, horizon) for player in players]
    needed, most = sum(bytes_of), players[bytes_of[1] > bytes_of[0]]
    if needed > free:
        raise InvalidParameter(
            f"one run of {horizon} rounds needs up to {needed / GIB:.1f} GiB for what the players remember, most of it "
            f"{strategy_name(most)!r} ({most.memory}), and {free / GIB:.1f} GiB are free; expected a shorter horizon"
        )
    return free


def check_counts(runs: int, points: int, tables: int) -> None:
    """Refuses games with more tables of counts on a grid than there is memory for."""
    needed, free = 8 * runs * points * tables, free_memory()
    if needed > 0.8 * free:
        raise InvalidParameter(
            f"{runs} runs with {tables} tables of {points} counts, for stretches between decision makers who join and "
            f"leave and for streams, need {needed / GIB:.1f} GiB, and {free / GIB:.1f} GiB are free; "
            "expected fewer decision makers, a smaller grid, or fewer runs at a time"
        )
