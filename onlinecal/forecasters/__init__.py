"""The forecasters. To add one: write its specification in a file of its family, and list it here."""

from onlinecal.core.strategy import registry
from onlinecal.forecasters.base import Forecaster, Scalar, as_forecaster
from onlinecal.forecasters.baselines import (
    Constant,
    EmpiricalMean,
    LastOutcome,
    Logistic,
    Shifted,
    Tempered,
    Truthful,
    Unchanged,
    UniformRandom,
)
from onlinecal.forecasters.composed import Doubling, Rounded
from onlinecal.forecasters.copies import Delayed, Separate
from onlinecal.forecasters.defensive import DefensiveForecasting
from onlinecal.forecasters.experts import ExpertAggregation, ExpertMixture
from onlinecal.forecasters.hedging import AlmostOneStepAhead, CDLMinimiser, ForecastHedging, SoftHedging
from onlinecal.forecasters.internal_regret import BlumMansour, BlumMansourLog, FosterVohra
from onlinecal.forecasters.minimax import Minimax
from onlinecal.forecasters.perturbed import PerturbedLeader, ThresholdHedging
from onlinecal.forecasters.recalibration import Calibeating, OnlinePlatt, TrackingPlatt
from onlinecal.forecasters.thresholds import StepCEMinimiser

FORECASTERS = registry((
    Constant, EmpiricalMean, LastOutcome, UniformRandom, Truthful, Tempered, Shifted, Logistic,
    ForecastHedging, FosterVohra, AlmostOneStepAhead, CDLMinimiser, StepCEMinimiser, SoftHedging,
    DefensiveForecasting, PerturbedLeader, ThresholdHedging, Minimax, BlumMansour, BlumMansourLog,
    Unchanged, Calibeating, OnlinePlatt, TrackingPlatt, ExpertMixture, ExpertAggregation, Doubling, Rounded,
    Delayed, Separate,
))  # fmt: skip

__all__ = [
    "FORECASTERS", "AlmostOneStepAhead", "BlumMansour", "BlumMansourLog", "CDLMinimiser", "Calibeating",
    "Constant", "DefensiveForecasting", "Delayed", "Doubling", "EmpiricalMean", "ExpertAggregation",
    "ExpertMixture", "ForecastHedging", "Forecaster", "FosterVohra", "LastOutcome", "Logistic", "Minimax",
    "OnlinePlatt", "PerturbedLeader", "Rounded", "Scalar", "Separate", "Shifted", "SoftHedging",
    "StepCEMinimiser", "Tempered", "ThresholdHedging", "TrackingPlatt", "Truthful", "Unchanged",
    "UniformRandom", "as_forecaster",
]  # fmt: skip
