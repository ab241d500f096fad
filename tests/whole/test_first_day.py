"""The first day of a new user: from nothing to an own forecaster, in any terminal, with the mistakes that happen."""

import json
import re
import sys

import pytest

from onlinecal.core.shipped import scenarios
from onlinecal.report import page_pictures
from onlinecal.scenario import load
from onlinecal.study.store import Store
from tests.command_line import onlinecal
from tests.readme import DOCS
from tests.tutorials import File, steps
from tests.whole.test_cli import SCENARIO

#: mine.py, as docs/writing.md shows it
MINE = next(step for step in steps((DOCS / "writing.md").read_text("utf-8")) if isinstance(step, File))


def uncommented(text):
    """The template with the own forecaster that its comments describe."""
    return re.sub(r"^# (\[\[forecasters\]\]|name = \"mine|rate = )", r"\1", text, flags=re.MULTILINE)


def test_from_an_empty_folder_to_an_own_forecaster(tmp_path):
    said = onlinecal("new", "my.toml", cwd=tmp_path).stdout
    assert said == "wrote my.toml; play it: onlinecal run my.toml\n"
    text = (tmp_path / "my.toml").read_text()
    assert uncommented(text).count("mine.py:EMA") == text.count("mine.py:EMA") == 1
    (tmp_path / "my.toml").write_text(uncommented(text))
    (tmp_path / MINE.name).write_text(MINE.text)
    said = onlinecal(
        "run", "my.toml", "--runs", "2", "--horizon", "100", "--horizon", "200", cwd=tmp_path
    ).stdout
    assert "EMA" in said
    assert (
        "wrote results/my.png" in onlinecal("plot", "results/my.db", "--measure", "ece", cwd=tmp_path).stdout
    )
    assert "exists; expected the name of a new file" in onlinecal("new", "my.toml", cwd=tmp_path, rc=2).stderr
    # By name or by file, it is the same forecaster: nothing is played again.
    (tmp_path / "my.toml").write_text(uncommented(text).replace("mine.py:EMA", "mine:EMA"))
    again = onlinecal(
        "run", "my.toml", "--runs", "2", "--horizon", "100", "--horizon", "200", "--resume", cwd=tmp_path
    )
    assert (again.stdout, again.stderr) == (said, "")


def test_what_the_guide_says_to_write_is_what_the_template_says(tmp_path, monkeypatch):
    """The lines of docs/writing.md: without their #, or at the end of the file, they are the same forecaster."""
    guide, template = (DOCS / "writing.md").read_text("utf-8"), scenarios()["template"].read_text("utf-8")
    lines = re.search(
        r"^```toml\n(\[\[forecasters\]\]\nname = \"mine\.py:EMA\".*?)^```$", guide, re.M | re.S
    )[1]
    assert lines in uncommented(template)
    monkeypatch.chdir(tmp_path)
    (tmp_path / MINE.name).write_text(MINE.text)
    keys = []
    for text in (uncommented(template), f"{template}\n{lines}"):
        (tmp_path / "my.toml").write_text(text)
        keys.append([cell.key for cell in load(tmp_path / "my.toml").cells if "EMA" in cell.forecaster.label])
    sys.modules.pop("mine")  # others have a mine.py of their own
    assert keys[0] == keys[1] != []


def test_a_scenario_of_the_package_leaves_its_results_with_the_user(tmp_path):
    listed = onlinecal("list", "scenarios", cwd=tmp_path).stdout
    assert "quickstart" in listed
    onlinecal("run", "quickstart", "--runs", "2", "--horizon", "100", cwd=tmp_path)
    assert sorted(str(f.relative_to(tmp_path)) for f in tmp_path.rglob("*.db")) == ["results/quickstart.db"]
    with Store.open(tmp_path / "results" / "quickstart.db") as store:
        assert store.meta["options"] == "--horizon 100 --runs 2"
        assert {(cell.horizon, cell.runs) for cell in store.plan()} == {(100, 2)}


