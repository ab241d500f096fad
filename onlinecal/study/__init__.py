"""Studies: a plan of cells, the executor that plays them, the file that keeps them, the curves that come out."""

from onlinecal.study.curves import Curve, Played, Study
from onlinecal.study.plan import Cell, Entry, plan
from onlinecal.study.run import play, play_cell, play_cells

__all__ = ["Cell", "Curve", "Entry", "Played", "Study", "plan", "play", "play_cell", "play_cells"]
