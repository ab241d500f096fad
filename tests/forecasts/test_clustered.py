"""A file that the workers of a cluster read in parts has the report of one machine; needs DuckDB and Dask."""

from functools import partial

import numpy as np
import pandas as pd
import pytest

from onlinecal.core.errors import InvalidData, WorkerError
from onlinecal.forecasts import clustered
from onlinecal.forecasts.clustered import Place, clustered_report, facts_of, places_of, sums_of
from onlinecal.forecasts.large import large_report, question_of
from onlinecal.forecasts.measuring import Settings
from onlinecal.forecasts.reading import Asked
from onlinecal.forecasts.sums import merged_facts, merged_sums, report_of_sums

pytest.importorskip("duckdb")
FEW = Settings(draws=9, measures=("smooth_ce", "ece", "brier"))


def written(path, n=600, digits=2):
    rng = np.random.default_rng(n)
    p = np.round(rng.random(n), digits)
    frame = pd.DataFrame(
        {"p": p, "q": np.round(0.01 + 0.9 * p, 4), "note": ['a, "b"', "c"] * (n // 2),
         "site": rng.choice(["a", "b c"], n), "y": (rng.random(n) < p).astype(int)}
    )  # fmt: skip
    if path.suffix == ".parquet":
        frame.to_parquet(path, row_group_size=n // 10)
    else:
        frame.to_csv(path, index=False)
    return path


def same(one, other):
    """Γ and all that follows from it to the last digit; means of rows up to rounding."""
    assert (one.source, one.outcome, one.rows, one.said) == (
        other.source,
        other.outcome,
        other.rows,
        other.said,
    )
    assert one.cautions == other.cautions
    for a, b in zip(one.columns, other.columns, strict=True):
        for name in ("predictions", "counts", "positives"):
            assert getattr(a.gamma, name).tobytes() == getattr(b.gamma, name).tobytes()
        assert str(a.evaluation) == str(b.evaluation)
        assert (a.brier, a.log, a.threshold, a.threshold_p) == (b.brier, b.log, b.threshold, b.threshold_p)
        assert (a.groups, a.cautions) == (b.groups, b.cautions)
    for a, b in zip(one.differences, other.differences, strict=True):
        assert (a.score, a.first, a.second) == (b.score, b.first, b.second)
        assert (a.mean, a.error) == pytest.approx((b.mean, b.error), rel=1e-9)


def in_pieces(path, asked, settings, size):
    """What the workers do, without a cluster."""
    question = question_of(str(path), asked, settings, None)
    places = places_of(question, size)
    facts = merged_facts([facts_of(question, place) for place in places], question.distinct)
    said = facts.judged(question)
    found = [sums_of(question, facts.moved(settings), place) for place in places]
    # A tree: the sums of some, and then of these.
    sums = (
        merged_sums([merged_sums(found[:2]), merged_sums(found[2:])])
        if len(found) > 2
        else merged_sums(found)
    )
    return report_of_sums(question, facts, sums, settings, said), len(places)


@pytest.mark.parametrize("name", ["f.csv", "f.parquet"])
def test_sums_of_pieces_are_those_of_the_whole(tmp_path, monkeypatch, name):
    monkeypatch.setattr(clustered, "ROWS", 100)
    path = written(tmp_path / name)
    asked = Asked(forecasts=("p", "q"), by=("site",))
    found, pieces = in_pieces(path, asked, FEW, 3000)
    assert pieces > 3
    same(found, large_report(str(path), asked, FEW))


def test_columns_go_to_the_grid_by_what_is_in_all_pieces(tmp_path):
    path = written(tmp_path / "f.csv", digits=6)
    settings = Settings(draws=0, measures=("smooth_ce",), distinct=300, grid=64)
    found, pieces = in_pieces(path, Asked(forecasts=("p",)), settings, 4000)
    assert pieces > 3
    # Of no piece there are so many.
    whole = large_report(str(path), Asked(forecasts=("p",)), settings)
    assert found.columns[0].gamma.levels == whole.columns[0].gamma.levels <= 65
    assert found.columns[0].evaluation.moved == pytest.approx(whole.columns[0].evaluation.moved, rel=1e-12)


def test_cuts_at_every_byte_lose_no_line_and_double_none(tmp_path):
    path = tmp_path / "f.csv"
    path.write_bytes(b"p,y\n0.5,1\n0.25,0\n\n0.125,1")
    size = path.stat().st_size
    header, lines = b"p,y\n", [b"0.5,1\n", b"0.25,0\n", b"\n", b"0.125,1"]
    for cut in range(1, size):
        pieces = []
        for place in (Place(0, cut, False), Place(cut, size, False)):
            clustered._cut(path, place, tmp_path / "piece")
            pieces.append((tmp_path / "piece").read_bytes())
        assert pieces[1].startswith(header)
        assert pieces[0] + pieces[1].removeprefix(header) == header + b"".join(lines)


def test_a_cell_that_holds_the_end_of_a_line_is_not_cut(tmp_path):
    path = tmp_path / "f.csv"
    path.write_text("p,y,note\n" + '0.5,1,"a\nb"\n' * 50)
    question = question_of(str(path), Asked(), FEW, None)
    with pytest.raises(InvalidData, match="cannot be cut between lines"):
        list(map(partial(facts_of, question), places_of(question, 37)))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("p,y\n", "no rows"),
        ("p,y\n" + "0.5,1\n" * 9 + "45,0\n" * 9, "holds 45; expected a probability"),
        ("p,y\n" + "0.5,1\n" * 9 + "x,0\n", "holds 'x'; expected a number"),
        ("p,y\n" + "0.5,1\n" * 9 + "0.5,2\n", "holds '2'; expected 0 or 1"),
        ("p,y\n" + "0.5,1\n" * 9 + ",2\n,1\n", "expected 0 or 1"),
        ("p,y\n" + "0.5,1\n" * 9 + ",0\n", "1 cells of forecasts or outcomes are missing"),
    ],
)
def test_what_is_wrong_anywhere_is_said(tmp_path, text, words):
    path = tmp_path / "f.csv"
    path.write_text(text)
    with pytest.raises(InvalidData) as caught:
        in_pieces(path, Asked(forecasts=("p",), outcome="y"), FEW, 20)
    assert words in str(caught.value)


