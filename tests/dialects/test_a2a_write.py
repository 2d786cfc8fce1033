"""A2A frames that are changed or made: what is not named keeps its bytes."""

import json
from typing import Any

import msgspec
import pytest

from midstream.core.errors import EditError
from midstream.core.frames import Frame, Kind, Side
from midstream.dialects import a2a
from midstream.dialects.a2a_write import (
    ArtifactEdit,
    changed,
    inserted,
    lifted,
    status_of,
    with_artifacts,
    with_message_texts,
    without_history,
    without_message,
)

RPC_FLAT = (
    '{"jsonrpc": "2.0","id":1e400, "result":{"kind":"artifact-update","taskId":"t","contextId":"c",'
    '"append":true, "artifact":{"artifactId":"a","x":12345678901234567890123,"parts":'
    '[{"kind":"text","text":"Hi \\u00e9","metadata":{"n":1.10}},{"kind":"data","data":[1]}]},'
    '"lastChunk":false}}'
)
BARE_WRAPPED = (
    '{"artifactUpdate":{"taskId":"t","contextId":"c","artifact":{"artifactId":"a","name":"n",'
    '"metadata":{"k":1},"parts":[{"text":"one"},{"text":"two"}]}}}'
)
STATUS_FLAT = (
    '{"jsonrpc":"2.0","id":1,"result":{"kind":"status-update","taskId":"t","contextId":"c","final":'
    'true,"status":{"state":"completed","message":{"kind":"message","messageId":"m","role":"agent",'
    '"parts":[{"kind":"text","text":"Hi"}]},"timestamp":"2026"},"metadata":{"k":1.0}}}'
)
STATUS_WRAPPED = (
    '{"result": {"statusUpdate": {"taskId": "t", "contextId": "c", "status": {"state": '
    '"TASK_STATE_WORKING", "message": {"messageId": "m", "role": "ROLE_AGENT", "parts": '
    '[{"text": "Hi"}]}}}}, "id": 1, "jsonrpc": "2.0"}'
)
TASK_FLAT = (
    '{"id":1,"jsonrpc":"2.0","result":{"kind":"task","id":"t","contextId":"c","status":{"message":'
    '{"messageId":"m","parts":[]},"state":"completed","timestamp":"2026"},"artifacts":[{"artifactId"'
    ':"a","parts":[{"kind":"text","text":"H"},{"kind":"text","text":"Hi"},{"kind":"data","data":1.0}'
    ']},{"artifactId":"b","parts":[{"kind":"text","text":"x"}]}]}}'
)
TASK_WRAPPED = (
    '{"task":{"id":"t","status":{"state":"TASK_STATE_COMPLETED"},"artifacts":[],"history":[]}}'
)


def sse(payload: str) -> Frame:
    return Frame(Side.SERVER, Kind.SSE, b"data: %b\r\n\r\n" % payload.encode())


def packed(payload: str) -> Frame:
    tree = json.loads(payload.replace("1e400", "1"), parse_int=lambda text: int(text[:9]))
    return Frame(Side.SERVER, Kind.WS_BINARY, msgspec.msgpack.encode(tree))


def update_of(frame: Frame) -> a2a.ArtifactUpdate:
    event = a2a.read(frame)
    assert isinstance(event, a2a.ArtifactUpdate), event
    return event


def status_in(frame: Frame) -> a2a.StatusUpdate:
    event = a2a.read(frame)
    assert isinstance(event, a2a.StatusUpdate), event
    return event


def task_in(frame: Frame) -> a2a.Task:
    event = a2a.read(frame)
    assert isinstance(event, a2a.Task), event
    return event


def fresh(frame: Frame) -> a2a.Event | a2a.Unreadable | None:
    """Read a frame again, whatever reading it carries."""
    return a2a.read(Frame(frame.sender, frame.kind, frame.wire))


def text_of(frame: Frame) -> str:
    return frame.payload.decode()


# --- changed --------------------------------------------------------------------------------------


def test_a_new_text_leaves_every_other_byte() -> None:
    frame = sse(RPC_FLAT)
    left = changed(frame, update_of(frame), texts={0: 'a "quoted" é'})
    assert text_of(left) == RPC_FLAT.replace("Hi \\u00e9", 'a \\"quoted\\" é')
    assert left.wire.endswith(b"}\r\n\r\n")


