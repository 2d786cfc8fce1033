"""The repair at work in a proxy: what it learns from, whose history it knows, what it lets pass."""

import json
from typing import Any

import pytest
from tests.addons.history_order.rig import Fields, Rig, written
from tests.addons.history_order.talk import (
    APIS,
    MENDED,
    Chat,
    Claude,
    GeminiTalk,
    Responses,
    Said,
    Talk,
)

from midstream.core.addon import Mode
from midstream.core.exchange import RequestHead, ResponseHead
from midstream.core.frames import Side

USER = ("user", "q")
SAID = (("text", "Looking."), ("call", "c1"))
ORDERED = (USER, *SAID, ("result", "c1"), ("user", "go on"))
INVERTED = (USER, SAID[1], ("result", "c1"), SAID[0], ("user", "go on"))


def body(talk: type[Talk], *history: Said, **more: Any) -> bytes:
    return written(talk.request(*history, **more))


def taught(talk: type[Talk] = Responses, mode: Mode = Mode.REPAIR, **options: Any) -> Rig:
    """Return a proxy that has seen one response."""
    rig = Rig(mode, **options)
    rig.post(body(talk, USER), talk.events(*SAID), talk.path)
    assert len(rig.ledgers[0].records) == 1
    return rig


@pytest.mark.parametrize("talk", MENDED)
def test_a_text_behind_its_call_goes_back_in_front_of_it(talk):
    rig = taught(talk)
    assert json.loads(rig.post(body(talk, *INVERTED), path=talk.path)) == talk.request(*ORDERED)
    assert (rig.repairs, rig.pairs, rig.errors) == ({"reordered": 1}, (1, 1, 0), 0)


@pytest.mark.parametrize("talk", APIS)
def test_a_history_in_order_leaves_as_it_came(talk):
    rig = taught(talk)
    given = body(talk, *ORDERED)
    assert rig.post(given, path=talk.path) == given
    assert (rig.repairs, rig.errors) == ({}, 0)
    assert rig.skips == {"no_anchor": 1, "clean": 1}


@pytest.mark.parametrize("talk", APIS)
def test_a_response_that_comes_whole_is_learned_like_a_stream(talk):
    path = talk.path.replace(":streamGenerateContent", ":generateContent")
    rig = Rig()
    rig.post(body(talk, USER), written(talk.whole(*SAID)), path)
    rig.post(body(talk, *ORDERED), path=path)
    assert rig.pairs == (1, 0, 0)


def test_gemini_is_counted_and_never_changed():
    rig = taught(GeminiTalk)
    given = body(GeminiTalk, *INVERTED)
    assert rig.post(given, path=GeminiTalk.path) == given
    assert (rig.pairs, rig.repairs) == ((1, 1, 1), {})
    assert rig.skips["gemini_cross_turn"] == 1


def test_a_stream_of_gemini_in_a_json_array_is_never_held_back():
    rig = Rig()
    session = rig.open(
        RequestHead("POST", GeminiTalk.path, (("Content-Type", "application/json"),))
    )
    rig.sent(session, Side.CLIENT, body(GeminiTalk, USER))
    head = ResponseHead(200, (("Content-Type", "application/json"),))
    assert session.respond(head, 0) == "unread"


def test_an_answer_to_what_was_no_request_is_never_held_back():
    rig = Rig()
    head = RequestHead("POST", "/rooms/1/messages", (("Content-Type", "application/json"),))
    session = rig.open(head)
    rig.sent(session, Side.CLIENT, b'{"text":"hello"}')
    assert session.respond(ResponseHead(200, head.headers), 0) == "unread"


@pytest.mark.parametrize("talk", MENDED)
def test_observing_counts_and_changes_nothing(talk):
    rig = taught(talk, Mode.OBSERVE)
    given = body(talk, *INVERTED)
    assert rig.post(given, path=talk.path) == given
    assert (rig.repairs, rig.pairs) == ({"reordered": 1}, (1, 1, 0))


