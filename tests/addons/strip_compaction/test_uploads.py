"""What leaves towards the server: gates, regenerates, encodings, and input nobody should send."""

import json
from typing import Any

import msgspec
import pytest
from msgspec import msgpack
from tests.addons.strip_compaction.rig import (
    CLIENT,
    PATH,
    SERVER,
    Rig,
    answer,
    ids,
    stringify,
    summary,
    turn,
    user,
)

from midstream.core.addon import Mode
from midstream.core.frames import Frame, Kind
from midstream.dialects import cloudflare_chat as chat
from midstream.dialects.cloudflare_listing import Listing, read_listing
from midstream_addons.strip_compaction.options import Options

U1, U2, U3, U4 = (user(f"u{n}") for n in range(1, 5))
A1, A2, A3 = (answer(f"a{n}") for n in range(1, 4))
X = summary("x")
Y = summary("y", text="SUMMARY-2")
COMPACTED = [U1, X, U3, A3]


# --- the gates --------------------------------------------------------------------------------


def test_what_the_server_made_up_does_not_go_back_to_it():
    rig = Rig()
    socket = rig.think(COMPACTED)
    assert socket.uploads([*COMPACTED, U4]) == ["u1", "u3", "a3", "u4"]
    assert rig.repairs == {"synthetic_message": 1}


def test_an_id_learned_from_the_history_counts_like_one_from_a_list():
    rig = Rig()
    rig.get(stringify(COMPACTED))
    assert rig.think().uploads([*COMPACTED, U4]) == ["u1", "u3", "a3", "u4"]


def test_an_id_learned_on_one_socket_counts_on_all():
    rig = Rig()
    rig.think(COMPACTED).close()
    assert rig.socket().uploads([*COMPACTED, U4]) == ["u1", "u3", "a3", "u4"]


def test_every_synthetic_message_is_cut_however_often_it_stands_there():
    rig = Rig()
    socket = rig.think([U1, X, U3, Y, U4])
    assert socket.uploads([U1, X, U3, X, Y, U4]) == ["u1", "u3", "u4"]
    assert rig.repairs["synthetic_message"] == 1


def test_an_id_that_the_server_never_showed_goes_up_untouched():
    rig = Rig()
    wire = turn([U1, X, U4])
    assert rig.think([U1]).send(CLIENT, wire) == wire
    assert rig.skips == {"undelivered": 1}


def test_an_id_that_a_client_showed_first_is_never_taken_for_the_servers():
    rig = Rig()
    socket = rig.think([U1])
    socket.uploads([U1, X, U4])
    socket.lists([U1, X, U4])
    wire = turn([U1, X, U4, A1, U2])
    assert socket.send(CLIENT, wire) == wire
    assert rig.skips == {"undelivered": 1, "client_made": 1}


def test_an_id_that_a_clients_list_showed_first_is_never_taken_for_the_servers():
    rig = Rig()
    socket = rig.think([U1])
    socket.states([U1, X])
    socket.lists([U1, X])
    assert socket.uploads([U1, X, U4]) == ["u1", "compaction_x", "u4"]
    assert rig.skips == {"undelivered": 1, "client_made": 1}


def test_more_ids_from_clients_than_can_be_remembered_end_all_proof():
    rig = Rig(max_remembered_ids=2)
    socket = rig.think([U1, Y])
    socket.uploads([U1, *(summary(f"c{n}") for n in range(3))])
    socket.lists([U1, summary("c2"), X, Y])
    assert socket.uploads([U1, summary("c2"), X, Y, U4]) == [
        "u1", "compaction_c2", "compaction_x", "u4",
    ]  # fmt: skip


def test_another_chat_proves_nothing():
    rig = Rig()
    rig.think(COMPACTED)
    other = rig.socket("/agents/rig-think/other")
    other.lists([U1])
    assert other.uploads([*COMPACTED, U4]) == ids([*COMPACTED, U4])


@pytest.mark.parametrize(
    "message",
    [
        {**X, "role": "user"},
        {**X, "parts": [*X["parts"], *X["parts"]]},
        {**X, "parts": [{"type": "step-start"}, *X["parts"]]},
        {**X, "parts": [{"type": "file", "text": "SUMMARY"}]},
        {**X, "parts": []},
        {**X, "id": "compaction_"},
    ],
)
def test_a_message_of_another_form_goes_up_untouched(message):
    rig = Rig()
    socket = rig.think([U1, message, U3])
    wire = turn([U1, message, U3, U4])
    assert socket.send(CLIENT, wire) == wire
    assert rig.skips == {"other_form": 1}


def test_ids_that_only_hold_the_prefix_somewhere_are_ordinary():
    rig = Rig()
    message = {**X, "id": "my_compaction_x"}
    wire = turn([U1, message, user("u9", "compaction_x")])
    assert rig.think([U1, message]).send(CLIENT, wire) == wire
    assert (rig.repairs, rig.skips) == ({}, {})


