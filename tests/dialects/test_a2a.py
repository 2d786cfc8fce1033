"""What of the A2A protocol is read, what is not, and which requests belong to it."""

import json
from typing import Any

import msgspec
import pytest

from midstream.core.exchange import RequestHead, ResponseHead
from midstream.core.frames import Frame, Kind, Side
from midstream.dialects import a2a

RPC: dict[str, Any] = {"jsonrpc": "2.0", "id": 1}
FLAT: dict[str, Any] = {
    "kind": "artifact-update",
    "taskId": "t",
    "contextId": "c",
    "artifact": {"artifactId": "a", "name": "n", "parts": [{"kind": "text", "text": "Hi"}]},
    "append": True,
    "lastChunk": False,
}
ARTIFACT = {"artifactId": "a", "name": "n", "parts": [{"text": "Hi"}]}
WRAPPED: dict[str, Any] = {
    "artifactUpdate": {"taskId": "t", "contextId": "c", "artifact": ARTIFACT, "append": True}
}


def sse(payload: str | bytes, before: str = "", side: Side = Side.SERVER) -> Frame:
    data = payload if isinstance(payload, bytes) else payload.encode()
    return Frame(side, Kind.SSE, before.encode() + b"data: " + data + b"\r\n\r\n")


def read(fields: object) -> a2a.Event | a2a.Unreadable | None:
    return a2a.read(sse(json.dumps(fields)))


def update(fields: object) -> a2a.ArtifactUpdate:
    event = read(fields)
    assert isinstance(event, a2a.ArtifactUpdate), event
    return event


def parts_of(*parts: object) -> tuple[a2a.Part, ...]:
    return update({"artifactUpdate": {"artifact": {"artifactId": "a", "parts": parts}}}).parts


def state_of(state: str) -> str:
    event = read({"statusUpdate": {"taskId": "t", "status": {"state": state}}})
    assert isinstance(event, a2a.StatusUpdate)
    return event.state


# --- versions and carriers ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "at"),
    [
        (FLAT, ()),
        (WRAPPED, ("artifactUpdate",)),
        ({**RPC, "result": FLAT}, ("result",)),
        ({**RPC, "result": WRAPPED}, ("result", "artifactUpdate")),
        ({**RPC, "id": "x", "error": None, "result": WRAPPED}, ("result", "artifactUpdate")),
        ({"id": None, "result": WRAPPED, "jsonrpc": "2.0"}, ("result", "artifactUpdate")),
        ({**RPC, "result": {**WRAPPED, "kind": "other"}}, ("result", "artifactUpdate")),
    ],
)
def test_an_update_is_the_same_in_every_version_and_envelope(fields: object, at: Any) -> None:
    part = a2a.Part("Hi")
    same = a2a.ArtifactUpdate("t", "c", "a", "n", True, False, (part,), "", "", at)
    assert read(fields) == same


def test_an_update_is_the_same_on_every_carrier() -> None:
    text = json.dumps({**RPC, "result": WRAPPED}).encode()
    packed = msgspec.msgpack.encode({**RPC, "result": WRAPPED})
    pretty = json.dumps({**RPC, "result": WRAPPED}, indent=1).replace("\n", "\r\ndata:")
    frames = [
        Frame(Side.SERVER, Kind.SSE, b"data: " + text + b"\n\n"),
        Frame(Side.SERVER, Kind.SSE, b"event: jsonrpc\r\nid: 1\r\ndata:" + text + b"\r\n\r\n"),
        Frame(Side.SERVER, Kind.SSE, b"data:" + pretty.encode() + b"\r\r"),
        Frame(Side.SERVER, Kind.SSE, b"\xef\xbb\xbf: hello\rdata: " + text + b"\r\r"),
        Frame(Side.SERVER, Kind.BODY, text + b"\n"),
        Frame(Side.SERVER, Kind.BODY, b"\xef\xbb\xbf" + text),
        Frame(Side.SERVER, Kind.BODY, packed),
        Frame(Side.SERVER, Kind.WS_TEXT, text),
        Frame(Side.SERVER, Kind.WS_BINARY, text),
        Frame(Side.SERVER, Kind.WS_BINARY, packed),
    ]
    assert {a2a.read(frame) for frame in frames} == {read({**RPC, "result": WRAPPED})}


