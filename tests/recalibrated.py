"""Brier score and log loss before and after recalibration: the table of docs/recalibrate.md, of the seed 1."""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from onlinecal.core.writing import scenarios
from onlinecal.recalibration.replay import recalibrate
from tests.pages import markdown

ROUNDS = 2000
WAYS = ("aggregated", "calibeating", "tracking", "isotonic_refitted")


def streams() -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """A title, forecasts and outcomes: where a probability of the outcome is drawn from, and the example log."""
    generator = np.random.default_rng(1)
    p, rare = generator.random(ROUNDS), 0.02 * generator.beta(0.2, 5.0, ROUNDS)
    few, late = generator.choice([0.1, 0.3, 0.5, 0.7, 0.9], ROUNDS), np.arange(ROUNDS) / ROUNDS
    for title, said, truth in (
        ("calibrated, p uniform", p, p),
        ("calibrated, 5 values of p", few, few),
        ("calibrated, p near 0.001", rare, rare),
        ("P(y = 1) = 0.1 + 0.8p", p, 0.1 + 0.8 * p),
        ("P(y = 1) has half the log odds", p, np.sqrt(p) / (np.sqrt(p) + np.sqrt(1.0 - p))),
        ("P(y = 1) = p²", p, p**2),
        ("P(y = 1) goes from p to 1 − p", p, (1.0 - late) * p + late * (1.0 - p)),
    ):
        yield title, said, (generator.random(ROUNDS) < truth) * 1.0
    log = pd.read_csv(scenarios(".csv")["rain"])
    for name in ("climatology", "persistence"):
        yield f"`{name}` of rain.csv", log[name].to_numpy(), log["rain"].to_numpy(np.float64)


def table() -> str:
    """Markdown: a row for each stream, Brier score and log loss."""
    rows = []
    for title, p, y in streams():
        found = [recalibrate(p, y, way, measures=["brier", "log_loss"]) for way in WAYS]
        scores = (found[0].before, *(f.after for f in found))
        rows.append([title, *(f"{one['brier']:.4f}, {one['log_loss']:.3f}" for one in scores)])
    return markdown(["", "as they are", *(f"`{way}`" for way in WAYS)], rows)


if __name__ == "__main__":
    print(table())
