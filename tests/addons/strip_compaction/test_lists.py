"""What leaves towards the client: lists of chats in which the fault has already happened."""

import json
from typing import Any

import pytest
from msgspec import msgpack
from tests.addons.strip_compaction.rig import (
    CLIENT,
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
from midstream.core.frames import Kind
from midstream.dialects.cloudflare_compaction import first_kept

U1, U2, U3 = (user(f"u{n}") for n in range(1, 4))
A1, A2 = answer("a1"), answer("a2")
POLLUTED = [U1, summary("x", 9), U3, A1, summary("x", 3), U2]


def test_of_a_summary_that_stands_twice_the_first_stays():
    rig = Rig()
    socket = rig.socket()
    wire = stringify({"type": "cf_agent_chat_messages", "messages": POLLUTED, "n": 1.0})
    left = socket.send(SERVER, wire)
    assert left == wire.replace(b"," + stringify(POLLUTED[4]), b"")
    assert rig.repairs == {"repeated_message": 1}


def test_a_fetched_history_is_cleaned_like_a_list():
    rig = Rig()
    body = json.dumps(POLLUTED, indent=1).encode()
    assert json.loads(rig.get(body)) == [*POLLUTED[:4], U2]
    assert rig.repairs == {"repeated_message": 1}


def test_a_summary_filed_again_and_again_stays_once():
    socket = Rig().socket()
    messages = [summary("x"), U1, summary("y"), summary("x"), U2, summary("y"), summary("x")]
    assert socket.lists(messages) == ["compaction_x", "u1", "compaction_y", "u2"]


def test_ordinary_messages_with_one_id_all_stay():
    rig = Rig()
    messages = [
        U1,
        U1,
        A1,
        {**A1},
        {**summary("x"), "id": "summary"},
        {**summary("x"), "id": "summary"},
    ]
    assert rig.socket().lists(messages) == ids(messages)
    assert rig.repairs == {}


@pytest.mark.parametrize(
    "other",
    [{"role": "user"}, {"parts": []}, {"parts": [{"type": "step-start"}]}, {"parts": "no"}],
)
def test_a_message_of_another_form_is_no_repeat_and_has_none(other):
    rig = Rig()
    odd = {**summary("x"), **other}
    for messages in ([summary("x"), U1, odd], [odd, U1, summary("x")], [odd, odd]):
        assert rig.socket().lists(messages) == ids(messages)


def test_a_server_that_stores_uploads_has_its_lists_left_alone():
    rig = Rig()
    socket = rig.aichat()
    assert socket.lists(POLLUTED) == ids(POLLUTED)
    assert json.loads(rig.get(stringify(POLLUTED))) == POLLUTED
    assert (rig.repairs, rig.skips) == ({}, {})


def test_observing_counts_and_passes():
    rig = Rig(Mode.OBSERVE)
    assert rig.socket().lists(POLLUTED) == ids(POLLUTED)
    assert rig.repairs == {"repeated_message": 1}


# --- a stored copy that stands alone ----------------------------------------------------------


def read(new: int, old: int) -> list[Any]:
    return [U1, summary("new", new), U3, summary("old", old), A1]


def test_a_stored_copy_shows_itself_by_a_time_that_stands_still():
    rig = Rig()
    socket = rig.socket()
    assert socket.lists(read(10, 1)) == ids(read(10, 1))
    assert socket.lists(read(11, 1)) == ["u1", "compaction_new", "u3", "a1"]
    assert json.loads(rig.get(stringify(read(12, 1)))) == [
        message for message in read(12, 1) if message["id"] != "compaction_old"
    ]
    assert rig.repairs == {"stale_message": 2}


def test_two_reads_at_one_time_prove_nothing_and_forget_nothing():
    socket = Rig().socket()
    assert socket.lists(read(10, 1)) == socket.lists(read(10, 1)) == ids(read(10, 1))
    socket.lists(read(11, 1))
    assert socket.lists(read(11, 1)) == ["u1", "compaction_new", "u3", "a1"]


def test_summaries_whose_times_all_move_all_stay():
    socket = Rig().socket()
    for second in range(10, 14):
        assert socket.lists(read(second, second)) == ids(read(second, second))


def test_a_single_summary_that_keeps_its_time_stays():
    socket = Rig().socket()
    for _ in range(3):
        assert socket.lists([U1, summary("old", 1), A1]) == ["u1", "compaction_old", "a1"]


def test_a_new_summary_beside_an_old_one_is_no_proof_yet():
    socket = Rig().socket()
    socket.lists([U1, summary("old", 1), A1])
    assert socket.lists(read(10, 1)) == ids(read(10, 1))


def test_a_stored_copy_whose_range_is_summed_up_again_is_a_summary_again():
    socket = Rig().socket()
    socket.lists(read(10, 1))
    assert "compaction_old" not in socket.lists(read(11, 1))
    assert socket.lists(read(12, 12)) == ids(read(12, 12))
    assert socket.lists(read(13, 13)) == ids(read(13, 13))


def test_summaries_without_a_time_prove_nothing():
    socket = Rig().socket()
    for second in (10, 11, 12):
        messages = read(second, 1)
        del messages[3]["createdAt"]
        assert socket.lists(messages) == ids(messages)


def test_a_repeat_does_not_lend_its_time_to_the_first():
    socket = Rig().socket()
    for second in (10, 11, 12):
        messages = [U1, summary("x", second), U3, summary("x", 1), summary("y", second)]
        assert socket.lists(messages) == ["u1", "compaction_x", "u3", "compaction_y"]


def test_a_stale_copy_and_a_repeat_leave_in_one_edit():
    rig = Rig()
    socket = rig.socket()
    for second in (10, 11):
        left = socket.lists([summary("x", second), U1, summary("x", 1), summary("old", 1), U2])
    assert left == ["compaction_x", "u1", "u2"]
    assert rig.repairs == {"repeated_message": 2}


# --- what is remembered, and what cannot be read ------------------------------------------------


def test_many_lists_do_not_make_the_chat_grow_without_bound():
    rig = Rig(max_remembered_bytes=2_000, max_remembered_ids=8)
    socket = rig.think()
    for n in range(60):
        many = [user(f"m{n}-{k}", "x" * 50) for k in range(20)]
        socket.lists([summary(f"s{n}", n % 60), *many, summary(f"old{n}", 1)])
        socket.states([summary(f"c{n}")])
    assert rig.chat.size_bytes < 2 * 2_000 + 64 * 5 * 8 + 1_000
    assert rig.addon.conversation_bytes(rig.chat) == rig.chat.size_bytes


@pytest.mark.parametrize(
    "wire",
    [
        stringify({"type": "cf_agent_chat_messages", "messages": POLLUTED})[:-1],
        stringify({"type": "cf_agent_chat_messages", "messages": {"0": POLLUTED}}),
        stringify({"type": "cf_agent_chat_messages", "list": POLLUTED}),
        stringify({"type": "cf_agent_chat_messages", "messages": POLLUTED}) + b"\xff",
        b'{"type":"cf_agent_chat_messages","messages":' + b"[" * 60_000 + b"]" * 60_000 + b"}",
    ],
)
def test_a_list_that_cannot_be_read_passes_as_it_came(wire):
    rig = Rig()
    socket = rig.socket()
    assert socket.send(SERVER, wire) == wire
    assert rig.errors == 0
    assert socket.lists(POLLUTED) == ids([*POLLUTED[:4], U2])


@pytest.mark.parametrize("body", [b"", b"[", b"null", b'{"a":1}', b"\xff\xff", b"[1,[],{}]"])
def test_a_history_that_cannot_be_read_passes_as_it_came(body):
    rig = Rig()
    assert rig.get(body) == body
    assert rig.errors == 0


def test_a_list_that_no_parser_takes_is_not_edited():
    rig = Rig()
    wire = stringify({"type": "cf_agent_chat_messages", "messages": POLLUTED})
    wire = wire.replace(b'"hi"', b'"h\x01i"', 1)
    assert rig.socket().send(SERVER, wire) == wire
    assert rig.skips == {"not_editable": 1}


@pytest.mark.parametrize(
    "odd", [rb'{"id":"compaction_x\ud800"}', rb'{"\ud800":"compaction_x","parts":[]}']
)
def test_messages_with_lone_surrogates_that_have_no_outline_are_ordinary(odd):
    rig = Rig()
    wire = b'{"type":"cf_agent_chat_messages","messages":[' + odd + b"," + odd + b"]}"
    assert rig.socket().send(SERVER, wire) == wire
    assert (rig.repairs, rig.errors) == ({}, 0)


def test_an_update_of_another_message_changes_nothing_of_a_range_end():
    rig = Rig()
    socket = rig.think([U1, A1, U2, A2])
    socket.lists([U1, summary("r"), A2])
    socket.server(type="cf_agent_message_updated", message=answer("a9"))
    assert socket.uploads([U1, summary("r")], "regenerate-message") == ["u1", "u2"]


def test_a_list_whose_messages_are_no_messages_passes_as_it_came():
    rig = Rig()
    odd: list[Any] = [
        7,
        None,
        "compaction_x",
        {"id": 3, "x": "compaction_x"},
        {"id": "compaction_x"},
        [],
    ]
    wire = stringify({"type": "cf_agent_chat_messages", "messages": [*odd, *odd]})
    assert rig.socket().send(SERVER, wire) == wire
    assert rig.errors == 0


def test_a_list_with_a_message_nested_too_deeply_to_edit_still_loses_nothing():
    rig = Rig()
    deep = b'{"id":"d","parts":' + b"[" * 900 + b"]" * 900 + b"}"
    wire = stringify({"type": "cf_agent_chat_messages", "messages": [*POLLUTED, "DEEP"]})
    left = rig.socket().send(SERVER, wire.replace(b'"DEEP"', deep))
    assert left in (
        wire.replace(b'"DEEP"', deep),
        wire.replace(b'"DEEP"', deep).replace(b"," + stringify(POLLUTED[4]), b""),
    )
    assert rig.errors == 0


def test_other_frames_of_the_server_pass_as_they_came():
    rig = Rig()
    socket = rig.think(POLLUTED)
    for wire in (
        b'{"type":"cf_agent_state","state":{"x":"compaction_x cf_agent_chat_messages"}}',
        b'{"type":"cf_agent_session","phase":"idle","tokenEstimate":7}',
        b'{"type":"cf_agent_message_updated","message":{"id":"compaction_x"}}',
        b'{"type":"cf_agent_message_updated","message":7}',
        b"compaction_x cf_agent_chat_messages",
    ):
        assert socket.send(SERVER, wire) == wire
    assert socket.send(CLIENT, b'{"type":"cf_agent_tool_approval"}') == (
        b'{"type":"cf_agent_tool_approval"}'
    )
    assert rig.errors == 0


@pytest.mark.parametrize(
    ("wire", "kind"),
    [
        (b'{"type":"cf_agent_message_updated","message":7}', Kind.WS_TEXT),
        (b'{"type":"cf_agent_message_updated"}', Kind.WS_TEXT),
        (msgpack.encode({"type": "cf_agent_message_updated", "message": U2}), Kind.WS_BINARY),
    ],
)
def test_an_update_that_is_not_read_ends_what_is_known_of_ranges(wire, kind):
    rig = Rig()
    socket = rig.think([U1, A1, U2, A2])
    socket.send(SERVER, wire, kind)
    socket.lists([U1, summary("r"), A2])
    assert socket.uploads([U1, summary("r")], "regenerate-message") == ["u1", "compaction_r"]


# --- the pure function ------------------------------------------------------------------------


def test_first_kept_tells_the_places_of_repeats():
    messages = [stringify(m) for m in [*POLLUTED, summary("x"), {**summary("x"), "role": "user"}]]
    assert first_kept(messages, ("compaction_",)) == [4, 6]
    assert first_kept(messages, ("other_",)) == []
    assert first_kept([], ("compaction_",)) == []


def test_first_kept_finds_prefixes_that_json_may_escape():
    message = json.dumps({**summary("x"), "id": "süm_1"}).encode()
    assert first_kept([message, message], ("süm_",)) == [1]


def test_a_cleaned_chat_uploads_what_is_left_unchanged():
    rig = Rig()
    socket = rig.think()
    left = socket.server(type="cf_agent_chat_messages", messages=POLLUTED)["messages"]
    wire = turn([*left, user("u9")])
    assert socket.send(CLIENT, wire) == turn([U1, U3, A1, U2, user("u9")])
