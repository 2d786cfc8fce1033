"""What the Messages API answers: events or one body, read into outputs.

Source: Anthropic API reference, `messages-streaming`.
"""

from typing import Final

import msgspec

from midstream.dialects.provider_history import Digests, Kind, Learned, Output
from midstream.dialects.provider_json import Shape

THINKING: Final = frozenset({"thinking", "redacted_thinking"})
HOSTED: Final = frozenset({"server_tool_use", "mcp_tool_use"})
MAX_BLOCKS: Final = 4096
MAX_SIGNATURE_CHARS: Final = 1 << 20


class _Block(msgspec.Struct):
    type: str = ""
    text: str | None = None
    id: str | None = None
    tool_use_id: str | None = None
    signature: str | None = None
    data: str | None = None


class _Delta(msgspec.Struct):
    type: str | None = None
    text: str | None = None
    signature: str | None = None


class _Event(msgspec.Struct):
    type: str = ""
    index: int = -1
    content_block: _Block | None = None
    delta: _Delta | None = None


class _Whole(msgspec.Struct):
    type: str = ""
    content: list[_Block] = []


_EVENT: Final = Shape(_Event)
_WHOLE: Final = Shape(_Whole)


class _Slot:
    """What is known of one block."""

    __slots__ = ("block", "has_text", "is_done", "signature", "text")

    def __init__(self, block: _Block, digests: Digests) -> None:
        self.block = block
        self.text = digests.text()
        self.has_text = False
        self.add(block.text)
        self.signature = [block.signature or ""]
        self.is_done = False

    def add(self, text: str | None) -> None:
        if text:
            self.has_text = True
            self.text.add(text)

    def output(self, digests: Digests) -> Output:
        block, kind = self.block, self.block.type
        if kind == "text":
            return Output(Kind.TEXT, (), self.text.digest() if self.has_text else None)
        if kind == "tool_use":
            return Output(Kind.CALL, (digests.of_key(f"call:{block.id}"),) if block.id else ())
        if kind in THINKING:
            signature = "".join(self.signature) or block.data
            keys = (digests.of_key(f"signature:{signature}"),) if signature else ()
            return Output(Kind.REASONING, keys)
        return Output(Kind.HOSTED, (digests.of_key(f"{kind}:{block.id or block.tool_use_id}"),))


class ClaudeListener:
    """Follows one response."""

    def __init__(self, digests: Digests) -> None:
        self._digests = digests
        self._slots: dict[int, _Slot] = {}
        self._is_complete = False

    def receive(self, payload: bytes) -> bool:
        event = _EVENT.read(payload)
        if event is None:
            return False
        slot = self._slots.get(event.index)
        if event.type == "content_block_delta":
            if slot is not None and event.delta is not None:
                slot.add(event.delta.text)
                if event.delta.signature:
                    slot.signature.append(event.delta.signature)
        elif event.type == "content_block_start":
            if event.content_block is not None and len(self._slots) < MAX_BLOCKS:
                self._slots[event.index] = _Slot(event.content_block, self._digests)
        elif event.type == "content_block_stop":
            if slot is not None:
                slot.is_done = True
        elif event.type == "message_stop":
            self._is_complete = True
        return self._is_complete

    def learned(self) -> Learned:
        done = [self._slots[index] for index in sorted(self._slots) if self._slots[index].is_done]
        return Learned(b"", [slot.output(self._digests) for slot in done], self._is_complete)


def read_whole(body: bytes, digests: Digests) -> Learned | None:
    """Read a response that was not streamed."""
    whole = _WHOLE.read(body)
    if whole is None or whole.type != "message":
        return None
    outputs = [_Slot(block, digests).output(digests) for block in whole.content]
    return Learned(b"", outputs, True)
