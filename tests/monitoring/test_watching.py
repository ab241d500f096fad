"""`onlinecal watch`: files that grow, pipes, late outcomes, stops and goes on."""

import contextlib
import json
import math
import os
import signal
import subprocess
import sys
import threading
import time
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest

from onlinecal.commands.forecasts import PRINTED
from onlinecal.core.errors import InvalidData, StoreError
from onlinecal.logs.reading import Asked
from onlinecal.monitoring import feed as feed_module
from onlinecal.monitoring import watching
from onlinecal.monitoring.alarms import summary
from onlinecal.monitoring.feed import Feed
from onlinecal.monitoring.monitor import Monitor
from onlinecal.monitoring.watching import _reading, watch
from tests.command_line import onlinecal
from tests.marks import some_fast
from tests.monitoring.streams import biased


@pytest.fixture(scope="module")
def wrong(seed):
    """A stream with alarms: forecasts, outcomes, and the file's text."""
    p, y = biased(np.random.default_rng(seed), 300, -0.4)
    return p, y, "p,y\n" + "".join(f"{a!r},{b:g}\n" for a, b in zip(p.tolist(), y, strict=True))


@pytest.fixture(scope="module")
def whole(wrong):
    """A monitor of all of it."""
    monitor = Monitor()
    monitor.update(*wrong[:2])
    assert monitor.alarms
    return monitor


def same(one, other):
    a, b = one._epoch, other._epoch
    arrays = [(e.banks.tobytes(), e.sums.tobytes(), e.alarms) for e in (a, b)]
    return arrays[0] == arrays[1]


# ---------------------------------------------------------------- bytes to events


def fed(data, asked=None, size=None, last=False):
    """The monitor in the end, what was said, and what was wrong, if anything."""
    monitor, said, error = Monitor(), [], ""
    feed = Feed(monitor, "x", asked or Asked(), said.append)
    try:
        for at in range(0, len(data), size or len(data)):
            feed.take(data[at : at + (size or len(data))])
        if last:
            feed.take(b"", last=True)
    except InvalidData as caught:
        error = str(caught)
    return monitor, said, error


@pytest.mark.parametrize("size", [1, 7, 4096])
def test_bytes_may_come_in_any_pieces(wrong, whole, size):
    data = wrong[2].encode()[:-1]  # the last line has no end
    monitor, *_ = fed(data, size=size)
    assert monitor.events == 299
    monitor, *_ = fed(data, size=size, last=True)
    assert monitor.note["feed"]["offset"] == len(data)
    assert same(monitor, whole)


def test_a_line_without_an_end_is_refused():
    long = b"p,y\n0.5,1\n" + b"0" * 2**24
    assert fed(long)[2] == ""
    assert "x, line 3: no end within 16 MiB" in fed(long + b"0")[2]


SMALL = "no cell of column 'p' is above 1"


@pytest.mark.parametrize(
    ("text", "asked", "events", "words", "times"),
    [
        ("p,y\n" + "0.5,1\n0.25,1\n" * 50, {"percent": True}, 100, SMALL, 1),
        ("p,y\n" + "50,1\n0.25,1\n" * 50, {"percent": True}, 100, SMALL, 0),
        ("p,y\n" + "1,1\n" * 100, {"percent": True}, 100, SMALL, 1),
        ("p,y\n" + "1.001,1\n" * 100, {"percent": True}, 100, SMALL, 0),
        ("p,y\n" + "0,1\n" * 100, {"percent": True}, 100, SMALL, 0),
        ("a,b,c\n.5,1,x\n.25,0,y\n", {}, 2, "outcomes are read from column 'b'", 1),  # told by what they hold
        ("p,y,t\n.5,1,7\n.2,0,7\n", {"time": "t"}, 2, "left out", 0),
        ("p,y\n.5,1\n,1\n.5,\n.2,0\n", {"skip_missing": True}, 2, "2 lines without a forecast or an outcome", 1),
        ("id,p,y\na,.5,\nb,,\na,,1\n", {"skip_missing": True, "key": "id"}, 1, "1 line without a forecast", 1),
        ("p,status\n.5,no\n.2,YES \n", {"positive": "yes"}, 2, "outcomes are read from column 'status'", 1),
        *((f"{line}\n# p^y\n\np^y\n.5^1\n", {}, 1, "column 'p'", 1) for line in ("sep=^", '"sep=^"')),
    ],
)  # fmt: skip
def test_what_is_said_of_lines(text, asked, events, words, times):
    """Line by line, in pieces, and many lines at once."""
    for size in (1, 9, None):
        monitor, said, error = fed(text.encode(), Asked(**asked), size, last=True)
        assert (monitor.events, error) == (events, "")
        assert sum(words in each for each in said) == times


