"""The papers' experiments come out, in a small size: what is said of them in scenarios/papers is seen.

What is compared differs by many standard deviations of the means of 10 runs, which are at most 0.003 for n = 10,000.
"""

from pathlib import Path

import numpy as np
import pytest

import onlinecal as oc
from onlinecal.core.errors import InvalidData
from onlinecal.engine.game import Game
from onlinecal.measures import MEASURES
from onlinecal.scenario import load
from tests.experiments import PAGE, PRINTED, PROGRAMS, THRESHOLDS, script
from tests.pages import block

PAPERS = sorted(Path("scenarios/papers").glob("*.toml"))


@pytest.mark.parametrize("path", PAPERS, ids=lambda path: path.stem)
def test_scenarios_can_be_played(path):
    assert len(load(path).cells) > 0


def played(name, horizon, runs, seed):
    """Forecaster → Γ of the runs of a scenario's games of that length."""
    for cell in load(Path(f"scenarios/papers/{name}.toml")).cells:
        if cell.horizon == horizon:
            player, nature = cell.forecaster, cell.nature.strategy
            game = Game(player.strategy, nature, horizon=horizon, runs=range(runs), seed=seed)
            game.advance(horizon)
            yield player, list(game.gammas())


def test_bghn23_figure_2(seed):
    """The surer beyond a temperature of 1, the larger every measure; of the timid, bins see what smooth ones do not."""
    values = {}
    for player, gammas in played("bghn23", 10_000, 10, seed):
        for name in ("binned_ece", "binned_ece_width", "smooth_ce", "kernel_ce", "surrogate_interval_ce"):
            measure = MEASURES[name].bind(**({"bins": 20} if "binned" in name else {}))
            values[name, player.strategy.beta] = np.array([measure(gamma) for gamma in gammas])
    means = {key: found.mean() for key, found in values.items()}
    for name, beta in means:
        assert beta > 5.0 or means[name, 1.0] < means[name, 2.0] < means[name, 5.0] < means[name, 20.0]
        assert abs(means["smooth_ce", beta] - means["kernel_ce", beta]) < 0.03
    for beta in (0.1, 0.2):
        smooth = max(means["smooth_ce", beta], means["kernel_ce", beta])
        assert min(means["binned_ece", beta], means["surrogate_interval_ce", beta]) > 3 * smooth
    # Where forecasts gather at ½ their distance from calibration goes to 0, and smooth calibration with it.
    assert means["smooth_ce", 0.05] < means["smooth_ce", 0.2]
    assert max(found.std() for found in values.values()) < 0.02


def test_hjty24_errors_come_down_to_the_shift():
    """Of the shifted forecasts 15 % of the smooth calibration errors are below 0.005 at n = 2049 (seen in 4,000 runs).
    So the median of 60 is so with probability below 1e-8, by Chernoff's bound. Other medians differ by factors of four.
    """
    medians = {
        (player.label, n): np.median([MEASURES["smooth_ce"].function(gamma) for gamma in gammas])
        for n in (33, 2049)
        for player, gammas in played("hjty24", n, 60, 1)
    }
    for who in ("0.01 too low", "calibrated"):
        assert medians[who, 33] > 2 * medians[who, 2049]
    assert medians["0.01 too low", 2049] > 0.005


def test_hjty24_programs_give_the_value_that_is_timed(seed):
    rng = np.random.default_rng(seed)
    for n, grid in ((2, 0), (40, 7), (300, 0), (300, 20)):
        p = rng.integers(0, grid + 1, n) / grid if grid else rng.random(n)
        gamma = oc.JointDistribution.from_samples(p, rng.random(n) < p)
        for solve in PROGRAMS:
            assert solve(gamma) == pytest.approx(oc.measures.smooth_ce(gamma), abs=1e-9)


def rows(name):
    """The cells of a table of the page, without its heads."""
    lines = block(PAGE, name).splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_hjty24_thresholds_beside_those_that_the_authors_print():
    found = rows("thresholds")
    printed = [row for row in found if row[-1] != "–"]
    assert len(printed) == 18 == sum(map(len, PRINTED.values()))
    apart = [row for row in printed if row[-1] != row[-2]]
    assert len(apart) == 1
    ours, theirs = (THRESHOLDS.index(float(cell)) for cell in apart[0][-2:])
    assert abs(ours - theirs) == 1


def test_bn24_synthetic_samples_are_the_authors():
    """SmoothECE of the notebook's samples, to the digits that were found with them before. It is within 1/512 of what
    the notebook's own program prints for them, 0.0458984375.
    """
    module = script("bn24")
    p, y = module.synthetic()
    said = module.numbers(p, y)
    assert said["SmoothECE"] == pytest.approx(0.045381, abs=1e-6)
    assert said["SmoothECE"] == pytest.approx(0.0458984375, abs=1 / 512)
    assert said["bins"] in module.BINS
    assert np.abs(
        module.truth(np.linspace(0, 1, 10_001)) - np.linspace(0, 1, 10_001)
    ).mean() == pytest.approx(0.2 / np.pi, rel=1e-3)


