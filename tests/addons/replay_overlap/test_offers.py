"""One offer, frame by frame: what is answered, held, dropped, joined and paced."""

import json
from typing import Any

import pytest
from tests.addons.replay_overlap.documents import dumps
from tests.addons.replay_overlap.tape import Player

from midstream.core import metrics
from midstream.core.addon import Answer, Mode
from midstream.core.exchange import ResponseHead
from midstream.core.frames import Frame, Kind, Side

BASE = {"id": "A", "role": "assistant", "parts": [{"type": "text", "text": "b", "state": "done"}]}
USER = {"id": "u", "role": "user", "parts": []}
MESSAGES = [USER, BASE]
ASK = {"type": "cf_agent_stream_resume_request"}
ACK = {"type": "cf_agent_stream_resume_ack", "id": "R"}
OFFER = {"type": "cf_agent_stream_resuming", "id": "R"}
NONE = {"type": "cf_agent_stream_resume_none"}
DONE = {"type": "cf_agent_use_chat_response", "id": "R", "body": "", "done": True}


def chunk(replay: bool, **fields: Any) -> dict[str, Any]:
    body = dumps(fields).decode()
    frame = {"type": "cf_agent_use_chat_response", "id": "R", "body": body, "done": False}
    return {**frame, "continuation": True, **({"replay": True} if replay else {})}


COMPLETE = {**DONE, "done": False, "replay": True, "replayComplete": True, "continuation": True}
START = {"type": "start"}
OPEN = {"type": "text-start", "id": "t"}


def delta(text: str) -> dict[str, Any]:
    return {"type": "text-delta", "id": "t", "delta": text}


class Wire:
    """A chat of one continuation: a first socket sees it begin, a second one comes back to it."""

    def __init__(self, client: str = "unknown", mode: Mode = Mode.REPAIR) -> None:
        self.player = Player(Answer(200, dumps(MESSAGES)), mode, client=client)
        self.number = 1
        self.player.open(1)
        self.server({"type": "cf_agent_chat_messages", "messages": MESSAGES})
        self.server(chunk(False, **START), chunk(False, **OPEN), chunk(False, **delta("x")))

    def again(self) -> None:
        self.player.end(self.number, "abort")
        self.number += 2
        self.player.open(self.number)

    def server(self, *frames: dict[str, Any]) -> list[Any]:
        return self._send(Side.SERVER, *frames)

    def client(self, *frames: dict[str, Any]) -> list[Any]:
        return self._send(Side.CLIENT, *frames)

    def after(self, ms: int) -> list[Any]:
        seen = len(self.player.left[self.number])
        self.player.pass_time(ms)
        return self._since(seen)

    def replay(self, *chunks: dict[str, Any]) -> list[Any]:
        """The server replays, and says that this is all so far."""
        return self.server(*(chunk(True, **one) for one in chunks), COMPLETE)

    def count(self, metric: metrics.Metric, word: str) -> int:
        return self.player.count(metric, word)

    def _send(self, side: Side, *frames: dict[str, Any]) -> list[Any]:
        seen = len(self.player.left[self.number])
        for frame in frames:
            self.player.take(self.number, Frame(side, Kind.WS_TEXT, dumps(frame)))
        return self._since(seen)

    def _since(self, seen: int) -> list[Any]:
        """Return what left, `>` before what went to the server."""
        out = self.player.left[self.number][seen:]
        return [(">" if f.sender is Side.CLIENT else "<", json.loads(f.wire)) for f in out]


def kinds(left: list[Any]) -> list[str]:
    return [side + frame["type"].removeprefix("cf_agent_") for side, frame in left]


def test_the_product_acks_and_holds_until_the_replay_is_whole() -> None:
    wire = Wire()
    wire.again()
    assert kinds(wire.client(ASK)) == [">stream_resume_request"]
    assert kinds(wire.server(OFFER)) == [">stream_resume_ack"]
    assert wire.server(OFFER, NONE) == []
    assert wire.client(ASK) == []
    assert wire.server(chunk(True, **START), chunk(True, **OPEN)) == []
    left = kinds(wire.server(COMPLETE))
    assert left == ["<chat_messages", "<message_updated", "<stream_resuming"]
    assert kinds(wire.client(ACK)) == ["<use_chat_response"] * 6
    assert wire.client(ACK) == []
    assert wire.count(metrics.REPAIRS, "one_ack") == 1


