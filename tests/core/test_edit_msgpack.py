"""Editing msgpack keeps every byte of what was not meant."""

import contextlib
import json

import msgpack  # another reader and writer than the one under test
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from midstream.core import edit_msgpack
from midstream.core.edit import INNER, Delete, Set
from midstream.core.edit_msgpack import apply, is_map
from midstream.core.errors import EditError

DOCUMENT = {
    "a": [1, 2.5, "x"],
    "b": {"c": None, "d": b"\xff"},
    "text": '{"m":[1.0,{"k":"\\u00e9"}]}',
}
PACKED = msgpack.packb(DOCUMENT)


def edited(*edits: Set | Delete) -> object:
    return msgpack.unpackb(apply(PACKED, *edits))


def test_no_edit_gives_the_same_document():
    assert apply(PACKED) is PACKED


def test_elements_and_members_are_deleted():
    assert edited(Delete(("a", 1)), Delete(("b", "c"))) == {
        **DOCUMENT, "a": [1, "x"], "b": {"d": b"\xff"},
    }  # fmt: skip


def test_all_indices_mean_the_original_document():
    assert edited(Delete(("a", 0)), Set(("a", 1), b"\x07"), Delete(("a", -1))) == {
        **DOCUMENT, "a": [7],
    }  # fmt: skip


def test_values_are_set_and_a_missing_member_is_added():
    left = edited(Set(("a", 0), b"\xc3"), Set(("b", "new"), b"\x01"), Set(("b", "c"), b"\xa1y"))
    assert left == {**DOCUMENT, "a": [True, 2.5, "x"], "b": {"c": "y", "d": b"\xff", "new": 1}}


def test_the_whole_document_is_set():
    assert apply(PACKED, Set((), b"\x01")) == b"\x01"


def test_a_json_text_inside_keeps_its_spelling():
    left = edited(Delete(("text", INNER, "m", 0)), Set(("text", INNER, "n"), b"1e400"))
    assert left == {**DOCUMENT, "text": '{"m":[{"k":"\\u00e9"}],"n":1e400}'}


@pytest.mark.parametrize("size", [3, 40, 300, 70_000])
def test_a_json_text_of_any_length_gets_the_right_header(size):
    text = json.dumps({"x": 1, "pad": "p" * size})
    left = apply(msgpack.packb([text]), Delete((0, INNER, "x")))
    assert left == msgpack.packb([json.dumps({"pad": "p" * size})])


def test_what_should_be_deleted_and_is_not_there_is_no_error():
    nowhere = (
        ("a", 9),
        ("z",),
        ("z", "y"),
        ("a", "x"),
        ("b", 0),
        ("a", 0, 0),
        ("a", 0, INNER, "x"),
    )
    assert apply(PACKED, *(Delete(path) for path in nowhere)) == PACKED


@pytest.mark.parametrize(
    "edits",
    [
        (Set(("a", 9), b"\x01"),),
        (Set(("z", "y"), b"\x01"),),
        (Set(("b", 0), b"\x01"),),
        (Set(("a", "x"), b"\x01"),),
        (Set(("a", 0, 0), b"\x01"),),
        (Set(("a", 0, INNER, "x"), b"1"),),
        (Set(("text", INNER, "m", 9), b"1"),),
        (Set(("text", INNER, "m"), b"["),),
        (Set(("a",), b"\x01\x01"),),
        (Set(("a",), b""),),
        (Delete(()),),
        (Delete(()), Set((), b"\x01")),
        (Delete(("a",)), Delete(("a", 0))),
        (Delete(("a", 1)), Delete(("a", 1))),
        (Delete(("a", 2)), Delete(("a", -1))),
        (Set(("z",), b"\x01"), Set(("z",), b"\x02")),
        (Delete(("text", INNER, "m")), Delete(("text",))),
    ],
)
def test_edits_that_make_no_sense_are_refused(edits):
    with pytest.raises(EditError):
        apply(PACKED, *edits)