def test_prefixes_are_an_option():
    rig = Rig(prefixes=("sum_", "zusammenfassung-ü"))
    first, second = {**X, "id": "sum_1"}, {**X, "id": "zusammenfassung-ü2"}
    socket = rig.think([U1, first, second, X])
    assert socket.uploads([U1, first, second, X, U4]) == ["u1", "compaction_x", "u4"]
    escaped = json.dumps(json.loads(turn([U1, second, U4]))).encode()
    assert b"u9" not in socket.send(CLIENT, escaped.replace(b"zus", b"zus"))
    assert "zusammenfassung-ü2" not in json.loads(socket.send(CLIENT, escaped))["init"]["body"]


def test_without_prefixes_nothing_is_looked_at():
    rig = Rig(prefixes=())
    assert rig.think(COMPACTED).uploads(COMPACTED) == ids(COMPACTED)
    assert (rig.repairs, rig.skips) == ({}, {})


@pytest.mark.parametrize("bad", [{"prefixes": [""]}, {"server": "other"}, {"more": 1}])
def test_options_that_make_no_sense_are_refused(bad):
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(bad, Options)


# --- which server it is -----------------------------------------------------------------------


def test_a_server_that_stays_silent_on_connect_stores_uploads_and_is_left_alone():
    rig = Rig()
    rig.get(stringify(COMPACTED))
    wire = turn([*COMPACTED, U4])
    assert rig.aichat().send(CLIENT, wire) == wire
    assert rig.skips == {"stores_uploads": 1}


def test_one_silent_connect_outweighs_lists_that_are_pushed_later():
    rig = Rig()
    first, second = rig.aichat(), rig.aichat()
    first.uploads([U1])
    first.answers()
    second.lists([U1, X, A1])  # to the other tab, after a turn
    third = rig.socket()
    third.lists([U1, X, A1])
    for socket in (first, second, third):
        assert socket.uploads([U1, X, A1, U2]) == ["u1", "compaction_x", "a1", "u2"]
    assert rig.skips == {"stores_uploads": 3}


def test_a_list_for_another_tabs_turn_does_not_show_that_the_server_pushes_lists():
    rig = Rig()
    first, second = rig.socket(), rig.socket()
    first.uploads([U1])
    second.lists([U1, X, A1])
    assert second.uploads([U1, X, A1, U2]) == ["u1", "compaction_x", "a1", "u2"]
    assert rig.skips == {"no_transcript": 1}


def test_a_list_after_a_clients_list_does_not_show_that_the_server_pushes_lists():
    rig = Rig()
    first, second = rig.socket(), rig.socket()
    first.states([U1, A1])
    second.lists([U1, X, A1])
    assert second.uploads([U1, X, U2]) == ["u1", "compaction_x", "u2"]


def test_a_list_after_a_continuation_does_not_show_that_the_server_pushes_lists():
    rig = Rig()
    socket = rig.socket()
    socket.uploads([U1])
    socket.client(type="cf_agent_tool_result", toolCallId="c", toolName="t", output=1)
    socket.lists([U1, X, A1])
    assert socket.uploads([U1, X, A1, U2]) == ["u1", "compaction_x", "a1", "u2"]


@pytest.mark.parametrize(
    "sign",
    [
        {"type": "cf_agent_stream_resuming", "id": "r0"},
        {"type": "cf_agent_stream_pending", "id": "r0"},
        {"type": "cf_agent_use_chat_response", "id": "r0", "body": "{}", "done": False},
    ],
)
def test_a_list_after_a_stream_of_another_does_not_show_that_the_server_pushes_lists(sign):
    rig = Rig()
    socket = rig.socket()
    socket.server(**sign)
    socket.server(type="cf_agent_stream_resume_none")
    socket.lists([U1, X, A1])
    assert socket.uploads([U1, X, A1, U2]) == ["u1", "compaction_x", "a1", "u2"]
    assert rig.skips == {"no_transcript": 1}  # nor that it stays silent


def test_a_list_after_a_continuation_that_the_server_began_shows_nothing():
    rig = Rig()
    socket = rig.socket()
    socket.uploads([U1])
    socket.answers("r2", continuation=True)
    socket.lists([U1, X, A1])
    assert socket.uploads([U1, X, A1, U2]) == ["u1", "compaction_x", "a1", "u2"]


def test_a_list_to_the_socket_that_asked_shows_that_the_server_pushes_lists():
    rig = Rig()
    socket = rig.socket()
    socket.uploads([U1])
    socket.answers()
    socket.lists([U1, X, A1])
    assert socket.uploads([U1, X, A1, U2]) == ["u1", "a1", "u2"]


def test_a_socket_that_met_a_running_stream_learns_from_its_own_next_turn():
    rig = Rig()
    socket = rig.socket()
    socket.server(type="cf_agent_stream_resuming", id="r0")
    socket.answers("r0", replay=True)
    socket.lists([U1, X, A1])
    socket.uploads([U1, U2])
    socket.answers()
    socket.lists([U1, X, A1, U2, A2])
    assert socket.uploads([U1, X, A1, U2, A2, U3]) == ["u1", "a1", "u2", "a2", "u3"]


