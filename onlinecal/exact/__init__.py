"""Solved games: the exact value of calibration on a grid, and how both sides play for it."""

from onlinecal.exact.brackets import ValueBracket, value_bracket
from onlinecal.exact.game import Solution, solve
from onlinecal.exact.signs import SignGame, sign_preservation

__all__ = ["SignGame", "Solution", "ValueBracket", "sign_preservation", "solve", "value_bracket"]
