"""Reports of logs: by group, over time, of many forecasts, with weights; of counted rows they are the same."""

import itertools
import json
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st
from scipy.stats import beta

import onlinecal as oc
from onlinecal.core import progress
from onlinecal.core.errors import InvalidData, InvalidParameter
from onlinecal.core.files import Table, scanned
from onlinecal.logs import measuring, reference, source
from onlinecal.logs.cautions import unresolved_bounds
from onlinecal.logs.clusters import Clustered
from onlinecal.logs.evaluation import DECIDING, evaluate
from onlinecal.logs.inference import calibration_test, holm
from onlinecal.logs.measuring import Settings, measure_log
from onlinecal.logs.reading import Asked, read_log
from onlinecal.logs.resampling import Resample
from onlinecal.logs.source import report_of
from onlinecal.logs.thresholds import worst_threshold
from onlinecal.measures import EVERYTHING
from onlinecal.report.measured import decision, grids, number, span
from onlinecal.study.asked import named_measure
from tests.command_line import onlinecal
from tests.logs.made import written
from tests.marks import slow

FAST = ("smooth_ce", "cutoff_ce", "ece", "brier", "cdl")
FEW = Settings(draws=9, measures=("smooth_ce", "ece", "brier"))
G = oc.JointDistribution
NONE = Settings(draws=0, measures=("brier",))