def test_what_a_client_sends_is_no_event() -> None:
    assert a2a.read(sse(json.dumps(WRAPPED), side=Side.CLIENT)) is None


def test_a_frame_is_read_once_and_what_others_read_from_it_is_kept() -> None:
    frame = sse(json.dumps(WRAPPED))
    assert a2a.read(frame) is a2a.read(frame)
    theirs = object()
    read_by_others = sse(json.dumps(WRAPPED)).remember(theirs)
    assert a2a.read(read_by_others) == a2a.read(frame)
    assert read_by_others.reading is theirs


# --- updates --------------------------------------------------------------------------------------


def test_an_absent_flag_and_null_are_false() -> None:
    for flags in ({}, {"append": None, "lastChunk": None}, {"append": False, "lastChunk": False}):
        event = update({"artifactUpdate": {"artifact": ARTIFACT, **flags}})
        assert (event.append, event.last) == (False, False)
    assert update({"artifactUpdate": {"artifact": ARTIFACT, "lastChunk": True}}).last


def test_parts_are_text_or_else_their_own_bytes() -> None:
    others: tuple[dict[str, Any], ...] = (
        {"kind": "data", "data": {"text": "x"}},
        {"kind": "file", "file": {"uri": "u"}},
        {"data": {"a": 1.0}},
        {"raw": "QQ=="},
        {"url": "u", "filename": "f"},
        {"text": "x", "data": {}},
        {"kind": "hologram", "text": "x"},
        {"text": None},
        {},
    )
    for part, other in zip(parts_of(*others), others, strict=True):
        assert part == a2a.Part(None, json.dumps(other).encode())
    texts = (
        {"text": "x"},
        {"kind": "text", "text": "x"},
        {"kind": "text", "text": "x", "url": None},
    )
    assert parts_of(*texts) == (a2a.Part("x"),) * 3
    assert parts_of({"text": ""}, {"kind": "text"}) == (a2a.Part(""),) * 2
    assert parts_of() == ()
    assert update({"artifactUpdate": {"artifact": {"artifactId": "a"}}}).parts == ()


def test_hints_of_servers_are_read_and_hints_of_the_wrong_type_are_none() -> None:
    agentscope = {
        "_agentscope_block_type": "thinking",
        "_agentscope_msg_id": "m",
        "_agentscope_stream_chunk": True,
    }
    assert parts_of({"text": "x", "metadata": agentscope}) == (
        a2a.Part("x", b"", "thinking", "m", True),
    )
    (thought,) = parts_of({"text": "x", "metadata": {"adk_thought": True}})
    assert thought.block == "thought"
    wrong = {key: [7] for key in agentscope} | {"adk_thought": "yes"}
    assert parts_of({"text": "x", "metadata": wrong}) == (a2a.Part("x"),)


@pytest.mark.parametrize("mode", ["delta", "snapshot"])
def test_the_declared_mode_stands_in_the_metadata_of_update_or_artifact(mode: str) -> None:
    meta = {"streamMode": mode}
    artifact = {**ARTIFACT, "metadata": meta}
    assert update({"artifactUpdate": {"artifact": ARTIFACT, "metadata": meta}}).stream_mode == mode
    assert update({"artifactUpdate": {"artifact": artifact}}).stream_mode == mode
    others: tuple[object, ...] = ("other", 7, None, {})
    for other in others:
        wrong = {"streamMode": other}
        event = update({"artifactUpdate": {"artifact": ARTIFACT, "metadata": wrong}})
        assert event.stream_mode == ""


