"""Groups of a log: each as its rows say, the measures of all, p-values that hold, and the worst in words."""

import json

import numpy as np
import pandas as pd
import pytest

import onlinecal as oc
from onlinecal.core.files import Table
from onlinecal.logs import reference
from onlinecal.logs.clusters import Blocks, Samples
from onlinecal.logs.columns import Asked
from onlinecal.logs.evaluation import evaluate
from onlinecal.logs.groups import SHOWN, Families, furthest
from onlinecal.logs.measuring import Settings, measure_log
from onlinecal.logs.reading import read_log
from onlinecal.logs.source import report_of
from onlinecal.measures.groups import OF_GROUPS, family_of
from tests.command_line import onlinecal

FAST = Settings(draws=20, measures=("brier",))


def frame(n, off=0.0, seed=0):
    """A log that is off in the winter alone, and calibrated in all others."""
    rng = np.random.default_rng(seed)
    p, winter = np.round(rng.random(n), 1), rng.integers(0, 2, n)
    y = (rng.random(n) < np.clip(p + off * winter, 0.0, 1.0)).astype(int)
    season = np.array(["wet", "dry", ""])[rng.choice(3, n, p=[0.5, 0.4, 0.1])]
    return pd.DataFrame({"p": p, "y": y, "winter": winter, "weekend": np.arange(n) % 7 > 4, "season": season})


def groups(tmp_path, table, settings=FAST, **asked):
    table.to_csv(tmp_path / "f.csv", index=False)
    asked = {"forecasts": ("p",), "outcome": "y", "questions": False, **asked}
    return measure_log(read_log(Table(tmp_path / "f.csv"), Asked(**asked)), settings)


def test_each_group_is_what_its_rows_say_and_the_intervals_hold_together(tmp_path):
    table = frame(600)
    report = groups(tmp_path, table, groups=("winter,weekend", "season"))
    found = report.columns[0].evaluation.groups
    named = {"all": slice(None), "winter": table["winter"] == 1, "weekend": table["weekend"],
             "season: dry": table["season"] == "dry", "season: wet": table["season"] == "wet"}  # fmt: skip
    assert [group.name for group in found.groups] == [*named]
    for group, rows in zip(found.groups, named.values(), strict=True):
        p, y = table["p"][rows], table["y"][rows]
        # Five groups: each interval fails in a fifth of the cases, and has as many draws beyond its ends.
        alone = evaluate(p, y, measures=["ece", "smooth_ce"], bootstrap=100, level=0.99).table()
        assert (group.rows, group.forecast, group.event) == (len(p), pytest.approx(p.mean()), y.mean())
        for name, ends in (("ece", group.ece_interval), ("smooth_ce", group.smooth_ce_interval)):
            assert (getattr(group, name), *ends) == tuple(
                alone.loc[name, ["value", "interval_lower", "interval_upper"]]
            )
    inside = {name: rows.astype(int) for name, rows in named.items() if name != "all"}
    for (name, options), one in zip(SHOWN, found.measures, strict=True):
        worst = OF_GROUPS[name].function.worst(table["p"], table["y"], groups=inside, **options)
        assert (one.value, one.group, one.forecast) == worst
    assert found.notes[1:] == ["intervals of groups hold together with 95 % (Bonferroni)"]
    lacks = (table["season"] == "").sum()
    assert f"caution: {lacks} rows without 'season': in none of its groups" in report.said
    same = oc.evaluate(
        table["p"], table["y"], groups=inside, measures=["brier"], bootstrap=20, reference=20
    ).groups
    assert same == found
    assert same.table().loc["winter", "ece_upper"] == found.groups[1].ece_interval[1]
    assert same.worst().loc["multi_ece", "group"] == found.measures[0].group


def test_the_worst_group_is_found_where_all_rows_together_are_calibrated():
    rng = np.random.default_rng(5)
    p, odd = np.repeat([0.3, 0.5, 0.7], 400), np.arange(1200) % 2
    y = (rng.random(1200) < p + np.where(odd == 1, 0.15, -0.15)).astype(int)
    found = evaluate(p, y, groups={"odd": odd, "first": p < 0.4}, measures=["ece"], reference=99)
    assert found.rows[0].p_value > 0.05
    assert found.groups.words.startswith("Worst group: 'odd' (600 rows): events 0.6")
    assert "p = 0.01 for the worst of all groups" in found.groups.words
    assert found.groups.measures[0].p_value == 0.01
    text = str(found)
    assert all(part in text for part in ("multi_ece(per=root)", "worst group", "Worst group: 'odd'"))
    assert found._repr_html_().count("<table") == 3


