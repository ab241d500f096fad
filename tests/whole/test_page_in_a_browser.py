"""The page of a study in a real browser: it loads alone, whole, without an error, and fits a phone and paper."""

import re

import pytest

from onlinecal.report.page import html, page_of
from tests.browser import browser, needs_chromium, opened

__all__ = ["browser"]  # a fixture
pytestmark = [pytest.mark.slow, needs_chromium]


@pytest.fixture
def address(whole, tmp_path):
    path = tmp_path / "page.html"
    meta = {"scenario": "runs = 3\n" + "# a long line " * 40, "version": "1"}
    path.write_text(html(page_of(whole, meta, len(whole.cells), "a.db")), encoding="utf-8")
    return path.as_uri()


@pytest.mark.parametrize("width", [360, 768, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_loads_alone_and_fits(browser, address, width, scheme):
    page = opened(browser, address, width, scheme)
    assert page.said == []
    assert [url for url in page.asked if not url.startswith("data:")] == [address]
    assert page.evaluate("document.images.length") > 2
    assert page.evaluate("[...document.images].every(image => image.complete && image.naturalWidth > 100)")
    # Each picture is that for such a page.
    start = page.evaluate("[...document.images].map(image => image.currentSrc)")
    other = "src" if scheme == "light" else "srcset"
    tag = "img" if scheme == "light" else "source"
    assert start == page.evaluate(
        f"[...document.querySelectorAll('figure {tag}')].map(e => e.getAttribute('{other}'))"
    )
    # Tables scroll in their frames; the page itself does not.
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    ink, paper = (
        page.evaluate(f"getComputedStyle(document.body).{key}") for key in ("color", "backgroundColor")
    )
    assert contrast(ink, paper) >= 7.0
    page.close()


def test_an_error_would_be_seen(browser, address, tmp_path):
    path = tmp_path / "broken.html"
    path.write_text("<p>a</p><img src='https://nowhere.invalid/a.png'><script>nothing()</script>")
    page = opened(browser, path.as_uri(), 400)
    page.wait_for_load_state()
    assert any("nothing" in text for text in page.said)
    assert len([url for url in page.asked if "nowhere.invalid" in url]) == 1
    page.close()


def test_tables_are_sorted_by_their_headings(browser, address, whole):
    page = opened(browser, address, 1280)
    table = page.locator("#tables table").first
    heading = table.locator("thead button").nth(1)

    def column():
        return [
            float(cell.get_attribute("data-value")) for cell in table.locator("tbody td:nth-child(2)").all()
        ]

    before = column()
    heading.click()
    assert column() == sorted(before)
    heading.click()
    assert column() == sorted(before, reverse=True)
    table.locator("thead button").first.click()
    assert [cell.inner_text() for cell in table.locator("tbody th").all()] == sorted(whole.forecasters)
    page.close()


def test_it_prints(browser, address):
    page = opened(browser, address, 1280)
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.querySelector('nav')).display") == "none"
    frames = page.locator(".scroll").all()
    assert {frame.evaluate("e => getComputedStyle(e).overflowX") for frame in frames} == {"visible"}
    assert page.pdf(format="A4").startswith(b"%PDF")
    page.close()


def contrast(first, second):
    """The contrast of two colours as WCAG defines it."""

    def light(colour):
        parts = [int(x) / 255 for x in re.findall(r"\d+", colour)[:3]]
        linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((light(first), light(second)))
    return (high + 0.05) / (low + 0.05)
