"""The ledger: a tree of responses within bounds, small, and free of what was said."""

import tracemalloc

import msgspec
import pytest

from midstream.dialects.provider_history import Digests, Kind, Learned, Output
from midstream_addons.history_order.ledger import MAX_FOUND, Begun, Bounds, Ledger

DIGESTS = Digests(b"secret")
ROOMY = Bounds(max_responses=1 << 20, max_bytes=1 << 30, max_age_s=3600)
MAX_ENTRY_BYTES = 250


def text(value: object) -> Output:
    return Output(Kind.TEXT, (DIGESTS.of_key(f"id:t{value}"),), DIGESTS.of_text(f"{value}"))


def call(value: object) -> Output:
    keys = (DIGESTS.of_key(f"id:c{value}"), DIGESTS.of_key(f"call:{value}"))
    return Output(Kind.CALL, keys)


def learned(*outputs: Output, name: str = "", is_complete: bool = True) -> Learned:
    identifier = DIGESTS.of_key(f"response:{name}") if name else b""
    return Learned(identifier, list(outputs), is_complete)


def chain(ledger: Ledger, count: int, bounds: Bounds = ROOMY, now_s: int = 0) -> list[int]:
    """Commit so many responses, one after the other."""
    numbers = [0]
    for value in range(count):
        said = learned(text(value), call(value), name=f"r{value}")
        numbers.append(ledger.commit(Begun(numbers[-1], 0), said, now_s, bounds))
    return numbers[1:]


def test_a_response_is_found_by_its_keys_its_name_and_its_parent():
    ledger = Ledger()
    first, second, third = chain(ledger, 3)
    assert ledger.holders(DIGESTS.of_key("call:1")) == [second]
    assert ledger.holders(DIGESTS.of_key("id:t2")) == [third]
    assert ledger.named(DIGESTS.of_key("response:r1")) == second
    assert ledger.children(first) == [second]
    assert list(ledger.outputs(second)) == [text(1), call(1)]
    heads = [ledger.head(number) for number in (first, second, third)]
    assert [(head.parent, head.depth, head.turn) for head in heads] == [
        (0, 0, first), (first, 1, second), (second, 2, third),
    ]  # fmt: skip


def test_a_response_that_ends_in_a_text_and_has_no_parent_is_found_by_it():
    ledger = Ledger()
    number = ledger.commit(Begun(), learned(text("hi")), 0, ROOMY)
    ledger.commit(Begun(number, 0), learned(text("hi")), 0, ROOMY)
    assert ledger.roots(DIGESTS.of_text("hi")) == [number]


def test_nothing_is_remembered_of_a_response_that_said_nothing():
    ledger = Ledger()
    assert ledger.commit(Begun(), learned(), 0, ROOMY) == 0
    assert ledger.records == {}


def test_the_longest_unused_response_is_forgotten_first():
    ledger = Ledger()
    bounds = Bounds(max_responses=3, max_bytes=1 << 30, max_age_s=3600)
    first, second, third = chain(ledger, 3, bounds)
    ledger.use([first], 1)
    ledger.commit(Begun(), learned(text("new")), 2, bounds)
    assert list(ledger.records)[:2] == [third, first]
    assert ledger.holders(DIGESTS.of_key("call:1")) == []
    assert ledger.children(first) == []
    assert second not in ledger.records


def test_bytes_are_bounded():
    ledger = Ledger()
    chain(ledger, 500, Bounds(max_responses=1 << 20, max_bytes=20_000, max_age_s=3600))
    assert ledger.size_bytes <= 20_000
    assert 10 < len(ledger.records) < 500


def test_what_was_not_used_for_too_long_is_forgotten():
    ledger = Ledger()
    bounds = Bounds(max_responses=100, max_bytes=1 << 30, max_age_s=60)
    numbers = chain(ledger, 3, bounds)
    ledger.use(numbers[1:2], 50)
    new = ledger.commit(Begun(), learned(text("new")), 61, bounds)
    assert list(ledger.records) == [numbers[1], new]


def test_nothing_is_left_of_what_was_forgotten():
    ledger = Ledger()
    bounds = Bounds(max_responses=2, max_bytes=1 << 30, max_age_s=3600)
    chain(ledger, 2_000, bounds)
    per_response = 2 * 2 + 1  # ids, call id, name, parent
    assert ledger.index.count <= 2 * per_response
    assert ledger.record_bytes == sum(map(len, ledger.records.values()))


def test_a_child_of_a_forgotten_parent_begins_anew():
    ledger = Ledger()
    number = ledger.commit(Begun(99, 98), learned(text("hi")), 0, ROOMY)
    assert (ledger.head(number).parent, ledger.head(number).depth) == (0, 0)


def test_a_key_that_too_many_hold_identifies_nothing():
    ledger = Ledger()
    same = DIGESTS.of_key("call:call_0")
    for value in range(MAX_FOUND + 1):
        outputs = (text(value), Output(Kind.CALL, (same,)))
        ledger.commit(Begun(), learned(*outputs), 0, ROOMY)
        assert len(ledger.holders(same)) == (value + 1 if value < MAX_FOUND else 0)


def test_two_responses_of_one_name_are_not_told_apart():
    ledger = Ledger()
    for value in range(2):
        ledger.commit(Begun(), learned(text(value), name="resp_1"), 0, ROOMY)
    assert ledger.named(DIGESTS.of_key("response:resp_1")) == 0


def test_a_ledger_survives_being_stored():
    ledger = Ledger()
    chain(ledger, 50)
    again = msgspec.msgpack.decode(msgspec.msgpack.encode(ledger), type=Ledger)
    assert again == ledger
    assert again.holders(DIGESTS.of_key("call:7")) == ledger.holders(DIGESTS.of_key("call:7"))
    assert chain(again, 1) == [1]  # known already


def test_nothing_that_was_said_is_in_it():
    ledger = Ledger()
    secret = "the launch code is 0000"
    said = learned(text(secret), call(secret), name=secret)
    ledger.commit(Begun(), said, 0, ROOMY)
    stored = msgspec.msgpack.encode(ledger)
    assert len(stored) < 400
    for size in (8, 4):
        pieces = {secret[at : at + size].encode() for at in range(len(secret) - size)}
        assert not any(piece in stored for piece in pieces)


@pytest.mark.parametrize("per_response", [1, 2, 3])
def test_an_output_takes_no_more_than_250_bytes(per_response):
    tracemalloc.start()
    try:
        ledger, begun, count = Ledger(), Begun(), 6_000
        for value in range(count // per_response):
            outputs = [text(value), call(value), call(f"b{value}")][:per_response]
            number = ledger.commit(begun, learned(*outputs, name=f"r{value}"), 0, ROOMY)
            begun = Begun(number, 0)
        used, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert used <= MAX_ENTRY_BYTES * count
    assert 0.8 * used < ledger.size_bytes < 1.3 * used  # what it says of itself is true
