"""The index: every digest is found again, however large it grows."""

import random
from hashlib import blake2b

from midstream_addons.history_order.index import FILL, Index


def digest(value: object) -> bytes:
    return blake2b(repr(value).encode(), digest_size=16).digest()


def test_what_was_added_is_found_and_what_was_taken_out_is_not():
    rnd, index = random.Random(7), Index()
    held: set[tuple[int, int]] = set()
    for _ in range(6_000):
        pair = rnd.randrange(900), rnd.randrange(1, 50)
        if pair in held and rnd.random() < 0.7:
            held.remove(pair)
            index.discard(digest(pair[0]), pair[1])
        elif pair not in held:
            held.add(pair)
            index.add(digest(pair[0]), pair[1])
    for value in range(900):
        wanted = sorted(number for key, number in held if key == value)
        assert sorted(index.find(digest(value))) == wanted
    assert index.count == len(held)


def test_no_bucket_grows_with_the_table():
    index = Index()
    for value in range(50_000):
        index.add(digest(value), value)
    assert len(index.buckets) >= 50_000 // FILL
    assert max(map(len, index.buckets)) < 8 * 5 * FILL
    assert all(index.find(digest(value)) == [value] for value in range(0, 50_000, 101))


def test_what_is_not_there_is_neither_found_nor_taken_out():
    index = Index()
    index.add(digest("a"), 1)
    index.discard(digest("b"), 1)
    index.discard(digest("a"), 2)
    assert (index.find(digest("a")), index.find(digest("b")), index.count) == ([1], [], 1)


def test_a_number_that_looks_like_a_digest_is_not_taken_for_one():
    tag = bytes([1, 2, 3, 4])
    index = Index()
    index.add(bytes([9, 9, 9, 9]), int.from_bytes(tag, "little"))
    index.add(tag + bytes(12), 5)
    assert index.find(tag + bytes(12)) == [5]
    index.discard(tag + bytes(12), 5)
    assert index.find(bytes([9, 9, 9, 9])) == [int.from_bytes(tag, "little")]
