from functools import partial

import msgpack
from hypothesis import given
from hypothesis import strategies as st

from midstream.adapters.capture_msgpack import is_container, with_strings

SCALARS = (
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False)
    | st.text(max_size=40) | st.text(min_size=300, max_size=400) | st.binary(max_size=300)
    | st.builds(msgpack.ExtType, st.integers(0, 127), st.binary(max_size=20))
)  # fmt: skip
DOCUMENTS = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=20)
        | st.dictionaries(st.text(max_size=40) | st.integers(0, 9), inner, max_size=20)
    ),
    max_leaves=40,
).filter(lambda value: isinstance(value, list | dict))


def expected(value: object, key: str = "") -> object:
    if isinstance(value, dict):
        return {k: expected(v, k if isinstance(k, str) else "") for k, v in value.items()}
    if isinstance(value, list):
        return [expected(item, key) for item in value]
    if isinstance(value, str):
        return f"{key}:{value}"
    return key.encode() + b":" + value if isinstance(value, bytes) else value


@given(DOCUMENTS)
def test_every_string_is_shown_with_its_key_and_no_other_byte_changes(document):
    packed = msgpack.packb(document)
    assert is_container(packed)
    assert with_strings(packed, lambda content, _key: content) == packed
    changed = with_strings(packed, lambda content, key: key.encode() + b":" + content)
    assert msgpack.unpackb(changed, strict_map_key=False) == expected(document)


def grown(size: int, content: bytes, _key: str) -> bytes:
    return content[:1] * size


def test_a_string_may_grow_past_every_width_of_its_header():
    for size in (0, 31, 32, 255, 256, 65_535, 65_536):
        packed = msgpack.packb({"a": "x", "b": b"y", "c": 1})
        changed = with_strings(packed, partial(grown, size))
        assert msgpack.unpackb(changed) == {"a": "x" * size, "b": b"y" * size, "c": 1}


def test_json_text_and_cut_documents_are_none():
    packed = msgpack.packb({"a": ["x"]})
    for document in (b"", b'{"a":1}', b"[1]", b"text", packed[:-1], packed + b"\x00", b"\xc1"):
        assert not is_container(document)
