"""Inputs that something has garbled: whatever is in a file, commands end with 0, 1 or 2, an error is one line, and no
exception gets out. The number of inputs is fixed, 1,000 with `--full`; `--seed` garbles others."""

import random

import pytest

from tests.command_line import onlinecal
from tests.whole.test_cli import SCENARIO
from tests.whole.test_first_day import MINE

#: of each of the four kinds; with `--full`
INPUTS, ALL = 80, 250
#: what stands in place of something else
ODD = [
    "", "-1", "0", "0.3", "nan", "inf", "1e400", "9" * 400, "true", "'x'", "[]", "{}", "[[1]]", '"drift"', "2020-01-01",
    "\0", "\ufeff", "√", '"a:b"', '":"', '"mine.py:EMA"', '"/dev/zero"', "1979-05-27T07:32:00", "0x7f", "None", "\n",
    "{name = 3}", "[1, 'a']", "{ from = 1, to = 3, steps = 3 }", '{ name = "streams", parts = [] }',
]  # fmt: skip
TABLE = "day,outcome,p\n" + "".join(f"2020-01-{i:02},{i % 2},0.{i:02}\n" for i in range(1, 31))


def garbled(data, choose, times):
    """Bytes that were cut, doubled, exchanged, changed, or replaced by something odd."""
    for _ in range(times):
        i, j = sorted(choose.randrange(len(data) + 1) for _ in range(2))
        j = min(j, i + choose.choice((1, 1, 3, 30)))
        other = choose.choice(
            (b"", data[i:j] * 2, bytes([choose.randrange(256)]), choose.choice(ODD).encode(), data[:j][-9:])
        )
        data = data[:i] + other + data[j:]
    return data


def garbled_words(text, choose, times):
    """The same by words and lines, so that much of it keeps its form."""
    for _ in range(times):
        lines = text.split("\n")
        i = choose.randrange(len(lines))
        words = lines[i].split(" ")
        j = choose.randrange(len(words))
        match choose.randrange(5):
            case 0:
                words[j] = choose.choice(ODD)
            case 1:
                words[j] = choose.choice(text.split())
            case 2:
                del words[j]
            case 3:
                words = [choose.choice(lines)]
            case _:
                words = []
        lines[i] = " ".join(words)
        text = "\n".join(lines)
    return text.encode("utf-8", "replace")


def told(folder, *arguments):
    """With what status a command ends on a garbled input: a result, or an error in one line."""
    said = onlinecal(*arguments, cwd=folder, rc=(0, 1, 2))
    if said.returncode == 2:
        assert [
            line for line in said.stderr.splitlines() if line.startswith("error: ")
        ] == said.stderr.splitlines()[-1:]
    return said.returncode


RUN = "run", "small.toml", "--runs", "1", "--horizon", "20", "--overwrite"


@pytest.fixture
def choose(seed):
    """What garbles."""
    return random.Random(seed)


@pytest.fixture(scope="module")
def user(tmp_path_factory):
    """A folder with one good input of each kind."""
    folder = tmp_path_factory.mktemp("user")
    (folder / "mine.py").write_text(MINE.text)
    (folder / "outcomes.csv").write_text(TABLE)
    (folder / "small.toml").write_text(SCENARIO)
    onlinecal("run", "small.toml", "--runs", "2", "--horizon", "20", "-o", "good.db", cwd=folder)
    return folder


@pytest.fixture
def inputs(full):
    """How many of each kind."""
    return ALL if full else INPUTS


@pytest.mark.slow
def test_scenarios(user, choose, inputs):
    seen = set()
    for i in range(inputs):
        garble = garbled_words if i % 4 else lambda text, *rest: garbled(text.encode(), *rest)
        (user / "small.toml").write_bytes(garble(SCENARIO, choose, choose.choice((1, 1, 2, 4))))
        seen.add(told(user, *RUN))
    assert {0, 2} <= seen


@pytest.mark.slow
def test_tables(user, choose, inputs):
    text = SCENARIO.replace('"drift"', '"replay"\nfile = "outcomes.csv"\nbase = "p"\ntime = "day"')
    (user / "small.toml").write_text(text)
    seen = set()
    for i in range(inputs):
        garble = garbled_words if i % 2 else lambda text, *rest: garbled(text.encode(), *rest)
        (user / "outcomes.csv").write_bytes(garble(TABLE, choose, choose.choice((0, 1, 2, 4))))
        seen.add(told(user, *RUN))
    assert {0, 2} <= seen


@pytest.mark.slow
def test_plug_ins(user, choose, inputs):
    (user / "small.toml").write_text(SCENARIO.replace('"constant"', '"mine.py:EMA"'))
    seen = set()
    for i in range(inputs):
        garble = garbled_words if i % 2 else lambda text, *rest: garbled(text.encode(), *rest)
        (user / "mine.py").write_bytes(garble(MINE.text, choose, choose.choice((0, 1, 1, 2))))
        seen.add(told(user, *RUN))
    assert {0, 2} <= seen
    if inputs == ALL:  # cells that fail are rarer
        assert 1 in seen


@pytest.mark.slow
def test_results(user, choose, inputs):
    (user / "small.toml").write_text(SCENARIO)
    good, seen = (user / "good.db").read_bytes(), set()
    commands = ("status", "bad.db"), ("compare", "bad.db", "--json"), ("export", "bad.db", "-o", "x.csv")
    for i in range(inputs):
        data = bytearray(good)
        for _ in range(choose.choice((1, 4, 64))):
            data[choose.randrange(len(data))] = choose.randrange(256)
        (user / "bad.db").write_bytes(data if i % 4 else garbled(good, choose, 2))
        for journal in user.glob("bad.db-*"):
            journal.unlink()
        seen.add(told(user, *choose.choice(commands)))
    assert {0, 2} <= seen
