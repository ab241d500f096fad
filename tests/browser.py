"""A real browser for the tests of pages."""

import shutil

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
needs_chromium = pytest.mark.skipif(
    CHROMIUM is None, reason="there is no Chromium on this machine; .ci/run installs one"
)


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    quiet = ("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
             "--disable-component-update", "--disable-sync", "--disable-quic")  # fmt: skip
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=quiet)
        yield opened
        opened.close()


def opened(browser, address, width, scheme="light"):
    """A page, with what its console said and what it asked for."""
    page = empty(browser, width, scheme)
    page.goto(address)
    return page


def empty(browser, width, scheme="light"):
    """A page in which addresses are opened; opening one in it costs a third of a new page."""
    page = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
    page.said, page.asked = [], []
    page.on("console", lambda message: page.said.append(message.text))
    page.on("pageerror", lambda error: page.said.append(str(error)))
    page.on("request", lambda request: page.asked.append(request.url))
    return page
