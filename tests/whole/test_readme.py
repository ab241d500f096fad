"""The documentation says what the code says, and every source of a measure can be looked up."""

import inspect
import re
from itertools import pairwise

import pytest
from hatchling.metadata.core import ProjectMetadata
from hatchling.metadata.spec import construct_metadata_file_2_4
from hatchling.plugin.manager import PluginManager
from markdown_it import MarkdownIt
from PIL import Image

from onlinecal.cli import COMMANDS
from onlinecal.measures import MEASURES
from tests.gallery import digests
from tests.index_page import alone, links
from tests.readme import DOCS, GENERATED, README, ROOT, block, home, pages, public_names, rooms

#: the keys in the sources of measures
REFERENCES = set(re.findall(r"^- (\w+): ", (DOCS / "references.md").read_text("utf-8"), re.MULTILINE))


#: a table of replays takes some seconds
DEAR = {"recalibrated"}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name in DEAR)) for name in GENERATED]
)
def test_generated_parts_are_up_to_date(name):
    assert block(home(name).read_text("utf-8"), name) == GENERATED[name](), "run python -m tests.readme"


def test_every_record_is_complete_and_every_source_is_listed():
    cited = set()
    for measure in MEASURES.values():
        cited |= {re.fullmatch(r"(\w+)( .*)?", part).group(1) for part in measure.source.split("; ")}
        assert measure.symbol
        assert measure.complexity
        for said in (measure.continuous, measure.complete, measure.sound):
            assert said.startswith(("yes", "no", "as ω", "1/2-Hölder")), measure.name
    assert cited == set(REFERENCES)


def test_files_that_are_named_are_there():
    """By texts, docstrings and comments; CONTRIBUTING.md names some of the package as well."""
    texts = ("*.md", "docs/**/*.md", "scenarios/**/*.md", "onlinecal/**/*.py", "tests/**/*.py")
    for file in (file for pattern in texts for file in ROOT.glob(pattern)):
        text = file.read_text("utf-8")
        named = re.findall(r"\btests(?:/\w+)+(?:\.\w+|/)", text)
        named += [path.replace(".", "/") + ".py" for path in re.findall(r"python -m (tests(?:\.\w+)+)", text)]
        if file.name == "CONTRIBUTING.md":
            named += re.findall(r"`((?:onlinecal|docs)/[\w/.]+)`", text)
            named += [f"onlinecal/{path}" for path in re.findall(r"`(\w+/__init__\.py)`", text)]
        assert not [path for path in named if not (ROOT / path).exists()], file


# ---------------------------------------------------------------- the first page


def test_the_first_page_is_short_and_its_links_lead_to_files():
    """All of them, so that `index_page` decides where they lead on a package index."""
    page = README.read_text("utf-8")
    assert len(page.splitlines()) <= 120
    assert len(links(page)) > 15
    for link in links(page):
        assert (ROOT / link.partition("#")[0]).is_file(), link


def description(folder, urls):
    """The description that hatchling puts into wheels and sdists, where pyproject.toml says this of addresses."""
    for name in ("README.md", "LICENSE", "tests/index_page.py"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text((ROOT / name).read_text("utf-8"), "utf-8")
    project = (ROOT / "pyproject.toml").read_text("utf-8").replace("[project.urls]", "[tool.unread]")
    (folder / "pyproject.toml").write_text(project + urls, "utf-8")
    written = construct_metadata_file_2_4(ProjectMetadata(str(folder), PluginManager()))
    assert "\nDescription-Content-Type: text/markdown\n" in written
    return written.partition("\n\n")[2]


def leads(page):
    """Where links and pictures of a page lead, as a reader of Markdown finds them."""
    return [
        inside.attrs["src" if inside.type == "image" else "href"]
        for token in MarkdownIt("gfm-like", {"linkify": False}).parse(page)
        for inside in token.children or ()
        if inside.type in ("image", "link_open")
    ]


def test_a_package_index_shows_the_first_page_without_links_to_nowhere(tmp_path):
    page, repository = README.read_text("utf-8"), "https://host/us/onlinecal"
    assert leads(page) == links(page)
    shown = description(tmp_path, "")
    assert leads(shown) == []
    assert "*Picture, docs/pictures/quickstart.png in the repository: Totals of ECE" in shown
    assert "tutorials | for a researcher, for a forecaster with a log, for a student |" in shown
    shown = description(tmp_path, f'\n[project.urls]\nRepository = "{repository}/"\n')
    assert leads(shown) == [
        f"{repository}/{'raw' if link.endswith('.png') else 'blob'}/HEAD/{link}" for link in links(page)
    ]
    assert alone(shown, "", links="", pictures="") == shown  # nothing is left to do


def test_every_command_is_listed():
    page = (DOCS / "command-line.md").read_text("utf-8")
    listed = re.findall(r"^\| `onlinecal ([\w-]+)", page, re.MULTILINE)
    assert set(listed) == set(COMMANDS)


def test_every_page_is_listed():
    """That the menu has no other pages, and that links between pages lead somewhere, `mkdocs build --strict` says."""
    listed = links((DOCS / "reference" / "index.md").read_text("utf-8"))
    assert set(listed) == {f"{room}.md" for room in rooms()} | {"commands.md"}
    # Of a list of names that is text in the code, the site finds them by itself.
    for room, module in rooms().items():
        text = (DOCS / "reference" / f"{room}.md").read_text("utf-8")
        named = re.findall(r"\w+", "".join(re.findall(r"members: \[(.*?)\]", text, re.DOTALL)))
        named += [path.rpartition(".")[2] for path in re.findall(r"^::: (\S+)$", text, re.MULTILINE)]
        things = {name for name in public_names(module) if not inspect.ismodule(getattr(module, name))}
        assert "filters: public" in text or things <= set(named), room
    menu = (ROOT / "mkdocs.yml").read_text("utf-8").partition("\nnav:\n")[2]
    for page in DOCS.rglob("*.md"):
        assert f" {page.relative_to(DOCS)}\n" in menu


@pytest.mark.parametrize(
    "page", [*pages(), ROOT / "scenarios" / "papers" / "README.md"], ids=lambda page: page.stem
)
def test_no_page_says_a_thing_twice_running_or_has_a_heading_twice(page):
    text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    parts = [part.strip() for part in re.split(r"\n\s*\n", text) if part.strip()]
    assert [part for part, following in pairwise(parts) if part == following] == []
    headings = [part for part in parts if re.match(r"#+ |\*\*[^*\n]+\*\*( \(.*\))?$", part)]
    assert len(headings) == len(set(headings))


def test_pictures_of_the_gallery_are_drawn_by_the_code_on_the_page():
    for path, digest in digests().items():
        with Image.open(path) as picture:
            assert picture.info["Source"] == digest, f"{path.name}: run python -m tests.gallery"
