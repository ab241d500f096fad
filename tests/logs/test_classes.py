"""Logs of K classes: the table against the measures, p-values, files and the command; classes as binary events."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtr
from typer.testing import CliRunner

import onlinecal as oc
from onlinecal.cli import app
from onlinecal.core.errors import InvalidData, InvalidParameter
from onlinecal.logs import class_draws
from onlinecal.logs import classes as module
from onlinecal.logs.classes import evaluate_classes
from onlinecal.logs.inference import holm
from onlinecal.measures import classes
from onlinecal.measures.base import ends
from onlinecal.report import verdict
from tests.coverage_intervals import autoregressive
from tests.logs.made import flat, written

NAMES = ["cat", "dog", "bird"]


def made(n, k=3, seed=0, steps=10, shift=0.0):
    """Forecasts in tenths, and outcomes drawn as forecast, but that some become the first class."""
    rng = np.random.default_rng(seed)
    p = rng.multinomial(steps, rng.dirichlet(np.ones(k), n)) / steps
    y = np.minimum((rng.random(n)[:, None] > p.cumsum(axis=1)).sum(axis=1), k - 1)
    y[rng.random(n) < shift] = 0
    return p, y


@pytest.fixture
def log(tmp_path):
    p, y = made(300, shift=0.3)
    frame = pd.DataFrame(p, columns=[f"p_{name}" for name in NAMES]).assign(label=np.array(NAMES)[y])
    frame.to_csv(tmp_path / "log.csv", index=False)
    return tmp_path / "log.csv"


def run(*words):
    return CliRunner().invoke(app, ["measure", *map(str, words)])


def read(*words):
    """What the command prints as JSON."""
    return json.loads(run(*words, "--json").stdout)


@pytest.mark.parametrize(("n", "k"), [(1, 2), (40, 3), (300, 3), (60, 13)])
def test_the_table_has_the_measures_of_gamma_and_of_its_events(n, k):
    p, y = made(n, k)
    gamma, found = oc.ClassDistribution.from_samples(p, y), evaluate_classes(p, y, draws=99)
    got, few = {row.name: row.value for row in found.rows}, gamma.levels <= 100
    each = classes.classwise(gamma)
    want = {
        "ece": classes.ece(gamma), "classwise ece, largest": each.max, "classwise ece, mean": each.mean,
        "toplabel ece": classes.toplabel(gamma), "kernel_ce": classes.kernel_ce(gamma),
        "brier": classes.brier(gamma), "log_loss": classes.log_loss(gamma),
    }  # fmt: skip
    want |= {"setwise ece": classes.setwise(gamma).value} if k <= 12 else {}
    want |= {name: getattr(classes, name)(gamma) for name in ("smooth_ce", "cdl", "u_calibration") if few}
    bracketed = {} if few else {"smooth_ce_bracket", "cdl_bracket", "u_calibration_bracket"}
    assert set(got) == {*want, *bracketed}
    for name, value in want.items():
        assert got[name] == pytest.approx(value, abs=1e-12), name
    tested = {name for name in want if name.endswith("ece") or name.startswith(("classwise", "kernel"))}
    assert {row.name for row in found.rows if row.p_value is not None} == tested
    low, high = next(row.interval for row in found.rows if row.name == "brier")
    assert low <= got["brier"] <= high
    assert high - low < 3 * n**-0.5
    for one in found.classes:
        event = gamma.toplabel() if one.label is None else gamma.classwise(one.label)
        assert one.cutoff_ce == pytest.approx(oc.measures.cutoff_ce(event), abs=1e-12)
        assert one.smooth_ce == oc.measures.smooth_ce(event)
        there = (event.predictions >= one.lowest) & (event.predictions <= one.highest)
        assert abs(event.residuals[there].sum()) == pytest.approx(one.cutoff_ce, abs=1e-12)
        assert one.bias * event.mass[there].sum() == pytest.approx(event.residuals[there].sum(), abs=1e-12)
        assert (one.share, one.p_value <= 1) == (event.base_rate, True)
        assert one.adjusted >= one.p_value or k == 2
    assert evaluate_classes(p[:2], y[:2]).draws == 200
    assert found.by_class().loc["top label", "cutoff_ce"] == found.classes[-1].cutoff_ce
    assert found.table().loc["ece", "value"] == got["ece"]
    assert "top label" in str(found)


def test_no_draws_no_intervals_and_samples_as_gamma():
    p, y = made(50)
    found = evaluate_classes(p, y, draws=0)
    assert {row.p_value for row in found.rows} == {one.interval for one in found.classes} == {None}
    assert found.p_value is None
    gamma = oc.ClassDistribution.from_samples(p, y)
    one, two = evaluate_classes(p, y, draws=19, seed=3), evaluate_classes(gamma, draws=19, seed=3)
    assert (one.rows, one.classes) == (two.rows, two.classes)


def test_p_values_are_those_of_calibrated_draws():
    """Of each event by its cutoff error. Of all at once by the largest of these over its standard deviation."""
    p, y = made(80, steps=4, shift=0.1)
    found, gamma = evaluate_classes(p, y, draws=39, seed=3), oc.ClassDistribution.from_samples(p, y)
    v = np.column_stack((gamma.predictions, gamma.predictions.max(axis=1)))

    def cutoff(tallies):
        events = np.column_stack((tallies, tallies[np.arange(len(v)), gamma.top]))
        each = (
            oc.JointDistribution.from_counts(a, gamma.counts, b) for a, b in zip(v.T, events.T, strict=True)
        )
        return [oc.measures.cutoff_ce(one) for one in each]

    def ece(tallies):
        return 0.5 * np.abs(tallies - gamma.counts[:, None] * gamma.predictions).sum() / gamma.weight

    rng, many = np.random.default_rng([3, 5]), gamma.counts.astype(int)
    draws = [rng.multinomial(many, gamma.predictions) for _ in range(39)]
    drawn, own = np.array([cutoff(one) for one in draws]), np.array(cutoff(gamma.tallies))
    scale = np.sqrt((gamma.counts[:, None] * v * (1 - v)).sum(axis=0)) / gamma.weight
    most = (drawn / scale).max(axis=1)
    for j, one in enumerate(found.classes):
        assert one.p_value == (1 + (drawn[:, j] >= own[j] - 1e-12).sum()) / 40
        assert one.adjusted == (1 + (most >= own[j] / scale[j] - 1e-12).sum()) / 40
    values, row = np.array([ece(one) for one in draws]), found.rows[0]
    assert (row.name, row.value) == ("ece", pytest.approx(ece(gamma.tallies)))
    assert row.if_calibrated == pytest.approx(values.mean())
    assert row.p_value == (1 + (values >= row.value - 1e-12).sum()) / 40


def test_the_error_of_a_rare_class_is_found_beside_the_noise_of_frequent_ones():
    """By chance it happens so often with 1e-9; among 199 draws its size is reached by the others but with 1e-3."""
    p, y = np.tile([0.49, 0.49, 0.02], (400, 1)), np.repeat([0, 1, 2], [185, 185, 30])
    found = evaluate_classes(p, y, draws=199)
    assert (found.worst.label, found.classes[2].adjusted) == (2, 1 / 200)
    assert [row[0] for row in found.cells(1)[1]] == ["class", "2", "top label"]
    assert found.classes[0].adjusted > 0.05


@pytest.mark.parametrize(("few", "said"), [(50, False), (51, True)])
def test_levels_of_few_rows_are_cautioned_against_where_they_have_more_than_a_twentieth(few, said):
    p = np.repeat([[0.2, 0.3, 0.5], [0.3, 0.3, 0.4], [0.4, 0.3, 0.3]], [1000 - few, 25, few - 25], axis=0)
    cautions = evaluate_classes(p, np.arange(1000) % 3, draws=0).cautions
    assert any("are on levels with fewer than 30" in each for each in cautions) is said


def test_events_with_too_few_times_are_cautioned_against():
    """Outcomes that are alike for long: so are errors of both classes, and those of the top label if it stays."""
    y = np.repeat([0, 1], 30)
    for p, said in (
        ([[0.6, 0.4], [0.4, 0.6]], "no p-values, and some intervals lack: errors near each other in time are alike"),
        ([[0.6, 0.4], [0.6, 0.4]], "no intervals and p-values: errors near each other in time are alike"),
    ):  # fmt: skip
        p = np.tile(p, (30, 1))
        (one,) = evaluate_classes(p, y, in_time=True, draws=9).cautions
        assert one.startswith(said)
        assert evaluate_classes(p, y, draws=9).cautions == ()
    # Clusters are no blocks of times, and neither are rows that do not depend.
    assert evaluate_classes(p, y, clusters=np.arange(60) // 2, draws=9).cautions == ()
    assert evaluate_classes(p, np.arange(60) % 2, in_time=True, draws=9).cautions == ()


@pytest.mark.parametrize(("classes", "said"), [(4, "'1', '2', '3'"), (5, "'1', '2', '3', …")])
def test_three_classes_that_never_happen_are_named(classes, said):
    cautions = evaluate_classes(np.full((40, classes), 1 / classes), [0] * 40, draws=0).cautions
    assert f"in no row happens: {said}" in cautions


def test_what_takes_long_is_bracketed_or_left_out_from_a_size_on(monkeypatch):
    """One level more than programs are solved for, and one level times sets more than are looked at."""
    p = np.repeat([[0.2, 0.3, 0.5], [0.1, 0.3, 0.6], [0.5, 0.3, 0.2]], 10, axis=0)
    for name, most, lacks, instead in (
        ("PROGRAMS", 3, "cdl", "cdl_bracket"), ("SETS", 3 * 3, "setwise ece", None)
    ):  # fmt: skip
        for limit in (most, most - 1):
            with monkeypatch.context() as few:
                few.setattr(module, name, limit)
                few.setattr(class_draws, "DRAWN_SETS", 0)
                found = evaluate_classes(p, np.arange(30) % 3, draws=0)
            names = {row.name for row in found.rows}
            assert (lacks in names, instead in names) == (limit == most, instead is not None and limit < most)
            said = any("sets of 3 classes are not measured" in each for each in found.cautions)
            assert said is (name == "SETS" and limit < most)


@pytest.mark.parametrize(
    ("drawn", "most", "w", "name", "tested"),
    [
        (3, 3, None, "kernel_ce", True), (2, 3, None, "kernel_ce", False), (2, 2, None, "kernel_ce_squared", False),
        (2, 2, 0.5, None, False),
    ],
)  # fmt: skip
def test_pairs_of_levels_are_left_out_of_draws_and_then_of_what_happened(
    monkeypatch, drawn, most, w, name, tested
):
    """From a number of levels on, here three. The same of sets of classes, of which there are three, too."""
    monkeypatch.setattr(class_draws, "PAIRS", drawn)
    monkeypatch.setattr(class_draws, "DRAWN_SETS", 3 * drawn)
    monkeypatch.setattr(module, "MOST_PAIRS", most)
    monkeypatch.setattr(module, "BLOCK", 30)
    p = np.repeat([[0.2, 0.3, 0.5], [0.1, 0.3, 0.6], [0.5, 0.3, 0.2]], 10, axis=0)
    weights = None if w is None else np.full(30, w) + np.arange(30)
    rows = {row.name: row for row in evaluate_classes(p, np.arange(30) % 3, weights=weights, draws=9).rows}
    assert [each for each in rows if each.startswith("kernel")] == [name] * (name is not None)
    assert (rows["setwise ece"].p_value is not None) is tested
    assert name is None or (rows[name].p_value is not None) is tested


def test_sets_of_twelve_classes_are_looked_at():
    for k, many in ((12, (2**11 - 1) * 40), (13, np.inf)):
        gamma = oc.ClassDistribution.from_samples(
            np.random.default_rng(k).dirichlet(np.ones(k), 40), np.zeros(40)
        )
        assert class_draws.sets_of(gamma) == many


EDGES = {
    "one class happens": (np.full((40, 3), 1 / 3), [1] * 40, "in no row happens: '0', '2'"),
    "zeros in v and q": ([[1, 0, 0], [0, 1, 0]] * 20, [0, 2] * 20, "log_loss is infinite: probability 0 in 20 rows"),
    "certain and right": ([[1, 0, 0], [0, 1, 0], [0, 0, 1]] * 20, [0, 1, 2] * 20, ""),
    "a hundred classes": (np.full((200, 100), 0.01), np.arange(200) % 100, "sets of 100 classes are not measured"),
    "the last bit": ([[0.3, 0.7], [0.1 + 0.2, 0.7]] * 40, [0, 1, 1, 0, 1, 1, 1, 0, 1, 1] * 8, ""),
}  # fmt: skip


@pytest.mark.parametrize("name", EDGES)
def test_logs_at_the_edges(name):
    p, y, said = EDGES[name]
    found = evaluate_classes(p, y, draws=39)
    assert said in " ".join(found.cautions)
    assert len(found.classes) == np.shape(p)[1] + 1
    assert all(0 < one.p_value <= 1 for one in found.classes)
    assert (found.p_value <= 0.05) == (name in ("one class happens", "zeros in v and q"))


@pytest.mark.parametrize(
    ("columns", "options"),
    [
        ("p_*", ()), ("p_cat,p_dog,p_bird", ("--outcome", "label")), ("p_bird, p_cat, p_dog", ()),
        ("p_cat,p_dog,p_bird", ("--labels", "cat,dog,bird")),
    ],
)  # fmt: skip
def test_the_command_has_the_numbers_of_python(log, columns, options):
    found, frame = read(log, "--classes", columns, "--draws", 39, *options), pd.read_csv(log)
    order = [name.strip() for name in columns.split(",")] if "*" not in columns else list(frame.columns[:3])
    labels = [name.removeprefix("p_") for name in order]
    want = evaluate_classes(frame[order].to_numpy(), frame["label"].to_numpy(), labels=labels, draws=39)
    assert found["labels"] == labels
    for row, one in zip(found["measures"], want.rows, strict=True):
        low = ends(one.value)[0]
        assert (row["name"], row["lower"]) == (one.name, low if np.isfinite(low) else None)
        assert row["p_value"] == one.p_value
    for row, one in zip(found["classes"], want.classes, strict=True):
        numbers = row["label"], row["smooth_ce"], tuple(row["interval"])
        assert numbers == (one.label, one.smooth_ce, one.interval)
    assert found["verdict"]["calibration"] == "refuted"
    assert re.search(r"probabilities of 'cat' from .* are too low by", found["verdict"]["words"])


def test_pages_and_pictures_are_written_and_the_next_command_runs(log, monkeypatch):
    monkeypatch.chdir(log.parent)
    said = flat(run("log.csv", "--classes", "p_*", "--draws", 39).stdout)
    command = re.search(r"Next: look at all classes: onlinecal measure (.*)$", said)[1]
    frame = pd.read_csv("log.csv")
    frame[frame.columns[:3]] *= 100
    frame.to_csv("hundred.csv", index=False)
    said = flat(run("hundred.csv", "--classes", "p_*", "--percent", "--draws", 39).stdout)
    assert "--classes 'p_*' --percent -o hundred_classes.png" in said
    assert verdict.command("measure", "standard input", {}) == "onlinecal measure -"
    assert run(*command.replace("'", "").split()).exit_code == 0
    assert (log.parent / "log_classes.png").read_bytes()[:4] == b"\x89PNG"
    assert run("log.csv", "--classes", "p_*", "--draws", 39, "-o", "a.html").exit_code == 0
    page = (log.parent / "a.html").read_text("utf-8")
    assert page.count("data:image/svg+xml") == 2
    assert "u_calibration" in page


def test_weights_and_clusters_are_those_of_each_event(log):
    """Intervals are those of `evaluate`, and rows of weight 0 are none."""
    p, y = made(300, shift=0.3)
    rng, top = np.random.default_rng(0), p.argmax(axis=1)
    w, c = rng.random(300) * (rng.random(300) < 0.9), np.arange(300) // 6
    pd.read_csv(log).assign(w=w, c=c).to_csv(log, index=False)
    gamma = oc.ClassDistribution.from_samples(p, y, weights=w)
    for asked in ({"weights": w}, {"clusters": c}, {"weights": w, "clusters": c}):
        options = [word for name in asked for word in (f"--{name[:-1]}", name[0])]
        found = evaluate_classes(p, y, draws=39, **asked)
        for j, one in enumerate(found.classes):
            event = (p[:, j], y == j) if j < 3 else (p.max(axis=1), y == top)
            (want,) = oc.evaluate(*event, measures=["smooth_ce"], bootstrap=39, **asked).rows
            assert (one.smooth_ce, *one.interval) == pytest.approx((want.value, *want.interval), abs=1e-12)
            assert j > 0 or one.p_value == one.adjusted == 1 / 40
            assert one.p_value <= one.adjusted
        rows = {row.name: row for row in found.rows}
        assert (rows["ece"].p_value is None) == ("clusters" in asked)
        if "weights" in asked:
            assert rows["ece"].value == pytest.approx(classes.ece(gamma), abs=1e-15)
            assert found.classes[0].share == pytest.approx(gamma.base_rates[0], abs=1e-15)
        low, high = rows["brier"].interval
        assert low < rows["brier"].value < high
        done = read(log, "--classes", "p_*", "--draws", 39, *options)["classes"]
        for each, one in zip(done, found.classes, strict=True):
            assert each["interval"] == pytest.approx(one.interval)
    # A cluster without weight is none.
    w[:60] = 0.0
    both = [evaluate_classes(p[i:], y[i:], weights=w[i:], clusters=c[i:], draws=39).rows[-2] for i in (0, 60)]
    assert both[0] == both[1]
    assert 0 < both[0].interval[0] < both[0].interval[1] < 1
    # What cautions count are rows.
    heavy = evaluate_classes(p, y, weights=np.full(300, 100.0), draws=0)
    assert heavy.cautions == evaluate_classes(p, y, draws=0).cautions
    assert len(heavy.cautions) == 2
    few = evaluate_classes(p, y, clusters=c // 10, draws=39)
    found = {few.p_value, *(one.interval for one in few.classes), *(one.p_value for one in few.classes)}
    assert found == {None}
    assert "no intervals and p-values: 5 clusters; expected at least 15" in few.cautions
    pd.read_csv(log).assign(c=c // 10).to_csv(log, index=False)
    said = flat(run(log, "--classes", "p_*", "--cluster", "c").stdout)
    assert "There are too few clusters or independent times to test" in said


def test_groups_are_measured_by_themselves(log):
    """As the rows of each alone are, and corrected for their number; a group without weight is none."""
    site, w, c = np.arange(300) // 100, np.random.default_rng(0).random(300), np.arange(300) // 5
    w[site == 2] = 0.0
    pd.read_csv(log).assign(site=site, w=w, c=c).to_csv(log, index=False)
    p, y = made(300, shift=0.3)
    for asked, options in (({}, ()), ({"weights": w, "clusters": c}, ("--weight", "w", "--cluster", "c"))):
        found = read(log, "--classes", "p_*", "--by", "site", "--draws", 39, *options)["groups"]
        assert [each["name"] for each in found] == ["0", "1", "2"][: 3 - len(asked) // 2]
        for k, each in enumerate(found):
            there = site == k
            mine = {name: values[there] for name, values in asked.items()}
            alone = evaluate_classes(p[there], np.array(NAMES)[y[there]], labels=NAMES, draws=39, **mine)
            values = alone.table()["value"]
            assert (each["ece"], each["brier"]) == pytest.approx((values["ece"], values["brier"]), abs=1e-12)
            assert (each["p_value"], each["worst"]) == (alone.p_value, alone.worst.name)
            assert each["bias"] == pytest.approx(alone.worst.bias, abs=1e-12)
        p_values = [each["p_value"] for each in found]
        assert [each["adjusted"] for each in found] == holm(p_values)
    said = run(log, "--classes", "p_*", "--by", "site", "--draws", 39).stdout
    assert re.search(r"By site\n.*p \(Holm\) +y − forecast\n", said)
    assert "--by site -o log_classes.png" in flat(said)


def test_blocks_in_time_are_those_of_each_class_by_itself(tmp_path, seed):
    """Of 1,500 rows of AR(0.9) all errors are alike in time. Of 60 rows, 95 of 100 logs have no p-value.

    Of 10 such logs, fewer than 5 have none in under 1e-5 of cases.
    """
    generator = np.random.default_rng([seed, 105])
    p = generator.dirichlet(np.ones(3), 1500).round(3)
    p[:, 2] = 1.0 - p[:, 0] - p[:, 1]
    uniform = ndtr(autoregressive(generator, 1500, 0.9))
    y = np.minimum((uniform[:, None] > p.cumsum(axis=1)).sum(axis=1), 2)
    frame = pd.DataFrame(p, columns=NAMES).assign(label=np.array(NAMES)[y], day=np.arange(1500))
    order = generator.permutation(1500)
    frame.loc[order].to_csv(tmp_path / "a.csv", index=False)
    asked = "--outcome", "label", "--time", "day", "--sort", "--draws", 39
    each = [word for name in NAMES for word in ("-f", name)]
    both = [
        read(tmp_path / "a.csv", "--classes", *columns, *asked)
        for columns in (("cat,dog,bird",), ("-m", "smooth_ce", *each))
    ]
    for one, other in zip(both[0]["classes"], both[1]["forecasts"], strict=False):
        assert one["interval"] == pytest.approx(other["measures"][0]["interval"], abs=1e-12)
    assert "errors near each other in time are alike" in " ".join(both[0]["cautions"])
    assert all(one["p_value"] is not None for one in both[0]["classes"])
    alone = evaluate_classes(p, y, draws=39)
    assert alone.classes[0].interval[1] < both[0]["classes"][0]["interval"][1]
    few = [evaluate_classes(p[i : i + 60], y[i : i + 60], in_time=True, draws=9) for i in range(0, 1500, 150)]
    without = [" ".join(one.cautions) for one in few if one.p_value is None]
    assert len(without) >= 5
    assert all("no p-values" in said or "no intervals and p-values" in said for said in without)


def test_questions_are_clusters_with_one_label_each(tmp_path):
    p, y = made(60, shift=0.3)
    frame = pd.DataFrame(p, columns=NAMES).assign(label=np.array(NAMES)[y], q=np.arange(60))
    four = pd.concat([frame] * 4, ignore_index=True)
    four.to_csv(tmp_path / "a.csv", index=False)
    asked = tmp_path / "a.csv", "--classes", "cat,dog,bird", "--outcome", "label", "--draws", 39
    key, cluster, alone = (
        run(*asked, "--json", option, "q").stdout for option in ("--id", "--cluster", "--by")
    )
    assert json.loads(key)["classes"] == json.loads(cluster)["classes"]
    assert json.loads(key)["classes"][0]["interval"] != json.loads(alone)["classes"][0]["interval"]
    assert run(*asked, "--json", "--id", "none").exit_code == 0
    four.loc[70, "label"] = "bird" if four.loc[10, "label"] != "bird" else "cat"
    four.to_csv(tmp_path / "a.csv", index=False)
    for columns in ("cat,dog,bird", None):
        done = run(*asked[:2], *[columns] * (columns is not None), *asked[3:], "--id", "q")
        assert re.search(
            r"line 72: question '10' has the outcome '(\w+)', and '(\w+)' in line 12", done.stderr
        )


@pytest.mark.parametrize("clusters", [None, np.arange(90) // 3, np.arange(90) % 3 // 2 + np.arange(90) // 45])
def test_the_interval_of_brier_is_the_binary_one_of_two_classes(clusters):
    """Also of few clusters, which have none."""
    rng = np.random.default_rng(0)
    p, y, w = rng.random(90), rng.random(90) < 0.3, rng.random(90)
    asked = {"weights": w, "clusters": clusters}
    rows = evaluate_classes(np.stack([1 - p, p], axis=1), y.astype(int), draws=99, **asked).rows
    (want,) = oc.evaluate(p, y, measures=["brier"], bootstrap=99, **asked).rows
    (found,) = (row for row in rows if row.name == "brier")
    assert (found.interval is None) == (want.interval is None)
    assert found.interval is None or found.interval == pytest.approx(want.interval, abs=1e-9)


def test_the_interval_of_brier_has_blocks_where_losses_are_alike_in_time():
    """Weights that rise make none of losses that alternate. Of runs of four losses the interval is wider."""
    p, w = np.tile([0.6, 0.3, 0.1], (2000, 1)), 1.0 + np.arange(2000)

    def intervals(y):
        both = (evaluate_classes(p, y, weights=w, in_time=in_time, draws=99) for in_time in (False, True))
        return [next(row.interval for row in found.rows if row.name == "brier") for found in both]

    rows, times = intervals(np.arange(2000) % 2)
    assert times == rows
    rows, times = intervals(np.repeat(np.random.default_rng(0).integers(2, size=500), 4))
    assert times[0] < rows[0] < rows[1] < times[1]


def test_an_independent_error_is_found_beside_classes_that_are_alike_in_clusters():
    """Class 2 has 4.5 % for 2 %, by chance with 1e-6; the others vary 3 times as much as independent rows would."""
    c = np.arange(1000) // 10
    y = c % 2
    y[:450:10] = 2
    found = evaluate_classes(np.tile([0.5, 0.48, 0.02], (1000, 1)), y, clusters=c, draws=99)
    assert (found.worst.label, found.classes[2].adjusted) == (2, 0.01)
    assert found.classes[0].p_value > 0.3


def test_outcomes_of_clusters_are_drawn_event_by_event():
    """Each by a generator of its own; the top label is the last."""
    p, y = made(120, steps=4)
    events = module.events_of(p, y, None, np.arange(120) // 4, None, False)
    found = class_draws.drawn_of_clusters(events, 3, 7)
    for j, resample in enumerate(events.resamples):
        v, generator = np.append(p, p.max(axis=1)[:, None], axis=1)[:, j], np.random.default_rng([7, 5, j])
        for value in found[:, j]:
            drawn = oc.JointDistribution.from_samples(v, resample.outcomes(generator))
            assert value == pytest.approx(oc.measures.cutoff_ce(drawn))


def test_weights_are_part_of_what_is_drawn():
    """One row has all the weight but for 1 %, so what happens there is as likely as it is forecast: p = 1/4."""
    p, y, w = np.tile([0.25, 0.5, 0.25], (100, 1)), np.ones(100, int), np.ones(100)
    y[0], w[0] = 0, 1e4
    found = evaluate_classes(p, y, weights=w, draws=999)
    assert 0.2 < found.classes[0].p_value < 0.3
    alone = evaluate_classes(p[1:], y[1:], draws=999)
    assert alone.classes[0].p_value == 0.001


CSV = "p_cat,p_dog,label\n"
GOOD = f"{CSV}.5,.5,cat\n"
ALL = "--classes", "p_*"


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        (f"{GOOD}.5,.7,dog\n", ALL, "line 3: probabilities of 'p_cat' to 'p_dog' sum to 1.2; expected 1"),
        (f"{GOOD}.5,,dog\n", ALL, "line 3: column 'p_dog' is missing, as in 1 of 2 rows; .*--skip-missing"),
        (f"{GOOD}.5,.5,\n", ALL, "line 3: column 'label' is missing"),
        (f"{GOOD}.5,1.5,dog\n", ALL, r"line 3: column 'p_dog' holds '1.5'; expected a probability"),
        (f"{GOOD}.5,.5,cow\n", ALL, "label 'cow' in column 'label' is none of 'p_cat', 'p_dog'; .*--labels"),
        ("p_c0,p_c1,label\n.5,.5,c0\n.5,.5,c1\n.5,.5,zebra\n", ALL, "label 'zebra' .* is none of 'p_c0', 'p_c1'"),
        (GOOD, (*ALL, "--labels", "cat"), "--labels cat; expected 2 different ones"),
        (GOOD, (*ALL, "--measure", "ece"), "--measure beside --classes .*, or --classes without columns"),
        (GOOD, (*ALL, "--id", "a", "--cluster", "b"), "--id a beside --cluster b; expected one"),
        (GOOD, (*ALL, "--groups", "label"), "--groups beside --classes"),
        (GOOD, (*ALL, "--above", "0"), "--above beside --classes"),
        (GOOD, (*ALL, "--weight", "label"), "cannot tell which column has the labels; expected --outcome COLUMN$"),
        (GOOD, (*ALL, "-f", "p_cat"), "--forecast beside --classes"),
        (CSV, ALL, "no rows"),
        (GOOD, ("--classes", "q_*"), r"no column fits 'q_\*'"),
        (GOOD, ("--classes", "p_cat"), "is one column"),
        (GOOD, ("--classes", "p_cat,p_cat"), "'p_cat' is asked for twice; expected each class once"),
        (GOOD, (*ALL, "--labels", "cat,cat"), "--labels cat,cat; expected 2 different ones"),
        (GOOD, ("--classes", "p_cat,p_dgo"), "did you mean 'p_dog'"),
        (GOOD, ("--classes", "*"), "cannot tell which column has the labels; expected --outcome COLUMN$"),
        (GOOD, ("--classes", "p_cat,p_dog", "--outcome", "p_cat"), "'p_cat' is asked for twice; expected each in one"),
        (GOOD, ("--labels", "a,b"), "--labels a,b; expected --classes with columns"),
        (GOOD, ("--classes", "--positive", "1"), "--classes beside --positive 1; expected one or the other"),
    ],
)  # fmt: skip
def test_files_that_are_refused(tmp_path, text, options, said):
    done = run(written(tmp_path, text), *options)
    assert (done.exit_code, bool(re.search(said, done.stderr))) == (2, True), done.stderr


def test_rows_that_are_left_out_and_what_is_said_of_all(tmp_path):
    path = written(tmp_path, f"{CSV}50,50,cat\n,50,cat\n30,70,void\n33.3,66.6,dog\n")
    said = flat(run(path, *ALL, "--percent", "--skip-missing", "--drop", "void", "--draws", 0).stdout)
    for words in (
        "2 rows", "1 of 4 rows are left out: 'void' in 'label'", "Without draws it is not tested",
        "1 of 4 rows have no forecast or outcome and are left out",
        "misses 1 by up to 0.001; rows are divided by it",
    ):  # fmt: skip
        assert words in said
    # Six of the labels that are left out are named.
    path = written(tmp_path, f"{CSV}1,0,cat\n0,1,dog\n" + "".join(f"1,0,v{i}\n" for i in range(7)))
    drop = [word for i in range(7) for word in ("--drop", f"v{i}")]
    said = flat(run(path, *ALL, *drop, "--draws", 0).stdout)
    assert "7 of 9 rows are left out: 'v0', 'v1', 'v2', 'v3', 'v4', 'v5', and 1 more in 'label'" in said
    path = written(tmp_path, "p_cat,p_dog,p_label\n1,0,cat\n")
    said = flat(run(path, *ALL, "--outcome", "p_label", "--draws", 9).stdout)
    assert "2 classes in 'p_cat' to 'p_dog'" in said
    assert "not refuted (p = 1, all classes at once). Caution" in said


def test_bands_of_pictures_are_by_weights_and_clusters():
    """Of four copies of each row in one cluster they are as wide as without the copies."""
    p, y = made(400)
    p = np.minimum(p + np.linspace(0, 1e-6, 400)[:, None], 1.0)  # so many levels that they are smoothed
    p /= p.sum(axis=1, keepdims=True)
    four = np.repeat(p, 4, axis=0), np.repeat(y, 4)
    once, copied, naive = (
        oc.plots.classes_table(found).query("mark == 'smooth'")
        for found in (
            evaluate_classes(p, y, draws=0),
            evaluate_classes(*four, clusters=np.repeat(np.arange(400), 4), draws=0),
            evaluate_classes(*four, draws=0),
        )
    )
    one, two, three = ((table["upper"] - table["lower"]).mean() for table in (once, copied, naive))
    assert two == pytest.approx(one, rel=0.15)
    assert three < 0.7 * one


def test_pictures_of_classes():
    p, y = made(500, 12)
    assert set(oc.plots.classes_table(p, y)["label"]) < set(map(str, range(12)))
    assert len(oc.plots.classes(p, y).axes) == 18
    gamma = oc.ClassDistribution.from_samples(*made(300, shift=0.3), labels=None)
    table = oc.plots.triangle_table(gamma)
    assert table["share"].to_numpy() == pytest.approx(gamma.mass)
    assert table[[f"share {k}" for k in range(3)]].to_numpy() == pytest.approx(gamma.means)
    # Where the shares are not the forecast there is an arrow, with its tip at the shares.
    (axis,), corners = oc.plots.triangle(gamma).axes, np.array([(0, 0), (1, 0), (0.5, 0.75**0.5)])
    tips = np.array([arrow.get_xy()[0] for arrow in axis.patches])
    off = gamma.means[(gamma.means != gamma.predictions).any(axis=1)]
    assert np.sort(tips, axis=0) == pytest.approx(np.sort(off @ corners, axis=0))
    rng = np.random.default_rng(0)
    many = rng.dirichlet([1, 1, 1], 2000)
    table = oc.plots.triangle_table(many, np.arange(2000) % 3)
    v = table[[f"forecast {k}" for k in range(3)]].to_numpy()
    assert (table["mark"] == "cell").all()
    assert table["share"].sum() == pytest.approx(1)
    assert table["share"].to_numpy() @ v == pytest.approx(many.mean(axis=0))
    # A cell has the forecasts that are nearest to one point of the grid.
    grid = np.array([(i, j, 10 - i - j) for i in range(11) for j in range(11 - i)]) / 10
    cell = ((many[:, None] - grid) ** 2).sum(axis=2).argmin(axis=1)
    means = [many[cell == at].mean(axis=0) for at in np.unique(cell)]
    assert v[np.lexsort(v.T)] == pytest.approx(np.array(means)[np.lexsort(np.array(means).T)])
    with pytest.raises(InvalidParameter, match="12 classes; expected 3"):
        oc.plots.triangle(p, y)


# ---------------------------------------------------------------- as binary events

P = np.array([[0.7, 0.2, 0.1], [0.3, 0.3, 0.4], [0.1, 0.45, 0.45], [0.05, 0.05, 0.9]])
LABEL = np.array([0, 1, 2, 2])
#: in the third row class 1 comes before class 2
TOP = [0.7, 0.4, 0.45, 0.9], [1.0, 0.0, 0.0, 1.0]
EACH = P.tolist(), [[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 1]]


@pytest.mark.parametrize(("reduction", "want"), [("top_label", TOP), ("class_wise", EACH)])
def test_both_reductions_of_whatever_holds_them(reduction, want):
    names = ["red", "green", "blue"]
    frame = pd.DataFrame(P, columns=names, index=[3, 1, 4, 1])
    for given, options in (
        ((P, LABEL), {}), ((P.tolist(), LABEL.tolist()), {}), ((P, LABEL.astype(np.float32)), {}),
        ((frame, pd.Series([names[i] for i in LABEL], index=frame.index)), {"classes": names}),
        ((P, LABEL + 10), {"classes": (10, 11, 12)}),
    ):  # fmt: skip
        found = oc.binary_forecasts(*given, reduction=reduction, **options)
        assert tuple(one.tolist() for one in found) == want
        assert not np.shares_memory(found[0], P)


@pytest.mark.parametrize(
    ("row", "taken"),
    [
        ([0.5, 0.4], True), ([0.5, 0.3], False), ([0.33, 0.33, 0.33], True), ([0.33, 0.33, 0.32], False),
        ([0.049] * 19 + [0.059], True), ([0.049] * 19 + [0.058], False), ([0.5, 0.4951], True), ([0.5, 0.4949], False),
    ],
)  # fmt: skip
def test_sums_of_a_row_may_miss_1_by_what_rounding_changes(row, taken):
    """By half a unit of the last decimal for each class, of one to three decimals; else by 0.005."""
    if taken:
        assert oc.binary_forecasts([row], [0])[0].tolist() == [max(row)]
    else:
        with pytest.raises(InvalidData, match="expected 1, within"):
            oc.binary_forecasts([row], [0])


@pytest.mark.parametrize("named", [[], ["-f", "sun", "-f", "rain", "-f", "snow"]])
def test_the_command_measures_labels_class_by_class(tmp_path, named):
    """Probabilities of two decimals miss 1 by up to 0.01; the rows without a label are left out."""
    generator, names = np.random.default_rng(5), ["rain", "snow", "sun"]
    table = generator.dirichlet([1.0, 1.0, 1.0], 400).round(2)
    label = (generator.random(400)[:, None] > table[:, :2].cumsum(axis=1)).sum(axis=1)
    frame = pd.DataFrame(table, columns=names).assign(weather=[names[k] for k in label], site=label % 2)
    frame.loc[:9, "weather"] = ""
    frame.to_csv(tmp_path / "f.csv", index=False)
    asked = ["-m", "smooth_ce", "-m", "brier", "--draws", "39", "--skip-missing", "--by", "site"]
    found = read(tmp_path / "f.csv", "--classes", *named, *asked)
    assert "caution: the sum of probabilities of" in " ".join(found["said"])
    assert [column["name"] for column in found["forecasts"]] == (named[1::2] or names)
    p, y = oc.binary_forecasts(table[10:], label[10:], reduction="class_wise")
    for column in found["forecasts"]:
        k = names.index(column["name"])
        want = oc.evaluate(p[:, k], y[:, k], measures=("smooth_ce", "brier"), bootstrap=39, reference=39)
        for row, one in zip(column["measures"], want.rows, strict=True):
            seen = row["value"], tuple(row["interval"]), row["p_value"]
            assert seen == (one.value, one.interval, one.p_value)
        assert column["groups"][0]["event"] == y[label[10:] % 2 == 0, k].mean()
