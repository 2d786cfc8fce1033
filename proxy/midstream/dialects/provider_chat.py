"""What Chat Completions answers: chunks or one body, read into outputs.

Only the first choice is learned: a client goes on with one, and with more of them nobody could say
with which. Some upstreams leave out the index of a call, or give all of them the same one: an id
that differs is another call.

Source: OpenAI API reference, `chat-streaming`.
"""

from typing import Final

import msgspec

from midstream.dialects.provider_history import Digests, Kind, Learned, Output
from midstream.dialects.provider_json import Content, Shape, text_of

MAX_CALLS: Final = 4096


class _Call(msgspec.Struct):
    index: int | None = None
    id: str | None = None


class _Delta(msgspec.Struct):
    content: Content = None
    tool_calls: list[_Call] | None = None


class _Choice(msgspec.Struct):
    index: int = 0
    delta: _Delta | None = None
    message: _Delta | None = None
    finish_reason: str | None = None


class _Chunk(msgspec.Struct):
    choices: list[_Choice] = []


_CHUNK: Final = Shape(_Chunk)


class ChatListener:
    """Follows one response."""

    def __init__(self, digests: Digests) -> None:
        self._digests = digests
        self._text = digests.text()
        self._has_text = False
        self._calls: list[str] = []
        self._places: dict[int, int] = {}
        self._is_complete = False

    def receive(self, payload: bytes) -> bool:
        chunk = _CHUNK.read(payload)
        if chunk is None:
            return payload == b"[DONE]" and self._is_complete
        for choice in chunk.choices:
            said = choice.delta or choice.message
            if choice.index == 0 and said is not None:
                self._note(said)
            self._is_complete |= choice.index == 0 and choice.finish_reason is not None
        return self._is_complete

    def learned(self) -> Learned:
        if not self._is_complete:
            return Learned(b"", [], is_complete=False)  # nothing says where a text was cut
        outputs = [Output(Kind.TEXT, (), self._text.digest())] if self._has_text else []
        for call in self._calls:
            keys = (self._digests.of_key(f"call:{call}"),) if call else ()
            outputs.append(Output(Kind.CALL, keys))
        return Learned(b"", outputs, is_complete=True)

    def _note(self, said: _Delta) -> None:
        text = text_of(said.content)
        if text:
            self._has_text = True
            self._text.add(text)
        for call in said.tool_calls or ():
            place = self._places.get(call.index) if call.index is not None else None
            is_new = place is None or (call.id and self._calls[place] not in ("", call.id))
            if is_new and (call.id or call.index is not None) and len(self._calls) < MAX_CALLS:
                if call.index is not None:
                    self._places[call.index] = len(self._calls)
                self._calls.append(call.id or "")
            elif place is not None and call.id:
                self._calls[place] = call.id


def read_whole(body: bytes, digests: Digests) -> Learned | None:
    """Read a response that was not streamed."""
    if _CHUNK.read(body) is None:
        return None
    listener = ChatListener(digests)
    listener.receive(body)
    return listener.learned()