@pytest.mark.parametrize("kind", ["rows", "weights", "clusters"])
def test_p_values_are_those_of_calibrated_draws(kind):
    """Of all measures, and of the worst group: outcomes of all rows are drawn at once, and groups share them."""
    rng = np.random.default_rng(9)
    p, of = np.round(rng.random(120), 1), np.arange(120) // 3
    y = (rng.random(120) < p).astype(float)
    w, units = rng.random(120) if kind == "weights" else None, Blocks(of if kind == "clusters" else None)
    odd, few = rng.integers(0, 2, 120), np.arange(120) < 30
    found = evaluate(
        p, y, weights=w, clusters=units.labels, groups={"odd": odd, "few": few}, measures=["brier"], reference=19,
    ).groups  # fmt: skip
    samples = Samples(p, y, w, None, units)
    resample, generator = samples.resample(samples.gamma), np.random.default_rng([0, 7])

    def family(y):
        return family_of("groups", {"odd": odd, "few": few}, p, y, w)

    drawn = [
        family(generator.binomial(1, p, 120) if kind == "rows" else resample.outcomes(generator))
        for _ in range(19)
    ]
    for (name, options), one in zip(SHOWN, found.measures, strict=True):
        values = np.array([OF_GROUPS[name].function.worst(each, **options).value for each in drawn])
        assert one.p_value == (1 + (values >= one.value - 1e-12).sum()) / 20
        assert one.if_calibrated == pytest.approx(values.mean())
    values = np.array([furthest(each, ["odd", "few"]).value for each in drawn])
    share = (1 + (values >= furthest(family(y), ["odd", "few"]).value - 1e-12).sum()) / 20
    assert f"p = {share:.3g} for the worst of all groups" in found.words
    assert ("No group is told from chance" in found.words) is bool(share > 0.05)


def test_values_that_only_rounding_tells_apart_are_equally_large():
    """Of three rows at .5 one or two are 1 at least: 1/6 from .5 is the least there is, and |2/3 − .5| < |1/3 − .5|."""
    found = evaluate(
        [0.5] * 3, [1, 0, 0], groups={"own": [1, 1, 1]}, measures=["ece", "cdl"], bootstrap=0, reference=99
    )
    assert {one.name: one.p_value for one in found.groups.measures} == dict.fromkeys(
        (one.name for one in found.groups.measures), 1.0
    )
    assert [row.p_value for row in found.rows] == [1.0, 1.0]


@pytest.mark.parametrize("weighted", [False, True])
def test_at_very_many_levels_groups_are_compared_at_groups_of_levels(monkeypatch, weighted):
    monkeypatch.setattr(reference, "MOST_DRAWN", 50)
    monkeypatch.setattr(reference, "GROUPS", 8)
    rng = np.random.default_rng(2)
    p, (winter, odd) = rng.permutation(np.linspace(0.05, 0.95, 200)), rng.integers(0, 2, (2, 200))
    y = (rng.random(200) < p).astype(float)
    weights = rng.random(200) + 0.5 if weighted else None
    samples = Samples(p, y, weights, None, Blocks(None))
    resample = samples.resample(samples.gamma)
    against = reference.Reference(resample)
    v, starts = samples.gamma.predictions, against.starts
    near = against.gamma.predictions[np.searchsorted(v[starts], p, "right") - 1]
    assert len(np.unique(near)) == 8
    there = {"all": np.arange(200), "winter": np.flatnonzero(winter), "odd": np.flatnonzero(odd)}
    families = Families(samples, there, against)
    drawn = families.drawn(resample, np.random.default_rng(1))
    expected = family_of("groups", {"winter": winter, "odd": odd}, near, y, weights)
    for name, gamma in expected.items():
        for fact in ("predictions", "counts", "means"):
            assert getattr(families.observed[name], fact) == pytest.approx(getattr(gamma, fact))
        assert drawn[name].counts == pytest.approx(gamma.counts)
    found = evaluate(
        p, y, weights=weights, groups={"winter": winter, "odd": odd}, measures=["brier"], reference=19
    ).groups
    assert {one.if_calibrated for one in found.measures} == {None}


def test_small_and_empty_groups_are_shown_and_not_called_the_worst(tmp_path):
    table = frame(300, off=0.3).assign(none=0, tiny=np.arange(300) < 19, just=np.arange(300) < 20)
    table.loc[:19, "y"] = 1 - np.round(table["p"][:20]).astype(int)
    report = groups(tmp_path, table, groups=("winter", "none", "tiny"))
    found = report.columns[0].evaluation.groups
    assert [(group.name, group.rows, group.ece is None) for group in found.groups[1:]] == [
        ("winter", int(table["winter"].sum()), False), ("none", 0, True), ("tiny", 19, False),
    ]  # fmt: skip
    assert found.words.startswith("Worst group: 'winter'")
    assert found.words.endswith("Groups with fewer than 20 rows are left out: 'tiny'.")
    assert found.measures[2].group == "tiny"
    # An empty group takes nothing of the error of the others.
    assert (
        groups(tmp_path, table, groups=("winter", "tiny")).columns[0].evaluation.groups.groups[1]
        == found.groups[1]
    )
    assert np.isnan(found.table().loc["none", "ece"])
    alone = groups(tmp_path, table, groups=("tiny", "none")).columns[0].evaluation.groups
    assert alone.words.startswith("No group has 20 rows, so none is called the worst.")
    just = groups(tmp_path, table, groups=("just", "tiny")).columns[0].evaluation.groups
    assert just.words.startswith("Worst group: 'just' (20 rows)")


