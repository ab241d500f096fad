"""Files that are read in parts say what is said of them in memory; needs DuckDB (the extra 'large')."""

import builtins
import math

import numpy as np
import pandas as pd
import pytest

from onlinecal.core.errors import InvalidData, InvalidParameter
from onlinecal.forecasts import large, source
from onlinecal.forecasts.cells import SPACES
from onlinecal.forecasts.inference import holm
from onlinecal.forecasts.measuring import Settings
from onlinecal.forecasts.reading import Asked, read_log
from onlinecal.forecasts.sheet import Sheet
from onlinecal.forecasts.source import report_of
from onlinecal.report.measured import decision

FAST = ("smooth_ce", "ece", "brier")


def both(path, asked, settings):
    return [report_of(str(path), asked, settings, in_parts=parts) for parts in (False, True)]


def table(n, digits):
    rng = np.random.default_rng(n)
    p = rng.random(n)
    p = p if digits is None else np.round(p, digits)
    return pd.DataFrame(
        {"p": p, "q": np.round(0.01 + 0.9 * p, 6), "site": rng.choice(["a", "b c", "d'e"], n),
         "y": (rng.random(n) < p).astype(int)}
    )  # fmt: skip


@pytest.mark.parametrize("name", ["f.csv", "f.parquet", "f.csv.gz", "odd ' name.csv"])
def test_few_predictions_give_the_same_report(tmp_path, name):
    pytest.importorskip("duckdb")
    frame, path = table(2000, 2), tmp_path / name
    frame.to_parquet(path) if name.endswith("parquet") else frame.to_csv(path, index=False)
    plain, parts = both(path, Asked(forecasts=("p", "q"), by=("site",)), Settings(draws=20, measures=FAST))
    assert plain.rows == parts.rows
    for a, b in zip(plain.columns, parts.columns, strict=True):
        assert str(a.evaluation) == str(b.evaluation)
        assert (a.brier, a.log, a.threshold, a.threshold_p) == (b.brier, b.log, b.threshold, b.threshold_p)
        assert a.groups == b.groups
        assert a.cautions == b.cautions
    assert [(d.score, d.first, d.second) for d in plain.differences] == [
        (d.score, d.first, d.second) for d in parts.differences
    ]
    for a, b in zip(plain.differences, parts.differences, strict=True):
        assert b.mean == pytest.approx(a.mean, rel=1e-9)
        assert b.error == pytest.approx(a.error, rel=1e-9)
        assert b.adjusted == pytest.approx(a.adjusted, rel=1e-6, abs=1e-300)


def test_texts_that_differ_by_a_zero_at_their_end_are_different(tmp_path):
    pytest.importorskip("duckdb")
    path = tmp_path / "f.csv"
    pd.DataFrame({"p": 0.25, "g": ["a", "a\0", "b"], "y": [1, 0, 0], "z": ["1", "1\0", "0"]}).to_csv(
        path, index=False
    )
    for report in both(path, Asked(("p",), "y", by=("g",)), Settings(draws=0, measures=("brier",))):
        assert [(part.name, part.rows) for part in report.columns[0].groups] == [
            ("a", 1),
            ("a\0", 1),
            ("b", 1),
        ]
    for parts in (False, True):
        with pytest.raises(InvalidData, match="expected 0 or 1"):
            report_of(str(path), Asked(("p",), "z"), Settings(draws=0), in_parts=parts)


def test_many_predictions_go_to_the_same_grid(tmp_path):
    pytest.importorskip("duckdb")
    path = tmp_path / "f.csv"
    table(5000, None).to_csv(path, index=False)
    settings = Settings(draws=20, measures=("smooth_ce", "ece"), distinct=1000, grid=128)
    plain, parts = both(path, Asked(forecasts=("p",)), settings)
    a, b = plain.columns[0].evaluation, parts.columns[0].evaluation
    assert b.refused == ("ece",)
    assert b.moved[0] == 128
    assert b.moved[1] == pytest.approx(a.moved[1], rel=1e-9)
    assert (b.gamma.predictions == a.gamma.predictions).all()
    assert (b.gamma.counts == a.gamma.counts).all()
    assert (b.gamma.positives == a.gamma.positives).all()
    first = next(row for row in a.rows if row.name == "smooth_ce")
    assert b.rows[0].interval == pytest.approx(first.interval, rel=1e-9)
    # Between the two numbers they are counted to the last one, in memory and in parts.
    some = Settings(draws=0, measures=("smooth_ce",), distinct=6000)
    assert both(path, Asked(forecasts=("p",)), some)[1].columns[0].gamma.levels == 5000


