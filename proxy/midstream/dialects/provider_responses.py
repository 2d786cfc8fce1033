"""What the Responses API answers: events or one body, read into outputs.

The order of a response is that of `output_index`, never that of arrival. Some upstreams give an
item another id with every event, so all ids seen at one index are aliases of one output; their
number is bounded, for a client keeps one of the first, or that of the end.

Source: OpenAI API reference, `responses-streaming`; vercel/ai, the fixture of rotating item ids.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from midstream.dialects.provider_history import Digests, Kind, Learned, Output, TextDigest
from midstream.dialects.provider_json import Content, Shape, text_of

CALLS: Final = frozenset({
    "function_call", "custom_tool_call", "local_shell_call", "shell_call", "apply_patch_call",
    "computer_call",
})  # fmt: skip
ENDINGS: Final = ("response.completed", "response.incomplete", "response.failed")
MAX_STREAMED_ALIASES: Final = 12
MAX_OUTPUTS: Final = 4096


class _Output(msgspec.Struct):
    type: str = ""
    id: str | None = None
    call_id: str | None = None
    encrypted_content: str | None = None
    status: str | None = None
    content: Content = None


class _Response(msgspec.Struct):
    id: str | None = None
    status: str | None = None
    output: list[msgspec.Raw] | None = None


class _Event(msgspec.Struct):
    type: str = ""
    output_index: int = -1
    item_id: str | None = None
    delta: str | None = None
    item: msgspec.Raw = msgspec.Raw(b"")
    response: msgspec.Raw = msgspec.Raw(b"")


_EVENT: Final = msgspec.json.Decoder(_Event)
_OUTPUT: Final = Shape(_Output)
_RESPONSE: Final = Shape(_Response)


class _CutResponse(msgspec.Struct):
    id: str | None = None


class _CutEvent(msgspec.Struct):
    """An event whose text msgspec cannot read: half a character, escaped."""

    type: str = ""
    output_index: int = -1
    item_id: str | None = None
    delta: str | None = None
    item: _Output | None = None
    response: _CutResponse | None = None


class _Slot:
    """What is known of the item at one index."""

    __slots__ = ("call_id", "encrypted", "ids", "is_done", "said", "text", "type")

    def __init__(self) -> None:
        self.ids: dict[str, None] = {}
        self.type = ""
        self.call_id = ""
        self.encrypted = ""
        self.said: TextDigest | None = None
        self.text = ""
        self.is_done = False

    def note(self, item: _Output) -> None:
        """Take an item as it stands now; what it says now counts."""
        self.type = item.type or self.type
        self.call_id = item.call_id or self.call_id
        self.encrypted = item.encrypted_content or self.encrypted
        self.text = text_of(item.content) or self.text
        if item.id:
            self.ids[item.id] = None

    def output(self, digests: Digests) -> Output:
        keys = [f"id:{identifier}" for identifier in self.ids]
        kind, text = Kind.HOSTED, None
        if self.type == "message":
            kind = Kind.TEXT
            if self.text:
                text = digests.of_text(self.text)
            elif self.said is not None:
                text = self.said.digest()
        elif self.type == "reasoning":
            kind = Kind.REASONING
            keys += [f"encrypted:{self.encrypted}"] if self.encrypted else []
        elif self.type in CALLS:
            kind = Kind.CALL
            keys += [f"call:{self.call_id}"] if self.call_id else []
        return Output(kind, tuple(map(digests.of_key, keys)), text)


class ResponsesListener:
    """Follows one response."""

    def __init__(self, digests: Digests) -> None:
        self._digests = digests
        self._slots: dict[int, _Slot] = {}
        self._id = ""
        self._is_complete = False

    def receive(self, payload: bytes) -> bool:
        try:
            event = _EVENT.decode(payload)
        except msgspec.ValidationError:
            return False
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return self._receive_cut(payload)
        if event.output_index >= 0:
            item = _OUTPUT.read(event.item) if bytes(event.item) else None
            self._note(event, item)
            return False
        if event.type in ENDINGS or not self._id:
            response = _RESPONSE.read(event.response) if bytes(event.response) else None
            if response is not None:
                return self._respond(event.type, response.id, response.output or ())
        return event.type in ENDINGS

    def learned(self) -> Learned:
        done = [self._slots[index] for index in sorted(self._slots) if self._slots[index].is_done]
        identifier = self._digests.of_key(f"response:{self._id}") if self._id else b""
        outputs = [slot.output(self._digests) for slot in done]
        return Learned(identifier, outputs, self._is_complete)

    def whole(self, response: _Response) -> None:
        """Take a response that came as one body."""
        kind = f"response.{response.status or 'completed'}"
        self._respond(kind, response.id, response.output or ())

    def _receive_cut(self, payload: bytes) -> bool:
        event = _CUT.read(payload)
        if event is None:
            return False
        if event.output_index >= 0:
            self._note(event, event.item)
        elif event.response is not None:
            return self._respond(event.type, event.response.id, ())
        return event.type in ENDINGS

    def _note(self, event: _Event | _CutEvent, item: _Output | None) -> None:
        slot = self._slots.get(event.output_index)
        if slot is None:
            if len(self._slots) >= MAX_OUTPUTS:
                return
            slot = self._slots[event.output_index] = _Slot()
        if event.item_id and len(slot.ids) < MAX_STREAMED_ALIASES:
            slot.ids[event.item_id] = None
        if event.delta is not None and event.type == "response.output_text.delta":
            if slot.said is None:
                slot.said = self._digests.text()
            slot.said.add(event.delta)
        if item is not None:
            slot.note(item)
            slot.is_done |= event.type == "response.output_item.done"

    def _respond(self, kind: str, identifier: str | None, outputs: Sequence[msgspec.Raw]) -> bool:
        self._id = self._id or identifier or ""
        if kind not in ENDINGS:
            return False
        self._is_complete = kind == "response.completed"
        for index, document in enumerate(outputs[:MAX_OUTPUTS]):
            self._note_again(index, _OUTPUT.read(document))
        return True

    def _note_again(self, index: int, item: _Output | None) -> None:
        """Take an item of the list at the end; where the stream told of another one, it counts."""
        slot = self._slots.get(index)
        if item is None or (slot is not None and slot.type not in ("", item.type)):
            return
        if slot is None:
            slot = self._slots[index] = _Slot()
        slot.is_done |= item.status in (None, "completed")
        slot.note(item)


_CUT: Final = Shape(_CutEvent)


def read_whole(body: bytes, digests: Digests) -> Learned | None:
    """Read a response that was not streamed."""
    response = _RESPONSE.read(body)
    if response is None or response.output is None:
        return None
    listener = ResponsesListener(digests)
    listener.whole(response)
    return listener.learned()
