"""Aggregation of experts: a constant regret in the log loss and in the Brier score at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.strategy import check_number, strategy_name
from onlinecal.core.streams import Stream
from onlinecal.forecasters._composed import aggregation
from onlinecal.forecasters.composed import OfExperts
from onlinecal.rounds.players import CompiledForecaster
from onlinecal.rounds.protocol import begin


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

    def start(self, horizon: int, stream: Stream) -> CompiledForecaster:
        players = [
            begin("forecaster", expert, horizon, stream.child(f"expert {k}"))
            for k, expert in enumerate(self.of)
        ]
        return aggregation(players, self.edge, sorted(self.needs))
