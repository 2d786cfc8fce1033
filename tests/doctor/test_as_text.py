"""The text: aligned when piped, in colour in a terminal, safe whatever a capture holds."""

import io

import pytest
from tests.doctor.build import Tape, examine
from tests.doctor.test_agents import completed, played, update
from tests.doctor.test_chat import reconnect

from midstream.doctor.as_text import write
from midstream.doctor.report import Report


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def piped(report: Report) -> str:
    out = io.StringIO()
    write(report, out)
    return out.getvalue()


def faulty() -> Report:
    return examine(played(update("one ", append=False), update("two"), completed("one two")))


def test_the_first_line_says_it_all():
    assert piped(faulty()).splitlines()[0] == (
        "1 known fault in 1 of 1 conversation. "
        "Nothing was mended while this was recorded; midstream would mend it."
    )
    assert piped(examine(Tape())).splitlines()[0] == "No known fault."


def test_piped_text_has_neither_colour_nor_tabs_nor_trailing_spaces():
    text = piped(faulty())
    assert "\x1b" not in text
    assert "\t" not in text
    assert all(line == line.rstrip() for line in text.splitlines())


def test_columns_are_aligned():
    lines = piped(faulty()).splitlines()
    head = next(line for line in lines if line.startswith("fault "))
    row = next(line for line in lines if line.startswith("final-message-once "))
    assert row[head.index("mended") :].startswith("0 of 1")
    assert row[head.index("first at") :].startswith("1:7")


def test_a_terminal_gets_colour_unless_it_wants_none(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    out = Terminal()
    write(faulty(), out)
    assert "\x1b[1;31m" in out.getvalue()
    monkeypatch.setenv("NO_COLOR", "1")
    out = Terminal()
    write(faulty(), out)
    assert "31m" not in out.getvalue()


def test_what_mends_is_there_to_be_copied():
    assert '\n  [addon.final-message-once]\n  mode = "repair"\n' in piped(faulty())


def test_what_nothing_mends_is_marked():
    tape = Tape()
    reconnect(tape)
    row = next(line for line in piped(examine(tape)).splitlines() if "broken-off" in line)
    assert "nothing mends it" in row


def test_a_capture_cannot_command_the_terminal():
    tape = Tape()
    tape.socket(1, "/\x1b]0;owned\x07[bold]")
    tape.break_off(1, reason="\x1b[2J\r\n")
    text = piped(examine(tape))
    assert "\x1b" not in text
    assert "\\u001b" in text


def test_several_captures_are_named():
    first = played(update("one ", append=False), update("two"), completed("one two"))
    second = played(update("one ", append=False), update("two"), completed("one two"))
    assert "tape0 1:7, tape1 1:7" in piped(examine(first, second))


def test_the_second_line_says_what_was_read_and_when():
    assert piped(faulty()).splitlines()[1] == (
        "1 capture, 1 conversation, 1 exchange, 4 frames, 748 bytes, "
        "2027-01-15 08:00:00 to 08:00:00 UTC (0.0 s)"
    )