def test_the_reset_message_is_empty_where_the_client_looks_late_else_the_baseline() -> None:
    for client, parts in (("unknown", []), ("r3", []), ("r2", BASE["parts"])):
        wire = Wire(client)
        wire.again()
        wire.client(ASK)
        wire.server(OFFER)
        left = wire.replay(START, OPEN)
        assert left[0][1]["messages"] == [USER, {**BASE, "parts": parts}]
        assert left[1][1]["message"] == {**BASE, "parts": parts}


def test_a_client_that_does_not_ask_gets_its_offer_after_a_while() -> None:
    wire = Wire()
    wire.again()
    wire.server(OFFER)
    assert wire.replay(START) == []
    assert wire.after(249) == []
    left = wire.after(2)
    assert kinds(left) == ["<chat_messages", "<message_updated", "<stream_resuming"]
    assert left[1][1]["message"] == BASE  # its observer goes on with what is shown


def test_a_reset_without_an_ack_is_undone() -> None:
    wire = Wire()
    wire.again()
    wire.client(ASK)
    wire.server(OFFER)
    wire.replay(START, OPEN, delta("x"))
    assert wire.server(chunk(False, **delta("y"))) == []
    [(_, undone)] = wire.after(401)
    assert undone["message"]["parts"][-1]["text"] == "xy"
    assert wire.count(metrics.SKIPPED, "no_ack") == 1


def test_until_a_late_ack_nothing_more_of_the_stream_leaves_and_then_all() -> None:
    wire = Wire()
    wire.again()
    wire.client(ASK)
    wire.server(OFFER)
    wire.replay(START, OPEN, delta("x"))
    wire.after(401)
    assert wire.server(chunk(False, **delta("y"))) == []
    assert kinds(wire.client(ACK)) == [">stream_resume_ack"]
    assert wire.server(chunk(False, **delta("z"))) == []
    left = wire.replay(START, OPEN, delta("x"), delta("y"), delta("z"))
    assert kinds(left)[:2] == ["<chat_messages", "<message_updated"]
    texts = [json.loads(f["body"]).get("delta") for _, f in left[2:] if f["body"]]
    assert [text for text in texts if text] == ["b", "xyz"]


def test_an_unasked_client_gets_the_outcome_at_the_end() -> None:
    wire = Wire()
    wire.again()
    wire.server(OFFER)
    wire.replay(START, OPEN, delta("x"))
    wire.after(700)
    assert wire.server(chunk(False, **delta("y"))) == []
    left = wire.server(DONE)
    assert kinds(left) == ["<message_updated", "<use_chat_response"]
    assert left[0][1]["message"]["parts"][-1]["text"] == "xy"


def test_an_early_end_goes_behind_the_replay_once() -> None:
    wire = Wire("r2")
    wire.player.answer = Answer(500)
    wire.again()
    wire.client(ASK)
    wire.server(OFFER)
    assert wire.server(DONE) == []
    wire.replay(START, OPEN, delta("x"))
    wire.after(20)
    left = wire.client(ACK)
    assert left[-1][1] == DONE
    assert [frame["done"] for _, frame in left].count(True) == 1


def test_an_early_end_is_dropped_where_the_replay_has_its_own() -> None:
    wire = Wire("r2")
    wire.player.answer = Answer(500)
    wire.again()
    wire.client(ASK)
    wire.server(OFFER)
    wire.server(DONE)
    wire.server(chunk(True, **START), {**DONE, "replay": True})
    wire.after(20)
    left = wire.client(ACK)
    assert [frame.get("replay") for _, frame in left if frame["done"]] == [True]


def test_a_stream_that_is_over_is_not_resumed() -> None:
    wire = Wire()
    wire.again()
    wire.client({**ASK, "probeId": "p1"})
    wire.server(OFFER)
    over = {**BASE, "parts": [*BASE["parts"], {"type": "text", "text": "xyz", "state": "done"}]}
    wire.player.answer = Answer(200, dumps([USER, over]))
    wire.server(DONE)
    wire.server(chunk(True, **START), {**DONE, "replay": True})
    left = wire.after(20)
    assert left[0][1] == {**NONE, "probeId": "p1"}
    assert left[1][1]["done"] is True
    assert left[2][1]["messages"] == [USER, over]
    assert left[3][1]["message"] == over


