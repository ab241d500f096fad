"""`onlinecal watch`: files that grow, pipes, late outcomes, stops and goes on."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from onlinecal.core.errors import InvalidData, StoreError
from onlinecal.forecasts.reading import Asked
from onlinecal.monitoring import feed as feed_module
from onlinecal.monitoring.feed import Feed
from onlinecal.monitoring.monitor import Monitor
from onlinecal.monitoring.watching import _opened, watch
from tests.command_line import onlinecal
from tests.monitoring.streams import biased


def text_of(p, y):
    return "p,y\n" + "".join(f"{a!r},{b:g}\n" for a, b in zip(p.tolist(), y, strict=True))


@pytest.fixture
def wrong(seed):
    """A stream with alarms: forecasts, outcomes, and the file's text."""
    p, y = biased(np.random.default_rng(seed), 600, -0.4)
    return p, y, text_of(p, y)


def same(one, other):
    a, b = one._epoch, other._epoch
    return (
        a.banks.tobytes() == b.banks.tobytes()
        and a.alarms == b.alarms
        and a.sums.tobytes() == b.sums.tobytes()
    )


# ---------------------------------------------------------------- bytes to events


@pytest.mark.parametrize("size", [1, 7, 4096])
def test_bytes_may_come_in_any_pieces(wrong, size):
    p, y, text = wrong
    p, y, data = p[:300], y[:300], "".join(text.splitlines(keepends=True)[:301]).encode()[:-1]
    monitor, whole, said = Monitor(), Monitor(), []
    feed = Feed(monitor, "x", Asked())
    for at in range(0, len(data), size):
        feed.take(data[at : at + size], found=said.append)
    assert monitor.events == 299  # the last line has no end
    feed.take(b"", last=True, found=said.append)
    assert feed.offset == len(data)
    whole.update(p, y)
    assert same(monitor, whole)
    assert tuple(said) == whole.alarms


@pytest.mark.parametrize(("cells", "cautions"), [(("0.5", "0.25"), 1), (("50", "0.25"), 0), (("0", "0"), 0)])
def test_per_cent_of_probabilities_is_cautioned_against(cells, cautions):
    for size in (1, 2**20):  # line by line, and many lines at once
        said, data = [], ("p,y\n" + "".join(f"{p},1\n" for p in cells * 50)).encode()
        feed = Feed(Monitor(), "x", Asked(percent=True), say=said.append)
        for at in range(0, len(data), size):
            feed.take(data[at : at + size])
        feed.take(b"", last=True)
        assert sum("no cell of column 'p' is above 1" in text for text in said) == cautions


def test_outcomes_in_later_lines(wrong):
    p, y, _ = wrong
    p, y = p[:100], y[:100]
    order = np.random.default_rng(1).permutation(100)
    lines = ["id,p,y", *(f"q{i},{p[i]:.17g}," for i in range(100))]
    # Some repeat the forecast beside the outcome.
    lines += [f"q{i},{p[i] if i % 2 else '':{'.17g' if i % 2 else ''}},{y[i]:g}" for i in order]
    monitor, whole = Monitor(), Monitor()
    Feed(monitor, "x", Asked(key="id")).take(("\n".join(lines) + "\n").encode())
    whole.update(p, y)
    assert same(monitor, whole)
    assert monitor.open == 0
    assert monitor.note["feed"]["open"] == {}