def test_numbers_and_keys_that_are_no_concern_do_not_matter() -> None:
    event = a2a.read(
        sse(
            b'{"jsonrpc":2.0,"id":1e400,"x":12345678901234567890123,"result":{"artifactUpdate":'
            b'{"taskId":"lost","taskId":"t","append":"?","append":true,"metadata":{"n":1e999},'
            b'"artifact":{"artifactId":"a","parts":[{"text":"Hi"}],"x":[{}]}}}}'
        )
    )
    assert isinstance(event, a2a.ArtifactUpdate)
    assert (event.task_id, event.append, event.parts) == ("t", True, (a2a.Part("Hi"),))


def test_half_an_emoji_is_read_wherever_it_stands() -> None:
    wire = json.dumps({**RPC, "id": "\ud83d", "result": WRAPPED}).replace("Hi", "a\\ud83d")
    event = a2a.read(sse(wire))
    assert isinstance(event, a2a.ArtifactUpdate)
    assert event.parts == (a2a.Part("a\ud83d"),)
    kept = '{"data": {"x": "\\ud83d", "y": 1.10}}'
    event = a2a.read(sse(json.dumps(WRAPPED).replace('{"text": "Hi"}', kept)))
    assert isinstance(event, a2a.ArtifactUpdate)
    assert event.parts == (a2a.Part(None, kept.encode()),)


def test_the_careful_reading_finds_the_same_as_the_fast_one() -> None:
    message = {"messageId": "m", "role": "ROLE_AGENT", "content": [{"text": "x"}], "taskId": "t"}
    part = {"text": "x", "metadata": {"_agentscope_msg_id": "m", "adk_thought": True}}
    meta = {"streamMode": "delta", "adk_event_id": "e", "adk_author": "w"}
    artifact = {"artifactId": "a", "name": None, "parts": [part, {"data": 1}], "metadata": meta}
    status = {"state": "TASK_STATE_FAILED", "message": message}
    history = [message, {**message, "parts": [], "role": None}]
    for fields in (
        {"artifactUpdate": {"artifact": artifact, "append": True, "lastChunk": None}},
        {"statusUpdate": {"taskId": "t", "contextId": None, "status": status, "final": True}},
        {"task": {"id": "t", "status": status, "artifacts": [artifact], "history": history}},
        {"task": {"id": "t", "status": {"state": "working"}, "artifacts": None, "history": None}},
        {"message": message, "statusUpdate": None},
        {"kind": "message", **message, "parts": None},
    ):
        text = json.dumps({**RPC, "result": fields})
        careful = a2a.read(sse(text.replace('"id": 1', '"id": "\\ud83d"')))
        assert careful == a2a.read(sse(text))
        assert careful is not None


# --- states, messages, tasks ----------------------------------------------------------------------


def test_states_have_the_words_of_0_3() -> None:
    words = ["submitted", "working", "completed", "canceled", "failed", "rejected"]
    words += ["input-required", "auth-required"]
    for word in words:
        assert state_of(word) == word
        assert state_of("TASK_STATE_" + word.upper().replace("-", "_")) == word
    assert state_of("TASK_STATE_UNSPECIFIED") == state_of("unknown") == "unknown"
    assert state_of("TASK_STATE_NEW_ONE") == "new-one"
    assert read({"statusUpdate": {"taskId": "t", "status": {}}}) == a2a.StatusUpdate(
        "t", "", "unknown", False, None, ("statusUpdate",)
    )


def test_the_message_of_a_status_is_read_in_all_styles() -> None:
    for key, role in (("parts", "agent"), ("content", "ROLE_AGENT")):
        message = {"messageId": "m", "role": role, "taskId": "t", key: [{"text": "x"}]}
        event = read({"statusUpdate": {"status": {"state": "working", "message": message}}})
        assert isinstance(event, a2a.StatusUpdate)
        at = ("statusUpdate", "status", "message")
        assert event.message == a2a.Message("m", "agent", "t", (a2a.Part("x"),), at, key)