def test_history_that_lags_behind_is_fetched_again() -> None:
    wire = Wire()
    wire.again()
    wire.client(ASK)
    wire.server(OFFER)
    wire.server(chunk(True, **START), chunk(True, **OPEN), chunk(True, **delta("long text")))
    wire.server({**DONE, "replay": True})
    assert wire.after(50) == []
    over = {**BASE, "parts": [*BASE["parts"], {"type": "text", "text": "long text"}]}
    wire.player.answer = Answer(200, dumps([USER, over]))
    assert "<chat_messages" in kinds(wire.after(200))


def test_history_that_stays_behind_gives_way_to_the_replay() -> None:
    wire = Wire()
    wire.again()
    wire.client(ASK)
    wire.server(OFFER)
    wire.server(chunk(True, **START), chunk(True, **OPEN), chunk(True, **delta("long text")))
    wire.server({**DONE, "replay": True})
    left = kinds(wire.after(1_000))
    assert left == ["<chat_messages", "<message_updated", "<stream_resuming"]


def test_a_long_replay_is_joined() -> None:
    wire = Wire("r2")
    wire.again()
    wire.client(ASK)
    wire.server(OFFER)
    wire.replay(START, OPEN, *(delta(f"{n} ") for n in range(300)))
    left = wire.client(ACK)
    assert len(left) == 4
    assert json.loads(left[2][1]["body"])["delta"] == "".join(f"{n} " for n in range(300))


def test_a_delta_that_says_more_than_text_is_not_joined() -> None:
    wire = Wire("r2")
    wire.again()
    wire.client(ASK)
    wire.server(OFFER)
    signed = {**delta("b"), "providerMetadata": {"p": 1}}
    wire.replay(START, OPEN, delta("a"), signed, delta("c"), {**delta("d"), "id": "other"})
    assert len(wire.client(ACK)) == 7


def test_a_long_replay_leaves_in_slices_and_live_frames_behind_it() -> None:
    wire = Wire("r2")
    wire.again()
    wire.client(ASK)
    wire.server(OFFER)
    wire.replay(START, *({"type": "data-n", "data": n} for n in range(60)))
    assert len(wire.client(ACK)) == 24
    assert wire.server(chunk(False, **OPEN)) == []
    assert len(wire.after(12)) == 24
    left = wire.after(12)
    assert len(left) == 62 - 48 + 1
    assert json.loads(left[-1][1]["body"]) == OPEN


@pytest.mark.parametrize("closing", [True, False])
def test_a_replay_cut_off_stays_for_the_next_socket(closing: bool) -> None:
    wire = Wire()
    wire.again()
    wire.client(ASK)
    wire.server(OFFER)
    wire.server(chunk(True, **START), chunk(True, **OPEN))
    if closing:
        seen = len(wire.player.left[wire.number])
        wire.player.end(wire.number, "server_end")
        assert wire.player.left[wire.number][seen:] == []
    wire.again()
    wire.client(ASK)
    wire.server(OFFER)
    assert kinds(wire.replay(START, OPEN))[-1] == "<stream_resuming"


def test_a_whole_replay_still_goes_out_when_the_server_ends() -> None:
    wire = Wire("r2")
    wire.again()
    wire.server(OFFER)
    wire.replay(START, OPEN)
    seen = len(wire.player.left[wire.number])
    wire.player.end(wire.number, "server_end")
    left = wire.player.left[wire.number][seen:]
    assert [json.loads(f.wire)["type"] for f in left][2] == "cf_agent_stream_resuming"
    assert len(left) == 6


def test_an_end_before_the_replay_passes_when_the_server_ends() -> None:
    wire = Wire()
    wire.again()
    wire.client(ASK)
    wire.server(OFFER, DONE)
    seen = len(wire.player.left[wire.number])
    wire.player.end(wire.number, "server_end")
    [end] = wire.player.left[wire.number][seen:]
    assert json.loads(end.wire) == DONE


def test_a_replay_that_never_comes_gives_the_offer_back() -> None:
    wire = Wire()
    wire.again()
    wire.client(ASK)
    wire.server(OFFER)
    assert wire.after(4_999) == []
    assert wire.after(2) == [("<", OFFER)]
    assert wire.count(metrics.SKIPPED, "no_replay") == 1
    assert kinds(wire.client(ACK)) == [">stream_resume_ack"]