BAD = [
    ("p,y\n45,1\n", {}, "line 2: column 'p' holds '45'; expected a probability in [0, 1]; these look like per cent"),
    ("p,y\n-0.5,1\n", {}, "line 2: column 'p' holds '-0.5'"),
    ("p,y\nnan,1\n", {}, "line 2 has no forecast; expected both"),
    ("p,y\n0.5,2\n", {}, "line 2: column 'y' holds '2'"),
    ("p,y\n0.5,yes\n", {}, "line 2: column 'y' holds 'yes'; expected 0 or 1, or --positive WORD"),
    ("p,y\n0.5\n", {}, "line 2 has no outcome; expected both, or a column that tells questions apart (--id)"),
    ("p,y\n0.5,1,7\n", {}, "line 2 has 3 cells; expected 2"),
    ("a,y\n,1\n", {}, "cannot tell which column has the forecasts: no column is named so; expected"),
    ("p,z\n,1\n", {}, "cannot tell which column has the outcomes"),
    ("p,p,y\n,1\n", {}, "(there are several 'p')"),
    ("p,y\n,1\n", {"key": "id"}, "no column 'id'"),
    ("p,y,id\n,1,a\n", {"key": "id"}, "no forecast for question 'a' is open"),
    ("p,y,id\n,,a\n", {"key": "id"}, "neither forecast nor outcome"),
    ("p,y,id\n0.5,,a\n0.5,,a\n", {"key": "id"}, "line 3: question 'a' is open already"),
    ("p,y,t\n.5,1,2026-01-02\n.5,1,2026-01-01\n", {"time": "t"}, "line 3: goes back in time"),
    ("p,y,t\n.5,1,x\n", {"time": "t"}, "line 2: column 't' is 'x'; expected a number or a date"),
    ("p,y,t\n.5,1,2026\n.5,1,2026-01-01\n", {"time": "t"}, "line 3: column 't' is '2026-01-01'; expected"),
    ("p,y\n0.5,\xff\n", {}, "not utf-8"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "asked", "words"), BAD, ids=range(len(BAD)))
def test_bad_lines_are_named_and_those_before_are_taken(text, asked, words):
    monitor = Monitor()
    with pytest.raises(InvalidData) as caught:
        Feed(monitor, "x.csv", Asked(**asked)).take(text.encode("latin-1"))
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
    if text.startswith("p,y,t\n.5,1,2"):
        assert monitor.events == 1


def taken(monkeypatch, data, asked, at_once, size=None):
    """What a monitor has come to, the events after which an alarm was told, and what was wrong, if anything."""
    monkeypatch.setattr(feed_module, "_AT_ONCE", at_once)
    monitor, told, error = Monitor(), [], ""
    feed = Feed(monitor, "x", asked)
    try:
        for at in range(0, len(data), size or len(data)):
            feed.take(data[at : at + (size or len(data))], found=told.append)
    except InvalidData as caught:
        error = str(caught)
    return monitor, told, error


ODD = {
    "nothing": [],
    "a blank line": [(80, "\n")],
    "ends of lines": [(40, "0.5,1,7\r\n"), (120, "0.25,0,7\r")],
    "quotes": [(160, '"0.5","1","7"\n'), (161, '"0,5",1,"a ""b"""\n')],
    "a quote that does not end": [(200, '0.5,1,"7\n')],
    "per cent": [(240, "50%,1,7\n")],
    "no number": [(280, "0_1,1,7\n")],
    "no forecast": [(320, ",1,7\n")],
    "no outcome": [(320, "0.5,nan,7\n")],
    "another outcome": [(360, "0.5,True,7\n"), (361, "0.5,2,7\n")],
    "too many cells": [(399, "0.5,1,7,8\n")],
    "out of range": [(400, "1.5,1,7\n")],
    "back in time": [(440, "0.5,1,6\n")],
    "no time": [(440, "0.5,1,soon\n")],
    "not in utf-8": [(480, "0.5,1,\xff\n")],
}


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize(
    "asked", [Asked(), Asked(time="t", positive="1"), Asked(key="t", percent=True)], ids=["", "t", "id"]
)
def test_lines_at_once_are_lines_one_by_one(monkeypatch, wrong, odd, asked):
    """The same money to the last bit, alarms at the same events, the same place in the file, and the same complaint."""
    p, y, _ = wrong
    lines = [
        f"{a * (100 if asked.percent else 1)!r},{b:g},{7 + i // 100}\n"
        for i, (a, b) in enumerate(zip(p.tolist(), y, strict=True))
    ]
    if asked.key:
        lines = [line.replace(f",{7 + i // 100}\n", f",q{i}\n") for i, line in enumerate(lines)]
    for at, line in ODD[odd]:
        lines.insert(at, line.replace(",7", f",{7 + at // 100}") if asked.time else line)
    data = ("p,y,t\n" + "".join(lines)).encode("latin-1")
    one, told, error = taken(monkeypatch, data, asked, 1)
    for at_once, size in ((4096, None), (64, 5000)):
        other, again, same_error = taken(monkeypatch, data, asked, at_once, size)
        assert same(one, other)
        assert told == again
        assert error == same_error
        assert one.note["feed"] == other.note["feed"]
    if odd == "nothing":
        assert len(told) > 0
        assert error == ""


