"""The forecasters. To add one: write its specification in a file of its family, and import it here under its name."""

from onlinecal.core.strategy import registry
from onlinecal.forecasters.base import Forecaster as Forecaster
from onlinecal.forecasters.base import Scalar as Scalar
from onlinecal.forecasters.base import as_forecaster as as_forecaster
from onlinecal.forecasters.baselines import Constant as Constant
from onlinecal.forecasters.baselines import EmpiricalMean as EmpiricalMean
from onlinecal.forecasters.baselines import LastOutcome as LastOutcome
from onlinecal.forecasters.baselines import Logistic as Logistic
from onlinecal.forecasters.baselines import Shifted as Shifted
from onlinecal.forecasters.baselines import Tempered as Tempered
from onlinecal.forecasters.baselines import Truthful as Truthful
from onlinecal.forecasters.baselines import Unchanged as Unchanged
from onlinecal.forecasters.baselines import UniformRandom as UniformRandom
from onlinecal.forecasters.classes import ClassByClass as ClassByClass
from onlinecal.forecasters.classes import ClassLeader as ClassLeader
from onlinecal.forecasters.classes import ClassMean as ClassMean
from onlinecal.forecasters.composed import Doubling as Doubling
from onlinecal.forecasters.composed import Rounded as Rounded
from onlinecal.forecasters.copies import Delayed as Delayed
from onlinecal.forecasters.copies import Separate as Separate
from onlinecal.forecasters.defensive import DefensiveForecasting as DefensiveForecasting
from onlinecal.forecasters.experts import ExpertAggregation as ExpertAggregation
from onlinecal.forecasters.experts import ExpertMixture as ExpertMixture
from onlinecal.forecasters.grouped import GroupHedging as GroupHedging
from onlinecal.forecasters.harmonic import Harmonic as Harmonic
from onlinecal.forecasters.hedging import AlmostOneStepAhead as AlmostOneStepAhead
from onlinecal.forecasters.hedging import CDLMinimiser as CDLMinimiser
from onlinecal.forecasters.hedging import ForecastHedging as ForecastHedging
from onlinecal.forecasters.hedging import SoftHedging as SoftHedging
from onlinecal.forecasters.internal_regret import BlumMansour as BlumMansour
from onlinecal.forecasters.internal_regret import BlumMansourLog as BlumMansourLog
from onlinecal.forecasters.internal_regret import FosterVohra as FosterVohra
from onlinecal.forecasters.minimax import Minimax as Minimax
from onlinecal.forecasters.perturbed import PerturbedLeader as PerturbedLeader
from onlinecal.forecasters.perturbed import ThresholdHedging as ThresholdHedging
from onlinecal.forecasters.recalibration import Calibeating as Calibeating
from onlinecal.forecasters.recalibration import OnlinePlatt as OnlinePlatt
from onlinecal.forecasters.recalibration import TrackingPlatt as TrackingPlatt
from onlinecal.forecasters.simplex import SimplexHedging as SimplexHedging
from onlinecal.forecasters.thresholds import StepCEMinimiser as StepCEMinimiser

#: name → class, of all that is imported here
FORECASTERS = registry(
    each for each in [*globals().values()]
    if isinstance(each, type) and issubclass(each, Forecaster) and each not in (Forecaster, Scalar)
)  # fmt: skip

__all__ = [
    "FORECASTERS",
    "Forecaster",
    "Scalar",
    "as_forecaster",
    *(each.__name__ for each in FORECASTERS.values()),
]
