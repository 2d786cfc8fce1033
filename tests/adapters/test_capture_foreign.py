"""HARs and flows as browsers and tools write them, and what is made of broken ones."""

import base64
import gzip
import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mitmproxy.io import FlowWriter
from mitmproxy.test import tflow, tutils

from midstream.adapters.capture_format import HEADER, StoredRecord, encode, read
from midstream.adapters.capture_open import open_capture
from midstream.cli import main
from midstream.core.errors import CaptureError
from midstream.core.frames import Kind, Side
from midstream.core.ports import RecordKind

GET: dict[str, Any] = {"method": "GET", "url": "http://a.test/x"}
EVENTS = {"mimeType": "text/event-stream"}
BEGAN_NS = 1_796_000_000 * 10**9
BEGAN = "2026-11-30T00:53:20.000Z"


def imported(path: Path, *entries: dict[str, Any]) -> list[StoredRecord]:
    path = path / "x.har"
    path.write_text(json.dumps({"log": {"entries": entries}}))
    return list(open_capture(path))


def wires(records: list[StoredRecord]) -> list[tuple[Side, Kind, bytes]]:
    frames = [record.received for record in records]
    return [(frame.sender, frame.kind, frame.wire) for frame in frames if frame is not None]


def metas(records: list[StoredRecord], kind: RecordKind) -> list[dict[str, Any]]:
    return [record.meta for record in records if record.kind is kind]


# --- what browsers write --------------------------------------------------------------------------


def test_a_time_with_an_offset_and_durations_that_are_unknown_are_read(tmp_path: Path):
    entry = {
        "request": GET, "startedDateTime": "2026-11-30T01:53:20.250+01:00", "time": None,
        "timings": {"blocked": -1, "dns": "n/a", "wait": 500, "receive": -1},
        "response": {"status": 200, "content": {"text": "x"}},
    }  # fmt: skip
    records = imported(tmp_path, entry)
    assert records[0].wall_ns == BEGAN_NS + 250_000_000
    assert records[-1].wall_ns == BEGAN_NS + 750_000_000


def test_exchanges_without_times_keep_their_order(tmp_path: Path):
    urls = ["http://a.test/1", "http://a.test/2", "http://a.test/3"]
    records = imported(tmp_path, *({"request": {**GET, "url": url}} for url in urls))
    assert [meta["target"] for meta in metas(records, RecordKind.OPEN)] == ["/1", "/2", "/3"]


def test_a_form_is_read_from_its_fields(tmp_path: Path):
    fields = [{"name": "a b", "value": "1&2"}, {"name": "é"}]
    posted = {"mimeType": "application/x-www-form-urlencoded", "params": fields}
    records = imported(tmp_path, {"request": {**GET, "method": "POST", "postData": posted}})
    assert wires(records) == [(Side.CLIENT, Kind.BODY, b"a+b=1%262&%C3%A9=")]


def test_joined_headers_are_parted_and_those_of_http_2_left_out(tmp_path: Path):
    headers = [
        {"name": ":authority", "value": "a.test"},
        {"name": "x-none", "value": None},
        {"name": "set-cookie", "value": "a=1\nb=2"},
    ]
    answer = {"status": 200, "headers": headers, "content": {"mimeType": "text/plain"}}
    records = imported(tmp_path, {"request": GET, "response": answer})
    (head,) = metas(records, RecordKind.HEADERS)
    assert head["headers"] == [
        ["x-none", ""], ["set-cookie", "a=1"], ["set-cookie", "b=2"],
        ["Content-Type", "text/plain"],
    ]  # fmt: skip


def test_what_was_never_on_a_network_is_passed_over(tmp_path: Path):
    urls = ["data:text/plain,x", "blob:http://a.test/1", "chrome-extension://abc/x.js"]
    entries = [{"request": {"method": "GET", "url": url}} for url in urls]
    records = imported(tmp_path, *entries, {"request": GET})
    assert len(metas(records, RecordKind.OPEN)) == 1


def test_errors_and_control_frames_among_the_messages_are_left_out(tmp_path: Path):
    messages = [
        {"type": "send", "time": 1, "opcode": 1, "data": "a"},
        {"type": "receive", "time": 2, "opcode": 9, "data": ""},
        {"type": "error", "time": 3, "opcode": -1, "data": "closed before it was opened"},
        {"type": "receive", "time": 4, "data": "\ud83d\ude00"},
    ]
    entry = {"request": {**GET, "url": "wss://a.test/ws"}, "_webSocketMessages": messages}
    records = imported(tmp_path, entry)
    assert wires(records) == [
        (Side.CLIENT, Kind.WS_TEXT, b"a"),
        (Side.SERVER, Kind.WS_TEXT, "😀".encode()),
    ]
    assert metas(records, RecordKind.OPEN)[0]["origin"] == "https://a.test"


