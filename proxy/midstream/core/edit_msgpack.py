"""Set or delete values inside a msgpack document and keep every other byte.

The edits are those of `edit`, with the same rules; the value of a Set is raw msgpack, or raw JSON
where its path goes on inside a JSON text (INNER: a msgpack string that holds one). Only the header
of a container whose length changes is written anew, in its own width where the length fits.

Source: the msgpack specification (github.com/msgpack/msgpack, spec.md).
"""

from typing import Final

import msgspec

from midstream.core import edit
from midstream.core.edit import INNER, Delete, Edit, Path, Set, Step
from midstream.core.errors import EditError

_ANY: Final = msgspec.msgpack.Decoder(msgspec.Raw)
_ITEMS: Final = msgspec.msgpack.Decoder(list[msgspec.Raw])
_ARRAY32: Final = b"\xdd"
_FIX_MAX: Final = 15
_SHORT_MAX: Final = 0xFFFF


class _Form(msgspec.Struct, frozen=True):
    """How arrays, or maps, are marked: with up to 15 items, with a 2-byte and a 4-byte length."""

    fix: int
    short: int
    long: int
    width: int


_MAP: Final = _Form(0x80, 0xDE, 0xDF, 2)
_ARRAY: Final = _Form(0x90, 0xDC, 0xDD, 1)


def apply(document: bytes, *edits: Edit) -> bytes:
    """Return the document with the edits made.

    Raises:
        EditError: the document or a value is not one msgpack value, a Set leads nowhere, or edits
            overlap.
    """
    if not edits:
        return document
    _check(document)
    return _edited(document, [(wanted.path, wanted) for wanted in edits])


def is_map(document: bytes) -> bool:
    """Tell by its first byte whether a document is a msgpack map; no JSON text begins like one."""
    return bool(document) and _form(document[0]) is _MAP


def _check(document: bytes) -> None:
    try:
        _ANY.decode(document)
    except (msgspec.DecodeError, RecursionError) as error:
        raise EditError(f"no msgpack value in {len(document)} bytes: {error}") from None


def _edited(value: bytes, edits: list[tuple[Path, Edit]]) -> bytes:
    """Return a value with the edits made, each given with the rest of its path from here."""
    steps: dict[Step, list[tuple[Path, Edit]]] = {}
    for path, wanted in edits:
        if not path:
            return _replaced(wanted, alone=len(edits) == 1)
        steps.setdefault(path[0], []).append((path[1:], wanted))
    inner = steps.pop(INNER, None)
    if inner is not None:
        value = _edited_text(value, inner)
    return _edited_items(value, steps) if steps else value


def _replaced(wanted: Edit, *, alone: bool) -> bytes:
    if not alone:
        raise EditError(f"edits overlap at {wanted.path}")
    if isinstance(wanted, Delete):
        raise EditError(f"cannot delete a whole document, at {wanted.path}")
    _check(wanted.value)
    return wanted.value


def _edited_text(value: bytes, edits: list[tuple[Path, Edit]]) -> bytes:
    """Return a string with its JSON text edited."""
    try:
        text = msgspec.msgpack.decode(value, type=str)
    except (msgspec.DecodeError, UnicodeDecodeError):
        for _, wanted in edits:
            _lead_nowhere(wanted)
        return value
    shorter: list[Edit] = [
        Set(path, wanted.value) if isinstance(wanted, Set) else Delete(path)
        for path, wanted in edits
    ]
    content = edit.apply(text.encode(), *shorter)
    return _text_header(len(content)) + content


def _edited_items(value: bytes, steps: dict[Step, list[tuple[Path, Edit]]]) -> bytes:
    form = _form(value[0])
    if form is None:
        for wanted in (wanted for edits in steps.values() for _, wanted in edits):
            _lead_nowhere(wanted)
        return value
    items = _items(value, form)
    keys = [_key(items[at]) for at in range(0, len(items), 2)] if form is _MAP else []
    gone: set[int] = set()
    seen: set[int] = set()
    for step, edits in steps.items():
        index = _find(step, keys, len(items) // form.width, form)
        if index is None:
            items += _added(step, edits, form)
            continue
        if index in seen:
            raise EditError(f"edits overlap at element {index}")
        seen.add(index)
        at = index * form.width + form.width - 1
        if len(edits) == 1 and not edits[0][0] and isinstance(edits[0][1], Delete):
            gone.update([i for i, key in enumerate(keys) if key == step] if keys else [index])
        else:
            items[at] = _edited(items[at], edits)
    kept = [item for at, item in enumerate(items) if at // form.width not in gone]
    return _header(form, len(kept) // form.width, value[0]) + b"".join(kept)


def _find(step: Step, keys: list[object], count: int, form: _Form) -> int | None:
    """Return which item a key (the last of that name) or an index means."""
    if form is _MAP:
        return next((i for i in reversed(range(len(keys))) if keys[i] == step), None)
    if not isinstance(step, int):
        return None
    index = step if step >= 0 else step + count
    return index if 0 <= index < count else None


def _added(step: Step, edits: list[tuple[Path, Edit]], form: _Form) -> list[bytes]:
    """Return the member that a Set adds to a map; what should be deleted already is gone."""
    added: list[bytes] = []
    for path, wanted in edits:
        if isinstance(wanted, Set) and not path and form is _MAP and isinstance(step, str):
            added += (msgspec.msgpack.encode(step), _replaced(wanted, alone=not added))
        else:
            _lead_nowhere(wanted)
    return added


def _lead_nowhere(wanted: Edit) -> None:
    if isinstance(wanted, Set):
        raise EditError(f"nothing to set at {wanted.path}")


def _form(first: int) -> _Form | None:
    for form in (_MAP, _ARRAY):
        if form.fix <= first <= form.fix + _FIX_MAX or first in (form.short, form.long):
            return form
    return None


def _items(value: bytes, form: _Form) -> list[bytes]:
    """Return the elements of an array, or the keys and values of a map in turn, as their bytes.

    The items of a map are laid out like an array of twice its length, and are read as one.
    """
    size = 1 + _length_bytes(value[0], form)
    count = int.from_bytes(value[1:size]) if size > 1 else value[0] - form.fix
    body = _ARRAY32 + (count * form.width).to_bytes(4) + value[size:]
    return [bytes(item) for item in _ITEMS.decode(body)]


def _length_bytes(first: int, form: _Form) -> int:
    return {form.short: 2, form.long: 4}.get(first, 0)


def _header(form: _Form, count: int, first: int) -> bytes:
    """Return the header for a number of items, as wide as the old one or as the number needs."""
    needed = 0 if count <= _FIX_MAX else 2 if count <= _SHORT_MAX else 4
    width = max(needed, _length_bytes(first, form))
    if not width:
        return bytes([form.fix + count])
    return bytes([form.short if width == 2 else form.long]) + count.to_bytes(width)


def _text_header(size: int) -> bytes:
    if size < 32:
        return bytes([0xA0 + size])
    width = 1 if size <= 0xFF else 2 if size <= _SHORT_MAX else 4
    return bytes([{1: 0xD9, 2: 0xDA, 4: 0xDB}[width]]) + size.to_bytes(width)


def _key(item: bytes) -> object:
    """Return a key if it is text, else nothing that a path can name."""
    try:
        return msgspec.msgpack.decode(item, type=str)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