def test_the_same_text_and_the_same_flags_leave_the_frame_as_it_is() -> None:
    frame = sse(RPC_FLAT)
    update = update_of(frame)
    assert changed(frame, update) is frame
    assert changed(frame, update, texts={0: "Hi é"}, append=True, last=False) is frame


def test_flags_are_set_where_they_stand_or_added_if_true() -> None:
    frame = sse(RPC_FLAT)
    left = changed(frame, update_of(frame), append=False, last=True)
    expected = RPC_FLAT.replace('"append":true', '"append":false')
    assert text_of(left) == expected.replace('"lastChunk":false', '"lastChunk":true')
    frame = sse(BARE_WRAPPED)
    left = changed(frame, update_of(frame), append=True, last=False)
    assert text_of(left) == BARE_WRAPPED[:-2] + ',"append":true}}'
    assert changed(frame, update_of(frame), append=False) is frame


def test_parts_go_with_their_comma() -> None:
    frame = sse(BARE_WRAPPED)
    left = changed(frame, update_of(frame), removed=[1, 1])
    assert text_of(left) == BARE_WRAPPED.replace(',{"text":"two"}', "")
    left = changed(frame, update_of(frame), removed={0}, texts={1: ""})
    assert text_of(left) == BARE_WRAPPED.replace('{"text":"one"},{"text":"two"}', '{"text":""}')
    assert update_of(changed(frame, update_of(frame), removed=(0, 1))).parts == ()


def test_the_mode_is_stamped_once() -> None:
    frame = sse(BARE_WRAPPED)
    left = changed(frame, update_of(frame), stream_mode="delta")
    assert text_of(left) == BARE_WRAPPED[:-2] + ',"metadata":{"streamMode":"delta"}}}'
    assert changed(left, update_of(left), stream_mode="delta") is left
    again = changed(left, update_of(left), stream_mode="snapshot")
    assert text_of(again) == text_of(left).replace("delta", "snapshot")
    null = sse(BARE_WRAPPED[:-2] + ',"metadata": null}}')
    left = changed(null, update_of(null), stream_mode="delta")
    assert text_of(left) == text_of(null).replace("null", '{"streamMode":"delta"}')
    other = sse(BARE_WRAPPED[:-2] + ',"metadata":{"x":[1.0]}}}')
    left = changed(other, update_of(other), stream_mode="delta")
    assert '"metadata":{"x":[1.0],"streamMode":"delta"}' in text_of(left)


def test_a_text_part_without_a_text_gets_one() -> None:
    frame = sse(BARE_WRAPPED.replace('"text":"two"', '"kind":"text"'))
    left = changed(frame, update_of(frame), texts={1: "x"})
    assert '{"kind":"text","text":"x"}' in text_of(left)


def test_the_last_of_two_equal_keys_is_the_one_that_is_read_and_changed() -> None:
    frame = sse(BARE_WRAPPED.replace('{"text":"two"}', '{"text":"first","text":"two"}'))
    left = changed(frame, update_of(frame), texts={1: "2"})
    assert '{"text":"first","text":"2"}' in text_of(left)


def test_half_an_emoji_is_escaped_in_json_and_refused_in_msgpack() -> None:
    frame = sse(RPC_FLAT)
    left = changed(frame, update_of(frame), texts={0: "é\ud83d"})
    assert '"text":"\\u00e9\\ud83d"' in text_of(left)
    assert fresh(left) == update_of(left)
    frame = packed(RPC_FLAT)
    with pytest.raises(EditError, match="lone surrogate"):
        changed(frame, update_of(frame), texts={0: "\ud83d"})


@pytest.mark.parametrize(
    "wish",
    [
        {"texts": {2: "x"}}, {"texts": {-1: "x"}}, {"removed": [2]}, {"texts": {1: "x"}},
        {"texts": {0: "x"}, "removed": [0]},
    ],
)  # fmt: skip
@pytest.mark.parametrize("make", [sse, packed])
def test_what_cannot_be_meant_is_refused(wish: dict[str, Any], make: Any) -> None:
    frame = make(RPC_FLAT)
    with pytest.raises(EditError):
        changed(frame, update_of(frame), **wish)


