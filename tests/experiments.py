"""Plays the experiments of the papers and writes scenarios/papers/README.md: `python -m tests.experiments`.

Scenarios with results in results/ already are not played again. It takes some minutes; needs scikit-learn.
"""

from __future__ import annotations

import subprocess
import sys
import time
import timeit
from collections.abc import Callable, Mapping
from functools import partial
from importlib import util
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

import onlinecal as oc
from onlinecal.core.joint import JointDistribution
from tests.oracles import measures as oracle
from tests.pages import ROOT, block, markdown, rewrite

HERE = ROOT / "scenarios" / "papers"
PAGE = HERE / "README.md"

#: of Hu, Jambulapati, Tian, Yang 2024: the thresholds ε that are tried, largest first
THRESHOLDS = (0.1, 0.07, 0.05, 0.03, 0.01, 0.007, 0.005, 0.003, 0.001)
#: what their notebook smCE.ipynb prints for n = 2^i + 1
#: (github.com/chutongyang98/Testing-Calibration-in-Nearly-Linear-Time)
PRINTED: dict[str, tuple[float, ...]] = {
    "smooth_ce": (0.1, 0.07, 0.05, 0.03, 0.03, 0.01, 0.01),
    "smooth_ece": (0.1, 0.1, 0.1, 0.07, 0.07, 0.05, 0.03),
    "distance_lower[lower]": (0.05, 0.03, 0.01, 0.01),
}
#: of ε, what a value is compared with
SHARE = {"smooth_ce": 0.5, "smooth_ece": 0.5, "distance_lower[lower]": 1.0}

#: what their notebook min_flow.ipynb prints, the mean smooth calibration of ten sets of 1,024 samples
MEAN_OF_TEN = 0.01132942
#: what `smooth_ce` is the value of
PROGRAMS = (oracle.smooth_ce, oracle.smooth_ce_by_flow)
#: heads of a table of times → what is timed, and the largest n for it: beyond, the flow takes minutes
SOLVERS: dict[str, tuple[Callable[[JointDistribution], Any], int]] = {
    "smooth_ce": (oc.measures.smooth_ce, 10**9),
    "its program by HiGHS": (oracle.smooth_ce, 10**9),
    "the flow by HiGHS": (oracle.smooth_ce_by_flow, 10_000),
    "smooth_ece": (oc.measures.smooth_ece, 10**9),
    "distance_lower": (oc.measures.distance_lower, 10**9),
}