def test_what_the_grid_moves_is_no_bias(tmp_path):
    """Forecasts near 0.3 and a share of 0.3 of events: that the grid has 5/16 in their place leads to no advice.

    All 20 draws must be below their median for it: with probability 1e-6. A share of 1/4 is 25 standard deviations.
    """
    pytest.importorskip("duckdb")
    for share, advises in ((0.3, False), (0.25, True)):
        y = np.arange(50_000) < share * 50_000
        frame = pd.DataFrame({"p": 0.3 + 1e-7 * (np.arange(50_000) - 25_000.0), "y": y.astype(int)})
        frame.to_parquet(tmp_path / "f.parquet")
        settings = Settings(draws=20, measures=("brier",), distinct=1000, grid=16)
        for found in both(tmp_path / "f.parquet", Asked(forecasts=("p",)), settings):
            assert found.columns[0].advises == advises
            assert "of a grid of 16 steps" in decision(found.columns[0])


def test_words_per_cent_and_missing_rows(tmp_path):
    pytest.importorskip("duckdb")
    path = tmp_path / "f.csv"
    path.write_text("p;r\n25;yes\n ;no\n50;\n75;No\n100;YES\n")
    asked = Asked(outcome="r", forecasts=("p",), positive="YES", percent=True, skip_missing=True)
    plain, parts = both(path, Asked(**{**vars(asked), "positive": "yes"}), Settings(draws=0, measures=FAST))
    assert parts.rows == plain.rows == 3
    assert "2 of 5 rows have no forecast or outcome and are left out" in parts.said
    assert parts.columns[0].gamma.predictions.tolist() == [0.25, 0.75, 1.0]


@pytest.mark.parametrize(
    ("text", "words", "asked"),
    [
        ("p,y\n", "no rows", {}),
        (
            "p,y\n0.5,1\n1.5,0\n",
            "holds 1.5; expected a probability in [0, 1]",
            {"forecasts": ("p",)},
        ),
        ("p,y\n0.5,1\nx,0\n", "holds 'x'; expected a number", {"forecasts": ("p",)}),
        ("p,y\n0.5,1\n0.5,perhaps\n", "holds 'perhaps'; expected 0 or 1, or --positive", {}),
        ("p,y\n0.5,1\n0.5,0\n", "no row of column 'y' holds 'ja'", {"positive": "ja", "outcome": "y"}),
        ("p,y\n0.5,1\n,0\n", "--skip-missing", {}),
        ("p,y\n,1\n,0\n", "no row has both", {"skip_missing": True, "forecasts": ("p",)}),
        ("p,y\n0.5,1\n" + "0.5,1\n" * 3000 + "0.5,1,7\n", "cannot be read in parts", {}),
    ],
)
def test_bad_input_is_one_line(tmp_path, text, words, asked):
    pytest.importorskip("duckdb")
    path = tmp_path / "f.csv"
    path.write_text(text)
    with pytest.raises(InvalidData) as error:
        report_of(str(path), Asked(**asked), Settings(draws=0), in_parts=True)
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_decimal_commas_per_cent_signs_and_odd_texts_are_read_as_in_memory(tmp_path):
    """What only a text can be; and an underscore, which the engine would read as Python does."""
    pytest.importorskip("duckdb")
    path = tmp_path / "f.csv"
    path.write_text('p;y\n"12,5";1.0\n 37,5 % ;FALSE\n50;true\n6.25%;0\n')
    plain, parts = both(path, Asked(forecasts=("p",), percent=True), Settings(draws=0, measures=FAST))
    assert parts.columns[0].gamma.predictions.tolist() == [0.0625, 0.125, 0.375, 0.5]
    assert parts.columns[0].gamma.positives.tolist() == plain.columns[0].gamma.positives.tolist()
    path.write_text("p,y\n50%,1\n")
    for asked in (Asked(forecasts=("p",)), Asked(forecasts=("p",), percent=True)):
        path.write_text("p,y\n50%,1\n" if not asked.percent else "p,y\n5_0,1\n")
        for parts in (False, True):
            with pytest.raises(InvalidData, match="per cent signs" if not asked.percent else "holds '5_0'"):
                report_of(str(path), asked, Settings(draws=0), in_parts=parts)
    path.write_text("p,y\n0.5,0_1\n0.2,0\n")
    for parts in (False, True):
        with pytest.raises(InvalidData, match="holds '0_1'; expected 0 or 1"):
            report_of(str(path), Asked(outcome="y"), Settings(draws=0), in_parts=parts)


