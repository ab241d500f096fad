"""Solved games: the exact value of calibration on a grid, and how both sides play for it."""

from typing import TYPE_CHECKING, Any

__all__ = ["Solution", "solve"]

if TYPE_CHECKING:
    from onlinecal.exact.game import Solution, solve


def __getattr__(name: str) -> Any:
    # Players look tables up without what makes them.
    if name in __all__:
        from onlinecal.exact import game

        return getattr(game, name)
    raise AttributeError(f"module 'onlinecal.exact' has no attribute {name!r}")
