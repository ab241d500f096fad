"""The best known rates, to hold measured growth against."""

from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from onlinecal.core.columns import QUADRATIC, SQUARED_LOSS, Column
from onlinecal.core.guarantee import applies, chain, reason


@dataclass(frozen=True)
class KnownRate:
    """A known bound on the total T·μ that the best forecaster can hold against the worst nature.

    Attributes
    ----------
    measure : str
        A quantity, as `Column.quantity` says.
    upper : bool
        Whether some forecaster attains it, or no forecaster can do better.
    formula : str
        In O or Ω.
    exponent : float
        Of T.
    source : str
    runs : bool
        Whether a forecaster of this package attains it.
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
        """T^exponent (log T)^logs, the formula without its constant; log T is 1 up to e."""
        t = np.asarray(times, dtype=np.float64)
        return t**self.exponent * np.maximum(np.log(t), 1.0) ** self.logs

    def growth(self, first: float, last: float) -> float:
        """The exponent with which it grows from one T to another, logarithms included."""
        start, end = self.at([first, last])
        return float(np.log(end / start) / np.log(last / first))

    def __str__(self) -> str:
        return f"{'O' if self.upper else 'Ω'}({self.formula})"


#: Gopalan and Hu 2025, Table 1, and later papers. What follows from these by `RELATIONS` is not written here.
KNOWN_RATES = (
    KnownRate("ece", True, "T^(2/3)", 2 / 3, "Foster & Vohra 1998; near 1.21·T^(2/3) for forecast hedging"),
    KnownRate("ece", True, "T^(2/3−ε)", 2 / 3, "Dagan et al. 2025; not constructive enough to play", runs=False),
    KnownRate("ece", False, "T^0.54389", 0.54389, "Dagan et al. 2025, oblivious; after Qiao & Valiant 2021 (T^0.528)"),
    KnownRate("distance_certificate", True, "√T", 1 / 2, "Arunachaleswaran et al. 2025 (2√T + 1); Qiao & Zheng 2024"),
    KnownRate("smooth_ce", False, "T^(1/3)", 1 / 3, "Qiao & Zheng 2024: coins that may stop early (early_stopping)"),
    KnownRate("kernel_ce", True, "√T", 1 / 2, "Vovk, Takemura & Shafer 2005 (√T/2)"),
    KnownRate("cdl", True, "√T log T", 1 / 2, "Hu & Wu 2024", logs=1.0),
    KnownRate("u_calibration", True, "√T", 1 / 2, "Kleinberg et al. 2023; near 2.7√T for threshold hedging"),
    # Against a fair coin all forecasts pay ½ a round in the task v_shaped(½). The better of its two actions pays
    # ½E|ones − zeros| = √(T/2π) more in all.
    KnownRate("u_calibration", False, "√T", 1 / 2, "Kleinberg et al. 2023: a fair coin, √(T/2π)"),
    KnownRate(SQUARED_LOSS, True, "log T", 0.0, "Cesa-Bianchi & Lugosi 2006: the mean of the outcomes", logs=1.0),
    KnownRate("step_ce", True, "√(T log T)", 1 / 2, "Okoroafor, Kleinberg & Kim 2025", logs=0.5),
    KnownRate(QUADRATIC, True, "T^(1/3) log T", 1 / 3,
              "Fishelson et al. 2025; Luo, Senapati & Sharan 2025: T^(1/3) up to logarithms", logs=1.0),
)  # fmt: skip


@dataclass(frozen=True)
class OtherRate:
    """A rate of a quantity that the package does not measure.

    Attributes
    ----------
    quantity, statement, source : str
        The source says how much of it has been read.
    """

    quantity: str
    statement: str
    source: str


#: of T rounds, as the abstracts state them
OTHER_RATES = (
    OtherRate("multicalibration error, three disjoint groups that may depend on the forecast",
              "Ω(T^(2/3)), met up to logarithms", "Collina, Lu, Noarov & Roth 2026, from the abstract"),
    OtherRate("ℓ1 calibration error in K i.i.d. segments, or where mean outcomes deviate by C in all",
              "Õ(min{√T + (TC)^(1/3), √(KT)})", "Liu, Luo & Ratliff 2026, from the abstract"),
    OtherRate("KL calibration: swap regret of the logarithmic loss", "Õ(T^(1/3))",
              "Luo, Senapati & Sharan 2025, from the abstract; blum_mansour_log"),
    OtherRate("swap regret of Lipschitz convex losses on [0, 1]; calibration error of medians", "Õ(√T)",
              "Hu, Schneider & Wu 2026, from the abstract"),
    OtherRate("calibeating in the Brier loss by a forecaster that is also calibrated",
              "O(log T), optimal for calibeating alone", "Chen, Huang, Jordan & Luo 2026, from the abstract"),
)  # fmt: skip


#: of one weight function, or a few bins: easier than the measures that bound them; a certificate of one forecaster
_LEFT_OUT = frozenset({"weighted_ce", "low_degree_ce", "binned_ece", "scdl_binned", "kernel_ce_certificate"})


def best_known(column: Column | str) -> tuple[KnownRate, ...]:
    """The largest lower and the smallest upper rate of a column, in this order, as far as they are known.

    A name alone is a measure of the catalogue, or another quantity.

    Those of `KNOWN_RATES`, and those that follow by `RELATIONS`, which the source then names. Of equal ones it is one
    that a forecaster of this package attains. Of a bracket, the lower end has upper rates and the upper end lower ones.
    """
    return _best_known(Column("measure", column) if isinstance(column, str) else column)


@cache
def _best_known(what: Column) -> tuple[KnownRate, ...]:
    if what.quantity in _LEFT_OUT or not what.quantity:
        return ()
    found: dict[bool, list[tuple[KnownRate, int]]] = {False: [], True: []}
    for rate in KNOWN_RATES:
        # A nature of K classes may play two of them, and the error of a class is at most that of all, but of kernels.
        # What is attained for two classes need not be for more.
        of_two = what.of_classes and (rate.upper or what.quantity == "kernel_ce")
        if of_two or not applies(what, rate.upper):
            continue
        way = chain(what.quantity, rate.measure) if rate.upper else chain(rate.measure, what.quantity)
        if way is not None:
            source = f"{rate.source}; with {reason(way)}" if way else rate.source
            found[rate.upper].append((replace(rate, measure=what.name, source=source), len(way)))
    lower = sorted(found[False], key=lambda r: (-r[0].exponent, -r[0].logs, r[1]))
    upper = sorted(found[True], key=lambda r: (r[0].exponent, r[0].logs, not r[0].runs, r[1]))
    return tuple(rate for rate, _ in lower[:1] + upper[:1])


def known_rates(column: Column | str) -> str:
    """The best known bounds of a column, ``"Ω(T^0.54389) … O(T^(2/3))"``; empty without any."""
    return " … ".join(map(str, best_known(column)))