# --- whose history it is -------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["authorization", "x_api_key", "api_key", "x_goog_api_key"])
def test_what_was_said_under_one_credential_is_not_known_under_another(name):
    rig = Rig()
    one: dict[str, Any] = {name: "one"}
    two: dict[str, Any] = {name: "two"}
    rig.post(body(Responses, USER), Responses.events(*SAID), **one)
    given = body(Responses, *INVERTED)
    assert rig.post(given, **two) == given
    assert rig.post(given, **one) != given
    assert len(rig.ledgers) == 2


def test_the_path_of_a_request_does_not_matter():
    rig = taught()
    given = body(Responses, *INVERTED)
    assert rig.post(given, path="/other/v2/responses?api-version=1") != given


def test_two_conversations_on_one_credential_keep_apart():
    rig = Rig()
    other = (("text", "Looking."), ("call", "d1"))
    rig.post(body(Responses, USER), Responses.events(*SAID, response="r1"))
    rig.post(body(Responses, ("user", "p")), Responses.events(*other, response="r2"))
    for call in ("c1", "d1"):
        history = (USER, ("call", call), ("result", call), ("text", "Looking."))
        left = json.loads(rig.post(body(Responses, *history)))
        wanted = (USER, ("text", "Looking."), ("call", call), ("result", call))
        assert left == Responses.request(*wanted)


def test_a_history_that_quotes_two_branches_passes():
    rig = taught()
    more = (*ORDERED[:-1], ("user", "more"))
    for call in ("c2", "c3"):
        rig.post(body(Responses, *more), Responses.events(("text", f"of {call}"), ("call", call)))
    both = [USER]
    for call in ("c2", "c3"):
        both += [("call", call), ("result", call), ("text", f"of {call}")]
    given = body(Responses, *both)
    assert rig.post(given) == given
    assert rig.skips["ambiguous_fork"] == 1


@pytest.mark.parametrize("talk", MENDED)
def test_a_text_that_was_said_again_later_may_be_that_one(talk):
    """The client left out what was said first; what it sends stands in its right place."""
    rig = Rig()
    first, second = (("text", "ok"), ("call", "c1")), (("call", "c2"),)
    done = [USER, *first, ("result", "c1")]
    rig.post(body(talk, USER), talk.events(*first, response="r1"), talk.path)
    rig.post(body(talk, *done), talk.events(*second, response="r2"), talk.path)
    done += [*second, ("result", "c2")]
    rig.post(body(talk, *done), talk.events(("text", "ok"), response="r3"), talk.path)
    given = body(talk, *(said for said in done if said[0] != "text"), ("text", "ok"))
    assert rig.post(given, path=talk.path) == given
    assert rig.skips["ambiguous"] == 1
    assert rig.repairs == {}


def test_an_old_request_sent_again_is_judged_by_what_it_quotes():
    rig = taught()
    second = (("text", "Then."), ("call", "c2"))
    rig.post(body(Responses, *ORDERED), Responses.events(*second, response="r2"))
    assert rig.post(body(Responses, *INVERTED)) == body(Responses, *ORDERED)


def test_a_response_streamed_twice_is_remembered_once():
    rig = taught()
    for _ in range(3):
        rig.post(body(Responses, USER), Responses.events(*SAID))
    assert len(rig.ledgers[0].records) == 1
    assert rig.post(body(Responses, *INVERTED)) == body(Responses, *ORDERED)


# --- what is cut, forgotten, signed, or not readable ---------------------------------------------


@pytest.mark.parametrize("talk", [Responses, Claude])
def test_of_a_stream_that_was_cut_only_what_was_completed_is_known(talk):
    rig = Rig()
    rig.post(body(talk, USER), talk.events(*SAID, ("call", "c2"), cut=2), talk.path)
    (record,) = rig.ledgers[0].records
    assert len(list(rig.ledgers[0].outputs(record))) == 2
    assert not rig.ledgers[0].head(record).is_complete
    given = body(talk, *INVERTED)
    assert rig.post(given, path=talk.path) == given  # such a text is counted, but never moved
    assert rig.pairs == (1, 1, 1)
    assert rig.skips["blocked"] == 1


