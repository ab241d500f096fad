"""The one reader of files: cells as they are written, whole or in pieces; numbers, dates, outcomes; clear refusals."""

import bz2
import csv
import gzip
import io
import lzma
import sys
import zipfile
from collections import Counter
from datetime import datetime

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlinecal.core.errors import InvalidData
from onlinecal.core.files import Table, located, scanned, times, unpacking
from onlinecal.core.members import members_of
from onlinecal.core.rows import _numbers, as_number, as_time, moments


def table(tmp_path, data, name="f.csv", **options):
    (tmp_path / name).write_bytes(data if isinstance(data, bytes) else data.encode())
    return Table(tmp_path / name, **options)


CELLS = st.text(st.sampled_from("ab1. ,;\"'\n\t%é\u0a0a"), max_size=5)


@given(
    rows=st.lists(st.lists(CELLS, min_size=3, max_size=3), min_size=1, max_size=9),
    between=st.sampled_from(",;\t|"),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    end=st.sampled_from(["\n", "\r\n"]),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]),
)
def test_what_is_written_is_read(tmp_path_factory, rows, between, quoting, end, encoding):
    """Python's own writer is the oracle. Rows have their places; cells may be blank at the begin, rows altogether."""
    file = tmp_path_factory.mktemp("t") / "f.csv"
    with file.open("w", encoding=encoding, newline="") as out:
        csv.writer(out, delimiter=between, quoting=quoting, lineterminator=end).writerows(
            [["p", "q", "r"], *rows]
        )
    whole = Table(file, delimiter=between)
    found = [[(cell or "").strip() for cell in row] for row in whole.frame.rows()]
    wanted = [[cell.strip() for cell in row] for row in rows]
    assert whole.columns == ["p", "q", "r"]
    assert dict_of(whole.places, found) == dict_of(range(len(rows)), wanted)
    with scanned(file, delimiter=between) as scan:
        different = scan.different(["r", "p"])
    pairs = [(row[2], row[0]) for row in whole.frame.rows()]
    assert different.places.tolist() == [whole.places[pairs.index(pair)] for pair in dict.fromkeys(pairs)]
    assert dict(zip(different.frame.rows(), different.counts, strict=True)) == Counter(pairs)


def dict_of(places, rows):
    return {int(place): row for place, row in zip(places, rows, strict=True) if any(row)}


@pytest.mark.parametrize(
    ("text", "cells"),
    [
        ('a"b,1\n5" nail,2\n', [('a"b', "1"), ('5" nail', "2")]),
        ('"a" , "b, c"\n', [("a ", "b, c")]),
        ('1, "2"\n', [("1", "2")]),
        ('"a\n",\n', [("a\n", None)]),
        ("1\n\n,2\n\n\n", [("1", None), (None, "2")]),
        ('1\n,\n# a "remark"\n"","2"\n', [("1", None), ("", "2")]),
        ("#1,\n#2,a\n", [("#2", "a")]),
    ],
)
def test_odd_cells(tmp_path, text, cells):
    assert table(tmp_path, "p,y\n" + text).frame.rows() == cells


def test_in_a_single_column_every_line_is_a_row(tmp_path):
    assert table(tmp_path, "p\n1\n\n#2\n").frame.rows() == [("1",), (None,), ("#2",)]


def test_cells_of_parquet_are_texts_as_in_python(tmp_path):
    cells = {"t": datetime(2024, 1, 1), "x": 1e16, "b": True}
    pl.DataFrame({name: [cell] for name, cell in cells.items()}).write_parquet(tmp_path / "a.parquet")
    found = Table(tmp_path / "a.parquet")
    assert {name: found.texts(name) for name in cells} == {name: [str(cell)] for name, cell in cells.items()}


