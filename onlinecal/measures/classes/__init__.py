"""The calibration measures of K classes: functions of a `ClassDistribution`, or of p of K columns and y.

All are rates, and each is the binary measure of the same name where K = 2. That takes a factor ½ in `ece`, `smooth_ce`,
`kernel_ce` and `brier`, which other packages may not have (docs/classes.md). Any binary measure can be read of a set of
classes (`classwise`, `toplabel`, `setwise`).
"""

from onlinecal.core.classes import ClassDistribution
from onlinecal.decisions.class_tasks import ClassAccount, ClassTask
from onlinecal.measures.classes.brackets import cdl_bracket, smooth_ce_bracket, u_calibration_bracket
from onlinecal.measures.classes.programs import cdl, smooth_ce, swap_regret, u_calibration, worst_task
from onlinecal.measures.classes.sums import (
    EachClass,
    WorstSet,
    brier,
    classwise,
    ece,
    kernel_ce,
    kernel_ce_squared,
    log_loss,
    setwise,
    toplabel,
)

__all__ = [
    "ClassAccount", "ClassDistribution", "ClassTask", "EachClass", "WorstSet", "brier", "cdl", "cdl_bracket",
    "classwise", "ece", "kernel_ce", "kernel_ce_squared", "log_loss", "setwise", "smooth_ce", "smooth_ce_bracket",
    "swap_regret", "toplabel", "u_calibration", "u_calibration_bracket", "worst_task",
]  # fmt: skip