@pytest.mark.parametrize("talk", [Chat, GeminiTalk])
def test_where_nothing_tells_what_was_completed_a_cut_stream_is_not_learned(talk):
    rig = Rig()
    rig.post(body(talk, USER), talk.events(*SAID, cut=1), talk.path)
    assert rig.ledgers[0].records == {}


def test_a_stream_broken_off_is_learned_like_one_that_ended_too_soon():
    rig = Rig()
    session = rig.open(RequestHead("POST", Responses.path, (("Content-Type", "application/json"),)))
    rig.sent(session, Side.CLIENT, body(Responses, USER))
    session.respond(ResponseHead(200, (("Content-Type", "text/event-stream"),)), 0)
    for fields in Responses.events(*SAID, cut=1):
        session.receive(Side.SERVER, b"data: " + written(fields) + b"\n\n", 0)
    session.abort(0)
    assert len(rig.ledgers[0].records) == 1


def test_a_complete_repetition_completes_what_was_cut():
    rig = Rig()
    cut = Responses.events(*SAID)[:-1]
    rig.post(body(Responses, USER), cut)
    given = body(Responses, *INVERTED)
    assert rig.post(given) == given
    rig.post(body(Responses, USER), Responses.events(*SAID))
    assert rig.post(given) == body(Responses, *ORDERED)


def test_what_is_forgotten_no_longer_judges():
    rig = taught(max_responses=1)
    rig.post(body(Responses, ("user", "p")), Responses.events(("call", "d1"), response="r2"))
    given = body(Responses, *INVERTED)
    assert rig.post(given) == given
    assert rig.skips == {"no_anchor": 3}


def test_what_nobody_quoted_for_long_is_forgotten():
    rig = taught(max_age_hours=1)
    rig.now_ns = 3_602 * 10**9
    rig.post(body(Responses, ("user", "p")), Responses.events(("call", "d1"), response="r2"))
    assert len(rig.ledgers[0].records) == 1


@pytest.mark.parametrize(
    "headers",
    [
        {"Authorization": "AWS4-HMAC-SHA256 Credential=AKID/20261130/us-east-1/bedrock/aws4"},
        {"X_Amz_Content_Sha256": "e3b0c442"},
        {"Signature": "sig1=:AAAA:", "Signature_Input": 'sig1=("content-digest")'},
    ],
)
def test_a_signed_body_is_counted_and_never_changed(headers):
    rig = Rig()
    rig.post(body(Responses, USER), Responses.events(*SAID), **headers)
    given = body(Responses, *INVERTED)
    assert rig.post(given, **headers) == given
    assert (rig.pairs, rig.skips["signed"]) == ((1, 1, 1), 1)


@pytest.mark.parametrize("talk", APIS)
@pytest.mark.parametrize(
    "given",
    [
        b"", b"{", b"[]", b"null", b'"text"', b"\xff\xfe", b'{"a":' * 20_000,
        b'{"input":7,"messages":7,"contents":7}', b'{"input":[}', b"not json at all",
    ],
)  # fmt: skip
def test_a_body_that_holds_no_history_passes_and_is_counted(talk, given):
    rig = Rig()
    assert rig.post(given, path=talk.path) == given
    assert rig.skips == ({"unreadable": 1} if given else {})
    assert rig.errors == 0


@pytest.mark.parametrize("talk", APIS)
def test_a_truncated_body_passes(talk):
    rig = taught(talk)
    whole = body(talk, *INVERTED)
    for size in range(1, len(whole), 7):
        assert rig.post(whole[:size], path=talk.path) == whole[:size]
    assert (rig.repairs, rig.errors) == ({}, 0)


