"""Captures as HAR, as mitmproxy flows and as JSON lines, and back."""

import base64
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from midstream.adapters.capture_format import read
from midstream.adapters.capture_open import open_capture
from midstream.cli import main
from midstream.core.frames import Kind, Side
from midstream.core.ports import RecordKind

CAPTURES = Path(__file__).parents[1] / "captures"
ALL = sorted(CAPTURES.rglob("*.cap"))
CHAT = CAPTURES / "cloudflare" / "aichat-03-midcontinuation-reconnect-000001.cap"

STRING, NUMBER = {"type": "string"}, {"type": "number"}
PAIRS = {
    "type": "array",
    "items": {"type": "object", "required": ["name", "value"],
              "properties": {"name": STRING, "value": STRING}},
}  # fmt: skip
ENTRY = {
    "type": "object",
    "required": ["startedDateTime", "time", "request", "response", "cache", "timings"],
    "properties": {
        "startedDateTime": {"type": "string", "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z$"},
        "time": {"type": "number", "minimum": 0},
        "request": {
            "type": "object",
            "required": ["method", "url", "httpVersion", "cookies", "headers", "queryString",
                         "headersSize", "bodySize"],
            "properties": {"method": STRING, "url": STRING, "headers": PAIRS, "queryString": PAIRS},
        },
        "response": {
            "type": "object",
            "required": ["status", "statusText", "httpVersion", "cookies", "headers", "content",
                         "redirectURL", "headersSize", "bodySize"],
            "properties": {
                "status": {"type": "integer"}, "headers": PAIRS,
                "content": {"type": "object", "required": ["size", "mimeType"]},
            },
        },
        "timings": {
            "type": "object", "required": ["send", "wait", "receive"],
            "properties": {"send": NUMBER, "wait": NUMBER, "receive": NUMBER},
        },
    },
}  # fmt: skip
"""What HAR 1.2 demands of an entry; a published schema is asked in the tests of real peers."""


def exported(form: str, path: Path, out: Path, *flags: str) -> Path:
    assert main(["capture", "export", form, str(path), "--out", str(out), *flags]) == 0
    return out


def frames(records: Any) -> list[tuple[Side, Kind, bytes]]:
    """Return the frames, the bodies of one side joined."""
    found: list[tuple[Side, Kind, bytes]] = []
    bodies: dict[tuple[int, Side], bytes] = {}
    for record in records:
        frame = record.received
        if frame is None:
            continue
        if frame.kind is Kind.BODY:
            key = (record.exchange, frame.sender)
            bodies[key] = bodies.get(key, b"") + frame.wire
        else:
            found.append((frame.sender, frame.kind, frame.wire))
    return found + [(side, Kind.BODY, body) for (_, side), body in sorted(bodies.items()) if body]


@pytest.mark.parametrize("path", ALL[::3], ids=lambda path: path.stem)
@pytest.mark.parametrize("form", ["har", "mitm"])
def test_what_is_exported_reads_back_frame_by_frame(form: str, path: Path, tmp_path: Path):
    out = exported(form, path, tmp_path / f"x.{form}")
    again = open_capture(out)
    assert sorted(frames(again)) == sorted(frames(read(path)))
    opened = [record.meta["target"] for record in again if record.kind is RecordKind.OPEN]
    assert opened == [r.meta["target"] for r in read(path) if r.kind is RecordKind.OPEN]


@pytest.mark.parametrize("path", ALL[::5], ids=lambda path: path.stem)
def test_a_har_has_what_the_format_demands(path: Path, tmp_path: Path):
    log = json.loads(exported("har", path, tmp_path / "x.har").read_text())["log"]
    assert (log["version"], log["creator"]["name"]) == ("1.2", "midstream")
    for entry in log["entries"]:
        jsonschema.validate(entry, ENTRY)


def test_a_har_has_the_messages_as_chrome_writes_them(tmp_path: Path):
    log = json.loads(exported("har", CHAT, tmp_path / "x.har").read_text())["log"]
    socket = log["entries"][1]
    assert socket["_resourceType"] == "websocket"
    assert socket["request"]["url"].startswith("ws://")
    first = socket["_webSocketMessages"][0]
    assert first.keys() == {"type", "time", "opcode", "data"}
    assert (first["type"], first["opcode"]) == ("send", 1)
    assert json.loads(first["data"])["type"] == "cf_agent_stream_resume_request"


