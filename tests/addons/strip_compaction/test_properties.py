"""Strip safety: an upload minus what is proven synthetic; every other byte as it came."""

import json
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.addons.strip_compaction.rig import CLIENT, SERVER, Rig, ids, stringify, summary

from midstream.core.frames import Kind

DELIVERED = [summary(f"d{n}") for n in range(3)]
KNOWN = {message["id"] for message in DELIVERED}
TEXTS = (
    "",
    "hi",
    'a "b" \\ c',
    "\n\t",
    "\u2028é😀",
    "compaction_d0",
    '","id":"compaction_d0"',
    "]}",
)
RAW = (
    b"1.0", b"1e400", b"-0", b"123456789012345678901234", b"1.50E+2", rb'"\ud83d"', rb'"\u00e9\/"',
    rb'"x\udc00y\ud83d\ude00"', rb'"\\\""', b"[]", b'{"id":"compaction_d0","id":1}',
)  # fmt: skip


def raw_message(random: Random) -> bytes:
    """Return a message as JSON text: ordinary, synthetic, or of nearly the form of one."""
    others = ["compaction_unknown", "m1", "m2", "Xcompaction_d0"]
    parts = [
        {"type": "text", "text": random.choice(TEXTS)}
        for _ in range(random.choice((1, 1, 1, 0, 2)))
    ]
    text = json.dumps(random.choice(TEXTS), ensure_ascii=random.random() < 0.5).encode()
    members = [
        b'"id":' + json.dumps(random.choice(sorted(KNOWN) + others)).encode(),
        b'"role":' + random.choice((b'"assistant"', b'"assistant"', b'"assistant"', b'"user"')),
        b'"parts":' + stringify(parts),
        b'"n":' + random.choice(RAW),
        b'"n":' + random.choice(RAW),
        b'"s":' + text,
    ]
    random.shuffle(members)
    return b"{" + b",".join(members) + b"}"


POOL = [raw_message(Random(seed)) for seed in range(2_000)]
"""Drawing from what is made beforehand is ten times as fast as drawing every member."""


def raw_messages() -> st.SearchStrategy[bytes]:
    return st.sampled_from(POOL)


def is_provable(message: bytes) -> bool:
    fields = json.loads(message)
    return fields["id"] in KNOWN and fields["role"] == "assistant" and len(fields["parts"]) == 1


def expected(messages: list[bytes], trigger: str, *, is_turn: bool = True) -> list[bytes]:
    """Return what is left, told from decoded messages alone."""
    gone = [is_provable(message) for message in messages]
    if is_turn and trigger == "regenerate-message" and gone and gone[-1]:
        gone[-1] = False
    if all(gone):
        return messages
    return [m for m, is_gone in zip(messages, gone, strict=True) if not is_gone]


def body_of(messages: list[bytes], trigger: str, order: bool, spaces: bytes) -> bytes:
    listed = b'"messages":[' + (spaces + b"," + spaces).join(messages) + b"]"
    rest = b'"trigger":' + json.dumps(trigger).encode() + b',"clientTools":[1.0,{"messages":[]}]'
    return b"{" + b",".join([rest, listed] if order else [listed, rest]) + b"}"


def wire_of(body: bytes, is_ascii: bool) -> bytes:
    text = json.dumps(body.decode(), ensure_ascii=is_ascii).encode()
    return (
        b'{"id":"r1", "init":{"method":"POST","body":' + text + b',"x":1e2},'
        b'"type":"cf_agent_use_chat_request"}'
    )


UPLOADS = {
    "messages": st.lists(raw_messages(), max_size=7),
    "trigger": st.sampled_from(["submit-message", "regenerate-message", ""]),
    "order": st.booleans(),
}