@pytest.mark.parametrize("parts", [False, True])
def test_what_is_said_of_per_cent_fits_the_numbers(tmp_path, parts):
    """One slip above 1 does not look like per cent; per cent that are nowhere above 1 might be probabilities."""
    pytest.importorskip("duckdb")
    path, settings = tmp_path / "f.csv", Settings(draws=0, measures=("brier",))

    def said_of(cells, percent):
        path.write_text("p,y\n" + "".join(f"{cell},{i % 2}\n" for i, cell in enumerate(cells)))
        try:
            return " ".join(
                report_of(str(path), Asked(("p",), percent=percent), settings, in_parts=parts).said
            )
        except InvalidData as error:
            return str(error).replace("'", "")

    assert said_of([0.25, 1.0000001, 0.5], False).endswith(
        "holds 1.0000001; expected a probability in [0, 1]"
    )
    assert said_of([25, 30, 0.5], False).endswith("these look like per cent: --percent")
    assert said_of([25, 130, 50], True).endswith("holds 130; expected per cent from 0 to 100")
    for cells, cautioned in (([0.25, 1.0, 0.5], True), ([0.25, 1.5, 0.5], False), ([0, 0, 0], False)):
        said = said_of(cells, True)
        assert ("caution: no cell of column 'p' is above 1, and --percent divides" in said) == cautioned, said
        assert "caution" not in said_of([x / 2 for x in cells], False)


NUMBERS = """
1_000 1 \uff11 \uff10.\uff15 0x1p-1 0x1 inf -inf nan NaN +nan None +.5 -.5 5e-1 5E-1 0,5 0. 1e-400 1e400 \u00bd 1,0
True . 1e 0.5f 1d0 --.5 + 1/2 0b1 1e0001 0e0 00.5 -0 0,0,1 \u22120.5 \u0660.\u0665 .5% 5\u00a0% \uff15% 1,000
4.9e-324 0.3000000000000000166533453693773481063544750213623046875
"""


@pytest.mark.parametrize(
    ("positive", "percent"), [(None, False), (None, True), ("yes", False), ("5%", False), ("5", False)]
)
def test_every_text_is_the_same_number_or_none_in_memory_and_in_parts(tmp_path, positive, percent):
    """What one reader takes the other takes, and what one refuses the other refuses: as forecasts, and as outcomes."""
    pytest.importorskip("duckdb")
    assert {space for space in map(chr, range(0x110000)) if space.isspace()} == set(SPACES)
    spaced = [f"{space}.5{space}" for space in (*SPACES, "\u200b", "\ufeff") if space not in "\r\n"]
    texts = ["", *NUMBERS.split(), *spaced]
    texts += [f"{space}{word}" for word in ("1", "nan", "yes", "%") for space in ("", " ", "\t", "\u00a0")]
    path, asked = tmp_path / "f.csv", Asked(("p",), "y", positive, percent=percent, skip_missing=True)

    def in_memory(line):
        """The number in the last line; None where it is refused, NaN where it is missing."""
        path.write_text(f"p;y\n.25;{positive or 0}\n{line}\n")
        try:
            log = read_log(Sheet(str(path)), asked)
        except InvalidData:
            return None
        values = log.outcomes if line.startswith(".25") else log.forecasts["p"]
        return float(values[1]) + 0.0 if log.rows == 2 else math.nan

    path.write_text("p;y\n0.25;yes\n")
    question = large.question_of(str(path), asked, Settings(), None)
    with large.engine_of("f.csv") as engine:
        engine.register("cells", pd.DataFrame({"c0": texts, "c1": texts}))
        piece = large.Piece(engine, question, "cells")
        found = engine.execute(
            f"SELECT {piece.number('p')}, {large.nothing('c0')}, {piece.event()}, {large.nothing('c1')} FROM cells"
        ).fetchall()
    for text, (p, no_p, y, no_y) in zip(texts, found, strict=True):
        p = p if p is None or 0.0 <= p <= 1.0 else None
        lines = f"{text};{positive or 1}", f".25;{text}"
        for line, value, missing in zip(lines, (p, y), (no_p, no_y), strict=True):
            wanted = math.nan if missing else None if value is None else value + 0.0
            assert repr(in_memory(line)) == repr(wanted), (text, line)


