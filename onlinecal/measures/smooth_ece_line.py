"""The residuals of Γ on a line, smoothed by a Gaussian on a mesh, for SmoothECE."""

import math

import numpy as np
import scipy  # its parts are loaded when they are first used

from onlinecal.core._compile import kernel
from onlinecal.core.arrays import locked
from onlinecal.core.errors import InvalidParameter
from onlinecal.core.joint import Floats, JointDistribution

# A mesh of spacing h errs by at most this times (h/σ)² Σ|r|. Levels are spread and then interpolated linearly:
# twice 1/8 times E|Z² − 1| = 4 φ(1) = 0.96788, Z normal; rounded up.
_MESH = 0.242
# At least this number of steps to a σ: then the cosines that the mesh does not have are below exp(−(2π)²/2) < 3e-9.
_STEPS = 2.0
FINEST = 1 << 20
# exp(−9²/2) < 3e-18: cosines beyond, and parts of a Gaussian further out, do not count.
_REACH = 9.0


class Line:
    """The residuals on a line of length L, for σ up to `width`; gaps beyond the reach of Gaussians are cut to 18 σ."""

    def __init__(self, gamma: JointDistribution, transform: str, width: float) -> None:
        r, v = gamma.residuals, gamma.predictions
        self.fixed = 0.0
        if transform == "identity":
            self.coordinate, self.ends = v, (float(v[0]), 1.0 - float(v[-1]))
        elif transform == "logit":
            inner = (v > 0.0) & (v < 1.0)
            self.fixed = float(np.abs(r[~inner]).sum())
            v, r = v[inner], r[inner]
            self.coordinate, self.ends = np.log(v) - np.log1p(-v), (math.inf, math.inf)
            self.coordinate.setflags(write=False)  # as predictions are: kernels are compiled for one kind
        else:
            raise InvalidParameter(f"transform = {transform!r}; expected 'identity' or 'logit'")
        self.place, self.length, self.width = self.coordinate, 1.0, math.inf
        # To gain less than half of [0, 1] is not worth the rounding of places that are sums.
        if len(v) and (transform == "logit" or self.shortened(width) <= 0.5):
            first, last = (min(end, _REACH * width) for end in self.ends)
            gaps = np.minimum(np.diff(self.coordinate), 2.0 * _REACH * width)
            place = np.concatenate(([first], first + np.cumsum(gaps)))
            self.length = float(place[-1]) + last
            self.place, self.width = place / self.length, width
        self.residuals = r
        self.moving = float(np.abs(r).sum())
        self.most = self.fixed + self.moving
        self.least = self.fixed + abs(float(r.sum()))
        self._cosines: dict[int, Floats] = {}

    def shortened(self, width: float) -> float:
        """The length of the line for σ up to `width`: gaps cut to 2 · 9 σ, and to half of that at the ends."""
        reach = _REACH * width
        ends = min(self.ends[0], reach) + min(self.ends[1], reach)
        return float(np.cumsum(np.append(ends, np.minimum(np.diff(self.coordinate), 2.0 * reach)))[-1])

    def mesh(self, sigma: float, accuracy: float) -> int:
        """The number of steps with an error at σ of at most `accuracy`, if there is one below 2^20."""
        need = self.length / sigma * max(_STEPS, math.sqrt(_MESH * self.moving / accuracy))
        if need >= FINEST:
            return FINEST
        return int(scipy.fft.next_fast_len(max(math.ceil(need), 64), real=True))

    def bound(self, sigma: float, mesh: int) -> float:
        """The error of `error` at σ on this mesh."""
        return _MESH * self.moving * (self.length / (mesh * sigma)) ** 2

    def origin(self, place: Floats) -> Floats:
        """The predictions, or log odds, at places of the line from 0 to 1: as far from the nearest level as there."""
        if self.place is self.coordinate:
            return place
        right = np.minimum(np.searchsorted(self.place, place), len(self.place) - 1)
        left = np.maximum(right - 1, 0)
        near = np.where(place - self.place[left] < self.place[right] - place, left, right)
        return np.asarray(self.coordinate[near] + (place - self.place[near]) * self.length)

    def error(self, sigma: float, mesh: int) -> float:
        """smECE_σ on this mesh."""
        if len(self.residuals) == 0:
            return self.fixed
        return self.fixed + float(absolute_integrals(self.curve(sigma, mesh)[None, :])[0]) / mesh

    def curve(self, sigma: float, mesh: int) -> Floats:
        """The smoothed residual at the points of this mesh."""
        if mesh not in self._cosines:
            rows = locked(self.residuals[None, :])
            self._cosines = {mesh: scipy.fft.dct(spread(locked(self.place), rows, mesh)[0], type=1)}
        return damped(self._cosines[mesh][None, :], sigma / self.length, mesh)[0]

    def resolves(self, sigma: float, mesh: int) -> bool:
        """Whether this mesh is fine enough for `bound` to hold."""
        return sigma * mesh >= _STEPS * self.length

    def around(self, sigma: float, mesh: int) -> tuple[float, float]:
        """Bounds of σ* = smECE_{σ*} from this mesh near σ: for every σ, it is between σ and smECE_σ."""
        # Below this the mesh may err by more than σ.
        sigma = max(
            sigma,
            (_MESH * self.moving * (self.length / mesh) ** 2) ** (1.0 / 3.0),
            _STEPS * self.length / mesh,
        )
        if sigma > self.width:  # Gaussians meet here which do not
            return self.least, self.most
        value, error = self.error(sigma, mesh), self.bound(sigma, mesh)
        return min(sigma, value - error), max(sigma, value + error)


def damped(cosines: Floats, sigma: float, mesh: int) -> Floats:
    """Rows of sums of cosines times a Gaussian of this width, at the points of a mesh."""
    narrow = math.pi * sigma
    terms = min(mesh + 1, cosines.shape[1], math.ceil(_REACH / narrow) + 1)
    rows = np.zeros((len(cosines), mesh + 1))
    rows[:, :terms] = cosines[:, :terms] * np.exp(-0.5 * (narrow * np.arange(terms)) ** 2)
    return np.asarray(scipy.fft.dct(rows, type=1, axis=1))


@kernel
def spread(place, rows, mesh):
    """Rows of residuals on mesh + 1 points, each split linearly onto its neighbours; inner ones, which count twice,
    halved.
    """
    out = np.zeros((rows.shape[0], mesh + 1))
    for i in range(rows.shape[1]):
        x = place[i] * mesh
        j = min(int(x), mesh - 1)
        share = x - j
        for b in range(rows.shape[0]):
            out[b, j] += rows[b, i] * (1.0 - share)
            out[b, j + 1] += rows[b, i] * share
    # In loops: numba compiles a slice in place for two seconds, most of them for the words of an error.
    for b in range(rows.shape[0]):
        for j in range(1, mesh):
            out[b, j] *= 0.5
    return out


@kernel
def absolute_integrals(rows):
    """∫ |linear interpolation| of each row, over equal steps of length 1."""
    out = np.zeros(rows.shape[0])
    for row in range(rows.shape[0]):
        total = 0.0
        for j in range(rows.shape[1] - 1):
            a, b = rows[row, j], rows[row, j + 1]
            if a * b >= 0.0:
                total += 0.5 * abs(a + b)
            else:
                total += 0.5 * (a * a + b * b) / abs(a - b)
        out[row] = total
    return out
