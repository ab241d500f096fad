"""The natures. To add one: write its specification in a file of its family, and list it here."""

from onlinecal.natures.adversarial import Contrarian, Greedy
from onlinecal.natures.base import Nature, NatureRound, Sight, as_nature
from onlinecal.natures.composed import Mixture, Switch
from onlinecal.natures.kinks import KinkApproach, SparseBias
from onlinecal.natures.patient import EarlyStopping, HalfCrossing, Sidestepping
from onlinecal.natures.recorded import Replay
from onlinecal.natures.stochastic import Bernoulli, Drift, LogisticFeatures, Sawtooth, Sinusoid, UniformTruth
from onlinecal.natures.wandering import Markov, Piecewise, RandomWalk
from onlinecal.strategy import registry

NATURES = registry(
    (
        Bernoulli,
        Drift,
        Sawtooth,
        Sinusoid,
        RandomWalk,
        Piecewise,
        Markov,
        UniformTruth,
        LogisticFeatures,
        Replay,
        Contrarian,
        Greedy,
        KinkApproach,
        SparseBias,
        EarlyStopping,
        Sidestepping,
        HalfCrossing,
        Mixture,
        Switch,
    )
)

__all__ = [
    "NATURES",
    "Bernoulli",
    "Contrarian",
    "Drift",
    "EarlyStopping",
    "Greedy",
    "HalfCrossing",
    "KinkApproach",
    "LogisticFeatures",
    "Markov",
    "Mixture",
    "Nature",
    "NatureRound",
    "Piecewise",
    "RandomWalk",
    "Replay",
    "Sawtooth",
    "Sidestepping",
    "Sight",
    "Sinusoid",
    "SparseBias",
    "Switch",
    "UniformTruth",
    "as_nature",
]