def test_a_frame_that_is_read_but_no_json_for_others_is_refused() -> None:
    frame = sse(BARE_WRAPPED[:-2] + ',"x":NaN}}')
    with pytest.raises(EditError):
        changed(frame, update_of(frame), texts={0: "x"})


# --- inserted -------------------------------------------------------------------------------------


def test_an_inserted_update_has_the_style_and_ids_of_its_model() -> None:
    frame = sse(RPC_FLAT)
    left = inserted(frame, update_of(frame), "new", append=True, last=True)
    parts = RPC_FLAT[RPC_FLAT.index("[{") : RPC_FLAT.index("]},") + 1]
    expected = RPC_FLAT.replace(parts, '[{"kind":"text","text":"new"}]')
    assert text_of(left) == expected.replace('"lastChunk":false', '"lastChunk":true')
    frame = sse(BARE_WRAPPED)
    left = inserted(frame, update_of(frame), "", append=False, last=False)
    assert text_of(left) == BARE_WRAPPED.replace('{"text":"one"},{"text":"two"}', '{"text":""}')


@pytest.mark.parametrize("parts", ['"parts":[]', '"parts":null', '"other":[]'])
def test_a_model_without_parts_gives_its_own_style(parts: str) -> None:
    wrapped = sse('{"artifactUpdate":{"artifact":{"artifactId":"a",' + parts + "}}}")
    left = inserted(wrapped, update_of(wrapped), "x", append=True, last=False)
    assert '"parts":[{"text":"x"}]' in text_of(left)
    flat = sse('{"kind":"artifact-update","artifact":{"artifactId":"a",' + parts + "}}")
    left = inserted(flat, update_of(flat), "x", append=True, last=False)
    assert '"parts":[{"kind":"text","text":"x"}]' in text_of(left)


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_an_inserted_event_keeps_its_name_and_line_endings_but_not_its_place(end: bytes) -> None:
    lines = [b"event: jsonrpc", b"id: 7", b":x", b"retry: 1", b"data:" + BARE_WRAPPED.encode()]
    frame = Frame(Side.SERVER, Kind.SSE, b"\xef\xbb\xbf" + end.join([*lines, b"id", b"", b""]))
    left = inserted(frame, update_of(frame), "x", append=True, last=False)
    assert left.wire == end.join([b"event: jsonrpc", b"data:" + left.payload, b"", b""])
    assert update_of(Frame(Side.SERVER, Kind.SSE, left.wire)).parts == (a2a.Part("x"),)


def test_an_event_stays_one_where_its_line_endings_are_mixed() -> None:
    wire = b"data: " + BARE_WRAPPED.encode() + b"\rid: 7\n\n"
    frame = Frame(Side.SERVER, Kind.SSE, wire)
    left = inserted(frame, update_of(frame), "x", append=True, last=False)
    assert left.wire == b"data: " + left.payload + b"\r\n\n"


# --- statuses and tasks ---------------------------------------------------------------------------


def test_the_message_of_a_status_goes_and_its_state_stays() -> None:
    frame = sse(STATUS_FLAT)
    left = without_message(frame, status_in(frame))
    start = STATUS_FLAT.index(',"message":{')
    end = STATUS_FLAT.index(',"timestamp"')
    assert text_of(left) == STATUS_FLAT[:start] + STATUS_FLAT[end:]
    frame = sse(TASK_FLAT)
    left = without_message(frame, task_in(frame))
    assert text_of(left) == TASK_FLAT.replace('"message":{"messageId":"m","parts":[]},', "")


