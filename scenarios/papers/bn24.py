"""Błasiok and Nakkiran 2024, §6: a smoothed diagram beside a binned one, of made forecasts and of recorded ones.

    python scenarios/papers/bn24.py                              # Figure 6; writes bn24-synthetic.png beside it
    python scenarios/papers/bn24.py --flares SF.FC.C1.csv        # Figure 4 as well, of a file that you have

The recorded forecasts are their owners' and not shipped: data/SF.FC.C1.csv of
https://github.com/TimoDimi/replication_DGJ20, daily forecasts of solar flares of class C1 or larger by many methods.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import onlinecal as oc
from onlinecal.core.errors import InvalidData

Floats = NDArray[np.float64]
Samples = tuple[Floats, Floats]

HERE = Path(__file__).parent
SOURCE = "data/SF.FC.C1.csv of https://github.com/TimoDimi/replication_DGJ20"
BINS = range(10, 25)


def truth(v: Any) -> Any:
    """How likely the event is that was forecast as v: not monotone."""
    return v + 0.1 * np.sin(8.0 * np.pi * v)


def synthetic(samples: int = 1000, seed: int = 0) -> Samples:
    """Forecasts uniform on [0, 1] and outcomes that are 1 with the probability `truth`.

    Drawn one by one from NumPy's old generator, as by the paper's authors: seed 0 gives the samples of their Figure 6.
    """
    drawn = np.random.RandomState(seed).uniform(size=(samples, 2))
    return drawn[:, 0].copy(), (drawn[:, 1] > 1.0 - truth(drawn[:, 0])).astype(np.float64)


def flares(path: Path, method: str = "DAFFS") -> Samples:
    """Forecasts of solar flares by one method, and whether there were any; days without a forecast are left out.

    Raises
    ------
    InvalidData
        There is no such file, and where to get it; or no such columns.
    """
    try:
        rows = list(csv.DictReader(path.read_text("utf-8-sig").splitlines()))
    except OSError:
        raise InvalidData(f"{path}: there is no such file; expected {SOURCE}, downloaded") from None
    if not rows or method not in rows[0] or "rlz.C1" not in rows[0]:
        raise InvalidData(f"{path}: no columns {method!r} and 'rlz.C1'; expected {SOURCE}")
    there = [(float(row[method]), float(row["rlz.C1"])) for row in rows if row[method] != "NA"]
    there = [pair for pair in there if pair[0] >= 0.0]  # −0.01 is another word for it
    p, y = np.array(there).T
    return p, y


def bins_by_cross_validation(p: Floats, y: Floats, folds: int = 5) -> int:
    """So many bins of equal width, of 10 to 24, that their means in four fifths of the samples fit the rest best."""
    place = np.arange(len(p)) * folds // len(p)
    return min(BINS, key=lambda bins: sum(_loss(p, y, place == fold, bins) for fold in range(folds)))


def _loss(p: Floats, y: Floats, out: NDArray[np.bool_], bins: int) -> float:
    """Squared error of the mean residual of each bin, on the samples that are left out."""
    number = np.minimum((p * bins).astype(int), bins - 1)
    counts = np.bincount(number[~out], minlength=bins)
    sums = np.bincount(number[~out], (y - p)[~out], minlength=bins)
    fitted = np.divide(sums, counts, out=np.zeros(bins), where=counts > 0)
    return float((((y - p)[out] - fitted[number[out]]) ** 2).sum())


def numbers(p: Floats, y: Floats) -> dict[str, float]:
    """What stands beside the diagrams."""
    bins = bins_by_cross_validation(p, y)
    gamma = oc.JointDistribution.from_samples(p, y)
    return {
        "samples": len(p),
        "base rate": gamma.base_rate,
        "SmoothECE": oc.measures.smooth_ece(gamma),
        "bins": bins,
        "binned ECE": oc.measures.binned_ece(gamma, bins=bins),
    }


def draw(p: Floats, y: Floats, curve: Any = None) -> Any:
    """The binned diagram on the left, the smoothed one on the right; a true curve if it is known."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.0, 5.2), layout="constrained", dpi=110)
    left, right = figure.subplots(1, 2)
    oc.plots.reliability(p, y, bins=bins_by_cross_validation(p, y), band=None, axes=left)
    oc.plots.reliability(p, y, kind="smooth", axes=right)
    if curve is not None:
        t = np.linspace(0.0, 1.0, 501)
        for axis in (left, right):
            axis.plot(t, curve(t), color="#009E73", linewidth=1.4, label="truth")
            axis.legend(fontsize=8, frameon=False, loc="upper left")
    return figure


def main() -> None:
    """Figure 6, and Figure 4 where its data are there."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--flares", type=Path, metavar="CSV")
    given = parser.parse_args()
    p, y = synthetic()
    draw(p, y, truth).savefig(HERE / "bn24-synthetic.png", dpi=110)
    print("synthetic", numbers(p, y))
    if given.flares is not None:
        try:
            p, y = flares(given.flares)
        except InvalidData as error:
            parser.exit(2, f"error: {error}\n")
        draw(p, y).savefig(given.flares.with_suffix(".png"), dpi=110)
        print("flares", numbers(p, y))


if __name__ == "__main__":
    main()