def test_lines_that_wait_are_read_at_once(monkeypatch, wrong):
    """Where there is nothing odd, none is looked at by itself but the header."""
    looked_at = []
    rows = Feed._rows
    monkeypatch.setattr(
        Feed, "_rows", lambda self, lines, *more: looked_at.append(len(lines)) or rows(self, lines, *more)
    )
    _, _, text = wrong
    monitor = Monitor()
    Feed(monitor, "x", Asked()).take(text.encode())
    assert monitor.events == text.count("\n") - 1
    assert looked_at == [600]


# ---------------------------------------------------------------- files


def test_a_file_in_parts_is_the_file_at_once(tmp_path, wrong):
    p, y, text = wrong
    file, state = tmp_path / "a.csv", tmp_path / "s.npz"
    cut = len(text) // 3
    said = []
    for end in (cut, 2 * cut, len(text)):
        # A cut within a line is a line that is not there yet.
        file.write_text(text[: text.rfind("\n", 0, end) + 1])
        monitor = Monitor.load(state) if state.exists() else Monitor()
        assert not watch(monitor, file, Asked(), state=state, found=said.append)
    whole = Monitor()
    whole.update(p, y)
    assert same(Monitor.load(state), whole)
    assert tuple(said) == whole.alarms
    file.write_text("p,y\n")
    with pytest.raises(InvalidData, match="does not begin with the"):
        watch(Monitor.load(state), file, Asked(), state=state)


def test_a_bad_line_is_met_again_when_it_is_mended(tmp_path):
    file, state = tmp_path / "a.csv", tmp_path / "s.npz"
    file.write_text("p,y\n0.5,1\n0.5,7\n0.25,0\n")
    with pytest.raises(InvalidData, match="line 3"):
        watch(Monitor(), file, Asked(), state=state)
    assert Monitor.load(state).events == 1
    file.write_text("p,y\n0.5,1\n0.5,0\n0.25,0\n")
    monitor = Monitor.load(state)
    watch(monitor, file, Asked(), state=state)
    assert monitor.events == 3


def test_a_file_that_is_replaced_is_followed_where_it_goes_on(tmp_path):
    """As by programs that write all of it anew under another name and then give it its own."""
    file, new = tmp_path / "a.csv", tmp_path / "new.csv"

    def replaced(text):
        new.write_text(text)
        os.replace(new, file)

    file.write_text("p,y\n0.5,1\n0.2")
    monitor = Monitor()
    feed = Feed(monitor, "a.csv", Asked())
    with _opened(file, feed, follow=True) as read:
        feed.take(read())
        assert read() == b""
        replaced("p,y\n0.5,1\n0.25,0\n")
        feed.take(read())
        assert read() == b""
        assert monitor.events == 2
        assert monitor.bias().total == 0.25
        file.unlink()
        assert read() == b""
        for text in ("p,y\n0.5,0\n0.25,0\n0.1,0\n", "p,y\n", ""):
            replaced(text)
            with (
                pytest.raises(
                    InvalidData, match="does not begin with the 17 bytes taken; expected it to grow"
                ),
                _opened(file, feed, follow=True),
            ):
                pass
        with pytest.raises(InvalidData, match="does not begin with the 17 bytes taken"):
            read()
        replaced("p,y\n0.5,1\n0.25,0\n0.1,0\n")
        feed.take(read())
    assert monitor.events == 3
    # Who does not wait reads the file that was opened to its end.
    with _opened(file, Feed(Monitor(), "a.csv", Asked()), follow=False) as read:
        assert len(read()) == 23
        replaced("p,y\n")
        assert read() == b""


def test_a_named_pipe_is_watched_to_its_end(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_text, args=("p,y\n0.5,1\n0.25,0\n",))
    writer.start()
    monitor = Monitor()
    watch(monitor, tmp_path / "pipe", Asked())
    writer.join()
    assert monitor.events == 2


