"""The page: whole in itself, and everything of a capture in it is only text."""

import base64
import hashlib
import json
import re

from tests.doctor.build import Tape, chunk, examine
from tests.doctor.test_agents import completed, played, update

from midstream.doctor.as_html import page
from midstream.doctor.report import Report

EVIL = "</script><img src=x onerror=alert(1)>"


def poisoned() -> Report:
    """Examine a capture with markup in every place that reaches the page."""
    tape = Tape()
    tape.socket(1, f"/{EVIL}?_pk=p")
    tape.say(1, chunk(EVIL, {"type": EVIL, "id": EVIL}))
    listed = [{"id": EVIL, "role": "user"}] * 2
    tape.say(1, {"type": "cf_agent_chat_messages", "messages": listed})
    tape.say(1, {"type": EVIL}, sent=(), rules=((EVIL, EVIL),), skips=((EVIL, EVIL),))
    tape.break_off(1, reason=EVIL, side=EVIL, code=EVIL)
    tape.add(0, "gap", meta={"count": 1, "reason": EVIL})  # type: ignore[arg-type]
    return examine(tape, is_drawn=True)


def data_of(text: str):
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)
    assert found is not None
    return json.loads(found[1])


def test_markup_of_a_capture_never_becomes_markup_of_the_page():
    text = page(poisoned())
    assert "<img" not in text
    assert text.count("<script") == text.count("</script>") == 2
    frames = data_of(text)["talks"][0]["frames"]
    assert any(EVIL in frame[7] for frame in frames)  # it is there, as text


def test_the_page_asks_for_nothing_and_lets_nothing_else_run():
    text = page(poisoned())
    assert not re.findall(r"""<[a-z]+\b[^>]*\s(?:src|href)=["']?(?!["']?#)""", text)
    assert "url(" not in text
    assert "@import" not in text
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', text)
    assert policy is not None
    assert policy[1].startswith("default-src 'none'; ")
    for name, body in (("style", r"<style>(.*?)</style>"), ("script", r"<script>(.*?)</script>")):
        found = re.search(body, text, re.S)
        assert found is not None
        digest = base64.b64encode(hashlib.sha256(found[1].encode()).digest()).decode()
        assert f"{name}-src 'sha256-{digest}'" in policy[1]


def test_the_diagnosis_is_readable_without_the_script():
    report = examine(played(update("one ", append=False), update("two"), completed("one two")))
    text = page(report)
    body = text[text.index("<body>") : text.index('<script type="application/json"')]
    for words in ("1 known fault", "final-message-once", "mended while recorded: 0 of 1"):
        assert words in body


def test_the_timeline_has_sizes_marks_and_sides():
    tape = Tape()
    tape.stream(1, "/", {"jsonrpc": "2.0", "id": 1, "method": "message/stream", "params": {}})
    tape.event(1, update("one", append=False))
    rules = (("final-message-once", "final_message"),)
    tape.event(1, completed("one"), sent=(("server", "sse", b"data: 1\n\n"),), rules=rules)
    tape.end(1)
    [talk] = data_of(page(examine(tape, is_drawn=True)))["talks"]
    lane, _, _, side, kind, size, sent, _, faulty, mended, _, _ = talk["frames"][-1]
    assert (lane, side, kind, sent) == (0, 1, "sse", 9)
    assert size == len(tape.records[-3].data)
    assert faulty == ["final-message-once final_message", "repeated-final"]
    assert mended == ["final-message-once final_message"]


def test_descriptions_hold_at_most_a_few_words_of_text():
    tape = played(update("x" * 5000, append=False))
    frames = data_of(page(examine(tape, is_drawn=True)))["talks"][0]["frames"]
    assert all("x" * 41 not in frame[7] for frame in frames)


def test_a_page_of_nothing_is_a_page():
    text = page(examine(Tape(), is_drawn=True))
    assert "No known fault." in text
    assert data_of(text)["talks"] == []
