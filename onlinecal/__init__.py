"""onlinecal: simulator and measuring instrument for online calibration.

>>> import onlinecal as oc
>>> gamma = oc.JointDistribution.from_samples([0.45, 0.45], [1, 0])
>>> round(oc.measures.ece(gamma), 6)
0.05
"""

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# Where each public name is. It is imported when first asked for: the command line answers before numba is loaded.
_HOMES = {
    "JointDistribution": "onlinecal.core.joint",
    "binary_forecasts": "onlinecal.forecasts.multiclass",
    "evaluate": "onlinecal.forecasts.evaluation",
    "decomposition": "onlinecal.forecasts.regression",
    "alpha_n": "onlinecal.forecasts.testers",
    "isotonic": "onlinecal.forecasts.regression",
    "samples_to_test": "onlinecal.forecasts.testers",
    "t_cal": "onlinecal.forecasts.testers",
    "tolerant_test": "onlinecal.forecasts.testers",
    "compiled": "onlinecal.rounds.compiled",
    "play": "onlinecal.face",
    "sweep": "onlinecal.face",
    "load": "onlinecal.face",
    "Study": "onlinecal.report.curves",
    "Curve": "onlinecal.report.curves",
    "Guarantee": "onlinecal.core.guarantee",
    "OnlinecalError": "onlinecal.core.errors",
    "of_rounds": "onlinecal.core.joint",
    "Recalibrator": "onlinecal.recalibration.recalibrator",
    "recalibrate": "onlinecal.recalibration.replay",
    "fit_recalibration": "onlinecal.recalibration.maps",
    "load_recalibration": "onlinecal.recalibration.maps",
    "smooth_recalibration": "onlinecal.recalibration.smoothing",
    "Monitor": "onlinecal.monitoring.monitor",
    "RecalibratedClassifier": "onlinecal.recalibration.estimator",
    "RiverRecalibrator": "onlinecal.recalibration.river_model",
}
_ROOMS = {
    "errors": "onlinecal.core.errors",
    "exact": "onlinecal.exact",
    "exploit": "onlinecal.exploit",
    "forecasters": "onlinecal.forecasters",
    "growth": "onlinecal.growth",
    "measures": "onlinecal.measures",
    "natures": "onlinecal.natures",
    "plots": "onlinecal.report.plots",
    "rates": "onlinecal.growth.rates",
    "responses": "onlinecal.decision_makers.responses",
    "schedules": "onlinecal.schedules",
    "search": "onlinecal.search",
    "study": "onlinecal.study",
    "tasks": "onlinecal.decisions.tasks",
    "worlds": "onlinecal.worlds",
}

# A star imports nothing that needs a library which may not be there.
__all__ = sorted({*_HOMES, *_ROOMS} - {"RecalibratedClassifier", "RiverRecalibrator"})

# ruff: noqa: F401 (for type checkers)
if TYPE_CHECKING:
    from onlinecal import exact, exploit, forecasters, growth, measures, natures, search, study, worlds
    from onlinecal.core import errors
    from onlinecal.core.errors import OnlinecalError
    from onlinecal.core.guarantee import Guarantee
    from onlinecal.core.joint import JointDistribution, of_rounds
    from onlinecal.decision_makers import responses
    from onlinecal.decisions import tasks
    from onlinecal.face import load, play, sweep
    from onlinecal.forecasts.evaluation import evaluate
    from onlinecal.forecasts.multiclass import binary_forecasts
    from onlinecal.forecasts.regression import decomposition, isotonic
    from onlinecal.forecasts.testers import alpha_n, samples_to_test, t_cal, tolerant_test
    from onlinecal.growth import rates
    from onlinecal.monitoring.monitor import Monitor
    from onlinecal.recalibration.estimator import RecalibratedClassifier
    from onlinecal.recalibration.maps import fit_recalibration, load_recalibration
    from onlinecal.recalibration.recalibrator import Recalibrator
    from onlinecal.recalibration.replay import recalibrate
    from onlinecal.recalibration.river_model import RiverRecalibrator
    from onlinecal.recalibration.smoothing import smooth_recalibration
    from onlinecal.report import plots
    from onlinecal.report.curves import Curve, Study
    from onlinecal.rounds.compiled import compiled


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return importlib.import_module(_ROOMS[name])
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'onlinecal' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
