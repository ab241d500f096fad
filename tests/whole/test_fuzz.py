"""Garbled inputs: commands end with 0, 1 or 2, an error is one line, and no exception gets out.

The number of inputs is fixed, 80, and 1,000 with `--full`; `--seed` garbles others.
"""

import random
import re

import pytest

from tests.command_line import onlinecal
from tests.whole.test_commands import SCENARIO
from tests.whole.test_first_day import MINE

pytestmark = pytest.mark.slow

#: what stands in place of something else
ODD = [
    "", "-1", "0", "0.3", "nan", "inf", "1e400", "9" * 400, "true", "'x'", "[]", "{}", "[[1]]", '"drift"', "2020-01-01",
    "\0", "\ufeff", "√", '"a:b"', '":"', '"mine.py:EMA"', '"/dev/zero"', "1979-05-27T07:32:00", "0x7f", "None", "\n",
    "{name = 3}", "[1, 'a']", "{ from = 1, to = 3, steps = 3 }", '{ name = "streams", parts = [] }',
]  # fmt: skip
TABLE = "day,outcome,p\n" + "".join(f"2020-01-{i:02},{i % 2},0.{i:02}\n" for i in range(1, 31))
REPLAY = SCENARIO.replace('"drift"', '"replay"\nfile = "outcomes.csv"\nbase = "p"\ntime = "day"')
RUN = "run small.toml --runs 1 --horizon 20 --overwrite"


def garbled(data, choose, times):
    """Bytes that were cut, doubled, exchanged, changed, or replaced by something odd."""
    for _ in range(times):
        i, j = sorted(choose.randrange(len(data) + 1) for _ in range(2))
        j = min(j, i + choose.choice((1, 1, 3, 30)))
        odd = choose.choice(ODD).encode()
        other = (b"", data[i:j] * 2, bytes([choose.randrange(256)]), odd, data[:j][-9:])
        data = data[:i] + choose.choice(other) + data[j:]
    return data


def garbled_words(text, choose, times):
    """The same by words, so that much of it keeps its form."""
    words = re.split(r"([ ,])", text)
    for _ in range(times):
        i = choose.randrange(len(words))
        words[i] = choose.choice((choose.choice(ODD), choose.choice(words), ""))
    return "".join(words).encode("utf-8", "replace")


@pytest.fixture(scope="module")
def user(tmp_path_factory):
    """A folder with one good input of each kind."""
    folder = tmp_path_factory.mktemp("user")
    (folder / "small.toml").write_text(SCENARIO)
    onlinecal("run small.toml --runs 2 --horizon 20 -o good.db", cwd=folder)
    return folder


def told(folder, line):
    """The status with which a command ends: a result, or an error in one line."""
    said = onlinecal(line, cwd=folder, rc=(0, 1, 2))
    if said.returncode == 2:
        lines = said.stderr.splitlines()
        assert [line for line in lines if line.startswith("error: ")] == lines[-1:]
    return said.returncode


@pytest.mark.parametrize(
    ("file", "text", "scenario", "by_words", "times"),
    [
        ("small.toml", SCENARIO, SCENARIO, 4, (1, 1, 2, 4)),
        ("outcomes.csv", TABLE, REPLAY, 2, (0, 1, 2, 4)),
        ("mine.py", MINE.text, SCENARIO.replace('"constant"', '"mine.py:EMA"'), 2, (0, 1, 1, 2)),
    ],
)
def test_texts(user, seed, full, file, text, scenario, by_words, times):
    choose, seen = random.Random(seed), set()
    (user / "small.toml").write_text(scenario)
    (user / file).write_text(text)
    assert told(user, RUN) == 0
    for i in range(250 if full else 20):
        if i % by_words:
            data = garbled_words(text, choose, choose.choice(times))
        else:
            data = garbled(text.encode(), choose, choose.choice(times))
        (user / file).write_bytes(data)
        seen.add(told(user, RUN))
    if full:  # of few texts all may be of one kind, and cells that fail are rarer
        assert {0, 2} <= seen
        assert 1 in seen or file != "mine.py"


def test_results(user, seed, full):
    choose, good, seen = random.Random(seed), (user / "good.db").read_bytes(), set()
    for i in range(250 if full else 20):
        data = bytearray(good)
        for _ in range(choose.choice((1, 4, 64))):
            data[choose.randrange(len(data))] = choose.randrange(256)
        (user / "bad.db").write_bytes(data if i % 4 else garbled(good, choose, 2))
        for journal in user.glob("bad.db-*"):
            journal.unlink()
        seen.add(
            told(user, choose.choice(("status bad.db", "compare bad.db --json", "export bad.db -o x.csv")))
        )
    assert {0, 2} <= seen
