"""Message text leaves a capture, and everything else stays."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import msgpack
import pytest

from midstream.adapters.capture_content import Content, without_text
from midstream.adapters.capture_format import read
from midstream.adapters.capture_redact import redactor
from midstream.config.schema import CaptureTable
from midstream.core.frames import Frame, Kind, Side
from midstream.core.ports import Record, RecordKind

CAPTURES = sorted((Path(__file__).parents[1] / "captures").rglob("*.cap"))
TEXT_NAMES = ("text", "delta", "content", "reasoning", "arguments", "output")
MODES: tuple[Literal["hash", "none"], ...] = ("hash", "none")


def hashed(payload: bytes | str, mode: Literal["hash", "none"] = "hash") -> bytes:
    data = payload.encode() if isinstance(payload, str) else payload
    return without_text(data, Content(mode, lambda text: f"{len(text):012x}" + "0" * 20))


def texts(value: object, *, below: bool = False) -> Iterator[str]:
    """Return the sentences that stand under names of text."""
    if isinstance(value, dict):
        for key, member in value.items():
            yield from texts(member, below=key in TEXT_NAMES)
    elif isinstance(value, list):
        for item in value:
            yield from texts(item, below=below)
    elif isinstance(value, str) and value[:1] in ("{", "["):
        try:
            yield from texts(json.loads(value), below=below)
        except ValueError:
            yield value
    elif isinstance(value, str) and below and " " in value.strip():
        yield value


def shape(value: object) -> object:
    """Return keys, types, numbers and ids of a document, through strings that hold JSON."""
    if isinstance(value, dict):
        return {
            key: member if key in ("type", "id", "role", "kind", "taskId") else shape(member)
            for key, member in value.items()
        }
    if isinstance(value, list):
        return [shape(item) for item in value]
    if isinstance(value, str):
        if value[:1] in ("{", "["):
            try:
                return ["json", shape(json.loads(value))]
            except ValueError:
                return str
        return str
    return value


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("path", CAPTURES[::3], ids=lambda path: path.stem)
def test_no_text_is_left_of_real_traffic_and_its_shape_stays(mode: str, path: Path):
    clean = redactor(CaptureTable(content=mode))  # type: ignore[arg-type]  # a literal at run time
    seen = 0
    for stored in read(path):
        frame = stored.received
        if frame is None or frame.payload[:1] not in (b"{", b"[") or frame.payload == b"[DONE]":
            continue
        record = clean.record(Record(1, 1, 1, stored.kind, stored.side, frame))
        assert record.frame is not None
        before, after = json.loads(frame.payload), json.loads(record.frame.payload)
        assert shape(after) == shape(before)
        for text in texts(before):
            seen += 1
            assert json.dumps(text)[1:-1].encode() not in record.frame.wire
            assert text.encode() not in record.frame.wire
    assert seen or "history" not in str(path)


def test_every_other_byte_stays():
    document = '{ "type":"text-delta", "n":1.50, "big":1e400, "delta" : "a b \\u00e9", "x":[ 2 ] }'
    assert hashed(document) == document.replace('"a b \\u00e9"', '"hash:000000000005:5"').encode()
    assert (
        hashed(document, "none") == document.replace('"a b \\u00e9"', '"[5 characters]"').encode()
    )


@pytest.mark.parametrize(
    "document",
    [
        '{"type":"text-start","id":"msg_1"}', '{"toolCallId":"call_1","toolName":"get weather"}',
        '{"taskId":"a b","messageIds":["x y"],"user_id":"m n"}', '{"role":"user","count":3}',
        '{"signature":"abc","encrypted_content":"gAAAA=="}', '{"url":"https://a.test/x?y=1"}',
        '{"unit":"celsius"}', '[DONE]', '{"text":""}', '{"text":null,"delta":7}', "",
    ],
)  # fmt: skip
def test_ids_types_and_single_words_stay(document: str):
    assert hashed(document) == document.encode()


@pytest.mark.parametrize(
    ("document", "hidden"),
    [
        ('{"text":"word"}', "word"), ('{"arguments":"{\\"city\\":\\"Paris\\"}"}', "Paris"),
        ('{"arguments":"{\\"city\\":\\"Pa"}', "city"), ('{"input":{"city":"Paris"}}', "Paris"),
        ('{"content":[{"type":"text","text":"one"}]}', "one"), ('{"said":"two words"}', "two"),
        ('{"parts":["single","two words"]}', "words"), ("plain words of a socket", "words"),
        ('{"body":"{\\"messages\\":[{\\"content\\":\\"deep\\"}]}"}', "deep"),
        ('{"text":"\\ud83d half"}', "half"),
    ],
)  # fmt: skip
def test_text_goes_wherever_it_stands(document: str, hidden: str):
    clean = hashed(document)
    assert hidden not in clean.decode()
    assert hidden not in hashed(document, "none").decode()
    assert hashed(clean) == clean, "what stands for text is no text"


def test_text_in_msgpack_goes_too():
    document = msgpack.packb(
        {"type": "x", "id": "a b", "text": "one two", "n": [1, {"delta": "x"}]}
    )
    clean = msgpack.unpackb(hashed(document))
    assert clean == {
        "type": "x", "id": "a b", "text": "hash:000000000007:7",
        "n": [1, {"delta": "hash:000000000001:1"}],
    }  # fmt: skip


def test_equal_texts_stay_equal_within_a_capture_and_differ_in_the_next():
    table = CaptureTable(content="hash")
    frame = Frame(Side.SERVER, Kind.WS_TEXT, b'{"a":{"text":"same"},"text":"same","delta":"other"}')
    record = Record(1, 1, 1, RecordKind.FRAME, Side.SERVER, frame)
    one = redactor(table).record(record)
    assert one.frame is not None
    found = json.loads(one.frame.wire)
    assert found["a"]["text"] == found["text"] != found["delta"]
    again = redactor(table).record(record)
    assert again.frame is not None
    assert again.frame.wire != one.frame.wire


def test_the_open_record_says_that_a_replay_is_not_exact():
    opened = Record(1, 1, 1, RecordKind.OPEN, meta={"method": "GET", "target": "/"})
    assert redactor(CaptureTable(content="none")).record(opened).meta["redacted"] == {
        "content": "none"
    }
    assert redactor(CaptureTable()).record(opened) is opened


def test_an_event_keeps_its_other_lines():
    frame = Frame(Side.SERVER, Kind.SSE, b'event: x\r\nid: 7\r\ndata: {"text":"a b"}\r\n\r\n')
    record = Record(1, 1, 1, RecordKind.FRAME, Side.SERVER, frame)
    clean = redactor(CaptureTable(content="none")).record(record).frame
    assert clean is not None
    assert clean.wire == b'event: x\r\nid: 7\r\ndata: {"text":"[3 characters]"}\r\n\r\n'
