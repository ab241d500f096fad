"""Tutorials print what they say, and scenarios on other pages can be played."""

import re
import sys

import pytest

from onlinecal.scenario import load
from tests.pages import DOCS
from tests.tutorials import Command, File, play, steps

TUTORIALS = sorted((DOCS / "tutorials").glob("*.md"))
TUTORIALS += [DOCS / f"{page}.md" for page in ("evaluate", "recalibrate", "watch")]


@pytest.mark.slow
@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_a_tutorial_prints_what_it_says(page, tmp_path):
    failed = play(page.read_text("utf-8"), tmp_path)
    assert not failed, "\n\n".join(f"$ {command.line}\n{said}" for command, said in failed)


PAGE = """
```toml title="a.toml"
x = 1
```

```console
$ cat a.toml
x = 1
$ echo one    two
one ...
```

```python
>>> 1 + 1
2

```
"""


def test_what_a_page_says_is_done_and_a_page_that_errs_is_found(tmp_path):
    commands = Command("cat a.toml", "x = 1\n"), Command("echo one    two", "one ...\n")
    assert list(steps(PAGE)) == [File("a.toml", "x = 1\n"), *commands]
    for number, (old, new, wrong) in enumerate(
        (("", "", 0), ("$ cat a.toml", "$ cat b.toml", 1), ("one ...", "two ...", 1))
    ):
        (tmp_path / str(number)).mkdir()
        assert len(play(PAGE.replace(old, new), tmp_path / str(number))) == wrong
    for block in ("```sh\nls\n```\n", "```python\nx = 1\n```\n", "```console\nls\n```\n"):
        with pytest.raises(ValueError, match="block"):
            list(steps(block))


# ---------------------------------------------------------------- scenarios on other pages

MODULE = """
class RunningMean:
    def forecast(self):
        return 0.5
    def update(self, forecast, outcome):
        pass
"""


def test_a_scenario_that_a_page_shows_can_be_played(tmp_path, monkeypatch):
    """As it stands, with the plug-in and the file that it names beside it; a part is completed."""
    page = (DOCS / "scenarios.md").read_text("utf-8")
    blocks = re.findall(r"^```toml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert blocks
    (tmp_path / "my_module.py").write_text(MODULE)
    (tmp_path / "rain.csv").write_text("precipitation\n" + "0.0\n1.5\n" * 32_000)
    monkeypatch.chdir(tmp_path)
    for number, block in enumerate(blocks):
        given = block if "horizon" in block else f'horizon = 10_000\nmeasures = ["ece"]\n{block}'
        scenario = tmp_path / f"{number}.toml"
        scenario.write_text(given)
        assert len(load(scenario).cells) > 10
    monkeypatch.delitem(sys.modules, "my_module", raising=False)