def frame(n, seed=0, digits=2):
    rng = np.random.default_rng(seed)
    p = np.round(rng.random(n), digits) if digits else rng.random(n)
    y = (rng.random(n) < p**1.2).astype(int)
    site = np.array(["north", "south", "east"])[rng.integers(0, 3, n)]
    return pd.DataFrame(
        {"day": pd.date_range("2001-01-01", periods=n).strftime("%Y-%m-%d"), "p": p, "q": np.round(0.9 * p, 6),
         "note": ['a, "b"', "c"] * (n // 2), "site": site, "y": y}
    )  # fmt: skip


def in_file(path, table):
    if path.suffix == ".parquet":
        table.to_parquet(path, row_group_size=len(table) // 10)
    else:
        table.to_csv(path, index=False)
    return path


def report(tmp_path, table, settings=None, **asked):
    log = read_log(Table(in_file(tmp_path / "f.csv", table)), Asked(**asked))
    return measure_log(log, settings or Settings(draws=20, measures=FAST))


# ---------------------------------------------------------------- of a log


def test_a_column_is_what_its_parts_say(tmp_path):
    table = frame(600)
    found = report(tmp_path, table, forecasts=("p",))
    (column,) = found.columns
    gamma = G.from_samples(table["p"], table["y"])
    assert str(column.evaluation) == str(evaluate(gamma, measures=FAST, bootstrap=20, reference=20))
    assert (column.brier, column.log) == (oc.decomposition(gamma), oc.decomposition(gamma, "log"))
    assert column.threshold == worst_threshold(gamma)
    generator, resample = np.random.default_rng([0, 4]), Resample(gamma, None)
    chance = [worst_threshold(resample.calibrated(generator)).loss for _ in range(20)]
    assert max(chance) < column.threshold.loss
    assert (column.by_chance, column.threshold_p) == (pytest.approx(np.mean(chance)), 1 / 21)
    assert column.advises
    assert "would be better" in decision(column)
    # Below the level there is no advice: 1/20 is not, and 1/19 is.
    for draws in (19, 18):
        (other,) = report(
            tmp_path, table, Settings(draws=draws, measures=("brier",)), forecasts=("p",)
        ).columns
        assert other.advises is ("would be better" in decision(other)) is (draws == 19)
    assert (found.differences, column.groups, column.blocks, column.drift) == ([], [], [], None)
    for row in ("0.5,1", "0,0", "1,1", "0,1"):
        (tmp_path / "one.csv").write_text(f"p,y\n{row}\n")
        one = report_of(str(tmp_path / "one.csv"), Asked(), Settings(draws=20, measures=FAST))
        assert one.columns[0].cautions[0].startswith("1 row only: ")


def test_groups_and_stretches_of_time(tmp_path):
    table = frame(800)
    found = report(tmp_path, table, forecasts=("p", "q"), by=("site",), time="day")
    column = found.columns[1]
    assert [part.name for part in column.groups] == ["east", "north", "south"]
    for part in column.groups:
        rows = table[table["site"] == part.name]
        q, y = rows["q"], rows["y"]
        wanted = q.mean(), y.mean(), np.sqrt((q * (1 - q)).sum()) / len(q), ((q - y) ** 2).mean()
        assert (part.forecast, part.event, part.error, part.brier) == pytest.approx(wanted, rel=1e-12)
        test = calibration_test(Resample(G.from_samples(q, y), None), 0)
        assert (part.rows, part.p_value) == (len(rows), test)
        # Three groups: each interval of the probability fails in a third of the cases, half of them at each end.
        n, ones, tail = len(rows), y.sum(), 0.05 / 6
        ends = beta.ppf(tail, ones, n - ones + 1), beta.isf(tail, ones + 1, n - ones)
        assert part.interval == pytest.approx([end - q.mean() for end in ends])
    assert [part.adjusted for part in column.groups] == holm([part.p_value for part in column.groups])
    assert sum(part.rows for part in column.blocks) == 800
    assert column.blocks[0].name == "2001-01-01 to 2001-04-10"
    assert column.blocks[-1].name.endswith(table["day"].iloc[-1])
    assert [d.score for d in found.differences] == ["brier", "log"]
    # A stretch of time parts no day: each ends where a day does, as near as can be to an eighth of the rows.
    rng = np.random.default_rng(1)
    for _ in range(5):
        times = np.sort(rng.integers(0, 30, 100))
        days = pd.DataFrame({"day": times, "p": 0.5, "y": np.arange(100) % 2})
        blocks = report(tmp_path, days, NONE, time="day", forecasts=("p",)).columns[0].blocks
        ends = np.flatnonzero(np.diff(times, append=99)) + 1
        starts = np.cumsum([part.rows for part in blocks])
        near = [np.abs(ends - int(100 * k / 8)).min() for k in range(1, 8)]
        assert [np.abs(starts - int(100 * k / 8)).min() for k in range(1, 8)] == near
        assert set(starts) <= set(ends)
    # Of two ends as near the earlier one is taken.
    days = pd.DataFrame({"day": [0, 1, 1, *range(2, 15)], "p": 0.5, "y": np.arange(16) % 2})
    blocks = report(tmp_path, days, NONE, time="day", forecasts=("p",)).columns[0].blocks
    assert [part.rows for part in blocks[:2]] == [1, 3]
    table.loc[:4, "site"] = "west"
    assert any("'west'" in said for said in report(tmp_path, table, by=("site",), forecasts=("p",)).cautions)


def test_intervals_of_groups_count_clusters(tmp_path):
    """By Clopper and Pearson for as many samples as the clusters of a group tell; each of two fails in a half."""
    table = frame(600).sort_values("site").assign(of=np.arange(600) // 5)
    for part in report(tmp_path, table, NONE, forecasts=("p",), by=("site",), cluster="of").columns[0].groups:
        p, y, of = (table[table["site"] == part.name][name].to_numpy() for name in ("p", "y", "of"))
        gamma = G.from_samples(p, y)
        resample = Clustered(gamma, (p, y * 1.0, np.ones(len(p))), of)
        n = resample.samples_near(None, np.zeros(gamma.levels, int), np.array([y.mean()]))[0]
        ones, tail = n * y.mean(), 0.05 / 6
        ends = beta.ppf(tail, ones, n - ones + 1), beta.isf(tail, ones + 1, n - ones)
        assert part.interval == pytest.approx([end - p.mean() for end in ends])
        residuals = np.bincount(of, y - p)
        assert part.error == pytest.approx(np.sqrt(residuals @ residuals) / len(p))


def test_weights_are_as_rows_that_are_there_so_often(tmp_path):
    table = frame(300)
    times = np.random.default_rng(1).integers(0, 4, 300)
    asked = {"forecasts": ("p",), "by": ("site",)}
    a = report(tmp_path, table.assign(w=times), weight="w", **asked).columns[0]
    b = report(tmp_path, table.iloc[np.repeat(np.arange(300), times)], **asked).columns[0]
    assert a.brier.score == pytest.approx(b.brier.score, rel=1e-12)
    assert a.threshold.loss == pytest.approx(b.threshold.loss, rel=1e-9)
    assert [part.event for part in a.groups] == pytest.approx([part.event for part in b.groups])
    assert any("as much as" in said for said in a.cautions)
    # Weights that are all equal tell nothing: their sum may be more or less than the number of rows.
    plain = report(tmp_path, table, forecasts=("p",)).columns[0].cautions
    for weight in (1e-3, 1.0, 1e6):
        equal = report(tmp_path, table.assign(w=weight), forecasts=("p",), weight="w")
        assert equal.columns[0].cautions == plain


def test_eight_measures_are_shown_unless_others_are_asked_for(tmp_path):
    in_file(tmp_path / "f.csv", frame(60))

    def called(options, rc=0):
        return onlinecal(f"measure f.csv -f p --draws 0 {options}", cwd=tmp_path, rc=rc)

    for options, names in (
        ("", DECIDING), ("-m scdl", ["scdl"]), ("-m all", [named_measure(one)[0].name for one in EVERYTHING])
    ):  # fmt: skip
        (column,) = json.loads(called(f"--json {options}").stdout)["forecasts"]
        assert [row["name"] for row in column["measures"]] == list(names)
    assert len(DECIDING) == 8


def test_draws_show_their_progress(monkeypatch, capsys):
    monkeypatch.setattr(progress, "EVERY", 0.0)
    evaluate(G.from_levels([0.2, 0.8], [40, 60], [0.25, 0.75]), measures=["ece"], reference=20)
    assert "draws/s" in capsys.readouterr().err


@pytest.mark.parametrize("weight", [slow(None), "w"])
def test_values_are_exact_at_every_size_and_draws_at_groups_of_levels(tmp_path, monkeypatch, weight):
    table = frame(800, digits=0)
    table = table.assign(w=np.arange(800) % 5) if weight else table
    asked, settings = {"forecasts": ("p",), "weight": weight}, Settings(draws=19, measures=EVERYTHING)
    (exact,) = report(tmp_path, table, settings, **asked).columns
    monkeypatch.setattr(reference, "MOST_DRAWN", 500)
    monkeypatch.setattr(reference, "GROUPS", 64)
    (column,) = report(tmp_path, table, settings, **asked).columns
    many, moved = column.evaluation.grouped
    assert 60 <= many <= 64
    assert 0.0 < moved < 1 / 64
    assert (exact.evaluation.grouped, column.threshold) == (None, exact.threshold)
    for row, true in zip(column.evaluation.rows, exact.evaluation.rows, strict=True):
        for fact in ("name", "ends", "interval", "p_large_n"):
            assert getattr(row, fact) == getattr(true, fact)
        assert row.p_value is not None
        # Draws differ; of a measure that jumps values at groups say nothing of those at levels.
        assert (row.if_calibrated is None) == (row.measure.continuous == "no")
    assert any("groups of neighbouring forecasts" in note for note in column.evaluation.notes)
    assert "groups of calibrated forecasts" in decision(column) or column.threshold.loss == 0.0


@pytest.mark.parametrize(("kind", "times"), [("single", 1), ("single", 8), ("repeated", 9), ("weighted", 1)])
def test_draws_at_groups_are_sums_of_draws_at_levels(monkeypatch, kind, times, seed):
    """A group has the sum of the outcomes drawn at its levels, and the mean of its forecasts.

    Of up to eight rows a level outcomes are drawn row by row.
    """
    monkeypatch.setattr(reference, "MOST_DRAWN", 50)
    monkeypatch.setattr(reference, "GROUPS", 8)
    v = np.linspace(0.05, 0.95, 97) ** 2
    p, w = np.repeat(v, times), np.repeat(np.arange(97) % 3 + 0.5, times) if kind == "weighted" else None
    y = (np.arange(len(p)) % 3 == 0).astype(float)
    samples = None if w is None else (p, y, w)
    against = reference.Reference(Resample(G.from_samples(p, y, weights=w), samples))
    whole = G.from_samples(p, y, weights=w)
    weights = np.ones(len(p)) if w is None else w
    group = np.searchsorted(whole.predictions[against.starts], p, "right") - 1
    assert against.gamma.predictions == pytest.approx(
        np.bincount(group, weights * p) / np.bincount(group, weights)
    )
    assert against.gamma.counts == pytest.approx(np.bincount(group, weights))
    assert against.gamma.positives == pytest.approx(np.bincount(group, weights * y))
    one, other = np.random.default_rng([seed, 31]), np.random.default_rng([seed, 31])
    for _ in range(5):
        if kind == "single":
            ones = (other.random(97 * times) < p).reshape(97, times).sum(axis=1)
        else:
            ones = against.resample.calibrated(other).positives
        group = np.searchsorted(whole.predictions[against.starts], v, "right") - 1
        assert against.draw(one).positives == pytest.approx(np.bincount(group, ones))


@pytest.mark.parametrize(("levels", "in_groups"), [(50, False), (51, True)])
def test_outcomes_are_drawn_at_groups_of_more_levels_than_so_many(monkeypatch, levels, in_groups):
    monkeypatch.setattr(reference, "MOST_DRAWN", 50)
    gamma = G.from_samples(np.arange(levels) / levels, np.arange(levels) % 2)
    assert reference.Reference(Resample(gamma, None)).grouped is in_groups


# ---------------------------------------------------------------- in parts


def bits(gamma):
    return [numbers.tobytes() for numbers in (gamma.predictions, gamma.counts, gamma.positives)]


def same(one, other):
    """Γ and all that follows from it to the last digit; means of rows up to rounding."""
    assert (one.source, one.outcome, one.rows) == (other.source, other.outcome, other.rows)
    for a, b in zip(one.columns, other.columns, strict=True):
        assert (bits(a.gamma), str(a.evaluation)) == (bits(b.gamma), str(b.evaluation))
        assert (a.brier, a.log, a.threshold, a.threshold_p) == (b.brier, b.log, b.threshold, b.threshold_p)
        assert (a.groups, a.cautions) == (b.groups, b.cautions)
    for a, b in zip(one.differences, other.differences, strict=True):
        assert (a.score, a.first, a.second) == (b.score, b.first, b.second)
        assert (a.mean, a.error) == pytest.approx((b.mean, b.error), rel=1e-9)
        assert b.adjusted == pytest.approx(a.adjusted, rel=1e-6, abs=1e-300)


@pytest.mark.parametrize("name", ["f.csv", "f.parquet", "f.csv.gz", "odd ' name.csv"])
def test_what_is_counted_is_what_is_found_in_memory(tmp_path, name):
    table = frame(600, digits=1)
    path = str(in_file(tmp_path / name, table))
    asked = Asked(forecasts=("p", "q"), by=("site", "note"))
    plain = report_of(path, asked, FEW)
    assert plain.by == "site, note"
    assert [part.name for part in plain.columns[0].groups][::4] == ['note: a, "b"', "site: south"]
    same(plain, report_of(path, asked, FEW, in_parts=True))
    with scanned(path) as file:
        found, different = file.different(["p", "q", "y"]), len(table[["p", "q", "y"]].drop_duplicates())
        assert (found.rows, found.counts.sum(), file.many()) == (different, 600, 600)
        assert file.many(["p", "q", "y"]) == pytest.approx(different, abs=2)


@pytest.mark.parametrize("parts", [False, True])
def test_what_is_said_of_all_rows(tmp_path, parts):
    """Per cent that are nowhere above 1 might be probabilities; rows that are left out; the words for 1 and 0."""
    path, settings = tmp_path / "f.csv", Settings(draws=0, measures=("brier",))

    def said_of(cells, words="01", **asked):
        path.write_text("p,y\n" + "".join(f"{cell},{words[i % 2]}\n" for i, cell in enumerate(cells)))
        found = report_of(str(path), Asked(("p",), "y", **asked), settings, in_parts=parts)
        return " ".join(found.said)

    for cells, cautioned in (([0.25, 1.0, 0.5], True), ([0.25, 1.001, 0.5], False), ([0, 0, 0], False)):
        said = said_of(cells, percent=True)
        assert ("caution: no cell of column 'p' is above 1, and --percent divides" in said) == cautioned, said
        assert "caution" not in said_of([x / 2 for x in cells])
    assert "1 of 3 rows have no forecast or outcome" in said_of([0.5, "", 0.5], skip_missing=True)
    assert "outcome 1 is 'J' in 'y', and 0 is 'n'" in said_of([0.5] * 20, "nj", positive="J")


@pytest.mark.parametrize("kind", ["float32", "bool", "decimal", "dictionary", "text", "nulls", "halves"])
def test_odd_types_of_parquet(tmp_path, kind):
    arrow = pytest.importorskip("pyarrow")
    from decimal import Decimal

    from pyarrow import parquet

    p, y = [0.25, 0.5, 0.75, 1.0, 0.5], [0, 1, 1, 1, 0]
    columns = {
        "float32": (arrow.array(p, arrow.float32()), arrow.array(y, arrow.int8())),
        "bool": (p, [bool(x) for x in y]),
        "decimal": ([Decimal(str(x)) for x in p], [Decimal(x) for x in y]),
        "dictionary": (arrow.array(map(str, p)).dictionary_encode(), arrow.array(y).dictionary_encode()),
        "text": ([str(x) for x in p], [("No ", "YES")[x] for x in y]),
        "nulls": ([None, *p[1:]], [*y[:4], None]),
        "halves": (arrow.array(np.array(p, np.float16)), arrow.array(y, arrow.uint64())),
    }[kind]
    path = tmp_path / "f.parquet"
    parquet.write_table(arrow.table({"p": columns[0], "y": columns[1]}), path)
    asked = Asked(("p",), "y", "yes" if kind == "text" else None, skip_missing=kind == "nulls")
    kept = slice(1, 4) if kind == "nulls" else slice(5)
    for parts in (False, True):
        found = report_of(str(path), asked, Settings(draws=0, measures=("brier",)), in_parts=parts)
        assert bits(found.columns[0].gamma) == bits(G.from_samples(p[kept], y[kept]))


@pytest.mark.parametrize(
    ("names", "wanted"),
    [
        (["a", " a ", "NA", None, "", "b"], {"": 3, "a": 2, "b": 1}),
        ([True, False, True, None, False, True], {"": 1, "False": 2, "True": 3}),
        ([1.0, 2.5, float("nan"), 1.0, 2.5, 2.5], {"": 1, "1.0": 2, "2.5": 3}),
        (pd.Categorical(["a", "b", None, "a", "b", "a"]), {"": 1, "a": 3, "b": 2}),
        (["a", "a\0", "b", "a", "a\0", "a\0"], {"a": 2, "a\0": 3, "b": 1}),
    ],
    ids=["text", "bool", "float", "categories", "zeros"],
)
def test_groups_have_the_same_names(tmp_path, names, wanted):
    pd.DataFrame({"p": [0.5] * 6, "y": [0, 1] * 3, "g": names}).to_parquet(tmp_path / "f.parquet")
    asked, settings = Asked(("p",), "y", by=("g",)), Settings(draws=0, measures=("ece",))
    for parts in (False, True):
        found = report_of(str(tmp_path / "f.parquet"), asked, settings, in_parts=parts)
        assert {part.name: part.rows for part in found.columns[0].groups} == wanted


def test_what_is_large_or_larger_than_memory_is_read_in_parts(tmp_path, monkeypatch):
    path, parquet = (in_file(tmp_path / name, frame(600)) for name in ("f.csv", "f.parquet"))

    def in_parts(path=path, **options):
        return any("in parts" in said for said in report_of(str(path), Asked(("p",)), NONE, **options).said)

    for file, name, most in ((path, "LARGE_BYTES", path.stat().st_size), (parquet, "LARGE_ROWS", 600)):
        for limit in (most, most - 1):
            with monkeypatch.context() as large:
                large.setattr(source, name, limit)
                assert in_parts(file) is (limit < most)
                assert not in_parts(file, in_parts=False)
    # A file takes 20 times its size; with more than half of what is free it is read in parts.
    for free, there in ((39.9, True), (40.0, False)):
        with monkeypatch.context() as small:
            small.setattr(source, "free_memory", lambda free=free: free * path.stat().st_size)
            assert in_parts() == there
            small.setattr(source, "free_memory", lambda free=free: free * path.stat().st_size / 2.0)
            if there:
                with pytest.raises(InvalidData):
                    in_parts(in_parts=False)
            else:
                assert not in_parts(in_parts=False)
    with monkeypatch.context() as gib:
        gib.setattr(source, "free_memory", lambda: 3.0 * 2**30)
        gib.setattr(source, "bytes_needed", lambda file: 7.5 * 2**30)
        gib.setattr(source, "DIFFERENT", 2.0**30)
        with scanned(str(path)) as file:
            rows = file.many(["p", "y"])
        for parts, words in ((False, r"needs some 7\.5 GiB"), (True, rf"need some {rows:.0f}\.0 GiB")):
            with pytest.raises(InvalidData, match=f"{words} of memory, and 3.0 are free"):
                in_parts(in_parts=parts)
    monkeypatch.setattr(source, "free_memory", lambda: 1.0)
    parts = {"in_parts": True}
    for given, options, asked, error, words in (
        (path, {"in_parts": False}, {}, InvalidData, "expected none of --in-memory, --time"),
        (path, {}, {"time": "day"}, InvalidData, "GiB of memory, and .* are free; expected none of"),
        (path, {}, {}, InvalidData, "different rows that they need some .* expected one --forecast"),
        *[(path, parts, {of: "q"}, InvalidParameter, f"--{of} with .*, which is read in parts")
          for of in ("time", "classes", "weight", "cluster")],
    ):  # fmt: skip
        with pytest.raises(error, match=words):
            report_of(str(given), Asked(("p",), **asked), FEW, **options)


@drawn(
    st.lists(
        st.tuples(st.sampled_from([0.0, 0.2, 0.5, 0.7, 1.0]), st.sampled_from([0, 1, None])), max_size=10
    )
)
def test_rows_without_an_outcome_bound_scores(rows):
    """The least and the largest values over all outcomes, one by one."""
    rows = [(0.4, 1), *rows]
    known = [(p, y) for p, y in rows if y is not None]
    left = np.array([p for p, y in rows if y is None])
    every = [
        G.from_samples([*(p for p, _ in known), *left], [*(y for _, y in known), *ys])
        for ys in itertools.product([0, 1], repeat=len(left))
    ]
    found = unresolved_bounds(G.from_samples(*map(list, zip(*known, strict=True))), left)
    for name, of in (("Brier score", oc.measures.brier), ("ECE", oc.measures.ece)):
        values = [of(gamma) for gamma in every]
        assert found[name] == pytest.approx((min(values), max(values)), abs=1e-12)


def test_copies_are_cautioned_against_unless_they_are_in_one_cluster(tmp_path):
    """On a grid only where a further column tells rows apart."""
    for header, row, asked, said in (
        ("p,y", "{0:.4f},1", {}, True), ("p,y", "0.5,1", {}, False),
        ("id,p,y", "{1},0.5,1", {"questions": False}, True),
        ("id,p,y", "{1},{0:.4f},1", {"cluster": "id"}, False), ("t,p,y", "{1},{0:.4f},1", {"time": "t"}, True),
    ):  # fmt: skip
        rows = "".join(row.format(0.11235 + i // 2 / 97, i // 2) + "\n" for i in range(60))
        path = written(tmp_path, f"{header}\n{rows}".replace(",1\n", ",0\n", 20))
        found = report_of(str(path), Asked(**asked), NONE)
        assert any("30 of 60 rows are equal" in each for each in found.cautions) is said, (header, asked)


@pytest.mark.parametrize(
    ("interval", "p_value", "there"),
    [((0.01, 1.0), 0.05, True), ((0.01, 1.0), 0.051, False), ((0.0, 1.0), 0.01, False), (None, 0.01, False)],
)
def test_the_worst_task_is_named_where_cdl_is_more_than_chance(
    tmp_path, monkeypatch, interval, p_value, there
):
    """By its interval, and by its p-value at the level of the report."""
    found = measuring.evaluated

    def changed(*given):
        one = found(*given)
        return replace(one, rows=tuple(replace(row, interval=interval, p_value=p_value) for row in one.rows))

    monkeypatch.setattr(measuring, "evaluated", changed)
    (column,) = report(tmp_path, frame(200), Settings(9, measures=("cdl",)), forecasts=("p",)).columns
    assert bool(column.worst_task) is there


def test_a_report_has_a_hundred_thousand_draws_at_most(tmp_path):
    with pytest.raises(InvalidParameter, match=r"draws = 100001; expected an integer from 0 to 10\^5"):
        report(tmp_path, frame(10), Settings(100_001, measures=("brier",)), forecasts=("p",))


def test_rows_without_an_outcome_are_counted(tmp_path):
    (tmp_path / "a.csv").write_text("p,y\n0.5,1\n0.5,0\n0.25,\n,1\n")
    log = read_log(Table(tmp_path / "a.csv"), Asked(skip_missing=True))
    (column,) = measure_log(log, Settings(draws=0)).columns
    (said,) = [caution for caution in column.cautions if "no outcome" in caution]
    assert said == (
        "1 row of 3 with forecasts have no outcome and are not used elsewhere: whatever these outcomes are, all rows "
        "together have the Brier score from 0.1875 to 0.3542 and the ECE from 0.0833 to 0.2500"
    )


def test_digits_follow_errors_and_widths_and_not_rounding(tmp_path):
    """Two candidates of a race have forecasts that sum to 1: the bias of each cluster is 0 but for rounding."""
    rows = list[str]()
    for i, p in enumerate(np.random.default_rng(3).integers(50, 950, 80) / 1000):
        rows += [f"{i},{2018 + i % 2},{p:.3f},1\n", f"{i},{2018 + i % 2},{1 - p:.3f},0\n"]
    path = written(tmp_path, "race,year,p,y\n" + "".join(rows))
    found = report_of(str(path), Asked(by=("year",), cluster="race"), NONE)
    assert all(part.error < 1e-12 for part in found.columns[0].groups)
    assert [row[4] for row in grids(found, found.columns[0])[-1].rows] == ["0.000 ± 0.000"] * 2
    # Rare events have two digits of their error; values two of the width of their interval, at least three of all.
    path = written(tmp_path, "g,p,y\n" + "a,1e-5,0\nb,2e-5,0\n" * 100)
    found = report_of(str(path), Asked(by=("g",)), NONE)
    assert [row[4][-9:] for row in grids(found, found.columns[0])[-1].rows] == ["± 0.00032", "± 0.00045"]
    for low, high, said in (
        (0.199812, 0.200123, "[0.19981, 0.20012]"), (0.139, 0.24, "[0.139, 0.24]"), (0.5, math.inf, "[0.5, inf]"),
        (0.25, 0.25, "0.25"), (0.0, 1e-5, "[0, 1e-05]"),
    ):  # fmt: skip
        assert span(low, high, high - low) == said
    assert (number(0.2, 0.00031), number(0.2, 1e-17), number(0.2)) == ("0.20000", "0.2", "0.2")
    assert (number(-1.8e-17, 0.7), number(1e-5, 0.7), number(1e-17)) == ("0", "1e-05", "1e-17")
