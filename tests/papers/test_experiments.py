"""The papers' experiments come out, in a small size: what is said of them in scenarios/papers is seen.

What is compared differs by many standard deviations of the means of 10 runs, which are at most 0.003 for n = 10,000.
"""

import re
import sys
from pathlib import Path

import numpy as np
import pytest

import onlinecal as oc
from onlinecal.core.errors import InvalidData
from onlinecal.engine.game import Game
from onlinecal.measures import MEASURES
from onlinecal.scenario import load
from tests.experiments import MEAN_OF_TEN, PAGE, PRINTED, PROGRAMS, THRESHOLDS, means_of_ten, script
from tests.pages import block

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


def test_hjty24_errors_come_down_to_the_shift(seed):
    """Of the shifted forecasts 15 % of the smooth calibration errors are below 0.005 at n = 2049 (seen in 4,000 runs).
    So the median of 60 is so with probability below 1e-8, by Chernoff's bound. Other medians differ by factors of four.
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


@pytest.mark.slow
def test_hjty24_the_mean_of_ten_sets_of_the_authors_is_one_of_ours(seed):
    """Theirs would be outside of the middle 98 % of ours once in 50 times, had it the same law. By the test's seed: of
    40,000 means 9.7 % were below it, and with 9 % fewer than 10 of 1,000 are with a probability below 1e-12, by
    Chernoff's bound. Half of it is outside: fewer than 1 mean in 1,000 is below that. With that share 10 of 1,000 are
    with a probability below 1e-6. Nor is it a mean of sets with a shift by 0.04: none of 50 is as low, but with
    probability below 1e-8. That is Bernstein's inequality for the mean residual of 10,240 samples, 0.0392 in
    expectation.
    """
    rng = np.random.default_rng(seed)
    ours = means_of_ten(0.01, 1000, rng)
    assert 0.01 <= (ours < MEAN_OF_TEN).mean() <= 0.99
    assert (ours < MEAN_OF_TEN / 2).mean() < 0.01
    assert means_of_ten(0.04, 50, rng).min() > MEAN_OF_TEN


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


#: kind of file → the option of its loader, lines of a file, what is read of them
FILES = {
    "network": ("network", "true_label,pred_label,confidence\n0,394,0.25\n7,7,0.75\n", [[0.25, 0.75], [0.0, 1.0]]),
    "flares": (
        "flares",
        '"VALID_DATE","DAFFS","NOAA","rlz.C1"\n2016-01-01,0.75,NA,1\n2016-01-02,NA,0.1,0\n2016-01-03,-0.01,0,0\n',
        [[0.75], [1.0]],
    ),
    "rain": (
        "rain",
        "yyyy mm dd obs(mm) p24_cat0 p48_cat0\n2003 1 1 0.2 0.7 0.9\n2003  1  2  0.3  0.9  1\n"
        "2003 1 3 999.9 0.7 0.8\n2003 1 4 -1 0.7 0.8\n2003 1 5 2 -9.9 0.8\n2003 1 6 2 NA 0.8\n\n2003 1 7 9 0 0\n",
        [[0.3, 0.1, 1.0], [0.0, 1.0, 1.0]],
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", FILES)
def test_bn24_recorded_forecasts_are_read_from_a_file_or_it_is_said_where_they_are(
    kind, tmp_path, capsys, monkeypatch
):
    """Values that stand for none are left out; 1 − 0.7 is 0.3, to the last bit."""
    module = script("bn24")
    name, text, found = FILES[kind]
    load, path = getattr(module, name), tmp_path / "some.txt"
    source = re.escape(module.SOURCES[kind])
    monkeypatch.setattr(sys, "argv", ["bn24.py", f"--{name}", str(path)])
    with pytest.raises(SystemExit, match=r"\A2\Z"):  # the script says it in one line
        module.main()
    assert re.fullmatch(
        rf"error: .*some\.txt: there is no such file; expected {source}.*\n", capsys.readouterr().err
    )
    path.write_text(text, "utf-8")
    assert [values.tolist() for values in load(path)] == found
    other = next(text for key, (_, text, _) in FILES.items() if key != kind)
    for refused, why in (
        ("", "no column"),
        (other, "no column"),
        (text + "9,x\n9 x\n", "a line has no number in"),
    ):
        path.write_text(refused, "utf-8")
        with pytest.raises(InvalidData, match=rf"some\.txt: {why} .*; expected {source}"):
            load(path)


def test_bn24_other_columns_of_a_file_can_be_read(tmp_path):
    module = script("bn24")
    path = tmp_path / "some.txt"
    path.write_text(FILES["flares"][1], "utf-8")
    assert [values.tolist() for values in module.flares(path, "NOAA")] == [[0.1, 0.0], [0.0, 0.0]]
    with pytest.raises(InvalidData, match="no column 'ASAP'; expected"):
        module.flares(path, "ASAP")
    path.write_text(FILES["rain"][1], "utf-8")
    assert [v.tolist() for v in module.rain(path, 48)] == [
        [0.1, 0.0, 0.2, 0.2, 1.0],
        [0.0, 1.0, 1.0, 1.0, 1.0],
    ]


def rain(hours):
    """The forecasts of the page's table, that many hours before, and whether it rained."""
    counts = [[int(cell.rstrip(" %")) for cell in row] for row in rows("rain")]
    column = {24: 1, 48: 3}[hours]
    p = np.repeat([row[0] / 100 for row in counts], [row[column] for row in counts])
    y = [[1] * row[column + 1] + [0] * (row[column] - row[column + 1]) for row in counts]
    return p, np.concatenate(y)