def test_a_turn_sent_while_another_stream_runs_explains_no_list():
    rig = Rig()
    socket = rig.socket()
    socket.server(type="cf_agent_stream_resuming", id="r0")
    socket.uploads([U1, U2])
    socket.lists([U1, X, A1])
    assert socket.uploads([U1, X, A1, U2]) == ["u1", "compaction_x", "a1", "u2"]


def test_without_any_list_over_a_websocket_the_history_alone_is_no_proof():
    rig = Rig()
    rig.get(stringify(COMPACTED))
    wire = turn([*COMPACTED, U4])
    assert rig.socket().send(CLIENT, wire) == wire
    assert rig.skips == {"no_transcript": 1}


def test_only_the_first_answer_that_nothing_runs_tells_of_a_silent_server():
    rig = Rig()
    socket = rig.think(COMPACTED)
    socket.server(type="cf_agent_stream_resume_none")
    assert not rig.chat.stays_silent
    later = rig.socket()
    later.server(type="cf_agent_stream_resuming", id="r0")
    later.server(type="cf_agent_stream_resume_none", reason="continuation-owned")
    later.server(type="cf_agent_stream_resume_none")
    assert socket.uploads([*COMPACTED, U4]) == ["u1", "u3", "a3", "u4"]


def test_a_socket_that_was_answered_while_a_stream_ran_is_not_judged_again():
    rig = Rig()
    rig.think(COMPACTED)
    socket = rig.socket()
    socket.server(type="cf_agent_stream_resuming", id="r0")
    socket.server(type="cf_agent_stream_resume_none", reason="continuation-owned")
    socket.answers("r0")
    socket.uploads([U1])
    socket.server(type="cf_agent_stream_resume_none")
    assert not rig.chat.stays_silent


def test_turns_before_a_socket_opened_do_not_explain_its_list():
    rig = Rig()
    earlier = rig.socket()
    earlier.uploads([U1])
    earlier.client(type="cf_agent_tool_result", toolCallId="c", output=1)
    earlier.close()
    assert rig.think(COMPACTED).uploads([*COMPACTED, U4]) == ["u1", "u3", "a3", "u4"]


def test_a_server_that_sends_a_clients_list_on_stores_uploads():
    rig = Rig()
    first, second = rig.think(COMPACTED), rig.think(COMPACTED)
    assert first.states([U1, U3, A3]) == ["u1", "u3", "a3"]
    second.lists([U1, U3, A3])
    wire = turn([*COMPACTED, U4])
    assert second.send(CLIENT, wire) == wire
    assert rig.skips == {"stores_uploads": 1}


def test_a_list_that_says_the_same_to_the_socket_that_said_it_shows_nothing():
    rig = Rig()
    socket = rig.think(COMPACTED)
    socket.states([U1, U3, A3])
    socket.lists([U1, U3, A3])
    assert not rig.chat.takes_lists


@pytest.mark.parametrize("how", ["during a turn", "before a turn", "before a tool result"])
def test_a_list_that_a_turn_may_have_brought_does_not_tell_of_storing(how):
    rig = Rig()
    first, second = rig.think([U1, X, A1]), rig.think([U1, X, A1])
    if how == "during a turn":
        first.uploads([U1, A1, U2])
    first.states([U1, A1, U2, A2])
    if how == "before a turn":
        first.uploads([U1, A1, U2, A2])
    if how == "before a tool result":
        first.client(type="cf_agent_tool_result", toolCallId="c", output=1)
    second.lists([U1, A1, U2, A2])
    assert not rig.chat.takes_lists
    assert second.uploads([U1, X, A1]) == ["u1", "a1"]


def test_another_list_than_the_clients_does_not_tell_of_storing():
    rig = Rig()
    first, second = rig.think(COMPACTED), rig.think(COMPACTED)
    first.states([U1, U3])
    second.lists(COMPACTED)
    assert not rig.chat.takes_lists


def test_a_socket_opened_later_does_not_tell_of_storing():
    rig = Rig()
    rig.think(COMPACTED).states([U1, U3, A3])
    rig.think([U1, U3, A3])
    assert not rig.chat.takes_lists


def test_a_declared_aichat_is_never_touched():
    rig = Rig(server="aichat")
    socket = rig.think(COMPACTED)
    wire = turn([*COMPACTED, U4])
    assert socket.send(CLIENT, wire) == wire
    assert socket.lists([U1, X, U3, X]) == ["u1", "compaction_x", "u3", "compaction_x"]
    assert (rig.repairs, rig.skips) == ({}, {"stores_uploads": 1})


def test_a_declared_think_needs_no_proof():
    rig = Rig(server="think")
    assert rig.aichat().uploads([*COMPACTED, U4]) == ["u1", "u3", "a3", "u4"]


