"""The Responses API of OpenAI and of those who speak it: requests over HTTP and WebSocket.

- A history is the array `input`. With `previous_response_id` or `conversation` the provider holds
  what came before, and `input` is what is new.
- Over WebSocket a request is the message `response.create`, with the body's members beside `type`;
  one connection may carry several streams, told apart by `stream_id`.

Source: OpenAI API reference, `responses/create` and the guide `websocket-mode`; vercel/ai
`packages/openai/src/responses` (what clients send back) and its fixture of rotating item ids.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from midstream.core import raw
from midstream.core.exchange import RequestHead, ResponseHead
from midstream.dialects import provider_heads as heads
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
from midstream.dialects.provider_json import Content, Messages, Shape, read_elements, text_of
from midstream.dialects.provider_responses import CALLS, ResponsesListener, read_whole
from midstream.dialects.provider_splice import Array

SUFFIX: Final = "/responses"
CREATE: Final = "response.create"

RESULTS: Final = frozenset(f"{call}_output" for call in CALLS)
HOSTED: Final = frozenset({
    "web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call",
    "mcp_call", "mcp_list_tools", "mcp_approval_request", "tool_search_call",
    "tool_search_output", "program", "program_output",
})  # fmt: skip


class _Body(msgspec.Struct):
    input: str | list[msgspec.Raw] = ""
    previous_response_id: str | None = None
    conversation: msgspec.Raw = msgspec.Raw(b"null")
    type: str | None = None
    stream_id: str | None = None


class _Item(msgspec.Struct):
    type: str | None = None
    role: str | None = None
    id: str | None = None
    call_id: str | None = None
    encrypted_content: str | None = None
    content: Content = None


class _Whole(msgspec.Struct):
    """A body all of whose items have the known shape: one pass reads it."""

    input: str | list[_Item] = ""
    previous_response_id: str | None = None
    conversation: msgspec.Raw = msgspec.Raw(b"null")
    type: str | None = None
    stream_id: str | None = None


_WHOLE: Final = msgspec.json.Decoder(_Whole)
_BODY: Final = msgspec.json.Decoder(_Body)
_ITEM: Final = Shape(_Item)
_INPUT: Final = Messages("input", _Item)


def _read_body(body: bytes) -> _Body | _Whole | None:
    try:
        return _WHOLE.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass  # one odd item shall not make all of them unknown
    try:
        return _BODY.decode(body)
    except msgspec.ValidationError:
        return None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    try:
        fields = raw.members(body)
    except raw.Malformed:
        return None
    array = fields.get("input", b'""')
    elements = read_elements(array)
    words = [raw.text_of(fields.get(key)) for key in ("previous_response_id", "type", "stream_id")]
    return _Body(
        raw.text_of(array) or "" if elements is None else [msgspec.Raw(e) for e in elements],
        words[0],
        msgspec.Raw(fields.get("conversation", b"null")),
        *words[1:],
    )


def _read_item(found: _Item | msgspec.Raw, index: int) -> Item:
    item = _ITEM.read(found) if isinstance(found, msgspec.Raw) else found
    at = (index, 0)
    if item is None:
        return Item(Kind.OPAQUE, at)
    kind = item.type or ("message" if item.role else "")
    keys = (f"id:{item.id}",) if item.id else ()
    if kind == "message":
        if item.role == "assistant":
            return Item(Kind.TEXT, at, keys, text_of(item.content) or None)
        return Item(Kind.USER if item.role == "user" else Kind.SYSTEM, at)
    if kind == "reasoning":
        if item.encrypted_content:
            keys = (*keys, f"encrypted:{item.encrypted_content}")
        return Item(Kind.REASONING, at, keys)
    if kind in CALLS:
        if item.call_id:
            keys = (*keys, f"call:{item.call_id}")
        return Item(Kind.CALL, at, keys, call_id=item.call_id or item.id or "")
    if kind in RESULTS:
        return Item(Kind.RESULT, at, call_id=item.call_id or item.id or "")
    if kind in HOSTED:
        return Item(Kind.HOSTED, at, keys)
    return Item(Kind.REFERENCE if kind == "item_reference" else Kind.OPAQUE, at, keys)


class _Stream(msgspec.Struct):
    stream_id: str | None = None


_STREAM: Final = Shape(_Stream)


class OpenAIResponses:
    """The dialect: a POST of JSON to a path that ends in `/responses`, or a WebSocket there."""

    name: Final = "openai_responses"
    api: Final = "openai-responses"
    fuses: Final = False
    permutes: Final = True
    # Strict servers of this API refuse what stands between a call and its result
    # (pydantic/pydantic-ai#7430), so such an order is never made.
    rules: Final = Rules(
        frozenset({Kind.TEXT, Kind.REASONING, Kind.USER, Kind.SYSTEM}), follows=True
    )

    def reads(self, head: RequestHead) -> bool:
        is_request = head.is_websocket or heads.is_json_post(head)
        return is_request and head.path.endswith(SUFFIX)

    def reads_response(self, head: RequestHead, response: ResponseHead) -> bool:
        return heads.is_answer(response)

    def conversation_path(self, head: RequestHead) -> str:
        return heads.LEDGER_PATH

    def read_request(self, body: bytes) -> History | None:
        read = _read_body(body)
        if read is None or (read.type is not None and read.type != CREATE):
            return None
        if isinstance(read.input, str):
            items = [Item(Kind.USER, (0, 0))]
        else:
            given: Sequence[_Item | msgspec.Raw] = read.input
            items = [_read_item(item, index) for index, item in enumerate(given)]
        previous = read.previous_response_id or ""
        is_delta = bool(previous) or bytes(read.conversation) not in (b"null", b'""', b"")
        return History(body, items, is_delta, previous, read.stream_id or "")

    def elements(self, body: bytes) -> Sequence[bytes | msgspec.Raw]:
        return _INPUT.elements(body) or ()

    def stream_of(self, payload: bytes) -> str:
        if payload.find(b'"stream_id"') < 0:
            return ""
        found = _STREAM.read(payload)
        return (found.stream_id or "") if found is not None else ""

    def listen(self, digests: Digests) -> Listener:
        return ResponsesListener(digests)

    def read_response(self, body: bytes, digests: Digests) -> Learned | None:
        return read_whole(body, digests)

    def reorder(
        self, history: History, order: Sequence[int], moved: Sequence[int], bonds: Bonds
    ) -> bytes:
        array = Array(history.body, "input")
        return array.with_elements([array.raws[index] for index in order])


DIALECT: Final = OpenAIResponses()
