import pytest

from midstream.core.body import BodyCollector
from midstream.core.errors import FrameTooLarge


def test_a_body_is_its_chunks() -> None:
    body = BodyCollector(10)
    for chunk in (b"01234", b"", b"56789"):
        body.receive(chunk)
    assert body.drain() == b"0123456789"
    assert body.drain() == b""


def test_over_the_limit_everything_is_handed_out() -> None:
    body = BodyCollector(10)
    body.receive(b"01234567")
    with pytest.raises(FrameTooLarge, match="body is at least 11 bytes, limit is 10"):
        body.receive(b"89a")
    assert body.drain() == b"0123456789a"
    with pytest.raises(FrameTooLarge, match="at least 12 bytes"):
        body.receive(b"b")
    assert body.drain() == b"b"
