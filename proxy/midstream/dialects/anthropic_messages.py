"""The Messages API of Anthropic, as it is spoken at paths that end in `/messages`.

- A history is the array `messages`; what was said, called and answered are blocks of a message's
  content, and roles alternate. Results of tools stand first in the user message behind the call.
- A signed thinking block must come back in the message it came in, unmodified: a message with one
  is changed only if it becomes, block for block, what the provider once sent.
- A message that has lost its blocks is dropped, and its neighbours, of one role now, are joined.

Source: Anthropic API reference, `messages` and `messages-streaming`; the guide `extended-thinking`.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from midstream.core.exchange import RequestHead, ResponseHead
from midstream.dialects import provider_heads as heads
from midstream.dialects.provider_blocks import rearranged
from midstream.dialects.provider_claude import HOSTED, THINKING, ClaudeListener, read_whole
from midstream.dialects.provider_history import (
    Bonds,
    Digests,
    History,
    Item,
    Kind,
    Learned,
    Listener,
    Rules,
)
from midstream.dialects.provider_json import Messages

SUFFIX: Final = "/messages"


class _Block(msgspec.Struct):
    type: str = ""
    text: str | None = None
    id: str | None = None
    tool_use_id: str | None = None
    signature: str | None = None
    data: str | None = None


class _Message(msgspec.Struct):
    role: str = ""
    content: str | list[_Block] = ""


_MESSAGES: Final = Messages("messages", _Message)


def _read_message(message: _Message | None, index: int) -> Iterator[Item]:
    if message is None:
        yield Item(Kind.OPAQUE, (index, 0))
        return
    content = message.content
    blocks = [_Block("text", content)] if isinstance(content, str) else content
    for place, block in enumerate(blocks):
        yield _read_block(block, message.role, (index, place))


def _read_block(block: _Block, role: str, at: tuple[int, int]) -> Item:
    kind = block.type
    if kind == "tool_result":
        return Item(Kind.RESULT, at, call_id=block.tool_use_id or "")
    if role == "user":
        return Item(Kind.USER, at)
    if role != "assistant":
        return Item(Kind.SYSTEM, at)
    if kind == "text":
        return Item(Kind.TEXT, at, (), block.text or None)
    if kind == "tool_use":
        keys = (f"call:{block.id}",) if block.id else ()
        return Item(Kind.CALL, at, keys, call_id=block.id or "")
    if kind in THINKING:
        signature = block.signature or block.data
        return Item(Kind.REASONING, at, (f"signature:{signature}",) if signature else ())
    if kind in HOSTED or kind.endswith("_tool_result"):
        return Item(Kind.HOSTED, at, (f"{kind}:{block.id or block.tool_use_id}",))
    return Item(Kind.OPAQUE, at)


class AnthropicMessages:
    """The dialect: a POST of JSON to a path that ends in `/messages`."""

    name: Final = "anthropic_messages"
    api: Final = "anthropic"
    fuses: Final = False
    permutes: Final = False
    rules: Final = Rules(frozenset({Kind.USER}))

    def reads(self, head: RequestHead) -> bool:
        return heads.is_json_post(head) and head.path.endswith(SUFFIX)

    def reads_response(self, head: RequestHead, response: ResponseHead) -> bool:
        return heads.is_answer(response)

    def conversation_path(self, head: RequestHead) -> str:
        return heads.LEDGER_PATH

    def read_request(self, body: bytes) -> History | None:
        messages = _MESSAGES.read(body)
        if messages is None:
            return None
        items = [
            item for index, message in enumerate(messages) for item in _read_message(message, index)
        ]
        return History(body, items)

    def elements(self, body: bytes) -> Sequence[bytes | msgspec.Raw]:
        return _MESSAGES.elements(body) or ()

    def stream_of(self, payload: bytes) -> str:
        return ""

    def listen(self, digests: Digests) -> Listener:
        return ClaudeListener(digests)

    def read_response(self, body: bytes, digests: Digests) -> Learned | None:
        return read_whole(body, digests)

    def reorder(
        self, history: History, order: Sequence[int], moved: Sequence[int], bonds: Bonds
    ) -> bytes:
        return rearranged(history, order, moved, bonds)


DIALECT: Final = AnthropicMessages()