def test_a_body_over_the_limit_passes_unread():
    rig = taught()
    given = body(Responses, *INVERTED, padding="x" * (17 << 20))
    assert rig.post(given) == given
    assert rig.skips["too_large"] == 1


@pytest.mark.parametrize(
    "odd",
    [
        {"type": "compaction", "encrypted_content": "x"}, {"type": "no_such_type"}, {}, [], 7, None,
        "text", {"role": 7}, {"type": "message", "role": "assistant", "content": 7},
        {"type": "function_call"}, {"type": "function_call", "call_id": 7},
        {"type": "item_reference", "id": "nobody"}, {"role": "assistant", "content": "other"},
        {"type": "function_call_output", "call_id": "nobody", "output": ""},
    ],
)  # fmt: skip
def test_nothing_moves_past_an_item_that_is_not_known(odd):
    rig = taught()
    request = Responses.request(*INVERTED)
    request["input"].insert(3, odd)
    given = written(request)
    assert rig.post(given) == given
    assert (rig.pairs, rig.repairs, rig.errors) == ((1, 1, 1), {}, 0)
    request = Responses.request(*INVERTED)
    request["input"].insert(0, odd)  # not in between: everything else is mended
    assert rig.post(written(request)) != written(request)


def test_of_a_key_given_twice_the_last_one_counts_and_both_keep_their_bytes():
    rig = taught()
    given = body(Responses, *INVERTED)
    twice = b'{"input":[],' + given[1:]
    assert rig.post(twice) == b'{"input":[],' + body(Responses, *ORDERED)[1:]


def test_items_keep_their_bytes_and_so_does_what_stands_between_them():
    rig = taught()
    user = b'{"content":[{"text":"\\u0071","type":"input_text"}],  "role":"user"}'
    call = b'{"type":"function_call","call_id":"c1","arguments":"{}","name":"Read","n":1.50e2}'
    result = b'{ "output":"\\u00e9 \\/", "call_id":"c1","type":"function_call_output" }'
    text = b'{"role":"assistant",\t"content":"\\u004cooking."}'
    frame = (
        b'{\r\n "model": "m", "input": [\r\n  %s,\r\n  %s ,\n\n  %s,  %s\r\n ],\r\n "n": 1e400}\n'
    )
    given = frame % (user, call, result, text)
    assert rig.post(given) == frame % (user, text, call, result)


def test_half_a_character_in_a_text_is_no_trouble():
    rig = Rig()
    cut = [
        {"type": "response.output_item.added", "output_index": 0, "item": {"type": "message"}},
        *(
            {"type": "response.output_text.delta", "output_index": 0, "delta": delta}
            for delta in ("a \ud83d", "\ude00 b \ud83d")
        ),
        {"type": "response.output_item.done", "output_index": 0, "item": {"type": "message"}},
        *Responses.events(("reasoning", "E"), ("call", "c1"))[3:],
    ]
    ascii_only = [json.loads(json.dumps(event)) for event in cut]
    session = rig.open(RequestHead("POST", Responses.path, (("Content-Type", "application/json"),)))
    rig.sent(session, Side.CLIENT, body(Responses, USER))
    session.respond(ResponseHead(200, (("Content-Type", "text/event-stream"),)), 0)
    wire = b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in ascii_only)
    assert rig.sent(session, Side.SERVER, wire) == wire
    text = ("text", "a \U0001f600 b \ud83d")
    given = json.dumps(Responses.request(USER, ("call", "c1"), ("result", "c1"), text)).encode()
    wanted = Responses.request(USER, text, ("call", "c1"), ("result", "c1"))
    assert rig.post(given) == json.dumps(wanted).encode()


def test_a_text_leaves_a_message_with_signed_thinking_only_if_a_whole_response_stays():
    rig = taught(Claude)
    later = (("reasoning", "T"), ("text", "Done."))
    rig.post(body(Claude, *ORDERED[:4]), Claude.events(*later), Claude.path)
    inverted = (*INVERTED[:4], *later)
    left = rig.post(body(Claude, *inverted, ("user", "on")), path=Claude.path)
    assert json.loads(left) == Claude.request(*ORDERED[:4], *later, ("user", "on"))
    given = body(Claude, *inverted[:-1], ("user", "on"))
    assert rig.post(given, path=Claude.path) == given
    assert rig.skips["thinking_locked"] == 1


