"""Moves blocks between the messages of a body whose messages hold their content as a list.

Source: Anthropic API reference, `messages` (alternation of roles, place of tool results).
"""

from collections.abc import Sequence

from midstream.core import edit, raw
from midstream.dialects.provider_history import Bonds, History, Item, Kind, Refused
from midstream.dialects.provider_splice import Array, next_calls

CONTENT: edit.Path = ("content",)


def rearranged(history: History, order: Sequence[int], moved: Sequence[int], bonds: Bonds) -> bytes:
    """Return the body with these items moved in front of the calls they belong before.

    Raises Refused, EditError.
    """
    moves = next_calls(history.items, order, moved)
    _check_thinking(history.items, order, moves, bonds)
    array = Array(history.body, "messages")
    contents = _Contents(array.elements)
    gone: dict[int, set[int]] = {}
    come: dict[int, dict[int, list[bytes]]] = {}
    for item, call in moves:
        source, place = history.items[item].at
        target, before = history.items[call].at
        gone.setdefault(source, set()).add(place)
        block = contents.of(source)[place]
        come.setdefault(target, {}).setdefault(before, []).append(block)
    for index in gone.keys() | come.keys():
        left, added = gone.get(index, set()), come.get(index, {})
        contents.set(index, [
            block
            for place, old in enumerate(contents.of(index))
            for block in (*added.get(place, ()), *(() if place in left else (old,)))
        ])  # fmt: skip
    return array.with_elements(contents.joined())


def _check_thinking(
    items: Sequence[Item], order: Sequence[int], moves: Sequence[tuple[int, int]], bonds: Bonds
) -> None:
    """Refuse to change a message with thinking in it, but to what the provider once sent.

    A message that lost all its blocks is no longer there, so nothing in it was modified.
    """
    thinks = {item.at[0] for item in items if item.kind is Kind.REASONING}
    if not thinks:
        return
    target_of = {item: items[call].at[0] for item, call in moves}
    becomes: dict[int, list[int]] = {}
    for index in order:
        message = target_of.get(index, items[index].at[0])
        becomes.setdefault(message, []).append(index)
        if items[index].kind is Kind.REASONING:
            thinks.add(message)
    changed = {items[item].at[0] for item in target_of} | set(target_of.values())
    for message in thinks & changed & becomes.keys():
        if not bonds.is_whole_response(becomes[message]):
            raise Refused("thinking_locked")


class _Contents:
    """The messages of a body, and the blocks of those that were asked for."""

    def __init__(self, messages: Sequence[bytes]) -> None:
        self._messages = list(messages)
        self._blocks: dict[int, list[bytes]] = {}
        self._changed: set[int] = set()

    def of(self, index: int) -> list[bytes]:
        """Return the blocks of a message; a content that is a string is one block of text."""
        if index not in self._blocks:
            content = edit.get(self._messages[index], CONTENT) or b""
            is_text = content.startswith(b'"')
            self._blocks[index] = (
                [b'{"type":"text","text":' + content + b"}"] if is_text else raw.elements(content)
            )
        return self._blocks[index]

    def set(self, index: int, blocks: list[bytes]) -> None:
        self._blocks[index] = blocks
        self._changed.add(index)

    def joined(self) -> list[bytes]:
        """Return the messages without the emptied ones, whose neighbours are joined."""
        kept: list[int] = []
        dropped: int | None = None
        for index in range(len(self._messages)):
            if index in self._changed and not self._blocks[index]:
                dropped = index
                continue
            if dropped is not None and kept and self._stood_between(dropped, kept[-1], index):
                self.set(kept[-1], [*self.of(kept[-1]), *self.of(index)])
            else:
                kept.append(index)
            dropped = None
        return [self._written(index) for index in kept]

    def _stood_between(self, dropped: int, before: int, after: int) -> bool:
        """Tell whether a message kept two of another role apart; one of its own did not."""
        return self._role(before) == self._role(after) != self._role(dropped)

    def _role(self, index: int) -> str | None:
        return raw.text_of(raw.members(self._messages[index]).get("role"))

    def _written(self, index: int) -> bytes:
        message = self._messages[index]
        if index not in self._changed:
            return message
        content = edit.get(message, CONTENT) or b""
        blocks = self._blocks[index]
        if content.startswith(b'"'):
            return edit.apply(message, edit.Set(CONTENT, raw.array(blocks)))
        return Array(message, "content").with_elements(blocks)
