import json
from pathlib import Path

import pytest
from tests.planted import chars

from midstream.adapters.capture_format import read
from midstream.adapters.capture_recorder import Recorder
from midstream.adapters.capture_redact import Redactor
from midstream.adapters.capture_selfcheck import (
    MAX_SECRET_BYTES,
    MAX_SECRETS,
    MIN_SECRET_BYTES,
    SelfCheck,
)
from midstream.config.schema import CaptureTable
from midstream.core import metrics
from midstream.core.frames import Frame, Kind, Side
from midstream.core.metrics import Counts
from midstream.core.ports import Record, RecordKind


def test_a_secret_that_was_taken_out_is_found_in_what_is_written():
    check, secret = SelfCheck(), chars(30).encode()
    assert check.is_clean(secret)
    check.remember(secret)
    assert not check.is_clean(b"before " + secret + b" behind")
    assert check.is_clean(b"before " + secret[:-1] + b" behind")
    check.remember(chars(31).encode())
    assert not check.is_clean(chars(31).encode())
    assert not check.is_clean(secret)


@pytest.mark.parametrize("plain", [b"short1", b"word", b"two words 12345", b"onlyletters"])
def test_what_may_stand_elsewhere_by_chance_is_not_looked_for(plain: bytes):
    check = SelfCheck()
    check.remember(plain)
    assert check.is_clean(plain)


def test_the_oldest_go_and_of_a_long_one_its_end_is_kept():
    check = SelfCheck()
    many = [f"secret-number-{number:06}".encode() for number in range(MAX_SECRETS + 1)]
    for secret in many:
        check.remember(secret)
    assert len(check.latest) == MAX_SECRETS
    assert check.is_clean(many[0])
    assert not check.is_clean(many[1])
    long = (chars(60) * 20).encode()
    check.remember(long)
    assert check.latest[-1] == long[-MAX_SECRET_BYTES:]
    assert min(map(len, check.latest)) >= MIN_SECRET_BYTES


def test_a_redactor_remembers_what_it_takes_out_and_writes_none_of_it():
    clean, secret = Redactor(["x-tenant"]), chars(30)
    opened = Record(1, 1, 1, RecordKind.OPEN, meta={"headers": (("X-Tenant", secret),)})
    assert secret not in repr(clean.record(opened))
    wire = json.dumps({"echo": secret}).encode()
    echoed = Record(1, 1, 2, RecordKind.FRAME, Side.SERVER, Frame(Side.SERVER, Kind.SSE, wire))
    assert clean.record(echoed) is echoed, "no name and no shape tells of it"
    assert not clean.check.is_clean(wire)
    known = Redactor([], known=clean.check).record(echoed)
    assert known.frame is not None
    assert secret.encode() not in known.frame.wire
    assert known.meta["redactions"] == {"known": 1}


def test_a_record_that_still_holds_one_is_not_written_but_counted_and_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    counts, secret = Counts(), chars(30)
    table = CaptureTable(dir=str(tmp_path), min_free_bytes=0)
    recorder = Recorder(table, "c", counts)
    recorder.start()
    opened = Record(1, 1, 1, RecordKind.OPEN, meta={"headers": (("X-Api-Key", secret),)})
    recorder.write(opened)
    for seq, text in enumerate((secret, "plain", secret), 2):
        frame = Frame(Side.SERVER, Kind.WS_TEXT, json.dumps({"echo": text}).encode())
        recorder.write(Record(1, 1, seq, RecordKind.FRAME, Side.SERVER, frame))
    recorder.stop()
    assert [record.seq for record in read(tmp_path / "c")] == [1, 3]
    assert counts.get(metrics.CAPTURE_DROPPED, ("secret",)) == 2
    assert secret.encode() not in b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert len(caplog.records) == 1
    assert secret not in caplog.text
