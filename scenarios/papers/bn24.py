"""Błasiok and Nakkiran 2024, §6: a smoothed diagram beside a binned one, of made forecasts and of recorded ones.

    python scenarios/papers/bn24.py                              # Figure 6; writes bn24-synthetic.png beside it
    python scenarios/papers/bn24.py --network resnet34.csv       # Figure 3 as well, of a file that you have
    python scenarios/papers/bn24.py --flares SF.FC.C1.csv        # Figure 4
    python scenarios/papers/bn24.py --rain POP_3cat_2003.txt     # Figure 5; --hours 48 for those made two days before

The recorded forecasts are their owners' and not shipped; `SOURCES` says where they are. A picture is written beside the
file that is read.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import onlinecal as oc
from onlinecal.core.errors import InvalidData

Floats = NDArray[np.float64]
Samples = tuple[Floats, Floats]
Ends = tuple[float, float]

HERE = Path(__file__).parent
#: kind of forecasts → the file that has them
SOURCES = {
    "network": "a file of results/ImageNet_pytorch-image-models of https://github.com/hollance/reliability-diagrams",
    "flares": "data/SF.FC.C1.csv of https://github.com/TimoDimi/replication_DGJ20",
    "rain": "https://www.cawcr.gov.au/projects/verification/POP3/POP_3cat_2003.txt",
}
BINS = range(10, 25)
#: a day has rain from more than this, in mm
WET = 0.2
#: from here on, what stands in place of the rain of a day says that nobody measured it
UNKNOWN = 999.0


def truth(v: Any) -> Any:
    """How likely the event is that was forecast as v: not monotone."""
    return v + 0.1 * np.sin(8.0 * np.pi * v)


def synthetic(samples: int = 1000, seed: int = 0) -> Samples:
    """Forecasts uniform on [0, 1] and outcomes that are 1 with the probability `truth`.

    Drawn one by one from NumPy's old generator, as by the paper's authors: seed 0 gives the samples of their Figure 6.
    """
    drawn = np.random.RandomState(seed).uniform(size=(samples, 2))
    return drawn[:, 0].copy(), (drawn[:, 1] > 1.0 - truth(drawn[:, 0])).astype(np.float64)


def columns(path: Path, kind: str, names: Sequence[str]) -> list[Floats]:
    """Columns of a file with a line of heads, parted by commas or, if it has none, by blanks; nan where it says NA.

    Raises
    ------
    InvalidData
        There is no such file, and where to get it; or it has no such columns, or something else than numbers in them.
    """
    try:
        lines = path.read_text("utf-8-sig", errors="replace").splitlines()
    except OSError:
        raise InvalidData(f"{path}: there is no such file; expected {SOURCES[kind]}, downloaded") from None
    commas = bool(lines) and "," in lines[0]
    heads, *rows = csv.reader(lines) if commas else [line.split() for line in lines] or [[]]
    if missing := [name for name in names if name not in heads]:
        raise InvalidData(f"{path}: no column {' or '.join(map(repr, missing))}; expected {SOURCES[kind]}")
    try:
        return [np.array([_number(row[place]) for row in rows if row]) for place in map(heads.index, names)]
    except (ValueError, IndexError):
        raise InvalidData(
            f"{path}: a line has no number in {' or '.join(map(repr, names))}; expected {SOURCES[kind]}"
        ) from None


def _number(cell: str) -> float:
    return np.nan if cell == "NA" else float(cell)


def network(path: Path) -> Samples:
    """How sure a classifier is of the class that it names, and whether it is that class."""
    true, named, p = columns(path, "network", ["true_label", "pred_label", "confidence"])
    return p, (true == named).astype(np.float64)


def flares(path: Path, method: str = "DAFFS") -> Samples:
    """Forecasts of solar flares by one method, and whether there were any; days without a forecast are left out."""
    p, y = columns(path, "flares", [method, "rlz.C1"])
    there = p >= 0.0  # −0.01 is another word for none
    return p[there], y[there]


def rain(path: Path, hours: int = 24) -> Samples:
    """Forecasts of rain so many hours before, and whether it rained; days of which either is unknown are left out."""
    amount, dry = columns(path, "rain", ["obs(mm)", f"p{hours}_cat0"])
    there = (amount >= 0.0) & (amount < UNKNOWN) & (dry >= 0.0) & (dry <= 1.0)
    # Rounded, for the file says tenths, and 1 − 0.7 is not the number that is written 0.3.
    return np.round(1.0 - dry[there], 6), (amount[there] > WET).astype(np.float64)


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


def numbers(p: Floats, y: Floats) -> dict[str, float | Ends]:
    """What stands beside the diagrams; pairs are an interval of 95 % and proved bounds of the lower distance."""
    bins = bins_by_cross_validation(p, y)
    gamma = oc.JointDistribution.from_samples(p, y)
    drawn = oc.evaluate(gamma, measures=["smooth_ece"], bootstrap=1000)
    interval = drawn.rows[0].interval
    assert interval is not None
    distance = oc.measures.distance_lower(gamma)
    return {
        "samples": len(p),
        "base rate": gamma.base_rate,
        "SmoothECE": oc.measures.smooth_ece(gamma),
        "95 %": interval,
        "bins": bins,
        "binned ECE": oc.measures.binned_ece(gamma, bins=bins),
        "of 10 bins": oc.measures.binned_ece(gamma, bins=10),
        "smooth CE": oc.measures.smooth_ce(gamma),
        "lower distance": (distance.lower, distance.upper),
    }


def words(value: float | Ends) -> str:
    """A number, or two, as the page has them."""
    return " – ".join(f"{end:.4g}" for end in (value if isinstance(value, tuple) else (value,)))


def draw(p: Floats, y: Floats, curve: Any = None) -> Any:
    """The binned diagram on the left, the smoothed one on the right; a true curve if it is known."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.0, 5.2), layout="constrained", dpi=110)
    left, right = figure.subplots(1, 2)
    oc.plots.reliability(p, y, bins=bins_by_cross_validation(p, y), band=None, ax=left)
    oc.plots.reliability(p, y, kind="smooth", ax=right)
    if curve is not None:
        t = np.linspace(0.0, 1.0, 501)
        for axis in (left, right):
            axis.plot(t, curve(t), color="#009E73", linewidth=1.4, label="truth")
            axis.legend(fontsize=8, frameon=False, loc="upper left")
    return figure


