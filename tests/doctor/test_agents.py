"""The look at the streams of agents: snapshots, and answers said again."""

from tests.doctor.build import Tape, examine, faults, finding

from midstream.doctor.report import Level

REQUEST = {"jsonrpc": "2.0", "id": 1, "method": "message/stream", "params": {}}
TEXTS = ("Hi Mira, which", "Hi Mira, which region", "Hi Mira, which region should I query?")


def update(text: str, *, append: bool = True, artifact: str = "a1") -> dict[str, object]:
    parts = [{"kind": "text", "text": text}]
    result = {
        "kind": "artifact-update",
        "taskId": "t1",
        "contextId": "c1",
        "append": append,
        "artifact": {"artifactId": artifact, "parts": parts},
    }
    return {"jsonrpc": "2.0", "id": 1, "result": result}


def completed(text: str = "", *, state: str = "completed") -> dict[str, object]:
    status: dict[str, object] = {"state": state}
    if text:
        parts = [{"kind": "text", "text": text}]
        status["message"] = {"kind": "message", "messageId": "m", "role": "agent", "parts": parts}
    result = {"kind": "status-update", "taskId": "t1", "contextId": "c1", "final": True}
    return {"jsonrpc": "2.0", "id": 1, "result": {**result, "status": status}}


def played(*events: dict[str, object], exchange: int = 1, tape: Tape | None = None) -> Tape:
    tape = tape or Tape()
    tape.stream(exchange, "/", REQUEST)
    for event in events:
        tape.event(exchange, event)
    tape.end(exchange)
    return tape


def test_snapshots_are_counted_by_artifact_with_what_was_sent_again():
    report = examine(played(*(update(text, append=i > 0) for i, text in enumerate(TEXTS))))
    found = finding(report, "snapshot-stream")
    assert found is not None
    assert found.seen.count == 1
    assert found.detail == f"{len(TEXTS[0]) + len(TEXTS[1])} characters sent again"
    assert faults(report)["snapshot-to-delta"] >= 2


def test_deltas_that_look_like_snapshots_are_none():
    texts = ("ha", "haha", "no", "no")
    report = examine(played(*(update(text, append=i > 0) for i, text in enumerate(texts))))
    assert not report.faults
    assert not report.findings


def test_a_final_message_that_is_the_whole_answer_is_a_fault():
    report = examine(played(update("one ", append=False), update("two"), completed("one two")))
    found = finding(report, "repeated-final")
    assert found is not None
    assert (found.seen.count, found.level, found.mends) == (1, Level.FAULT, "final-message-once")
    assert faults(report) == {"final-message-once": 1}


def test_it_is_found_where_an_earlier_fault_hides_it_from_observe_mode():
    snapshots = [update(text, append=i > 0) for i, text in enumerate(TEXTS)]
    report = examine(played(*snapshots, completed(TEXTS[-1])))
    assert finding(report, "repeated-final") is not None


def test_a_question_at_the_end_is_no_repeat():
    report = examine(played(update("one", append=False), completed("two?", state="input-required")))
    assert report.is_clean
    assert not report.findings


def test_a_task_that_repeats_the_answer_is_right_by_the_protocol():
    artifact = {"artifactId": "a1", "parts": [{"kind": "text", "text": "one two"}]}
    task = {"kind": "task", "id": "t1", "contextId": "c1", "status": {"state": "completed"}}
    whole = {"jsonrpc": "2.0", "id": 1, "result": {**task, "artifacts": [artifact]}}
    report = examine(played(update("one ", append=False), update("two"), whole))
    found = finding(report, "final-task")
    assert found is not None
    assert found.level is Level.NOTE
    assert report.is_clean


def test_the_context_tells_the_conversations_of_an_agent_apart():
    tape = played(update("one", append=False))
    other = update("two", append=False)
    other["result"]["contextId"] = "c2"  # type: ignore[index]  # JSON
    played(other, exchange=2, tape=tape)
    played(update("three", append=False), exchange=3, tape=tape)
    report = examine(tape)
    lanes = [[lane.number for lane in talk.exchanges] for talk in report.talks]
    assert lanes == [[1, 3], [2]]