def test_a_declared_think_that_sends_a_clients_list_on_is_left_alone_all_the_same():
    rig = Rig(server="think")
    first, second = rig.think(COMPACTED), rig.think(COMPACTED)
    first.states([U1, A1])
    second.lists([U1, A1])
    assert first.uploads([*COMPACTED, U4]) == ids([*COMPACTED, U4])
    assert rig.skips == {"stores_uploads": 1}


def test_a_clients_list_is_cleaned_like_a_turn():
    rig = Rig()
    socket = rig.think(COMPACTED)
    assert socket.states([*COMPACTED, U4]) == ["u1", "u3", "a3", "u4"]
    assert rig.repairs == {"synthetic_message": 1}


def test_what_was_sent_on_of_a_clients_list_is_what_a_storing_server_shows():
    rig = Rig()
    first, second = rig.think(COMPACTED), rig.think(COMPACTED)
    assert first.states(COMPACTED) == ["u1", "u3", "a3"]
    second.lists([U1, U3, A3])
    assert rig.chat.takes_lists


def test_observing_compares_with_what_really_went_up():
    rig = Rig(Mode.OBSERVE)
    first, second = rig.think(COMPACTED), rig.think(COMPACTED)
    assert first.states(COMPACTED) == ids(COMPACTED)
    second.lists([U1, U3, A3])
    assert not rig.chat.takes_lists
    second.lists(COMPACTED)
    assert rig.chat.takes_lists


@pytest.mark.parametrize("side", [CLIENT, SERVER])
def test_an_emptied_chat_forgets_its_messages(side):
    rig = Rig()
    socket = rig.think(COMPACTED)
    size = rig.chat.size_bytes
    socket.send(side, b'{"type":"cf_agent_chat_clear"}')
    assert rig.chat.size_bytes < size / 4
    assert socket.uploads([*COMPACTED, U4]) == ids([*COMPACTED, U4])
    assert rig.skips == {"undelivered": 1}


def test_what_a_server_is_does_not_change_when_its_chat_is_emptied():
    rig = Rig()
    socket = rig.aichat()
    socket.client(type="cf_agent_chat_clear")
    rig.get(stringify(COMPACTED))
    assert socket.uploads([*COMPACTED, U4]) == ids([*COMPACTED, U4])
    assert rig.skips == {"stores_uploads": 1}


def test_an_upload_of_nothing_else_is_left_alone():
    rig = Rig()
    wire = turn([X])
    assert rig.think([U1, X]).send(CLIENT, wire) == wire
    assert rig.skips == {"nothing_left": 1}


# --- regenerates ------------------------------------------------------------------------------

BEFORE = [U1, A1, U2, A2, U3, A3]
AFTER = [U1, summary("r"), A3]  # the range a1 to u3


def regenerated(rig: Rig, before: list[Any], after: list[Any], upload: list[Any]) -> list[str]:
    socket = rig.think(before)
    socket.lists(after)
    return socket.uploads(upload, "regenerate-message")


def test_a_regenerate_that_ends_in_a_users_message_is_stripped_like_any_turn():
    rig = Rig()
    after = [U1, summary("r"), U3, A3]
    assert regenerated(rig, BEFORE, after, after[:3]) == ["u1", "u3"]
    assert rig.repairs == {"synthetic_message": 1}


def test_a_regenerate_that_ends_in_a_synthetic_message_gets_the_ranges_last_real_one():
    rig = Rig()
    socket = rig.think(BEFORE)
    socket.lists(AFTER)
    wire = turn(AFTER[:2], "regenerate-message", clientTools=[1.0])
    left = socket.send(CLIENT, wire)
    assert left == turn([U1, U3], "regenerate-message", clientTools=[1.0])
    assert (rig.repairs, rig.skips) == ({"range_end": 1}, {})


def test_a_submit_that_ends_in_a_synthetic_message_is_only_stripped():
    rig = Rig()
    socket = rig.think(BEFORE)
    socket.lists(AFTER)
    assert socket.uploads(AFTER[:2]) == ["u1"]


def test_a_regenerate_whose_range_is_unknown_keeps_that_one_message():
    rig = Rig()
    socket = rig.think([U1, X, U2, Y, A3])
    assert socket.uploads([U1, X, U2, Y], "regenerate-message") == ["u1", "u2", "compaction_y"]
    assert rig.repairs == {"synthetic_message": 1}
    assert rig.skips == {"unknown_range_end": 1}
    wire = turn([U1, Y], "regenerate-message")
    assert socket.send(CLIENT, wire) == wire


def test_a_range_end_is_learned_once_and_kept():
    rig = Rig()
    socket = rig.think(BEFORE)
    for second in range(3):
        socket.lists([U1, summary("r", second), A3, user(f"n{second}")])
    left = json.loads(socket.send(CLIENT, turn(AFTER[:2], "regenerate-message")))
    assert json.loads(left["init"]["body"])["messages"] == [U1, U3]


