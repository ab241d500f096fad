"""Totals T·μ of a measure, for many ends of a game on a grid at once."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlinecal.core.errors import LIST, InvalidParameter, meant
from onlinecal.core.joint import Floats, JointDistribution
from onlinecal.games.states import Alphabet, Biases, Counts
from onlinecal.measures import MEASURES
from onlinecal.measures.base import Bracket, Measure
from onlinecal.measures.decision import kink_totals

#: measures that stay what they are when all predictions p become 1 − p and all outcomes 1 − y
SYMMETRIC = frozenset(
    {"ece", "smooth_ce", "kernel_ce", "cutoff_ce", "cdl", "v_cdl", "u_calibration", "distance_lower"}
)

#: measures that depend on more than biases and have a kernel for many ends at once: whether it is of tasks of one kink
_AT_ONCE = {"cdl": False, "v_cdl": True}

#: how much the total of a measure that is exact up to rounding may err, as a share of T
ROUNDING = 1e-12


def measure_named(name: str) -> Measure:
    """The measure of the catalogue; refused where its game has no value."""
    measure = MEASURES[meant("measure", name, MEASURES, LIST)]
    needed = ", ".join(measure.example)
    for wrong, said in (
        (needed, f"needs {needed}; expected a measure without such an option"),
        (
            not np.isfinite(measure.largest),
            "can be infinite, so its game has no value; expected one that is bounded",
        ),
        (measure.accuracy, f"is known {measure.accuracy} only; expected one that is exact or a bracket"),
    ):
        if wrong:
            raise InvalidParameter(f"measure {name!r} {said}")
    return measure


def of_biases(measure: Measure) -> bool:
    """Whether its total depends on the biases E_i alone: a norm of the residuals, and not of single rounds."""
    norm = getattr(measure.sampling, "norm", None)
    return norm is not None and not measure.of_rounds


def alphabet_for(measure: Measure, m: int, horizon: int) -> Alphabet:
    """The letters that the total of a measure depends on."""
    if of_biases(measure):
        return Biases(m, horizon, separate=measure.name == "ece")
    return Counts(m, horizon)


def totals(measure: Measure, grid: Floats, ends: NDArray[Any]) -> tuple[Floats, float]:
    """T·μ of ends, (N, points) biases or (N, points, 2) rounds and outcomes 1, and a bound on the error."""
    if ends.ndim == 3 and of_biases(measure):
        ends = ends[..., 1] - ends[..., 0] * grid
    if ends.ndim == 2:
        gamma = JointDistribution.from_counts(grid, np.ones(len(grid)), np.zeros(len(grid)))
        assert measure.sampling is not None
        norm: Any = measure.sampling.norm  # type: ignore[union-attr]
        found = np.asarray(norm(gamma, ends), float)
        return found, ROUNDING * float(found.max(initial=0.0))
    if measure.name in _AT_ONCE:
        found = kink_totals(grid, np.ascontiguousarray(ends), _AT_ONCE[measure.name])
        return found, ROUNDING * float(ends[:1, :, 0].sum())
    rows = list(_one_by_one(measure, grid, ends.astype(float)))
    values, errors = np.array(rows).reshape(-1, 2).T
    return values, float(errors.max(initial=0.0))


def _one_by_one(measure: Measure, grid: Floats, ends: Floats) -> Iterator[tuple[float, float]]:
    for end in ends:
        if not end[:, 0].any():
            yield 0.0, 0.0
            continue
        gamma = JointDistribution.from_counts(grid, end[:, 0], end[:, 1])
        found = measure.function(gamma)
        if isinstance(found, Bracket):
            middle = found.lower + found.width / 2.0
            yield gamma.weight * middle, gamma.weight * (found.width / 2.0 + ROUNDING)
        else:
            yield gamma.weight * found, gamma.weight * ROUNDING
