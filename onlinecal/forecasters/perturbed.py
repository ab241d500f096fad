"""Follow the perturbed leader: the empirical mean, shaken by geometric noise that is fresh in every round."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from onlinecal.core.columns import Column
from onlinecal.core.expressions import check_expression
from onlinecal.core.guarantee import Guarantee
from onlinecal.core.sight import Sight
from onlinecal.core.strategy import check_whole
from onlinecal.core.streams import Stream
from onlinecal.forecasters.base import Forecaster, Player
from onlinecal.forecasters.compiled import CompiledForecaster, count_ones
from onlinecal.rounds.steps import Memory, ints, law, law_values, law_weights, own_uniforms, scratch, shared


@dataclass(frozen=True)
class PerturbedLeader(Forecaster):
    r"""Says p_t = (ones + Z_1) / (t − 1 + Z_0 + Z_1) with Z_0, Z_1 geometric with mean √T, fresh in every round.

    The law of p_t has no finite support, so in each round `atoms` independent pairs (Z_0, Z_1) are drawn and the stated
    law is uniform over their forecasts. What is played has exactly the law of the formula.

    Parameters
    ----------
    mean : float or str, default "T^(1/2)"
        Mean of the geometric noise, a number ≥ 0 or an expression in T; Z takes the values 0, 1, ….
    atoms : int, default 16
        Forecasts in the stated law, 1 to 1000.

    Guarantee
    ---------
    E[T·U-calibration] = O(√T) against natures that see the history; no constant is stated in the source.

    None holds against natures that see the law, whatever `atoms` is, since they see the forecasts that were sampled
    and not the infinite law. Who goes against the majority of the atoms, y = 0 if at least half of them lie above 1/2
    and else y = 1, forces T·E|B/K − 1/2| with K = `atoms` and B binomial(K, 1/2): T/2 at K = 1, 0.098·T at 16, about
    T/√(2πK) for many. Proof: with a fraction f of the atoms above 1/2, who acts by whether the forecast is above 1/2
    loses |f − 1/2|/2 a round on average against the better of the two actions for ever, and U-calibration is at least
    twice that. The binomial has the least mean distance from 1/2 of all that K independent atoms can have.

    Information
    -----------
    Randomised; needs the horizon (through the mean). O(atoms) time a round, two counters a run.

    Source
    ------
    Daskalakis and Syrgkanis 2016, "Learning in auctions: regret is hard, envy is easy"; Luo, Senapati and Sharan 2024,
    "Optimal multiclass U-calibration error". Deviations: the finite law described above; 1/2 where the fraction is 0/0.
    """

    deterministic: ClassVar[bool | None] = False

    mean: float | str = "T^(1/2)"
    atoms: int = 16

    def __post_init__(self) -> None:
        check_expression("mean", self.mean, 0.0, 1e12)
        check_whole("atoms", self.atoms, 1, 1000)

    def start(self, horizon: int, runs: int, stream: Stream) -> Player:
        """A player with noise of this horizon."""
        mean = check_expression("mean", self.mean, 0.0, 1e12, horizon)
        # P(Z ≥ z) = a^z with a = mean/(1 + mean): Z is the integer part of log u / log a.
        scale = 0.0 if mean == 0.0 else 1.0 / math.log(mean / (1.0 + mean))
        memory = Memory(runs, ints=2, shared=[scale], scratch=2 * self.atoms, stream=stream)
        return CompiledForecaster(_perturb, count_ones, memory, size=self.atoms)

    @property
    def guarantees(self) -> tuple[Guarantee, ...]:
        """The rate for U-calibration."""
        return (
            Guarantee(
                column=Column("measure", "u_calibration"),
                formula="√T",
                bound=math.sqrt,
                kind="rate",
                against=Sight.HISTORY,
                source="Daskalakis and Syrgkanis 2016; Luo, Senapati and Sharan 2024",
            ),
        )


@law
def _perturb(run, number):
    """The state is how many rounds there were and how many outcomes 1. Each round has 2·atoms uniforms of its own."""
    state, values, weights, noise, scale = (
        ints(run),
        law_values(run),
        law_weights(run),
        scratch(run),
        shared(run)[0],
    )
    size, rounds, ones = len(values), state[0], state[1]
    own_uniforms(run, (number - 1) * len(noise), noise)
    for j in range(size):
        # 1 − u is in (0, 1], so the logarithm is finite.
        z0 = math.floor(math.log(1.0 - noise[2 * j]) * scale)
        z1 = math.floor(math.log(1.0 - noise[2 * j + 1]) * scale)
        total = rounds + z0 + z1
        values[j], weights[j] = (ones + z1) / total if total > 0 else 0.5, 1.0 / size
    return size
