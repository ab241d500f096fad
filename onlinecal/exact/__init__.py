"""Solved games: the exact value of calibration on a grid, and how both sides play for it."""

from typing import TYPE_CHECKING, Any

__all__ = ["SignGame", "Solution", "ValueBracket", "sign_preservation", "solve", "value_bracket"]

if TYPE_CHECKING:
    from onlinecal.exact.brackets import ValueBracket, value_bracket
    from onlinecal.exact.game import Solution, solve
    from onlinecal.exact.signs import SignGame, sign_preservation


def __getattr__(name: str) -> Any:
    # Players look tables up without what makes them.
    if name in __all__:
        from onlinecal.exact import brackets, game, signs

        home = next(module for module in (game, brackets, signs) if hasattr(module, name))
        return getattr(home, name)
    raise AttributeError(f"module 'onlinecal.exact' has no attribute {name!r}")