def test_an_event_stream_without_its_events_is_cut_into_them(tmp_path: Path):
    body = "data: 1\n\n: still here\n\ndata: 2"
    entry = {"request": GET, "response": {"status": 200, "content": {**EVENTS, "text": body}}}
    assert wires(imported(tmp_path, entry)) == [
        (Side.SERVER, Kind.SSE, b"data: 1\n\n"),
        (Side.SERVER, Kind.SSE, b": still here\n\n"),
        (Side.SERVER, Kind.SSE, b"data: 2"),
    ]


def test_events_of_which_a_browser_kept_no_text_are_written_anew(tmp_path: Path):
    events = [
        {"time": 1_796_000_001, "eventName": "message", "eventId": "", "data": "1"},
        {"time": 1_796_000_002, "eventName": "end", "eventId": "7", "data": "a\nb"},
    ]
    entry = {"request": GET, "startedDateTime": BEGAN, "_eventSourceMessages": events,
             "response": {"status": 200, "content": EVENTS}}  # fmt: skip
    records = imported(tmp_path, entry)
    assert wires(records) == [
        (Side.SERVER, Kind.SSE, b"data: 1\n\n"),
        (Side.SERVER, Kind.SSE, b"event: end\nid: 7\ndata: a\ndata: b\n\n"),
    ]
    times = [record.wall_ns for record in records if record.kind is RecordKind.FRAME]
    assert times == [BEGAN_NS + 10**9, BEGAN_NS + 2 * 10**9]


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(), max_size=8)
    | st.sampled_from(["http://a.test/", "//[", "\ud800", "base64", BEGAN, "GET"]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(
            ["request", "response", "url", "method", "headers", "name", "value", "postData",
             "text", "encoding", "content", "status", "time", "timings", "wait", "mimeType",
             "_webSocketMessages", "_eventSourceMessages", "type", "opcode", "data", "params"]
        ),
        inner, max_size=5,
    ),
    max_leaves=20,
)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(entry=JSON, more=st.dictionaries(st.sampled_from(["request", "response"]), JSON))
def test_any_har_is_read_or_refused_in_one_line(
    tmp_path_factory: pytest.TempPathFactory, entry: Any, more: dict[str, Any]
):
    whole = {"request": GET, "response": {"status": 200, "content": {}}}
    path = tmp_path_factory.getbasetemp() / "any.har"
    for each in (entry, whole | (entry if isinstance(entry, dict) else {}), whole | more):
        path.write_text(json.dumps({"log": {"entries": [each]}}))
        records, refused = [], ""
        try:
            records = list(open_capture(path))
        except CaptureError as error:
            refused = str(error)
        assert all(encode(record) for record in records)
        assert "\n" not in refused
        assert bool(records) != bool(refused)


# --- content codings ------------------------------------------------------------------------------


def coded_capture(path: Path, body: bytes, coding: str) -> Path:
    """Write what the recorder writes of a body that was relayed, not read: as it came."""
    open_ = {"route": "r", "upstream": "", "origin": "http://a.test", "method": "GET",
             "target": "/x", "headers": []}  # fmt: skip
    head = {"status": 200, "headers": [["Content-Encoding", coding]]}
    records = [
        StoredRecord(1, 1, 1, 1, RecordKind.OPEN, meta=open_),
        StoredRecord(2, 2, 1, 2, RecordKind.HEADERS, Side.SERVER, meta=head),
        StoredRecord(3, 3, 1, 3, RecordKind.FRAME, Side.SERVER, frame=Kind.BODY, data=body),
        StoredRecord(4, 4, 1, 4, RecordKind.CLOSE, meta={"ending": "complete"}),
    ]
    path = path / "coded-000001.cap"
    path.write_bytes(HEADER + b"".join(map(encode, records)))
    return path


def entry_of(capture: Path, out: Path) -> dict[str, Any]:
    assert main(["capture", "export", "har", str(capture), "--out", str(out)]) == 0
    (found,) = json.loads(out.read_text())["log"]["entries"]
    return dict(found)


def test_a_har_holds_a_coded_body_as_text(tmp_path: Path):
    capture = coded_capture(tmp_path, gzip.compress(b'{"a": 1}', mtime=0), "gzip")
    content = entry_of(capture, tmp_path / "x.har")["response"]["content"]
    assert (content["text"], content["size"]) == ('{"a": 1}', 8)


@pytest.mark.parametrize("body", [b"\x1b\x03\xff", gzip.compress(b"x" * 99, mtime=0)[:-4]])
def test_a_coding_that_is_not_undone_is_named_and_comes_back(body: bytes, tmp_path: Path):
    capture = coded_capture(tmp_path, body, "br" if body[0] == 0x1B else "gzip")
    content = entry_of(capture, tmp_path / "x.har")["response"]["content"]
    assert base64.b64decode(content["text"]) == body
    (head,) = metas(list(open_capture(tmp_path / "x.har")), RecordKind.HEADERS)
    assert ["Content-Encoding", content["_coding"]] in head["headers"]


