"""Witnesses: proofs of the values of the measures, each from the definition alone; no measure is imported here.

A witness holds a few numbers; `bracket` computes the bounds that follow for a given Γ. To add one, write a class of
`base.Witness` in the file of its kind. The row of the measure names the function that finds it.
"""

from onlinecal.measures.witnesses.base import Bracket, Explanation, Witness
from onlinecal.measures.witnesses.bins import BestWidth, Bins, IntervalPartition, LeastCosts, ShiftedBins
from onlinecal.measures.witnesses.distances import CalibratedCoupling, GridThreshold, LevelGroups, Potentials
from onlinecal.measures.witnesses.kernels import KernelWeights, SmoothedSigns
from onlinecal.measures.witnesses.tasks import RegretBound, WorstTask
from onlinecal.measures.witnesses.weights import (
    CancelledResiduals,
    ErrorWeights,
    Interval,
    LipschitzWeights,
    Moment,
)

__all__ = [
    "BestWidth", "Bins", "Bracket", "CalibratedCoupling", "CancelledResiduals", "ErrorWeights", "Explanation",
    "GridThreshold", "Interval", "IntervalPartition", "KernelWeights", "LeastCosts", "LevelGroups",
    "LipschitzWeights", "Moment", "Potentials", "RegretBound", "ShiftedBins", "SmoothedSigns",
    "Witness", "WorstTask",
]  # fmt: skip