def test_a_replay_that_stays_half_goes_out_as_far_as_it_came() -> None:
    wire = Wire("r2")
    wire.again()
    wire.client(ASK)
    wire.server(OFFER)
    wire.server(chunk(True, **START), chunk(True, **OPEN), chunk(True, **delta("x")))
    left = kinds(wire.after(5_001))
    assert left[:3] == ["<chat_messages", "<message_updated", "<stream_resuming"]
    assert len(left) == 6


def test_a_question_after_the_offer_is_answered_at_once_with_its_probe() -> None:
    wire = Wire()
    wire.again()
    wire.server(OFFER)
    wire.replay(START)
    wire.after(251)
    assert wire.client({**ASK, "probeId": "p2"}) == [("<", {**OFFER, "probeId": "p2"})]
    assert kinds(wire.client(ACK)) == ["<use_chat_response"] * 2


def test_an_ack_before_the_offer_lets_all_leave_at_once() -> None:
    wire = Wire("r2")
    wire.again()
    wire.client(ASK)
    wire.server(OFFER)
    assert wire.client(ACK) == []
    left = kinds(wire.replay(START))
    assert left == [
        "<chat_messages", "<message_updated", "<stream_resuming",
        "<use_chat_response", "<use_chat_response",
    ]  # fmt: skip


def test_the_observed_form_tells_the_client_that_there_is_nothing() -> None:
    wire = Wire("r1")
    wire.again()
    wire.client({**ASK, "probeId": "p3"})
    wire.server({**OFFER, "probeId": "p3"})
    left = wire.replay(START)
    assert left[0][1] == {**NONE, "probeId": "p3"}
    assert left[-1][1] == OFFER


def test_an_offer_that_the_end_has_overtaken_on_another_socket_is_not_resumed() -> None:
    wire = Wire()
    wire.again()
    wire.client(ASK)
    wire.player.open(100)
    wire.player.take(100, Frame(Side.SERVER, Kind.WS_TEXT, dumps(DONE)))
    assert kinds(wire.server(OFFER)) == [">stream_resume_ack"]
    over = {**BASE, "parts": [*BASE["parts"], {"type": "text", "text": "x"}]}
    wire.player.answer = Answer(200, dumps([USER, over]))
    wire.server(chunk(True, **START), {**DONE, "replay": True})
    left = kinds(wire.after(20))
    assert left == [
        "<stream_resume_none", "<use_chat_response", "<chat_messages", "<message_updated",
    ]  # fmt: skip


def test_an_offer_of_a_stream_that_failed_before_passes_as_it_came() -> None:
    wire = Wire()
    failed = {**DONE, "body": "it broke", "error": True}
    wire.server(failed)
    wire.again()
    wire.client(ASK)
    wire.server(OFFER)
    start = chunk(True, **START)
    assert wire.server(start, failed) == [("<", OFFER)]
    assert [frame for _, frame in wire.client(ACK)] == [start, failed]
    assert wire.count(metrics.SKIPPED, "stream_over") == 1


def test_an_offer_of_a_stream_that_is_over_is_observed() -> None:
    wire = Wire(mode=Mode.OBSERVE)
    wire.server(DONE)
    assert wire.server(OFFER) == [("<", OFFER)]
    assert wire.count(metrics.SKIPPED, "stream_over") == 1


def test_a_client_that_asks_again_after_a_late_ack_is_answered() -> None:
    wire = Wire()
    wire.again()
    wire.client(ASK)
    wire.server(OFFER)
    wire.replay(START)
    wire.after(401)
    wire.client(ACK)
    assert wire.client({**ASK, "probeId": "p9"}) == []
    assert wire.after(5_001) == [("<", {**NONE, "probeId": "p9"})]


def test_a_client_that_asks_again_after_a_late_ack_is_offered_the_replay() -> None:
    wire = Wire()
    wire.again()
    wire.client(ASK)
    wire.server(OFFER)
    wire.replay(START)
    wire.after(401)
    wire.client(ACK, {**ASK, "probeId": "p9"})
    left = wire.replay(START)
    assert kinds(left) == ["<chat_messages", "<message_updated", "<stream_resuming"]
    assert left[2][1]["probeId"] == "p9"
    assert len(wire.client(ACK)) == 5


