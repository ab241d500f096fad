"""Studies: a plan of cells, the executor that plays them, the file that keeps them."""

from onlinecal.study.plan import Cell, Entry, plan
from onlinecal.study.played import Played, Promise, Results
from onlinecal.study.run import play_cell, play_cells

__all__ = ["Cell", "Entry", "Played", "Promise", "Results", "plan", "play_cell", "play_cells"]