@pytest.mark.parametrize("hours", [24, 48])
def test_bn24_numbers_of_rain_follow_from_the_table_of_days(hours):
    """All but the number of bins, for which the order of days matters; and what is said of both tables."""
    module = script("bn24")
    p, y = rain(hours)
    said = {row[0]: row[1:] for row in rows("recorded")}[f"rain, {hours} hours"]
    found = {name: module.words(value) for name, value in module.numbers(p, y).items()}
    shown = dict(zip(found, said, strict=True))
    assert shown["bins"] == "10"
    assert shown["binned ECE"] == shown["of 10 bins"]
    del found["bins"], found["binned ECE"], shown["bins"], shown["binned ECE"]
    assert shown == found
    gamma = oc.JointDistribution.from_samples(p, y)
    text = " ".join(PAGE.read_text("utf-8").split())
    assert gamma.levels == 11
    assert f"{oc.measures.ece(gamma):.4f} ({hours} hours)" in text
    assert (gamma.means < gamma.predictions)[1:].all()
    bias = float(p.mean() - y.mean())
    assert oc.measures.smooth_ece(gamma) == pytest.approx(bias, abs=1e-9)
    assert oc.measures.smooth_ce(gamma) == pytest.approx(bias, rel=0.01)


def test_bn24_what_the_authors_package_says_of_recorded_forecasts():
    """More than the ECE, which SmoothECE does not exceed, for those of exactly 0 and 1 count half there."""
    relplot = pytest.importorskip("relplot")
    for hours, value in ((24, 0.1444), (48, 0.1318)):
        p, y = rain(hours)
        assert relplot.smECE(p, y) == pytest.approx(value, abs=5e-5)
        assert value > oc.measures.ece(oc.JointDistribution.from_samples(p, y))
        half = np.where((p == 0.0) | (p == 1.0), 0.5, 1.0)
        weighted = oc.JointDistribution.from_samples(p, y, weights=half)
        assert oc.measures.smooth_ece(weighted) == pytest.approx(value, abs=5e-4)


def test_bhnu26_the_flipped_predictor_is_that_of_flipped_labels(seed):
    """It says 1 − f, also where f has an intercept, which is −1.2 at β = 2. The errors of slope and intercept from
    10,000 samples had deviations of 0.07 and 0.035 (40 seeds). Beyond 0.6 and 0.3 they are once in 10⁸ times.
    """
    pytest.importorskip("sklearn")
    module = script("bhnu26")
    for beta in (1.0, 2.0):
        predictors = module.fitted(beta, seed)
        gammas = {name: module.population(beta, predictor) for name, predictor in predictors.items()}
        f, flipped = (gammas[name].predictions for name in module.PREDICTORS)
        assert flipped == pytest.approx((1.0 - f)[::-1], abs=1e-12)
        assert oc.measures.cdl(gammas["fitted"]) < 0.01 < 0.1 < oc.measures.cdl(gammas["flipped"])
        # Where it rises the event becomes rarer: the best swap falls.
        assert (np.diff(gammas["flipped"].means) < 0).all()
        if beta == 1.0:
            assert predictors["fitted"].slope == pytest.approx(module.SLOPE, abs=0.6)
            assert predictors["fitted"].intercept == pytest.approx(0.0, abs=0.3)
        else:
            assert predictors["fitted"].intercept == pytest.approx(-1.2, abs=0.3)
            assert np.abs(flipped - f).max() > 0.5


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


@pytest.mark.slow
def test_bhnu26_comes_out_in_a_small_size(full, seed):
    """Of the fitted predictor chance decides much, by the samples of the regressions: its regrets are below 0.002.

    In 40 seeds of 25 even β its correlations had mean 0.94 and standard deviation 0.023 for binned errors, 0.86 and
    0.074 for cutoff calibration. The thresholds are 8 of them or more away.
    """
    pytest.importorskip("sklearn")
    module = script("bhnu26")
    found = module.correlations(module.actionability(np.linspace(0.25, 4.0, 100 if full else 25), seed))
    assert found["fitted"]["cutoff_ce"] > 0.2
    assert found["fitted"]["binned_ece(bins=15)"] > 0.6
    assert min(found["flipped"][name] for name in ("cdl", "binned_ece(bins=15)")) > 0.95
    played = module.on_samples(samples=(100, 1000), runs=20, seed=seed)
    who = played.forecasters[0]
    scdl, cdl = (played.curve(name, who) for name in ("scdl", "cdl"))
    assert (scdl.totals / scdl.rounds[:, None]).mean(axis=1)[1] < 0.02
    assert (cdl.totals / cdl.rounds[:, None]).mean(axis=1)[1] > 0.1