def test_an_offer_of_another_stream_passes_an_open_one() -> None:
    wire = Wire()
    wire.again()
    wire.server(OFFER)
    other = {**OFFER, "id": "R2"}
    assert wire.server(other) == [("<", other)]


def test_a_message_that_comes_after_the_offer_waits_behind_the_replay() -> None:
    wire = Wire()
    wire.again()
    wire.client(ASK)
    wire.server(OFFER)
    wire.replay(START)
    update = {"type": "cf_agent_message_updated", "message": USER}
    assert wire.server(update) == []
    assert wire.client(ACK)[-1][1] == update


def test_messages_that_wait_survive_the_undo() -> None:
    wire = Wire()
    wire.again()
    wire.client(ASK)
    wire.server(OFFER)
    wire.replay(START)
    update = {"type": "cf_agent_message_updated", "message": USER}
    wire.server(update)
    assert wire.after(401)[-1][1] == update


def test_a_closing_list_before_the_end_is_said_again() -> None:
    wire = Wire()
    closing = {"type": "cf_agent_chat_messages", "messages": MESSAGES}
    wire.server(closing, DONE)
    assert wire.after(199) == []
    assert wire.after(2) == [("<", closing)]


CHANGES: list[tuple[str, dict[str, Any]]] = [
    ("client", {"type": "cf_agent_use_chat_request", "id": "x", "init": {
        "method": "POST", "body": '{"messages":[]}'}}),
    ("client", {"type": "cf_agent_chat_messages", "messages": []}),
    ("client", {"type": "cf_agent_tool_result", "toolCallId": "c", "output": 1}),
    ("client", {"type": "cf_agent_tool_approval", "toolCallId": "c", "approved": True}),
    ("client", {"type": "cf_agent_chat_clear"}),
    ("server", {"type": "cf_agent_chat_clear"}),
    ("server", {"type": "cf_agent_message_updated", "message": USER}),
    ("server", {"type": "cf_agent_chat_messages", "messages": [USER]}),
    ("server", {**chunk(False, type="start", messageId="A7"), "id": "R7"}),
]  # fmt: skip


@pytest.mark.parametrize(("side", "frame"), CHANGES)
def test_a_closing_list_is_not_said_again_once_the_chat_went_on(
    side: str, frame: dict[str, Any]
) -> None:
    wire = Wire()
    wire.server({"type": "cf_agent_chat_messages", "messages": MESSAGES}, DONE)
    (wire.server if side == "server" else wire.client)(frame)
    assert wire.after(1_000) == []


def test_a_socket_that_stays_quiet_after_a_broken_stream_is_brought_up_to_date() -> None:
    wire = Wire()
    wire.again()
    wire.server({"type": "cf_agent_identity"})
    over = {**BASE, "parts": [{"type": "text", "text": "bxyz"}]}
    wire.player.answer = Answer(200, dumps([USER, over]))
    left = wire.after(100)
    assert left[0][1]["messages"] == [USER, over]
    assert left[1][1]["message"] == over


@pytest.mark.parametrize(("side", "frame"), CHANGES)
def test_a_socket_that_does_not_stay_quiet_is_left_alone(side: str, frame: dict[str, Any]) -> None:
    wire = Wire()
    wire.again()
    wire.server({"type": "cf_agent_identity"})
    wire.player.answer = Answer(
        200, dumps([USER, {**BASE, "parts": [{"type": "text", "text": "bxyz"}]}])
    )
    (wire.server if side == "server" else wire.client)(frame)
    left = kinds(wire.after(1_000))
    is_list = frame["type"] in ("cf_agent_message_updated", "cf_agent_chat_messages")
    assert left == [] or (is_list and left[0] == "<chat_messages")