@pytest.mark.parametrize("negative", [("no",), ()])
def test_the_words_for_0_stay_those_of_the_watch_before(negative):
    """Those that it was given, or the first that a line held."""
    monitor = Monitor()
    Feed(monitor, "x", Asked(positive="yes", negative=negative)).take(b"p,y\n.5,yes\n.5,no\n")
    with pytest.raises(InvalidData, match="maybe"):
        Feed(monitor, "x", Asked()).take(b".5,maybe\n")
    Feed(monitor, "x", Asked()).take(b".5,no\n")
    assert monitor.events == 3


def test_a_watch_of_open_questions_alone_goes_on():
    monitor = Monitor()
    for line in (b"id,p,y\na,.5,\n", b"a,,1\n"):
        Feed(monitor, "x", Asked(key="id")).take(line)
    assert (monitor.events, monitor.open) == (1, 0)


def test_outcomes_in_later_lines(wrong, whole):
    p, y = (values.tolist() for values in wrong[:2])
    lines = ["id,p,y", *(f"q{i},{p[i]!r}," for i in range(300))]
    # Some repeat the forecast beside the outcome.
    order = np.random.default_rng(1).permutation(300)
    lines += [f"q{i},{p[i] if i % 2 else ''},{y[i]:g}" for i in order]
    monitor, *_ = fed(("\n".join(lines) + "\n").encode(), Asked(key="id"))
    assert same(monitor, whole)
    assert (monitor.open, monitor.note["feed"]["open"]) == (0, {})


BAD = [
    ("p,status\n.5,no\n", {"positive": "yes"}, "cannot tell which column has the outcomes"),
    ("p,y\nnan,1\n", {}, "line 2 has no forecast; expected both"),
    ("p,y\n0.5,2\n", {}, "line 2: column 'y' holds '2'"),
    ("p,y\n0.5\n", {}, "line 2 has no outcome; expected both, a column that tells questions apart (--id), or"),
    ("p,y\n0.5,1,7\n", {}, "line 2 has 3 cells; expected 2"),
    ("a,y\n,1\n", {}, "cannot tell which column has the forecasts: no column is named so or holds"),
    ("p,p,y\n,1\n", {}, "(there are several 'p')"),
    ("p,y\n,1\n", {"key": "id"}, "no column 'id'"),
    ("p,y,id\n,1,a\n", {"key": "id"}, "no forecast for 'a' is open"),
    ("p,y,id\n.5,1,\n", {"key": "id"}, "line 2: column 'id' is empty; expected what tells questions apart"),
    ("p,y,id\n,,a\n", {"key": "id"}, "neither forecast nor outcome"),
    ("# a, b\na,b\n.5,1\n.5,1,7\n", {}, "line 4 has 3 cells; expected 2"),
    ("p,y,t\n.5,1,2026-01-02\n.5,1,2026-01-01\n", {"time": "t"}, "line 3: goes back in time"),
    ("p,y,t\n.5,1,2026\n.5,1,2026-01-01\n", {"time": "t"}, "line 3: column 't' is '2026-01-01'; expected"),
    ("a,b\n.5,1\n\n.5,\xff\n", {}, "x, line 4 is not UTF-8 (invalid start byte)"),
    ("p,y\n0.5,\xff\n", {}, "x, line 2 is not UTF-8 (invalid start byte); expected UTF-8: iconv"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "asked", "words"), BAD, ids=range(len(BAD)))
