"""What mitmproxy shows of mended flows: comment, mark, notes, and the view of their frames."""

import io

import pytest
from mitmproxy import contentviews, http, websocket
from mitmproxy import io as flow_files
from mitmproxy.test import tflow
from tests.hosts.mitm_master import (
    client,
    comes_true,
    engine,
    mitmproxy,
    settled,
    socket_to,
    upstream,
)
from tests.hosts.mitm_master import frame as ws_frame
from tests.hosts.test_mitm_sse import GET, streams
from tests.support import CLIENT, FakeAddon, sse, ws
from wsproto.frame_protocol import Opcode

from midstream.core.addon import KEEP, Verdict
from midstream.core.frames import Frame
from midstream.core.ports import Record, RecordKind
from midstream.hosts import mitm_view
from midstream.hosts.mitm_notes import KEY, MAX_NOTE_TEXT_BYTES, MAX_NOTES, Notes, notes_of

MENDED = (("fake", "swap"),)
DECLINED = (("fake", "unsure"),)


def flow(content_type: str = "text/event-stream", body: bytes = b"") -> http.HTTPFlow:
    made = tflow.tflow(resp=True)
    assert made.response is not None
    made.response.headers["content-type"] = content_type
    made.response.content = body
    return made


def record(frame: Frame | None = None, sent: tuple[Frame, ...] | None = None, **words) -> Record:
    side = None if frame is None else frame.sender
    return Record(1, 7, 2, RecordKind.FRAME, side, frame, sent, **words)


def noted(made: http.HTTPFlow, *records: Record) -> list[http.HTTPFlow]:
    """Write records on a flow, and return it once for each time that it was told of."""
    told: list[http.HTTPFlow] = []
    notes = Notes(told.append)
    notes.follow(7, made)
    for each in records:
        notes.write(each)
    return told


def shown(made: http.HTTPFlow, message: http.Message | websocket.WebSocketMessage) -> str:
    """Return what mitmproxy shows by itself, without a choice of a view."""
    mitm_view.install()
    metadata = contentviews.Metadata(flow=made)
    if isinstance(message, http.Message):
        metadata.http_message = message
        metadata.content_type = message.headers["content-type"].partition(";")[0]
    else:
        metadata.websocket_message = message
    data = message.content or b""
    view = contentviews.registry.get_view(data, metadata)
    assert view.name == KEY
    return view.prettify(data, metadata)


# --- what is written on a flow -------------------------------------------------------------------


def test_a_mended_flow_is_marked_and_says_so_in_one_short_line():
    made = flow()
    before, after = sse('{"a":1}'), sse('{"a":2}')
    told = noted(
        made,
        record(before, (after,), rules=MENDED),
        record(before, (after,), rules=MENDED),
        record(before, skips=DECLINED),
        record(before),
    )
    assert made.comment == "midstream: mended 2 (fake: swap x2); left alone 1 (fake: unsure)"
    assert made.marked == ":wrench:"
    assert told == [made] * 3
    notes, dropped = notes_of(made)
    assert [(note.before, note.after) for note in notes[::2]] == [
        (['{"a":1}'], ['{"a":2}']),
        ([], []),
    ]
    assert dropped == 0


def test_a_flow_in_which_nothing_was_mended_is_not_marked():
    made = flow()
    noted(made, record(sse("a"), skips=DECLINED))
    assert (made.marked, made.comment) == ("", "midstream: left alone 1 (fake: unsure)")


def test_what_a_person_wrote_or_marked_stays():
    made = flow()
    made.comment, made.marked = "look here", ":star:"
    noted(made, record(sse("a"), (), rules=MENDED), record(sse("b"), (), rules=MENDED))
    assert made.comment == "look here\nmidstream: mended 2 (fake: swap x2)"
    assert made.marked == ":star:"


def test_the_notes_of_a_flow_are_bounded_and_what_was_mended_is_kept_longest():
    made = flow()
    noted(
        made,
        *(record(sse("x" * 50_000), (sse("y" * 50_000),), rules=MENDED) for _ in range(5)),
        *(record(sse(f"{number}"), skips=DECLINED) for number in range(1_000)),
    )
    notes, dropped = notes_of(made)
    assert (len(notes), dropped) == (MAX_NOTES, 1_005 - MAX_NOTES)
    assert sum(bool(note.rules) for note in notes) == 5
    assert notes[0].before[0].startswith("x" * MAX_NOTE_TEXT_BYTES + " ... 33,616 bytes more")
    assert "left alone 1000" in made.comment
    assert len(made.comment) < 200
    noted(made, *(record(sse("x"), (sse("y"),), rules=MENDED) for _ in range(200)))
    assert len(notes_of(made)[0]) == MAX_NOTES


def test_notes_are_saved_with_a_flow_and_read_back():
    made = flow()
    noted(made, record(sse("é"), (sse("b"), ws("c", CLIENT)), rules=MENDED))
    file = io.BytesIO()
    flow_files.FlowWriter(file).add(made)
    file.seek(0)
    (again,) = flow_files.FlowReader(file).stream()
    assert isinstance(again, http.HTTPFlow)
    assert notes_of(again) == notes_of(made)
    assert again.comment == made.comment


@pytest.mark.parametrize("foreign", [None, 3, {"notes": 3}, {"notes": [{"seq": "a"}]}, []])
def test_foreign_metadata_is_no_note(foreign):
    made = flow(body=b"data: a\n\n")
    made.metadata[KEY] = foreign
    assert notes_of(made) == ([], 0)
    assert made.response is not None
    assert "# 1:" in shown(made, made.response)