@pytest.mark.parametrize("kind", ["float32", "bool", "decimal", "dictionary", "text", "nulls", "halves"])
def test_odd_types_of_parquet_are_read_as_in_memory(tmp_path, kind):
    pytest.importorskip("duckdb")
    arrow = pytest.importorskip("pyarrow")
    from decimal import Decimal

    from pyarrow import parquet

    p, y, n = [0.25, 0.3, 0.75, 1.0, 0.3], [0, 1, 1, 1, 0], 5
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
    asked = Asked(
        forecasts=("p",),
        outcome="y",
        skip_missing=kind == "nulls",
        positive="yes" if kind == "text" else None,
    )
    plain, parts = both(path, asked, Settings(draws=0, measures=FAST))
    assert plain.rows == parts.rows == n - 2 * (kind == "nulls")
    one, other = plain.columns[0].gamma, parts.columns[0].gamma
    assert one.predictions.tolist() == other.predictions.tolist()
    assert one.counts.tolist() == other.counts.tolist()
    assert one.positives.tolist() == other.positives.tolist()


@pytest.mark.parametrize(
    "names",
    [
        ["a", " a ", "NA", None, "", "b"],
        [True, False, True, None, False, True],
        [1, 2, 3, 3, 2, 1],
        [1.0, 2.5, float("nan"), 1.0, 2.5, 2.5],
        pd.to_datetime(["2024-01-01", "2024-01-02"] * 3),
        pd.Categorical(["a", "b", None, "a", "b", "a"]),
    ],
    ids=["text", "bool", "int", "float", "dates", "categories"],
)
def test_groups_have_the_same_names(tmp_path, names):
    pytest.importorskip("duckdb")
    pd.DataFrame({"p": [0.5] * 6, "y": [0, 1] * 3, "g": names}).to_parquet(tmp_path / "f.parquet")
    asked = Asked(forecasts=("p",), outcome="y", by=("g",))
    plain, parts = both(tmp_path / "f.parquet", asked, Settings(draws=0, measures=("ece",)))
    assert plain.columns[0].groups == parts.columns[0].groups


def test_groups_of_several_columns_are_all_there_and_corrected_together(tmp_path):
    """Each row as if its column were the only one, but for the correction, which is for all rows of the table."""
    pytest.importorskip("duckdb")
    frame = table(900, 1)
    frame["sex"] = np.where(np.arange(900) % 3, "f", None)
    frame.to_parquet(tmp_path / "f.parquet")
    settings = Settings(draws=0, measures=("brier",))
    plain, parts = both(tmp_path / "f.parquet", Asked(("p",), by=("site", "sex")), settings)
    assert plain.by == parts.by == "site, sex"
    groups = plain.columns[0].groups
    assert groups == parts.columns[0].groups
    assert [part.name for part in groups] == ["sex: (empty)", "sex: f", "site: a", "site: b c", "site: d'e"]
    assert [part.adjusted for part in groups] == holm([part.p_value for part in groups])
    alone = [both(tmp_path / "f.parquet", Asked(("p",), by=(name,)), settings)[0] for name in ("sex", "site")]
    single = [part for found in alone for part in found.columns[0].groups]
    assert [(p.rows, p.event, p.p_value) for p in groups] == [(p.rows, p.event, p.p_value) for p in single]
    with pytest.raises(InvalidParameter, match="'sex' is asked for twice"):
        both(tmp_path / "f.parquet", Asked(("p",), by=("sex", "sex")), settings)


