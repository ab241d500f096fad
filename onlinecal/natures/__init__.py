"""The natures. To add one: write its specification in a file of its family, and list it here."""

from onlinecal.natures.adversarial import Contrarian
from onlinecal.natures.base import Nature, NatureView, Sight
from onlinecal.natures.recorded import Replay
from onlinecal.natures.stochastic import Bernoulli, Drift, UniformTruth
from onlinecal.strategy import registry

NATURES = registry((Bernoulli, Drift, UniformTruth, Contrarian, Replay))

__all__ = [
    "NATURES",
    "Bernoulli",
    "Contrarian",
    "Drift",
    "Nature",
    "NatureView",
    "Replay",
    "Sight",
    "UniformTruth",
]
