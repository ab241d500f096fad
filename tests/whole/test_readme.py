"""The documentation says what the code says, and every source of a measure can be looked up."""

import datetime
import os
import re
import subprocess
import sys
import tomllib

import pytest
from PIL import Image

from onlinecal.cli import COMMANDS
from onlinecal.measures import MEASURES
from onlinecal.report.catalogue import REFERENCES
from tests.benchmarks.speed import FILE, PLAIN, ROWS, table
from tests.gallery import digests
from tests.readme import DOCS, GENERATED, README, ROOT, block, home, links, rooms, with_absolute_links


@pytest.mark.parametrize("name", GENERATED)
def test_generated_parts_are_up_to_date(name):
    assert block(home(name).read_text("utf-8"), name) == GENERATED[name](), "run python -m tests.readme"


@pytest.mark.parametrize("measure", MEASURES.values(), ids=lambda m: m.name)
def test_every_record_is_complete_and_its_source_is_listed(measure):
    for part in measure.source.split("; "):
        key = re.fullmatch(r"(\w+)( .*)?", part).group(1)
        assert key in REFERENCES
    for said in (measure.symbol, measure.complexity, measure.continuous, measure.complete, measure.sound):
        assert said
    for said in (measure.continuous, measure.complete, measure.sound):
        assert said.startswith(("yes", "no", "as ω", "1/2-Hölder"))


def test_no_reference_is_idle():
    cited = {re.match(r"\w+", part).group() for m in MEASURES.values() for part in m.source.split("; ")}
    assert cited == set(REFERENCES)


#: what of the tests the texts and docstrings name
NAMED = sorted(
    {
        (str(file.relative_to(ROOT)), named)
        for file in (
            *ROOT.glob("*.md"),
            *ROOT.glob("docs/**/*.md"),
            *ROOT.glob("scenarios/**/*.md"),
            *ROOT.glob("onlinecal/**/*.py"),
            *ROOT.glob("tests/**/*.py"),
        )
        for named in re.findall(
            r"\btests(?:/\w+)+(?:\.\w+|/)|python -m tests(?:\.\w+)+", file.read_text("utf-8")
        )
    }
)


@pytest.mark.parametrize(("file", "named"), NAMED)
def test_what_is_named_of_the_tests_is_there(file, named):
    if named.startswith("python -m "):
        named = named.removeprefix("python -m ").replace(".", "/") + ".py"
    assert (ROOT / named).exists(), f"{file} names {named}"


# ---------------------------------------------------------------- the first page


def test_the_first_page_is_short():
    assert len(README.read_text("utf-8").splitlines()) <= 250


def repository():
    """Where pyproject.toml says that the repository is, "" where it does not."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return project.get("urls", {}).get("Repository", "")


def test_links_of_the_first_page_lead_somewhere():
    """Those of files lead to files that there are; once a repository is named they are all absolute, and below it."""
    assert len(links(README.read_text("utf-8"))) > 15
    for link in links(README.read_text("utf-8")):
        if "://" in link:
            assert repository()
            assert link.startswith(repository())
        else:
            assert not repository(), f"{link}: run python -m tests.readme --repository URL"
            assert (ROOT / link.partition("#")[0]).is_file(), link


def test_links_of_the_first_page_can_all_be_made_absolute():
    """As a package index needs them, which shows the page alone; every file of the repository is still named."""
    text = README.read_text("utf-8")
    absolute = links(with_absolute_links(text, "https://host/us/onlinecal/{}/main"))
    assert len(absolute) == len(links(text))
    for before, after in zip(links(text), absolute, strict=True):
        kind = "raw" if before.endswith(".png") else "blob"
        assert after == before or after == f"https://host/us/onlinecal/{kind}/main/{before}"
        assert "://" in after


@pytest.mark.parametrize("page", [README, DOCS / "command-line.md"], ids=["README", "command-line"])
def test_every_command_is_listed(page):
    listed = re.findall(r"^\| `onlinecal ([\w-]+)", page.read_text("utf-8"), re.MULTILINE)
    assert set(listed) == set(COMMANDS)


def test_every_public_module_has_a_page_that_the_reference_lists():
    listed = links((DOCS / "reference" / "index.md").read_text("utf-8"))
    assert set(listed) == {f"{room}.md" for room in rooms()} | {"commands.md"}


def test_every_page_is_reached_from_the_menu():
    """That the menu has no other pages, and that links between pages lead somewhere, `mkdocs build --strict` says."""
    menu = (ROOT / "mkdocs.yml").read_text("utf-8").partition("\nnav:\n")[2]
    for page in DOCS.rglob("*.md"):
        assert f" {page.relative_to(DOCS)}\n" in menu


def test_pictures_of_the_gallery_are_drawn_by_the_code_on_the_page():
    for path, digest in digests().items():
        with Image.open(path) as picture:
            assert picture.info["Source"] == digest, f"{path.name}: run python -m tests.gallery"


def test_the_table_of_speed_has_the_rows_that_are_measured():
    """Its numbers are of one machine on one day; whoever writes it anew gets the same lines with others."""
    written = block(home("games").read_text("utf-8"), "games")
    rates = dict.fromkeys(ROWS.values(), 12.0) | {PLAIN: 2.0}
    made = table("a processor", rates, datetime.date(2026, 1, 1))
    assert made.startswith("One core of a processor, medians of one run on 2026-01-01:\n\n| game")
    assert "| forecast hedging vs contrarian | 12 | 6.0 |" in made
    first = re.compile(r"^\|[^|]*\|", re.MULTILINE)
    assert first.findall(written) == first.findall(made)


def test_the_benchmarks_that_the_table_names_are_there():
    named = [f"{FILE}::{name}" for name in ROWS.values()]
    said = subprocess.run(
        [sys.executable, "-m", "pytest", "-n", "0", "-q", "--collect-only", *named],
        cwd=ROOT, capture_output=True, text=True, check=False,
        env={key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")},
    )  # fmt: skip
    assert said.returncode == 0, said.stdout + said.stderr
