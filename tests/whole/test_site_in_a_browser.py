"""The site of docs/ in a real browser, from the file system: whole, without a network, on a phone and a desk."""

import string
import subprocess
import sys
from importlib.util import find_spec

import pytest

from tests.browser import browser, needs_chromium, opened
from tests.readme import DOCS, ROOT

__all__ = ["browser"]  # a fixture
pytestmark = [
    pytest.mark.slow,
    needs_chromium,
    pytest.mark.skipif(find_spec("mkdocs") is None, reason='needs pip install -e ".[docs]", as .ci/run does'),
]

PAGES = sorted(str(page.relative_to(DOCS).with_suffix(".html")) for page in DOCS.rglob("*.md"))


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", folder],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.parametrize("name", PAGES)
def test_a_page_opens_alone_and_fits(browser, site, name):
    for width in (390, 1280):
        page = opened(browser, (site / name).as_uri(), width)
        page.wait_for_load_state()
        assert page.said == []
        assert [url for url in page.asked if not url.startswith(("file:", "data:"))] == []
        assert page.evaluate(
            "[...document.images].every(image => image.complete && image.naturalWidth > 100)"
        )
        # Tables and code scroll in their frames; the page itself does not.
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.close()


@pytest.mark.parametrize(
    ("words", "leads"), [("glossary", "glossary"), ("AlmostOneStepAhead", "forecasters")]
)
def test_the_search_finds(browser, site, words, leads):
    page = opened(browser, (site / "index.html").as_uri(), 1280)
    # Key by key: the site searches when a key goes up, and text that is put in at once lets none go up.
    page.locator("input[name=query]").press_sequentially(words)
    # Results come one after the other, and only so many as there is room for.
    page.locator(f".md-search-result__link[href*='{leads}']").first.wait_for(state="attached")
    assert page.said == []
    page.close()


def test_the_search_takes_no_word_for_another(browser, site):
    """It looks up every word that begins as the question; one that it does not know is an error in the console."""
    page = opened(browser, (site / "index.html").as_uri(), 1280)
    query = page.locator("input[name=query]")
    for key in [*string.ascii_lowercase, *string.digits, "glossary"]:
        query.fill("")
        query.press_sequentially(key)
        page.locator(".md-search-result__meta", has_text="matching documents").wait_for(state="attached")
    assert page.said == []
    page.close()


def test_a_page_that_is_too_wide_or_asks_others_would_be_seen(browser, tmp_path):
    path = tmp_path / "broken.html"
    path.write_text("<img src='https://nowhere.invalid/a.png'><p style='width: 500px'>a</p>")
    page = opened(browser, path.as_uri(), 390)
    page.wait_for_load_state()
    assert page.evaluate("document.documentElement.scrollWidth") > 390
    assert "https://nowhere.invalid/a.png" in page.asked
    page.close()
