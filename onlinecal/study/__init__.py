"""Studies: a plan of cells, the executors that play them, the file that keeps them."""

from onlinecal.study.plan import Cell, Entry, Incompatible, Plan, plan
from onlinecal.study.played import Batch, Played, Promise, Results
from onlinecal.study.playing import play_cells
from onlinecal.study.run import play_batch, play_cell

__all__ = [
    "Batch",
    "Cell",
    "Entry",
    "Incompatible",
    "Plan",
    "Played",
    "Promise",
    "Results",
    "plan",
    "play_batch",
    "play_cell",
    "play_cells",
]
