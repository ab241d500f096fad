"""The documentation says what the code says, and what it names is there."""

import importlib.util
import inspect
import re

import pytest
from hatchling.metadata.core import ProjectMetadata
from hatchling.metadata.spec import construct_metadata_file_2_4
from hatchling.plugin.manager import PluginManager
from PIL import Image

import onlinecal
from onlinecal.cli import COMMANDS
from onlinecal.logs.evaluated import OF_LOGS
from onlinecal.measures import MEASURES
from onlinecal.measures.groups import OF_GROUPS
from onlinecal.report.catalogue import KINDS, rows
from tests import recalibrated, truthfulness
from tests.gallery import digests
from tests.index_page import alone, links
from tests.pages import DOCS, README, ROOT

#: the keys in the sources of measures
REFERENCES = set(re.findall(r"^- (\w+): ", (DOCS / "references.md").read_text("utf-8"), re.MULTILINE))


def text(page):
    return (DOCS / page).read_text("utf-8")


def public(module):
    """The public names of a module: its `__all__`, or what it defines."""
    own = [
        name for name, thing in vars(module).items() if getattr(thing, "__module__", "") == module.__name__
    ]
    return [name for name in getattr(module, "__all__", own) if not name.startswith("_")]


def rooms():
    """Public module → what stands under it: `onlinecal` itself, and each of its public names that is a module."""
    above = (onlinecal, onlinecal.measures)
    named = [(name, getattr(module, name)) for module in above for name in public(module)]
    return {"onlinecal": onlinecal} | {name: thing for name, thing in named if inspect.ismodule(thing)}


@pytest.mark.parametrize("room", rooms())
def test_the_reference_has_every_public_name(room):
    """By a list, or by that of the module itself where it is text in the code."""
    page = text(f"reference/{room}.md")
    listed = re.findall(r"\w+", "".join(re.findall(r"members: \[(.*?)\]", page, re.DOTALL)))
    listed += [path.rpartition(".")[2] for path in re.findall(r"^::: (\S+)$", page, re.MULTILINE)]
    names = {name for name in public(rooms()[room]) if not inspect.ismodule(getattr(rooms()[room], name))}
    assert re.search(r"^::: \S+$(?!\n    options)", page, re.MULTILINE) or names <= set(listed)


def hooks():
    """docs/hooks.py, which makes tables of the site."""
    found = importlib.util.spec_from_file_location("hooks", DOCS / "hooks.py")
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def test_the_site_has_every_name_with_its_facts_and_parameters():
    """Where the page has a comment; `mkdocs build --strict` says that links into the reference lead somewhere."""
    made = hooks().on_page_markdown
    pages = made(text("strategies.md")), made(text("measures.md"))
    assert "<!-- the site" not in "".join(pages)
    assert re.findall(r"^## (.*)", made(text("reference/commands.md")), re.MULTILINE) == list(COMMANDS)
    for kind in set(KINDS) - {"class_measures"}:  # these are on the page of classes
        for row in rows(kind):
            assert f"| {'[' * (kind in hooks().FACTS)}`{row['name']}`" in "".join(pages)
    for row in (
        "| [`blum_mansour`](reference/forecasters.md#onlinecal.forecasters.BlumMansour) | No full swap regret for the "
        "squared loss: a learner at each grid point, and the law that is stationary. | `m = 'T^(1/3)'` | "
        "swap_regret[quadratic] = O(T^(1/3) log T) | no | yes | yes | O(m) |",
        "| [`drift`](reference/natures.md#onlinecal.natures.Drift) | Coins with a bias that moves evenly from one end "
        "to the other: q_t = a + (b − a)(t − ½)/T. | `first = 0.0`, `last = 1.0` | – | NOTHING |",
        "| [`multi_linf`](reference/measures.md#onlinecal.measures.multi_linf) | max ∣B(v,g)∣ | GJNPR22 | exact "
        "| O(nk) | no | yes | yes | – |",
        "| `cdl` | O(√T log T) | 0.5 | Hu & Wu 2024 |",
        "| `rounded_down` |",
    ):
        assert row in "".join(pages), row


def test_a_table_has_the_numbers_of_the_command_beside_it():
    assert truthfulness.table() in text("measures.md")


@pytest.mark.slow
def test_the_table_of_recalibrations_is_that_of_its_command():
    assert recalibrated.table() in text("recalibrate.md")


def test_the_checklist_names_tests_and_scenarios_that_are_there():
    page = text("checklist.md")
    for file in re.findall(r"\b\w+/test_\w+", page):
        assert (ROOT / "tests" / f"{file}.py").exists(), file
    for line in page.splitlines():
        assert " | ✔ | " not in line or re.search(r"test_\w+|scenarios/", line.split(" | ")[-1]), line
    for file in re.findall(r"scenarios/[\w/.-]*\w", page):
        assert (ROOT / file).exists(), file


def test_every_record_is_complete_and_every_source_is_listed():
    cited = set()
    for measure in (MEASURES | OF_GROUPS | OF_LOGS).values():
        cited |= {re.fullmatch(r"(\w+)( .*)?", part).group(1) for part in measure.source.split("; ")}
        assert measure.symbol
        assert measure.complexity
        for said in (measure.continuous, measure.complete, measure.sound):
            assert said.startswith(("yes", "no", "as ω", "1/2-Hölder")), measure.name
    assert cited == set(REFERENCES)


# ---------------------------------------------------------------- the first page


def test_the_first_page_is_short_and_its_links_lead_to_files():
    """All of them, so that `index_page` decides where they lead on a package index."""
    page = README.read_text("utf-8")
    assert len(page.splitlines()) <= 110
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


def test_a_package_index_shows_the_first_page_without_links_to_nowhere(tmp_path):
    page, repository = README.read_text("utf-8"), "https://host/us/onlinecal"
    shown = description(tmp_path, "")
    assert links(shown) == []
    assert "*Picture, docs/pictures/quickstart.png in the repository: Totals of ECE" in shown
    assert "tutorials | for a researcher, for a forecaster with a log, for a student |" in shown
    shown = description(tmp_path, f'\n[project.urls]\nRepository = "{repository}/"\n')
    assert links(shown) == [
        f"{repository}/{'raw' if link.endswith('.png') else 'blob'}/HEAD/{link}" for link in links(page)
    ]
    assert alone(shown, "", links="", pictures="") == shown  # nothing is left to do


def test_every_page_is_listed():
    """That the menu has no other pages, and that links between pages lead somewhere, `mkdocs build --strict` says."""
    listed = links((DOCS / "reference" / "index.md").read_text("utf-8"))
    assert set(listed) == {f"{room}.md" for room in rooms()} | {"commands.md"}
    menu = (ROOT / "mkdocs.yml").read_text("utf-8").partition("\nnav:\n")[2]
    for page in DOCS.rglob("*.md"):
        assert f" {page.relative_to(DOCS)}\n" in menu


def test_pictures_of_the_gallery_are_drawn_by_the_code_on_the_page():
    for path, digest in digests().items():
        with Image.open(path) as picture:
            assert picture.info["Source"] == digest, f"{path.name}: run python -m tests.gallery"
