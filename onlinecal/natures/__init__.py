"""The natures. To add one: write its specification in a file of its family, and list it here."""

from onlinecal.core.guarantee import Sight
from onlinecal.core.strategy import registry
from onlinecal.natures.adaptive import EarlyStopping, HalfCrossing, Sidestepping
from onlinecal.natures.adversarial import Contrarian, Greedy
from onlinecal.natures.base import Nature, Scalar, as_nature
from onlinecal.natures.composed import Mixture, Switch
from onlinecal.natures.maximin import Maximin
from onlinecal.natures.policies import KinkApproach, LogisticPolicy, Ratchet, SparseBias
from onlinecal.natures.replay import Replay
from onlinecal.natures.stochastic import (
    Bernoulli,
    Drift,
    LogisticFeatures,
    Markov,
    Piecewise,
    RandomWalk,
    Sawtooth,
    Sinusoid,
    UniformTruth,
)
from onlinecal.natures.streams import Streams

NATURES = registry((
    Bernoulli, Drift, Sawtooth, Sinusoid, RandomWalk, Piecewise, Markov, UniformTruth, LogisticFeatures,
    Replay, Contrarian, Greedy, Maximin, KinkApproach, SparseBias, LogisticPolicy, Ratchet, EarlyStopping,
    Sidestepping, HalfCrossing, Mixture, Switch, Streams,
))  # fmt: skip

__all__ = [
    "NATURES", "Bernoulli", "Contrarian", "Drift", "EarlyStopping", "Greedy", "HalfCrossing",
    "KinkApproach", "LogisticFeatures", "LogisticPolicy", "Markov", "Maximin", "Mixture", "Nature",
    "Piecewise", "RandomWalk", "Ratchet", "Replay", "Sawtooth", "Scalar", "Sidestepping", "Sight",
    "Sinusoid", "SparseBias", "Streams", "Switch", "UniformTruth", "as_nature",
]  # fmt: skip
