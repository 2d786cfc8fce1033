import tracemalloc

from midstream.adapters.capture_ring import WAITING_BYTES, Gap, Piece, Ring, Trail, Waiting
from midstream.core.ports import RecordKind

KIB = 1024
FOREVER_NS = 1 << 60


def waiting(
    trail: Trail, text: str, kind: RecordKind = RecordKind.FRAME, *, at_ns: int = 0
) -> Waiting:
    return Waiting(trail, kind, at_ns, text.encode())


def opened(number: int, path: str = "/chat") -> tuple[Trail, Waiting]:
    trail = Trail(number, "chat", path)
    return trail, waiting(trail, f"open {number}", RecordKind.OPEN)


def texts(pieces: list[Piece]) -> list[str]:
    return [
        f"gap {piece.trail.number}: {piece.count}"
        if isinstance(piece, Gap)
        else piece.block.decode()
        for piece in pieces
    ]


def test_what_is_taken_comes_in_order_and_once():
    ring = Ring(KIB, FOREVER_NS)
    trail, head = opened(1)
    ring.add(head)
    ring.add(waiting(trail, "a"))
    assert texts(list(ring.take_all())) == ["open 1", "a"]
    assert list(ring.take_all()) == []
    assert (len(ring), ring.size_bytes) == (0, 0)


def test_with_an_exchange_go_those_of_its_place_and_no_others():
    ring = Ring(10 * KIB, FOREVER_NS)
    (one, head1), (two, head2), (other, head3) = opened(1), opened(2), opened(3, "/other")
    for each in (head1, head2, head3, waiting(one, "a"), waiting(two, "b"), waiting(other, "c")):
        ring.add(each)
    assert texts(list(ring.take(two))) == ["open 1", "open 2", "a", "b"]
    assert len(ring) == 2
    assert texts(list(ring.take_all())) == ["open 3", "c"]


def test_the_oldest_go_by_size_but_heads_stay_while_an_exchange_is_open_and_a_gap_says_so():
    ring = Ring(10 * (WAITING_BYTES + 4), FOREVER_NS)
    trail, head = opened(1)
    ring.add(head)
    for number in range(100):
        ring.add(waiting(trail, f"{number:4}"))
    assert len(ring) == 10
    assert texts(list(ring.take(trail))) == [
        "open 1",
        "gap 1: 90",
        *[f"  {n}" for n in range(90, 100)],
    ]


def test_heads_go_with_the_last_record_of_an_exchange_that_is_over():
    ring = Ring(3 * WAITING_BYTES, FOREVER_NS)
    trail, head = opened(1)
    ring.add(head)
    ring.add(waiting(trail, "a"))
    ring.close(trail)
    other, _ = opened(2)
    for _ in range(3):
        ring.add(waiting(other, "b"))
    assert texts(list(ring.take_all())) == ["gap 2: 1", "b", "b"]
    assert ring.size_bytes == 0


def test_the_oldest_go_by_age():
    ring = Ring(KIB, 100)
    trail = Trail(1, "chat", "/")
    ring.add(waiting(trail, "old", at_ns=0))
    ring.add(waiting(trail, "edge", at_ns=50))
    ring.add(waiting(trail, "new", at_ns=150))
    assert texts(list(ring.take_all())) == ["gap 1: 1", "edge", "new"]


def test_a_ring_stays_within_its_bytes_whatever_is_taken_from_it():
    bound = 256 * KIB
    ring = Ring(bound, FOREVER_NS)
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for number in range(200):
        trail, head = opened(number, f"/{number}")
        ring.add(head)
        for at in range(100):
            ring.add(waiting(trail, "x" * (at * 7)))
            assert ring.size_bytes <= 2 * bound
        if number % 3:
            list(ring.take(trail))
        ring.close(trail)
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert grown < 3 * bound