def test_a_status_is_lifted_to_an_artifact_in_its_own_style() -> None:
    frame = sse(STATUS_FLAT)
    left = lifted(frame, status_in(frame), "new", "Hi", append=False)
    assert json.loads(text_of(left)) == {
        "jsonrpc": "2.0",
        "id": 1,
        "result": {
            "kind": "artifact-update",
            "taskId": "t",
            "contextId": "c",
            "artifact": {"artifactId": "new", "parts": [{"kind": "text", "text": "Hi"}]},
            "append": False,
        },
    }
    frame = sse(STATUS_WRAPPED)
    left = lifted(frame, status_in(frame), "new", "Hi", append=True)
    assert text_of(left) == (
        '{"result": {"artifactUpdate":{"taskId":"t","contextId":"c","artifact":{"artifactId":"new",'
        '"parts":[{"text":"Hi"}]},"append":true}}, "id": 1, "jsonrpc": "2.0"}'
    )
    left = lifted(frame, status_in(frame), "new", "Hi", append=False)
    assert '"append"' not in text_of(left)


def test_a_status_without_a_message_is_lifted_in_the_style_of_its_envelope() -> None:
    for text, part in (
        ('{"statusUpdate":{"status":{"state":"working"}}}', '{"text":"x"}'),
        ('{"kind":"status-update","status":{"state":"working"}}', '{"kind":"text","text":"x"}'),
    ):
        frame = sse(text)
        left = lifted(frame, status_in(frame), "a", "x", append=True)
        assert f'"parts":[{part}]' in text_of(left)
        assert update_of(left).task_id == ""


def test_artifacts_of_a_task_are_edited_by_place() -> None:
    frame = sse(TASK_FLAT)
    edits = {0: ArtifactEdit({0: "Hi"}, {1}), 1: ArtifactEdit({0: "y"})}
    left = with_artifacts(frame, task_in(frame), edits)
    expected = TASK_FLAT.replace('"text":"H"},{"kind":"text","text":"Hi"}', '"text":"Hi"}')
    assert text_of(left) == expected.replace('"x"', '"y"')
    assert with_artifacts(frame, task_in(frame), {0: ArtifactEdit()}) is frame
    for index in (-1, 2):
        with pytest.raises(EditError, match="no artifact"):
            with_artifacts(frame, task_in(frame), {index: ArtifactEdit()})


@pytest.mark.parametrize("make", [sse, packed])
def test_an_artifact_gets_another_id(make: Any) -> None:
    frame = make(BARE_WRAPPED)
    left = changed(frame, update_of(frame), artifact_id="b")
    assert (
        left.payload == make(BARE_WRAPPED.replace('"artifactId":"a"', '"artifactId":"b"')).payload
    )
    assert fresh(left) == left.reading
    assert changed(frame, update_of(frame), artifact_id="a").payload == frame.payload


def test_texts_of_the_message_of_a_status_change() -> None:
    frame = sse(STATUS_FLAT)
    left = with_message_texts(frame, status_in(frame), {0: "Ho"})
    assert text_of(left) == STATUS_FLAT.replace('"text":"Hi"', '"text":"Ho"')
    assert fresh(left) == left.reading
    left = with_message_texts(frame, status_in(frame), {}, [0])
    assert '"parts":[]' in text_of(left)
    assert fresh(left) == left.reading
    bare = without_message(frame, status_in(frame))
    with pytest.raises(EditError):
        with_message_texts(bare, status_in(bare), {0: "x"})


def test_texts_of_a_message_change_under_the_name_of_the_rest_binding_of_0_3() -> None:
    frame = sse(STATUS_WRAPPED.replace('"parts"', '"content"'))
    left = with_message_texts(frame, status_in(frame), {0: "Ho"})
    assert text_of(left) == text_of(frame).replace("Hi", "Ho")
    assert fresh(left) == left.reading


@pytest.mark.parametrize("make", [sse, packed])
def test_messages_of_a_history_go(make: Any) -> None:
    said = [json.dumps({"messageId": f"m{number}", "parts": []}) for number in range(3)]

    def task(*messages: str) -> str:
        return TASK_WRAPPED.replace('"history":[]', f'"history":[{",".join(messages)}]')

    frame = make(task(*said))
    left = without_history(frame, task_in(frame), [1, 0, 1])
    assert left.payload == make(task(said[2])).payload
    assert fresh(left) == left.reading
    assert without_history(frame, task_in(frame), []) is frame
    for index in (-1, 3):
        with pytest.raises(EditError, match="no message"):
            without_history(frame, task_in(frame), [index])