def test_bad_lines_are_named_and_those_before_are_taken(text, asked, words):
    monitor, *_, error = fed(text.encode("latin-1"), Asked(**asked), last=True)
    assert words in error
    assert "\n" not in error
    assert monitor.events == text.startswith("p,y,t")


ODD = {
    "nothing": [],
    "a blank line, the end of a line, a remark": [(20, "\n"), (30, "0.5,1,7\r\n"), (45, "# 0.5,1,7\n")],
    "quotes": [(40, '"0.5","1","7"\n'), (41, '"0,5",1,"a ""b"""\n')],
    "a quote that does not end": [(50, '0.5,1,"7\n')],
    "per cent": [(60, "50%,1,7\n")],
    "no forecast": [(80, ",1,7\n")],
    "no outcome": [(80, "0.5,nan,7\n")],
    "another outcome": [(90, "0.5,True,7\n"), (91, "0.5,2,7\n")],
    "too many cells": [(99, "0.5,1,7,8\n")],
    "out of range": [(100, "1.5,1,7\n")],
    "back in time": [(110, "0.5,1,6\n")],
    "no time": [(110, "0.5,1,soon\n")],
    "not in utf-8": [(120, "0.5,1,\xff\n")],
}


ASKED = {"": Asked(), "t": Asked(time="t", positive="1"), "id": Asked(key="t", percent=True)}


@pytest.mark.parametrize(("odd", "asked"), some_fast(2, [*product(ODD, ASKED)]))
def test_lines_at_once_are_lines_one_by_one(monkeypatch, wrong, odd, asked):
    """The same money to the last bit, and alarms at the same events. The same place in the file and complaint."""
    asked = ASKED[asked]
    scale = 100 if asked.percent else 1
    lines = [
        f"{a * scale!r},{b:g},{f'q{i}' if asked.key else 7 + i // 50}\n"
        for i, (a, b) in enumerate(zip(wrong[0][:150].tolist(), wrong[1][:150], strict=True))
    ]
    for at, line in ODD[odd]:
        lines.insert(at, line.replace(",7", f",{7 + at // 50}") if asked.time else line)
    data = ("p,y,t\n" + "".join(lines)).encode("latin-1")
    found = []
    for at_once, size in ((1, None), (32, 1500)):
        monkeypatch.setattr(feed_module, "_AT_ONCE", at_once)
        monitor, _, error = fed(data, asked, size)
        found.append((monitor.alarms, error, monitor.note["feed"], monitor._epoch.banks.tobytes()))
    assert found[0] == found[1]
    if odd == "nothing":
        assert found[0][0]
        assert found[0][1] == ""


# ---------------------------------------------------------------- files


def test_a_file_in_parts_is_the_file_at_once(tmp_path, wrong, whole):
    """Each alarm is told once, and a line that was refused is met again when it is mended."""
    text, file, state, said = wrong[2], tmp_path / "a.csv", tmp_path / "s.npz", []
    lines = text.splitlines(keepends=True)
    for end in (100, 200, 301):
        file.write_text("".join(lines[:end]))
        monitor = Monitor.load(state) if state.exists() else Monitor()
        assert not watch(monitor, file, Asked(), state=state, found=said.append)
        file.write_text("".join([*lines[:end], "0.5,7\n"]))
        with pytest.raises(InvalidData, match=f"line {end + 1}"):
            watch(monitor, file, Asked(), state=state)
    assert same(Monitor.load(state), whole)
    assert tuple(said) == whole.alarms