def main() -> None:
    """Figure 6, and those whose data are there; their numbers are lines of a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--network", type=Path, metavar="CSV")
    parser.add_argument("--flares", type=Path, metavar="CSV")
    parser.add_argument("--rain", type=Path, metavar="TXT")
    parser.add_argument("--hours", type=int, choices=(24, 48), default=24, help="of the forecasts of rain")
    given = parser.parse_args()
    loaders = {"network": network, "flares": flares, "rain": partial(rain, hours=given.hours)}
    paths = {kind: getattr(given, kind) for kind in loaders if getattr(given, kind) is not None}
    try:
        samples = {kind: loaders[kind](path) for kind, path in paths.items()}
    except InvalidData as error:
        parser.exit(2, f"error: {error}\n")
    p, y = synthetic()
    draw(p, y, truth).savefig(HERE / "bn24-synthetic.png", dpi=110)
    said = numbers(p, y)
    print(f"| forecasts | {' | '.join(said)} |")
    print(f"| synthetic | {' | '.join(map(words, said.values()))} |")
    for kind, (p, y) in samples.items():
        path = paths[kind]
        name = f"{kind}, {given.hours} hours" if kind == "rain" else kind
        print(f"| {name} | {' | '.join(map(words, numbers(p, y).values()))} |")
        draw(p, y).savefig(
            path.with_name(f"{path.stem}-{name.replace(', ', '-').replace(' ', '-')}.png"), dpi=110
        )


if __name__ == "__main__":
    main()
