"""Bairaktari, Hu, Nguyen and Ullman 2026, §9: what can be estimated from samples, and what decision makers can rely on.

    python scenarios/papers/bhnu26.py          # writes bhnu26-testability.png and bhnu26-actionability.png beside it

A feature x is uniform on [−1, 1], the event has probability σ(4x)^β, and a logistic regression is fitted to samples of
its own (scikit-learn, onlinecal's extra 'sklearn'): the predictor f, and 1 − f, that of flipped labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import onlinecal as oc

Floats = NDArray[np.float64]

HERE = Path(__file__).parent
MEASURES: list[Any] = [
    "scdl", "cdl", "smooth_ce", "cutoff_ce", {"name": "binned_ece", "bins": 15}, "smooth_ece",
]  # fmt: skip
REGRET = "swap_regret[three_action]"
PREDICTORS = ("fitted", "flipped")
#: samples that the regression is fitted to
TRAINING = 10_000
SLOPE = 4.0


def fitted(beta: float, seed: int, samples: int = TRAINING) -> dict[str, oc.forecasters.Logistic]:
    """The predictor f that is fitted to samples with this β, and 1 − f."""
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng([seed, 26])
    x = rng.uniform(-1.0, 1.0, samples)
    y = rng.random(samples) < _sigmoid(SLOPE * x) ** beta
    model = LogisticRegression(C=np.inf).fit(x[:, None], y)
    slope, intercept = float(model.coef_[0, 0]), float(model.intercept_[0])
    return {
        "fitted": oc.forecasters.Logistic(slope, intercept),
        "flipped": oc.forecasters.Logistic(-slope, -intercept),
    }


def on_samples(
    beta: float = 2.0, samples: Sequence[int] = (100, 1000, 10_000), runs: int = 100, seed: int = 1
) -> oc.Study:
    """Values of the measures on more and more samples; forecasters are in the order of `PREDICTORS`."""
    return oc.play(
        list(fitted(beta, seed).values()), oc.natures.LogisticFeatures(slope=SLOPE, bend=beta), horizon=list(samples),
        runs=runs, seed=seed, measures=MEASURES,
    )  # fmt: skip


def by_beta(
    betas: Sequence[float] = (0.5, 1.0, 2.0, 4.0), samples: int = 1000, runs: int = 100, seed: int = 1
) -> dict[float, oc.Study]:
    """β → values of the measures on so many samples, as in Table 2."""
    return {beta: on_samples(beta, [samples], runs, seed) for beta in betas}


def population(beta: float, predictor: oc.forecasters.Logistic, points: int = 2000) -> oc.JointDistribution:
    """Γ of what samples are drawn from, with `points` values of x in place of the interval."""
    x = -1.0 + 2.0 * (np.arange(points) + 0.5) / points
    v = _sigmoid(predictor.slope * x + predictor.intercept)
    return oc.JointDistribution.from_counts(v, np.ones(points), _sigmoid(SLOPE * x) ** beta)


def drawn(betas: int = 100, seed: int = 1) -> Floats:
    """The β of the page, drawn uniformly from [¼, 4]."""
    return np.random.default_rng([seed, 9]).uniform(0.25, 4.0, betas)


def actionability(betas: Floats, seed: int = 1) -> dict[str, dict[str, Floats]]:
    """Predictor → column → its value on the population of each β."""
    found: dict[str, dict[str, list[float]]] = {name: {"beta": betas.tolist()} for name in PREDICTORS}
    for i, beta in enumerate(betas.tolist()):
        for name, predictor in fitted(beta, seed + i).items():
            gamma = population(beta, predictor)
            columns = found[name]
            for column, measure in measured().items():
                columns.setdefault(column, []).append(measure(gamma))
            columns.setdefault(REGRET, []).append(oc.tasks.swap_regret(gamma, oc.tasks.three_action()))
    return {name: {c: np.array(v) for c, v in columns.items()} for name, columns in found.items()}


def up_to(found: dict[str, dict[str, Floats]], beta: float) -> dict[str, dict[str, Floats]]:
    """The same for these β alone."""
    return {
        name: {c: v[columns["beta"] <= beta] for c, v in columns.items()} for name, columns in found.items()
    }


def measured() -> dict[str, Any]:
    """The six measures by the names of their columns."""
    m = oc.measures
    return {
        "scdl": m.scdl, "cdl": m.cdl, "smooth_ce": m.smooth_ce, "cutoff_ce": m.cutoff_ce,
        "binned_ece(bins=15)": partial(m.binned_ece, bins=15), "smooth_ece": m.smooth_ece,
    }  # fmt: skip


def _sigmoid(z: Floats) -> Floats:
    return np.asarray(1.0 / (1.0 + np.exp(-z)))


def correlations(found: dict[str, dict[str, Floats]]) -> dict[str, dict[str, float]]:
    """Predictor → measure → Spearman's correlation with the swap regret."""
    from scipy.stats import spearmanr

    return {
        name: {
            column: float(spearmanr(values, columns[REGRET]).statistic)
            for column, values in columns.items()
            if column not in (REGRET, "beta")
        }
        for name, columns in found.items()
    }


def lines(found: dict[str, dict[str, Floats]]) -> dict[str, dict[str, float]]:
    """The correlations of the page: those of both predictors, and of the flipped one for β up to 2 alone."""
    return correlations(found) | {"flipped, β ≤ 2": correlations(up_to(found, 2.0))["flipped"]}


def draw_on_samples(study: oc.Study) -> Any:
    """Values against the number of samples; bars are standard deviations."""
    figure = oc.plots.sweep(
        study,
        study.measures,
        "T",
        title="What samples tell: a fitted logistic predictor f, and 1 − f",
    )
    for axis, name in zip(figure.axes, PREDICTORS, strict=True):
        axis.set_title(name, fontsize=9)
    return figure


def draw_actionability(found: dict[str, dict[str, Floats]]) -> Any:
    """A point for each β: the measure across, the swap regret up; darker for larger β."""
    from matplotlib.figure import Figure

    shown = [column for column in found["fitted"] if column not in (REGRET, "beta")]
    spearman = correlations(found)
    figure = Figure(figsize=(2.3 * len(shown), 5.2), layout="constrained", dpi=110)
    axes = figure.subplots(len(PREDICTORS), len(shown))
    for row, name in zip(axes, PREDICTORS, strict=True):
        for axis, column in zip(row, shown, strict=True):
            columns = found[name]
            axis.scatter(columns[column], columns[REGRET], c=columns["beta"], cmap="Blues", vmin=-1.5, s=14)
            axis.set_title(f"{name}\nSpearman {spearman[name][column]:.2f}", fontsize=9)
            axis.set_xlabel(column, fontsize=8)
            axis.tick_params(labelsize=7)
            axis.locator_params(nbins=4)
        row[0].set_ylabel("swap regret, three actions", fontsize=8)
    return figure


def main() -> None:
    """Both pictures, and the correlations."""
    draw_on_samples(on_samples()).savefig(HERE / "bhnu26-testability.png", dpi=110)
    found = actionability(drawn())
    draw_actionability(found).savefig(HERE / "bhnu26-actionability.png", dpi=110)
    for name, by_measure in lines(found).items():
        print(name, {column: round(value, 2) for column, value in by_measure.items()})


if __name__ == "__main__":
    main()