@pytest.mark.parametrize("document", [b"", b"\xc1", PACKED[:-1], PACKED + b"\x00", b"\x91" * 5_000])
def test_what_is_not_one_msgpack_value_is_refused(document):
    with pytest.raises(EditError):
        apply(document, Delete(("a",)))


def test_keys_that_are_no_text_are_passed_over():
    document = msgpack.packb({1: 2, b"x": 3, "y": 4, None: 5})
    assert apply(document, Delete(("y",))) == msgpack.packb({1: 2, b"x": 3, None: 5})


def test_a_key_that_is_no_utf8_is_passed_over():
    document = b"\x82\xa1\xff\x01\xa1y\x02"
    assert apply(document, Delete(("y",))) == b"\x81\xa1\xff\x01"


def test_of_a_key_that_stands_twice_the_last_is_set_and_all_are_deleted():
    document = b"\x83\xa1x\x01\xa1y\x02\xa1x\x03"
    assert apply(document, Set(("x",), b"\x09")) == b"\x83\xa1x\x01\xa1y\x02\xa1x\x09"
    assert apply(document, Delete(("x",))) == b"\x81\xa1y\x02"


def test_a_container_keeps_the_width_of_its_header():
    for head in (b"\x93", b"\xdc\x00\x03", b"\xdd\x00\x00\x00\x03"):
        shorter = head[:-1] + bytes([head[-1] - 1])
        assert apply(head + b"\x01\x02\x03", Delete((1,))) == shorter + b"\x01\x03"
    for head in (b"\x82", b"\xde\x00\x02", b"\xdf\x00\x00\x00\x02"):
        shorter = head[:-1] + bytes([head[-1] - 1])
        assert apply(head + b"\xa1x\x01\xa1y\x02", Delete(("x",))) == shorter + b"\xa1y\x02"


def test_a_map_that_outgrows_its_header_gets_a_wider_one():
    document = msgpack.packb({str(n): n for n in range(15)})
    left = apply(document, Set(("new",), b"\x01"))
    assert left == msgpack.packb({**{str(n): n for n in range(15)}, "new": 1})


def test_numbers_strings_and_extensions_around_an_edit_keep_their_bytes():
    odd = (
        b"\xcf\x00\x00\x00\x00\x00\x00\x00\x01"
        + b"\xdb\x00\x00\x00\x01x"
        + b"\xd6\xff\x00\x00\x00\x01"
    )
    assert apply(b"\x94\xc0" + odd, Delete((0,))) == b"\x93" + odd


def test_a_map_is_known_by_its_first_byte():
    assert all(is_map(bytes([first])) for first in (*range(0x80, 0x90), 0xDE, 0xDF))
    assert not any(
        is_map(text) for text in (b"", b"{", b"[", b" ", b"\xef\xbb\xbf{", b"\x90", b"\xdc")
    )
    assert edit_msgpack.is_map(PACKED)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False)
    | st.text(max_size=5) | st.binary(max_size=5),
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=6,
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(st.lists(VALUES, max_size=20), st.dictionaries(st.text(max_size=3), VALUES), st.data())
def test_what_stays_reads_the_same_and_keeps_its_bytes(array, mapping, data):
    gone = data.draw(st.sets(st.integers(0, max(0, len(array) - 1))))
    keys = data.draw(st.sets(st.sampled_from(sorted(mapping)))) if mapping else set()
    document = msgpack.packb([array, mapping])
    edits = [Delete((0, n)) for n in gone] + [Delete((1, key)) for key in keys]
    left = apply(document, *edits)
    assert msgpack.packb(msgpack.unpackb(left)) == msgpack.packb(
        [
            [value for n, value in enumerate(array) if n not in gone],
            {key: value for key, value in mapping.items() if key not in keys},
        ]
    )
    assert all(msgpack.packb(mapping[key]) in left for key in set(mapping) - keys)


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=60))
def test_arbitrary_bytes_are_edited_or_refused(document):
    with contextlib.suppress(EditError):
        apply(document, Delete(("a", 0)), Delete((0, "a")), Delete((1, INNER, "x")))
