"""JSON and msgpack behind one set of calls: the same values, the same refusals."""

import json
from typing import Any

import msgspec
import pytest

from midstream.core.edit import INNER
from midstream.core.errors import EditError
from midstream.core.raw import Malformed
from midstream.dialects.a2a_codec import JSON, PACKED, Codec, codec_of

VALUE: dict[str, Any] = {"a": [1, {"b": "x"}], "c": None, "d": True, "e": 1.5}


def dumped(codec: Codec, value: object) -> bytes:
    return json.dumps(value).encode() if codec is JSON else msgspec.msgpack.encode(value)


@pytest.mark.parametrize("codec", [JSON, PACKED])
def test_values_are_found_by_path(codec: Codec) -> None:
    document = dumped(codec, VALUE)
    assert codec.get(document, ("a", 1, "b")) == dumped(codec, "x")
    assert codec.get(document, ("a", -1, "b")) == dumped(codec, "x")
    assert codec.get(document, ("c",)) == codec.null
    for nowhere in (("a", 2), ("x",), ("c", "x"), ("a", "b"), ("c", INNER)):
        assert codec.get(document, nowhere) is None


@pytest.mark.parametrize("codec", [JSON, PACKED])
def test_one_level_is_read_and_written(codec: Codec) -> None:
    fields = codec.members(dumped(codec, VALUE))
    assert list(fields) == list(VALUE)
    assert codec.elements(fields["a"])[0] == dumped(codec, 1)
    assert [codec.scalar(fields[key]) for key in "cd"] == [None, True]
    assert codec.scalar(dumped(codec, -7)) == -7
    assert codec.scalar(dumped(codec, "\u00e9")) == "\u00e9"
    others: tuple[object, ...] = (1.5, [], {})
    for other in others:
        assert codec.scalar(dumped(codec, other)) == dumped(codec, other)
    made = codec.object({"x": codec.array([codec.flag(False), codec.text("\u00e9")])})
    assert codec.members(made) == {"x": codec.array([dumped(codec, False), codec.text("\u00e9")])}
    assert codec.decoder(dict[str, list[bool | str]]).decode(made) == {"x": [False, "\u00e9"]}


@pytest.mark.parametrize("codec", [JSON, PACKED])
def test_what_is_no_object_or_list_is_malformed(codec: Codec) -> None:
    for wrong in (b"", dumped(codec, 7), dumped(codec, "x"), dumped(codec, VALUE)[:-1]):
        with pytest.raises(Malformed):
            codec.members(wrong)
        with pytest.raises(Malformed):
            codec.elements(wrong)


def test_text_that_only_an_escape_can_tell_is_refused_by_msgpack() -> None:
    assert JSON.text("\u00e9\ud83d") == b'"\\u00e9\\ud83d"'
    assert JSON.text("\u00e9") == '"\u00e9"'.encode()
    assert JSON.scalar(b'"\\ud83d"') == "\ud83d"
    with pytest.raises(EditError):
        PACKED.text("\ud83d")
    assert PACKED.scalar(b"\xa3\xed\xa0\xbd") == b"\xa3\xed\xa0\xbd"


def test_a_first_byte_tells_the_encoding() -> None:
    assert [codec_of(first) for first in (b"\x80", b"\xde\0\0", b"{}", b"")] == [
        PACKED,
        PACKED,
        JSON,
        JSON,
    ]
