"""The best known rates, to hold measured growth against."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True)
class KnownRate:
    """What is known of the total T·μ that the best forecaster can hold against the worst nature.

    Attributes
    ----------
    measure : str
        A column.
    upper : bool
        Whether some forecaster attains it, or no forecaster can do better.
    formula : str
        In O or Ω.
    exponent : float
        Of T.
    source : str
    runs : bool
        Whether a forecaster of this package attains it; an upper bound may be proved and yet not be playable.
    logs : float
        The power of log T beside that of T.
    """

    measure: str
    upper: bool
    formula: str
    exponent: float
    source: str
    runs: bool = True
    logs: float = 0.0

    def at(self, times: ArrayLike) -> NDArray[np.float64]:
        """The formula without its constant, which nobody states: T^exponent (log T)^logs; log T is 1 up to e."""
        t = np.asarray(times, dtype=np.float64)
        return t**self.exponent * np.maximum(np.log(t), 1.0) ** self.logs

    def growth(self, first: float, last: float) -> float:
        """The exponent with which it grows from one T to another, logarithms included."""
        start, end = self.at([first, last])
        return float(np.log(end / start) / np.log(last / first))

    def __str__(self) -> str:
        return f"{'O' if self.upper else 'Ω'}({self.formula})"


#: Gopalan and Hu 2025, Table 1, and later papers
KNOWN_RATES = (
    KnownRate("ece", True, "T^(2/3)", 2 / 3, "Foster & Vohra 1998"),
    KnownRate(
        "ece", True, "T^(2/3−ε)", 2 / 3, "Dagan et al. 2025; not constructive enough to play", runs=False
    ),
    KnownRate("ece", False, "T^0.54389", 0.54389, "Dagan et al. 2025, after Qiao & Valiant 2021 (T^0.528)"),
    KnownRate(
        "smooth_ce", True, "√T", 1 / 2, "Arunachaleswaran et al. 2025 (2·(2√T + 1)); Qiao & Zheng 2024"
    ),
    KnownRate("smooth_ce", False, "T^(1/3)", 1 / 3, "Qiao & Zheng 2024"),
    KnownRate("distance_certificate", True, "√T", 1 / 2, "Arunachaleswaran et al. 2025 (2√T + 1)"),
    KnownRate("distance_certificate", False, "T^(1/3)", 1 / 3, "Qiao & Zheng 2024"),
    KnownRate("cdl", True, "√T log T", 1 / 2, "Hu & Wu 2024", logs=1.0),
    KnownRate("cdl", False, "√T", 1 / 2, "a fair coin"),
    KnownRate("u_calibration", True, "√T", 1 / 2, "Kleinberg et al. 2023"),
    KnownRate("u_calibration", False, "√T", 1 / 2, "Kleinberg et al. 2023"),
    KnownRate("step_ce", True, "√(T log T)", 1 / 2, "Okoroafor, Kleinberg & Kim 2025", runs=False, logs=0.5),
    KnownRate("step_ce", False, "√T", 1 / 2, "a fair coin"),
    KnownRate("kernel_ce", True, "√T", 1 / 2, "Vovk, Takemura & Shafer 2005 (√T/2)"),
    KnownRate("kernel_ce", False, "√T", 1 / 2, "a fair coin"),
    KnownRate(
        "swap_regret[quadratic]",
        True,
        "T^(1/3) log T",
        1 / 3,
        "Fishelson et al. 2025; Luo et al. 2025",
        logs=1.0,
    ),
)


def best_known(measure: str) -> tuple[KnownRate, ...]:
    """The largest lower and the smallest upper rate of a measure, in this order, as far as they are known.

    Of equal ones it is the one that a forecaster of this package attains.
    """
    mine = sorted(
        (rate for rate in KNOWN_RATES if rate.measure == measure),
        key=lambda rate: (rate.exponent, rate.logs, not rate.runs),
    )
    return tuple([rate for rate in mine if not rate.upper][-1:] + [rate for rate in mine if rate.upper][:1])


def known_rates(measure: str) -> str:
    """The best known bounds of a measure, ``"Ω(T^0.54389) … O(T^(2/3))"``; empty where nothing is known."""
    return " … ".join(map(str, best_known(measure)))