def test_a_task_has_its_artifacts_and_history() -> None:
    user = {"messageId": "u", "role": "user", "parts": [{"kind": "text", "text": "?"}]}
    task = {
        "kind": "task",
        "id": "t",
        "contextId": "c",
        "status": {"state": "completed", "message": user},
        "artifacts": [ARTIFACT, {"artifactId": "b", "parts": []}],
        "history": [user],
    }
    event = read({**RPC, "result": task})
    said = a2a.Message("u", "user", "", (a2a.Part("?"),), ("result", "status", "message"))
    assert event == a2a.Task(
        "t",
        "c",
        "completed",
        said,
        (a2a.Artifact("a", "n", (a2a.Part("Hi"),), 0), a2a.Artifact("b", "", (), 1)),
        (msgspec.structs.replace(said, at=("result", "history", 0)),),
        ("result",),
    )


def test_a_task_by_itself_is_read_where_it_was_asked_for() -> None:
    task = {"id": "t", "status": {"state": "TASK_STATE_WORKING"}}
    text = json.dumps(task)
    expected = a2a.Task("t", "", "working", None, (), (), ())
    assert a2a.read(Frame(Side.SERVER, Kind.BODY, text.encode())) == expected
    assert read({**RPC, "result": task}) == msgspec.structs.replace(expected, at=("result",))
    assert read(task) is None
    other = text.replace("WORKING", "ON_FIRE").encode()
    assert a2a.read(Frame(Side.SERVER, Kind.BODY, other)) is None


def test_a_message_is_known_by_its_id() -> None:
    message = {"messageId": "m", "role": "agent", "parts": [{"kind": "text", "text": "x"}]}
    expected = a2a.Message("m", "agent", "", (a2a.Part("x"),), ("message",))
    assert read({"message": message}) == expected
    flat = read({**RPC, "result": {"kind": "message", **message}})
    assert flat == msgspec.structs.replace(expected, at=("result",))


def test_errors_are_failures() -> None:
    error = {"code": -32006, "message": "no"}
    assert read({**RPC, "error": error}) == a2a.Failure(-32006)
    assert read({**RPC, "result": None, "error": error}) == a2a.Failure(-32006)
    assert a2a.read(sse(json.dumps({**RPC, "error": error}), "event: error\r\n")) == a2a.Failure(
        -32006
    )
    assert read({"error": {"code": 404, "status": "NOT_FOUND"}}) == a2a.Failure(404)
    assert a2a.read(sse('{"jsonrpc":"2.0","error":{"code":5,"message":"\\ud83d"}}')) == a2a.Failure(
        5
    )


def test_a_turn_ends_with_a_last_state_an_interruption_or_a_message() -> None:
    def status(state: str, *, final: bool = False) -> a2a.StatusUpdate:
        return a2a.StatusUpdate("t", "c", state, final, None, ())

    def task(state: str) -> a2a.Task:
        return a2a.Task("t", "c", state, None, (), (), ())

    ending = [*a2a.TERMINAL, *a2a.INTERRUPTED]
    assert len(ending) == 6
    for state in ending:
        assert a2a.ends_turn(status(state))
        assert a2a.ends_turn(task(state))
    for state in ("submitted", "working", "unknown"):
        assert not a2a.ends_turn(status(state))
        assert not a2a.ends_turn(task(state))
    assert a2a.ends_turn(status("working", final=True))
    assert a2a.ends_turn(a2a.Message("m", "agent", "t", (), ()))
    assert not a2a.ends_turn(update(WRAPPED))
    assert not a2a.ends_turn(a2a.Failure(1))


