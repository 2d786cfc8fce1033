"""What is no business of the repair passes byte for byte, in its order."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.addons.replay_overlap.scenes import many
from tests.addons.replay_overlap.tape import Player, tape

from midstream.core import metrics
from midstream.core.addon import Answer, Mode
from midstream.core.exchange import RequestHead, ResponseHead
from midstream.core.frames import Frame, Kind, Side
from midstream.dialects.cloudflare_chat import DIALECT

OTHERS = (
    b'{"type":"rpc","id":"1","method":"x","args":[1.0,1e400,12345678901234567890123]}',
    b'{"type":"rpc","id":"1","success":true,"result":"\\ud83d"}',
    b'{"state":{"count":1},"type":"cf_agent_state"}',
    b'{"mcp":{"servers":{}},"type":"cf_agent_mcp_servers"}',
    b'{"type":"cf_agent_session","phase":"idle"}',
    b'{"type":"cf_agent_chat_recovering","recovering":true}',
    b'{"type":"cf_agent_never_seen"}',
    b'{"type":"agent-tool-event","sequence":1,"replay":true,"event":{"kind":"started"}}',
    b'{"jsonrpc":"2.0","id":1,"result":{}}',
    b'{ "spaced" : [ 1 , 2 ] }',
    b"plain text",
    b"",
    b"\x00\xff\xfe",
)
frames = st.builds(
    Frame,
    st.sampled_from(list(Side)),
    st.sampled_from([Kind.WS_TEXT, Kind.WS_BINARY]),
    st.sampled_from(OTHERS) | st.binary(max_size=40),
)


@many()
@given(st.lists(frames, max_size=20), st.integers(0, 40), st.booleans())
def test_other_frames_pass_at_once_even_in_the_middle_of_a_handshake(
    others: list[Frame], at: int, observes: bool
) -> None:
    player = Player(Answer(200, b"[]"), Mode.OBSERVE if observes else Mode.REPAIR)
    events = tape("r2", "never")
    for event in events[: 1 + at % len(events)]:
        if event.frame is None:
            player.open(event.socket)
        else:
            player.take(event.socket, event.frame)
    number = max(player.sessions)
    for frame in others:
        seen = len(player.left[number])
        player.take(number, frame)
        assert player.left[number][seen:] == [frame]
    assert player.count(metrics.ERRORS) == 0


@pytest.mark.parametrize("client", ["unknown", "r1", "r2", "r3", "observer"])
def test_a_quiet_chat_is_left_alone(client: str) -> None:
    """A turn without a drop: the profile that changes nothing, and those that could."""
    player = Player(Answer(200, b"[]"), client=client)
    for event in tape("r2", "never"):
        if event.socket > 1:
            break
        if event.frame is None:
            player.open(event.socket)
        elif b'"replay":true' not in event.frame.wire and b"_resum" not in event.frame.wire:
            player.take(event.socket, event.frame)
    player.pass_time(10_000)
    assert player.left[1] == player.received[1]
    assert player.count(metrics.REPAIRS) == 0


@pytest.mark.parametrize(
    ("head", "is_read"),
    [
        (RequestHead("GET", "/chat", (("Upgrade", "websocket"),)), True),
        (RequestHead("GET", "/agents/a/b/get-messages?token=1", ()), True),
        (RequestHead("GET", "/agents/a/b", ()), False),
        (RequestHead("GET", "/index.html", ()), False),
        (RequestHead("PUT", "/agents/a/b/get-messages", ()), False),
    ],
)
def test_only_what_may_be_a_chat_is_read(head: RequestHead, is_read: bool) -> None:
    assert DIALECT.reads(head) == is_read


@pytest.mark.parametrize(
    ("response", "is_read"),
    [
        (ResponseHead(200, (("Content-Type", "application/json"),)), True),
        (ResponseHead(404, (("Content-Type", "application/json"),)), False),
        (ResponseHead(200, (("Content-Type", "text/html"),)), False),
    ],
)
def test_only_a_list_of_messages_is_collected(response: ResponseHead, is_read: bool) -> None:
    head = RequestHead("GET", "/agents/a/b/get-messages", ())
    assert DIALECT.reads_response(head, response) == is_read