@pytest.mark.parametrize(
    ("data", "options", "said"),
    [
        ("", {}, "f.csv is empty"),
        ("p,y\n1,2\n1,2,\n", {}, "f.csv, line 3 has 3 cells; expected 2"),
        ('p,y\n1,2\n1,"2\n', {}, "is not a CSV file: in line 3 a quotation mark does not end"),
        ("p,y\n1,é\n".encode("latin-1"), {}, "not utf-8 throughout .* --encoding latin-1"),
        ("\n\r\np,y\n1,2\n1,2,\n", {}, "f.csv, line 5 has 3 cells; expected 2"),
        (b"p,y\x00\n1,1\n", {}, "is not a text file"),
        (b"PK\x03\x04\x14\x00\xff", {}, "is not a text file; expected CSV"),
        ("p,y\n", {"encoding": "hex"}, "encoding = 'hex' is not known"),
        ("p,y\n", {"delimiter": ";;"}, "delimiter = ';;'"),
    ],
)
def test_what_is_no_csv_is_refused_with_its_line(tmp_path, data, options, said):
    with pytest.raises(InvalidData, match=said):
        table(tmp_path, data, **options)


@pytest.mark.parametrize(
    ("text", "column", "found"),
    [
        ("p,y,p\n0.5,1,0.25\n", "y", [1.0]), ("p,y,p\n0.5,1,0.25\n", "p", "several columns 'p'; expected one"),
        ("p,y,p\n0.5,1,0.25\n", "p.1", r"no column 'p\.1'"), ("p,y\r0.5,1\r", "p", [0.5]),
        ('\ufeff"p, q", NA\n0.5, 1\n0.25,0\n', "p, q", [0.5, 0.25]),
        ('\ufeff"p, q", NA\n0.5, 1\n0.25,0\n', "NA", [1.0, 0.0]),
        # Between cells that commas divide, 1,200 is refused; elsewhere it is 1.2, as is 0,5 one half everywhere.
        ('p,w\n"0,5",950\n0.5,"1,200"\n', "w", "line 3: column 'w' is '1,200'; expected a number without commas"),
        ('p,w\n"0,5",950\n', "p", [0.5]), ("p;w\n0,5;1,200\n", "w", [1.2]),
        # Lines above the header.
        ("sep=;\np;y\n0.5;1\n0.25;x\n", "p", [0.5, 0.25]), ("sep=;\np;y\n0.5;1\n0.25;x\n", "y", "line 4: .* is 'x'"),
        ("sep=;\np, q;y, r\n0.5;1\n", "p, q", [0.5]),
        ('"sep=|"\r\n\r\np|y\r\n0.5|1\n0.25|x\n', "y", "line 5: .* is 'x'"),
        ("# made, by hand\n#\np,y\n0.5,1\n0.25,x\n", "y", "line 5: .* is 'x'"),
        ("# made by hand\n# p,y\n0.5,1\n0.25,x\n", "# p", [0.5, 0.25]),
        ("# made by hand\n# p,y\n0.5,1\n0.25,x\n", "y", "line 4: .* is 'x'"),
    ],
)  # fmt: skip
def test_columns_of_numbers(tmp_path, text, column, found):
    read = table(tmp_path, text)
    if isinstance(found, str):
        with pytest.raises(InvalidData, match=found):
            read.numbers(column)
    else:
        assert read.numbers(column).tolist() == found


def test_any_character_may_stand_between_cells(tmp_path):
    assert table(tmp_path, "p§y\n0.5§1\n", delimiter="§").numbers("y").tolist() == [1.0]


def test_a_plain_file_is_read_where_it_lies(tmp_path, monkeypatch):
    monkeypatch.setattr("shutil.copyfileobj", lambda *_: pytest.fail("it was copied"))
    assert table(tmp_path, "p\n0.25\n").numbers("p").tolist() == [0.25]


def test_standard_input(monkeypatch):
    given = io.TextIOWrapper(io.BufferedReader(io.BytesIO("p\n0.25\n".encode("utf-16"))))
    monkeypatch.setattr(sys, "stdin", given)
    with scanned("-") as file:
        assert file.rows().numbers("p").tolist() == file.different(["p"]).numbers("p").tolist() == [0.25]