# --- what is not read -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fields",
    [
        {"artifactUpdate": {"artifact": {"parts": []}}},
        {"artifactUpdate": {"artifact": {"artifactId": None, "parts": [], "x": "\ud83d"}}},
        {"artifactUpdate": {"artifact": {"artifactId": 7, "parts": []}}},
        {"artifactUpdate": {"artifact": {"artifactId": "a", "parts": {}}}},
        {"artifactUpdate": {"artifact": {"artifactId": "a", "parts": "Hi"}}},
        {"artifactUpdate": {"artifact": {"artifactId": "a", "parts": ["Hi"]}}},
        {"artifactUpdate": {"artifact": {"artifactId": "a", "parts": [{"text": 7}]}}},
        {"artifactUpdate": {"artifact": {"artifactId": "a", "parts": [{"kind": []}]}}},
        {"artifactUpdate": {"artifact": ARTIFACT, "append": "true"}},
        {"artifactUpdate": {"artifact": ARTIFACT, "metadata": []}},
        {"artifactUpdate": {"artifact": []}},
        {"artifactUpdate": {}},
        {"artifactUpdate": []},
        {"artifactUpdate": WRAPPED["artifactUpdate"], "task": {}},
        {"kind": "artifact-update", "taskId": "t"},
        {"kind": "status-update", "taskId": "t"},
        {"statusUpdate": {"status": "working"}},
        {"statusUpdate": {"status": {"state": 3}}},
        {"statusUpdate": {"status": {"state": "working", "message": "x"}}},
        {"task": {"id": "t", "status": {"state": "working"}, "artifacts": [{}]}},
        {"task": {"id": "t", "status": {"state": "working"}, "history": {}}},
        {"task": {"id": 7, "status": {"state": "working"}}},
        {"kind": "task", "id": "t", "status": "working"},
        {"message": {"messageId": 7}},
        {"message": {"messageId": "m", "parts": 7}},
    ],
)  # fmt: skip
def test_a_frame_with_the_wrong_shape_is_unreadable(fields: dict[str, Any]) -> None:
    packed = msgspec.msgpack.encode(json.loads(json.dumps(fields).replace("\\ud83d", "")))
    for event in (
        read(fields),
        read({**RPC, "result": fields}),
        a2a.read(Frame(Side.SERVER, Kind.WS_BINARY, packed)),
    ):
        assert isinstance(event, a2a.Unreadable)
        assert event.reason
        assert "\n" not in event.reason


def test_a_cut_frame_and_an_error_without_a_code_are_unreadable() -> None:
    assert isinstance(a2a.read(sse(json.dumps(WRAPPED)[:-1])), a2a.Unreadable)
    assert isinstance(read({**RPC, "error": {"message": "no"}}), a2a.Unreadable)
    assert isinstance(read({**RPC, "error": "no"}), a2a.Unreadable)
    deep = '{"artifactUpdate":' * 100_000
    assert isinstance(a2a.read(sse(deep)), a2a.Unreadable)


@pytest.mark.parametrize(
    "payload",
    [
        "", "[DONE]", "null", "[]", '"jsonrpc"', '["artifactUpdate"]',
        '<html>"status" of "messageId"</html>',
        '{"type":"message_start","message":{"id":"m","role":"assistant","content":[]},"status":1}',
        '{"type":"response.created","response":{"status":"in_progress"}}',
        '{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"x"}]}}',
        '{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}',
        '{"jsonrpc":"2.0","id":1,"result":{"task":{"taskId":"t","status":"working"}}}',
        '{"jsonrpc":"2.0","id":1,"result":[{"kind":"task"}]}',
        '{"jsonrpc":"2.0","id":1,"result":7}',
        '{"jsonrpc":"2.0","method":"notifications/progress","params":{}}',
        '{"jsonrpc":"2.0","id":1,"result":null}',
        '{"error":{"type":"overloaded_error","message":"x"}}', '{"error":"x"}',
        '{"error":{"code":"rate_limit"}}', '{"error":null}',
        '{"kind":"message","text":"\\"messageId\\""}', '{"kind":"task","x":"\\"status"}',
        '{"kind":"artifact","x":1,"artifact":2}', '{"kind":7,"status":1}',
        '{"message":"x","status":"ok"}', '{"task":"x","status":"ok"}',
        '{"task":{},"message":{},"status":1}',
        '{"task":{},"message":{},"error":null}',
        '{"task":{"status":{}}}', '{"message":{},"status":{}}', '{"artifactUpdate":null}',
    ],
)  # fmt: skip
def test_what_is_not_of_this_protocol_is_none_and_leaves_no_reading(payload: str) -> None:
    for frame in (sse(payload), Frame(Side.SERVER, Kind.WS_TEXT, payload.encode())):
        assert a2a.read(frame) is None
        assert frame.reading is None