@settings(max_examples=2_000, deadline=None)
@given(**UPLOADS, is_ascii=st.booleans())
def test_an_upload_leaves_without_what_is_proven_and_else_byte_for_byte(
    messages, trigger, order, is_ascii
):
    rig = Rig()
    socket = rig.think(DELIVERED)
    wire = wire_of(body_of(messages, trigger, order, b""), is_ascii)
    left = expected(messages, trigger)
    assert socket.send(CLIENT, wire) == wire_of(body_of(left, trigger, order, b""), is_ascii)
    assert rig.errors == 0
    assert rig.repairs.get("synthetic_message", 0) == (len(left) < len(messages))


@settings(max_examples=300, deadline=None)
@given(**UPLOADS, spaces=st.sampled_from([b" ", b"\n\t", b"\r\n "]))
def test_white_space_between_messages_changes_nothing_of_them(messages, trigger, order, spaces):
    rig = Rig()
    rig.think(DELIVERED)
    body = body_of(messages, trigger, order, spaces)
    left = expected(messages, trigger)
    sent = rig.post(body)
    if left == messages:
        assert sent == body
    assert b"".join(sent.split()) == b"".join(body_of(left, trigger, order, b"").split())


@settings(max_examples=200, deadline=None)
@given(**UPLOADS)
def test_a_server_that_stores_uploads_gets_every_byte(messages, trigger, order):
    rig = Rig()
    socket = rig.aichat()
    socket.lists(DELIVERED)
    wire = wire_of(body_of(messages, trigger, order, b""), is_ascii=False)
    assert socket.send(CLIENT, wire) == wire


@settings(max_examples=300, deadline=None)
@given(st.lists(raw_messages(), max_size=8))
def test_a_list_loses_repeats_of_synthetic_messages_and_nothing_else(messages):
    seen: set[str] = set()
    left = []
    for message in messages:
        fields = json.loads(message)
        has_form = fields["role"] == "assistant" and len(fields["parts"]) == 1
        is_synthetic = has_form and fields["id"].startswith("compaction_")
        if not (is_synthetic and fields["id"] in seen):
            left.append(message)
        if is_synthetic:
            seen.add(fields["id"])
    head = b'{"messages":['
    tail = b'],"type":"cf_agent_chat_messages"}'
    sent = Rig().socket().send(SERVER, head + b",".join(messages) + tail)
    assert sent == head + b",".join(left) + tail


@settings(max_examples=300, deadline=None)
@given(st.lists(raw_messages(), min_size=1, max_size=4), st.data())
def test_whatever_is_cut_or_flipped_in_a_frame_it_never_fails(messages, data):
    rig = Rig()
    socket = rig.think(DELIVERED)
    wire = bytearray(wire_of(body_of(messages, "submit-message", True, b""), is_ascii=False))
    for _ in range(data.draw(st.integers(1, 4))):
        wire[data.draw(st.integers(0, len(wire) - 1))] = data.draw(st.integers(0, 255))
    del wire[data.draw(st.integers(0, len(wire))) :]
    for side in (CLIENT, SERVER):
        for kind in (Kind.WS_TEXT, Kind.WS_BINARY):
            socket.send(side, bytes(wire), kind)
    assert rig.errors == 0


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(["ask", "list", "sync", "tool", "none", "offer"]), max_size=8))
def test_once_silent_a_server_is_never_touched_whatever_it_does_later(deeds):
    rig = Rig()
    socket = rig.aichat()
    for deed in deeds:
        match deed:
            case "ask":
                socket.uploads([])
            case "list":
                socket.lists(DELIVERED)
            case "sync":
                socket.states(DELIVERED)
            case "tool":
                socket.client(type="cf_agent_tool_result", toolCallId="c")
            case "none":
                socket.server(type="cf_agent_stream_resume_none")
            case "offer":
                socket.server(type="cf_agent_stream_resuming", id="r")
    other = rig.socket()
    other.lists(DELIVERED)
    assert other.uploads([*DELIVERED, summary("z")]) == ids([*DELIVERED, summary("z")])
    assert rig.repairs == {}
