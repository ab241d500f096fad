"""The papers' experiments come out, in a small size: what is said of them in scenarios/papers is seen.

What is compared differs by many standard deviations of the means of 10 runs, which are at most 0.003 for n = 10,000.
"""

import re
from pathlib import Path

import numpy as np
import pytest

import onlinecal as oc
from onlinecal.core.errors import InvalidData
from onlinecal.engine.game import Game
from onlinecal.measures import MEASURES
from onlinecal.scenario import load
from tests.experiments import PAGE, PRINTED, THRESHOLDS, reached, script
from tests.readme import block

PAPERS = sorted(Path("scenarios/papers").glob("*.toml"))
RUNS = 10


@pytest.mark.parametrize("path", PAPERS, ids=lambda path: path.stem)
def test_scenarios_can_be_played(path):
    assert len(load(path).cells) > 0


@pytest.fixture(scope="module")
def temperatures(request):
    """Measure → inverse temperature → the values of the runs, at n = 10,000."""
    loaded = load(Path("scenarios/papers/bghn23.toml"))
    found = {}
    for cell in loaded.cells:
        if cell.horizon != 10_000:
            continue
        game = Game(
            cell.forecaster.strategy, cell.nature.strategy, horizon=cell.horizon, runs=range(RUNS),
            seed=request.config.getoption("--seed"),
        )  # fmt: skip
        game.advance(cell.horizon)
        gammas = list(game.gammas())
        for name, options in (
            ("binned_ece", {"bins": 20}), ("binned_ece_width", {"bins": 20}), ("smooth_ce", {}), ("kernel_ce", {}),
            ("surrogate_interval_ce", {}),
        ):  # fmt: skip
            measure = MEASURES[name].bind(**options)
            found.setdefault(name, {})[cell.forecaster.strategy.beta] = np.array([measure(g) for g in gammas])
    return found


def test_bghn23_all_measures_agree_on_those_who_are_too_sure(temperatures):
    """Figure 2, temperatures up to 1: the surer, the larger every measure."""
    for by_beta in temperatures.values():
        means = [by_beta[beta].mean() for beta in (1.0, 2.0, 5.0, 20.0)]
        assert (np.diff(means) > 0).all()


def test_bghn23_bins_see_what_smooth_measures_do_not_in_those_who_are_too_timid(temperatures):
    """Figure 2, temperatures from 1 to 10: interval and binned errors are much higher than smooth and kernel ones."""
    for beta in (0.1, 0.2):
        smooth = max(temperatures[name][beta].mean() for name in ("smooth_ce", "kernel_ce"))
        binned = min(temperatures[name][beta].mean() for name in ("binned_ece", "surrogate_interval_ce"))
        assert binned > 3 * smooth
    # Where forecasts gather at ½ their distance from calibration goes to 0, and smooth calibration with it.
    assert temperatures["smooth_ce"][0.05].mean() < temperatures["smooth_ce"][0.2].mean()


def test_bghn23_values_concentrate_and_smooth_is_near_kernel(temperatures):
    for by_beta in temperatures.values():
        assert max(values.std() for values in by_beta.values()) < 0.02
    for beta, values in temperatures["smooth_ce"].items():
        assert abs(values.mean() - temperatures["kernel_ce"][beta].mean()) < 0.03


def test_bghn23_width_is_added(temperatures):
    for beta, values in temperatures["binned_ece"].items():
        assert temperatures["binned_ece_width"][beta] == pytest.approx(values + 1 / 20, abs=1e-12)


def test_hjty24_errors_come_down_to_the_shift(seed):
    """Of the shifted forecasts 15 % of the smooth calibration errors are below 0.005 at n = 2049 (seen in 4,000 runs),
    so the median of 60 with probability below 1e-8, by Chernoff's bound. The other medians differ by factors of four.
    """
    loaded = load(Path("scenarios/papers/hjty24.toml"))
    medians = {}
    for cell in loaded.cells:
        if cell.horizon in (33, 2049):
            game = Game(
                cell.forecaster.strategy, cell.nature.strategy, horizon=cell.horizon, runs=range(60), seed=1
            )
            game.advance(cell.horizon)
            values = [MEASURES["smooth_ce"].function(gamma) for gamma in game.gammas()]
            medians[cell.forecaster.label, cell.horizon] = np.median(values)
    low, true = "0.01 too low", "calibrated"
    assert medians[low, 33] > 2 * medians[low, 2049]
    assert medians[true, 33] > 2 * medians[true, 2049]
    assert medians[low, 2049] > 0.005


# ---------------------------------------------------------------- what the page says of its tables


def rows(name):
    """The cells of a table of the page, without its heads."""
    lines = block(PAGE.read_text("utf-8"), name).splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_pictures_of_the_page_are_there():
    pictures = re.findall(r"!\[[^\]]+\]\(([\w.-]+)\)", PAGE.read_text("utf-8"))
    assert len(pictures) == 6
    assert all((PAGE.parent / name).is_file() for name in pictures)