def test_msgpack_of_another_protocol_is_none() -> None:
    for value in ({"type": "x"}, {"status": 1}, {7: "artifact"}, {"error": 1.5, "status": [1]}):
        packed = msgspec.msgpack.encode(value)
        assert a2a.read(Frame(Side.SERVER, Kind.WS_BINARY, packed)) is None
        assert a2a.read(Frame(Side.SERVER, Kind.WS_BINARY, packed[:-1] + b"status")) is None


# --- heads and requests ---------------------------------------------------------------------------


def head(method: str, target: str, content_type: str = "") -> RequestHead:
    return RequestHead(method, target, (("Content-Type", content_type),) if content_type else ())


def test_the_dialect_reads_what_may_carry_the_protocol() -> None:
    reads = a2a.DIALECT.reads
    assert a2a.DIALECT.name == "a2a"
    assert reads(RequestHead("GET", "/any", (("Upgrade", "WebSocket"),)))
    assert reads(head("POST", "/any", "application/json; charset=utf-8"))
    assert reads(head("POST", "/any", "application/a2a+json"))
    assert reads(head("POST", "/v1/tasks/t:subscribe"))
    assert reads(head("GET", "/v1/tasks/t%3Asubscribe?x=1"))
    assert reads(head("GET", "/.well-known/agent-card.json"))
    assert reads(head("GET", "/tasks/t"))
    assert not reads(head("POST", "/any", "text/plain"))
    assert not reads(head("GET", "/any"))
    assert not reads(head("GET", "/tasks"))
    assert not reads(head("PUT", "/tasks/t", "application/json"))


def test_the_dialect_reads_streams_and_json_of_success() -> None:
    asked = head("POST", "/", "application/json")

    def reads(status: int, content_type: str) -> bool:
        return a2a.DIALECT.reads_response(
            asked, ResponseHead(status, (("Content-Type", content_type),))
        )

    assert reads(200, "text/event-stream; charset=utf-8")
    assert reads(200, "application/json")
    assert reads(200, "application/a2a+json")
    assert not reads(200, "text/html")
    assert not reads(500, "application/json")


@pytest.mark.parametrize("base", ["", "/agents/my%2Fone", "/v2/tenant"])
@pytest.mark.parametrize(
    ("method", "suffix", "asked"),
    [
        ("GET", "/.well-known/agent.json", a2a.Asked.CARD),
        ("GET", "/.well-known/agent-card.json", a2a.Asked.CARD),
        ("GET", "/agent/authenticatedExtendedCard", a2a.Asked.CARD),
        ("GET", "/v1/card", a2a.Asked.CARD),
        ("GET", "/card", a2a.Asked.CARD),
        ("GET", "/extendedAgentCard", a2a.Asked.CARD),
        ("POST", "/message:stream", a2a.Asked.STREAM),
        ("POST", "/v1/message:stream", a2a.Asked.STREAM),
        ("POST", "/v1/message%3astream", a2a.Asked.STREAM),
        ("POST", "/message:send", a2a.Asked.SEND),
        ("GET", "/tasks/t-1", a2a.Asked.GET),
        ("GET", "/v1/tasks/a:b", a2a.Asked.GET),
        ("GET", "/tasks/t-1:subscribe", a2a.Asked.SUBSCRIBE),
        ("POST", "/v1/tasks/a:b:subscribe", a2a.Asked.SUBSCRIBE),
        ("POST", "/tasks/t:cancel", a2a.Asked.OTHER),
        ("GET", "/v1/tasks", a2a.Asked.OTHER),
        ("GET", "/tasks/t/pushNotificationConfigs/p", a2a.Asked.OTHER),
        ("GET", "/message:stream", None),
        ("PUT", "/tasks/t:subscribe", None),
        ("POST", "/", None),
        ("POST", "", None),
    ],
)
def test_all_requests_to_an_agent_share_its_path(
    base: str, method: str, suffix: str, asked: a2a.Asked | None
) -> None:
    request = head(method, f"{base}{suffix}?A2A-Version=1.0")
    assert a2a.asked_by_path(request) is asked
    assert a2a.DIALECT.conversation_path(request) == (base or "/")
    assert a2a.card_path(request) is (asked is a2a.Asked.CARD)


