"""One browser for each module; without chromium these tests are skipped."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Dialog, Page, sync_playwright
from tests.browser.site import CHROMIUM

MS = 20_000


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("there is no chromium on the path: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


class Complaints(list[str]):
    """What a page complained of: errors, refused resources, dialogs."""


@pytest.fixture
def complaints() -> Complaints:
    return Complaints()


@pytest.fixture
def page(browser: Browser, complaints: Complaints) -> Iterator[Page]:
    """Return a page of a new profile, whose errors fail the test."""
    context = browser.new_context(viewport={"width": 1280, "height": 760}, accept_downloads=True)
    page = context.new_page()
    page.set_default_timeout(MS)

    def on_dialog(dialog: Dialog) -> None:
        complaints.append(dialog.message)
        dialog.dismiss()

    def on_console(said: ConsoleMessage) -> None:
        if said.type in ("error", "warning"):
            complaints.append(said.text)

    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("dialog", on_dialog)
    page.on("console", on_console)
    yield page
    context.close()
    assert complaints == []
