"""Solved games: the exact value of calibration on a grid, and how both sides play for it."""

from typing import TYPE_CHECKING, Any

__all__ = ["SignGame", "Solution", "sign_preservation", "solve"]

if TYPE_CHECKING:
    from onlinecal.exact.game import Solution, solve
    from onlinecal.exact.signs import SignGame, sign_preservation


def __getattr__(name: str) -> Any:
    # Players look tables up without what makes them.
    if name in __all__:
        from onlinecal.exact import game, signs

        return getattr(signs if hasattr(signs, name) else game, name)
    raise AttributeError(f"module 'onlinecal.exact' has no attribute {name!r}")