# --- the view ------------------------------------------------------------------------------------


def test_an_event_stream_is_shown_event_by_event_with_what_was_mended_first():
    one, two = sse('{"n":1}'), sse('{"n":2}')
    made = flow(body=one.wire + two.wire + b"data: half")
    noted(
        made,
        record(sse('{"n":0}'), (one,), rules=MENDED),
        record(two, skips=DECLINED),
        record(sse('{"n":9}'), (), rules=(("fake", "cut"),)),
    )
    assert made.response is not None
    text = shown(made, made.response)
    lines = text.split("\n")
    assert lines[0] == "# 2 mended here"
    for line in ('#   before: {"n":0}', '#   after: {"n":1}', '#   before: {"n":9}'):
        assert line in lines
    assert lines.index("#   nothing left") < lines.index('{"n":1}')
    first = next(at for at, line in enumerate(lines) if line.startswith("# 1:"))
    assert lines[first + 1 : first + 3] == ["#    fake: swap", '{"n":1}']
    assert "# left alone: fake: unsure" in lines
    assert lines[-1] == "half"


def test_a_websocket_message_tells_what_left_in_its_place():
    made = tflow.twebsocketflow()
    made.request.path = "/chat"
    received = ws('{"a":{"b":1}}')
    noted(made, record(received, (ws('{"a":2}'), ws("c", CLIENT)), rules=MENDED))
    message = websocket.WebSocketMessage(Opcode.TEXT, False, received.wire)
    text = shown(made, message)
    assert text.startswith("# from the server: ")
    assert '#   after 1 of 2: {"a":2}' in text
    assert text.endswith('{\n  "a": {\n    "b": 1\n  }\n}')
    other = websocket.WebSocketMessage(Opcode.TEXT, False, b'{"other":1}')
    assert "MENDED" not in shown(made, other)


def test_hostile_frames_are_shown_and_never_fail():
    body = b"data: \xff\xfe<script>\n\n" + b"data: " + b"[" * 5_000 + b"\n\n" + b"\n\n" + b": c\n\n"
    made = flow(body=body)
    made.metadata[KEY] = {"notes": [{"seq": 1}]}
    assert made.response is not None
    assert "# 5: comment" in shown(made, made.response)
    view = mitm_view.MidstreamContentview()
    for data in (b"", b"\x00\xff", b"[" * 20_000, b"data: " + b"x" * (2 << 20)):
        for kind in ("text/event-stream", "application/json"):
            metadata = contentviews.Metadata(
                flow=made, content_type=kind, http_message=made.response
            )
            assert isinstance(view.prettify(data, metadata), str)
            assert isinstance(view.render_priority(data, metadata), int | float)


def test_what_is_no_frame_of_a_dialect_is_left_to_the_other_views():
    made = flow("application/json", b'{"a":1}')
    view = mitm_view.MidstreamContentview()
    metadata = contentviews.Metadata(
        flow=made, content_type="image/png", http_message=made.response
    )
    assert view.render_priority(b"\x89PNG", metadata) < 0


# --- inside mitmproxy ----------------------------------------------------------------------------


def swapping(frame: Frame, _ctx: object) -> Verdict:
    if b"old" not in frame.wire:
        return KEEP
    return Verdict.replace("swap", frame.with_payload(frame.payload.replace(b"old", b"new")))


class Seen:
    """Keeps the flows that mitmproxy has seen, and those it was told to show anew."""

    def __init__(self) -> None:
        self.flows: list[http.HTTPFlow] = []
        self.updated: list[http.HTTPFlow] = []

    def requestheaders(self, flow: http.HTTPFlow) -> None:
        self.flows.append(flow)

    def update(self, flows: list[http.HTTPFlow]) -> None:
        self.updated += flows


async def test_a_mended_event_stream_is_noted_on_its_flow():
    seen, notes = Seen(), Notes()
    served = engine(FakeAddon(frame=swapping), sink=notes)
    async with (
        upstream(streams(b"data: old\n\n", b"data: x\n\n")) as port,
        mitmproxy(port, served, seen, notes=notes, store_streamed_bodies=True) as proxy,
        client(proxy.port) as peer,
    ):
        await peer.send(GET)
        await peer.read_head()
        assert await peer.chunks() == b"data: new\n\ndata: x\n\n"
        assert await settled(proxy)
        made = seen.flows[0]
        assert made.comment == "midstream: mended 1 (fake: swap)"
        assert made.response is not None
        assert "#   before: old" in shown(made, made.response)
        assert await comes_true(lambda: made in seen.updated)


async def test_a_mended_websocket_message_is_noted_on_its_flow():
    seen, notes = Seen(), Notes()
    served = engine(FakeAddon(frame=swapping), sink=notes)

    async def chats(peer) -> None:
        await peer.upgrade()
        await peer.send(ws_frame("old"))
        await peer.rest()

    async with upstream(chats) as port, mitmproxy(port, served, seen, notes=notes) as proxy:
        async with socket_to(proxy.port) as peer:
            assert await peer.texts(1) == ["new"]
            made = seen.flows[0]
            assert made.marked
            assert made.websocket is not None
            assert "#   after: new" in shown(made, made.websocket.messages[0])
        assert await settled(proxy)
