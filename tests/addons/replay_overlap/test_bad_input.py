"""Bad input: nothing is raised, nothing is lost, what is not understood passes as it came."""

import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.addons.replay_overlap.documents import dumps, loads
from tests.addons.replay_overlap.scenes import many
from tests.addons.replay_overlap.tape import Event, Player, tape

from midstream.core import metrics
from midstream.core.addon import Answer, Mode
from midstream.core.frames import Frame, Kind, Side
from midstream.dialects import cloudflare_chat as chat

DEEP = b"[" * 5_000
WRONG: tuple[Any, ...] = (None, 7, -1.5, True, "", "x", [], {}, [[]], {"id": 1}, "{", "\ud83d")
ANSWERS = (
    Answer(200, b"[]"), Answer(0), Answer(404, b"no"), Answer(200, b"{}"), Answer(200, DEEP),
    Answer(200, b'[{"id":"A","role":"assistant","parts":7}]'), Answer(200, b'[{"id":7}]'),
    Answer(200, b'[{"id":"A","role":"assistant","parts":[{"type":"text","text":[]}]}]'),
)  # fmt: skip
kinds = st.sampled_from(["r2", "observer"])
closings = st.sampled_from(["never", "before"])


def is_understood(frame: Frame) -> bool:
    message = chat.read(Frame(frame.sender, frame.kind, frame.wire))
    return message is not None and not isinstance(message, chat.Unreadable)


def check(player: Player) -> None:
    """Assert what holds whatever came."""
    assert player.count(metrics.ERRORS) == 0
    assert player.count(metrics.SKIPPED, "hold_bound") == 0
    stands_for = player.count(metrics.SKIPPED, "no_ack") + player.count(metrics.REPAIRS, "heal")
    for number, session in player.sessions.items():
        assert session.deadline_ns is None
        left = Counter(frame.wire for frame in player.left[number])
        for frame in player.received[number]:
            message = chat.read(frame)
            is_live = isinstance(message, chat.Response) and not message.replay
            if not is_understood(frame) or (is_live and not stands_for and not message.done):  # type: ignore[union-attr]
                assert left[frame.wire] > 0
                left[frame.wire] -= 1


def bent(value: Any, where: int, wrong: Any) -> Any:
    """Return a JSON value in which one value, or one inside its JSON text, is a wrong one."""
    places: list[tuple[Any, Any]] = []

    def look(at: Any) -> None:
        items = at.items() if isinstance(at, dict) else enumerate(at)
        for key, inner in list(items):
            places.append((at, key))
            if isinstance(inner, dict | list):
                look(inner)

    look(value)
    holder, key = places[where % len(places)]
    inner = loads_or_none(holder[key]) if isinstance(holder[key], str) else None
    if inner and isinstance(inner, dict) and where & 1:
        holder[key] = dumps(bent(inner, where >> 1, wrong)).decode()
    else:
        holder[key] = wrong
    return value


def damaged(frame: Frame, how: int, where: int, wrong: Any) -> list[Frame]:
    """Return what becomes of a frame: bent, cut, doubled, lost, or not JSON at all."""
    wire = frame.wire
    match how:
        case 0 | 1 | 2:
            wire = dumps(bent(loads(wire), where, wrong))
        case 3:
            wire = wire[: where % len(wire)]
        case 4:
            at = where % len(wire)
            wire = wire[:at] + bytes([where & 255]) + wire[at + 1 :]
        case 5:
            return [frame, frame]
        case 6:
            return []
        case 7:
            wire = wire.replace(b'"id":', b'"id":' + DEEP + b',"id":', 1)
        case _:
            return [Frame(frame.sender, Kind.WS_BINARY, wire)]
    return [Frame(frame.sender, Kind.WS_TEXT, wire)]


damage = st.lists(
    st.tuples(
        st.integers(0, 200),
        st.integers(0, 8),
        st.integers(0, 999),
        st.sampled_from(range(len(WRONG))),
    ),
    min_size=1,
    max_size=6,
)


@many(0.5)
@given(kinds, closings, damage, st.sampled_from(ANSWERS), st.booleans())
def test_damaged_frames_raise_nothing_and_lose_nothing(
    kind: str,
    closing: str,
    harm: list[tuple[int, int, int, int]],
    answer: Answer,
    observes: bool,
) -> None:
    events = list(tape(kind, closing))
    for at, how, where, wrong in harm:
        at %= len(events)
        frame = events[at].frame
        if frame is not None and isinstance(loads_or_none(frame.wire) or 0, dict):
            made = damaged(frame, how, where, WRONG[wrong])
            events[at : at + 1] = [Event(events[at].socket, other) for other in made]
    player = Player(answer, Mode.OBSERVE if observes else Mode.REPAIR)
    player.play(events)
    check(player)
    if observes:
        assert player.left == player.received


def loads_or_none(wire: bytes | str) -> Any:
    try:
        return json.loads(wire)
    except ValueError:
        return None


@many(0.15)
@given(kinds, closings, st.lists(st.tuples(st.integers(0, 200), st.integers(0, 200)), max_size=8))
def test_frames_in_any_order_raise_nothing_and_lose_nothing(
    kind: str, closing: str, swaps: list[tuple[int, int]]
) -> None:
    """ACKs without an offer, offers of unknown streams, replays without their beginning."""
    events = list(tape(kind, closing))
    for one, other in swaps:
        one, other = one % len(events), other % len(events)
        events[one], events[other] = events[other], events[one]
    player = Player(Answer(200, b"[]"))
    player.play(events)
    check(player)


