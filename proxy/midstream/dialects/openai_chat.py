"""Chat Completions, of OpenAI and of the many who speak it.

- A history is the array `messages`. One assistant message holds a text and calls, which have no
  order among themselves; the results follow it as messages of their own.
- Where a client has put the text of a message behind its results, it can be fused back into it, if
  both came in one response and the message with the calls says nothing else.

Source: OpenAI API reference, `chat/create` and `chat-streaming`.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from midstream.core import edit, raw
from midstream.core.exchange import RequestHead, ResponseHead
from midstream.dialects import provider_heads as heads
from midstream.dialects.provider_chat import ChatListener, read_whole
from midstream.dialects.provider_history import (
    Bonds,
    Digests,
    History,
    Item,
    Kind,
    Learned,
    Listener,
    Refused,
    Rules,
)
from midstream.dialects.provider_json import Content, Messages, text_of
from midstream.dialects.provider_splice import Array, next_calls

SUFFIX: Final = "/chat/completions"
EMPTY: Final = frozenset({b"null", b'""', b"[]", b"{}"})
ROLES: Final = {"user": Kind.USER, "system": Kind.SYSTEM, "developer": Kind.SYSTEM}


class _Call(msgspec.Struct):
    id: str | None = None


class _Message(msgspec.Struct):
    role: str = ""
    content: Content = None
    tool_calls: list[_Call] | None = None
    tool_call_id: str | None = None
    function_call: dict[str, Any] | None = None


_MESSAGES: Final = Messages("messages", _Message)


def _read_message(message: _Message | None, index: int) -> Iterator[Item]:
    at = (index, -1)
    if message is None or message.function_call:
        yield Item(Kind.OPAQUE, at)
    elif message.role == "assistant":
        text = text_of(message.content)
        if text:
            yield Item(Kind.TEXT, at, (), text)
        calls = message.tool_calls or ()
        for place, call in enumerate(calls):
            keys = (f"call:{call.id}",) if call.id else ()
            yield Item(Kind.CALL, (index, place), keys, call_id=call.id or "")
        if not text and not calls:
            yield Item(Kind.OPAQUE, at)
    elif message.role == "tool":
        yield Item(Kind.RESULT, at, call_id=message.tool_call_id or "")
    else:
        yield Item(ROLES.get(message.role, Kind.OPAQUE), at)


class OpenAIChat:
    """The dialect: a POST of JSON to a path that ends in `/chat/completions`."""

    name: Final = "openai_chat"
    api: Final = "openai-chat"
    fuses: Final = True
    permutes: Final = False
    rules: Final = Rules(frozenset({Kind.TEXT, Kind.USER, Kind.SYSTEM}))

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
        return ChatListener(digests)

    def read_response(self, body: bytes, digests: Digests) -> Learned | None:
        return read_whole(body, digests)

    def reorder(
        self, history: History, order: Sequence[int], moved: Sequence[int], bonds: Bonds
    ) -> bytes:
        """Fuse texts into the message of their call, or put their messages in front of it."""
        array = Array(history.body, "messages")
        messages = dict(enumerate(array.elements))
        before: dict[int, list[bytes]] = {}
        for item, call in next_calls(history.items, order, moved):
            source, target = history.items[item].at[0], history.items[call].at[0]
            if any(i.kind is Kind.CALL and i.at[0] == source for i in _around(history, item)):
                raise Refused("would_break_api")
            text = messages.pop(source)
            content = _sole_content(text)
            if content and bonds.is_one_response(item, call) and _is_silent(messages[target]):
                messages[target] = edit.apply(messages[target], edit.Set(("content",), content))
            else:
                before.setdefault(target, []).append(text)
        return array.with_elements(
            [
                element
                for index, message in messages.items()
                for element in (*before.get(index, ()), message)
            ]
        )


def _around(history: History, item: int) -> Sequence[Item]:
    """Return the items beside one: what shares its message."""
    return history.items[item : item + 2]


def _sole_content(message: bytes) -> bytes:
    """Return the raw content of a message that says nothing else, else nothing."""
    fields = raw.members(message)
    others = (value for key, value in fields.items() if key not in ("role", "content"))
    return b"" if any(value not in EMPTY for value in others) else fields["content"]


def _is_silent(message: bytes) -> bool:
    return raw.members(message).get("content", b"null") in EMPTY


DIALECT: Final = OpenAIChat()
