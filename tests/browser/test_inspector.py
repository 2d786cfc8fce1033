"""The inspector page in a real browser: what a person sees, does, and what cannot hurt them."""

import json
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect
from tests.browser.conftest import MS, Complaints
from tests.browser.site import Site, site
from tests.support import CLIENT, SERVER

from midstream.adapters.capture_format import read
from midstream.core.frames import Frame, Kind
from midstream.core.ports import RecordKind
from midstream.hosts.inspector import RingBounds

TOKEN = "a-token-of-32-characters-at-least"
HOSTILE = (
    "<img src=x onerror=alert(1)>", "<script>alert(2)</script>", "\"><svg/onload=alert(3)>",
    "javascript:alert(4)", "</div><iframe srcdoc='<script>alert(5)</script>'>",
    "\u2028\u2029\u202e\x00\x1b[31m", "&lt;b&gt;", "${alert(6)}", "']];alert(7)//",
)  # fmt: skip


def text(value: object, side=SERVER) -> Frame:
    return Frame(side, Kind.WS_TEXT, json.dumps(value).encode())


def mended(at: Site, exchange: int, before: object, *after: object) -> None:
    sent = tuple(text(value) for value in after)
    rules = (("fake", "swap"),)
    at.write(at.record(exchange, RecordKind.FRAME, SERVER, text(before), sent, rules))


def show(page: Page, at: Site, exchange: int = 1) -> None:
    """Open the page at an exchange, and wait until it is told of it."""
    page.goto(f"{at.url}#{exchange}")
    expect(page.locator("#state")).to_have_text("live")
    expect(page.locator(".exchange")).not_to_have_count(0)


def counted(page: Page, shown: str) -> None:
    expect(page.locator("#record-count")).to_have_text(shown, timeout=MS)


def test_it_shows_exchanges_and_the_frames_of_one_as_they_pass(page: Page):
    with site() as at:
        at.open(1, "/chat/room?token=hidden")
        at.open(2)
        page.goto(at.url)
        expect(page.locator(".exchange:visible")).to_have_count(2)
        page.keyboard.press("j")
        page.keyboard.press("j")
        expect(page.locator("#title")).to_have_text("#1 GET /chat/room?token=…")
        counted(page, "2 records")
        at.write(at.message(1, {"type": "hello"}), at.message(1, {"type": "back"}, CLIENT))
        counted(page, "4 records")
        last = page.locator(".record:visible").last
        expect(last.locator(".side")).to_have_text("client →")
        expect(last.locator(".text")).to_have_text('{"type": "back"}')
        assert page.evaluate("location.hash") == "#1"
        at.write(at.record(1, RecordKind.CLOSE, ending="complete"))
        expect(page.locator(".exchange").nth(1).locator(".outcome")).to_have_text("complete")


def test_a_mended_frame_opens_with_before_after_and_why(page: Page):
    with site() as at:
        at.open(1)
        for number in range(60):
            at.write(at.message(1, {"n": number}))
        mended(at, 1, {"keep": 1, "text": "over and over"}, {"keep": 1, "text": "over"})
        for number in range(60):
            at.write(at.message(1, {"n": number}))
        show(page, at)
        counted(page, "123 records")
        page.keyboard.press("l")
        page.keyboard.press("g")
        page.keyboard.press("n")
        page.keyboard.press("Enter")
        detail = page.locator("#detail")
        expect(detail.locator(".rules")).to_have_text("fake: swap")
        expect(detail.locator(".out")).to_contain_text('"text": "over and over"')
        expect(detail.locator(".in")).to_have_text('+   "text": "over"')
        expect(detail.locator(".out mark")).to_have_text(" and over")
        expect(page.locator(".record.mended .done")).to_have_text("mended · fake: swap")
        page.keyboard.press("r")
        expect(detail.locator(".out")).to_contain_text('{"keep": 1, "text": "over and over"}')
        page.keyboard.press("j")
        expect(detail.locator(".rules")).to_have_count(0)
        page.keyboard.press("Escape")
        expect(detail).to_be_hidden()


def test_nothing_from_the_wire_becomes_markup(page: Page, complaints: Complaints):
    with site() as at:
        for number, hostile in enumerate(HOSTILE, 1):
            at.open(number, f"/{hostile}?{hostile}={hostile}", ("X-Hostile", hostile))
            at.write(at.message(number, hostile), at.message(number, {hostile: hostile}))
            mended(at, number, {hostile: hostile}, {"a": hostile}, hostile)
            at.write(at.record(number, RecordKind.CLOSE, reason=hostile, ending=hostile))
        page.goto(at.url)
        before = page.evaluate("document.querySelectorAll('img, script, svg, iframe, b').length")
        for _ in HOSTILE:
            page.keyboard.press("j")
            counted(page, "6 records")
            page.keyboard.press("l")
            page.keyboard.press("g")
            page.keyboard.press("Enter")
            for _ in range(5):
                expect(page.locator("#detail h2")).to_be_visible()
                page.keyboard.press("j")
            page.keyboard.press("Escape")
            page.keyboard.press("h")
        found = page.evaluate(
            "document.querySelectorAll('img, script, svg, iframe, #record-list b').length"
        )
        assert found <= before
        assert complaints == []


