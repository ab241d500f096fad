"""Progress: the bar of a narrow terminal, lines in a file, and a clock while a single measure takes long."""

import io
import re
import sys
import time

import pytest

import onlinecal as oc
from onlinecal.core import progress
from onlinecal.core.progress import Progress
from onlinecal.report.totals import totals
from onlinecal.study.copies import merge
from tests.results import cells, played, study


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


@pytest.mark.parametrize("ticks", [False, True])
def test_a_single_slow_measure_shows_progress_by_a_clock(monkeypatch, ticks):
    """The clock looks twice a second; without it nothing is said before the measure is there."""
    monkeypatch.setattr(progress, "EVERY", 0.1)
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    monkeypatch.setattr(
        "onlinecal.logs.evaluation.Progress", lambda *a, **o: Progress(*a, **o | {"ticks": ticks})
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


def late(folder):
    """Ten outcomes are told to none."""
    known = [*[40] * 40, *[60] * 10]
    oc.recalibrate([0.3] * 50, [0, 1] * 25, times=range(50), known=known, measures=["brier"])


def merged(folder):
    for name in "ab":
        played(folder / name, cells())
    merge([folder / "a", folder / "b"], folder / "c")


@pytest.mark.parametrize(
    ("home", "work", "parts"),
    [
        ("recalibration.replay", late, 50 + 40), ("study.store", merged, 8),
        ("report.totals", lambda folder: totals(study(cells()), ["ece"]), 4),
    ],
)  # fmt: skip
def test_long_work_is_counted_by_its_parts(monkeypatch, tmp_path, home, work, parts):
    bars = set()

    class Seen(Progress):
        def advance(self, part):
            bars.add(self)
            assert part <= 1
            super().advance(part)

    monkeypatch.setattr(f"onlinecal.{home}.Progress", Seen)
    work(tmp_path)
    assert max(bar._done for bar in bars) == parts