def test_a_status_stands_for_a_task_in_its_own_style() -> None:
    frame = sse(TASK_FLAT)
    left = status_of(frame, task_in(frame))
    assert text_of(left) == (
        '{"id":1,"jsonrpc":"2.0","result":{"kind":"status-update","taskId":"t","contextId":"c",'
        '"status":{"state":"completed","timestamp":"2026"},"final":true}}'
    )
    frame = sse(TASK_WRAPPED)
    left = status_of(frame, task_in(frame))
    status = '{"statusUpdate":{"taskId":"t","status":{"state":"TASK_STATE_COMPLETED"}}}'
    assert text_of(left) == status


def test_a_task_of_the_rest_binding_of_0_3_is_followed_by_a_final_status() -> None:
    message = '{"messageId":"m","role":"ROLE_USER","content":[{"text":"?"}]}'
    frame = sse(TASK_WRAPPED.replace('"history":[]', f'"history":[{message}]'))
    assert status_in(status_of(frame, task_in(frame))).final


def test_the_answer_to_a_question_for_a_task_does_not_become_a_status() -> None:
    frame = Frame(Side.SERVER, Kind.BODY, b'{"id":"t","status":{"state":"completed"}}')
    with pytest.raises(EditError):
        status_of(frame, task_in(frame))


def test_an_event_name_that_tells_the_kind_tells_the_new_one() -> None:
    frame = Frame(Side.SERVER, Kind.SSE, b"event: Task\ndata: %b\n\n" % TASK_WRAPPED.encode())
    left = status_of(frame, task_in(frame))
    assert left.wire.startswith(b"event: TaskStatusUpdateEvent\ndata: ")
    wire = b"id: 1\nevent:TaskStatusUpdateEvent\ndata: %b\n\n" % STATUS_WRAPPED.encode()
    frame = Frame(Side.SERVER, Kind.SSE, wire)
    left = lifted(frame, status_in(frame), "a", "x", append=True)
    assert left.wire.startswith(b"event: TaskArtifactUpdateEvent\ndata: ")


@pytest.mark.parametrize("text", [RPC_FLAT, BARE_WRAPPED])
def test_a_changed_frame_carries_what_reading_it_again_gives(text: str) -> None:
    for frame in (sse(text), packed(text)):
        update = update_of(frame)
        for left in (
            changed(frame, update, texts={0: "x"}, removed=[1], append=False, last=True),
            changed(frame, update, append=True, stream_mode="snapshot"),
            inserted(frame, update, "x", append=True, last=True),
        ):
            assert left.reading is not None or left is frame
            assert fresh(left) == a2a.read(left)


@pytest.mark.parametrize("make", [sse, packed])
def test_a_changed_status_or_task_carries_what_reading_it_again_gives(make: Any) -> None:
    for text in (STATUS_FLAT, STATUS_WRAPPED):
        frame = make(text)
        left = without_message(frame, status_in(frame))
        assert fresh(left) == left.reading == a2a.read(left)
    frame = make(TASK_FLAT)
    task = task_in(frame)
    for left in (
        without_message(frame, task),
        with_artifacts(frame, task, {0: ArtifactEdit({1: "x"}, [2])}),
    ):
        assert fresh(left) == left.reading == a2a.read(left)


def test_msgpack_frames_are_made_like_json_ones() -> None:
    def same(text: str, make: Any) -> None:
        in_json = json.loads(make(sse(text)).payload)
        assert msgspec.msgpack.decode(make(packed(text)).payload) == in_json

    same(STATUS_FLAT, lambda f: lifted(f, status_in(f), "a", "x", append=True))
    same(STATUS_WRAPPED, lambda f: lifted(f, status_in(f), "a", "x", append=True))
    same(TASK_FLAT, lambda f: status_of(f, task_in(f)))
    same(TASK_WRAPPED, lambda f: status_of(f, task_in(f)))
    same(BARE_WRAPPED, lambda f: inserted(f, update_of(f), "x", append=True, last=True))
    same(BARE_WRAPPED, lambda f: changed(f, update_of(f), texts={0: "é"}, stream_mode="delta"))
