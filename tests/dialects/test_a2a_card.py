"""Agent cards: every url is found, and only what is named is changed."""

import json
from typing import Any

import pytest

from midstream.core.errors import EditError
from midstream.dialects.a2a_card import Card, Interface, leads_to, read_card, through, with_urls

V03: dict[str, Any] = {
    "name": "agent",
    "version": "1.2",
    "protocolVersion": "0.3.0",
    "url": "http://localhost:8888/a2a/",
    "preferredTransport": "HTTP+JSON",
    "additionalInterfaces": [
        {"transport": "grpc", "url": "localhost:50051"},
        {"transport": "JSONRPC", "url": "http://localhost:8888/rpc"},
    ],
    "capabilities": {"streaming": True},
}
V10: dict[str, Any] = {
    "name": "agent",
    "version": "1.2",
    "supportedInterfaces": [
        {"url": "http://h/a", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
        {"url": "http://h/b", "protocolBinding": "HTTP+JSON"},
    ],
}
FOUND_03 = (
    Interface("http://localhost:8888/a2a/", "HTTP+JSON", ("url",), None),
    Interface(
        "localhost:50051",
        "GRPC",
        ("additionalInterfaces", 0, "url"),
        ("additionalInterfaces", 0),
    ),
    Interface(
        "http://localhost:8888/rpc",
        "JSONRPC",
        ("additionalInterfaces", 1, "url"),
        ("additionalInterfaces", 1),
    ),
)


def read(card: object) -> Card | None:
    return read_card(json.dumps(card).encode())


def test_a_card_of_0_3_has_a_url_and_more_interfaces() -> None:
    assert read(V03) == Card("agent", "1.2", FOUND_03)


def test_a_card_of_0_2_has_one_url() -> None:
    card = read({"name": "agent", "url": "http://h"})
    assert card == Card("agent", "", (Interface("http://h", "JSONRPC", ("url",), None),))


def test_a_card_of_1_0_has_a_list_of_interfaces() -> None:
    card = read(V10)
    assert card is not None
    at = "supportedInterfaces"
    assert card.interfaces == (
        Interface("http://h/a", "JSONRPC", (at, 0, "url"), (at, 0)),
        Interface("http://h/b", "HTTP+JSON", (at, 1, "url"), (at, 1)),
    )


def test_a_card_for_clients_of_both_versions_has_all_of_them() -> None:
    card = read({**V03, **V10})
    assert card is not None
    assert len(card.interfaces) == 5


def test_a_card_is_found_in_a_json_rpc_response() -> None:
    card = read({"jsonrpc": "2.0", "id": 1, "result": V03})
    assert card is not None
    assert [one.at for one in card.interfaces] == [("result", *one.at) for one in FOUND_03]
    assert card.interfaces[1].entry == ("result", "additionalInterfaces", 0)


def test_a_card_is_read_behind_a_byte_order_mark_and_around_what_others_would_refuse() -> None:
    text = json.dumps({**V03, "description": "\ud83d", "x": 1.5}).replace("1.5", "1e400")
    assert read_card(b"\xef\xbb\xbf" + text.encode()) == read(V03)


@pytest.mark.parametrize(
    "payload",
    [
        b"", b"<html>", b"[]", b"{}", b'{"name":"x"}', b'{"url":"http://h"}',
        b'{"name":"x","url":1}',
        b'{"name":"x","additionalInterfaces":{}}', b'{"jsonrpc":"2.0","result":[]}',
        b'{"name":"x","supportedInterfaces":["u",{"protocolBinding":"GRPC"},{"url":7}]}',
        b'{"name":"x","supportedInterfaces":null}',
    ],
)  # fmt: skip
def test_what_has_no_name_or_no_url_is_no_card(payload: bytes) -> None:
    assert read_card(payload) is None


def test_urls_change_and_entries_go_and_every_other_byte_stays() -> None:
    text = json.dumps(V03, indent=2)
    card = read_card(text.encode())
    assert card is not None
    urls = {one.at: through(one.url, "https://proxy:1") for one in card.interfaces}
    left = with_urls(text.encode(), urls, [("additionalInterfaces", 0)]).decode()
    expected = text.replace("http://localhost:8888", "https://proxy:1")
    start, end = (
        expected.index('{\n      "transport": "grpc"'),
        expected.index('{\n      "transport": "JSONRPC"'),
    )
    assert left == expected[:start] + expected[end:]
    assert with_urls(text.encode(), {}, ()) == text.encode()
    with pytest.raises(EditError):
        with_urls(b"{", {("url",): "x"}, ())


@pytest.mark.parametrize(
    ("url", "upstream"),
    [
        ("http://h:8/a?b#c", "http://h:8"),
        ("http://h/", "http://h:80/x"),
        ("https://H/", "https://h:443"),
        ("http://localhost:8/", "http://127.0.0.1:8"),
        ("http://0.0.0.0:8/", "http://[::1]:8"),
        ("http://[::]:8/", "http://localhost:8"),
        ("HTTP://h/", "http://h"),
        ("ws://h/a", "http://h"),
        ("wss://h:443/a", "https://h"),
    ],
)
def test_a_url_leads_to_the_upstream_of_the_same_scheme_host_and_port(
    url: str, upstream: str
) -> None:
    assert leads_to(url, upstream)
    assert leads_to(upstream, url)


@pytest.mark.parametrize(
    "url",
    [
        "https://h:8/", "http://h/", "http://h.x:8/", "localhost:8", "h:8", "", "/a", "http://:8/",
        "http://h:x/", "http://[h:8/", "http://127.0.0.1:8", "http://h:99999/",
    ],
)  # fmt: skip
def test_any_other_url_does_not(url: str) -> None:
    assert not leads_to(url, "http://h:8")
    assert not leads_to("http://h:8", url)


def test_a_url_through_the_proxy_keeps_path_query_and_fragment() -> None:
    assert through("http://h:8/a%2Fb/?x=1#y", "https://p") == "https://p/a%2Fb/?x=1#y"
    assert through("http://u:p@h", "http://p:1/ignored") == "http://p:1"
    assert through("http://h?x=1", "http://p:1") == "http://p:1?x=1"
    assert through("localhost:50051", "http://p:1") == "localhost:50051"
    assert through("http://h/", "nowhere") == "http://h/"
    assert through("ws://h:8/a", "https://http:1") == "wss://http:1/a"
    assert through("WSS://h/a", "http://p") == "ws://p/a"
