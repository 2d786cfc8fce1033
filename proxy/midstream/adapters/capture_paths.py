"""Replaces the values at configured JSON paths, and keeps every other byte.

user.email             the member `email` of the member `user`
items[*].key           the member `key` of every element
init.body.messages[0]  through a string that holds JSON of its own

Documents are JSON or msgpack. A value of any type becomes a token; a key that occurs twice is
replaced each time.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import msgspec

from midstream.adapters.capture_msgpack import is_container
from midstream.adapters.capture_splice import Splices
from midstream.core import edit, edit_msgpack
from midstream.core.errors import EditError
from midstream.core.json_scan import ARRAY, OBJECT, STRING, Value
from midstream.core.raw import text_of

EVERY: Final = None
MAX_DEPTH: Final = 64
_STEP: Final = re.compile(r"(?P<name>[^.\[\]]+)|\[(?P<index>\d+|\*)\]")

type JsonPath = tuple[str | int | None, ...]
type Token = Callable[[str], str]


def parse_path(text: str) -> JsonPath:
    """Return a path as its steps; `[*]` is None. Raises ValueError."""
    steps: list[str | int | None] = []
    at = 2 if text.startswith("$.") else 0
    while at < len(text):
        match = _STEP.match(text, at)
        if match is None:
            break
        index = match["index"]
        steps.append(match["name"] if index is None else EVERY if index == "*" else int(index))
        at = match.end()
        if text[at : at + 1] == ".":
            at += 1
            if at == len(text):
                break
    if not steps or at != len(text) or text.endswith("."):
        raise ValueError(f'found "{text}", expected a path such as "user.email" or "items[*].key"')
    return tuple(steps)


def at_paths(document: bytes, paths: Iterable[JsonPath], token: Token) -> tuple[bytes, int]:
    """Return a document with tokens at the paths, and how many; what is neither as it is."""
    found = [path for path in paths if _may_hold(document, path)]
    if not found:
        return document, 0
    try:
        if is_container(document):
            return _in_msgpack(document, found, token)
        if document.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"["):
            return _in_json(document, found, token)
    except (ValueError, RecursionError, EditError):
        pass
    return document, 0


def _may_hold(document: bytes, path: JsonPath) -> bool:
    """Tell quickly that a document lacks a name of the path."""
    return all(step.encode() in document for step in path if isinstance(step, str))


def _in_json(document: bytes, paths: list[JsonPath], token: Token) -> tuple[bytes, int]:
    splices = Splices(document)
    places: dict[tuple[int, int, bytes], Value] = {}
    for path in paths:
        for value in _values(splices.text.root(), path):
            places.setdefault(value.text.place(value.start, value.end, b""), value)
    end = 0
    for (start, stop, _), value in sorted(places.items(), key=lambda item: item[0]):
        if start >= end:  # of a place and one inside it, the outer one
            splices.put(value, token(_plain(bytes(value.raw))))
            end = stop
    return splices.result(), splices.count


def _values(value: Value, path: JsonPath, depth: int = 0) -> Iterator[Value]:
    """Return the values that a path leads to."""
    if not path:
        yield value
        return
    if value.opening == STRING:
        try:
            value = value.inner().root()
        except EditError:
            return
    step, rest = path[0], path[1:]
    if depth > MAX_DEPTH:
        return
    if value.opening == OBJECT and isinstance(step, str):
        items = value.members({step}).wanted
    elif value.opening == ARRAY and not isinstance(step, str):
        items = value.elements(None if step is EVERY else [step]).wanted
    else:
        return
    for item in items:
        yield from _values(item.value, rest, depth + 1)


def _plain(raw: bytes) -> str:
    """Return a string without its quotes, and any other value as its text."""
    text = text_of(raw)
    return raw.decode("utf-8", "replace") if text is None else text


def _in_msgpack(document: bytes, paths: list[JsonPath], token: Token) -> tuple[bytes, int]:
    found = msgspec.msgpack.decode(document)
    places = dict(place for path in paths for place in _places(found, path))
    edits: list[edit.Edit] = []
    for place, value in places.items():
        if any(place[:length] in places for length in range(1, len(place))):
            continue
        name = token(value if isinstance(value, str) else json.dumps(value, default=repr))
        encode = json.dumps(name).encode() if edit.INNER in place else msgspec.msgpack.encode(name)
        edits.append(edit.Set(place, encode))
    return (edit_msgpack.apply(document, *edits), len(edits)) if edits else (document, 0)


def _places(value: Any, path: JsonPath, before: edit.Path = ()) -> Iterator[tuple[edit.Path, Any]]:
    if not path:
        yield before, value
        return
    if isinstance(value, str) and value[:1] in ("{", "["):
        try:
            value, before = json.loads(value), (*before, edit.INNER)
        except ValueError:
            return
    step, rest = path[0], path[1:]
    if isinstance(value, dict) and isinstance(step, str) and step in value:
        yield from _places(value[step], rest, (*before, step))
    elif isinstance(value, list) and not isinstance(step, str):
        chosen = range(len(value)) if step is EVERY else [step] if step < len(value) else []
        for index in chosen:
            yield from _places(value[index], rest, (*before, index))