def script(name: str, folder: Path = HERE) -> ModuleType:
    """A file of scenarios/papers, or of another folder, as a module."""
    spec = util.spec_from_file_location(name, folder / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def study(name: str) -> oc.Study:
    """The results of a scenario of the folder, which is played if it has no results."""
    path = ROOT / "results" / f"{name}.db"
    if not path.exists():
        path.parent.mkdir(exist_ok=True)
        subprocess.run(
            [sys.executable, "-m", "onlinecal", "run", str(HERE / f"{name}.toml"), "-o", str(path)], check=True,
            cwd=ROOT, stdout=subprocess.DEVNULL,
        )  # fmt: skip
    return oc.load(path)


def reached(values: Any, share: float) -> float:
    """The largest threshold ε that more than half of the values reach, which are compared with share·ε; 0 for none.

    >>> reached([0.06, 0.06, 0.01], 0.5), reached([0.06, 0.01], 0.5), reached([0.0], 0.5)
    (0.1, 0.01, 0.0)
    """
    v = np.asarray(values)
    return next((e for e in THRESHOLDS if 2 * int((v >= share * e).sum()) > len(v)), 0.0)


def temperatures(played: oc.Study) -> str:
    """Means and standard deviations at the larger n, a row for each β."""
    from onlinecal.report.sweep_plot import sweep_table

    found = sweep_table(played, played.measures, "beta")
    rows = []
    for beta, lines in found[found["panel"] == found["panel"].max()].groupby("at"):
        cells = [f"{line.value:.3f} ± {line.upper - line.value:.3f}" for line in lines.itertuples()]
        rows.append([f"{beta:g}", *cells])
    return markdown(["β", "binned ECE (20)", "+ width", "smooth CE", "kernel CE", "SintCE"], rows)


def thresholds(played: oc.Study) -> str:
    """The largest threshold that more than half of the runs reach, beside what the authors' notebook prints."""
    rows = []
    who = played.forecasters[0]
    for column, printed in PRINTED.items():
        curve = played.curve(column, who)
        for i, (n, totals) in enumerate(zip(curve.rounds, curve.totals, strict=True)):
            theirs = f"{printed[i]:g}" if i < len(printed) else "–"
            quartiles = np.percentile(totals / n, [25, 50, 75])
            rows.append(
                [column.partition("[")[0], f"{n:,}", *(f"{q:.4f}" for q in quartiles),
                 f"{reached(totals / n, SHARE[column]):g}", theirs]
            )  # fmt: skip
    return markdown(["measure", "n", "25 %", "median", "75 %", "ε reached by half", "their notebook"], rows)


def seconds(samples: tuple[int, ...] = (129, 513, 2049, 8193, 131_073)) -> str:
    """Processor time of a value, the median of five; beside it that of the programs which smooth calibration solves."""
    rows = []
    rng = np.random.default_rng(1)
    for n in samples:
        p = rng.uniform(0.0, 0.99, n)
        gamma = JointDistribution.from_samples(p, rng.random(n) < p + 0.01)
        value = oc.measures.smooth_ce(gamma)
        cells = []
        for solve, largest in SOLVERS.values():
            if n > largest:
                cells.append("–")
                continue
            found = solve(gamma)
            if solve in PROGRAMS:
                assert abs(found - value) < 1e-9, f"{found} by a program, {value} by smooth_ce"
            times = timeit.repeat(lambda s=solve, g=gamma: s(g), number=1, repeat=5, timer=time.process_time)
            cells.append(f"{1000 * float(np.median(times)):.3f}")
        rows.append([f"{n:,}", *cells])
    return markdown(["n", *(f"{name}, ms" for name in SOLVERS)], rows)


def means_of_ten(shift: float, sets: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Mean smooth calibration of ten sets of 1,024: f uniform on [0, 1], an event of probability f + shift."""
    values = np.empty((sets, 10))
    for place in np.ndindex(values.shape):
        f = rng.random(1024)
        gamma = JointDistribution.from_samples(f, rng.random(1024) < f + shift)
        values[place] = oc.measures.smooth_ce(gamma)
    return np.asarray(values.mean(axis=1))


def ten(sets: int = 10_000) -> str:
    """Where the mean that the authors' notebook prints is among ours."""
    means = means_of_ten(0.01, sets, np.random.default_rng(1))
    levels = (1, 25, 50, 75, 99)
    below = f"{100 * (means < MEAN_OF_TEN).mean():.1f} %"
    return markdown(
        ["means", *(f"{level} %" for level in levels), "their notebook", "below it"],
        [[f"{sets:,}", *(f"{q:.4f}" for q in np.percentile(means, levels)), f"{MEAN_OF_TEN}", below]],
    )


def by_samples(played: oc.Study, predictors: tuple[str, ...]) -> str:
    """Value and standard deviation by n, for both predictors."""
    sizes = sorted({cell.horizon for cell in played.cells})
    rows = []
    for column in played.measures:
        row = [column]
        for who in played.forecasters:
            curve = played.curve(column, who)
            values = curve.totals / curve.rounds[:, None]
            row += [f"{v.mean():.4f} ± {v.std(ddof=1):.4f}" for v in values]
        rows.append(row)
    return markdown(["measure", *(f"{name}, n = {n:,}" for name in predictors for n in sizes)], rows)


def by_beta(played: Mapping[float, oc.Study]) -> str:
    """Value and standard deviation for the fitted predictor by β."""
    rows = []
    for column in next(iter(played.values())).measures:
        curves = [study.curve(column, study.forecasters[0]) for study in played.values()]
        values = [curve.totals[-1] / curve.rounds[-1] for curve in curves]
        rows.append([column, *(f"{v.mean():.4f} ± {v.std(ddof=1):.4f}" for v in values)])
    return markdown(["measure", *(f"β = {beta:g}" for beta in played)], rows)


def correlated(found: Mapping[str, Mapping[str, float]]) -> str:
    """Spearman's correlation of each measure with the swap regret."""
    measures = list(next(iter(found.values())))
    return markdown(
        ["predictor", *measures],
        [[name, *(f"{values[m]:.2f}" for m in measures)] for name, values in found.items()],
    )


def recorded(said: Mapping[str, Any], words: Callable[[Any], str]) -> str:
    """The table of the page with a new first row. The others are of files that are not here, and stay."""
    others = block(PAGE, "recorded").splitlines()[3:]
    made = markdown(["forecasts", *said], [["synthetic", *map(words, said.values())]])
    return "\n".join([made, *others])


def diagrams(betas: tuple[float, ...] = (0.1, 0.5, 1.0, 2.0, 5.0, 20.0), samples: int = 10_000) -> Any:
    """Figure 1 of BGHN23: reliability diagrams of D_β with the densities of its predictions."""
    played = oc.play(
        [oc.forecasters.Tempered(beta) for beta in betas], oc.natures.UniformTruth(), horizon=[samples], runs=1,
        seed=2023, measures=["smooth_ce"], keep="all",
    )  # fmt: skip
    gammas = {f"β = {beta:g}": played.gamma(who) for beta, who in zip(betas, played.forecasters, strict=True)}
    return oc.plots.reliability(gammas, bins=20, band=None, title="The family D_β")


def main() -> None:
    write = partial(rewrite, PAGE)
    family, shifted = study("bghn23"), study("hjty24")
    write("temperatures", temperatures(family))
    oc.plots.sweep(family, family.measures, "beta", title=family.title).savefig(
        HERE / "bghn23-figure-2.png", dpi=110
    )
    diagrams().savefig(HERE / "bghn23-figure-1.png", dpi=110)
    write("thresholds", thresholds(shifted))
    write("seconds", seconds())
    write("ten", ten())
    oc.plots.sweep(shifted, list(PRINTED), "T", bars="quartiles", title=shifted.title).savefig(
        HERE / "hjty24-quartiles.png", dpi=110
    )
    swap = script("bhnu26")
    played, found = swap.on_samples(), swap.actionability(swap.drawn())
    write("testable", by_samples(played, swap.PREDICTORS))
    write("by beta", by_beta(swap.by_beta()))
    write("correlated", correlated(swap.lines(found)))
    swap.draw_on_samples(played).savefig(HERE / "bhnu26-testability.png", dpi=110)
    swap.draw_actionability(found).savefig(HERE / "bhnu26-actionability.png", dpi=110)
    smooth = script("bn24")
    p, y = smooth.synthetic()
    smooth.draw(p, y, smooth.truth).savefig(HERE / "bn24-synthetic.png", dpi=110)
    write("recorded", recorded(smooth.numbers(p, y), smooth.words))


if __name__ == "__main__":
    main()