def test_options_in_place_of_keys_are_told_with_the_results(tmp_path, monkeypatch):
    (tmp_path / "small.toml").write_text(SCENARIO)
    other = ("--seed", "7", "--runs", "2", "--horizon", "50", "--horizon", "70")
    rows = json.loads(onlinecal("run", "small.toml", *other, "--json", cwd=tmp_path).stdout)
    assert {row["runs"] for row in rows} == {2}
    assert {row["horizon"] for row in rows} == {70}
    monkeypatch.setattr(page_pictures, "drawn_twice", lambda figure: ("", ""))  # the words are looked at
    onlinecal("report", "results/small.db", cwd=tmp_path)
    page = (tmp_path / "results" / "small.html").read_text()
    assert "onlinecal run small.toml --horizon 50 --horizon 70 --runs 2 --seed 7" in page
    # The same as a file that says so.
    text = SCENARIO.replace("runs = 4", "runs = 2\nseed = 7").replace("[100, 200, 400]", "[50, 70]")
    (tmp_path / "same.toml").write_text(text)
    assert json.loads(onlinecal("run", "same.toml", "--json", cwd=tmp_path).stdout) == rows
    # Without the options it is another study.
    said = onlinecal("run", "small.toml", "--resume", cwd=tmp_path, rc=2).stderr
    options = "--horizon 50 --horizon 70 --runs 2 --seed 7"
    assert "nothing that is in it fits the scenario any more" in said
    assert f"the scenario was played with {options} before, and is now with no options" in said
    said = onlinecal(
        "run", "small.toml", "--resume", *other[:2], "--runs", "3", *other[4:], cwd=tmp_path
    ).stderr
    assert (
        f"was played with {options} before, and is now with {options.replace('--runs 2', '--runs 3')}" in said
    )
    # One horizon: one game, read on the way.
    rows = json.loads(
        onlinecal("run", "small.toml", "--horizon", "60", "-o", "o.db", "--json", cwd=tmp_path).stdout
    )
    assert {row["horizon"] for row in rows} == {60}
    for options, said in (
        (("--runs", "0"), "runs = 0: expected at least 1"),
        (("--horizon", "-1"), "expected at least 1"),
    ):
        assert said in onlinecal("run", "small.toml", *options, cwd=tmp_path, rc=2).stderr


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder in which there are results."""
    folder = tmp_path_factory.mktemp("user")
    (folder / "small.toml").write_text(SCENARIO)
    onlinecal("run", "small.toml", cwd=folder)
    return folder


DB = "results/small.db"
COMMANDS = [
    ("run", "small.toml", "--resume"), ("run", "small.toml", "--dry-run"), ("status", DB), ("compare", DB),
    ("compare", DB, "--all"), ("compare", DB, "--ranking"), ("compare", DB, "--pareto", "ece", "smooth_ce"),
    ("compare", DB, "--paired"), ("list",), ("list", "rates"), ("list", "scenarios"),
    ("show", "cdl"), ("show", "replay"),
    ("show", "almost_one_step_ahead"), ("plot", DB, "--nature", "drift"),
    ("run", "--help"), ("new", "--help"),
]  # fmt: skip


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_eighty_columns_of_ascii_are_enough(folder, arguments):
    wide = onlinecal(*arguments, cwd=folder, columns=80).stdout
    plain = onlinecal(*arguments, cwd=folder, columns=80, encoding="ascii").stdout
    for said in (wide, plain):
        assert max(map(len, map(str.rstrip, said.splitlines()))) <= 80
    assert plain.isascii()
    assert plain.count("?") == wide.count("?")  # of exponents that cannot be told
    if arguments == ("list", "rates"):
        assert "O(sqrt T)" in plain


def test_eighty_columns_of_ascii_are_enough_for_a_report_of_forecasts(tmp_path):
    onlinecal("new", "rain.csv", cwd=tmp_path)
    told = ("measure", "rain.csv", "--time", "date", "--measure", "ece", "--draws", "0")
    wide, plain = (
        onlinecal(*told, cwd=tmp_path, columns=80, **options).stdout
        for options in ({}, {"encoding": "ascii"})
    )
    for said in (wide, plain):
        assert max(map(len, said.splitlines())) <= 80
    assert "±" in wide
    assert "+-" in plain
    assert plain.isascii()


def test_compare_without_a_measure_takes_the_first_that_there_is(folder):
    assert onlinecal("compare", "results/small.db", cwd=folder).stdout.startswith("ece: total T")


def numbers(value):
    """All values of JSON."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return [number for each in value for number in numbers(each)]
    return [value]


def test_json_has_numbers_or_null_only(tmp_path):
    text = SCENARIO.replace('"smooth_ce"]', '"log_loss", "nce"]').replace('"constant"', '"constant"\np = 0.0')
    (tmp_path / "endless.toml").write_text(text + '[[natures]]\nname = "bernoulli"\nq = 1.0\n')

    def refuse(constant):
        raise AssertionError(constant)

    found = 0
    questions = (
        ("--all",), ("--ranking",), ("--paired",), ("--pareto", "ece", "log_loss"), ("--measure", "log_loss"),
        ("--measure", "nce"),
    )  # fmt: skip
    asked = [("compare", "results/endless.db", *more) for more in questions]
    for arguments in (("run", "endless.toml"), *asked, ("status", "results/endless.db")):
        rows = json.loads(onlinecal(*arguments, "--json", cwd=tmp_path).stdout, parse_constant=refuse)
        found += numbers(rows).count("inf")
    assert found  # what is not finite is null, and said beside


