"""Clients that need the whole text with the update that ends an artifact."""

import json

import msgspec
import pytest

from midstream.core.exchange import RequestHead
from midstream.core.frames import Frame, Kind, Side
from midstream.dialects import a2a

MARKED = {"parts": [{"text": "hello", "metadata": {"is_user_input": True}}]}
PLAIN = {"parts": [{"text": "hello", "metadata": {"is_user_input": False}}]}
EXTENSION = "https://google.github.io/adk-docs/a2a/a2a-extension/"


def keeps(body: bytes, kind: Kind = Kind.BODY, headers: dict[str, str] | None = None) -> bool:
    pairs = tuple((headers or {}).items())
    return a2a.keeps_only_last(Frame(Side.CLIENT, kind, body), RequestHead("POST", "/", pairs))


@pytest.mark.parametrize("header", ["A2A-Extensions", "X-A2A-Extensions"])
def test_a_client_that_names_the_extension_of_adk_is_one(header: str) -> None:
    assert keeps(b"{}", headers={header: f"https://example.com/x,{EXTENSION}"})
    assert not keeps(b"{}", headers={header: "https://example.com/x"})


def test_a_client_that_marks_the_parts_of_its_message_is_one() -> None:
    assert keeps(
        json.dumps({"method": "SendStreamingMessage", "params": {"message": MARKED}}).encode()
    )
    assert keeps(json.dumps({"message": MARKED}).encode())
    assert keeps(json.dumps({"message": {"content": MARKED["parts"]}}).encode())
    packed = msgspec.msgpack.encode({"params": {"message": MARKED}})
    assert keeps(packed, Kind.WS_BINARY)


@pytest.mark.parametrize(
    "body",
    [
        json.dumps({"message": PLAIN}).encode(),
        json.dumps({"message": {"parts": [{"text": "is_user_input"}]}}).encode(),
        b'{"message":{"parts":{"is_user_input":true}}}',
        b"is_user_input",
        b"",
    ],
)
def test_any_other_client_is_none(body: bytes) -> None:
    assert not keeps(body)
