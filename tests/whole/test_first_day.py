"""The first day of a new user: from nothing to an own forecaster, and options in place of keys."""

import json
import re

from onlinecal.report import page_pictures
from tests.command_line import onlinecal
from tests.pages import DOCS
from tests.tutorials import File, steps
from tests.whole.test_commands import SCENARIO

#: mine.py, as docs/writing.md shows it
MINE = next(step for step in steps((DOCS / "writing.md").read_text("utf-8")) if isinstance(step, File))


def uncommented(text):
    """The template with the own forecaster that its comments describe."""
    return re.sub(r"^# (\[\[forecasters\]\]|name = \"mine|rate = )", r"\1", text, flags=re.MULTILINE)


def test_from_an_empty_folder_to_an_own_forecaster(tmp_path):
    onlinecal("new my.toml", cwd=tmp_path)
    text = (tmp_path / "my.toml").read_text()
    assert uncommented(text).count("mine.py:EMA") == text.count("mine.py:EMA") == 1
    (tmp_path / "my.toml").write_text(uncommented(text))
    (tmp_path / MINE.name).write_text(MINE.text)
    said = onlinecal("run my.toml --runs 2 --horizon 100 --horizon 200", cwd=tmp_path).stdout
    assert "EMA" in said
    # By name or by file, it is the same forecaster: nothing is played again.
    (tmp_path / "my.toml").write_text(uncommented(text).replace("mine.py:EMA", "mine:EMA"))
    again = onlinecal("run my.toml --runs 2 --horizon 100 --horizon 200 --resume", cwd=tmp_path)
    assert (again.stdout, again.stderr) == (said, "")


def test_options_in_place_of_keys_are_told_with_the_results(tmp_path, monkeypatch):
    (tmp_path / "small.toml").write_text(SCENARIO)
    options = "--horizon 50 --horizon 70 --runs 2 --seed 7"
    rows = json.loads(onlinecal(f"run small.toml {options} --json", cwd=tmp_path).stdout)
    assert {(row["runs"], row["horizon"]) for row in rows} == {(2, 70)}
    monkeypatch.setattr(page_pictures, "drawing", lambda *_: "")  # the words are looked at
    onlinecal("report results/small.db", cwd=tmp_path)
    assert f"onlinecal run small.toml {options}" in (tmp_path / "results" / "small.html").read_text()
    # The same as a file that says so.
    text = SCENARIO.replace("runs = 4", "runs = 2\nseed = 7").replace("[100, 200, 400]", "[50, 70]")
    (tmp_path / "same.toml").write_text(text)
    assert json.loads(onlinecal("run same.toml --json", cwd=tmp_path).stdout) == rows
    # Without the options it is another study.
    said = onlinecal("run small.toml --resume", cwd=tmp_path, rc=2).stderr
    assert "nothing that is in it fits the scenario any more" in said
    assert f"the scenario was played with {options} before, now with no options" in said
    three = options.replace("--runs 2", "--runs 3")
    said = onlinecal(f"run small.toml --resume {three}", cwd=tmp_path).stderr
    assert f"was played with {options} before, now with {three}" in said
    # One horizon: one game, read on the way.
    rows = json.loads(onlinecal("run small.toml --horizon 60 -o o.db --json", cwd=tmp_path).stdout)
    assert {row["horizon"] for row in rows} == {60}
