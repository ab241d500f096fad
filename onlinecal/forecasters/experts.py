"""Forecasters made of several others: mixtures and aggregations of experts."""

import math
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.expressions import depends_on_horizon, value_at
from onlinecal.core.specification import allow, expression, number, parts
from onlinecal.core.strategy import some, strategy_name
from onlinecal.core.streams import Stream
from onlinecal.engine import steps
from onlinecal.engine.parts import begin_part
from onlinecal.engine.steps import Run, drawn, kernel, law, note, one_of, own_uniform, shared, state
from onlinecal.forecasters.base import Forecaster, OfOthers
from onlinecal.forecasters.baselines import write_value
from onlinecal.forecasters.composed import EACH, is_law, joined, part_of, pass_on, steps_of


@dataclass(frozen=True)
class OfExperts(OfOthers):
    """The common part of forecasters made of several others."""

    of: tuple[Forecaster, ...]

    def _begun(self, horizon: int, stream: Stream) -> list[Any]:
        # Streams of their own: players read the numbers of theirs by index, from the first on.
        return [
            begin_part("forecaster", of, horizon, stream.child(f"expert {k}")) for k, of in enumerate(self.of)
        ]


@kernel
def experts_of(run):
    """How many experts there are, of a whole with one number of its own."""
    return (len(shared(run)) - 1) // EACH


@dataclass(frozen=True)
class ExpertMixture(OfExperts):
    """Hedges over forecasters: the law is the mixture of their laws, weighted by exp(−η · squared loss so far).

    Guarantee: E[Brier total] ≤ that of the best expert + √(T ln K / 2) against natures that see the law, at the default
    rate. The bound depends on the experts and so is not one of the table's. Calibration: none proved.

    Source: Freund and Schapire 1997 (Hedge); Cesa-Bianchi and Lugosi 2006, Theorem 2.2. Deviations: the loss of an
    expert is the expected squared loss of its law. An expert learns from a forecast of its own law, drawn by the engine
    or by this player.

    Parameters
    ----------
    of : sequence of Forecaster
        The experts, at least one.
    rate : float or str, default "T^(-1/2)"
        η up to the factor √(8 ln K) for K experts, in [0, 10^9]; a number or an expression in T.
    """

    version: ClassVar[int] = 2
    allowed = allow(of=parts("forecaster"), rate=expression(0.0, 1e9))

    rate: float | str = "T^(-1/2)"

    @property
    def deterministic(self) -> bool | None:  # type: ignore[override]
        return self.of[0].deterministic if len(self.of) == 1 else False

    @property
    def needs_horizon(self) -> bool | None:  # type: ignore[override]
        return some([len(self.of) > 1 and depends_on_horizon(self.rate), super().needs_horizon])

    def start(self, horizon: int, stream: Stream) -> steps.Forecaster:
        players, k = self._begun(horizon, stream), len(self.of)
        rate = value_at(self.rate, horizon) * math.sqrt(8.0 * math.log(k))
        size = sum(player.size for player in players)
        own, numbers, of_parts = joined(players, k + 2 * size)
        say, learn = mixture_steps(*own)
        return steps.Forecaster(
            say, learn, [0.0] * (2 * k), [*numbers, rate], size=size, stream=stream, **of_parts
        )


@cache
def mixture_steps(says: Any, learns: Any) -> Any:
    """The steps of a mixture. State: the losses of the experts, and room for their shares.

    The note: the size of each expert's law; then value and weight of each atom, one expert after the other.
    """
    say_one, learn_one = one_of(says), one_of(learns)

    def say(run: Run, number: int) -> int:
        experts, rate, stated = experts_of(run), shared(run)[-1], note(run)
        loss, shares = state(run)[:experts], state(run)[experts:]
        least, total, first = loss.min(), 0.0, 0
        for k in range(experts):
            shares[k] = math.exp(rate * (least - loss[k]))
            total += shares[k]
        for k in range(experts):
            part, share = part_of(run, k, first), shares[k] / total
            size = say_one(steps_of(run, k), part, number)
            if not is_law(part, size):
                return pass_on(run, part, size)
            values, weights = law(part)
            stated[k] = size
            for j in range(size):
                at = experts + 2 * (first + j)
                stated[at], stated[at + 1] = values[j] + 0.0, weights[j]
                weights[j] *= share
            first += size
        return first

    def learn(run: Run, place: int, forecast: float, outcome: int, number: int) -> int:
        # Charges each expert its expected squared loss. The drawn atom is told to the expert that stated it. Others are
        # told an atom that is drawn from their law.
        experts, stated, loss = experts_of(run), note(run), state(run)
        at = experts
        for k in range(experts):
            size = int(stated[k])
            values, weights = stated[at : at + 2 * size : 2], stated[at + 1 : at + 2 * size : 2]
            for j in range(size):
                loss[k] += weights[j] * (values[j] - outcome) ** 2
            pick = place - (at - experts) // 2
            if not 0 <= pick < size:
                u = own_uniform(run, (number - 1) * experts + k) if size > 1 else 0.0
                pick = drawn((values, weights), size, u)
            code = learn_one(steps_of(run, k), part_of(run, k, 0), pick, values[pick], outcome, number)
            if code < 0:
                return code
            at += 2 * size
        return 0

    return say, learn


