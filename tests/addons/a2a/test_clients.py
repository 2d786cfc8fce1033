"""Clients that differ: one keeps only the end of an artifact, one comes back on another socket."""

import json

import pytest
from tests.addons.a2a.client import Client
from tests.addons.a2a.events import Event, Status, Task, Update, parts
from tests.addons.a2a.forms import RPC03, Form
from tests.addons.a2a.rig import CLIENT, JSON, SERVER, Rig, run
from tests.addons.a2a.say import ANSWER, DONE, PIECES, deltas, updates, wires
from tests.addons.a2a.streams import piled

from midstream.core.exchange import RequestHead, ResponseHead

AGAIN = Form("again", False, has_kind_parts=True, has_final=True, method="tasks/resubscribe")
SO_FAR = ["".join(PIECES[: count + 1]) for count in range(len(PIECES))]
MARKED = {"kind": "text", "text": "hello", "metadata": {"is_user_input": True}}
FINAL = Status("completed", parts(ANSWER), "m1", True)


def adk(events: list[Event], *, is_adk: bool = True) -> list[bytes]:
    """Play a stream to a client of ADK, or to one that only does not say that it is none."""
    rig = Rig()
    message = {"kind": "message", "messageId": "u", "role": "user", "parts": [MARKED] * is_adk}
    request = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "message/stream",
        "params": {"message": message},
    }
    session = rig.engine.open(RequestHead("POST", "/", JSON), rig.engine.routes[0])
    session.open(0)
    session.receive(CLIENT, json.dumps(request).encode(), 0)
    session.end(CLIENT, 0)
    session.respond(ResponseHead(200, (("Content-Type", "text/event-stream"),)), 0)
    left = [frame for wire in wires(events) for frame in session.receive(SERVER, wire, 0)]
    left += session.end(SERVER, 0)
    assert rig.errors == 0
    return [frame.wire for frame in left]


def kept(left: list[bytes]) -> str:
    """Return what RemoteA2aAgent keeps: updates with `lastChunk`, and messages."""
    text = ""
    for wire in left:
        data = json.loads(wire.split(b"data:", 1)[1])["result"]
        holder = (
            data.get("artifact") if data.get("lastChunk") else data.get("status", {}).get("message")
        )
        text += "".join(part["text"] for part in (holder or {"parts": []})["parts"])
    return text


@pytest.mark.parametrize(
    "events",
    [
        [*deltas(PIECES), Update("a1", parts(ANSWER), append=False, last=True), DONE],
        [*deltas(PIECES), Update("a1", parts(ANSWER), append=True), DONE],
        [*updates(*((text, number > 0) for number, text in enumerate(SO_FAR))), DONE],
        [*updates(*((text, number > 0) for number, text in enumerate(SO_FAR))), FINAL],
        [*deltas(PIECES), FINAL],
    ],
)
def test_a_client_that_keeps_only_the_end_has_the_answer_once(events):
    assert kept(adk(events)) == ANSWER
    assert Client().takes(run(Rig(), wires(events))).shown == ANSWER


def test_what_replaces_by_the_protocol_passes_to_such_a_client_as_it_came():
    events = [*deltas(PIECES), Update("a1", parts(ANSWER), append=False, last=True), DONE]
    assert adk(events) == wires(events)
    assert adk(events, is_adk=False) != wires(events)


def test_a_client_may_ask_for_the_rest_before_its_first_stream_is_seen_to_be_lost():
    made = updates(*((text, number > 0) for number, text in enumerate(SO_FAR)))
    rig = Rig()
    first = rig.stream()
    for wire in wires([Task("submitted"), *made[:2]]):
        first.send(wire)
    again = [Task("working", piled(made[:2])), *made[2:], DONE]
    assert Client().takes(run(rig, wires(again, AGAIN), AGAIN)).texts == {"a1": ANSWER}


@pytest.mark.parametrize("stored", [[ANSWER], ["Hi", ANSWER], list(PIECES)])
def test_a_whole_answer_says_itself_once(stored):
    task = RPC03.fields(Task("completed", (("a1", parts(*stored)),)))
    said = {"kind": "text", "text": ANSWER}
    message = {"kind": "message", "messageId": "m", "role": "agent", "parts": [said]}
    task["status"]["message"] = message
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "result": task}).encode()
    left = json.loads(Rig().fetches("message/send", body))["result"]
    assert "".join(part["text"] for part in left["artifacts"][0]["parts"]) == ANSWER
    assert "message" not in left["status"]
    assert {**task, "artifacts": 0, "status": 0} == {**left, "artifacts": 0, "status": 0}