def test_a_range_that_ends_in_another_synthetic_message_ends_where_that_one_does():
    rig = Rig()
    socket = rig.think(BEFORE)
    socket.lists([U1, X, A3])
    socket.lists([Y, A3])
    assert socket.uploads([Y], "regenerate-message") == ["u3"]


def test_nothing_is_put_in_the_place_of_a_stored_copy():
    rig = Rig()
    socket = rig.think(BEFORE)
    socket.lists([U1, X, A3, U4])
    left = socket.uploads([U1, X, A3, X], "regenerate-message")
    assert left == ["u1", "a3", "compaction_x"]
    assert rig.skips == {"unknown_range_end": 1}


def test_nothing_is_put_in_that_the_upload_already_holds():
    rig = Rig()
    socket = rig.think(BEFORE)
    socket.lists(AFTER)
    left = socket.uploads([U1, U3, summary("r")], "regenerate-message")
    assert left == ["u1", "u3", "compaction_r"]


def test_no_range_end_is_guessed_from_a_message_that_the_list_before_does_not_hold():
    rig = Rig()
    left = regenerated(rig, BEFORE, [U1, X, U4, A1], [U1, X])
    assert left == ["u1", "compaction_x"]
    assert rig.skips == {"unknown_range_end": 1}


def test_no_range_end_is_guessed_for_a_synthetic_message_at_the_end_of_the_list():
    assert regenerated(Rig(), BEFORE, [U1, X], [U1, X]) == ["u1", "compaction_x"]


def test_no_range_end_is_guessed_where_the_next_message_was_the_first():
    assert regenerated(Rig(), BEFORE, [X, U1], [X]) == ["compaction_x"]


def test_a_range_end_that_the_server_has_changed_is_put_in_as_it_is_now():
    rig = Rig()
    socket = rig.think(BEFORE)
    newer = user("u3", "newer")
    socket.server(type="cf_agent_message_updated", message=newer)
    socket.lists(AFTER)
    wire = turn(AFTER[:2], "regenerate-message")
    assert socket.send(CLIENT, wire) == turn([U1, newer], "regenerate-message")
    newest = user("u3", "newest")
    socket.server(type="cf_agent_message_updated", message=newest)
    assert socket.send(CLIENT, wire) == turn([U1, newest], "regenerate-message")


def test_of_a_long_list_only_the_end_is_remembered():
    tail = len(stringify(U3)) + len(stringify(A3))
    for extra, expected in ((0, "u3"), (-1, "compaction_r")):
        rig = Rig(max_remembered_bytes=tail + extra)
        assert regenerated(rig, BEFORE, AFTER, AFTER[:2]) == ["u1", expected]


def test_range_ends_are_bounded_in_bytes():
    rig = Rig(max_remembered_bytes=4 * len(stringify(U1)))
    socket = rig.think([user("m0")])
    for n in range(9):
        socket.lists([user("p0"), user("n0")])
        socket.lists([summary(f"s{n}"), user("n0")])
    assert 0 < len(rig.chat.range_ends) <= 4
    assert "compaction_s8" in rig.chat.range_ends
    assert rig.addon.conversation_bytes(rig.chat) < 9_000


# --- other encodings --------------------------------------------------------------------------


def test_a_posted_body_is_stripped_like_a_turn():
    rig = Rig()
    rig.get(stringify(COMPACTED))
    body = b'{"n": 1.50, "messages": [' + b" , ".join(map(stringify, COMPACTED)) + b'], "m":1e2 }'
    left = rig.post(body)
    assert json.loads(left)["messages"] == [U1, U3, A3]
    assert left == body.replace(b" , " + stringify(X), b"")
    assert rig.repairs == {"synthetic_message": 1}


def test_a_posted_regenerate_gets_the_ranges_last_real_message():
    rig = Rig()
    rig.get(stringify(BEFORE))
    rig.get(stringify(AFTER))
    body = stringify({"trigger": "regenerate-message", "messages": AFTER[:2]})
    assert json.loads(rig.post(body))["messages"] == [U1, U3]


def test_a_posted_body_for_a_storing_server_is_left_alone():
    rig = Rig()
    rig.aichat()
    rig.get(stringify(COMPACTED))
    body = stringify({"messages": COMPACTED})
    assert rig.post(body) == body
    assert rig.skips == {"stores_uploads": 1}


def test_other_bodies_that_name_such_an_id_pass_uncounted():
    rig = Rig()
    for body in (
        b'{"messages":"compaction_x"}',
        b'"compaction_x"',
        b"[compaction_x",
        b"\xffcompaction_x",
    ):
        assert rig.post(body) == body
    assert (rig.skips, rig.errors) == ({}, 0)


PACKED_TYPES = ("application/msgpack", "application/x-msgpack", "application/vnd.msgpack")