def test_a_path_that_only_ends_alike_is_kept() -> None:
    for path in ("/chat/mytasks/t", "/discard", "/x/tasks/t/y", "/message:streams"):
        assert a2a.asked_by_path(head("GET", path)) is None
        assert a2a.DIALECT.conversation_path(head("GET", path)) == path
    assert not a2a.card_path(head("POST", "/card"))


METHODS = {
    "message/stream": a2a.Asked.STREAM,
    "SendStreamingMessage": a2a.Asked.STREAM,
    "tasks/resubscribe": a2a.Asked.SUBSCRIBE,
    "SubscribeToTask": a2a.Asked.SUBSCRIBE,
    "message/send": a2a.Asked.SEND,
    "SendMessage": a2a.Asked.SEND,
    "tasks/get": a2a.Asked.GET,
    "GetTask": a2a.Asked.GET,
    "agent/getAuthenticatedExtendedCard": a2a.Asked.CARD,
    "GetExtendedAgentCard": a2a.Asked.CARD,
    "ListTasks": a2a.Asked.OTHER,
    "tasks/cancel": a2a.Asked.OTHER,
    "tasks/pushNotificationConfig/set": a2a.Asked.OTHER,
    "CreateTaskPushNotificationConfig": a2a.Asked.OTHER,
    "tools/call": None,
}


@pytest.mark.parametrize(("method", "asked"), METHODS.items())
def test_a_json_rpc_method_tells_what_is_asked_for(method: str, asked: a2a.Asked | None) -> None:
    call = {"jsonrpc": "2.0", "id": 12345678901234567890123, "method": method, "params": {}}
    root = head("POST", "/", "application/json")
    text = json.dumps(call).encode()
    small = msgspec.msgpack.encode({**call, "id": None})
    for frame in (
        Frame(Side.CLIENT, Kind.BODY, text),
        Frame(Side.CLIENT, Kind.BODY, b"\xef\xbb\xbf" + text.replace(b"{}", b'["\\ud83d"]')),
        Frame(Side.CLIENT, Kind.WS_TEXT, text),
        Frame(Side.CLIENT, Kind.WS_BINARY, small),
    ):
        assert a2a.read_request(frame, root) is asked
    assert a2a.read_request(Frame(Side.SERVER, Kind.BODY, text), root) is None


def test_a_body_without_a_method_asks_by_its_path() -> None:
    stream = head("POST", "/v1/message:stream", "application/json")
    root = head("POST", "/", "application/json")
    for body in (b"", b'{"message":{}}', b'{"message":{"method":1}}', b'{"method":7}', b"method"):
        assert a2a.read_request(Frame(Side.CLIENT, Kind.BODY, body), stream) is a2a.Asked.STREAM
        assert a2a.read_request(Frame(Side.CLIENT, Kind.BODY, body), root) is None
        assert a2a.read_request(Frame(Side.CLIENT, Kind.WS_TEXT, body), stream) is None
