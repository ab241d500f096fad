"""The forecasters. To add one: write its specification in a file of its family, and list it here."""

from onlinecal.forecasters.base import Forecaster, ForecasterView, Law, Scalar, as_forecaster
from onlinecal.forecasters.baselines import Constant, EmpiricalMean
from onlinecal.forecasters.hedging import AlmostOneStepAhead, CDLMinimiser, ForecastHedging
from onlinecal.strategy import registry

FORECASTERS = registry((Constant, EmpiricalMean, ForecastHedging, AlmostOneStepAhead, CDLMinimiser))

__all__ = [
    "FORECASTERS",
    "AlmostOneStepAhead",
    "CDLMinimiser",
    "Constant",
    "EmpiricalMean",
    "ForecastHedging",
    "Forecaster",
    "ForecasterView",
    "Law",
    "Scalar",
    "as_forecaster",
]
