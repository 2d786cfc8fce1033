from midstream.adapters.capture_redact import TOKEN_PREFIX, Redactor
from midstream.core.frames import Frame, Kind, Side
from midstream.core.ports import Record, RecordKind

HEADERS = (("Authorization", "Bearer s3cret"), ("Accept", "*/*"), ("COOKIE", "a=s3cret; b=2"))
NAMES = ("authorization", "Cookie")


def head(kind: RecordKind = RecordKind.OPEN) -> Record:
    return Record(1, 1, 1, kind, meta={"target": "/", "headers": HEADERS})


def test_named_headers_become_tokens_and_the_rest_stays() -> None:
    record = head()
    clean = Redactor(NAMES).record(record)

    assert "s3cret" not in repr(clean)
    headers = clean.meta["headers"]
    assert isinstance(headers, tuple)
    assert [name for name, _ in headers] == [name for name, _ in HEADERS]
    assert headers[1] == ("Accept", "*/*")
    assert headers[0][1].startswith(TOKEN_PREFIX)
    assert record.meta["headers"] == HEADERS, "the record of the session is not changed"


def test_equal_secrets_have_equal_tokens_in_one_capture_and_others_in_the_next() -> None:
    redactor, other = Redactor(NAMES), Redactor(NAMES)

    assert redactor.token("one") == redactor.token("one")
    assert redactor.token("one") != redactor.token("two")
    assert redactor.token("one") != other.token("one")


def test_the_origin_goes_with_the_header_that_says_it() -> None:
    record = Record(1, 1, 1, RecordKind.OPEN, meta={"origin": "http://a", "headers": HEADERS})

    assert Redactor(NAMES).record(record).meta["origin"] == "http://a"
    assert Redactor(["Host"]).record(record).meta["origin"] == ""
    assert "origin" not in Redactor(["host"]).record(head()).meta


def test_response_heads_are_cleaned_too_and_frames_are_left_alone() -> None:
    redactor = Redactor(["authorization"])
    frame = Frame(Side.CLIENT, Kind.WS_TEXT, b"authorization")
    plain = Record(1, 1, 1, RecordKind.FRAME, Side.CLIENT, frame)

    assert "Bearer" not in repr(redactor.record(head(RecordKind.HEADERS)))
    assert redactor.record(plain) is plain