def test_a_turn_that_crossed_with_the_messages_handed_over_is_said_with_them() -> None:
    wire = Wire()
    wire.again()
    wire.server({"type": "cf_agent_identity"})
    over = {**BASE, "parts": [{"type": "text", "text": "bxyz"}]}
    wire.player.answer = Answer(200, dumps([USER, over]))
    wire.after(100)
    fresh = {"id": "u2", "role": "user", "parts": []}
    body = dumps({"messages": [USER, BASE, fresh], "trigger": "submit-message"}).decode()
    turn = {
        "type": "cf_agent_use_chat_request", "id": "x", "init": {"method": "POST", "body": body},
    }  # fmt: skip
    assert wire.client(turn) == [
        (">", turn), ("<", {"type": "cf_agent_chat_messages", "messages": [USER, over, fresh]}),
    ]  # fmt: skip
    assert kinds(wire.client(turn)) == [">use_chat_request"]


def test_what_is_observed_is_counted() -> None:
    wire = Wire(mode=Mode.OBSERVE)
    wire.again()
    wire.client(ASK)
    wire.server(OFFER, OFFER)
    wire.client(ACK)
    wire.replay(START, OPEN)
    assert wire.count(metrics.REPAIRS, "reset") == 1
    assert wire.count(metrics.REPAIRS, "rebuild") == 1
    assert wire.count(metrics.RECONNECTS, "passed") == 1


def test_an_unknown_stream_is_counted_where_nothing_may_be_asked() -> None:
    wire = Wire(mode=Mode.OBSERVE)
    wire.server({**OFFER, "id": "R9"})
    assert wire.count(metrics.SKIPPED, "unknown_stream") == 1
    assert wire.count(metrics.RECONNECTS, "unknown") == 1


def test_an_early_end_goes_behind_half_a_replay_too() -> None:
    wire = Wire("r2")
    wire.again()
    wire.client(ASK)
    wire.server(OFFER)
    wire.server(DONE, chunk(True, **START), chunk(True, **OPEN))
    left = wire.after(5_001)
    assert left[-1][1] == DONE


def test_a_stray_empty_answer_is_not_in_the_reset() -> None:
    wire = Wire()
    wire.again()
    stray = {"id": "made", "role": "assistant", "parts": []}
    wire.server({"type": "cf_agent_chat_messages", "messages": [USER, BASE, stray]})
    wire.client(ASK)
    wire.server(OFFER)
    left = wire.replay(START)
    assert [message["id"] for message in left[0][1]["messages"]] == ["u", "A"]


def test_the_own_tool_of_an_early_client_is_left_to_its_observer() -> None:
    wire = Wire("r1")
    wire.server(DONE)
    wire.client({"type": "cf_agent_tool_result", "toolCallId": "c", "output": 1})
    wire.client({**ASK, "probeId": "p4"})
    offer = {"type": "cf_agent_stream_resuming", "id": "R2"}
    none = {**NONE, "probeId": "p4"}
    assert wire.server({**offer, "probeId": "p4"}) == [("<", none), ("<", offer)]
    assert wire.server({**offer, "probeId": "p4"}) == [("<", offer)]


def test_the_own_tool_of_a_late_client_is_built_whole() -> None:
    wire = Wire("r3")
    wire.server(DONE)
    wire.client({"type": "cf_agent_tool_result", "toolCallId": "c", "output": 1}, ASK)
    offer = {"type": "cf_agent_stream_resuming", "id": "R2"}
    assert wire.server(offer) == [("<", offer)]
    wire.client({**ACK, "id": "R2"})
    left = wire.server({**chunk(True, **START), "id": "R2"})
    assert json.loads(left[0][1]["body"]) == {"type": "start", "messageId": "A"}
    assert len(left) > 3


def test_a_fetch_that_is_never_answered_holds_nothing_up_for_ever() -> None:
    wire = Wire("r2")
    wire.player.is_silent = True
    wire.again()
    wire.client(ASK)
    wire.server(OFFER)
    wire.server(chunk(True, **START), {**DONE, "replay": True})
    assert wire.after(4_900) == []
    left = kinds(wire.after(200))
    assert left == ["<chat_messages", "<message_updated", "<stream_resuming"]
    assert kinds(wire.client(ACK)) == ["<use_chat_response"] * 2


def test_a_baseline_that_is_never_learnt_holds_nothing_up_for_ever() -> None:
    wire = Wire()
    wire.player.is_silent = True
    wire.server(DONE)
    other = {**OFFER, "id": "R2"}
    wire.client(ASK)
    wire.server(other)
    start, complete = {**chunk(True, **START), "id": "R2"}, {**COMPLETE, "id": "R2"}
    assert wire.server(start, complete) == []
    assert wire.after(5_001) == [("<", other)]
    assert [frame for _, frame in wire.client({**ACK, "id": "R2"})] == [start, complete]


