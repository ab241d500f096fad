"""onlinecal: simulator and measuring instrument for online calibration.

>>> import onlinecal as oc
>>> gamma = oc.JointDistribution.from_samples([0.45, 0.45], [1, 0])
>>> round(oc.measures.ece(gamma), 6)
0.05
"""

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# Where each public name lives. It is imported when first asked for: the command line answers before numba is loaded.
_HOMES = {
    "JointDistribution": "onlinecal.joint",
    "evaluate": "onlinecal.evaluation",
    "play": "onlinecal.study",
    "Study": "onlinecal.study",
    "Curve": "onlinecal.study",
    "Guarantee": "onlinecal.guarantee",
    "OnlinecalError": "onlinecal.errors",
}
_ROOMS = (
    "errors",
    "forecasters",
    "growth",
    "measures",
    "natures",
    "plots",
    "rates",
    "responses",
    "study",
    "tasks",
)

__all__ = [
    "Curve",
    "Guarantee",
    "JointDistribution",
    "OnlinecalError",
    "Study",
    "errors",
    "evaluate",
    "forecasters",
    "growth",
    "measures",
    "natures",
    "play",
    "plots",
    "rates",
    "responses",
    "study",
    "tasks",
]

if TYPE_CHECKING:
    from onlinecal import (
        errors,
        forecasters,
        growth,
        measures,
        natures,
        plots,
        rates,
        responses,
        study,
        tasks,
    )
    from onlinecal.errors import OnlinecalError
    from onlinecal.evaluation import evaluate
    from onlinecal.guarantee import Guarantee
    from onlinecal.joint import JointDistribution
    from onlinecal.study import Curve, Study, play


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return importlib.import_module(f"onlinecal.{name}")
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'onlinecal' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
