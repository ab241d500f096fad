"""Games and curves made of totals, for tests of what is drawn and said of them."""

import numpy as np
from matplotlib.colors import to_rgb

from onlinecal.core.columns import Column
from onlinecal.core.guarantee import Sight
from onlinecal.study.curves import Curve, Study
from onlinecal.study.played import Played

INF = np.inf
TIMES = (100, 200, 400, 800)


def cell(forecaster, totals, nature="drift", times=(100,), **options):
    """A game: column → a row of totals, one a run, for each checkpoint; of the ECE where no column is named."""
    given = totals if isinstance(totals, dict) else {"ece": totals}
    columns = tuple(name if isinstance(name, Column) else Column("measure", name) for name in given)
    values = (np.array(rows, float).reshape(len(times), -1) for rows in given.values())
    options = {"horizon": times[-1], "sight": Sight.NOTHING} | options
    return Played(
        forecaster=forecaster, nature=nature, rounds=np.array(times), columns=columns,
        totals={column.name: rows for column, rows in zip(columns, values, strict=True)}, **options,
    )  # fmt: skip


def study(*cells, **options):
    """A study of these cells, or of games of T = 100: (forecaster, nature) → totals of the ECE."""
    if cells and isinstance(cells[0], dict):
        cells = [cell(who, totals, nature) for (who, nature), totals in cells[0].items()]
    return Study(tuple(cells), **options)


def curve(totals, times=TIMES, *, forecaster="one", nature="drift", measure="brier", fresh=True, **options):
    """A curve of these totals, a row for each T."""
    rows = np.array(totals, float).reshape(len(times), -1)
    return Curve(Column("measure", measure), forecaster, nature, np.array(times), rows, fresh, **options)


def noisy(rng, means, runs=16):
    """Totals of runs around these means, with standard deviation 1."""
    return np.asarray(means)[:, None] + rng.standard_normal((len(means), runs))


def light(colour):
    """Relative luminance, from 0 (black) to 1 (white)."""
    parts = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour))
    return float(np.dot((0.2126, 0.7152, 0.0722), list(parts)))


def contrast(one, other):
    """The contrast of two colours, from 1 to 21, as the Web Content Accessibility Guidelines 2.2 define it."""
    low, high = sorted((light(one), light(other)))
    return (high + 0.05) / (low + 0.05)