@many(0.15)
@given(
    kinds,
    closings,
    st.integers(0, 200),
    st.sampled_from(["abort", "server_end", "client_end"]),
    st.booleans(),
)
def test_either_side_may_be_gone_at_every_step(
    kind: str, closing: str, at: int, how: str, is_late: bool
) -> None:
    events = list(tape(kind, closing))
    player = Player(Answer(200, b"[]"))
    for event in events[: 1 + at % len(events)]:
        if event.socket not in player.sessions:
            player.open(event.socket)
        if event.frame is not None:
            player.take(event.socket, event.frame)
        player.pass_time(7)
    player.pass_time(1_000 if is_late else 0)
    for number in player.sessions:
        player.end(number, how)
    player.pass_time(60_000)
    check_gone(player, how)


def check_gone(player: Player, how: str) -> None:
    """Assert that what was held has left, but for half a replay that the next socket gets whole."""
    assert player.count(metrics.ERRORS) == 0
    for number, session in player.sessions.items():
        assert session.deadline_ns is None
        left = Counter(frame.wire for frame in player.left[number])
        for frame in player.received[number]:
            message = chat.read(frame)
            if how == "abort" and isinstance(message, chat.Response) and not message.replay:
                assert left[frame.wire] or player.count(metrics.REPAIRS, "undo")


ODD = [
    b"",
    b"{",
    b"null",
    b"[]",
    b'"cf_agent_',
    b'{"type":"cf_agent_use_chat_response"}',
    b'{"type":"cf_agent_use_chat_response","id":7,"body":"{}"}',
    b'{"type":"cf_agent_use_chat_response","id":"R","body":{}}',
    b'{"type":"cf_agent_use_chat_response","id":"R","done":"yes"}',
    b'{"type":["cf_agent_use_chat_response"]}',
    b'{"type":"cf_agent_chat_messages","messages":{}}',
    b'{"type":"cf_agent_chat_messages","messages":[7,null,"x"]}',
    b'{"type":"cf_agent_chat_messages","messages":[{"id":1,"role":2}]}',
    b'{"type":"cf_agent_message_updated","message":[]}',
    b'{"type":"cf_agent_message_updated"}',
    b'{"type":"cf_agent_stream_resume_ack"}',
    b'{"type":"cf_agent_use_chat_request","id":"x","init":{"method":"POST","body":"{"}}',
    b'{"type":"cf_agent_use_chat_request","id":"x","init":[]}',
    b'{"type":"cf_agent_tool_result","toolCallId":[]}',
    b'{"type":"cf_agent_stream_resuming","id":{"a":1}}',
    b'{"type":"cf_agent_never","id":"R"}',
    b'{"type":"cf_agent_use_chat_response","id":"\xff","body":""}',
    b'{"type":"cf_agent_use_chat_response","id":"R","body":"\xff\xfe"}',
    b'{"type":"cf_agent_chat_messages","messages":' + DEEP,
    b'{"type":"cf_agent_chat_messages","messages":' + b"[" * 5_000 + b"]" * 5_000 + b"}",
    b'{"type":"cf_agent_use_chat_response","id":"R","body":"' + b"[" * 100_000 + b'"}',
    b'{"a":"cf_agent_","type":"rpc"}',
]


@pytest.mark.parametrize("wire", ODD)
@pytest.mark.parametrize("side", list(Side))
def test_an_odd_frame_passes_as_it_came(wire: bytes, side: Side) -> None:
    player = Player(Answer())
    player.open(1)
    for event in tape("r2", "never")[:20]:
        if event.frame is not None and event.socket == 1:
            player.take(1, event.frame)
    seen = len(player.left[1])
    player.take(1, Frame(side, Kind.WS_TEXT, wire))
    passed = [frame for frame in player.left[1][seen:] if frame.wire == wire]
    if not wire.startswith(b'{"type":"cf_agent_stream_resuming"'):
        assert passed == [Frame(side, Kind.WS_TEXT, wire)]
    player.pass_time(60_000)
    assert player.count(metrics.ERRORS) == 0
    assert [frame for frame in player.left[1] if frame.wire == wire]


def test_a_frame_of_the_wrong_shape_is_counted() -> None:
    player = Player(Answer())
    player.open(1)
    player.take(1, Frame(Side.SERVER, Kind.WS_TEXT, ODD[6]))
    assert player.count(metrics.SKIPPED, "malformed") == 1


def test_an_ack_without_an_offer_goes_to_the_server() -> None:
    player = Player(Answer())
    player.open(1)
    ack = chat.resume_ack("R")
    player.take(1, ack)
    assert player.left[1] == [ack]


def test_a_second_ack_of_one_offer_does_not() -> None:
    player = Player(Answer())
    player.open(1)
    ack = chat.resume_ack("R")
    player.take(1, ack)
    player.take(1, ack)
    assert player.left[1] == [ack]
    assert player.count(metrics.REPAIRS, "one_ack") == 1
    player.take(1, Frame(Side.CLIENT, Kind.WS_TEXT, b'{"type":"cf_agent_stream_resume_request"}'))
    player.take(1, ack)
    assert player.left[1][-1] == ack
