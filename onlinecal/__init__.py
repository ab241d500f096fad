"""onlinecal: simulator and measuring instrument for online calibration.

>>> import onlinecal as oc
>>> gamma = oc.JointDistribution.from_samples([0.45, 0.45], [1, 0])
>>> round(oc.measures.ece(gamma), 6)
0.05
"""

import importlib
import importlib.util
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# Where each public name is. It is imported when first asked for: the command line answers before numba is loaded.
_NAMES = {
    "core.classes": "ClassDistribution", "core.errors": "OnlinecalError", "core.guarantee": "Guarantee",
    "core.joint": "JointDistribution",
    "core.transcript": "of_rounds", "measures.groups": "of_groups", "face": "load play sweep",
    "logs.classes": "evaluate_classes", "logs.evaluation": "evaluate", "logs.line": "calibration_line",
    "logs.multiclass": "binary_forecasts", "logs.regression": "decomposition isotonic",
    "monitoring.monitor": "Monitor",
    "recalibration.estimator": "RecalibratedClassifier", "recalibration.maps": "fit_recalibration load_recalibration",
    "recalibration.recalibrator": "Recalibrator", "recalibration.replay": "recalibrate",
    "recalibration.river_model": "RiverRecalibrator", "recalibration.smoothing": "smooth_recalibration",
    "study.curves": "Curve Study", "engine.record": "compiled",
}  # fmt: skip
_HOMES = {name: f"onlinecal.{home}" for home, names in _NAMES.items() for name in names.split()}
_ROOMS = {
    "errors": "onlinecal.core.errors", "plots": "onlinecal.report.plots", "rates": "onlinecal.growth.rates",
    "exact": "onlinecal.games", "responses": "onlinecal.decisions.responses",
    "search": "onlinecal.exploit.search", "tasks": "onlinecal.decisions.tasks",
}  # fmt: skip
_OWN = "exploit forecasters growth measures natures schedules study worlds"
_ROOMS |= {room: f"onlinecal.{room}" for room in _OWN.split()}

# Public names that need a library which may not be there; a star imports none of them.
_LIBRARIES = {"RecalibratedClassifier": "sklearn", "RiverRecalibrator": "river"}
__all__ = sorted({*_HOMES, *_ROOMS} - {*_LIBRARIES})

if TYPE_CHECKING:
    from onlinecal import exploit as exploit
    from onlinecal import forecasters as forecasters
    from onlinecal import games
    from onlinecal import growth as growth
    from onlinecal import measures as measures
    from onlinecal import natures as natures
    from onlinecal import study as study
    from onlinecal import worlds as worlds
    from onlinecal.core import errors as errors
    from onlinecal.core.classes import ClassDistribution as ClassDistribution
    from onlinecal.core.errors import OnlinecalError as OnlinecalError
    from onlinecal.core.guarantee import Guarantee as Guarantee
    from onlinecal.core.joint import JointDistribution as JointDistribution
    from onlinecal.core.transcript import of_rounds as of_rounds
    from onlinecal.decisions import responses as responses
    from onlinecal.decisions import tasks as tasks
    from onlinecal.engine.record import compiled as compiled
    from onlinecal.exploit import search as search
    from onlinecal.face import load as load
    from onlinecal.face import play as play
    from onlinecal.face import sweep as sweep
    from onlinecal.growth import rates as rates
    from onlinecal.logs.classes import evaluate_classes as evaluate_classes
    from onlinecal.logs.evaluation import evaluate as evaluate
    from onlinecal.logs.line import calibration_line as calibration_line
    from onlinecal.logs.multiclass import binary_forecasts as binary_forecasts
    from onlinecal.logs.regression import decomposition as decomposition
    from onlinecal.logs.regression import isotonic as isotonic
    from onlinecal.measures.groups import of_groups as of_groups
    from onlinecal.monitoring.monitor import Monitor as Monitor
    from onlinecal.recalibration.estimator import RecalibratedClassifier as RecalibratedClassifier
    from onlinecal.recalibration.maps import fit_recalibration as fit_recalibration
    from onlinecal.recalibration.maps import load_recalibration as load_recalibration
    from onlinecal.recalibration.recalibrator import Recalibrator as Recalibrator
    from onlinecal.recalibration.replay import recalibrate as recalibrate
    from onlinecal.recalibration.river_model import RiverRecalibrator as RiverRecalibrator
    from onlinecal.recalibration.smoothing import smooth_recalibration as smooth_recalibration
    from onlinecal.report import plots as plots
    from onlinecal.study.curves import Curve as Curve
    from onlinecal.study.curves import Study as Study

    exact = games


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return importlib.import_module(_ROOMS[name])
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'onlinecal' has no attribute {name!r}")


def __dir__() -> list[str]:
    # Tools ask for all that is listed, and what needs a missing library answers with an error.
    there = (name for name, library in _LIBRARIES.items() if importlib.util.find_spec(library) is not None)
    return [*__all__, *there, "__version__"]
