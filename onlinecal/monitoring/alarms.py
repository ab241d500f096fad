"""What a monitor says: alarms, and how large the bias may be."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from onlinecal.monitoring.witness import Witness


@dataclass(frozen=True)
class Alarm:
    """The finding that forecasts are not calibrated.

    Attributes
    ----------
    number : int
    event : int
        How many outcomes had been taken into account since the monitor began.
    epoch_events : int
        The same since the alarm before.
    log_e : float
        ln of the e-value; infinite where an outcome came that its forecast had excluded.
    alpha : float
        The alarm is due at an e-value of 1/alpha.
    witness : Witness
    """

    number: int
    event: int
    epoch_events: int
    log_e: float
    alpha: float
    witness: Witness

    def __str__(self) -> str:
        if math.isinf(self.log_e):
            what = "an outcome came that its forecast, 0 or 1, had excluded"
        else:
            what = f"{self.witness} (e = 10^{self.log_e / math.log(10.0):.1f})"
        return f"alarm {self.number} at event {self.event:,}: {what}"

    def as_json(self) -> dict[str, Any]:
        """As plain data."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Alarm:
        """From what `as_json` gave."""
        return cls(**{**values, "witness": Witness(**values["witness"])})


@dataclass(frozen=True)
class Bias:
    """A running total of y − p, and bounds of the total of q − p, q the probabilities of the outcomes.

    Attributes
    ----------
    count : int
    total : float
        Σ (y − p); with open questions in it, the middle of what it may be.
    lower, upper : float
        Of a confidence sequence for Σ (q − p).
    """

    count: int
    total: float
    lower: float
    upper: float
