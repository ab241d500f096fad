"""A file that is read in parts, by this machine or by the workers of a cluster, has the report of the whole."""

from functools import partial

import numpy as np
import pandas as pd
import pytest

from onlinecal.core.errors import InvalidData, InvalidParameter, WorkerError
from onlinecal.forecasts import source
from onlinecal.forecasts.inference import holm
from onlinecal.forecasts.measuring import Settings
from onlinecal.forecasts.reading import Asked
from onlinecal.forecasts.source import clustered_report, places_of, report_in_parts, report_of
from onlinecal.forecasts.sums import merged_sums, report_of_sums
from onlinecal.report.measured import decision

FEW = Settings(draws=9, measures=("smooth_ce", "ece", "brier"))


def written(path, n=600, digits=2):
    rng = np.random.default_rng(n)
    p = np.round(rng.random(n), digits)
    frame = pd.DataFrame(
        {"p": p, "q": np.round(0.01 + 0.9 * p, 4), "note": ['a, "b"', "c"] * (n // 2),
         "site": rng.choice(["a", "b c", "d'e"], n), "y": (rng.random(n) < p).astype(int)}
    )  # fmt: skip
    if path.suffix == ".parquet":
        frame.to_parquet(path, row_group_size=n // 10)
    else:
        frame.to_csv(path, index=False)
    return path


def same(one, other):
    """Γ and all that follows from it to the last digit; means of rows up to rounding."""
    assert (one.source, one.outcome, one.rows) == (other.source, other.outcome, other.rows)
    for a, b in zip(one.columns, other.columns, strict=True):
        for name in ("predictions", "counts", "positives"):
            assert getattr(a.gamma, name).tobytes() == getattr(b.gamma, name).tobytes()
        assert str(a.evaluation) == str(b.evaluation)
        assert (a.brier, a.log, a.threshold, a.threshold_p) == (b.brier, b.log, b.threshold, b.threshold_p)
        assert (a.groups, a.cautions) == (b.groups, b.cautions)
    for a, b in zip(one.differences, other.differences, strict=True):
        assert (a.score, a.first, a.second) == (b.score, b.first, b.second)
        assert (a.mean, a.error) == pytest.approx((b.mean, b.error), rel=1e-9)
        assert b.adjusted == pytest.approx(a.adjusted, rel=1e-6, abs=1e-300)


@pytest.mark.parametrize("name", ["f.csv", "f.parquet", "f.csv.gz", "odd ' name.csv"])
def test_parts_and_workers_find_what_is_found_in_memory(tmp_path, name):
    asked, path = Asked(forecasts=("p", "q"), by=("site",)), written(tmp_path / name)
    plain = report_of(str(path), asked, FEW)
    size = 70 if name.endswith("parquet") else 2000
    same(plain, report_in_parts(str(path), asked, FEW, size=size))
    # Of the workers without a cluster; a tree: the sums of some, and then of these.
    named, guessed = source._named(str(path), asked, None, None)
    places = places_of(str(path), 2 * size)
    assert len(places) > 3 or name.endswith(".gz")
    found = [source._sums(str(path), named, FEW, None, None, size, place) for place in places]
    merged = partial(merged_sums, settings=FEW)
    sums = merged([merged(found[:2]), merged(found[2:])]) if len(found) > 2 else merged(found)
    same(plain, report_of_sums(str(path), named, guessed, sums, FEW))


def test_many_predictions_go_to_the_same_grid(tmp_path):
    path = written(tmp_path / "f.csv", 5000, 12)
    settings = Settings(draws=20, measures=("smooth_ce", "ece"), distinct=1000, grid=128)
    plain = report_of(str(path), Asked(forecasts=("p",)), settings).columns[0].evaluation
    # Of no part there are so many.
    for size in (10_000, None):
        parts = report_in_parts(str(path), Asked(forecasts=("p",)), settings, size=size).columns[0].evaluation
        assert parts.refused == ("ece",)
        assert parts.moved == pytest.approx(plain.moved, rel=1e-9)
        for name in ("predictions", "counts", "positives"):
            assert (getattr(parts.gamma, name) == getattr(plain.gamma, name)).all()
        first = next(row for row in plain.rows if row.name == "smooth_ce")
        assert parts.rows[0].interval == pytest.approx(first.interval, rel=1e-9)
    some = Settings(draws=0, measures=("smooth_ce",), distinct=6000)
    assert report_in_parts(str(path), Asked(forecasts=("p",)), some).columns[0].gamma.levels == 5000


def test_what_the_grid_moves_is_no_bias(tmp_path):
    """Forecasts near 0.3 and a share of 0.3 of events: that the grid has 5/16 in their place leads to no advice.

    All 20 draws must be below their median for it: with probability 1e-6. A share of 1/4 is 25 standard deviations.
    """
    for share, advises in ((0.3, False), (0.25, True)):
        y = np.arange(50_000) < share * 50_000
        frame = pd.DataFrame({"p": 0.3 + 1e-7 * (np.arange(50_000) - 25_000.0), "y": y.astype(int)})
        frame.to_parquet(tmp_path / "f.parquet")
        settings = Settings(draws=20, measures=("brier",), distinct=1000, grid=16)
        for parts in (False, True):
            found = report_of(str(tmp_path / "f.parquet"), Asked(("p",)), settings, in_parts=parts)
            assert found.columns[0].advises == advises
            assert "of a grid of 16 steps" in decision(found.columns[0])


@pytest.mark.parametrize("parts", [False, True])
def test_what_is_said_of_per_cent_fits_the_numbers(tmp_path, parts):
    """One slip above 1 does not look like per cent; per cent that are nowhere above 1 might be probabilities."""
    path, settings = tmp_path / "f.csv", Settings(draws=0, measures=("brier",))

    def said_of(cells, percent):
        path.write_text("p,y\n" + "".join(f"{cell},{i % 2}\n" for i, cell in enumerate(cells)))
        try:
            found = report_of(str(path), Asked(("p",), percent=percent), settings, in_parts=parts)
            return " ".join(found.said)
        except InvalidData as error:
            return str(error).replace("'", "")

    assert said_of([0.25, 1.0000001, 0.5], False).endswith("1.0000001; expected a probability in [0, 1]")
    assert said_of([25, 30, 0.5], False).endswith("these look like per cent: --percent")
    assert said_of([25, 130, 50], True).endswith("holds 130; expected per cent from 0 to 100")
    for cells, cautioned in (([0.25, 1.0, 0.5], True), ([0.25, 1.5, 0.5], False), ([0, 0, 0], False)):
        said = said_of(cells, True)
        assert ("caution: no cell of column 'p' is above 1, and --percent divides" in said) == cautioned, said
        assert "caution" not in said_of([x / 2 for x in cells], False)


@pytest.mark.parametrize("kind", ["float32", "bool", "decimal", "dictionary", "text", "nulls", "halves"])
def test_odd_types_of_parquet(tmp_path, kind):
    arrow = pytest.importorskip("pyarrow")
    from decimal import Decimal

    from pyarrow import parquet

    p, y, n = [0.25, 0.5, 0.75, 1.0, 0.5], [0, 1, 1, 1, 0], 5
    columns = {
        "float32": (arrow.array(p, arrow.float32()), arrow.array(y, arrow.int8())),
        "bool": (arrow.array(p), arrow.array([bool(x) for x in y])),
        "decimal": (arrow.array([Decimal(str(x)) for x in p]), arrow.array([Decimal(x) for x in y])),
        "dictionary": (
            arrow.array(list(map(str, p))).dictionary_encode(),
            arrow.array(y).dictionary_encode(),
        ),
        "text": (arrow.array([str(x) for x in p]), arrow.array([("No ", "YES")[x] for x in y])),
        "nulls": (arrow.array([None, *p[1:]]), arrow.array([*y[:4], None])),
        "halves": (arrow.array(np.array(p, np.float16)), arrow.array(y, arrow.uint64())),
    }[kind]
    path = tmp_path / "f.parquet"
    parquet.write_table(arrow.table({"p": columns[0], "y": columns[1]}), path)
    asked = Asked(("p",), "y", "yes" if kind == "text" else None, skip_missing=kind == "nulls")
    kept = slice(1, 4) if kind == "nulls" else slice(n)
    for parts in (False, True):
        found = report_of(str(path), asked, Settings(draws=0, measures=("brier",)), in_parts=parts)
        gamma = found.columns[0].gamma
        wanted = dict.fromkeys(sorted(set(p[kept])), 0.0)
        for value, outcome in zip(p[kept], y[kept], strict=True):
            wanted[value] += outcome
        assert dict(zip(gamma.predictions.tolist(), gamma.positives.tolist(), strict=True)) == wanted


@pytest.mark.parametrize(
    ("names", "wanted"),
    [
        (["a", " a ", "NA", None, "", "b"], {"": 3, "a": 2, "b": 1}),
        ([True, False, True, None, False, True], {"": 1, "False": 2, "True": 3}),
        ([1, 2, 3, 3, 2, 1], {"1": 2, "2": 2, "3": 2}),
        ([1.0, 2.5, float("nan"), 1.0, 2.5, 2.5], {"": 1, "1.0": 2, "2.5": 3}),
        (pd.Categorical(["a", "b", None, "a", "b", "a"]), {"": 1, "a": 3, "b": 2}),
        (["a", "a\0", "b", "a", "a\0", "a\0"], {"a": 2, "a\0": 3, "b": 1}),
    ],
    ids=["text", "bool", "int", "float", "categories", "zeros"],
)
def test_groups_have_the_same_names(tmp_path, names, wanted):
    pd.DataFrame({"p": [0.5] * 6, "y": [0, 1] * 3, "g": names}).to_parquet(tmp_path / "f.parquet")
    asked, settings = Asked(("p",), "y", by=("g",)), Settings(draws=0, measures=("ece",))
    for size in (None, 2):
        found = report_in_parts(str(tmp_path / "f.parquet"), asked, settings, size=size)
        assert {part.name: part.rows for part in found.columns[0].groups} == wanted


def test_groups_of_several_columns_are_all_there_and_corrected_together(tmp_path):
    path = tmp_path / "f.csv"
    frame = pd.read_csv(written(path, 900, 1))
    frame["sex"] = np.where(np.arange(900) % 3, "f", None)
    frame.to_csv(path, index=False)
    settings = Settings(draws=0, measures=("brier",))
    found = report_of(str(path), Asked(("p",), by=("site", "sex")), settings)
    groups = found.columns[0].groups
    assert found.by == "site, sex"
    assert [part.name for part in groups] == ["sex: (empty)", "sex: f", "site: a", "site: b c", "site: d'e"]
    assert [part.adjusted for part in groups] == holm([part.p_value for part in groups])
    alone = [report_of(str(path), Asked(("p",), by=(name,)), settings) for name in ("sex", "site")]
    single = [part for one in alone for part in one.columns[0].groups]
    assert [(p.rows, p.event, p.p_value) for p in groups] == [(p.rows, p.event, p.p_value) for p in single]


@pytest.mark.parametrize(
    ("text", "asked", "words"),
    [
        ("p,y\n", {}, "no rows"),
        ("p,y\n" + "0.5,1\n" * 9 + "45,0\n" * 9, {}, "holds '45'; expected a probability"),
        ("p,y\n" + "0.5,1\n" * 9 + "x,0\n", {}, "line 11: column 'p' is 'x'; expected a number"),
        ("p,y\n" + "0.5,1\n" * 9 + "0.5,2\n", {}, "line 11: column 'y' holds '2'; expected 0 or 1"),
        ("p,y\n" + "0.5,1\n" * 9 + ",0\n", {}, "line 11: column 'p' is missing"),
        ("p,y\n" + "0.5,1\n" * 9 + ",0\n", {"skip_missing": True}, "1 of 10 rows have no forecast"),
        ("p,y\n" + ",1\n" * 9 + ",0\n", {"skip_missing": True}, "no row has both"),
        ("p,y\n" + "0.5,1\n" * 9 + "0.5,no\n", {"positive": "ja"}, "no row of column 'y' holds 'ja'"),
        ("p,y\n" + "0.5,no\n" * 9 + "0.5,Ja\n", {"positive": "ja"}, "outcome 1 is 'ja' in 'y', and 0 is 'no'"),
        ("p,y,t\n0.5,1,1\n", {"time": "t"}, "--time"),
        ("p,y,t\n0.5,1,1\n", {"weight": "t"}, "--weight"),
    ],
)  # fmt: skip
def test_what_is_wrong_or_odd_in_any_part_is_said(tmp_path, text, asked, words):
    path = tmp_path / "f.csv"
    path.write_text(text)
    try:
        said = " ".join(report_in_parts(str(path), Asked(("p",), "y", **asked), FEW, size=20).said)
    except (InvalidData, InvalidParameter) as caught:
        said = str(caught)
    assert words in said
    assert "\n" not in said


def test_what_is_large_or_larger_than_memory_is_read_in_parts(tmp_path, monkeypatch):
    path = written(tmp_path / "f.csv")

    def in_parts(**options):
        return any("in parts" in said for said in report_of(str(path), Asked(("p",)), FEW, **options).said)

    assert not in_parts()
    with monkeypatch.context() as large:
        large.setattr(source, "LARGE_BYTES", 2**10)
        assert in_parts()
        assert not in_parts(in_parts=False)
    monkeypatch.setattr(source, "free_memory", lambda: 1.0)
    assert in_parts()
    with pytest.raises(InvalidData, match="expected no --in-memory"):
        in_parts(in_parts=False)
    with pytest.raises(InvalidData, match="standard input cannot be read in parts"):
        report_of("-", Asked(), FEW, in_parts=True)


def test_nobody_at_the_address(tmp_path, monkeypatch):
    cluster = pytest.importorskip("onlinecal.study.executors.cluster")
    monkeypatch.setattr(cluster, "PATIENCE", 0.3)
    with pytest.raises(WorkerError, match="no Dask scheduler answers"):
        clustered_report(str(written(tmp_path / "f.csv", 10)), Asked(("p",)), FEW, "tcp://127.0.0.1:1")


@pytest.mark.slow
def test_a_cluster_finds_the_report_of_one_machine(tmp_path):
    distributed = pytest.importorskip("distributed")
    asked = Asked(forecasts=("p", "q"), by=("site",))
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None
    ) as cluster:
        for name, size in (("f.csv", 700), ("f.parquet", 50)):
            path = written(tmp_path / name)
            found = clustered_report(str(path), asked, FEW, cluster.scheduler_address, size=size)
            assert len(places_of(str(path), size)) > 8  # a tree of two storeys
            same(found, report_of(str(path), asked, FEW))
        path.with_name("bad.csv").write_text("p,y\n" + "0.5,1\n" * 99 + "45,0\n")
        with pytest.raises(InvalidData, match="holds '45'"):
            clustered_report(
                str(path.with_name("bad.csv")), Asked(), FEW, cluster.scheduler_address, size=100
            )
