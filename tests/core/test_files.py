"""Files with columns: which column is which."""

import io
import signal

import pandas as pd
import pytest

from onlinecal.core.errors import InvalidData
from onlinecal.core.files import Table
from onlinecal.forecasts.sheet import Sheet


def table(tmp_path, text):
    path = tmp_path / "f.csv"
    path.write_text(text)
    return Table(path)


def test_a_doubled_column_is_refused_and_keeps_its_name(tmp_path):
    doubled = table(tmp_path, "p,y,p\n0.5,1,0.25\n")
    assert doubled.numbers("y").tolist() == [1.0]
    with pytest.raises(InvalidData, match="several columns 'p'; expected one"):
        doubled.numbers("p")
    with pytest.raises(InvalidData, match=r"no column 'p\.1'"):
        doubled.numbers("p.1")
    assert table(tmp_path, "p,p.1\n0.5,0.25\n").numbers("p.1").tolist() == [0.25]


@pytest.mark.parametrize("rows", ["0.5,1,\n0.25,0,\n", "0.5,1\n0.25,0,7\n"])
def test_rows_with_more_cells_than_the_header_move_no_column(tmp_path, rows):
    with pytest.raises(InvalidData, match="Expected 2 fields in line"):
        table(tmp_path, "p,y\n" + rows)


def test_a_name_may_be_a_word_for_nothing_and_stand_in_quotes(tmp_path):
    there = table(tmp_path, '\ufeff"p, q", NA\n0.5, 1\n0.25,0\n')
    assert there.numbers("p, q").tolist() == [0.5, 0.25]
    assert there.numbers("NA").tolist() == [1.0, 0.0]
    with pytest.raises(InvalidData, match="line 3: column 'y' is 'x'"):
        table(tmp_path, "p,y\n0,1\n1,x\n").numbers("y")


@pytest.mark.parametrize("read", [Table, lambda path: Sheet(str(path))], ids=["a table", "a sheet"])
def test_an_interrupt_while_a_file_is_read_is_no_fault_of_the_file(tmp_path, monkeypatch, read):
    """It comes in the middle of pandas' parser, at the end of whose reading Python's own handler is back."""
    (tmp_path / "a.csv").write_text("p,y\n" + "0.5,1\n" * 100_000)
    before = pd.read_csv

    class Interrupted(io.StringIO):
        def read(self, *size):
            signal.raise_signal(signal.SIGINT)
            return super().read(*size)

    monkeypatch.setattr(
        pd, "read_csv", lambda source, **options: before(Interrupted("0.5,1\n" * 10), **options)
    )
    # Also in a process that was started without this handler, as in the background of a shell.
    before_it = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            read(tmp_path / "a.csv")
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before_it)