#: kind of file → lines of it, what is read of them: values that stand for none are left out, and 1 − 0.7 is 0.3
FILES = {
    "network": ("true_label,pred_label,confidence\n0,394,0.25\n7,7,0.75\n", [[0.25, 0.75], [0.0, 1.0]]),
    "flares": (
        '"VALID_DATE","DAFFS","NOAA","rlz.C1"\n2016-01-01,0.75,NA,1\n2016-01-02,NA,0.1,0\n2016-01-03,-0.01,0,0\n',
        [[0.75], [1.0]],
    ),
    "rain": (
        "yyyy mm dd obs(mm) p24_cat0 p48_cat0\n2003 1 1 0.2 0.7 0.9\n2003  1  2  0.3  0.9  1\n"
        "2003 1 3 999.9 0.7 0.8\n2003 1 4 -1 0.7 0.8\n2003 1 5 2 -9.9 0.8\n2003 1 6 2 NA 0.8\n\n2003 1 7 9 0 0\n",
        [[0.3, 0.1, 1.0], [0.0, 1.0, 1.0]],
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", FILES)
def test_bn24_recorded_forecasts_are_read_from_a_file(kind, tmp_path):
    load, path, (text, found) = getattr(script("bn24"), kind), tmp_path / "some.txt", FILES[kind]
    path.write_text(text, "utf-8")
    assert [values.tolist() for values in load(path)] == found
    path.write_text(FILES["rain" if kind == "flares" else "flares"][0], "utf-8")
    with pytest.raises(InvalidData, match=r"some\.txt: no column"):
        load(path)


@pytest.mark.parametrize(("hours", "theirs"), [(24, 0.1444), (48, 0.1318)])
def test_bn24_numbers_of_rain_follow_from_the_table_of_days(hours, theirs):
    """All but the number of bins, for which the order of days matters; and what the authors' package says of them."""
    module = script("bn24")
    counts = [[int(cell.rstrip(" %")) for cell in row] for row in rows("rain")]
    at = {24: 1, 48: 3}[hours]
    p = np.repeat([row[0] / 100 for row in counts], [row[at] for row in counts])
    y = np.concatenate([[1] * row[at + 1] + [0] * (row[at] - row[at + 1]) for row in counts])
    said = {row[0]: row[1:] for row in rows("recorded")}[f"rain, {hours} hours"]
    found = {name: module.words(value) for name, value in module.numbers(p, y).items()}
    shown = dict(zip(found, said, strict=True))
    assert {k: v for k, v in shown.items() if k not in ("bins", "binned ECE")} == {
        k: v for k, v in found.items() if k not in ("bins", "binned ECE")
    }
    # More than the ECE, which SmoothECE does not exceed: those of exactly 0 and 1 count half there.
    relplot = pytest.importorskip("relplot")
    assert relplot.smECE(p, y) == pytest.approx(theirs, abs=5e-5)
    half = oc.JointDistribution.from_samples(p, y, weights=np.where((p == 0.0) | (p == 1.0), 0.5, 1.0))
    assert oc.measures.smooth_ece(half) == pytest.approx(theirs, abs=5e-4)
    assert oc.measures.ece(p, y) < theirs


def test_bhnu26_of_flipped_labels_cutoff_calibration_no_longer_goes_with_the_regret(seed):
    """The paper's sentence, in direction. The β are even; what chance does is the samples of the regressions.

    In 40 seeds the correlations had standard deviations of at most 0.01, of the β up to 2 at most 0.035. Each
    threshold is 5 of them away from the mean or more: of normal ones the test fails once in 10⁵ times.
    """
    pytest.importorskip("sklearn")
    module = script("bhnu26")
    found = module.actionability(np.linspace(0.25, 4.0, 25), seed)
    (name, flipped), (_, up_to_2) = list(module.lines(found).items())[1:]
    assert name == "flipped"
    assert flipped["cutoff_ce"] < 0.87 < 0.91 < flipped["scdl"] < 0.98 < flipped["binned_ece(bins=15)"]
    assert -0.1 < up_to_2["cutoff_ce"] < 0.29 < 0.3 < up_to_2["scdl"] < 0.6
    assert up_to_2["binned_ece(bins=15)"] > 0.95
    columns = found["flipped"]
    rising = (columns["beta"] > 0.5) & (columns["beta"] < 1.0)
    assert rising.sum() == 3
    assert (np.diff(columns["cutoff_ce"][rising]) < -0.01).all()
    assert (np.diff(columns[module.REGRET][rising]) > 0.005).all()
    flat = (columns["beta"] > 0.4) & (columns["beta"] < 1.5)
    assert columns["scdl"][flat] == pytest.approx(0.25, abs=0.005)
