"""Witnesses: proofs of the values of the measures, each from the definition alone; no measure is imported here.

A witness holds a few numbers; `bracket` computes the bounds that follow for a given Γ. To add one: a class of
`base.Witness` in the file of its kind, and a function that finds it, named in the row of the measure.
"""

from onlinecal.measures.witnesses.base import Bracket, Explanation, Witness
from onlinecal.measures.witnesses.bins import BestWidth, Bins, ShiftedBins
from onlinecal.measures.witnesses.cutoffs import Interval, Moment, PrefixSums
from onlinecal.measures.witnesses.distances import CalibratedCoupling, LevelGroups, Potentials
from onlinecal.measures.witnesses.grids import GridThreshold
from onlinecal.measures.witnesses.kernels import KernelWeights
from onlinecal.measures.witnesses.partitions import IntervalPartition, LeastCosts
from onlinecal.measures.witnesses.smoothing import SmoothedSigns
from onlinecal.measures.witnesses.tasks import RegretBound, WorstTask
from onlinecal.measures.witnesses.weights import CancelledResiduals, ErrorWeights, LipschitzWeights

__all__ = [
    "BestWidth", "Bins", "Bracket", "CalibratedCoupling", "CancelledResiduals", "ErrorWeights", "Explanation",
    "GridThreshold", "Interval", "IntervalPartition", "KernelWeights", "LeastCosts", "LevelGroups",
    "LipschitzWeights", "Moment", "Potentials", "PrefixSums", "RegretBound", "ShiftedBins", "SmoothedSigns",
    "Witness", "WorstTask",
]  # fmt: skip