def test_it_follows_a_file_until_it_is_stopped(tmp_path, wrong):
    p, y, text = wrong
    file, state = tmp_path / "a.csv", tmp_path / "s.npz"
    lines = text.splitlines(keepends=True)
    file.write_text("".join(lines[:300]))
    running = subprocess.Popen(
        [sys.executable, "-m", "onlinecal", "watch", str(file), "--follow", "--state", str(state), "--json"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    first = running.stdout.readline()
    with file.open("a") as more:
        for at in range(300, len(lines), 100):
            more.write("".join(lines[at : at + 100]))
            more.flush()
            time.sleep(0.05)
    whole = Monitor()
    whole.update(p, y)
    found = [json.loads(first)]
    deadline = threading.Timer(120, running.kill)
    deadline.start()
    while len(found) < len(whole.alarms):
        found.append(json.loads(running.stdout.readline()))
    running.send_signal(signal.SIGINT)
    rest, errors = running.communicate(timeout=60)
    deadline.cancel()
    assert running.returncode == 130, errors
    assert [one["event"] for one in found] == [alarm.event for alarm in whole.alarms]
    summary = json.loads(rest.splitlines()[-1])
    assert summary["alarms"] == len(whole.alarms)
    # What was taken when it was stopped is kept; going on takes the rest.
    monitor = Monitor.load(state)
    watch(monitor, file, Asked(), state=state)
    assert same(monitor, whole)


# ---------------------------------------------------------------- the command


def test_the_command(tmp_path, wrong):
    p, y, text = wrong
    (tmp_path / "a.csv").write_text(text)
    whole = Monitor()
    whole.update(p, y)
    done = onlinecal("watch", "a.csv", "--state", "s.npz", cwd=tmp_path, rc=1)
    lines = done.stdout.splitlines()
    assert lines[: len(whole.alarms)] == [str(alarm) for alarm in whole.alarms]
    assert f"600 events, {len(whole.alarms)} alarms" in lines
    assert any(line.startswith("since the last alarm: e = ") for line in lines)
    assert "the probability that there is ever an alarm is at most 0.05" in done.stderr
    # Nothing new: no new alarm, and the same end.
    again = onlinecal("watch", "a.csv", "--state", "s.npz", cwd=tmp_path, rc=1)
    assert again.stdout.splitlines() == lines[len(whole.alarms) :]
    piped = onlinecal("watch", "-", "--json", cwd=tmp_path, rc=1, input=text).stdout.splitlines()
    assert [json.loads(line)["event"] for line in piped[:-1]] == [alarm.event for alarm in whole.alarms]
    assert json.loads(piped[-1])["bias_upper"] == whole.bias().upper
    for arguments, words in (
        ("a.csv --state s.npz --alpha 0.1", "is of a watch with 0.05"), ("a.csv --alpha 2", "alpha"),
        ("a.csv --restart no", "restart"), ("none.csv", "no such file"), (".", "is a directory"),
        ("a.csv --state a.csv", "not a file that a monitor was saved in"), ("-", "no rows"),
    ):  # fmt: skip
        done = onlinecal("watch", *arguments.split(), cwd=tmp_path, rc=2, input="p,y\n")
        (error,) = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
        assert words in error
        assert "Traceback" not in done.stderr
    quiet = onlinecal("watch", "-", cwd=tmp_path, input="p,y\n0.5,1\n").stdout
    assert "1 event, 0 alarms\nsince the beginning: e = " in quiet


# ---------------------------------------------------------------- the state


@pytest.fixture
def kept(tmp_path):
    """A folder with a file of two forecasts and two outcomes, watched into the state `s`."""
    (tmp_path / "a.csv").write_text("p,q,y,z,t,k\n10,20,1,0,1,a\n20,10,0,1,2,b\n")
    onlinecal(
        "watch", "a.csv", "--forecast", "p", "--outcome", "y", "--percent", "--positive", "1", "--time", "t",
        "--state", "s", cwd=tmp_path,
    )  # fmt: skip
    return tmp_path


OTHERS = {
    "--forecast q": "--forecast p", "--outcome z": "--outcome y", "--positive 0": "--positive 1", "--id k": "no --id",
    "--time k": "--time t", "--delimiter ;": "--delimiter ,", "--encoding latin-1": "--encoding utf-8",
    "--alpha 0.1": "of a watch with 0.05", "--restart never": "of a watch with spend",
    "--open-at-once 3": "of a watch with None",
}  # fmt: skip


def test_another_test_does_not_go_on(kept):
    before, grown = (kept / "s").read_bytes(), (kept / "a.csv").read_text() + "30,30,1,1,3,c\n"
    (kept / "a.csv").write_text(grown)
    for options, was in OTHERS.items():
        for file in ("a.csv", "-"):
            if (file, options[:10]) == ("-", "--encoding"):
                continue  # each piece of standard input has its own
            done = onlinecal(
                "watch", file, "--state", "s", *options.split(), cwd=kept, rc=2, input="p,y\n1,1\n"
            )
            assert was in done.stderr
            assert "another --state" in done.stderr
    error = onlinecal("watch", "-", "--state", "s", cwd=kept, rc=2, input="t,p,y\n3,50,0\n").stderr
    assert (
        "standard input: the state is of a watch of a file; expected that file, or another --state" in error
    )
    for text in ("p,q,y,z,t,k\n10,20,1,0,1,a\n20,10,1,1,2,b\n30,30,1,1,3,c\n", "p,q,y,z,t,k\n", ""):
        (kept / "a.csv").write_text(text)
        error = onlinecal("watch", "a.csv", "--state", "s", cwd=kept, rc=2).stderr
        assert (
            "a.csv does not begin with the 40 bytes taken; expected it to grow, or another --state" in error
        )
    assert (kept / "s").read_bytes() == before
    # The name of a file is no part of it, and what is not asked for is what it was.
    (kept / "b.csv").write_text(grown)
    assert "3 events, 0 alarms" in onlinecal("watch", "b.csv", "--state", "s", cwd=kept).stdout


def test_standard_input_is_more_of_standard_input(kept):
    for count in (1, 2):
        done = onlinecal("watch", "-", "--state", "piped", cwd=kept, input="p,y\n0.5,0\n")
        assert f"{count} event" in done.stdout
        assert ("standard input goes on after 1 event" in done.stderr) == (count == 2)
    onlinecal("watch", "-", "--state", "piped", cwd=kept, input="")
    error = onlinecal("watch", "a.csv", "--state", "piped", cwd=kept, rc=2).stderr
    assert "a.csv: the state is of a watch of standard input" in error


def test_a_file_that_is_no_state_is_refused_in_plain_words(kept, seed):
    random, good, no = np.random.default_rng(seed), (kept / "s").read_bytes(), kept / "no"
    for other in (b"", b"p,y\n1,1\n", b"\x80\x04K\x01.", good[:-30], *map(random.bytes, (1, 100, 10000))):
        no.write_bytes(other)
        with pytest.raises(StoreError, match="no is not a file that a monitor was saved in; expected one of"):
            Monitor.load(no)
        assert no.read_bytes() == other
    # Any bytes changed: it is read, or refused; a wrong one is read with probability 2^-32, where the sum is the same.
    for _ in range(100):
        bad = bytearray(good)
        for at in random.integers(len(bad), size=3):
            bad[at] = random.integers(256)
        no.write_bytes(bad)
        with contextlib.suppress(StoreError):
            assert Monitor.load(no).events == 2
    monitor = Monitor()
    monitor.update(0.5, 1)
    monitor.save(kept / "m")
    error = onlinecal("watch", "a.csv", "--state", "m", "--percent", cwd=kept, rc=2).stderr
    assert "has taken 1 event that no watch has read" in error


def test_a_state_has_one_watch_at_a_time(kept):
    running = subprocess.Popen(
        [sys.executable, "-m", "onlinecal", "watch", "a.csv", "--follow", "--state", "s"], cwd=kept,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert "if forecasts are calibrated" in running.stderr.readline()
        done = onlinecal("watch", "a.csv", "--state", "s", cwd=kept, rc=2)
        assert "s is being written by process" in done.stderr
    finally:
        running.kill()
        running.communicate()
    assert "2 events" in onlinecal("watch", "a.csv", "--state", "s", cwd=kept).stdout