def test_a_file_that_is_replaced_is_followed_where_it_goes_on(tmp_path):
    """As by programs that write all of it under another name and then give it its own."""
    file, new = tmp_path / "a.csv", tmp_path / "new.csv"

    def replaced(text):
        new.write_text(text)
        os.replace(new, file)

    file.write_text("p,y\n0.5,1\n0.2")
    monitor = Monitor()
    feed = Feed(monitor, "a.csv", Asked())

    def reading(follow=True, feed=feed):
        return _reading(file, "a.csv", feed, follow)

    with reading() as read:
        for text in ("p,y\n0.5,1\n0.25,0\n", None):
            feed.take(read())
            assert read() is None
            if text is not None:
                replaced(text)
                assert read() is None
        assert (monitor.events, monitor.bias().total) == (2, 0.25)
        file.unlink()
        assert read() is None
        stopped = (
            "a.csv does not go on where the watch stopped, after 17 bytes: it is shorter, or was written"
        )
        for text in ("p,y\n0.5,0\n0.25,0\n0.1,0\n", "p,y\n", ""):
            replaced(text)
            with pytest.raises(InvalidData, match=stopped), reading():
                pass
        with pytest.raises(InvalidData, match=stopped):
            read()
    replaced("p,y\n0.5,1\n0.25,0\n0.1,0\n")
    with reading() as read:
        feed.take(read())
        os.truncate(file, 20)
        with pytest.raises(InvalidData, match="after 23 bytes: it is shorter"):
            read()
    assert monitor.events == 3
    # A watch that does not wait reads the file that was opened to its end.
    replaced("p,y\n0.5,1\n")
    with reading(False, Feed(Monitor(), "a.csv", Asked())) as read:
        assert len(read()) == 10
        replaced("p,y\n")
        assert read() == b""