@pytest.mark.parametrize("name", ["f.json", "f.jsonl", "f.NDJSON", "f.jsonl.gz"])
def test_records(tmp_path, name):
    rows = [
        '{"p": 0.5, "y": true, "note": "a"}',
        '{"p": "25%", "y": false}',
        '{"p": null, "y": true, "more": [1, 2]}',
    ]
    text = f"[{','.join(rows)}]" if name == "f.json" else "\n".join(rows)
    found = table(tmp_path, gzip.compress(text.encode()) if name.endswith("gz") else text, name)
    assert found.columns == ["p", "y", "note", "more"]
    assert found.numbers("p", gaps=-1.0, percent=True).tolist() == [0.5, 25.0, -1.0]
    assert found.outcomes("y")[0].tolist() == [1.0, 0.0, 1.0]
    with pytest.raises(InvalidData, match="row 3: column 'p' is missing"):
        found.numbers("p", percent=True)
    with pytest.raises(
        InvalidData, match=r"is not a JSONL? file of records: .*; expected records with names"
    ):
        table(tmp_path, "p,y\n0.5,1\n", name.removesuffix(".gz"))
    several, columns = '{"a": [{"p": 0.5}], "b": [{"p": 1}]}', '{"p": {"0": 0.5}, "y": {"0": 1}}'
    for text in ["[[0.5, 1], [0.25, 0]]", "[0.5, 0.25]", "[]", several, *[columns] * (name == "f.json")]:
        with pytest.raises(InvalidData, match="records with names, as in "):
            table(tmp_path, text, name.removesuffix(".gz"))


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ('[{"p": 0.5, "of": {"a": 1}}]', ["p", "of.a"]), ('{"data": [{"p": 0.5}, {"p": 1}], "more": 3}', ["p"]),
        ('[{"p": 0.5, "of": [{"a": 1}]}, {"p": 1, "of": [{"a": 2}]}]', ["p", "of"]),
    ],
)  # fmt: skip
def test_records_within_records(tmp_path, text, columns):
    """Of one record alone, a list of records is the table."""
    assert table(tmp_path, text, "f.json").columns == columns


def test_lists_and_records_in_cells_are_texts(tmp_path):
    row = '{"p": 0.5, "tags": ["a", "b"], "of": {"whom": {"name": "x"}}}'
    found = table(tmp_path, f'{row}\n{{"p": 0.5, "tags": null}}\n{row}\n', "f.jsonl")
    assert [found.nested(column) for column in found.columns] == [False, True, True]
    assert found.texts("tags") == ["a, b", "", "a, b"]
    assert found.texts("of.whom") == ["{'name': 'x'}", "", "{'name': 'x'}"]


# ---------------------------------------------------------------- numbers and times

NUMBERS = """
1_000 1 \uff11 \uff10.\uff15 0x1p-1 0x1 inf -inf nan NaN +nan -nan None +.5 -.5 5e-1 5E-1 0,5 0. 1e-400 1e400 \u00bd
1,0 true True FALSE . 1e 0.5f 1d0 --.5 + 1/2 0b1 1e0001 0e0 00.5 -0 0,0,1 \u22120.5 \u0660.\u0665 .5% 5\u00a0% \uff15%
1,000 4.9e-324 0.3000000000000000166533453693773481063544750213623046875 infinity 1e-310 9007199254740993 %
"""


def test_a_column_is_its_cells(seed):
    """The quick ways over columns, and the one for each cell: of numbers and of times."""
    words = {"true": 1.0, "false": 0.0}
    texts = ["", *NUMBERS.split(), *(f"{s}.5{s}" for s in map(chr, range(0x110000)) if s.isspace())]
    random = np.random.default_rng(seed)
    texts += [repr(x) for x in random.random(1000) * 10.0 ** random.integers(-320, 300, 1000)]
    values, marked, empty = _numbers(pl.Series(texts))
    read = [as_number(text) for text in texts]
    wanted = [words.get(t.lower(), np.nan) if v is None else v for t, (v, _) in zip(texts, read, strict=True)]
    np.testing.assert_array_equal(values, wanted)
    assert marked
    assert empty.tolist() == [v is not None and v != v for v, _ in read]

    some = ["", "T00:00", " 23:59:59", "T23:59:59.999999Z", "T01:02:03.4+05:30", "T24:00:00", "T12:00:60Z"]
    days = [f"{y}-{m:02}-{d:02}" for y, m, d in random.integers((1850, 1, 1), (2150, 14, 33), (400, 3))]
    for more in (some[:4], some[:5], some, ["", "T12,5"]):
        cells = [day + more[i % len(more)] for i, day in enumerate(days)]
        good = [cell for cell in cells if as_time(cell)[0] is not None]
        for column in (cells, good, ["2024", *cells], ["1", "x"], ["", *good]):
            kind = next((dated for value, dated in map(as_time, column) if value is not None), False)
            wanted = [np.nan if v is None or dated != kind else v for v, dated in map(as_time, column)]
            np.testing.assert_array_equal(moments(pl.Series(column))[0], wanted)