def test_frames_are_filtered_by_words_and_searched_in_their_whole_payload(page: Page):
    with site() as at:
        at.open(1)
        for number in range(50):
            at.write(at.message(1, {"n": number, "pad": "x" * 3_000, "end": f"end-{number}."}))
        at.write(at.message(1, "from the client", CLIENT))
        mended(at, 1, {"a": 1}, {"a": 2})
        show(page, at)
        counted(page, "54 records")
        page.keyboard.press("l")
        page.keyboard.press("/")
        page.keyboard.type("END-17.")
        counted(page, "1 of 54")
        page.locator("#record-filter").fill("from:client")
        counted(page, "1 of 54")
        page.locator("#record-filter").fill("-from:server kind:text")
        counted(page, "1 of 54")
        page.locator("#record-filter").fill("is:mended")
        counted(page, "1 of 54")
        page.locator("#record-filter").fill("")
        page.keyboard.press("Escape")
        page.keyboard.press("m")
        counted(page, "1 of 54")
        page.keyboard.press("m")
        counted(page, "54 records")
        page.locator("#exchange-filter").fill("nowhere")
        expect(page.locator("#exchange-count")).to_have_text("0 of 1")


def test_it_pauses_goes_on_and_clears(page: Page):
    with site() as at:
        at.open(1)
        show(page, at)
        counted(page, "2 records")
        page.keyboard.press("Space")
        expect(page.locator("#state")).to_have_text("paused")
        at.write(*(at.message(1, number) for number in range(30)))
        expect(page.locator("#pause")).to_have_text("go on (30 waiting)")
        counted(page, "2 records")
        page.keyboard.press("Space")
        counted(page, "32 records")
        page.keyboard.press("c")
        counted(page, "0 records")
        at.write(at.message(1, "new"))
        counted(page, "1 records")
        page.keyboard.press("?")
        expect(page.locator("#help")).to_be_visible()
        page.keyboard.press("Escape")
        expect(page.locator("#help")).to_be_hidden()


def test_ten_thousand_frames_keep_the_document_small(page: Page):
    with site() as at:
        at.open(1)
        show(page, at)
        for _ in range(20):
            at.write(*(at.message(1, {"n": number, "text": "z" * 80}) for number in range(500)))
        counted(page, "10002 records")
        nodes = "document.getElementsByTagName('*').length"
        assert page.evaluate(nodes) < 900
        page.keyboard.press("l")
        page.keyboard.press("g")
        expect(page.locator(".record .at").first).to_be_visible()
        expect(page.locator("#follow")).to_have_attribute("aria-pressed", "false")
        page.locator("#record-list").evaluate("box => { box.scrollTop = box.scrollHeight / 2; }")
        expect(page.locator(".record[aria-posinset='5001']")).to_be_visible()
        assert page.evaluate(nodes) < 900
        page.keyboard.press("G")
        expect(page.locator(".record[aria-posinset='10002']")).to_be_visible()


def test_a_page_that_cannot_keep_up_says_how_much_it_missed(page: Page):
    with site(bounds=RingBounds(max_exchange_records=400)) as at:
        at.open(1)
        show(page, at)
        counted(page, "2 records")
        at.write(*(at.message(1, number) for number in range(3_000)))
        expect(page.locator("#gap")).to_have_text(
            "2600 records were no longer in memory when this page came to them"
        )
        counted(page, "402 records")


def test_signing_in_needs_the_token_and_no_script_can_read_the_cookie(
    page: Page, complaints: Complaints
):
    with site(token=TOKEN) as at:
        at.open(1)
        page.goto(at.url)
        expect(page.locator("#main")).to_be_hidden()
        page.locator("#token").fill("wrong")
        page.keyboard.press("Enter")
        expect(page.locator("#login-says")).to_have_text("wrong token")
        page.locator("#token").fill(TOKEN)
        page.keyboard.press("Enter")
        expect(page.locator(".exchange:visible")).to_have_count(1)
        assert page.evaluate("document.cookie") == ""
        page.reload()
        expect(page.locator(".exchange:visible")).to_have_count(1)
        page.locator("#logout").click()
        expect(page.locator("#login")).to_be_visible()
        told = [said for said in complaints if "401" not in said]
        complaints[:] = told  # the browser itself tells of each 401


def test_an_exchange_is_downloaded_as_a_capture(page: Page, tmp_path: Path):
    with site() as at:
        at.open(1, "/chat", ("Authorization", "Bearer hunter2"))
        at.write(at.message(1, "hello"))
        show(page, at)
        counted(page, "3 records")
        with page.expect_download() as download:
            page.keyboard.press("d")
        path = tmp_path / download.value.suggested_filename
        download.value.save_as(path)
        records = list(read(path))
        assert [record.kind for record in records] == ["open", "headers", "frame"]
        assert b"hunter2" not in path.read_bytes()


def test_it_says_when_the_process_is_gone(page: Page, complaints: Complaints):
    with site() as at:
        at.open(1)
        show(page, at)
    expect(page.locator("#state")).to_have_text("not connected")
    complaints.clear()  # the browser itself tells of each try


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_narrow_window_shows_one_thing_at_a_time(browser: Browser, scheme):
    with site() as at:
        at.open(1)
        mended(at, 1, {"a": 1}, {"a": 2})
        context = browser.new_context(viewport={"width": 390, "height": 700}, color_scheme=scheme)
        page = context.new_page()
        page.goto(at.url)
        page.locator(".exchange:visible").click()
        expect(page.locator("#exchanges")).to_be_hidden()
        page.locator(".record.mended").click()
        expect(page.locator("#detail .in")).to_be_visible()
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= 390
        page.locator("#back").click()
        expect(page.locator("#exchange-list")).to_be_visible()
        dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (dark == "rgb(255, 255, 255)") is (scheme == "light")
        context.close()