@pytest.mark.parametrize("body", [gzip.compress(b"hello", mtime=0), b"hello"])
def test_flows_hold_a_body_so_that_mitmproxy_can_decode_it(body: bytes, tmp_path: Path):
    out = tmp_path / "x.mitm"
    capture = coded_capture(tmp_path, body, "gzip")
    assert main(["capture", "export", "mitm", str(capture), "--out", str(out)]) == 0
    assert wires(list(open_capture(out))) == [(Side.SERVER, Kind.BODY, b"hello")]


def flows(*made: Any) -> bytes:
    file = io.BytesIO()
    for flow in made:
        FlowWriter(file).add(flow)
    return file.getvalue()


def test_coded_bodies_of_flows_are_decoded_by_mitmproxy(tmp_path: Path):
    answer = tutils.tresp(content=b"hello")
    answer.encode("gzip")
    path = tmp_path / "x.mitm"
    path.write_bytes(flows(tflow.tflow(resp=answer)))
    records = list(open_capture(path))
    assert (Side.SERVER, Kind.BODY, b"hello") in wires(records)
    (head,) = metas(records, RecordKind.HEADERS)
    assert not [name for name, _ in head["headers"] if name.lower() == "content-encoding"]


def test_a_body_that_mitmproxy_cannot_decode_stays_as_it_came(tmp_path: Path):
    answer = tutils.tresp(content=b"no gzip", headers=((b"content-encoding", b"gzip"),))
    path = tmp_path / "x.mitm"
    path.write_bytes(flows(tflow.tflow(resp=answer)))
    records = list(open_capture(path))
    assert (Side.SERVER, Kind.BODY, b"no gzip") in wires(records)
    (head,) = metas(records, RecordKind.HEADERS)
    assert ["content-encoding", "gzip"] in head["headers"]


# --- broken files ---------------------------------------------------------------------------------


def test_of_flows_that_were_cut_short_those_before_the_cut_are_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    first, second = flows(tflow.tflow(resp=True)), flows(tflow.twebsocketflow())
    path, out = tmp_path / "x.mitm", tmp_path / "y.cap"
    for size in range(1, len(second), 97):
        path.write_bytes(first + second[:size])
        source = open_capture(path)
        assert len(metas(list(source), RecordKind.OPEN)) == 1
        assert source.damage is not None
        assert source.damage.offset == len(first)
    assert main(["capture", "import", str(path), "--out", str(out)]) == 1
    assert f"damaged at byte {len(first)}: mitmproxy cannot read it" in capsys.readouterr().err
    assert len(metas(list(read(out)), RecordKind.OPEN)) == 1


def test_a_length_that_no_file_can_have_costs_no_memory(tmp_path: Path):
    path = tmp_path / "x.mitm"
    path.write_bytes(b"999999999999:x")
    with pytest.raises(CaptureError, match="mitmproxy cannot read it"):
        open_capture(path)


def test_connections_that_are_not_http_are_passed_over(tmp_path: Path):
    path = tmp_path / "x.mitm"
    path.write_bytes(flows(tflow.ttcpflow(), tflow.tflow(resp=True)))
    assert len(metas(list(open_capture(path)), RecordKind.OPEN)) == 1


# --- where an export cannot be made ---------------------------------------------------------------


@pytest.mark.parametrize("verb", [["capture", "export", "mitm"], ["capture", "import"]])
def test_without_mitmproxy_the_extra_is_named_and_nothing_is_written(
    verb: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    given_ = tmp_path / "x.mitm"
    given_.write_bytes(flows(tflow.tflow(resp=True)))
    source = given_ if "import" in verb else coded_capture(tmp_path, b"x", "gzip")
    out = tmp_path / "out"
    out.write_text("kept")
    for name in [name for name in sys.modules if name.partition(".")[0] == "mitmproxy"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "mitmproxy", None)
    assert main([*verb, str(source), "--out", str(out)]) == 2
    assert "expected the extra: pip install 'midstream[mitm]'" in capsys.readouterr().err
    assert out.read_text() == "kept"
    assert not list(tmp_path.glob("*.part"))


def test_an_exchange_that_is_not_there_is_named_and_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    capture, out = coded_capture(tmp_path, b"x", "gzip"), tmp_path / "out.har"
    verb = ["capture", "export", "har", str(capture), "--out", str(out)]
    assert main([*verb, "--exchange", "1", "--exchange", "9"]) == 2
    assert "has no exchange 9" in capsys.readouterr().err
    assert not out.exists()
    assert main([*verb, "--exchange", "1"]) == 0
    assert out.stat().st_mode & 0o777 == 0o600