@dataclass(frozen=True)
class ExpertAggregation(OfExperts):
    r"""Aggregates the forecasts of experts by their log losses and Brier scores so far.

    Let R_k be the log loss so far less that of expert k, and B_k the same of the Brier total. Expert k has the weights
    w_k ∝ exp(R_k) and v_k ∝ exp(2B_k). The forecast is the p at which Σ w_k exp(R_k') + Σ v_k exp(2B_k'), with R_k' and
    B_k' what the round adds, is the same after either outcome. It lies between the experts' forecasts.

    Guarantee: For every sequence and each of K experts in [edge, 1 − edge], the log loss is at most the expert's + ln
    2K. The Brier total is at most the expert's + ½ ln 2K. The edge costs an expert −ln(1 − edge) a round in the log
    loss, and edge² in the Brier score. Rounding costs about 1e-16/edge. The bounds depend on the experts and so are not
    of the table. Calibration: none proved. Proof: docs/proofs.md.

    Outcomes that become known after later forecasts count from then on, and then no bound is proved.

    Source: Chernov and Vovk 2009, "Prediction with expert evaluators' advice"; Vovk 1990 (mixable losses). Deviations:
    the two losses; the forecast is the root itself, where any with the inequality would do.

    Parameters
    ----------
    of : sequence of Forecaster
        The experts, at least one, each of them deterministic.
    edge : float, default 1e-6
        Forecasts of experts are taken into [edge, 1 − edge]; in [1e-12, 0.25].
    """

    deterministic: ClassVar[bool | None] = True
    allowed = allow(of=parts("forecaster"), edge=number(1e-12, 0.25))

    edge: float = 1e-6

    def __post_init__(self) -> None:
        super().__post_init__()
        for expert in self.of:
            if expert.deterministic is not True:
                raise InvalidParameter(
                    f"of holds {strategy_name(expert)!r}, which is not declared deterministic; expected experts with "
                    "one forecast a round (`ExpertMixture` takes others)"
                )

    def start(self, horizon: int, stream: Stream) -> steps.Forecaster:
        players, k = self._begun(horizon, stream), len(self.of)
        own, numbers, of_parts = joined(players, 2 * k)
        say, learn = aggregation_steps(*own)
        size = max(player.size for player in players)  # room for the law of one of them
        return steps.Forecaster(say, learn, [0.0] * (3 * k), [*numbers, self.edge], size=size, **of_parts)


@cache
def aggregation_steps(says: Any, learns: Any) -> Any:
    """The steps of an aggregation. State: regrets to each expert in both losses, and room for the experts' forecasts.

    The note: of each expert the forecast, and its place in the law.
    """
    say_one, learn_one = one_of(says), one_of(learns)

    def say(run: Run, number: int) -> int:
        experts, edge, said = experts_of(run), shared(run)[-1], note(run)
        off_ends = state(run)[2 * experts :]
        for k in range(experts):
            part = part_of(run, k, 0)
            size = say_one(steps_of(run, k), part, number)
            if not is_law(part, size):
                return pass_on(run, part, size)
            (values, weights), place = law(part), 0
            while weights[place] <= 0.0:
                place += 1
            said[2 * k], said[2 * k + 1] = values[place] + 0.0, place
            off_ends[k] = min(max(values[place], edge), 1.0 - edge)
        return write_value(run, agreed_forecast(off_ends, state(run)[: 2 * experts]))

    def learn(run: Run, place: int, forecast: float, outcome: int, number: int) -> int:
        experts, edge, said = experts_of(run), shared(run)[-1], note(run)
        off_ends = state(run)[2 * experts :]
        for k in range(experts):
            p, own = said[2 * k], int(said[2 * k + 1])
            off_ends[k] = min(max(p, edge), 1.0 - edge)
            code = learn_one(steps_of(run, k), part_of(run, k, 0), own, p, outcome, number)
            if code < 0:
                return code
        add_regrets(off_ends, forecast, outcome, state(run)[: 2 * experts])
        return 0

    return say, learn


@kernel
def agreed_forecast(experts, regret):
    """The forecast p at which the potential of `ExpertAggregation` is the same after either outcome."""
    # It is the root of Σ w_k (q_k/p − (1 − q_k)/(1 − p)) + Σ v_k (exp(2((1 − p)² − (1 − q_k)²)) − exp(2(p² − q_k²))),
    # which falls in p. Newton's steps, and halves of the bracket where they leave it.
    size, low, high, most = len(experts), experts[0], experts[0], regret[0]
    for k in range(size):
        low, high = min(low, experts[k]), max(high, experts[k])
        most = max(most, max(regret[k], regret[size + k]))
    total, p, ones, zeros, up, down = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for k in range(size):
        q, by_log, by_brier = experts[k], math.exp(regret[k] - most), regret[size + k] - most
        ones, zeros = ones + by_log * q, zeros + by_log * (1.0 - q)
        up += math.exp(by_brier - 2.0 * (1.0 - q) ** 2)
        down += math.exp(by_brier - 2.0 * q * q)
        share = by_log + math.exp(by_brier)
        total, p = total + share, p + share * q
    p = min(max(p / total, low), high)
    while low < p < high:
        rest = 1.0 - p
        after_one, after_none = up * math.exp(2.0 * rest * rest), down * math.exp(2.0 * p * p)
        gap = ones / p - zeros / rest + after_one - after_none
        if gap == 0.0:
            break
        low, high = (p, high) if gap > 0.0 else (low, p)
        slope = ones / (p * p) + zeros / (rest * rest) + 4.0 * (rest * after_one + p * after_none)
        last, p = p, p + gap / slope
        if not low < p < high:
            p = 0.5 * (low + high)
        if abs(p - last) <= 1e-16:
            break
    return p


@kernel
def add_regrets(experts, p, outcome, regret):
    """Adds how much more the forecast p lost than each expert: in the log loss, and then twice that in (p − y)²."""
    size = len(experts)
    for k in range(size):
        q = experts[k]
        regret[k] += math.log(q / p) if outcome == 1 else math.log((1.0 - q) / (1.0 - p))
        regret[size + k] += 2.0 * ((p - outcome) ** 2 - (q - outcome) ** 2)
