"""The looks at a chat: repeated ids, second ACKs, replay bursts."""

from tests.doctor.build import CLIENT, SERVER, Tape, chunk, delta, examine, finding

from midstream.core.frames import Kind
from midstream.core.ports import RecordKind
from midstream.doctor.report import Level

ACK = {"type": "cf_agent_stream_resume_ack", "id": "R"}


def messages(*ids: str) -> dict[str, object]:
    listed = [{"id": one, "role": "user", "parts": []} for one in ids]
    return {"type": "cf_agent_chat_messages", "messages": listed}


def test_an_id_that_stands_twice_in_a_list_is_told_with_its_name():
    tape = Tape()
    tape.socket(1)
    tape.say(1, messages("a", "b", "a"))
    tape.say(1, messages("a", "b"))
    found = finding(examine(tape), "duplicate-ids")
    assert found is not None
    assert (found.seen.count, found.detail, found.mends) == (1, "a", "")
    assert [(place.exchange, place.seq) for place in found.seen.places] == [(1, 3)]


def test_repeated_summaries_of_the_server_are_mended_by_strip_compaction():
    tape = Tape()
    tape.socket(1)
    tape.say(1, messages("compaction_1", "compaction_1"))
    found = finding(examine(tape), "duplicate-ids")
    assert found is not None
    assert found.mends == "strip-compaction"


def test_ids_are_counted_in_what_a_page_fetches_too():
    tape = Tape()
    tape.open(1, "/chat/get-messages", "GET")
    tape.add(1, RecordKind.CLOSE, CLIENT)
    headers = [["Content-Type", "application/json"]]
    tape.add(1, RecordKind.HEADERS, SERVER, meta={"status": 200, "headers": headers})
    tape.say(1, [{"id": "x", "role": "user"}, {"id": "x", "role": "user"}], kind=Kind.BODY)
    tape.end(1)
    found = finding(examine(tape), "duplicate-ids")
    assert found is not None
    assert found.detail == "x"


def test_a_list_without_ids_repeats_none():
    tape = Tape()
    tape.open(1, "/v1/chat/completions", headers=[["Content-Type", "application/json"]])
    body = {"messages": [{"role": "user", "content": "a"}, {"role": "user", "content": "a"}]}
    tape.say(1, body, CLIENT, Kind.BODY)
    tape.add(1, RecordKind.CLOSE, CLIENT)
    tape.end(1)
    assert examine(tape).is_clean


def test_the_second_ack_of_a_stream_on_one_socket_is_one_too_many():
    tape = Tape()
    for socket in (1, 2):
        tape.socket(socket)
        tape.say(socket, ACK, CLIENT)
    tape.say(2, ACK, CLIENT)
    found = finding(examine(tape), "second-ack")
    assert found is not None
    assert [(place.exchange, place.count) for place in found.seen.places] == [(2, 1)]


def reconnect(tape: Tape, *, page: str = "p") -> None:
    """Lose a socket after three deltas, and have all replayed to the next one."""
    tape.socket(1, "/chat?_pk=p")
    tape.say(1, chunk("R", {"type": "start"}))
    for text in ("one ", "two ", "three "):
        tape.say(1, delta("R", text))
    tape.break_off(1, side="client", code=1006)
    tape.socket(2, f"/chat?_pk={page}")
    tape.say(2, chunk("R", {"type": "start"}, replay=True))
    for text in ("one ", "two ", "three ", "four "):
        tape.say(2, delta("R", text, replay=True))
    tape.say(2, chunk("R", None, replay=True, replayComplete=True))
    tape.say(2, delta("R", "five "))


def test_a_replay_to_the_page_that_has_it_is_told_with_its_size():
    tape = Tape()
    reconnect(tape)
    found = finding(examine(tape), "replay-burst")
    assert found is not None
    assert found.level is Level.FAULT
    assert found.seen.count == 1
    assert found.detail.startswith("5 chunks, the largest burst 5, ")
    assert found.detail.endswith(", 14 characters were there before")


def test_a_replay_to_another_page_is_only_noted():
    tape = Tape()
    reconnect(tape, page="q")
    report = examine(tape)
    found = finding(report, "replay-elsewhere")
    assert finding(report, "replay-burst") is None
    assert found is not None
    assert found.level is Level.NOTE


def test_a_replay_that_is_cut_counts_all_the_same():
    tape = Tape()
    reconnect(tape)
    tape.records = tape.records[:-2]
    tape.break_off(2)
    assert finding(examine(tape), "replay-burst") is not None


def test_a_replay_on_the_first_socket_of_a_stream_is_as_it_should_be():
    tape = Tape()
    tape.socket(1)
    tape.say(1, delta("R", "one ", replay=True))
    tape.say(1, chunk("R", None, replay=True, replayComplete=True))
    report = examine(tape)
    assert not report.findings


def test_the_timeline_knows_where_the_replay_was():
    tape = Tape()
    reconnect(tape)
    report = examine(tape, is_drawn=True)
    lanes = report.talks[0].exchanges
    assert [lane.follows for lane in lanes] == [0, 1]
    [(begin, end, chunks)] = lanes[1].replays
    assert chunks == 5
    assert lanes[1].begin_ms < begin < end
