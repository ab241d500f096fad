"""The Python of README.md and of each page of docs/ has true types: `mypy --strict` as on a file of a user."""

import doctest
import re
import subprocess
import sys

import pytest

from tests.readme import DOCS, README, ROOT

#: a block of Python that is no doctest: a file of its own
FILE = re.compile(r"^```python[^\n]*\n((?!>>>).*?)^```", re.MULTILINE | re.DOTALL)


@pytest.mark.slow
def test_a_checker_of_types_accepts_the_python_of_all_pages(tmp_path):
    for page in (README, *DOCS.rglob("*.md")):
        text = page.read_text("utf-8")
        typed = "".join(each.source for each in doctest.DocTestParser().get_examples(text))
        for i, code in enumerate(filter(None, (typed, *FILE.findall(text)))):
            name = re.sub(r"\W", "_", str(page.relative_to(ROOT).with_suffix("")))
            (tmp_path / f"{name}_{i}.py").write_text(code, "utf-8")
    assert len(list(tmp_path.iterdir())) > 12
    (tmp_path / "mypy.ini").write_text(
        f"[mypy]\nstrict = true\nignore_missing_imports = true\nfollow_imports = silent\nmypy_path = {ROOT}\n"
    )
    done = subprocess.run([sys.executable, "-m", "mypy", "."], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
