"""Set or delete values inside a JSON document and keep every other byte.

    apply(document, Set(("init", "body", INNER, "messages", 3), b"{}"), Delete(("id",)))

- A path names keys, indices (negative: from the end) and INNER: the value here is a string that
  holds JSON text, go on inside it.
- All edits of one call mean the original document. Two edits of one place, or of a place and one
  inside it, are an error: nobody could say which was meant.
- A key that occurs twice: Set and the way down take the last one, as JSON.parse does; Delete takes
  all of them.
"""

import json
from collections.abc import Mapping
from typing import Final, final

import msgspec

from midstream.core.errors import EditError
from midstream.core.json_scan import ARRAY, OBJECT, STRING, Items, Text, Value, check


class Inner:
    """The kind of INNER."""

    def __repr__(self) -> str:
        return "INNER"


INNER: Final = Inner()

type Step = str | int | Inner
type Path = tuple[Step, ...]


@final
class Set(msgspec.Struct, frozen=True):
    """Put a value, given as raw JSON text, at a path; a missing last key is added to its object."""

    path: Path
    value: bytes


@final
class Delete(msgspec.Struct, frozen=True):
    """Remove the member or element at a path with one comma; a path to nowhere does nothing."""

    path: Path


type Edit = Set | Delete
type _Plan = dict[Step, Edit | _Plan]
type _Splice = tuple[int, int, bytes]


def apply(document: bytes, *edits: Edit) -> bytes:
    """Return the document with the edits made.

    Raises:
        EditError: the document or a value is no JSON text, a Set leads nowhere, or edits overlap.
    """
    if not edits:
        return document
    splices: list[_Splice] = []
    _edit_text(Text(document), _plan(edits), splices)
    splices.sort()
    pieces: list[bytes] = []
    at = 0
    for start, end, text in splices:
        pieces += (document[at:start], text)
        at = end
    pieces.append(document[at:])
    return b"".join(pieces)


def get(document: bytes, path: Path) -> bytes | None:
    """Return the raw JSON text at a path, None if the path leads nowhere.

    Raises:
        EditError: the document is no JSON text.
    """
    value = _find(document, path)
    return bytes(value.raw) if value else None


def spans(document: bytes, path: Path) -> list[tuple[int, int]]:
    """Return where in the document each element of the array at a path stands; none if no array.

    Raises:
        EditError: the document is no JSON text.
    """
    value = _find(document, path)
    if not value or value.opening != ARRAY:
        return []
    found = [item.value for item in value.elements().wanted]
    return [value.text.place(one.start, one.end, b"")[:2] for one in found]


def _find(document: bytes, path: Path) -> Value | None:
    value = Text(document).root()
    for step in path:
        if not isinstance(step, Inner):
            found = _items(value, {step: step}).wanted
            if not found:
                return None
            value = found[-1].value
        elif value.opening == STRING:
            value = value.inner().root()
        else:
            return None
    return value


def _items(value: Value, steps: Mapping[Step, object]) -> Items:
    if value.opening == OBJECT:
        return value.members(steps)
    if value.opening == ARRAY:
        return value.elements([step for step in steps if isinstance(step, int)])
    return Items([], 0, 0)


def _plan(edits: tuple[Edit, ...]) -> Edit | _Plan:
    """Join the paths of all edits into one tree, so that each container is looked at once."""
    plan: _Plan = {}
    for edit in edits:
        if type(edit) is Set:
            check(edit.value)
        if not edit.path:
            if len(edits) > 1:
                raise EditError("edits overlap: one is of the whole document")
            return edit
        branch = plan
        for step in edit.path[:-1]:
            deeper = branch.setdefault(step, {})
            if not isinstance(deeper, dict):
                raise EditError(f"edits overlap at {edit.path}")
            branch = deeper
        if branch.setdefault(edit.path[-1], edit) is not edit:
            raise EditError(f"edits overlap at {edit.path}")
    return plan


def _edit_text(text: Text, plan: Edit | _Plan, splices: list[_Splice]) -> None:
    if isinstance(plan, dict):
        _edit(text.root(entered=True), plan, splices)
    elif type(plan) is Set:
        _set(text.root(), plan.value, splices)
    else:
        raise EditError(f"cannot delete a whole JSON text at {plan.path}")


def _set(value: Value, new: bytes, splices: list[_Splice]) -> None:
    # The same again would cost an inner text its spelling for nothing.
    if not (len(new) == len(value.raw) and value.text.content.startswith(new, value.start)):
        splices.append(value.text.place(value.start, value.end, new))


def _edit(value: Value, plan: _Plan, splices: list[_Splice]) -> None:
    items = _items(value, plan)
    if value.opening == ARRAY:
        plan = _counted_from_start(plan, items.count)
    last = {item.step: item for item in items.wanted}
    added: list[bytes] = []
    gone: set[Step] = set()
    for step, todo in plan.items():
        item = None if isinstance(step, Inner) else last.get(step)
        if item:
            if type(todo) is Delete:
                gone.add(step)
            elif type(todo) is Set:
                _set(item.value, todo.value, splices)
            else:
                _edit(item.value, todo, splices)
        elif isinstance(step, Inner) and value.opening == STRING:
            _edit_text(value.inner(), todo, splices)
        elif isinstance(step, str) and value.opening == OBJECT and type(todo) is Set:
            added.append(json.dumps(step).encode() + b":" + todo.value)
        else:
            _lead_nowhere(todo)
    if gone or added:
        _recount(value, items, gone, added, splices)


def _recount(
    value: Value, items: Items, gone: set[Step], added: list[bytes], splices: list[_Splice]
) -> None:
    """Cut items out, each with the comma before it, or behind it where none before it stays."""
    place = value.text.place
    cut = [item for item in items.wanted if item.step in gone]
    for rank, item in enumerate(cut):
        if item.index > rank:
            splices.append(place(item.before, item.value.end, b""))
        elif item.index + 1 < items.count:
            splices.append(place(item.start, item.after, b""))
        else:
            splices.append(place(item.start, item.value.end, b""))
    if added:
        comma = b"," if items.count > len(cut) else b""
        splices.append(place(items.end, items.end, comma + b",".join(added)))


def _counted_from_start(plan: _Plan, count: int) -> _Plan:
    counted: _Plan = {}
    for step, todo in plan.items():
        index = step + count if isinstance(step, int) and step < 0 else step
        if counted.setdefault(index, todo) is not todo:
            raise EditError(f"edits overlap at element {index}")
    return counted


def _lead_nowhere(plan: Edit | _Plan) -> None:
    """Refuse what should be set at a place that is not there; what should be deleted already is."""
    if type(plan) is Set:
        raise EditError(f"nothing to set at {plan.path}")
    if isinstance(plan, dict):
        for deeper in plan.values():
            _lead_nowhere(deeper)
