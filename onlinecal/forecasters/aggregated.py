"""Aggregation of experts: a constant regret in the log loss and in the Brier score at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.strategy import check_number, strategy_name
from onlinecal.core.streams import Stream
from onlinecal.forecasters._composed import aggregation, of_steps
from onlinecal.forecasters._laws import agreed, regret_both
from onlinecal.forecasters._parts import Part, checked, memo_of
from onlinecal.forecasters.base import Player
from onlinecal.forecasters.composed import OfExperts
from onlinecal.rounds.law import Law
from onlinecal.rounds.record import Round


@dataclass(frozen=True)
class ExpertAggregation(OfExperts):
    r"""Aggregates the forecasts of experts by their log losses and Brier scores so far.

    With R_k the log loss so far less that of expert k, and B_k the same of the Brier total, expert k has the weights
    w_k ∝ exp(R_k) and v_k ∝ exp(2B_k). The forecast is the p at which Σ w_k exp(R_k') + Σ v_k exp(2B_k'), with R_k' and
    B_k' what the round adds, is the same after either outcome. It lies between the experts' forecasts.

    Parameters
    ----------
    of : sequence of Forecaster
        The experts, at least one, each of them deterministic.
    edge : float, default 1e-6
        Forecasts of experts are taken into [edge, 1 − edge]; in [1e-12, 0.25].

    Guarantee
    ---------
    For every sequence, at every time and for each of the K experts, with its forecasts in [edge, 1 − edge]: the log
    loss is at most the expert's + ln 2K, and the Brier total is at most the expert's + ½ ln 2K. The edge itself costs
    an expert at most −ln(1 − edge) a round in the log loss, and edge² in the Brier score; rounding costs at most about
    1e-16/edge a round. The bounds depend on the experts and so are not of the table. Calibration: none proved.

    Proof: with normalised weights the sum is at most 1 in the mean over y ~ Ber(p), whatever p is. For E exp(R') is
    p·q/p + (1 − p)(1 − q)/(1 − p) = 1, and with x = q − p, E exp(2B') is e^{−2x²} E exp(4x(y − p)), at most 1 by
    Hoeffding's lemma. So at the p of the rule it is at most 1 after either outcome, and Σ exp(R_k) + Σ exp(2B_k),
    which is 2K in the beginning, never rises.

    Outcomes that become known after later forecasts count from then on, and then no bound is proved.

    Information
    -----------
    Time of all experts, and some ten exponentials a round.

    Source
    ------
    Chernov and Vovk 2009, "Prediction with expert evaluators' advice"; Vovk 1990 (mixable losses). Deviations: the two
    losses; the forecast is the root itself, where any with the inequality would do.
    """

    deterministic: ClassVar[bool | None] = True

    edge: float = 1e-6

    def __post_init__(self) -> None:
        super().__post_init__()
        for expert in self.of:
            if expert.deterministic is not True:
                raise InvalidParameter(
                    f"of holds {strategy_name(expert)!r}, which is not declared deterministic; expected experts with "
                    "one forecast a round (`ExpertMixture` takes others)"
                )
        check_number("edge", self.edge, 1e-12, 0.25)

    def start(self, horizon: int, runs: int, stream: Stream) -> Player:
        """A player with equal weights."""
        players = [
            checked(expert, expert.start(horizon, runs, stream and stream.child(f"expert {k}")), runs)
            for k, expert in enumerate(self.of)
        ]
        if of_steps(players):
            return aggregation(players, self.edge, sorted(self.needs), runs)
        parts = [Part(expert, player, runs) for expert, player in zip(self.of, players, strict=True)]
        return _AggregationPlayer(parts, runs, self.edge)


class _AggregationPlayer:
    def __init__(self, parts: list[Part], runs: int, edge: float) -> None:
        self.parts, self.edge = parts, edge
        self.regret = np.zeros((runs, 2 * len(parts)))
        self.law = Law(runs, 1)

    def forecast(self, round: Round) -> Law:
        rounds = [part.state(round) for part in self.parts]
        said = np.column_stack([inner.law.mean for inner in rounds]).clip(self.edge, 1.0 - self.edge)
        round.memo = rounds, said
        for run, regret in enumerate(self.regret):
            self.law.atoms[run, 0] = agreed(said[run], regret)
        return self.law

    def update(self, round: Round) -> None:
        rounds, said = memo_of(round, self.law, tuple)
        for part, inner in zip(self.parts, rounds, strict=True):
            part.update(inner, inner.law.weights.argmax(axis=1), round)
        for run, regret in enumerate(self.regret):
            regret_both(said[run], round.forecast[run], round.outcome[run], regret)
