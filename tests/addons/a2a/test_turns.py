"""An artifact is more than one stream: what a client has from before is never taken away."""

from tests.addons.a2a import forms
from tests.addons.a2a.client import Client
from tests.addons.a2a.events import Status, Task, Update, parts
from tests.addons.a2a.forms import RPC03, Form
from tests.addons.a2a.lanes import so_far
from tests.addons.a2a.rig import Rig, run
from tests.addons.a2a.say import ANSWER, DONE, PIECES, deltas, updates, wires

from midstream.core.addon import Mode
from midstream.core.frames import Frame, Side

AGAIN = Form("again", False, has_kind_parts=True, has_final=True, method="tasks/resubscribe")
ASKS = Status("input-required", parts("Which one?"), "m1", True)


def test_a_task_that_goes_on_in_another_stream_goes_on_with_its_artifact():
    rig = Rig()
    first = run(rig, wires([*deltas(PIECES[:2]), ASKS]))
    made = wires([*updates(*((piece, True) for piece in PIECES[2:])), DONE])
    second = run(rig, made)
    assert [frame.wire for frame in second] == made
    assert Client().takes([*first, *second]).texts == {"a1": ANSWER}


def test_a_correction_in_the_second_stream_does_not_take_away_the_first():
    """What goes on from text that is not known here cannot be set right by replacing all."""
    rig = Rig()
    first = run(rig, wires([*deltas(["All that was said before. "]), ASKS]))
    more = updates(("ha", True), ("haha", True), ("no", True))
    second = run(rig, wires([*more, DONE]), gap_ms=300)
    text = Client().takes([*first, *second]).texts["a1"]
    assert text == "All that was said before. hahahano"


def test_an_artifact_that_the_first_task_of_a_stream_shows_is_not_begun_again():
    made = wires([Task("working", (("a1", parts("Before. ")),)), Update("a1", parts("Now."), True)])
    left = run(Rig(), made)
    assert [frame.wire for frame in left] == made
    assert Client().takes(left).texts == {"a1": "Before. Now."}


def test_an_artifact_of_a_task_without_a_name_is_begun_in_each_stream():
    rig = Rig()
    for _ in range(2):
        made = [wire.replace(b"task-1", b"") for wire in wires([*updates(("Hi", True)), DONE])]
        assert Client().takes(run(rig, made)).violations == []


def test_a_subscription_that_begins_with_no_task_keeps_what_the_client_has():
    """Two updates that look like snapshots, and are none: no replacement may tell only the rest."""
    made = wires([*updates(("ha", True), ("haha", True), ("no", True)), DONE], AGAIN)
    left = run(Rig(), made, AGAIN, gap_ms=300)
    had = [Frame(Side.SERVER, RPC03.kind, wire) for wire in wires(deltas(["What it had. "]))]
    text = Client().takes([*had, *left]).texts["a1"]
    assert text == "What it had. hahahano"


def test_a_subscription_that_begins_all_again_is_taken_as_it_comes():
    made = wires([*updates(("What ", False), ("it had.", True)), DONE], AGAIN)
    assert [frame.wire for frame in run(Rig(), made, AGAIN)] == made


def of_task(number: int, *events) -> list[bytes]:
    return [
        wire.replace(b"task-1", b"task-%d" % number).replace(b'"a1"', b'"a-%d"' % number)
        for wire in wires(events, forms.WS_TEXT)
    ]


def test_many_tasks_on_one_socket_are_each_mended_and_old_ones_make_room():
    rig = Rig(snapshot_to_delta={"max_artifacts": 4}, final_message_once={"max_tasks": 4})
    sent = []
    for number in range(40):
        end = Status("completed", parts(ANSWER), "m1", True)
        sent += of_task(number, *deltas(so_far(PIECES)), end)
    client = Client().takes(run(rig, sent, forms.WS_TEXT))
    assert client.texts == {f"a-{number}": ANSWER for number in range(40)}
    assert client.final == ""
    assert not rig.skips


def test_an_artifact_that_was_forgotten_goes_on_without_losing_its_beginning():
    rig = Rig(snapshot_to_delta={"max_artifacts": 2})
    sent = of_task(1, Update("a1", parts("Before. ")), ASKS)
    for number in (2, 3, 4):
        sent += of_task(number, Update("a1", parts("x")), DONE)
    sent += of_task(1, Update("a1", parts("Now."), True), DONE)
    client = Client().takes(run(rig, sent, forms.WS_TEXT))
    assert client.texts["a-1"] == "Before. Now."