def test_a_named_pipe_is_watched_to_its_end_or_followed(tmp_path):
    pipe, monitor, feed = tmp_path / "pipe", Monitor(), Feed(followed := Monitor(), "pipe", Asked())
    os.mkfifo(pipe)

    def writing(text):
        writer = threading.Thread(target=pipe.write_text, args=(text,))
        writer.start()
        return writer

    writer = writing("p,y\n0.5,1\n0.25,0\n")
    watch(monitor, pipe, Asked())
    writer.join()
    assert monitor.events == 2
    writer = writing("p,y\n0.5,1\n")
    with _reading(pipe, "pipe", feed, True) as read:
        for _ in range(2):  # others may come to write
            writer.join()
            feed.take(read())
            assert read() is None
            writer = writing("0.25,0\n")
        writer.join()
    assert followed.events == 2


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL])
def test_it_follows_a_file_until_it_is_stopped_and_loses_and_doubles_nothing(tmp_path, wrong, whole, end):
    """Nor does one that an error ends while it tells an alarm. Meanwhile the state belongs to it alone."""
    file, state, lines = tmp_path / "a.csv", tmp_path / "s.npz", wrong[2].splitlines(keepends=True)
    first = whole.alarms[0].event + 2
    file.write_text("".join(lines[:first]))
    running = subprocess.Popen(
        [sys.executable, "-m", "onlinecal", "watch", str(file), "--follow", "--state", str(state), "--json"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    deadline = threading.Timer(120, running.kill)
    deadline.start()
    found = [json.loads(running.stdout.readline())]
    error = onlinecal("watch", "a.csv", "--state", "s.npz", cwd=tmp_path, rc=2).stderr
    assert "s.npz is being written by process" in error
    if end == signal.SIGINT:
        with file.open("a") as more:
            for at in range(first, len(lines), 60):
                more.write("".join(lines[at : at + 60]))
                more.flush()
                time.sleep(0.05)
        while len(found) < len(whole.alarms):
            found.append(json.loads(running.stdout.readline()))
    running.send_signal(end)
    rest, errors = running.communicate(timeout=60)
    deadline.cancel()
    assert running.returncode == (130 if end == signal.SIGINT else -end), errors
    assert [one["event"] for one in found] == [alarm.event for alarm in whole.alarms[: len(found)]]
    if end == signal.SIGINT:
        assert json.loads(rest.splitlines()[-1])["alarms"] == len(whole.alarms)
    else:
        file.write_text(wrong[2])

        def broken(alarm):
            raise BrokenPipeError

        with pytest.raises(BrokenPipeError):
            watch(
                Monitor.load(state) if state.exists() else Monitor(), file, Asked(), state=state, found=broken
            )
    monitor = Monitor.load(state)
    watch(monitor, file, Asked(), state=state)
    assert same(monitor, whole)


@pytest.mark.parametrize(("seconds", "each"), [(0.0, None), (2.5, 3), (5.5, 1)])
def test_an_alarm_is_kept_at_once(tmp_path, monkeypatch, wrong, seconds, each):
    """So a watch that is killed after it does not tell it again. Without one what was taken is kept after 5 seconds."""
    path, kept, save, take, now = tmp_path / "x.csv", [], Monitor.save, Feed.take, [1000.0]

    def taken(*arguments, **more):
        now[0] += seconds
        take(*arguments, **more)

    path.write_text(wrong[2])
    monkeypatch.setattr(watching, "CHUNK", 256)
    monkeypatch.setattr(watching, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(Feed, "take", taken)
    monkeypatch.setattr(Monitor, "save", lambda self, to: (kept.append(len(self.alarms)), save(self, to)))
    watch(monitor := Monitor(1e-300 if each else 0.05), path, Asked(), state=tmp_path / "state")
    if each is None:  # once after each piece with an alarm, and at the end
        assert kept == [*range(1, len(monitor.alarms) + 1), len(monitor.alarms)]
    else:  # counting the empty piece, and at the end
        assert len(kept) == (math.ceil(len(wrong[2]) / 256) + 1) // each + 1


# ---------------------------------------------------------------- the command


@pytest.mark.parametrize("many", [10, 11])
def test_alarms_are_summed_up_where_there_are_more_than_ten(tmp_path, many):
    (tmp_path / "b.csv").write_text("p,y\n" + "1,0\n" * many)
    lines = onlinecal("watch b.csv --restart same", cwd=tmp_path, rc=1).stdout.splitlines()
    assert ("…" in lines) is (many > 10)
    assert f"{many} events, {many} alarms" in lines


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("", "0 events, 2 open or held until an earlier one is known, 0 alarms"),
        ("--open-at-once 2", "1 event, 1 open, 0 alarms"),
    ],
)
def test_open_questions_are_told_and_are_no_empty_file(tmp_path, more, said):
    (tmp_path / "open.csv").write_text("q,p,y\na,0.25,\nb,0.25,1\n")
    lines = onlinecal(f"watch open.csv --id q {more}", cwd=tmp_path).stdout.splitlines()
    assert lines[0] == said
    # Of a question that is open, the middle of what it may be; the interval is what two outcomes leave.
    mean = "mean outcome − mean forecast: 0.5000 [-0.2500, 0.7500] (95 %, at all times together)"
    assert lines[2:] == [mean] * bool(more)


def test_the_command(tmp_path, wrong, whole):
    """Of many alarms there is a summary; with nothing new it ends as before, without an alarm."""
    for name, text, more in (
        ("a", wrong[2], ""),
        ("b", "p,y\n" + "0.9,0\n" * 800 + "1,0\n" * 3, "--restart same"),
    ):
        (tmp_path / f"{name}.csv").write_text(text)
        line = f"watch {name}.csv --state {name} {more}"
        done, monitor = onlinecal(line, cwd=tmp_path, rc=1), Monitor.load(tmp_path / name)
        lines, alarms = done.stdout.splitlines(), monitor.alarms
        told = [*map(str, alarms[:PRINTED]), *["…", *summary(alarms)] * (len(alarms) > PRINTED)]
        shown = len("\n".join(told).splitlines())
        assert lines[:shown] == "\n".join(told).splitlines()
        assert lines[shown] == f"{monitor.events} events, {len(alarms)} alarms"
        assert lines[shown + 1].startswith("since the last alarm: e = ")
        assert lines[-2].endswith(f"a probability of at most 0.05): {alarms[-1].witness.verdict}.")
        assert lines[-1] == f"Next: onlinecal recalibrate {name}.csv -o {name}_better.csv"
        assert monitor.promise in done.stderr
        assert onlinecal(line, cwd=tmp_path, rc=1).stdout.splitlines() == lines[shown:]
    assert summary(alarms)[1:] == [f"first: {alarms[0]}", f"last: {alarms[-1]}"]
    kinds = f"{len(alarms) - 3} of predictions that are too high, 3 of outcomes that were excluded"
    assert summary(alarms)[0] == f"{len(alarms)} alarms: {kinds}"
    piped = onlinecal("watch", "-", "--json", cwd=tmp_path, rc=1, input=wrong[2]).stdout.splitlines()
    assert [json.loads(line)["event"] for line in piped[:-1]] == [alarm.event for alarm in whole.alarms]
    assert json.loads(piped[-1])["bias_upper"] == whole.bias().upper
    quiet = onlinecal("watch", "-", cwd=tmp_path, input="p,y\n0.5,1\n").stdout
    assert "1 event, 0 alarms\nsince the beginning: e = " in quiet
    assert "no rows" in onlinecal("watch", "-", cwd=tmp_path, rc=2, input="p,y\n").stderr


@pytest.fixture
def kept(tmp_path):
    """A folder with a file of two forecasts and two outcomes, watched into the state `s`."""
    (tmp_path / "a.csv").write_text("p,q,y,z,t,k\n10,20,1,0,1,a\n20,10,0,1,2,b\n")
    options = "--forecast p --outcome y --percent --positive 1 --time t --state s"
    onlinecal("watch", "a.csv", *options.split(), cwd=tmp_path)
    return tmp_path


OTHERS = {
    "--forecast q": "--forecast p", "--outcome z": "--outcome y", "--positive 0": "--positive 1", "--id k": "no --id",
    "--time k": "--time t", "--delimiter ;": "--delimiter ,",
    "--alpha 0.1": "of a watch with 0.05", "--restart never": "of a watch with spend",
    "--open-at-once 3": "of a watch with None",
}  # fmt: skip


def test_another_test_does_not_go_on(kept):
    before, grown = (kept / "s").read_bytes(), (kept / "a.csv").read_text() + "30,30,1,1,3,c\n"
    (kept / "a.csv").write_text(grown)

    def refused(file, *options, input=""):
        return onlinecal("watch", file, "--state", "s", *options, cwd=kept, rc=2, input=input).stderr

    for options, was in OTHERS.items():
        for file in ("a.csv", "-"):
            error = refused(file, *options.split(), input="p,y\n1,1\n")
            assert was in error
            assert "another --state" in error
    assert "the state is of a file" in refused("-", input="t,p,y\n3,50,0\n")
    assert (kept / "s").read_bytes() == before
    # The name of a file is no part of it, and what is not asked for is what it was.
    (kept / "b.csv").write_text(grown)
    done = onlinecal("watch", "b.csv", "--state", "s", cwd=kept)
    assert "3 events, 0 alarms" in done.stdout
    assert "goes on after" not in done.stderr


def test_standard_input_is_more_of_standard_input(kept):
    for count in (1, 2):
        done = onlinecal("watch", "-", "--state", "piped", cwd=kept, input="p,y\n0.5,0\n")
        assert f"{count} event" in done.stdout
        assert ("standard input goes on after 1 event: no line" in done.stderr) == (count == 2)
        assert ("goes on after" in done.stderr) == (count == 2)
    onlinecal("watch", "-", "--state", "piped", cwd=kept, input="")
    error = onlinecal("watch", "a.csv", "--state", "piped", cwd=kept, rc=2).stderr
    assert "a.csv: the state is of a pipe" in error


def test_a_file_that_is_no_state_is_refused_in_plain_words(kept, seed):
    random, good, no = np.random.default_rng(seed), (kept / "s").read_bytes(), kept / "no"
    for other in (b"", b"p,y\n1,1\n", b"\x80\x04K\x01.", good[:-30], *map(random.bytes, (1, 100, 10000))):
        no.write_bytes(other)
        with pytest.raises(StoreError, match="no is not a file that a monitor was saved in; expected one of"):
            Monitor.load(no)
    # Any bytes changed: it is read, or refused. A wrong one is read with probability 2^-32, where the sum is the same.
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
