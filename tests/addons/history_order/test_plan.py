"""The plan: what moves, where to, and that it is what trying every place would find."""

import random

from midstream.dialects.provider_history import Item, Kind
from midstream_addons.history_order.entries import Entry
from midstream_addons.history_order.match import Matched
from midstream_addons.history_order.plan import plan
from midstream_addons.history_order.units import stretches, units_of


def matched(*rows: tuple[Kind, Entry | None]) -> Matched:
    items = [
        Item(kind, (index, 0), call_id=f"c{entry.seq}" if entry and kind is Kind.CALL else "c0")
        for index, (kind, entry) in enumerate(rows)
    ]
    return Matched(items, [entry for _, entry in rows], [False] * len(rows))


def text(seq: int, **more: object) -> tuple[Kind, Entry]:
    fields: dict[str, object] = {"step": seq, "turn": 0, "response": 1 + seq, **more}
    return Kind.TEXT, Entry(seq, Kind.TEXT, **fields)  # type: ignore[arg-type]  # as given


def call(seq: int, **more: object) -> tuple[Kind, Entry]:
    fields: dict[str, object] = {"step": seq, "turn": 0, "response": 1 + seq, **more}
    return Kind.CALL, Entry(seq, Kind.CALL, **fields)  # type: ignore[arg-type]  # as given


def thought(seq: int, **more: object) -> tuple[Kind, Entry]:
    fields: dict[str, object] = {"step": seq, "turn": 0, "response": 1 + seq, **more}
    return Kind.REASONING, Entry(seq, Kind.REASONING, **fields)  # type: ignore[arg-type]  # as given


USER: tuple[Kind, None] = (Kind.USER, None)


def order(*rows: tuple[Kind, Entry | None]) -> list[int]:
    return plan(matched(*rows)).order


def test_a_text_goes_before_the_first_later_call_of_another_step():
    assert order(call(1), call(2), text(0)) == [2, 0, 1]
    assert order(call(1, step="A"), call(2), text(0, step="A")) == [0, 2, 1]


def test_texts_keep_the_order_of_the_ledger_among_themselves():
    assert order(call(4), text(2), text(0), text(1)) == [2, 3, 1, 0]


def test_nothing_moves_towards_the_end():
    assert order(text(5), call(1), call(2)) == [0, 1, 2]


def test_nothing_moves_past_what_a_user_said():
    assert order(call(1), USER, text(0)) == [0, 1, 2]


def test_nothing_moves_past_an_item_that_is_not_matched():
    assert order(call(1), (Kind.TEXT, None), text(0)) == [0, 1, 2]


def test_nothing_moves_past_an_ambiguous_item():
    rows = matched(call(2), text(1), text(0))
    ambiguous = Matched(rows.items, rows.entries, [False, True, False])
    assert plan(ambiguous).moved == []


def test_nothing_moves_past_a_result_whose_call_is_not_there():
    assert order(call(1), (Kind.RESULT, None), text(0)) == [0, 1, 2]


def test_nothing_is_overtaken_that_the_ledger_has_first():
    assert order(call(3), call(1), call(4), text(2)) == [0, 1, 3, 2]


def test_a_text_of_another_turn_stays():
    assert order(call(1), text(0, turn=1)) == [0, 1]


def test_what_has_no_step_or_was_run_by_the_provider_or_cut_stays():
    for more in ({"step": None}, {"is_hosted": True}, {"is_complete": False}):
        assert order(call(1), text(0, **more)) == [0, 1]
    assert order(call(1, is_hosted=True), text(0)) == [0, 1]


def test_reasoning_goes_with_what_it_came_directly_before():
    rows = (call(3), thought(1, response=7), text(2, response=7))
    assert order(*rows) == [1, 2, 0]
    assert plan(matched(*rows)).moved == [1, 2]


def test_reasoning_of_another_response_is_not_taken_along():
    assert plan(matched(call(3), thought(1, response=5), text(2, response=7))).moved == [1, 2]
    units = units_of(matched(thought(1, response=5), text(2, response=7)), [0, 1])
    assert [unit.items for unit in units] == [[0], [1]]


def test_reasoning_stays_before_its_call_when_a_text_goes_in_front():
    rows = (thought(1, response=7), call(2, response=7), text(0))
    assert order(*rows) == [2, 0, 1]


def one_after_another(rows: Matched) -> list[int]:
    """Plan as the rules are told: each text to the first place that nothing speaks against."""
    found: list[int] = []
    for stretch in stretches(rows):
        units = units_of(rows, stretch) if len(stretch) > 1 else []
        if not units:
            found += stretch
            continue
        current = list(units)
        movable = [unit for unit in units if unit.moves and unit.head is not None]
        for unit in sorted(movable, key=lambda u: u.head.seq if u.head else 0):
            at = current.index(unit)
            for place in range(at):
                other = current[place].head
                passed = [rows.entries[i] for u in current[place:at] for i in u.items]
                if (
                    current[place].kind is Kind.CALL
                    and other is not None
                    and unit.head is not None
                    and not other.is_hosted
                    and (other.turn, other.seq > unit.head.seq) == (unit.head.turn, True)
                    and other.step != unit.head.step
                    and all(e is None or e.seq > unit.head.seq for e in passed)
                ):
                    current.insert(place, current.pop(at))
                    break
        found += [index for unit in current for index in unit.items]
    return found


def random_rows(rnd: random.Random) -> Matched:
    count = rnd.randrange(2, 14)
    seqs = list(range(count))
    rnd.shuffle(seqs)
    rows: list[tuple[Kind, Entry | None]] = []
    for seq in seqs:
        make = rnd.choice([text, text, call, call, thought])
        step = rnd.choice([seq, "A", "B", None])
        response = rnd.choice([0, 1 + seq // 3])
        rows.append(make(seq, step=step, turn=int(rnd.random() < 0.1), response=response))
        if rnd.random() < 0.08:
            rows.append(USER)
    return matched(*rows)


def test_planning_agrees_with_trying_every_place():
    rnd = random.Random(5)
    moved = 0
    for _ in range(3_000):
        rows = random_rows(rnd)
        planned = plan(rows)
        assert planned.order == one_after_another(rows)
        assert sorted(planned.order) == list(range(len(rows.items)))
        moved += bool(planned.moved)
    assert moved > 500


def test_ten_thousand_texts_find_their_places():
    count = 10_000
    calls = [call(2 * n + 1) for n in range(count)]
    texts = [text(2 * n) for n in range(count)]
    wanted = [place for n in range(count) for place in (count + n, n)]
    assert order(*calls, *texts) == wanted