@pytest.mark.parametrize("content_type", PACKED_TYPES)
def test_a_posted_msgpack_body_is_stripped(content_type):
    rig = Rig()
    rig.get(stringify(COMPACTED))
    body = msgpack.encode({"trigger": "submit-message", "messages": COMPACTED, "n": 2**63})
    left = rig.post(body, content_type)
    kept = {"trigger": "submit-message", "messages": [U1, U3, A3], "n": 2**63}
    assert left == msgpack.encode(kept)


def packed_turn(messages: list[Any], *, is_text: bool, trigger: str = "submit-message") -> bytes:
    body: object = {"messages": messages, "trigger": trigger}
    if is_text:
        body = stringify(body).decode()
    init = {"method": "POST", "body": body}
    return msgpack.encode({"id": "r", "init": init, "type": "cf_agent_use_chat_request"})


@pytest.mark.parametrize("is_text", [True, False])
def test_a_msgpack_turn_is_stripped(is_text):
    rig = Rig()
    socket = rig.think(COMPACTED)
    wire = packed_turn([*COMPACTED, U4], is_text=is_text)
    left = socket.send(CLIENT, wire, Kind.WS_BINARY)
    assert left == packed_turn([U1, U3, A3, U4], is_text=is_text)
    assert rig.repairs == {"synthetic_message": 1}


def test_a_bare_msgpack_map_is_stripped():
    rig = Rig()
    socket = rig.think(COMPACTED)
    left = socket.send(CLIENT, msgpack.encode({"messages": COMPACTED}), Kind.WS_BINARY)
    assert msgpack.decode(left) == {"messages": [U1, U3, A3]}


def test_a_chat_that_speaks_only_msgpack_is_mended_whole():
    rig = Rig()
    socket = rig.socket()

    def lists(messages: list[Any]) -> list[str]:
        wire = msgpack.encode({"type": "cf_agent_chat_messages", "messages": messages})
        return ids(msgpack.decode(socket.send(SERVER, wire, Kind.WS_BINARY))["messages"])

    assert lists(BEFORE) == ids(BEFORE)
    assert lists(AFTER) == ids(AFTER)
    assert lists([*AFTER, summary("r", 9)]) == ids(AFTER)
    wire = packed_turn(AFTER[:2], is_text=False, trigger="regenerate-message")
    left = socket.send(CLIENT, wire, Kind.WS_BINARY)
    assert left == packed_turn([U1, U3], is_text=False, trigger="regenerate-message")
    assert rig.repairs == {"repeated_message": 1, "range_end": 1}


def test_a_message_of_one_encoding_is_not_put_into_another():
    rig = Rig()
    socket = rig.think(BEFORE)
    socket.lists(AFTER)
    wire = packed_turn(AFTER[:2], is_text=False, trigger="regenerate-message")
    assert socket.send(CLIENT, wire, Kind.WS_BINARY) == wire
    assert rig.skips == {"unknown_range_end": 1}


@pytest.mark.parametrize("kind", ["silent", "busy", "clear"])
def test_a_server_that_speaks_msgpack_is_known_by_the_same_signs(kind):
    rig = Rig()
    socket = rig.socket()
    types = {
        "silent": "cf_agent_stream_resume_none",
        "busy": "cf_agent_use_chat_response",
        "clear": "cf_agent_chat_clear",
    }
    if kind == "clear":
        socket.lists(COMPACTED)
    socket.send(SERVER, msgpack.encode({"type": types[kind]}), Kind.WS_BINARY)
    if kind != "clear":
        socket.lists(COMPACTED)
    assert socket.uploads([*COMPACTED, U4]) == ids([*COMPACTED, U4])
    reasons = {"silent": "stores_uploads", "busy": "no_transcript", "clear": "undelivered"}
    assert rig.skips == {reasons[kind]: 1}


# --- what nobody should send ------------------------------------------------------------------

DEEP = b"[" * 60_000 + b"]" * 60_000


@pytest.mark.parametrize(
    ("wire", "reason"),
    [
        (turn(COMPACTED)[:-1], "unreadable"),
        (turn(COMPACTED)[:200], ""),
        (b"\xff\xfe" + turn(COMPACTED), "unreadable"),
        (turn(COMPACTED).replace(b'"init":{', b'"init":[{'), "unreadable"),
        (turn(COMPACTED).replace(rb"\"messages\":[", rb"\"messages\":{"), "unreadable"),
        (turn(COMPACTED).replace(rb"\"messages\"", rb"\"other\""), "unreadable"),
        (turn(COMPACTED).replace(b'"id":"r1"', b'"id":7'), "unreadable"),
        (turn([X, U4]).replace(rb"\"compaction_x\"", rb"7"), ""),
        (turn([X, U4]).replace(rb"\"id\":\"compaction_x\"", rb"\"id\":[\"compaction_x\"]"), ""),
        (turn(COMPACTED).replace(b'"POST"', b'"PUT"'), ""),
        (turn(COMPACTED).replace(b"_request", b"_other"), ""),
        (b'{"type":"rpc","args":["compaction_x"]}', ""),
        (b'{"type":"cf_agent_state","state":"compaction_x"}', ""),
        (b'{"messages":[],"type":"cf_agent_chat_messages"}', ""),
        (b'{"messages":["compaction_x",7,null],"type":"cf_agent_chat_messages"}', ""),
        (b'{"messages":{"a":"compaction_x"},"type":"cf_agent_chat_messages"}', "unreadable"),
        (b"", ""),
        (b"compaction_x", ""),
    ],
)
def test_what_cannot_be_read_passes_as_it_came(wire, reason):
    rig = Rig()
    socket = rig.think(COMPACTED)
    assert socket.send(CLIENT, wire) == wire
    assert (rig.repairs, rig.errors) == ({}, 0)
    assert rig.skips == ({reason: 1} if reason else {})
    assert socket.uploads([*COMPACTED, U4]) == ["u1", "u3", "a3", "u4"]