def test_what_plug_ins_print_is_not_among_the_results(tmp_path):
    (tmp_path / "small.toml").write_text(SCENARIO.replace('"constant"', '"loud.py:Loud"'))
    (tmp_path / "loud.py").write_text(
        "print('begins')\nclass Loud:\n    def __init__(self): print('made')\n    def forecast(self): return 0.5\n"
        "    def update(self, forecast, outcome): print('told')\n"
    )
    done = onlinecal("run", "small.toml", "--horizon", "20", "--json", cwd=tmp_path)
    json.loads(done.stdout)
    assert (
        "note: forecaster 'loud.py:Loud': module 'loud.py' prints 'begins' (loud.py:1) while" in done.stderr
    )
    assert {"made", "told"} <= set(done.stderr.splitlines())


_FORECASTER = "__import__('onlinecal.forecasters').forecasters.Forecaster"


@pytest.mark.parametrize(
    ("body", "rc", "said"),
    [
        ("def __init__(self): raise SystemExit(3)", 2, "error: stopped by SystemExit: 3 (odd.py:2)\n"),
        ("def forecast(self): raise SystemExit(3)", 1, "SystemExit: 3 (odd.py:2)"),
        ("def forecast(self): raise BaseException", 2, "error: stopped by BaseException (odd.py:2)\n"),
        ("def forecast(self): return self.forecast()", 1, "RecursionError: maximum recursion depth exceeded"),
        ("def forecast(self): return 10**5000", 1, "OverflowError: int too large to convert to float"),
        (
            "def start(self, horizon, runs, stream): return None",
            2,
            "its player has no method forecast(round)",
        ),
    ],
)
def test_a_plug_in_that_goes_wrong_is_named(tmp_path, body, rc, said):
    base = _FORECASTER if "start" in body else "object"
    text = f"class Odd({base}):\n    {body}\n" + "    def forecast(self): return 0.5\n" * ("__init__" in body)
    if "start" not in body:
        text += "    def update(self, forecast, outcome): pass\n"
    (tmp_path / "odd.py").write_text(text)
    (tmp_path / "odd.toml").write_text(SCENARIO.replace('"constant"', '"odd:Odd"'))
    done = onlinecal("run", "odd.toml", "--horizon", "20", "--runs", "1", cwd=tmp_path, rc=rc)
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def nested(text, times, inside, end):
    return text * times + inside + end * times


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("runs = 4", f"runs = 4\nseed = {'9' * 5000}", "has a whole number with more than 300 digits"),
        ("runs = 4", f"runs = 4\nseed = 0x{'f' * 5000}", "has a whole number with more than 300 digits"),
        ("runs = 4", f"runs = 4\ntasks = {nested('[', 600, '', ']')}", "within each other, 50 deep or more"),
        ('"constant"', '"rounded"\nof = ' + nested('{name="rounded",of=', 600, '"constant"', "}"), "50 deep or more"),
        ('"drift"', '"replay"\nfile = "/dev/zero"', "/dev/zero is not a file; expected a file"),
        ('"constant"', '"constant"\nlabel = "a\\nb"', "expected text in one line"),
        ("A small study", "A\\u001b[31m study", "title = 'A\\x1b[31m study': expected text in one line"),
        ('"constant"', f'"{"x" * 5000}"', "xxx…xxx"),
        ("runs = 4", "runs = 4\nname = '" + "x" * 101 + "'", "a letter or digit first, at most 100"),
    ],
)  # fmt: skip
def test_scenarios_at_the_edges_are_one_line(tmp_path, old, new, said):
    (tmp_path / "edge.toml").write_text(SCENARIO.replace(old, new).replace('tasks = ["umbrella"]\n', ""))
    done = onlinecal("run", "edge.toml", cwd=tmp_path, rc=2)
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert len(done.stderr) < 600
    assert done.stderr.startswith("error: edge.toml")


def test_scenarios_with_a_mark_of_their_encoding_and_without_an_end(tmp_path):
    (tmp_path / "bom.toml").write_bytes(b"\xef\xbb\xbf" + SCENARIO.replace("\n", "\r\n").encode())
    onlinecal("run", "bom.toml", "--horizon", "20", "--runs", "1", cwd=tmp_path)
    assert (
        "expected a scenario, which is a short text"
        in onlinecal("run", "/dev/zero", cwd=tmp_path, rc=2).stderr
    )