def test_an_artifact_that_found_no_room_goes_on_without_losing_its_beginning():
    rig = Rig(snapshot_to_delta={"max_artifacts": 1})
    sent = of_task(1, Update("a1", parts("One. ")))
    sent += of_task(2, Update("a1", parts("Before. ")))
    sent += of_task(1, DONE)
    sent += of_task(2, Update("a1", parts("Now."), True), DONE)
    client = Client().takes(run(rig, sent, forms.WS_TEXT))
    assert client.texts == {"a-1": "One. ", "a-2": "Before. Now."}
    assert rig.skips["artifact_bound"] == 1


def test_a_task_that_goes_on_is_not_forgotten_for_the_end_of_its_last_turn():
    rig = Rig(snapshot_to_delta={"max_artifacts": 2})
    sent = of_task(1, Update("a1", parts("Mira asked ")), ASKS)
    snapshots = [Update("a1", parts(text), True) for text in so_far(PIECES)[1:]]
    sent += of_task(1, snapshots[0])
    for number in (2, 3, 4):
        sent += of_task(number, Update("a1", parts("x")), DONE)
    sent += of_task(1, *snapshots[1:], DONE)
    client = Client().takes(run(rig, sent, forms.WS_TEXT))
    assert client.texts["a-1"] == ANSWER


LARGE: dict[str, object] = {"max_lane_bytes": 512}


def test_snapshots_over_the_bound_replace_each_other():
    said = so_far(["words that differ, "] * 40)
    client = Client().takes(run(Rig(snapshot_to_delta=LARGE), wires([*deltas(said), DONE])))
    assert client.texts == {"a1": said[-1]}


def test_what_a_server_says_next_over_the_bound_replaces_nothing():
    said = so_far(["words that differ, "] * 40)
    made = [*deltas([*said, "Then something else.", "Then something else. And more."]), DONE]
    text = Client().takes(run(Rig(snapshot_to_delta=LARGE), wires(made))).texts["a1"]
    assert text.startswith(said[-1])
    assert text.endswith("Then something else. And more.")


def test_snapshots_of_a_second_turn_over_the_bound_replace_nothing():
    first = "The first turn said this and no more."
    second = so_far(["Then words that differ, "] * 30)
    made = wires(deltas([first[:20], first, *second]))
    text = Client().takes(run(Rig(snapshot_to_delta=LARGE), made)).texts["a1"]
    assert text.startswith(first)
    assert second[-1] in text


def test_one_answer_counts_once_for_what_an_agent_is_like():
    """A status and a task both end it; after three answers alike the next one waits for nothing."""

    def waits(answers: int) -> bool:
        rig = Rig()
        for number in range(answers):
            end = Task("completed", ((f"a-{number}", parts(ANSWER)),))
            said = [Update(f"a-{number}", parts(p), n > 0) for n, p in enumerate(PIECES)]
            run(rig, wires([*said, DONE, end]))
        line = rig.stream()
        line.send(RPC03.wire(Update("z1", parts("1"))), 0)
        return not line.send(RPC03.wire(Update("z1", parts("10"), True)), 0)

    assert [waits(number) for number in range(4)] == [True, True, True, False]


def test_observing_sees_the_same_rules_as_mending():
    for said in (so_far(PIECES), [*PIECES, ANSWER], PIECES):
        counted = []
        for mode in (Mode.REPAIR, Mode.OBSERVE):
            rig = Rig(mode=mode)
            run(rig, wires([*deltas(said), DONE]))
            counted.append(rig.repairs)
            assert not rig.errors
        assert counted[0] == counted[1], said


def test_another_text_that_replaces_is_what_later_snapshots_go_on_from():
    said = ["Quite another one", "Quite another one, and more", "Quite another one, and more of it"]
    sent = [
        *updates(("The first answer.", False), (said[0], False)),
        *updates((said[1], True), (said[2], True)),
        DONE,
    ]
    client = Client().takes(run(Rig(), wires(sent)))
    assert client.texts == {"a1": said[-1]}


def test_a_server_that_begins_again_takes_nothing_from_the_client_until_it_says_more():
    line = Rig().stream()
    client = Client().takes(line.send(RPC03.wire(Update("a1", parts("Hello Mira, which region?")))))
    for text, append in (("Hello ", False), ("Mira, ", True), ("which region?", True)):
        assert line.send(RPC03.wire(Update("a1", parts(text), append))) == []
    client.takes(line.send(RPC03.wire(Update("a1", parts(" North or south?"), True))))
    assert client.texts == {"a1": "Hello Mira, which region? North or south?"}