def test_a_body_that_no_parser_takes_is_not_edited():
    rig = Rig()
    rig.get(stringify(COMPACTED))
    body = stringify({"messages": COMPACTED}).replace(b'"hi"', b'"h\x01i"', 1)
    assert rig.post(body) == body
    assert rig.skips == {"not_editable": 1}


def test_a_turn_nested_too_deeply_to_be_edited_passes_and_is_counted():
    rig = Rig()
    socket = rig.think(COMPACTED)
    body = stringify({"messages": COMPACTED}).replace(b'"hi"', DEEP, 1).decode()
    wire = stringify(
        {"id": "r", "init": {"method": "POST", "body": body}, "type": "cf_agent_use_chat_request"}
    )
    assert socket.send(CLIENT, wire) == wire
    assert (rig.skips, rig.errors) == ({"unreadable": 1}, 0)


@pytest.mark.parametrize(
    "wire",
    [
        msgpack.encode({"type": "cf_agent_use_chat_request", "init": "compaction_x"}),
        msgpack.encode({"type": "cf_agent_chat_messages", "messages": "compaction_x"}),
        packed_turn(COMPACTED, is_text=True)[:-1],
        packed_turn(COMPACTED, is_text=True).replace(b"body\xda", b"body\xc5"),
        packed_turn(COMPACTED, is_text=True).replace(b'"messages"', b'"Messages"'),
        packed_turn(COMPACTED, is_text=False).replace(b"messages", b"Messages"),
        packed_turn(COMPACTED, is_text=False) + b"\x00",
    ],
)
def test_msgpack_that_cannot_be_read_passes_as_it_came(wire):
    rig = Rig()
    socket = rig.think(COMPACTED)
    assert socket.send(CLIENT, wire, Kind.WS_BINARY) == wire
    assert (rig.repairs, rig.errors) == ({}, 0)


def test_msgpack_messages_that_are_no_messages_stay_where_they_are():
    rig = Rig()
    socket = rig.think(COMPACTED)
    odd = ["compaction_x", {"id": 7, "x": "compaction_x"}, {"id": "compaction_x"}, [X], b"\xff"]
    left = socket.send(CLIENT, packed_turn([*odd, X], is_text=False), Kind.WS_BINARY)
    assert left == packed_turn(odd, is_text=False)
    assert rig.skips == {"other_form": 1}


@pytest.mark.parametrize(
    "wire",
    [
        b"\x93\x01\xaccompaction_x\x02",
        msgpack.encode({"type": "other", "messages": COMPACTED}),
        msgpack.encode({1: 2, "messages": COMPACTED}),
        msgpack.encode({"note": "compaction_x"}),
        packed_turn(COMPACTED, is_text=True).replace(b"POST", b"PUTT"),
        b"\xc1compaction_x",
        b"{" + turn(COMPACTED),
        turn(COMPACTED),
    ],
)
def test_binary_messages_of_others_pass_uncounted_or_unread(wire):
    rig = Rig()
    socket = rig.think(COMPACTED)
    assert socket.send(CLIENT, wire, Kind.WS_BINARY) == wire
    assert (rig.repairs, rig.errors) == ({}, 0)


def test_lone_surrogates_and_odd_numbers_around_a_cut_keep_their_bytes():
    rig = Rig()
    socket = rig.think(COMPACTED)
    odd = (
        rb'{"id":"u4","role":"user","parts":[{"type":"text","text":"\ud83d \u00e9 \/"}],'
        rb'"n":[1.0,1e400,12345678901234567890123,-0],"n":2}'
    )
    inner = b'{"messages":[' + b",".join([stringify(U1), stringify(X), odd]) + b'],"x":"\\ud800"}'
    wire = (
        b'{"type":"cf_agent_use_chat_request","id":"r","init":{"method":"POST","body":'
        + stringify(inner.decode())
        + b"}}"
    )
    left = socket.send(CLIENT, wire)
    escaped = stringify(stringify(X).decode())[1:-1] + b","
    assert left == wire.replace(escaped, b"")
    assert len(left) == len(wire) - len(escaped)


