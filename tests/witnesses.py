"""Shared by the tests of witnesses: Γ that are hard to prove things about, forgeries, and whether a proof is true."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
from hypothesis import strategies as st

from onlinecal.core.errors import InvalidData, InvalidParameter
from onlinecal.core.joint import JointDistribution
from onlinecal.measures import MEASURES
from onlinecal.measures.base import Measure, ends
from onlinecal.measures.witnesses import Witness
from tests.strategies import close_gammas, gammas, theoretical

#: a measure and options to try beside the ones of its example
MORE: dict[str, list[dict[str, Any]]] = {
    "ece": [{"order": 2.0}, {"order": 3.0}, {"order": math.inf}],
    "binned_ece": [{"bins": 3, "strategy": "quantile"}, {"bins": 1}],
    "binned_ece_width": [{"bins": 4, "strategy": "quantile"}, {"bins": 3}],
    "binned_ce": [{"order": 1.0}, {"order": math.inf, "bins": 4, "strategy": "quantile"}],
    "soft_binned_ece": [{"order": math.inf, "temperature": 0.1}, {"bins": 3, "temperature": 0.1, "order": 1.0}],
    "soft_binned_loss": [{"m": 5, "threshold": 2, "soft": False}, {"m": 1, "threshold": 1}],
    "cfdl": [{"task": "three_action"}, {"task": "umbrella"}],
    "interval_ce": [{"width": "max"}],
    "interval_ce_bracket": [{"blocks": 2}, {"width": "max"}],
    "random_interval_ce": [{"epsilon": 3.5}, {"epsilon": 0.37}, {"epsilon": 1e-3}],
    "smooth_ce": [{"metric": "logit"}, {"metric": np.cbrt}],
    "smooth_ece_at": [{"sigma": 0.01}, {"sigma": 2.0, "transform": "logit"}],
    "smooth_ece": [{"transform": "logit"}],
    "kernel_ce": [
        {"kernel": "gaussian"}, {"kernel": "gaussian", "scale": 0.01}, {"scale": 0.1},
        {"kernel": "polynomial", "degree": 3},
    ],
    "scdl_binned": [{"m": 5, "soft": False}, {"m": 1}, {"m": 2**50}],
    "low_degree_ce": [{"degree": 5}],
    "weighted_ce": [{"omega": lambda v: 1.0 - 2.0 * v}],
}  # fmt: skip
#: every measure with its options
EVERY: list[tuple[Measure, dict[str, Any]]] = [
    (record, options)
    for record in MEASURES.values()
    for options in (dict(record.example), *MORE.get(record.name, []))
]
#: those that have witnesses
CASES = [case for case in EVERY if case[0].witness is not None]


def case_id(case: Any) -> str:
    """A measure, or its options without addresses, which differ from process to process."""
    if isinstance(case, Measure):
        return case.name
    return ", ".join(f"{k}={getattr(v, '__name__', v)}" for k, v in case.items())


@st.composite
def counted(draw: st.DrawFn, max_levels: int = 4) -> JointDistribution:
    """Γ of up to 1000 rounds at each level, many of them a few units in the last place from their mean."""
    rows = []
    for _ in range(draw(st.integers(1, max_levels))):
        n = draw(st.integers(1, 1000))
        s = draw(st.integers(0, n))
        near = min(max(s / n + draw(st.integers(-3, 3)) * 2.0**-53, 0.0), 1.0)
        v = draw(st.one_of(st.just(near), st.sampled_from([0.0, 0.1, 0.3, 1.0]), st.floats(0.0, 1.0)))
        rows.append((v, n, s))
    return JointDistribution.from_counts(*zip(*rows, strict=True))


COUNTED = counted()
FEW = close_gammas(7) | gammas(6) | theoretical(6)


# -------------------------------------------------------------------- whether a proof is true


class Truth:
    """The truth about one Γ: the values of the measures, each computed once."""

    def __init__(self, gamma: JointDistribution) -> None:
        self.gamma = gamma
        self.known: dict[str, tuple[float, float] | None] = {}
        self.refusals: list[str] = []

    def of(self, name: str, options: dict[str, Any]) -> tuple[float, float] | None:
        """The value and its error as an interval; None for options that the measure does not take."""
        if options.get("strategy") == "quantile" and (self.gamma.counts % 1.0).any():
            return None  # rounding may decide in which bin of equal mass a level lies
        key = f"{name} {options!r}"
        if key not in self.known:
            try:
                record = MEASURES[name]
                chosen = {**record.example, **options}
                low, high = ends(record.function(self.gamma, **chosen))
                room = 1e-9 + record.error(self.gamma, **chosen)
                self.known[key] = low - room, high + room
            except (InvalidParameter, KeyError, TypeError):  # no measure, or none with such an option
                self.known[key] = None
        return self.known[key]

    def check(self, witness: Witness) -> None:
        """Asserts that a witness, whatever it holds, is refused or proves what is so."""
        try:
            lower, upper = ends(witness.bound(self.gamma))
        except (InvalidData, InvalidParameter) as error:
            self.refusals.append(str(error))
            return
        except (TypeError, ValueError, ArithmeticError):  # what it holds is no number, or too large
            return
        for name in witness.about:
            options = {key: getattr(witness, key) for key in MEASURES[name].options if hasattr(witness, key)}
            so = self.of(name, options) if witness.is_about(name, options) else None
            if so is not None:
                false = witness.side != "upper" and lower > so[1]
                assert not false, f"{witness!r} 'proves' {name} ≥ {lower}: it is {so[1]}"
                false = witness.side != "lower" and upper < so[0]
                assert not false, f"{witness!r} 'proves' {name} ≤ {upper}: it is {so[0]}"


# -------------------------------------------------------------------- forgeries

FLOATS = [math.nan, math.inf, -math.inf, 0.0, 1.0, -1.0, 0.5, 5.0, 1e300, 1e-300]
WORDS = [
    "", "mean", "max", "swap", "external", "identity", "logit", "laplace", "gaussian", "width", "quantile",
    "cdl", "v_cdl", "u_calibration", "cutoff_ce", "step_ce", "binned_ece", "binned_ece_width", "smooth_ece",
    "smooth_ece_at", "polynomial",
]  # fmt: skip


@st.composite
def changed(draw: st.DrawFn, value: Any) -> Any:
    """A value that was changed: scaled, shifted, permuted, cut, out of range, NaN, or of another type."""

    def one_of(*values: Any) -> Any:
        return draw(st.sampled_from(values))

    if isinstance(value, bool):
        return not value
    if callable(value) or isinstance(value, str):
        return one_of(np.sqrt, np.negative, np.isnan, *WORDS)
    if one_of(*range(20)) == 0:
        return one_of(None, "x", math.nan, -1, 2.5, (), np.zeros((2, 2)), [1j], object())
    if isinstance(value, int) or value is None:
        return one_of(0, 1, -1, 2, 3, 5, 64, 2**20, 2**60, (value or 0) + 1, -(value or 0))
    if isinstance(value, float):
        near = value + draw(st.floats(-1e-6, 1e-6))
        return one_of(*FLOATS, -value, 2.0 * value, 0.5 * value, near, draw(st.floats(-1.0, 2.0)))
    size = len(value)
    place = draw(st.integers(0, max(size - 1, 0)))
    if isinstance(value, tuple):
        one = (*value[:place], draw(changed(value[place])), *value[place + 1 :]) if value else ()
        return one_of(one, one, value[:-1], value + value[-1:], value[::-1], ())
    one = np.array(value, dtype=float)
    one[place : place + 1] = one_of(*FLOATS, draw(st.floats(-1.0, 1.0)))
    with np.errstate(over="ignore"):
        scaled = value * one_of(-1.0, 0.0, 0.5, 1.1, 2.0, 1e6, 1e308)
    shifted, longer = (
        value + one_of(-1.0, -1e-8, 1e-8, 0.1, 1.0, 100.0),
        np.append(value, one_of(0.0, 0.5, 1.0, 2.0)),
    )
    others = np.array(draw(st.lists(st.floats(-1.0, 1.0), min_size=size, max_size=size)))
    mixed, text = np.array(draw(st.permutations(value.tolist()))), np.array(["x"] * size, dtype=object)
    return draw(
        st.sampled_from([one, scaled, shifted, mixed, value[:place], longer, value[:, None], text, others])
    )


@st.composite
def forged(draw: st.DrawFn, witness: Witness) -> Witness:
    """The witness with one or two fields changed, behind the back of its constructor."""
    fields = dataclasses.fields(witness)  # type: ignore[arg-type]
    new = object.__new__(type(witness))
    for f in fields:
        object.__setattr__(new, f.name, getattr(witness, f.name))
    for f in draw(st.lists(st.sampled_from(fields), min_size=1, max_size=2, unique_by=lambda f: f.name)):
        object.__setattr__(new, f.name, draw(changed(getattr(new, f.name))))
    return new
