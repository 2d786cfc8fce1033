"""Agent cards through the proxy: the addresses that lead to its upstream lead through it."""

import json

import pytest
from tests.addons.a2a.rig import CLIENT, JSON, JSON_RESPONSE, SERVER, SNAPSHOT, Rig

from midstream.core.exchange import RequestHead

UPSTREAM, PROXY = "http://127.0.0.1:9", "https://proxy.example:8443"
V02 = {"name": "Guide", "version": "1", "url": f"{UPSTREAM}/a2a"}
V03 = {
    **V02,
    "preferredTransport": "JSONRPC",
    "additionalInterfaces": [
        {"transport": "HTTP+JSON", "url": f"{UPSTREAM}/rest"},
        {"transport": "GRPC", "url": "127.0.0.1:50051"},
        {"transport": "JSONRPC", "url": "https://elsewhere.example/a2a"},
    ],
}
V1 = {
    "name": "Guide",
    "version": "1",
    "supportedInterfaces": [
        {"url": f"{UPSTREAM}/", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
        {"url": f"{UPSTREAM}/v1", "protocolBinding": "HTTP+JSON", "tenant": "t"},
        {"url": f"{UPSTREAM}/grpc", "protocolBinding": "GRPC"},
    ],
}


def fetched(rig: Rig, body: bytes, target: str = "/.well-known/agent-card.json") -> bytes:
    head = RequestHead("GET", target)
    return exchanged(rig, head, b"", body)


def exchanged(rig: Rig, head: RequestHead, request: bytes, body: bytes) -> bytes:
    session = rig.engine.open(head, rig.engine.routes[0], origin=PROXY)
    session.open(0)
    session.receive(CLIENT, request, 0)
    session.end(CLIENT, 0)
    session.respond(JSON_RESPONSE, 0)
    left = session.receive(SERVER, body, 0) + session.end(SERVER, 0)
    assert not rig.errors
    return b"".join(frame.wire for frame in left)


def through_proxy(text: str) -> str:
    return text.replace(UPSTREAM, PROXY).replace(f"{PROXY}/grpc", f"{UPSTREAM}/grpc")


@pytest.mark.parametrize("card", [V02, V03, V1, {**V03, **V1}], ids=["0.2", "0.3", "1.0", "both"])
@pytest.mark.parametrize(
    "target",
    [
        "/.well-known/agent.json",
        "/.well-known/agent-card.json",
        "/agent/authenticatedExtendedCard",
        "/extendedAgentCard",
        "/tenant/v1/card",
    ],
)
def test_every_address_of_the_upstream_leads_through_and_no_other_byte_changes(card, target):
    rig = Rig((SNAPSHOT,))
    text = json.dumps(card, indent=2)
    assert fetched(rig, text.encode(), target).decode() == through_proxy(text)
    assert rig.repairs == {"card_url": 1}


@pytest.mark.parametrize("method", ["agent/getAuthenticatedExtendedCard", "GetExtendedAgentCard"])
def test_a_card_that_json_rpc_brings_leads_through_too(method):
    rig = Rig((SNAPSHOT,))
    request = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method}).encode()
    answer = json.dumps({"jsonrpc": "2.0", "id": 1, "result": V1})
    left = exchanged(rig, RequestHead("POST", "/", JSON), request, answer.encode())
    assert left.decode() == through_proxy(answer)


def test_an_error_in_the_place_of_a_card_passes_and_is_no_malformed_one():
    rig = Rig((SNAPSHOT,))
    request = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "GetExtendedAgentCard"}).encode()
    answer = b'{"jsonrpc":"2.0","id":1,"error":{"code":-32007,"message":"not configured"}}'
    assert exchanged(rig, RequestHead("POST", "/", JSON), request, answer) == answer
    assert not rig.skips


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"<html>no card</html>", b'{"name":"x"}'])
def test_what_is_no_card_passes_and_is_counted(body):
    rig = Rig((SNAPSHOT,))
    assert fetched(rig, body) == body
    assert rig.skips["malformed"] == (1 if body else 0)


def test_interfaces_that_pass_by_the_proxy_go_if_so_wanted():
    rig = Rig((SNAPSHOT,), snapshot_to_delta={"card_grpc": "drop"})
    left = json.loads(fetched(rig, json.dumps(V03).encode()))
    assert [one["transport"] for one in left["additionalInterfaces"]] == ["HTTP+JSON", "JSONRPC"]
    left = json.loads(fetched(rig, json.dumps(V1).encode()))
    assert len(left["supportedInterfaces"]) == 2


def test_a_card_of_a_foreign_address_passes_unless_that_is_said_to_be_the_upstream():
    card = json.dumps({**V02, "url": "https://agents.example/a2a"}).encode()
    rig = Rig((SNAPSHOT,))
    assert fetched(rig, card) == card
    assert rig.skips == {"foreign_url": 1}
    known = Rig((SNAPSHOT,), snapshot_to_delta={"card_origins": ("https://agents.example",)})
    assert json.loads(fetched(known, card))["url"] == f"{PROXY}/a2a"


def test_a_card_that_leads_here_already_and_one_that_is_to_pass_stay():
    here = json.dumps({**V02, "url": f"{PROXY}/a2a"}).encode()
    rig = Rig((SNAPSHOT,))
    assert fetched(rig, here) == here
    assert not rig.skips
    assert not rig.repairs
    told = Rig((SNAPSHOT,), snapshot_to_delta={"card": "pass"})
    assert fetched(told, json.dumps(V03).encode()) == json.dumps(V03).encode()
    assert not told.skips