def test_a_turn_begun_while_the_outcome_is_fetched_is_not_wiped() -> None:
    wire = Wire("r2")
    wire.again()
    wire.client(ASK)
    wire.server(OFFER)
    wire.server(chunk(True, **START), {**DONE, "replay": True})
    fresh = {"id": "u2", "role": "user", "parts": []}
    body = dumps({"messages": [USER, BASE, fresh], "trigger": "submit-message"}).decode()
    init = {"method": "POST", "body": body}
    wire.client({"type": "cf_agent_use_chat_request", "id": "x", "init": init})
    left = wire.after(20)
    assert [message["id"] for message in left[0][1]["messages"]] == ["u", "A", "u2"]
    assert kinds(left)[-1] == "<stream_resuming"


def test_a_closing_list_is_not_said_again_over_a_stream_that_began_elsewhere() -> None:
    wire = Wire()
    wire.server({"type": "cf_agent_chat_messages", "messages": MESSAGES}, DONE)
    start = {**chunk(False, type="start", messageId="A7"), "id": "R7"}
    wire.player.open(100)
    wire.player.take(100, Frame(Side.SERVER, Kind.WS_TEXT, dumps(start)))
    assert wire.after(1_000) == []


TOOL = {"type": "tool-input-available", "toolCallId": "c", "toolName": "place", "input": {"a": 1}}


@pytest.mark.parametrize(
    ("result", "outcome"),
    [
        (
            {"output": {"city": "Oslo"}},
            {"type": "tool-output-available", "toolCallId": "c", "output": {"city": "Oslo"}},
        ),
        (
            {"output": None, "state": "output-error", "errorText": "no"},
            {"type": "tool-output-error", "toolCallId": "c", "errorText": "no"},
        ),
    ],
)
def test_a_tool_that_the_page_answered_in_the_same_turn_is_not_run_again(
    result: dict[str, Any], outcome: dict[str, Any]
) -> None:
    wire = Wire("r2")
    wire.server(chunk(False, **TOOL))
    answer = {"type": "cf_agent_tool_result", "toolCallId": "c", "autoContinue": False, **result}
    wire.client(answer)
    wire.again()
    wire.client(ASK)
    wire.server(OFFER)
    wire.replay(START, TOOL)
    left = [json.loads(f["body"]) for _, f in wire.client(ACK) if f["body"]]
    assert [each["type"] for each in left] == [
        "start", "tool-input-start", "tool-input-delta", outcome["type"],
    ]  # fmt: skip
    assert left[2]["input"] == {"a": 1}
    assert json.loads(left[2]["inputTextDelta"]) == {"a": 1}
    assert left[3] == outcome


def test_a_tool_of_the_provider_is_offered_as_it_was() -> None:
    wire = Wire("r2")
    wire.again()
    wire.client(ASK)
    wire.server(OFFER)
    tool = {**TOOL, "providerExecuted": True}
    wire.replay(START, tool, {"type": "tool-output-available", "toolCallId": "c", "output": 1})
    assert json.loads(wire.client(ACK)[1][1]["body"]) == tool


def test_without_the_messages_of_the_chat_only_the_one_is_set_back() -> None:
    wire = Wire("r2")
    wire.again()
    wire.server({"type": "cf_agent_chat_messages", "messages": [{"id": 7}]})
    wire.client(ASK)
    wire.server(OFFER)
    assert kinds(wire.replay(START)) == ["<message_updated", "<stream_resuming"]


def test_a_message_that_the_list_lacks_is_put_at_its_end() -> None:
    wire = Wire()
    wire.server(DONE, {"type": "cf_agent_chat_messages", "messages": [USER]})
    first = {**chunk(False, type="start", messageId="N"), "id": "R3", "continuation": False}
    wire.server(first, {"type": "cf_agent_chat_messages", "messages": [USER]})
    wire.again()
    wire.client(ASK)
    wire.server({**OFFER, "id": "R3"})
    replay = {**chunk(True, type="start", messageId="N"), "id": "R3", "continuation": False}
    left = wire.server(replay, {**COMPLETE, "id": "R3"})
    assert [message["id"] for message in left[0][1]["messages"]] == ["u", "N"]


