"""The Gemini API, read and counted, never changed.

A call may only follow what the user said or a result, so a text that stands behind its call cannot
be put back unless both came in one response, and then its signature says where it belongs: no move
is safe without the provider's word. So inverted pairs are counted, and every body passes.

Source: Google AI `generateContent` reference and the guide `thought-signatures`.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

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
    Output,
    Refused,
    Rules,
    TextDigest,
)
from midstream.dialects.provider_json import Messages, Shape

UNARY: Final = ":generateContent"
STREAM: Final = ":streamGenerateContent"
MAX_OUTPUTS: Final = 4096


class _Call(msgspec.Struct, rename="camel"):
    name: str = ""
    id: str | None = None
    args: Any = None

    @property
    def said(self) -> str:
        """Return what names a call without an id: its name with its arguments."""
        return json.dumps([self.name, self.args], sort_keys=True)


class _Result(msgspec.Struct):
    name: str = ""
    id: str | None = None


class _Part(msgspec.Struct, rename="camel"):
    text: str | None = None
    thought: bool = False
    thought_signature: str | None = None
    function_call: _Call | None = None
    function_response: _Result | None = None

    @property
    def keys(self) -> tuple[str, ...]:
        keys = (f"signature:{self.thought_signature}",) if self.thought_signature else ()
        call = self.function_call
        return (*keys, f"call:{call.id}") if call is not None and call.id else keys


class _Content(msgspec.Struct):
    role: str = ""
    parts: list[_Part] = []


class _Candidate(msgspec.Struct, rename="camel"):
    index: int = 0
    content: _Content | None = None
    finish_reason: str | None = None


class _Response(msgspec.Struct):
    candidates: list[_Candidate] = []


_CONTENTS: Final = Messages("contents", _Content)
_RESPONSE: Final = Shape(_Response)


def _read_content(content: _Content | None, index: int) -> Iterator[Item]:
    if content is None:
        yield Item(Kind.OPAQUE, (index, 0))
        return
    for place, part in enumerate(content.parts):
        yield _read_part(part, content.role, (index, place))


def _read_part(part: _Part, role: str, at: tuple[int, int]) -> Item:
    call, result = part.function_call, part.function_response
    if result is not None:
        return Item(Kind.RESULT, at, call_id=result.id or result.name)
    if role != "model":
        return Item(Kind.USER, at)
    if call is not None:
        return Item(Kind.CALL, at, part.keys, call.said, call.id or call.name)
    if part.text is not None:
        kind = Kind.REASONING if part.thought else Kind.TEXT
        return Item(kind, at, part.keys, part.text or None)
    return Item(Kind.OPAQUE, at, part.keys)


class _Said:
    """A run of text parts, or one call."""

    __slots__ = ("keys", "kind", "text")

    def __init__(self, kind: Kind, text: TextDigest) -> None:
        self.kind = kind
        self.text = text
        self.keys: list[str] = []


class GeminiListener:
    """Follows one response; pieces of text that follow each other are one output."""

    def __init__(self, digests: Digests) -> None:
        self._digests = digests
        self._said: list[_Said] = []
        self._is_complete = False

    def receive(self, payload: bytes) -> bool:
        response = _RESPONSE.read(payload)
        for candidate in response.candidates if response is not None else ():
            if candidate.index == 0:
                for part in candidate.content.parts if candidate.content is not None else ():
                    self._note(part)
                self._is_complete |= candidate.finish_reason is not None
        return self._is_complete

    def learned(self) -> Learned:
        if not self._is_complete:
            return Learned(b"", [], is_complete=False)  # nothing says where a text was cut
        outputs = [
            Output(said.kind, tuple(map(self._digests.of_key, said.keys)), said.text.digest())
            for said in self._said
        ]
        return Learned(b"", outputs, is_complete=True)

    def _note(self, part: _Part) -> None:
        call, kind = part.function_call, Kind.REASONING if part.thought else Kind.TEXT
        if call is not None:
            self._add(Kind.CALL, call.said, part.keys)
        elif part.text is not None:
            is_next = bool(self._said) and self._said[-1].kind is kind
            if is_next:
                self._said[-1].text.add(part.text)
                self._said[-1].keys += part.keys
            else:
                self._add(kind, part.text, part.keys)

    def _add(self, kind: Kind, text: str, keys: Sequence[str]) -> None:
        if len(self._said) < MAX_OUTPUTS:
            said = _Said(kind, self._digests.text())
            said.text.add(text)
            said.keys += keys
            self._said.append(said)


class Gemini:
    """The dialect: a POST of JSON to a path that ends in one of the methods that generate.

    Of streams only those in events are read: a JSON array would have to be held back until it ends.
    """

    name: Final = "gemini"
    api: Final = "gemini"
    fuses: Final = False
    permutes: Final = False
    rules: Final = Rules(frozenset({Kind.TEXT, Kind.USER, Kind.SYSTEM}))

    def reads(self, head: RequestHead) -> bool:
        return heads.is_json_post(head) and head.path.endswith((UNARY, STREAM))

    def reads_response(self, head: RequestHead, response: ResponseHead) -> bool:
        is_whole = head.path.endswith(UNARY)  # else a JSON list that grows: it must not be held
        return heads.is_answer(response) and (is_whole or response.is_event_stream)

    def conversation_path(self, head: RequestHead) -> str:
        return heads.LEDGER_PATH

    def read_request(self, body: bytes) -> History | None:
        contents = _CONTENTS.read(body)
        if contents is None:
            return None
        items = [
            item for index, content in enumerate(contents) for item in _read_content(content, index)
        ]
        return History(body, items)

    def elements(self, body: bytes) -> Sequence[bytes | msgspec.Raw]:
        return _CONTENTS.elements(body) or ()

    def stream_of(self, payload: bytes) -> str:
        return ""

    def listen(self, digests: Digests) -> Listener:
        return GeminiListener(digests)

    def read_response(self, body: bytes, digests: Digests) -> Learned | None:
        if _RESPONSE.read(body) is None:
            return None
        listener = GeminiListener(digests)
        listener.receive(body)
        return listener.learned()

    def reorder(
        self, history: History, order: Sequence[int], moved: Sequence[int], bonds: Bonds
    ) -> bytes:
        raise Refused("gemini_cross_turn")


DIALECT: Final = Gemini()