def test_a_large_file_is_read_in_parts_unless_its_rows_are_needed(tmp_path, monkeypatch):
    pytest.importorskip("duckdb")
    frame = table(500, 2)
    frame["t"] = range(500)
    frame.to_parquet(tmp_path / "f.parquet")
    frame.to_csv(tmp_path / "f.csv", index=False)
    (tmp_path / "odd.csv").write_text("p,y\n" + "0.5,1\n0.25,0\n" * 600 + "half,1\n")
    for name, limit in (("ROWS", 499), ("BYTES", 2**10)):
        monkeypatch.setattr(source, name, limit)
    settings = Settings(draws=0, measures=("ece",))

    def in_parts(name, asked=Asked(forecasts=("p",)), **options):
        return any(
            "in parts" in said for said in report_of(str(tmp_path / name), asked, settings, **options).said
        )

    for name in ("f.parquet", "f.csv"):
        assert in_parts(name)
        assert not in_parts(name, in_parts=False)
        assert not in_parts(name, Asked(forecasts=("p",), time="t"))
    assert not in_parts("f.csv", encoding="latin-1")
    # What cannot be read in parts is refused with its line, as in memory.
    with pytest.raises(InvalidData, match="line 1202: column 'p' holds 'half'"):
        in_parts("odd.csv")
    monkeypatch.setattr(source, "ROWS", 500)
    assert not in_parts("f.parquet")
    monkeypatch.setattr(source, "free_memory", lambda: 1.0)
    with pytest.raises(InvalidData, match="expected no --in-memory"):
        in_parts("f.parquet", in_parts=False)


def test_the_queries_do_not_grow_with_the_columns(tmp_path):
    """Facts, the different forecasts and the pairs of all columns together: a pass each, and one of each column."""
    pytest.importorskip("duckdb")
    frame = pd.DataFrame({f"p{i}": [0.25, 0.5 + 0.01 * i] for i in range(5)} | {"y": [0, 1]})
    frame.to_parquet(tmp_path / "f.parquet")
    asked, path = Asked(tuple(f"p{i}" for i in range(5))), str(tmp_path / "f.parquet")
    with large.engine_of(path) as engine:
        asked_of = []

        class Counting:
            def execute(self, query):
                asked_of.append(query)
                return engine.execute(query)

        question = large.question_of(path, asked, Settings(), None)
        piece = large.Piece(Counting(), question, question.table(path))
        facts = piece.facts()
        assert len(asked_of) == 2
        assert [values.tolist() for values in facts.different] == [[0.25, 0.5 + 0.01 * i] for i in range(5)]
        piece.sums((False,) * 5)
        assert len(asked_of) == 2 + 5 + 1


def test_what_needs_rows_is_refused(tmp_path):
    (tmp_path / "f.csv").write_text("p,y,t\n0.5,1,1\n")
    for asked, word in ((Asked(time="t"), "--time"), (Asked(weight="t"), "--weight")):
        with pytest.raises(InvalidParameter, match=word):
            report_of(str(tmp_path / "f.csv"), asked, Settings(), in_parts=True)


def test_ctrl_c_while_a_query_runs_is_ctrl_c():
    """The engine tells it in two ways of its own, neither of which is a fault of the file."""
    duckdb = pytest.importorskip("duckdb")
    for told in (duckdb.InterruptException("Interrupted!"), RuntimeError("Query interrupted")):
        with pytest.raises(KeyboardInterrupt), large.engine_of("f.csv"):
            raise told
    with pytest.raises(RuntimeError, match="something else"), large.engine_of("f.csv"):
        raise RuntimeError("something else")


def test_without_the_engine_it_is_said_what_to_install(tmp_path, monkeypatch):
    (tmp_path / "f.csv").write_text("p,y\n0.5,1\n")
    real = builtins.__import__

    def without(name, *given, **options):
        if name == "duckdb":
            raise ImportError(name)
        return real(name, *given, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(InvalidData, match="install duckdb"):
        report_of(str(tmp_path / "f.csv"), Asked(), Settings(), in_parts=True)