@pytest.mark.parametrize("answer", [Answer(500), Answer(200, b"{}")])
def test_a_heal_without_messages_does_nothing_but_count(answer: Answer) -> None:
    wire = Wire()
    wire.player.answer = answer
    wire.again()
    wire.server({"type": "cf_agent_identity"})
    assert wire.after(1_000) == []
    assert wire.count(metrics.SKIPPED, "fetch_failed") == 1


def test_a_heal_gives_up_on_messages_that_stay_behind() -> None:
    wire = Wire()
    wire.again()
    wire.server({"type": "cf_agent_identity"})
    assert wire.after(5_000) == []
    assert wire.count(metrics.SKIPPED, "history_behind") == 1


def test_messages_that_cannot_be_read_count_for_nothing() -> None:
    wire = Wire()
    wire.again()
    wire.server({"type": "cf_agent_identity"})
    odd = [7, {"id": "A", "role": "assistant", "parts": 7}, [], USER]
    wire.player.answer = Answer(200, dumps(odd))
    assert wire.after(2_000) == []
    assert wire.count(metrics.SKIPPED, "history_behind") == 1


def test_odd_messages_beside_the_true_ones_do_no_harm() -> None:
    wire = Wire()
    wire.again()
    wire.server({"type": "cf_agent_identity"})
    over = {**BASE, "parts": [{"type": "text", "text": "bxyz"}]}
    wire.player.answer = Answer(200, dumps([USER, over, {"id": "o", "role": "user"}, 7]))
    left = wire.after(1_000)
    assert left[1][1]["message"] == over


def test_a_turn_that_brings_nothing_new_is_not_answered() -> None:
    wire = Wire()
    wire.again()
    wire.server({"type": "cf_agent_identity"})
    over = {**BASE, "parts": [{"type": "text", "text": "bxyz"}]}
    wire.player.answer = Answer(200, dumps([USER, over]))
    wire.after(100)
    init = {"method": "POST", "body": dumps({"messages": [USER]}).decode()}
    turn = {"type": "cf_agent_use_chat_request", "id": "x", "init": init}
    assert wire.client(turn) == [(">", turn)]


def test_an_answer_that_comes_after_the_chat_was_emptied_is_dropped() -> None:
    wire = Wire()
    wire.again()
    wire.client(ASK)
    wire.server(OFFER)
    wire.server(chunk(True, **START), {**DONE, "replay": True})
    wire.player.open(100)
    clear = {"type": "cf_agent_chat_clear"}
    wire.player.take(100, Frame(Side.CLIENT, Kind.WS_TEXT, dumps(clear)))
    assert kinds(wire.after(5_000)) == ["<stream_resume_none"]


def test_an_offer_whose_frames_were_let_go_is_over() -> None:
    wire = Wire()
    wire.again()
    wire.client(ASK)
    wire.server(OFFER)
    chain = wire.player.sessions[wire.number]._chain
    assert chain is not None
    link = next(link for link in chain._links if link.held)
    assert [frame.wire for frame in link.release()] == [dumps(OFFER)]
    start = chunk(True, **START)
    assert wire.server(start) == [("<", start)]


def test_a_bound_of_the_chain_lets_the_offer_go() -> None:
    wire = Wire()
    wire.player.is_silent = True
    wire.again()
    wire.client(ASK)
    wire.server(OFFER)
    chain = wire.player.sessions[wire.number]._chain
    assert chain is not None
    left = chain.wake(10**12)
    assert [frame.wire for frame in left] == [dumps(OFFER)]
    assert wire.count(metrics.SKIPPED, "no_replay") == 1


def test_a_body_that_is_no_list_of_messages_passes() -> None:
    player = Player(Answer())
    player.open_at(1, "/agents/chat/room/get-messages")
    session = player.sessions[1]
    session.end(Side.CLIENT, 0)
    session.respond(ResponseHead(200, (("Content-Type", "application/json"),)), 0)
    session.receive(Side.SERVER, b'{"no":"list"}', 0)
    out = session.end(Side.SERVER, 0)
    assert [frame.wire for frame in out] == [b'{"no":"list"}']
    assert player.count(metrics.SKIPPED, "malformed") == 1