def test_nobody_at_the_address(tmp_path, monkeypatch):
    cluster = pytest.importorskip("onlinecal.study.executors.cluster")
    monkeypatch.setattr(cluster, "PATIENCE", 0.3)
    with pytest.raises(WorkerError, match="no Dask scheduler answers"):
        clustered_report(
            str(written(tmp_path / "f.csv", 10)), Asked(forecasts=("p",)), FEW, "tcp://127.0.0.1:1"
        )


@pytest.mark.slow
def test_a_cluster_finds_the_report_of_one_machine(tmp_path, monkeypatch):
    distributed = pytest.importorskip("distributed")
    monkeypatch.setattr(clustered, "ROWS", 50)
    asked = Asked(forecasts=("p", "q"), by=("site",))
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None
    ) as cluster:
        for name in ("f.csv", "f.parquet"):
            path = written(tmp_path / name)
            found = clustered_report(str(path), asked, FEW, cluster.scheduler_address, bytes_at_once=700)
            assert (
                len(places_of(question_of(str(path), asked, FEW, None), 700)) > 8
            )  # a tree of two storeys, of CSV
            same(found, large_report(str(path), asked, FEW))
        path.with_name("bad.csv").write_text("p,y\n" + "0.5,1\n" * 99 + "45,0\n")
        with pytest.raises(InvalidData, match="holds 45"):
            clustered_report(
                str(path.with_name("bad.csv")), Asked(), FEW, cluster.scheduler_address, bytes_at_once=100
            )
