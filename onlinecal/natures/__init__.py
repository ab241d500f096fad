"""The natures. To add one: write its specification in a file of its family, and import it here under its name."""

from onlinecal.core.guarantee import Sight as Sight
from onlinecal.core.strategy import registry
from onlinecal.natures.adaptive import EarlyStopping as EarlyStopping
from onlinecal.natures.adaptive import HalfCrossing as HalfCrossing
from onlinecal.natures.adaptive import Sidestepping as Sidestepping
from onlinecal.natures.adversarial import Contrarian as Contrarian
from onlinecal.natures.adversarial import Greedy as Greedy
from onlinecal.natures.base import Nature as Nature
from onlinecal.natures.base import Scalar as Scalar
from onlinecal.natures.base import as_nature as as_nature
from onlinecal.natures.classes import Categorical as Categorical
from onlinecal.natures.classes import ContrarianClasses as ContrarianClasses
from onlinecal.natures.classes import DriftClasses as DriftClasses
from onlinecal.natures.classes import GreedyClasses as GreedyClasses
from onlinecal.natures.composed import Mixture as Mixture
from onlinecal.natures.composed import Switch as Switch
from onlinecal.natures.grouped import GroupContrarian as GroupContrarian
from onlinecal.natures.grouped import Grouped as Grouped
from onlinecal.natures.maximin import Maximin as Maximin
from onlinecal.natures.policies import KinkApproach as KinkApproach
from onlinecal.natures.policies import LogisticPolicy as LogisticPolicy
from onlinecal.natures.policies import Ratchet as Ratchet
from onlinecal.natures.policies import SparseBias as SparseBias
from onlinecal.natures.replay import Replay as Replay
from onlinecal.natures.stochastic import Bernoulli as Bernoulli
from onlinecal.natures.stochastic import Drift as Drift
from onlinecal.natures.stochastic import LogisticFeatures as LogisticFeatures
from onlinecal.natures.stochastic import Markov as Markov
from onlinecal.natures.stochastic import Piecewise as Piecewise
from onlinecal.natures.stochastic import RandomWalk as RandomWalk
from onlinecal.natures.stochastic import Sawtooth as Sawtooth
from onlinecal.natures.stochastic import Sinusoid as Sinusoid
from onlinecal.natures.stochastic import UniformTruth as UniformTruth
from onlinecal.natures.streams import Streams as Streams

#: name → class, of all that is imported here
NATURES = registry(
    each for each in [*globals().values()]
    if isinstance(each, type) and issubclass(each, Nature) and each not in (Nature, Scalar)
)  # fmt: skip

__all__ = ["NATURES", "Nature", "Scalar", "Sight", "as_nature", *(each.__name__ for each in NATURES.values())]
