"""Progress: the bar of a narrow terminal, lines in a file, and a clock while a single measure takes long."""

import io
import re
import sys
import time

import pytest
from rich import console as consoles

import onlinecal as oc
from onlinecal.core import progress
from onlinecal.core.progress import Progress, _rate, _time


def test_a_terminal_of_80_columns_has_a_bar_with_the_time_left(monkeypatch):
    made = consoles.Console(file=io.StringIO(), width=80, force_terminal=True)
    monkeypatch.setattr(consoles, "Console", lambda **_: made)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    with Progress(10**10, shown=True) as bar:
        for _ in range(3):
            bar.describe("forecast hedging, m = T^(1/3), against a nature with a name that is long")
            time.sleep(0.02)
            bar.advance(10**8)
    plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", made.file.getvalue())
    assert re.search(r" 3 %.*run-rounds/s, \d+ (s|min|h) left · forecast hedg", plain)


@pytest.mark.parametrize(("shown", "lines"), [(None, 3), (True, 4), (False, 0)])
def test_a_file_has_a_line_now_and_then(monkeypatch, shown, lines):
    now = [100.0]
    monkeypatch.setattr(progress.time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with Progress(1000, shown) as bar:
        bar.describe("a vs b")
        for _ in range(100):
            now[0] += 1.0
            bar.advance(10)
    said = sys.stderr.getvalue().splitlines()
    assert len(said) == lines
    assert all(re.fullmatch(r"90 %, 10 run-rounds/s, 10 s left · a vs b", line) for line in said[-1:])


def test_on_a_terminal_a_bar_comes_after_two_seconds_and_the_time_left_after_a_fiftieth(monkeypatch):
    now, shown = [100.0], []
    monkeypatch.setattr(progress.time, "perf_counter", lambda: now[0])
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setattr(Progress, "_show_on_terminal", lambda bar: shown.append((now[0], bar._so_far())))
    bar = Progress(1000)
    for now[0], work in ((101.9, 19), (102.0, 1), (102.1, 1)):
        bar.advance(work)
    assert shown == [(102.0, "2 %, 10 run-rounds/s"), (102.1, "2 %, 10 run-rounds/s, 98 s left")]


@pytest.mark.parametrize("ticks", [False, True])
def test_a_single_slow_measure_shows_progress_by_a_clock(monkeypatch, ticks):
    """The clock looks twice a second; without it nothing is said before the measure is there."""
    monkeypatch.setattr(progress, "EVERY", 0.1)
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    monkeypatch.setattr(
        "onlinecal.logs.evaluated.Progress", lambda *a, **o: Progress(*a, **o | {"ticks": ticks})
    )
    seen = []

    def slow(gamma):
        until = time.monotonic() + (20.0 if ticks else 1.5)
        while time.monotonic() < until and not sys.stderr.getvalue():
            time.sleep(0.05)
        seen.append(sys.stderr.getvalue())
        return 0.25

    assert oc.evaluate([0.2, 0.8], [0, 1], measures=[slow])["slow"] == 0.25
    assert seen == ["0 % · slow\n" if ticks else ""]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (_rate, {0.784: "0.78", 9.94: "9.9", 9.96: "10", 9990: "9990", 1e4: "10 k", 99_400: "99 k", 2e6: "2.0 M",
                 1e5: "0.1 M"}),
        (_time, {0.4: "0 s", 99: "99 s", 100: "2 min", 5970: "100 min", 6000: "2 h", 9000: "2 h", 12_601: "4 h"}),
    ],
)  # fmt: skip
def test_rates_and_times_have_two_digits_or_three(words, said):
    assert {value: words(value) for value in said} == said