def test_hjty24_thresholds_beside_those_that_the_authors_print():
    found = rows("thresholds")
    printed = [row for row in found if row[-1] != "–"]
    assert len(printed) == 18 == sum(map(len, PRINTED.values()))
    apart = [row for row in printed if row[-1] != row[-2]]
    assert len(apart) == 1
    ours, theirs = (THRESHOLDS.index(float(cell)) for cell in apart[0][-2:])
    assert abs(ours - theirs) == 1


@pytest.mark.parametrize(
    ("values", "most"), [([0.05, 0.05, 0.0], 0.1), ([0.05, 0.0], 0.0), ([0.0349] * 3, 0.05)]
)
def test_the_threshold_that_more_than_half_reach(values, most):
    assert reached(values, 0.5) == most


def test_hjty24_the_number_of_samples_that_the_bounds_need():
    assert f"needs {oc.samples_to_test(far=0.01):,} samples" in re.sub(
        "bounds need", "needs", " ".join(PAGE.read_text("utf-8").split())
    )


def test_bhnu26_what_is_said_of_the_tables():
    deviations = {row[0]: [float(cell.split("±")[1]) for cell in row[1:]] for row in rows("testable")}
    values = {row[0]: [float(cell.split("±")[0]) for cell in row[1:]] for row in rows("testable")}
    least = deviations.pop("scdl")
    for i, own in enumerate(least):
        others = [column[i] for name, column in deviations.items() if (i, name) != (3, "smooth_ece")]
        assert own < min(others)
    assert all(abs(value - 0.14) < 0.03 for value in values["cdl"][:3])
    predictors = {row[0]: list(map(float, row[1:])) for row in rows("correlated")}
    fitted, flipped = predictors["fitted"], predictors["flipped"]
    assert fitted[2] < 0.5 < 0.75 < min(fitted[:2] + fitted[3:])
    assert min(flipped) > 0.9


# ---------------------------------------------------------------- files of Python beside the page


def test_bn24_synthetic_samples_are_the_authors():
    """SmoothECE of the notebook's samples, to the digits that were found with them before, and 1/512 of what its own
    program prints for them, 0.0458984375.
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


def test_bn24_flares_are_read_from_a_file_or_it_is_said_where_they_are(tmp_path):
    module = script("bn24")
    with pytest.raises(
        InvalidData, match=r"none\.csv: there is no such file; expected data/SF\.FC\.C1\.csv of https://"
    ):
        module.flares(tmp_path / "none.csv")
    path = tmp_path / "flares.csv"
    path.write_text(
        '"VALID_DATE","DAFFS","NOAA","rlz.C1"\n2016-01-01,0.75,NA,1\n2016-01-02,NA,0.1,0\n', "utf-8"
    )
    assert [values.tolist() for values in module.flares(path)] == [[0.75], [1.0]]
    with pytest.raises(InvalidData, match=r"no columns 'ASAP' and 'rlz\.C1'"):
        module.flares(path, "ASAP")


def test_bhnu26_the_flipped_predictor_says_of_x_what_the_fitted_one_says_of_minus_x(seed):
    """A slope and an intercept that are fitted to 10,000 samples are off by 0.3 with a probability far below 1e-9."""
    pytest.importorskip("sklearn")
    module = script("bhnu26")
    predictors = module.fitted(1.0, seed)
    assert predictors["fitted"].slope == pytest.approx(module.SLOPE, abs=0.6)
    assert predictors["fitted"].intercept == pytest.approx(0.0, abs=0.3)
    assert predictors["flipped"].slope == -predictors["fitted"].slope
    gammas = {name: module.population(1.0, predictor) for name, predictor in predictors.items()}
    assert gammas["flipped"].predictions == pytest.approx(gammas["fitted"].predictions, abs=1e-12)
    assert oc.measures.cdl(gammas["fitted"]) < 0.01 < 0.1 < oc.measures.cdl(gammas["flipped"])


@pytest.mark.slow
def test_bhnu26_comes_out_in_a_small_size(full, seed):
    """Correlations of 25 values: that of the regret with a measure that goes with it is far above 0.5."""
    pytest.importorskip("sklearn")
    module = script("bhnu26")
    found = module.correlations(module.actionability(betas=100 if full else 25, seed=seed))
    assert min(found["flipped"].values()) > 0.8
    assert found["fitted"]["cutoff_ce"] > 0.5
    assert found["fitted"]["binned_ece(bins=15)"] > 0.5
    played = module.on_samples(samples=(100, 1000), runs=20, seed=seed)
    who = played.forecasters[0]
    scdl, cdl = (played.curve(name, who) for name in ("scdl", "cdl"))
    assert (scdl.totals / scdl.rounds[:, None]).mean(axis=1)[1] < 0.02
    assert (cdl.totals / cdl.rounds[:, None]).mean(axis=1)[1] > 0.1