@pytest.mark.parametrize("form", ["har", "mitm"])
def test_mitmproxy_reads_both(form: str, tmp_path: Path):
    out = exported(form, CHAT, tmp_path / f"x.{form}")
    run = subprocess.run(
        [Path(sys.executable).parent / "mitmdump", "-nr", out],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert "/agents/rig-chat/cont-mx3d2wea" in run.stdout
    assert "Traceback" not in run.stdout + run.stderr


def test_the_client_and_the_server_saw_different_things(tmp_path: Path):
    mended = tmp_path / "mended-000001.cap"
    assert main(["replay", str(CHAT), "--out", str(mended)]) == 0
    seen = {
        side: frames(open_capture(exported("har", mended, tmp_path / f"{side}.har",
                                           "--seen-by", side)))
        for side in ("client", "server")
    }  # fmt: skip
    assert seen["client"] != seen["server"]
    received = frames(read(mended))
    for side in Side:  # each as it sent them itself
        own = [frame for frame in seen[side.value] if frame[0] is side]
        assert own == [frame for frame in received if frame[0] is side]


def test_json_lines_have_every_record(tmp_path: Path):
    mended = tmp_path / "mended-000001.cap"
    assert main(["replay", str(CHAT), "--out", str(mended)]) == 0
    lines = exported("jsonl", mended, tmp_path / "x.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    assert len(rows) == sum(1 for _ in read(mended))
    assert {"exchange", "seq", "side", "kind", "bytes", "addon", "rule"} <= rows[0].keys()
    assert any(row["addon"] == "replay-overlap" and row["rule"] == "reset" for row in rows)


def test_files_belong_to_their_owner_and_never_over_what_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    out = exported("har", CHAT, tmp_path / "x.har")
    assert out.stat().st_mode & 0o777 == 0o600
    assert main(["capture", "export", "jsonl", str(out), "--out", str(out)]) == 2
    assert "is the capture that is read" in capsys.readouterr().err
    assert main(["capture", "import", str(out), "--out", str(tmp_path / "y.cap")]) == 0
    assert frames(read(tmp_path / "y.cap")) == frames(open_capture(out))


# --- a HAR as others write it ---------------------------------------------------------------------


def har(*entries: dict[str, Any]) -> bytes:
    return json.dumps({"log": {"entries": entries}}).encode()


BARE = {"request": {"method": "GET", "url": "https://a.test/x?y=1"}}


@pytest.mark.parametrize("start", [b"", b"\xef\xbb\xbf", b"\n  "])
def test_an_entry_needs_no_more_than_a_method_and_a_url(tmp_path: Path, start: bytes):
    path = tmp_path / "x.har"
    path.write_bytes(start + har(BARE, BARE))
    records = list(open_capture(path))
    opened = [record for record in records if record.kind is RecordKind.OPEN]
    assert [record.meta["target"] for record in opened] == ["/x?y=1", "/x?y=1"]
    assert records[-1].meta["ending"] == "aborted"  # it was never answered


def test_bodies_in_base64_and_websockets_without_headers_are_read(tmp_path: Path):
    path = tmp_path / "x.har"
    entry = {
        "request": {"method": "POST", "url": "http://a.test/", "headers": [],
                    "postData": {"text": "sent"}},
        "response": {"status": 200, "headers": [{"name": "Content-Encoding", "value": "br"}],
                     "content": {"mimeType": "application/json", "encoding": "base64",
                                 "text": base64.b64encode(b"{}").decode()}},
    }  # fmt: skip
    socket = {
        "request": {"method": "GET", "url": "wss://a.test/ws"},
        "_webSocketMessages": [
            {"type": "send", "time": 1, "opcode": 1, "data": "hi"},
            {"type": "receive", "time": 2, "opcode": 2, "data": base64.b64encode(b"\0").decode()},
        ],
    }
    path.write_bytes(har(entry, socket))
    assert frames(open_capture(path)) == [
        (Side.CLIENT, Kind.WS_TEXT, b"hi"),
        (Side.SERVER, Kind.WS_BINARY, b"\0"),
        (Side.CLIENT, Kind.BODY, b"sent"),
        (Side.SERVER, Kind.BODY, b"{}"),
    ]


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (b"{", "not a HAR: Expecting property name"),
        (b"{}", "not a HAR: it has no log.entries"),
        (b'{"log": []}', "not a HAR: it has no log.entries"),
        (har({}), "entry 1 cannot be read: KeyError 'request'"),
        (har(BARE, {"request": {"method": "GET"}}), "entry 2 cannot be read: KeyError 'url'"),
        (har(BARE | {"startedDateTime": "yesterday"}), "entry 1 cannot be read: ValueError"),
        (b"12:not a flow at all", "mitmproxy cannot read it"),
    ],
)
@pytest.mark.parametrize("verb", [["capture", "show"], ["replay"]])
def test_what_cannot_be_read_is_one_line_and_exit_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes, error: str, verb: list[str]
):
    path = tmp_path / "x.har"
    path.write_bytes(content)
    assert main([*verb, str(path)]) == 2
    out = capsys.readouterr()
    assert out.out == ""
    assert out.err.count("\n") == 1
    assert error in out.err


def test_a_har_of_a_faulty_chat_replays_and_its_fault_is_mended(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    out = exported("har", CHAT, tmp_path / "x.har")
    capsys.readouterr()
    assert main(["replay", str(out)]) == 0
    assert "repair replay-overlap reset: 1" in capsys.readouterr().out
