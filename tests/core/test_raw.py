"""One level of a JSON document, its values as the bytes they came as."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from midstream.core import raw

texts = st.text(st.characters(), max_size=12)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)
HARD = [b"1e400", b"12345678901234567890123", b"1.0", b'"\\u0041"', b'"\\ud83d"', b'{"a" : 1 }']


@given(st.dictionaries(texts, values, max_size=6), st.sampled_from([None, 1]), st.booleans())
def test_members_are_those_of_the_document(
    fields: dict[str, object], indent: int | None, ascii_only: bool
) -> None:
    text = json.dumps(fields, indent=indent, ensure_ascii=ascii_only)
    document = text.encode("utf-8", "surrogatepass" if not ascii_only else "strict")
    found = raw.members(document)
    assert list(found) == list(fields)
    for key, value in found.items():
        assert json.loads(value.decode("utf-8", "surrogatepass")) == fields[key]
        assert value in document


@given(st.lists(values, max_size=6), st.sampled_from([None, 1]))
def test_elements_are_those_of_the_document(items: list[object], indent: int | None) -> None:
    document = json.dumps(items, indent=indent).encode()
    found = raw.elements(document)
    assert [json.loads(value) for value in found] == items
    assert raw.elements(raw.array(found)) == found


@pytest.mark.parametrize("value", HARD)
def test_a_value_that_decoding_would_change_keeps_its_bytes(value: bytes) -> None:
    assert raw.members(b'{"k":' + value + b"}") == {"k": value}
    assert raw.elements(b"[" + value + b"," + value + b"]") == [value, value]
    assert raw.document({"k": value}) == b'{"k":' + value + b"}"


def test_a_lone_surrogate_beside_a_value_does_not_hide_it() -> None:
    document = b' { "a" : "\\ud83d" , "b" : [ 1e400 ] , "c" : { } } '
    assert raw.members(document) == {"a": b'"\\ud83d"', "b": b"[ 1e400 ]", "c": b"{ }"}


def test_of_two_members_of_one_name_the_last_counts() -> None:
    assert raw.members(b'{"a":1,"a":"\\ud83d"}') == {"a": b'"\\ud83d"'}
    assert raw.members(b'{"a":1,"a":2}') == {"a": b"2"}


@pytest.mark.parametrize(
    "document",
    [
        b"", b" ", b"{", b"[1]", b"null", b'"x"', b"{1:2}", b'{"a"}', b'{"a":}', b'{"a":1', b"{,}",
        b'{"a":1,}', b'{"a":1}x', b'{"a":1 "b":2}', b'{"a" 1}', b'{"a":"\\ud83d"', b"\xff",
        b'{"a":"\\ud83d",}', b'{"a":"\\ud83d" "b"}', b'{"a":"\\ud83d"}}', b'{"a":"\xff"}x',
        b"[" * 100_000, b'{"a":' * 5_000,
    ],
)  # fmt: skip
def test_what_is_no_object_is_malformed(document: bytes) -> None:
    with pytest.raises(raw.Malformed, match="no JSON object in"):
        raw.members(document)


@pytest.mark.parametrize(
    "document",
    [b"", b"{}", b"[", b"[1", b"[1,]", b"[,]", b"[1]x", b'["\\ud83d" 1]', b'["\\ud83d",]', b"[[[["],
)
def test_what_is_no_array_is_malformed(document: bytes) -> None:
    with pytest.raises(raw.Malformed, match="no JSON array in"):
        raw.elements(document)


def test_deep_nesting_is_malformed_or_read_but_never_an_error_of_another_kind() -> None:
    for depth in (10, 900, 100_000):
        document = b'{"a":' + b"[" * depth + b"]" * depth + b"}"
        try:
            assert raw.members(document)["a"] == document[5:-1]
        except raw.Malformed:
            assert depth > 100


@given(texts)
def test_a_quoted_text_is_ascii_and_reads_back(text: str) -> None:
    quoted = raw.quote(text)
    assert quoted.isascii()
    assert raw.text_of(quoted) == text


@given(st.dictionaries(texts, st.sampled_from(HARD), max_size=5))
def test_a_document_holds_its_members(fields: dict[str, bytes]) -> None:
    assert raw.members(raw.document(fields)) == fields


@pytest.mark.parametrize(
    "value", [None, b"", b"1", b"null", b"[]", b'"', b'"a', b'"a" "b"', b'"a"x', b'"\xff"']
)
def test_what_is_no_text_has_none(value: bytes | None) -> None:
    assert raw.text_of(value) is None


def test_a_text_may_hold_what_strict_readers_refuse() -> None:
    assert raw.text_of(b'"a\x01b"') == "a\x01b"
    assert raw.text_of(b'"\\ud83d"') == "\ud83d"


def test_joining_escaped_texts_gives_the_text_of_both() -> None:
    one, other = raw.quote("\ud83d"), raw.quote("\ude42\n")
    joined = json.loads(one[:-1] + other[1:])
    assert joined == "🙂\n"
