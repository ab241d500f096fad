"""How much memory a game needs of what there is."""

from __future__ import annotations

from typing import Any

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.memory import GIB, free_memory
from onlinecal.core.strategy import bytes_at, classes_of, strategy_name
from onlinecal.engine import history

#: the share of the free memory that histories may take; reading them takes more
SHARE = 0.5


def parts_of(cuts: int, streams: int, horizon: int, groups: int = 0) -> int:
    """How many parts can have a round: a stretch between cuts, a stream, and in which groups it is."""
    return min(cuts + 1, horizon) * streams << groups


def bytes_of_run(forecaster: Any, nature: Any, horizon: int, points: int | None, parts: int = 1) -> float:
    """About the bytes that a run takes at most: its history (see there), and the last states of both players."""
    players = sum(bytes_at(player, horizon, horizon) for player in (forecaster, nature))
    return history.bytes_of_run(points, horizon, parts, classes_of(nature)) + players


def check_players(forecaster: Any, nature: Any, horizon: int) -> float:
    """Refuses players that have no room for a single run; returns the free memory, which takes long to read."""
    players, free = (forecaster, nature), free_memory()
    bytes_of = [bytes_at(player, horizon, horizon) for player in players]
    needed, most = sum(bytes_of), players[bytes_of[1] > bytes_of[0]]
    if needed > free:
        raise InvalidParameter(
            f"one run of {horizon} rounds needs up to {needed / GIB:.1f} GiB for what the players remember, most of it "
            f"{strategy_name(most)!r} ({most.memory}), and {free / GIB:.1f} GiB are free; expected a shorter horizon"
        )
    return free


def check_history(
    runs: int, horizon: int, points: int | None, parts: int, free: float, classes: int = 0
) -> None:
    """Refuses runs of which the histories have no room in the free memory."""
    needed = runs * history.bytes_of_run(points, horizon, parts, classes)
    if points is None and parts > history.MOST_PARTS:
        raise InvalidParameter(
            f"rounds are of {parts:,} parts, by stretches of time, streams and groups; expected at most "
            f"{history.MOST_PARTS:,}: fewer decision makers, streams or groups"
        )
    if needed <= SHARE * free:
        return
    what = f"{runs} run(s) of {horizon} rounds"
    if points is None:
        what, expected = f"{what} without a grid", "or rounds, `rounded`, or a forecaster with a grid"
    else:
        what += (
            f" with {parts} tables of {points} counts, for streams and decision makers who join and leave,"
        )
        expected = "at a time, fewer decision makers, or a smaller grid"
    raise InvalidParameter(
        f"{what} need {needed / GIB:.1f} GiB for their history, and {SHARE:g} of {free / GIB:.1f} GiB that are free "
        f"may be used; expected fewer runs {expected}"
    )