#: a time as it is written, and its value; None where it is no time
WRITTEN = {
    "2024-12-31": 20088, " 2024-12-31 ": 20088, "2024/12/31": 20088, "2024.12.31": 20088, "2024-2-3": 19756,
    "2024-12": 20058, "2024-W52-2": 20081, "2024-12-31T12": 20088.5, "2024-12-31 12:00": 20088.5,
    "2024-12-31t12:00:00": 20088.5, "20241231T120000": 20088.5, "2024-12-31T12:00:00Z": 20088.5,
    "2024-12-31T12:00+00:00": 20088.5, "2024-12-31T18:00+0600": 20088.5, "2024-12-31T06:00 -06:00": 20088.5,
    "2024-12-31T12:00:00.000000999": 20088.5, "2024-12-31T12:00:00,5": 20088 + 43200.5 / 86400,
    "1600-01-01": -135140, "9999-12-31": 2932896, "1735648215": 1735648215, "1735648215.25": 1735648215.25,
    "1.7e9": 1.7e9, "-5": -5, " 5 ": 5, "20241231": 20241231, "2024": 2024,
    **dict.fromkeys([
        "5_0", "inf", "-Infinity", "1e400", "nan", "", "NaT", "now", "today", "soon", "true", "0x10", "5%", "12:30",
        "31.12.2024", "31/12/2024", "12/31/2024", "24-12-31", "31 Dec 2024", "Tue, 31 Dec 2024 12:30:15 GMT",
        "2024-02-30", "2024-366", "2024-12-31T23:59:60", "2024-12-31T12:30:15.", "2024-12-31_12:30",
        "2024-12-31+05:30", "2024-12-31T12:00+24:00", "-2024-01-01", "10000-01-01", "１２３", "２０２４-12-31", "1,5",
    ]),
}  # fmt: skip


def test_times_that_go_back(tmp_path):
    with pytest.raises(
        InvalidData, match="line 4: column 't' goes back in time, from 3 to 2; expected rows in order"
    ):
        times(table(tmp_path, "t\n1\n3\n2\n2\n1\n"), "t")


@pytest.mark.parametrize("written", WRITTEN)
def test_times(tmp_path, written):
    if WRITTEN[written] is not None:
        assert times(table(tmp_path, f't,x\n"{written}",1\n'), "t").tolist() == [WRITTEN[written]]
        return
    with pytest.raises(InvalidData, match="number or a date"):
        times(table(tmp_path, f't,x\n"{written}",1\n'), "t")


def zipped(*files):
    """The bytes of an archive of these files."""
    with io.BytesIO() as made:
        with zipfile.ZipFile(made, "w") as archive:
            for i, file in enumerate(files):
                archive.writestr(f"{i}.csv", file)
        return made.getvalue()


PACKED = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress, "zip": zipped, "GZ": gzip.compress}


@pytest.mark.parametrize("suffix", PACKED)
def test_packed_files_are_unpacked(tmp_path, suffix):
    found = table(tmp_path, PACKED[suffix](b"p,y\n0.5,1\n0.25,0\n"), f"f.csv.{suffix}")
    assert found.numbers("p").tolist() == [0.5, 0.25]


