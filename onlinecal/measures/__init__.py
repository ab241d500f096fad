"""The calibration measures: pure functions of Γ.

To add one: write it in the file of its family, with its row in that file's ``MEASURES``.
"""

from onlinecal.measures import decision as _decision
from onlinecal.measures import ece as _ece
from onlinecal.measures import kernel as _kernel
from onlinecal.measures import scores as _scores
from onlinecal.measures import smooth as _smooth
from onlinecal.measures.base import Bracket, Measure, Witness
from onlinecal.measures.decision import cdl, cfdl, u_calibration, v_cdl
from onlinecal.measures.ece import binned_ece, binned_ece_width, ece
from onlinecal.measures.kernel import kernel_ce
from onlinecal.measures.scores import brier, brier_decomposition, log_loss, nce
from onlinecal.measures.smooth import smooth_ce

_FAMILIES = (_ece, _smooth, _kernel, _decision, _scores)

#: name → what is known about it
MEASURES: dict[str, Measure] = {measure.name: measure for family in _FAMILIES for measure in family.MEASURES}

__all__ = [
    "MEASURES",
    "Bracket",
    "Measure",
    "Witness",
    "binned_ece",
    "binned_ece_width",
    "brier",
    "brier_decomposition",
    "cdl",
    "cfdl",
    "ece",
    "kernel_ce",
    "log_loss",
    "nce",
    "smooth_ce",
    "u_calibration",
    "v_cdl",
]
