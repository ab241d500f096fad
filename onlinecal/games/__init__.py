"""Solved games: the exact value of calibration on a grid, and how both sides play for it."""

from onlinecal.games.brackets import ValueBracket, value_bracket
from onlinecal.games.solving import Solution, solve

__all__ = ["Solution", "ValueBracket", "solve", "value_bracket"]