def test_a_lone_surrogate_in_the_summary_itself_does_not_hide_it():
    rig = Rig()
    socket = rig.think()
    odd = stringify(X).replace(b"SUMMARY", rb"SUM\ud83dMARY")
    socket.send(SERVER, b'{"type":"cf_agent_chat_messages","messages":[' + odd + b"]}")
    body = b'{"messages":[' + odd + b"," + stringify(U4) + b"]}"
    assert rig.post(body) == b'{"messages":[' + stringify(U4) + b"]}"


def test_of_repeated_keys_the_last_one_is_meant():
    rig = Rig()
    rig.think(COMPACTED)
    first, last = stringify([X, U1]), stringify([X, U4])
    body = b'{"messages":' + first + b',"messages":' + last + b"}"
    assert rig.post(body) == b'{"messages":' + first + b',"messages":' + stringify([U4]) + b"}"


def test_an_escaped_copy_of_the_same_turn_keeps_its_own_escapes():
    rig = Rig()
    socket = rig.think([user("u1", 'häl"lo\n'), X, U3])
    messages = [user("u1", 'häl"lo\n'), X, U3]
    body = json.dumps({"messages": messages, "trigger": "submit-message"}, indent=1)
    fields = {
        "type": "cf_agent_use_chat_request",
        "id": "r",
        "init": {"method": "POST", "body": body},
    }
    left = socket.send(CLIENT, json.dumps(fields, indent=2).encode())
    inner = json.loads(left)["init"]["body"]
    assert inner.count("h\\u00e4l") == 1
    assert json.loads(inner)["messages"] == [messages[0], U3]
    assert set(left.split(b"\\n")) <= set(json.dumps(fields, indent=2).encode().split(b"\\n"))


# --- large frames -----------------------------------------------------------------------------


def test_a_turn_of_five_megabytes_is_stripped_and_read_only_once(monkeypatch):
    rig = Rig()
    socket = rig.think(COMPACTED)
    many = [user(f"m{n}", 'wörld "x"\n' * 90) for n in range(5_000)]
    wire = turn([U1, X, *many, U4])
    assert len(wire) > 5_000_000
    decoded: list[Any] = []
    monkeypatch.setattr(chat, "_decode", counted(decoded, chat._decode))
    monkeypatch.setattr(chat, "read_upload_body", counted(decoded, chat.read_upload_body))
    frame = socket.frame(CLIENT, wire)
    assert frame.wire == turn([U1, *many, U4])
    request = chat.read(frame)
    assert isinstance(request, chat.ChatRequest)
    upload = chat.read_upload(request)
    assert upload is not None
    assert [json.loads(message) for message in upload.messages] == [U1, *many, U4]
    assert (request.id, upload.trigger, len(decoded)) == ("r1", "submit-message", 2)


def counted(calls: list[Any], function):
    def call(*arguments):
        calls.append(function)
        return function(*arguments)

    return call


def test_most_turns_are_not_decoded_at_all(monkeypatch):
    rig = Rig()
    socket = rig.think(COMPACTED)
    decoded: list[Any] = []
    monkeypatch.setattr(chat, "_decode", counted(decoded, chat._decode))
    assert socket.uploads([U1, U3, A3, U4]) == ["u1", "u3", "a3", "u4"]
    assert decoded == []


@pytest.mark.parametrize("extra", [-1, 0, 1])
def test_bodies_at_the_limit_of_a_frame_lose_no_byte(extra):
    rig = Rig()
    rig.get(stringify(COMPACTED))
    limit = rig.engine.limits.max_frame_bytes
    body = stringify({"messages": COMPACTED, "pad": ""})
    body = body[:-2] + b"x" * (limit + extra - len(body)) + body[-2:]
    assert len(body) == limit + extra
    expected = body if extra > 0 else body.replace(b"," + stringify(X), b"")
    assert rig.post(body) == expected


def test_what_was_cut_or_put_in_is_handed_on_read():
    rig = Rig()
    socket = rig.think(BEFORE)
    socket.lists(AFTER)
    listed = stringify({"messages": AFTER, "type": "cf_agent_chat_messages"})
    packed = packed_turn(AFTER, is_text=True)
    for frame in (
        socket.frame(CLIENT, listed),
        socket.frame(CLIENT, packed, Kind.WS_BINARY),
        socket.frame(CLIENT, turn(AFTER)),
        socket.frame(CLIENT, turn(AFTER[:2], "regenerate-message")),
    ):
        assert frame.reading is not None
        handed = read_listing(frame)
        fresh = read_listing(Frame(frame.sender, frame.kind, frame.wire))
        assert isinstance(handed, Listing)
        assert handed == fresh


def test_the_addon_is_told_of_nothing_but_its_own_words():
    rig = Rig()
    assert rig.addon.name == "strip-compaction"
    assert PATH.startswith("/agents/")
    assert len(set(rig.addon.rules)) == 4
    assert len(set(rig.addon.reasons)) == 9
