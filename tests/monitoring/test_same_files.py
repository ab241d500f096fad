"""`watch` reads line by line as `measure` and `recalibrate` read a file, and refuses the same in the same words."""

import bz2
import gzip
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from onlinecal.core.errors import InvalidData, OnlinecalError
from onlinecal.core.files import Table
from onlinecal.logs.reading import Asked, read_log
from onlinecal.monitoring.feed import Feed
from onlinecal.monitoring.monitor import Monitor
from onlinecal.monitoring.watching import watch
from onlinecal.recalibration.files import recalibrate_file

P, Y = [0.25, 0.5, 1.0, 0.125], [1.0, 0.0, 1.0, 0.0]
PAIRS = list(zip(P, Y, strict=True))


def text(cells=None, words=("0", "1"), between=",", end="\n", header=("p", "y", "näme")):
    cells = cells or [repr(p) for p in P]
    rows = [header, *((cell, words[int(y)], "é") for cell, y in zip(cells, Y, strict=True))]
    return end.join(between.join(row) for row in rows) + end


def measured(path, asked):
    """The forecasts and outcomes that `measure` reads."""
    log = read_log(Table(path, delimiter=asked.delimiter, encoding=asked.encoding), asked)
    (forecasts,) = log.forecasts.values()
    return list(zip(forecasts.tolist(), log.outcomes.tolist(), strict=True))


def watched(path, asked):
    """Those of which `watch` tells a monitor."""
    seen, monitor = [], Monitor()
    update = monitor.update

    def noted(p, y):
        seen.extend(zip(np.ravel(p).tolist(), np.ravel(y).tolist(), strict=True))
        return update(p, y)

    monitor.update = noted
    watch(monitor, path, asked)
    return seen


WAYS = measured, watched


SAME = {
    "comma": (text().encode(), "f.csv", {}),
    "semicolon": (text(between=";").encode(), "f.csv", {}),
    "tab": (text(between="\t", end="\r\n").encode("utf-8-sig"), "f.tsv", {}),
    "caret": (text(between="^").encode(), "f.csv", {"delimiter": "^"}),
    "blank lines before": (("\r\n\n" + text()).encode(), "f.csv", {}),
    "decimal comma": (text(["0,25", "0,5", "1", "0,125"], between=";").encode(), "f.csv", {}),
    "True": (text(words=("False", "TRUE")).encode(), "f.csv", {}),
    "1.0": (text(words=("0.0", " 1 ")).encode(), "f.csv", {}),
    "yes": (text(words=("no", "Yes")).encode(), "f.csv", {"positive": "yes"}),
    "per cent": (text(["25%", "50 %", "100%", "12.5%"]).encode(), "f.csv", {"percent": True}),
    "what is between cells, said": (("sep=^\n" + text(between="^")).encode(), "f.csv", {}),
    "remarks": (("# p,y\n" + text() + "# end\n").encode(), "f.csv", {}),
    "a remark as header": (b"# p,y\n0.25,1\n0.5,0\n1,1\n0.125,0\n", "f.csv", {}),
    "gz": (gzip.compress(text().encode(), mtime=0), "f.csv.gz", {}),
    "bz2": (bz2.compress(text().encode()), "f.csv.bz2", {}),
    "other names": (text(header=("a", "b", "c")).encode(), "f.csv", {}),
    "other words": (text(words=("0", "wet"), header=("a", "b", "")).encode(), "f.csv", {"positive": "wet"}),
    "columns": (text(header=("Y_prob", "is correct", "p")).encode(), "f.csv", {"forecasts": ("Y_prob",)}),
}


@pytest.mark.parametrize("way", SAME)
def test_they_read_the_same(tmp_path, way):
    data, name, asked = SAME[way]
    (tmp_path / name).write_bytes(data)
    for read in WAYS:
        assert read(tmp_path / name, Asked(**asked)) == PAIRS


def test_they_refuse_the_same(tmp_path):
    path = tmp_path / "f.csv"
    for data, asked, words in (
        (text(["25", "50", "100", "12.5"]), {}, "these look like per cent: --percent"),
        (text(["25%", "50%", "100%", "12.5%"]), {}, "per cent signs"),
        (text(words=("no", "yes")), {}, "expected 0 or 1"),
        (text(["1_0", "0.5", "1", "0"]), {}, "line 2: column 'p' is '1_0'; expected a number"),
        (text(header=("p", "p", "y")), {"forecasts": ("p",)}, "has several columns 'p'; expected one"),
        (text(header=("1", "2", "3")), {}, "the first line holds numbers"),
        (text().encode("latin-1"), {}, "(invalid continuation byte); expected"),
        (text().encode("utf-16-be"), {"delimiter": ","}, "expected"),
        (text(), {"delimiter": ";;"}, "delimiter = ';;'"),
    ):
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
        for read in WAYS:
            with pytest.raises(OnlinecalError) as caught:
                read(path, Asked(**asked))
            assert words in str(caught.value)
    # Among several columns of forecasts none is guessed where one is asked for.
    path.write_text("p,q,forecast,y\n0.5,0.5,0.5,1\n")
    for read in (watched, lambda *_: recalibrate_file(str(path), tmp_path / "out.csv", "calibeating")):
        with pytest.raises(InvalidData, match="columns 'p', 'forecast' might be the forecasts; expected"):
            read(path, Asked())