# --- WebSocket -----------------------------------------------------------------------------------


def create(*history: Said, **more: Any) -> Fields:
    return {"type": "response.create", **Responses.request(*history), **more}


def test_a_request_over_websocket_is_mended_like_one_over_http():
    rig = Rig()
    socket = rig.socket()
    assert socket.client(create(USER)) == create(USER)
    socket.server(*Responses.events(*SAID))
    assert socket.client(create(*INVERTED)) == create(*ORDERED)
    assert (rig.repairs, rig.pairs) == ({"reordered": 1}, (1, 1, 0))


def test_what_was_said_on_a_socket_is_known_on_the_next_one_and_over_http():
    rig = Rig()
    socket = rig.socket()
    socket.client(create(USER))
    socket.server(*Responses.events(*SAID))
    socket.end()
    assert rig.socket().client(create(*INVERTED)) == create(*ORDERED)
    assert rig.post(body(Responses, *INVERTED)) == body(Responses, *ORDERED)


@pytest.mark.parametrize("key", ["previous_response_id", "conversation"])
def test_what_only_adds_to_a_history_that_the_provider_holds_passes(key):
    rig = Rig()
    socket = rig.socket()
    socket.client(create(USER))
    socket.server(*Responses.events(*SAID))
    given = create(*INVERTED, **{key: "r"})
    assert socket.client(given) == given
    assert rig.skips["server_side_history"] == 1


def test_the_answer_to_a_delta_belongs_behind_the_response_it_names():
    rig = Rig()
    socket = rig.socket()
    socket.client(create(USER))
    socket.server(*Responses.events(*SAID, response="r1"))
    socket.client(create(("result", "c1"), previous_response_id="r1"))
    socket.server(*Responses.events(("text", "Done."), ("call", "c2"), response="r2"))
    sent = (USER, ("call", "c1"), ("result", "c1"), ("call", "c2"), ("result", "c2"))
    texts = (("text", "Looking."), ("text", "Done."))
    left = socket.client(create(*sent, *texts))
    assert left == create(USER, texts[0], *sent[1:3], texts[1], *sent[3:])


def test_streams_of_one_socket_are_told_apart():
    rig = Rig()
    socket = rig.socket()
    spoken = {"s1": (("text", "One."), ("call", "c1")), "s2": (("text", "Two."), ("call", "c2"))}
    for stream in spoken:
        socket.client(create(USER, stream_id=stream))
    events = {
        stream: [
            {**event, "stream_id": stream} for event in Responses.events(*said, response=stream)
        ]
        for stream, said in spoken.items()
    }
    for pair in zip(*events.values(), strict=True):
        socket.server(*pair)
    for stream, (text, call) in spoken.items():
        result = ("result", call[1])
        left = socket.client(create(USER, call, result, text, stream_id=stream))
        assert left == create(USER, text, call, result, stream_id=stream)


@pytest.mark.parametrize(
    "given",
    [
        {"type": "response.steer", "input": []}, {"type": "response.cancel"}, {"input": []}, {},
        {"type": "response.create", "input": 7}, {"type": ["response.create"], "input": []},
    ],
)  # fmt: skip
def test_other_messages_on_a_socket_pass(given):
    rig = Rig()
    socket = rig.socket()
    assert socket.client(given) == given
    socket.server({"type": "error"}, {}, {"type": "response.created"})
    assert (rig.repairs, rig.errors) == ({}, 0)


def test_a_socket_elsewhere_is_not_read():
    assert (
        Rig().open(RequestHead("GET", "/v1/realtime", (("Upgrade", "websocket"),))).state
        == "bypass"
    )
