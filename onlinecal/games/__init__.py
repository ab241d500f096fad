"""Solved games: the exact value of calibration on a grid, and how both sides play for it."""

from onlinecal.games.brackets import ValueBracket, value_bracket
from onlinecal.games.classes import ClassSolution, solve_classes
from onlinecal.games.solving import Solution, solve

__all__ = ["ClassSolution", "Solution", "ValueBracket", "solve", "solve_classes", "value_bracket"]
