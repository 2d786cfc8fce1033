"""The page of `midstream doctor` in a real browser."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from tests.doctor.build import CLIENT, SERVER, Tape, chunk, examine
from tests.doctor.test_as_html import EVIL, poisoned

from midstream.adapters.capture_format import read
from midstream.config import load
from midstream.doctor.as_html import page as made
from midstream.doctor.examine import Doctor
from midstream.doctor.report import Report

pytestmark = pytest.mark.peers  # a browser, some seconds each; CI runs it, too

CAPTURE = Path(__file__).parents[1] / (
    "captures/cloudflare/aichat-03-midcontinuation-reconnect-000001.cap"
)
MANY = 12_000


def show(page: Page, report: Report, directory: Path) -> None:
    """Open the page of a report as a person does: from a file."""
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    file = directory / "report.html"
    file.write_text(made(report), "utf-8")
    page.goto(file.as_uri())
    expect(page.locator("#rows .row").first).to_be_visible()
    assert requests == [file.as_uri()]


@pytest.fixture
def reconnected() -> Report:
    doctor = Doctor(load(environ={}, needs_upstream=False), is_drawn=True)
    doctor.take(str(CAPTURE), read(CAPTURE))
    return doctor.report()


def detail(page: Page) -> str:
    return page.locator("#detail").inner_text()


def test_keys_step_from_frame_to_frame_and_to_those_that_are_marked(
    page: Page, reconnected: Report, tmp_path: Path
):
    show(page, reconnected, tmp_path)
    assert "Choose a frame" in detail(page)
    page.focus("#canvas")
    page.keyboard.press("ArrowRight")
    assert "1:4 " in detail(page)
    page.keyboard.press("ArrowRight")
    assert "2:3 " in detail(page)
    page.keyboard.press("n")
    assert "replay-overlap" in detail(page)
    page.keyboard.press("Escape")
    assert "Choose a frame" in detail(page)


def test_a_click_on_a_row_chooses_its_frame(page: Page, reconnected: Report, tmp_path: Path):
    show(page, reconnected, tmp_path)
    page.locator("#rows .row").nth(2).click()
    expect(page.locator("#rows .row[aria-selected=true]")).to_have_count(1)
    assert "received" in detail(page)


def test_a_click_on_the_timeline_chooses_the_frame_there(
    page: Page, reconnected: Report, tmp_path: Path
):
    show(page, reconnected, tmp_path)
    page.wait_for_function("spots.length > 0")
    spot = page.evaluate("({x: spots[1].x, y: spots[1].y, index: spots[1].index})")
    page.locator("#canvas").click(position={"x": spot["x"], "y": spot["y"]})
    assert page.evaluate("state.selected") == spot["index"]
    page.locator("#canvas").hover(position={"x": spot["x"], "y": spot["y"]})
    expect(page.locator("#tip")).to_be_visible()


def test_filters_and_search_narrow_what_is_shown(page: Page, reconnected: Report, tmp_path: Path):
    show(page, reconnected, tmp_path)
    total = page.evaluate("state.shown.length")
    page.uncheck("#server")
    assert 0 < page.evaluate("state.shown.length") < total / 2
    page.check("#server")
    page.check("#marked")
    marked = page.evaluate("state.shown.length")
    assert 0 < marked < total
    page.uncheck("#marked")
    page.keyboard.press("/")
    page.keyboard.type("3:44")
    assert page.evaluate("state.shown.length") == 1


def test_zoom_keeps_within_the_conversation(page: Page, reconnected: Report, tmp_path: Path):
    show(page, reconnected, tmp_path)
    page.focus("#canvas")
    for key in "+++-+":
        page.keyboard.press(key)
    before = page.evaluate("state.to - state.from")
    assert before < page.evaluate("scale.length")
    page.keyboard.press("0")
    assert page.evaluate("[state.from, state.to === scale.length]") == [0, True]


def test_a_link_of_a_fault_leads_to_its_frame(page: Page, reconnected: Report, tmp_path: Path):
    show(page, reconnected, tmp_path)
    page.locator(".card .where a").first.click()
    page.wait_for_function("state.selected >= 0")
    assert "replay-overlap" in detail(page)


def test_what_a_capture_holds_is_only_text(page: Page, tmp_path: Path):
    show(page, poisoned(), tmp_path)
    page.locator("#rows .row").last.click()
    assert page.locator("img").count() == 0
    assert EVIL[:20] in page.locator("#rows").inner_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_follows_the_colours_of_the_system(
    page: Page, reconnected: Report, tmp_path: Path, scheme: str
):
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]  # one of two literals
    show(page, reconnected, tmp_path)
    colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
    brightness = sum(int(part) for part in re.findall(r"\d+", colour)[:3]) / 3
    assert (brightness > 128) is (scheme == "light")


def test_nothing_is_wider_than_a_narrow_window(page: Page, reconnected: Report, tmp_path: Path):
    page.set_viewport_size({"width": 380, "height": 700})
    show(page, reconnected, tmp_path)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_of_thousands_of_frames_only_rows_in_sight_exist(page: Page, tmp_path: Path):
    tape = Tape()
    tape.socket(1)
    for number in range(MANY):
        side = CLIENT if number % 5 == 0 else SERVER
        tape.say(1, chunk("R", {"type": f"data-{number}"}), side)
    show(page, examine(tape, is_drawn=True), tmp_path)
    assert page.evaluate("state.shown.length") == MANY
    page.focus("#list")
    page.evaluate("list.scrollTop = list.scrollHeight")
    expect(page.locator(f"#row{MANY - 1}")).to_be_visible()
    assert page.locator("#rows .row").count() < 60