NONE = {
    "f.csv.gz": (gzip.compress(b"p,y\n" + b"0.5,1\n" * 99)[:-30], "cannot be unpacked"),
    "f.parquet": (b"p,y\n0.5,1\n", "is not a Parquet file: "),
    "f.parquet.gz": (gzip.compress(b"PAR1\xff"), "is not a Parquet file"),
    "f.csv.zst": (b"", "cannot be unpacked; expected .gz"),
    "f.csv.zip": (zipped(b"p,y\n", b"p,y\n"), "cannot be unpacked: it holds several files; expected one"),
    "none\0.csv": (None, "no such file, for its name has a NUL"),
    "none.csv": (None, "no such file"), "none.parquet": (None, "no such file"), ".": (None, "is a directory"),
}  # fmt: skip


@pytest.mark.parametrize("name", NONE)
def test_files_that_are_none(tmp_path, name):
    data, said = NONE[name]
    if data is not None:
        (tmp_path / name).write_bytes(data)
    with pytest.raises(InvalidData, match=said) as refused:
        Table(tmp_path / name)
    assert "Error(" not in str(refused.value)


@pytest.mark.parametrize(
    ("error", "said"),
    [(PermissionError(13, "Permission denied"), "Permission denied"), (OSError("odd"), "odd")],
)
def test_files_that_cannot_be_read(error, said):
    with pytest.raises(InvalidData, match=f"^f.csv cannot be read: {said}$"), unpacking("f.csv"):
        raise error


@pytest.mark.parametrize("package", ["nothing_like_this", "math", "a b"])
def test_files_of_packages(package):
    assert located("package:json/decoder.py").read_text().startswith('"""Implementation of JSONDecoder')
    with pytest.raises(InvalidData, match=f"the Python package '{package}' is not installed"):
        located(f"package:{package}/x.csv")


@pytest.mark.parametrize(
    ("words", "numbers", "said"),
    [
        (2, 0, r"'word 1' in 1 row\)$"), (3, 0, "--classes` measures"), (20, 0, "--classes` measures"),
        (21, 0, r"and 13 more\)$"), (21, 2, r"and 15 more\)$"), (22, 0, "more than 20 other words"),
    ],
)  # fmt: skip
def test_words_that_are_no_outcomes_are_labels_or_names(tmp_path, words, numbers, said):
    """Of 3 to 20 words each may be a class; eight are told; 22 are names."""
    cells = [*(f"word {i}" for i in range(words)), *map(str, range(2, 2 + numbers))]
    with pytest.raises(InvalidData, match=said):
        table(tmp_path, "p,y\n" + "".join(f"0.5,{cell}\n" for cell in cells)).outcomes("y")


@pytest.mark.parametrize(
    ("words", "values", "zeros"), [(("0",), [1.0, 0.0], ["1"]), ((None, (), ["1"]), [0.0, np.nan], [])]
)
def test_outcomes_0_and_1_may_be_words_too(tmp_path, words, values, zeros):
    found = table(tmp_path, "p,y\n0.5,0\n0.5,1\n").outcomes("y", *words)
    np.testing.assert_array_equal(found.values, values)
    assert found.zeros == zeros


@pytest.mark.parametrize("labels", [["a", "b", "c"], ["void", "b", "b"]])
def test_several_words_or_an_undecided_one_are_not_0_by_themselves(tmp_path, labels):
    with pytest.raises(InvalidData, match=r"holds, beside 'b', .* in 1 row; expected one word for 0"):
        table(tmp_path, "p,y\n" + "".join(f"0.5,{label}\n" for label in labels)).outcomes("y", "b")


def test_a_sample_is_of_a_thousand_cells(tmp_path):
    assert table(tmp_path, "p,y\n" + "0.5,1\n" * 1001).sample("p") == ["0.5"] * 1000


def test_columns_that_repeat(tmp_path):
    found = table(tmp_path, "a,b\n1,1\n2,1\n3,2\n")
    assert [found.repeats(name) for name in "ab"] == [False, True]


def test_groups_of_all_columns_are_few(tmp_path):
    names, row = [f"c{i}" for i in range(17)], ["1"] * 17
    found = table(tmp_path, f"{','.join(names)}\n{','.join(row)}\n")
    assert [*members_of(found, names[1:]).groups] == names[1:]
    with pytest.raises(InvalidData, match=r"17 groups \(c0, c1, c2, …\); expected at most 16 of all columns"):
        members_of(found, names)