def test_the_worst_group_is_the_one_that_chance_explains_least():
    """An error of .4 in 25 rows of 425 is less than one of .2 in 400, by the root of their number."""
    few = np.arange(425) < 25
    p, y = np.full(425, 0.5), np.r_[np.arange(25) < 22.5, np.arange(400) < 280].astype(int)
    family = family_of("furthest", {"few": few, "many": ~few}, p, y)
    assert furthest(family, ["few", "many"]) == (pytest.approx(0.2 * (400 / 425) ** 0.5), "many", None)
    assert furthest(family, ["few"]) == (pytest.approx(0.42 * (25 / 425) ** 0.5), "few", None)
    assert furthest(family, []) == (0.0, None, None)


def test_weights_and_files_in_parts_and_expected_outcomes(tmp_path):
    table = frame(400, off=0.2)
    table["w"] = np.random.default_rng(1).integers(0, 3, 400)
    asked = {"groups": ("winter", "season")}
    none = Settings(draws=0, measures=("brier",))
    weighed = groups(tmp_path, table, none, weight="w", **asked).columns[0].evaluation.groups
    often = table.loc[table.index.repeat(table["w"])]
    repeated = groups(tmp_path, often, none, **asked).columns[0].evaluation.groups
    for one, other in zip(weighed.groups, repeated.groups, strict=True):
        assert (one.forecast, one.event, one.ece) == pytest.approx((other.forecast, other.event, other.ece))
    assert [one.value for one in weighed.measures] == pytest.approx([one.value for one in repeated.measures])
    told = [
        report_of(str(tmp_path / "f.csv"), Asked(("p",), "y", questions=False, **asked), FAST, parts)
        for parts in (False, True)
    ]
    whole, counted = (report.columns[0].evaluation.groups for report in told)
    assert counted.table().equals(whole.table())
    assert [one.value for one in counted.measures] == pytest.approx([one.value for one in whole.measures])
    assert all((one.p_value, one.if_calibrated) > (0.0, 0.0) for one in counted.measures)
    # A tie is half of either outcome, and one row.
    ties = evaluate([0.5, 0.5, 0.2], [0.5, 1, 0], fractional=True, groups={"a": [1, 1, 0]}, measures=["ece"])
    assert [(group.rows, group.event) for group in ties.groups.groups] == [(3, 0.5), (2, 0.75)]


def test_dependent_rows_are_clusters_in_each_group(tmp_path):
    table = frame(600)
    table["c"] = np.arange(600) // 40
    report = groups(tmp_path, table, groups=("winter",), cluster="c", questions=True)
    found = report.columns[0].evaluation.groups
    rows = table[table["winter"] == 1]
    alone = evaluate(
        rows["p"], rows["y"], clusters=rows["c"], measures=["smooth_ce"], bootstrap=40, level=0.975
    )
    assert found.groups[1].smooth_ce_interval == alone.rows[0].interval
    table["c"] = np.arange(600) // 100
    few = groups(tmp_path, table, groups=("winter",), cluster="c").columns[0].evaluation.groups
    assert [one.p_value for one in few.measures] == [None] * len(SHOWN)
    assert few.groups[1].ece_interval is None
    assert any("6 clusters; expected at least 15" in note for note in few.notes)
    assert "It is not tested against chance." in few.words


def test_the_command_tells_groups_in_words_as_json_and_on_a_page(tmp_path):
    frame(500, off=0.3).to_csv(tmp_path / "f.csv", index=False)
    line = "measure f.csv --groups winter,weekend --groups season --by winter --id none --draws 99 -m brier"
    with_by = onlinecal(f"{line} --json", cwd=tmp_path, rc=2)
    assert "column 'winter' is asked for twice" in with_by.stderr
    line = line.replace("--by winter", "-o page.html")
    (column,) = json.loads(onlinecal(f"{line} --json", cwd=tmp_path).stdout)["forecasts"]
    found = column["multicalibration"]
    assert (column["groups"], len(found["groups"]), len(found["measures"])) == ([], 5, len(SHOWN))
    assert found["words"].startswith("Worst group: 'winter'")
    page = (tmp_path / "page.html").read_text()
    assert all(
        text in page for text in ("All groups at once", "season: wet", "Worst group: &#39;winter&#39;")
    )
