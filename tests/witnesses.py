"""What the tests of witnesses share: Γ that are hard to prove things about, forgeries, and whether a proof is true."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
from hypothesis import strategies as st

from onlinecal.core.errors import InvalidData, InvalidParameter
from onlinecal.core.joint import JointDistribution
from onlinecal.measures import MEASURES, Bracket
from onlinecal.measures.base import Measure, ends
from onlinecal.measures.witnesses import Witness
from tests import gammas_metric, strategies

PROVED = [m for m in MEASURES.values() if m.witness is not None]
#: a measure and options to try beside the ones of its example
MORE: dict[str, list[dict[str, Any]]] = {
    "ece": [{"order": 2.0}, {"order": math.inf}],
    "binned_ece": [{"bins": 3, "strategy": "quantile"}],
    "binned_ece_width": [{"bins": 4, "strategy": "quantile"}],
    "interval_ce": [{"width": "max"}],
    "interval_ce_bracket": [{"blocks": 2}, {"width": "max"}],
    "random_interval_ce": [{"epsilon": 3.5}, {"epsilon": 1e-3}],
    "smooth_ce": [{"metric": "logit"}, {"metric": np.cbrt}],
    "smooth_ece_at": [{"sigma": 0.01}, {"sigma": 2.0, "transform": "logit"}],
    "smooth_ece": [{"transform": "logit"}],
    "kernel_ce": [
        {"kernel": "gaussian"},
        {"kernel": "gaussian", "scale": 0.01},
        {"scale": 0.1},
        {"kernel": "polynomial", "degree": 3},
    ],
    "scdl_binned": [{"m": 5, "soft": False}, {"m": 2**50}],
    "low_degree_ce": [{"degree": 5}],
}
CASES: list[tuple[Measure, dict[str, Any]]] = [
    (record, options) for record in PROVED for options in (dict(record.example), *MORE.get(record.name, []))
]


def case_id(case: Any) -> str:
    return case.name if isinstance(case, Measure) else str(case)


# -------------------------------------------------------------------- Γ


@st.composite
def hard(draw: st.DrawFn, max_levels: int = 7) -> JointDistribution:
    """Γ with levels and means a few units in the last place apart, ties of both, and weights over 12 orders."""
    size = draw(st.integers(1, max_levels))
    centre = draw(st.sampled_from([0.0, 0.3, 0.5, 1.0]))
    values = set()
    for _ in range(size):
        kind = draw(st.sampled_from(["near", "near", "grid", "any"]))
        if kind == "near":
            values.add(min(max(centre + draw(st.integers(-9, 9)) * 1e-15, 0.0), 1.0))
        else:
            values.add(
                draw(
                    st.sampled_from([0.0, 0.25, 0.5, 1.0])
                    if kind == "grid"
                    else st.floats(0.0, 1.0, allow_subnormal=False)
                )
            )
    v = sorted(values)
    mass = [10.0 ** draw(st.floats(-12.0, 0.0)) for _ in v]
    mean = st.one_of(
        st.none(), st.sampled_from([0.0, 0.5, 1.0, *v]), st.floats(0.0, 1.0, allow_subnormal=False)
    )
    means = [draw(mean) for _ in v]
    return JointDistribution.from_levels(
        v, mass, [a if q is None else q for a, q in zip(v, means, strict=True)]
    )


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
FEW = st.one_of(hard(), strategies.gammas(max_levels=6), gammas_metric.theoretical(max_levels=6))


# -------------------------------------------------------------------- whether a proof is true


class Truth:
    """What is so of one Γ: the values of the measures, each computed once."""

    def __init__(self, gamma: JointDistribution) -> None:
        self.gamma = gamma
        self.known: dict[str, tuple[float, float] | None] = {}
        self.refusals: list[str] = []

    def of(self, name: str, options: dict[str, Any]) -> tuple[float, float] | None:
        """The value and its error as an interval; None for options that the measure does not take."""
        key = f"{name} {options!r}"
        if key not in self.known:
            try:
                record = MEASURES[name]
                chosen = {**record.example, **options}
                low, high = ends(record.function(self.gamma, **chosen))
                room = 1e-9 + (record.within(self.gamma, **chosen) if record.within is not None else 0.0)
                self.known[key] = low - room, high + room
            except (InvalidParameter, KeyError, TypeError):  # no measure, or none with such an option
                self.known[key] = None
        return self.known[key]

    def check(self, witness: Witness) -> bool:
        """Asserts that a witness, whatever it holds, is refused or proves what is so; whether it proved anything."""
        try:
            claims = dict(witness.about)
            proved = witness.bracket(self.gamma)
        except (InvalidData, InvalidParameter) as error:
            self.refusals.append(str(error))
            return False
        except (TypeError, ValueError):  # of `about`, which compares what it holds
            return False
        assert isinstance(proved, Bracket)
        for name, options in claims.items():
            so = self.of(name, dict(options))
            if so is not None:
                assert proved.lower <= so[1], f"{witness!r} 'proves' {name} ≥ {proved.lower}: it is {so[1]}"
                assert proved.upper >= so[0], f"{witness!r} 'proves' {name} ≤ {proved.upper}: it is {so[0]}"
        return True


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
    if draw(st.integers(0, 19)) == 0:
        return draw(st.sampled_from([None, "x", math.nan, -1, 2.5, (), np.zeros((2, 2)), [1j], object()]))
    if isinstance(value, bool):
        return not value
    if callable(value):
        return draw(st.sampled_from([np.sqrt, np.negative, np.isnan, *WORDS]))
    if isinstance(value, str):
        return draw(st.sampled_from(WORDS))
    if isinstance(value, int) or value is None:
        return draw(st.sampled_from([0, 1, -1, 2, 3, 5, 64, 2**20, 2**60, (value or 0) + 1, -(value or 0)]))
    if isinstance(value, float):
        near = st.floats(-1e-6, 1e-6).map(lambda d: value + d)
        return draw(
            st.one_of(
                st.sampled_from([*FLOATS, -value, 2.0 * value, 0.5 * value]), near, st.floats(-1.0, 2.0)
            )
        )
    if isinstance(value, tuple):
        kind = draw(st.sampled_from(["one", "drop", "twice", "reverse", "empty"]))
        if kind == "one" and value:
            i = draw(st.integers(0, len(value) - 1))
            return (*value[:i], draw(changed(value[i])), *value[i + 1 :])
        return {"drop": value[:-1], "twice": value + value[-1:], "reverse": value[::-1]}.get(kind, ())
    return draw(_changed_array(np.asarray(value)))


@st.composite
def _changed_array(draw: st.DrawFn, value: np.ndarray) -> Any:
    kind = draw(
        st.sampled_from(["one", "scale", "shift", "permute", "drop", "append", "shape", "text", "all"])
    )
    if kind == "scale":
        with np.errstate(over="ignore"):
            return value * draw(st.sampled_from([-1.0, 0.0, 0.5, 1.1, 2.0, 1e6, 1e308]))
    if kind == "shift":
        return value + draw(st.sampled_from([-1.0, -1e-8, 1e-8, 0.1, 1.0, 100.0]))
    if kind == "permute":
        return draw(st.permutations(value.tolist()).map(np.array))
    if kind == "drop":
        return value[: draw(st.integers(0, max(0, len(value) - 1)))]
    if kind == "append":
        return np.append(value, draw(st.sampled_from([0.0, 0.5, 1.0, 2.0])))
    if kind == "shape":
        return value[:, None]
    if kind == "text":
        return np.array(["x"] * len(value), dtype=object)
    if kind == "all":
        return np.array(draw(st.lists(st.floats(-1.0, 1.0), min_size=len(value), max_size=len(value))))
    if not len(value):
        return value
    out = value.astype(float)
    out[draw(st.integers(0, len(value) - 1))] = draw(st.one_of(st.sampled_from(FLOATS), st.floats(-1.0, 1.0)))
    return out


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
