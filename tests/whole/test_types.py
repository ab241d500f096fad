"""The Python of README.md and of each page of docs/ has true types, by all checks of `mypy --strict`."""

import doctest
import re
import subprocess
import sys

import pytest

from tests.pages import DOCS, README, ROOT

#: a block of Python that is no doctest: a file of its own
FILE = re.compile(r"^```python[^\n]*\n((?!>>>).*?)^```", re.MULTILINE | re.DOTALL)
#: how the package is checked; with the same settings it is not checked once more for the pages
PACKAGE = re.compile(r"^\[tool\.mypy\].*?(?=^\[(?!\[tool\.mypy)|\Z)", re.MULTILINE | re.DOTALL)
#: what `--strict` asks beyond these
STRICT = [
    "disallow_untyped_calls", "check_untyped_defs", "disallow_untyped_decorators", "warn_return_any", "extra_checks",
]  # fmt: skip


@pytest.mark.slow
def test_a_checker_of_types_accepts_the_python_of_all_pages(tmp_path):
    pages = []
    for page in (README, *DOCS.rglob("*.md")):
        text = page.read_text("utf-8")
        typed = "".join(each.source for each in doctest.DocTestParser().get_examples(text))
        for i, code in enumerate(filter(None, (typed, *FILE.findall(text)))):
            name = re.sub(r"\W", "_", str(page.relative_to(ROOT).with_suffix("")))
            pages.append(f"{name}_{i}")
            (tmp_path / f"{name}_{i}.py").write_text(code, "utf-8")
    assert len(pages) > 12
    (settings,) = PACKAGE.findall((ROOT / "pyproject.toml").read_text("utf-8"))
    own = [f"[[tool.mypy.overrides]]\nmodule = {pages}", *(f"{check} = true" for check in STRICT)]
    (tmp_path / "mypy.toml").write_text("\n".join([settings, *own]), "utf-8")
    files = sorted(map(str, tmp_path.glob("*.py")))
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", str(tmp_path / "mypy.toml"), *files],
        cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