def test_files_that_do_not_grow_line_by_line(tmp_path):
    pd.DataFrame({"p": P, "y": Y}).to_parquet(tmp_path / "f.parquet")
    (tmp_path / "f.csv.gz").write_bytes(gzip.compress(text().encode())[:-9])
    for name, follow, words in (
        ("f.parquet", False, "a Parquet file has no lines"),
        ("f.jsonl", False, "a JSONL file has no lines of CSV"),
        ("f.csv.gz", True, "a packed file does not grow"),
        ("f.csv.gz", False, "cannot be unpacked"),
    ):
        with pytest.raises(InvalidData, match=words):
            watch(Monitor(), tmp_path / name, Asked(), follow=follow)


def test_rows_that_are_left_out_or_sorted_stay_in_their_places(tmp_path):
    path, out = tmp_path / "f.csv", tmp_path / "out.csv"
    path.write_text('t^p^y^é^é\n3^.5^yes^NA^"a^b"\n1^.5^no^^\n2^^no^^\n2^.5^^^\n4^.5^yes^^\n', "latin-1")
    asked = Asked(time="t", positive="yes", skip_missing=True, sort=True, delimiter="^", encoding="latin-1")
    made, said = recalibrate_file(str(path), out, "calibeating", asked=asked, measures=["brier"])
    # Asked at 1, 2, 3, 4; the outcome of 2 is not known.
    assert made.forecasts.tolist() == [0.5, 0.25, 0.25, 0.5]
    assert out.read_text("utf-8") == (
        't^p^y^é^é^recalibrated\n3^.5^yes^NA^"a^b"^0.25\n1^.5^no^^^0.5\n2^^no^^^\n2^.5^^^^0.25\n4^.5^yes^^^0.5\n'
    )
    assert "1 of 5 rows have no forecast and are left out" in said
    assert "1 row of 4 without outcome: recalibrated, in no measure" in said
    assert "rows are brought into the order of 't'" in said
    with pytest.raises(OnlinecalError, match="two columns of one name"):
        recalibrate_file(str(path), tmp_path / "out.parquet", "calibeating", asked=asked)


def test_a_positive_word_that_never_occurs_is_refused(tmp_path):
    """Before anything is told; and a word that comes late is waited for."""
    file, state, asked, found = tmp_path / "f.csv", tmp_path / "s", Asked(positive="ja"), []
    file.write_text("p,y\n" + "0,yes\n" * 1000 + "1,no\n" * 1000)
    with pytest.raises(InvalidData, match="no row of column 'y' holds 'ja'; there are: 'no', 'yes'"):
        watch(Monitor(), file, asked, found=found.append, state=state)
    assert found == []
    # The state has taken nothing, so that the word may be mended, and come in the end.
    file.write_text(file.read_text() + "0.5,ja\n")
    monitor = Monitor.load(state)
    assert monitor.events == 0
    watch(monitor, file, replace(asked, positive="Ja ", negative=("no", "yes")), state=state)
    assert monitor.events == 2001


def test_lines_wait_for_the_positive_word_in_any_pieces():
    """With the questions that have no outcome yet, which alone are no reason to wait at the end."""
    late, said = Asked(positive="ja", key="id", negative=("no", "never")), []
    feed = Feed(monitor := Monitor(), "x", late, said.append)
    data = b"id,p,y\n1,0.5,\n2,0.5,no\n\n3,0.5,never\n4,0.5,ja\n1,,no\n5,0.25,no\n"
    for at in range(len(data)):
        feed.take(data[at : at + 1])
        assert (monitor.events > 0) is (at > data.index(b"1,,no") + 4)
        assert (monitor.open > 0) <= (at > data.index(b"ja"))
    whole = Monitor()
    whole.update([0.5, 0.5, 0.5, 0.5, 0.25], [0, 0, 0, 1, 0])
    assert (monitor.events, monitor.log_e) == (5, whole.log_e)
    assert said.count("no line of x holds 'ja' yet; none is taken before one does") == 1
    Feed(monitor := Monitor(), "x", late).take(b"id,p,y\n1,0.5,\n", last=True)
    assert monitor.open == 1
