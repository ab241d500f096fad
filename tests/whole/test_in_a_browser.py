"""A study's page and the site of docs/ in a browser: whole, alone, without an error, on a phone and a desk."""

import io
import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from onlinecal.report.page import page_of
from tests.pages import DOCS, ROOT
from tests.report.made import contrast

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine; .ci/run installs one"),
]


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    quiet = ("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
             "--disable-component-update", "--disable-sync", "--disable-quic")  # fmt: skip
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=quiet)
        yield opened
        opened.close()


def empty(browser, width, scheme="light"):
    """A page with what its console says and what it asks for. Opening addresses in one costs a third of a new page."""
    page = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
    page.said, page.asked = [], []
    page.on("console", lambda message: page.said.append(message.text))
    page.on("pageerror", lambda error: page.said.append(str(error)))
    page.on("request", lambda request: page.asked.append(request.url))
    return page


@pytest.fixture
def opened(browser):
    """Opens an address in a page of its own, which is closed after the test."""
    pages = []

    def open(address, width=1280, scheme="light"):
        pages.append(empty(browser, width, scheme))
        pages[-1].goto(address)
        return pages[-1]

    yield open
    for page in pages:
        page.close()


@pytest.fixture(scope="module")
def address(whole, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "page.html"
    meta = {"scenario": "runs = 3\n" + "# a long line " * 40, "version": "1"}
    page_of(whole, meta, len(whole.cells), "a.db").write(path)
    return path.as_uri()


def check_alone(page, width, own):
    """No message, nothing asked of others, pictures whole; what is wide scrolls in its frame, the page does not."""
    assert page.said == []
    assert [url for url in page.asked if not url.startswith(own)] == []
    assert page.evaluate("[...document.images].every(image => image.complete && image.naturalWidth > 100)")
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize(("width", "scheme"), [(360, "light"), (1280, "dark")])
def test_the_page_loads_alone_and_fits(opened, address, width, scheme):
    page = opened(address, width, scheme)
    check_alone(page, width, ("data:", address))
    assert page.evaluate("document.images.length") > 2
    # Each picture has the colours of such a page: on a dark one the browser inverts them.
    for picture in page.locator("figure img").all():
        assert (lightness(picture.screenshot()) > 0.9) == (scheme == "light")
    colours = (
        page.evaluate(f"getComputedStyle(document.body).{key}") for key in ("color", "backgroundColor")
    )
    ink, ground = ([int(x) / 255 for x in re.findall(r"\d+", colour)[:3]] for colour in colours)
    assert contrast(ink, ground) >= 7.0


def test_tables_are_sorted_by_their_headings_and_printed_whole(opened, address, whole):
    page = opened(address)
    table = page.locator("#tables table").first
    heading = table.locator("thead button").nth(1)

    def column():
        cells = table.locator("tbody td:nth-child(2)").all()
        return [float(cell.get_attribute("data-value")) for cell in cells]

    before = column()
    for backwards in (False, True):
        heading.click()
        assert column() == sorted(before, reverse=backwards)
    table.locator("thead button").first.click()
    assert [cell.inner_text() for cell in table.locator("tbody th").all()] == sorted(whole.forecasters)
    # On paper nothing scrolls, and there is no menu.
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.querySelector('nav')).display") == "none"
    frames = page.locator(".scroll").all()
    assert {frame.evaluate("e => getComputedStyle(e).overflowX") for frame in frames} == {"visible"}


def lightness(screenshot):
    """The median lightness of a picture's pixels, from 0 to 1."""
    with Image.open(io.BytesIO(screenshot)) as image:
        return np.median(np.asarray(image.convert("L"))) / 255


def test_faults_would_be_seen(opened, tmp_path):
    path = tmp_path / "broken.html"
    wide = "<p style='width: 500px'>a</p>"
    path.write_text(f"{wide}<img src='https://nowhere.invalid/a.png'><script>nothing()</script>")
    page = opened(path.as_uri(), 400)
    page.wait_for_load_state()
    assert any("nothing" in text for text in page.said)
    assert "https://nowhere.invalid/a.png" in page.asked
    assert page.evaluate("document.documentElement.scrollWidth") > 400


# ---------------------------------------------------------------- the site

PAGES = sorted(str(page.relative_to(DOCS).with_suffix(".html")) for page in DOCS.rglob("*.md"))


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The built site: that of .ci/run, which names its folder."""
    if "SITE" in os.environ:
        return Path(os.environ["SITE"])
    if find_spec("mkdocs") is None:
        pytest.skip('needs pip install -e ".[docs]", as .ci/run does')
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", folder],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def empties(browser):
    return {width: empty(browser, width) for width in (390, 1280)}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_of_the_site_opens_alone_and_fits(empties, site, name):
    """On a phone and on a desk."""
    for width, page in empties.items():
        del page.said[:], page.asked[:]
        page.goto((site / name).as_uri())
        page.wait_for_load_state()
        check_alone(page, width, ("file:", "data:"))
