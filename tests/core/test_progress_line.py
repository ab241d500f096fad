"""The line of progress on a narrow terminal."""

import io
import re
import time

from rich import console as consoles

from onlinecal.core.progress import Progress


def test_the_time_left_is_not_cut_at_80_columns(monkeypatch):
    made = consoles.Console(file=io.StringIO(), width=80, force_terminal=True)
    monkeypatch.setattr(consoles, "Console", lambda **_: made)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    bar = Progress(10**10, shown=True)
    with bar:
        for _ in range(3):
            bar._at = 0.0
            bar.describe("forecast hedging, m = T^(1/3), against a nature with a name that is long")
            time.sleep(0.02)
            bar._at = 0.0
            bar.advance(10**8)
    plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", made.file.getvalue())
    # Before, the columns in front of the text gave way to it, and the line began with "…".
    assert re.search(r"run-rounds/s [\d:-]+ left · forecast hedg", plain)
