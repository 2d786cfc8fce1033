"""Every event of every A2A capture is read as what it is.

The captures in the table are checked by hand, all others by a second, slow reader.

The notation: T a task with its state, the texts of its artifacts and the length of its history; S a
status update, F a final one, with state and text; R an artifact update, A one that appends, with
`!` where it is the last, artifact id and text; E an error. `*` stands for the whole answer.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from midstream.adapters import capture_format
from midstream.core.edit import get
from midstream.core.exchange import RequestHead
from midstream.core.frames import Frame, Side
from midstream.core.ports import RecordKind
from midstream.dialects import a2a
from midstream.dialects.a2a_write import changed, with_artifacts

CAPTURES = Path(__file__).parents[1] / "captures" / "a2a"
WHOLE = "Hi Mira, which region should I query?"
DELTAS = "R:a1'Hi ' A:a1'Mira, which ' A!:a1'region should I query?'"
OPEN_DELTAS = DELTAS.replace("!", "")

SHOWN = {
    "adk2.13-legacysse.delta": "T:submitted,1 S:working S:working'Hi ' S:working'Mira, which '"
    " S:working'region should I query?' S:working'*' R!:x'*' S:completed",
    "adk2.13-newnone.delta": "T:submitted,1 S:working R!:x'*' S:completed",
    "adk2.13-newsse.delta": "T:submitted,1 S:working R:x'Hi ' A:x'Mira, which '"
    " A:x'region should I query?' R!:x'*' S:completed",
    "agentscope-runtime-1.1.6": "E-32603",
    "fasta2a-2.1.1": "T:submitted,1 S:working A:x'Hi ' A:x'Mira, which '"
    " A:x'region should I query?' R!:x'*' S:completed",
    "sdk03-rpc03.adk_replace_final": f"T:submitted,1 {OPEN_DELTAS} R!:a1'*' F:completed",
    "sdk03-rpc03.delta": f"T:submitted,1 {DELTAS} F:completed",
    "sdk03-rpc03.final_message_multipart": f"T:submitted,1 {OPEN_DELTAS}"
    " F:completed'Hi |Mira, which |region should I query?'",
    "sdk03-rpc03.final_task": f"T:submitted,1 {DELTAS} T:completed[*],2",
    "sdk03-rpc03.fresh_ids": "T:submitted,1 R:c1'Hi ' R:c2'Mira, which '"
    " R:c3'region should I query?' F:completed",
    "sdk03-rpc03.haha_delta": "T:submitted,1 R:a1'ha' A:a1'haha' A:a1'no' A!:a1'no' F:completed",
    "sdk03-rpc03.interleaved": "T:submitted,1 R:a1'one ' R:b1'A' A:a1'two ' A:b1'AB'"
    " A!:a1'three' A:b1'ABC' F:completed",
    "sdk03-rpc03.mixed_delta_then_full": f"T:submitted,1 {OPEN_DELTAS} A:a1'*' F:completed",
    "sdk03-rpc03.snapshot_append_false": "T:submitted,1 R:a1'Hi' R:a1'Hi Mira,' R!:a1'*'"
    " F:completed",
    "sdk03-rpc03.snapshot_append_true": "T:submitted,1 R:a1'Hi' A:a1'Hi Mira,' A:a1'*' F:completed",
    "sdk03-rpc03.status_delta": "T:submitted,1 S:working'Hi ' S:working'Mira, which '"
    " S:working'region should I query?' F:completed",
    "sdk03-rpc03.status_snapshot_then_artifact": "T:submitted,1 S:working'Hi '"
    " S:working'Hi Mira, which ' S:working'*' R!:a1'*' F:completed",
    "sdk03-rpc03.unicode_delta": "T:submitted,1 R:a1'\U0001f468\u200d' A:a1'\U0001f469 cafe'"
    " A!:a1'\u0301 \u4f60\u597d' F:completed",
    "sdk1-compat03.adk_replace_final": f"T:submitted,1 {OPEN_DELTAS} R!:a1'*' F:completed",
    "sdk1-compat03.delta": f"T:submitted,1 {DELTAS} F:completed",
    "sdk1-compat03.final_task": f"T:submitted,1 {DELTAS} T:completed[*],2",
    "sdk1-compat03.mixed_seed": "T:submitted,1 R:a1'Hi' A:a1'*' F:completed'*'",
    "sdk1-rest03.delta": f"T:submitted,1 {DELTAS} F:completed",
    "sdk1-rest1.delta": f"T:submitted,1 {DELTAS} S:completed",
    "sdk1-rpc1.append_first": "T:submitted,1 E-32006",
    "sdk1-rpc1.delta": f"T:submitted,1 {DELTAS} S:completed",
    "sdk1-rpc1.final_message_multipart": f"T:submitted,1 {OPEN_DELTAS}"
    " S:completed'Hi |Mira, which |region should I query?'",
    "sdk1-rpc1.final_task": f"T:submitted,1 {DELTAS} T:completed[*],2",
    "sdk1-rpc1.haha_delta": "T:submitted,1 R:a1'ha' A:a1'haha' A:a1'no' A!:a1'no' S:completed",
    "sdk1-rpc1.input_required": "T:submitted,1 R!:a1'Found 3 regions. '"
    " S:input-required'Which one?'",
    "sdk1-rpc1.mixed_delta_then_full": f"T:submitted,1 {OPEN_DELTAS} A:a1'*' S:completed",
    "sdk1-rpc1.mixed_seed": "T:submitted,1 R:a1'Hi' A:a1'*' S:completed'*'",
    "sdk1-rpc1.snapshot_append_false": "T:submitted,1 R:a1'Hi' R:a1'Hi Mira,' R!:a1'*' S:completed",
    "sdk1-rpc1.snapshot_append_true": "T:submitted,1 R:a1'Hi' A:a1'Hi Mira,' A:a1'*' S:completed",
    "sdk1-rpc1.snapshot_rewrite": "T:submitted,1 R:a1'Hi Mirra' A:a1'Hi Mira, which' A:a1'*'"
    " S:completed",
    "sdk1-rpc1.status_delta": "T:submitted,1 S:working'Hi ' S:working'Mira, which '"
    " S:working'region should I query?' S:completed",
    "strands1.62-compliant.delta": "T:submitted,1 R:x'Hi ' A:x'Mira, which '"
    " A:x'region should I query?' A!:x'' F:completed",
}


def joined(parts: tuple[a2a.Part, ...]) -> str:
    text = "|".join(part.text or "" for part in parts)
    return "*" if text == WHOLE else text


def shown(event: a2a.Event | a2a.Unreadable | None) -> str:
    match event:
        case a2a.ArtifactUpdate():
            name = event.artifact_id if len(event.artifact_id) == 2 else "x"
            flags = ("A" if event.append else "R") + "!" * event.last
            return f"{flags}:{name}'{joined(event.parts)}'"
        case a2a.StatusUpdate():
            text = f"'{joined(event.message.parts)}'" if event.message else ""
            return f"{'F' if event.final else 'S'}:{event.state}{text}"
        case a2a.Task():
            artifacts = "".join(f"[{joined(one.parts)}]" for one in event.artifacts)
            return f"T:{event.state}{artifacts},{len(event.history)}"
        case a2a.Failure():
            return f"E{event.code}"
    return repr(event)


def played(name: str) -> tuple[RequestHead, list[Frame]]:
    """Return the request head and all frames of a capture."""
    head = RequestHead("", "")
    frames: list[Frame] = []
    for record in capture_format.read(CAPTURES / f"{name}-000001.cap"):
        if record.kind is RecordKind.OPEN:
            headers = tuple((key, value) for key, value in record.meta["headers"])
            head = RequestHead(record.meta["method"], record.meta["target"], headers)
        if record.received is not None:
            frames.append(record.received)
    return head, frames


def slowly(tree: Any) -> str:
    """Return what `shown` should, for a stream of 0.3 or 1.0, from nothing but its JSON."""

    def text(parts: list[Any]) -> str:
        found = "|".join(part.get("text", "") for part in parts)
        return "*" if found == WHOLE else found

    def state(holder: Any) -> str:
        return str(holder["status"]["state"].removeprefix("TASK_STATE_")).lower().replace("_", "-")

    if "error" in tree:
        return f"E{tree['error']['code']}"
    tree = tree.get("result", tree)
    kinds = ("artifactUpdate", "statusUpdate", "task", "message")
    wrapper = next((kind for kind in kinds if kind in tree), "")
    kind, found = wrapper or tree["kind"], tree.get(wrapper, tree)
    if kind in ("artifact-update", "artifactUpdate"):
        flags = ("A" if found.get("append") else "R") + "!" * bool(found.get("lastChunk"))
        name = found["artifact"]["artifactId"]
        return f"{flags}:{name if len(name) == 2 else 'x'}'{text(found['artifact']['parts'])}'"
    if kind in ("status-update", "statusUpdate"):
        message = found["status"].get("message")
        said = f"'{text(message['parts'])}'" if message else ""
        return f"{'F' if found.get('final') else 'S'}:{state(found)}{said}"
    artifacts = "".join(f"[{text(one['parts'])}]" for one in found.get("artifacts", []))
    return f"T:{state(found)}{artifacts},{len(found.get('history', []))}"


NAMES = sorted(file.name[: -len("-000001.cap")] for file in CAPTURES.glob("*.cap"))


def test_every_capture_of_the_table_is_there() -> None:
    assert set(SHOWN) <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_two_readers_agree_on_every_event(name: str) -> None:
    frames = [frame for frame in played(name)[1] if frame.sender is Side.SERVER]
    assert frames
    for frame in frames:
        assert shown(a2a.read(frame)) == slowly(json.loads(frame.payload))


@pytest.mark.parametrize("name", NAMES)
def test_hints_of_agentscope_are_read_from_every_part(name: str) -> None:
    for frame in played(name)[1]:
        event = a2a.read(frame)
        if isinstance(event, a2a.ArtifactUpdate):
            raw = get(frame.payload, (*event.at, "artifact", "parts"))
            for part, tree in zip(event.parts, json.loads(raw or b"[]"), strict=True):
                meta = tree.get("metadata", {})
                assert part.block == meta.get("_agentscope_block_type", "")
                assert part.message_id == meta.get("_agentscope_msg_id", "")
                assert part.is_chunk is meta.get("_agentscope_stream_chunk", False)


@pytest.mark.parametrize("name", SHOWN)
def test_every_event_is_read_as_what_it_is(name: str) -> None:
    _, frames = played(name)
    events = [shown(a2a.read(frame)) for frame in frames if frame.sender is Side.SERVER]
    assert " ".join(events) == SHOWN[name]


@pytest.mark.parametrize("name", NAMES)
def test_every_request_asks_for_a_stream_and_the_dialect_reads_it(name: str) -> None:
    head, frames = played(name)
    (request,) = [frame for frame in frames if frame.sender is Side.CLIENT]
    assert a2a.read_request(request, head) is a2a.Asked.STREAM
    assert a2a.read(request) is None
    assert a2a.DIALECT.reads(head)


@pytest.mark.parametrize("name", NAMES)
def test_the_path_of_what_was_read_leads_to_it_and_no_change_changes_nothing(name: str) -> None:
    for frame in played(name)[1]:
        event = a2a.read(frame)
        if event is None or isinstance(event, a2a.Failure | a2a.Unreadable):
            continue
        found = get(frame.payload, event.at)
        assert found is not None
        if isinstance(event, a2a.ArtifactUpdate):
            assert get(found, ("artifact", "artifactId")) == b'"%b"' % event.artifact_id.encode()
            assert changed(frame, event).wire == frame.wire
        if isinstance(event, a2a.Task):
            assert get(found, ("id",)) == b'"%b"' % event.task_id.encode()
            assert with_artifacts(frame, event, {}).wire == frame.wire


def test_the_step_of_an_adk_agent_is_read_from_update_or_artifact() -> None:
    for name in ("adk2.13-legacysse.delta", "adk2.13-newsse.delta"):
        events = [a2a.read(frame) for frame in played(name)[1]]
        segments = {e.segment for e in events if isinstance(e, a2a.ArtifactUpdate)}
        assert len(segments) == 1
        assert segments.pop().endswith(" fake_agent")
