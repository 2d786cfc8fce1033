import msgpack

from midstream.adapters.capture_redact import TOKEN_PREFIX, Redactor
from midstream.core.addon import Answer, Fetch
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


def test_headers_with_telling_names_go_and_those_that_only_sound_like_it_stay() -> None:
    headers = (
        ("X-Vendor-Api-Key", "plain"), ("X-Auth-Token", "plain"), ("X-Access-Token", "plain"),
        ("Access-Control-Allow-Credentials", "true"), ("Sec-WebSocket-Key", "dGhlIHNhbXBsZQ=="),
        ("X-Request-Id", "0123456789abcdef0123456789abcdef"), ("Idempotency-Key", "key-1234567"),
    )  # fmt: skip
    clean = Redactor([]).record(Record(1, 1, 1, RecordKind.OPEN, meta={"headers": headers}))
    left = clean.meta["headers"]
    assert isinstance(left, tuple)
    assert left[3:] == headers[3:]
    assert all(value.startswith(TOKEN_PREFIX) for _, value in left[:3])
    assert clean.meta["redactions"] == {"header": 3}


def test_a_key_has_one_token_in_a_header_a_target_and_a_body() -> None:
    key = "".join(f"{number:x}k" for number in range(12))
    redactor = Redactor([])
    meta: dict[str, object] = {
        "target": f"/x?api_key={key}&page=2",
        "headers": (("Authorization", f"Bearer {key}"), ("X-Api-Key", key)),
    }
    opened = redactor.record(Record(1, 1, 1, RecordKind.OPEN, meta=meta))
    body = Frame(Side.CLIENT, Kind.BODY, f'{{"password":"{key}"}}'.encode())
    sent = redactor.record(Record(1, 1, 2, RecordKind.FRAME, Side.CLIENT, body))
    token = redactor.token(key)
    assert opened.meta["target"] == f"/x?api_key={token}&page=2"
    assert opened.meta["headers"] == (("Authorization", token), ("X-Api-Key", token))
    assert sent.frame is not None
    assert sent.frame.wire == f'{{"password":"{token}"}}'.encode()


def test_parameters_that_are_no_secrets_stay() -> None:
    target = "/x?page=2&key=name&code=404&session=1&max_tokens=5&next_page_token=abc123def456"
    opened = Record(1, 1, 1, RecordKind.OPEN, meta={"target": target})
    assert Redactor([]).record(opened) is opened


def test_what_is_known_by_name_in_msgpack_goes_and_lengths_stay_right() -> None:
    packed = msgpack.packb({"password": "hunter 2", "n": [1, {"token": "word"}], "b": b"\x00\xff"})
    frame = Frame(Side.CLIENT, Kind.WS_BINARY, packed)
    clean = Redactor([]).record(Record(1, 1, 1, RecordKind.FRAME, Side.CLIENT, frame)).frame
    assert clean is not None
    found = msgpack.unpackb(clean.wire)
    assert found["password"].startswith(TOKEN_PREFIX)
    assert found["n"] == [1, {"token": "word"}]
    assert found["b"] == b"\x00\xff"


def test_in_bytes_that_nobody_reads_a_token_is_as_long_as_the_secret() -> None:
    wire = b"\xff\x00\x07" + b"gh" + b"p_" + b"0aA1" * 9 + b"\x00\xfe"
    frame = Frame(Side.CLIENT, Kind.WS_BINARY, wire)
    clean = Redactor([]).record(Record(1, 1, 1, RecordKind.FRAME, Side.CLIENT, frame)).frame
    assert clean is not None
    assert len(clean.wire) == len(wire)
    assert b"0aA1" not in clean.wire
    assert clean.wire[:3] + clean.wire[-2:] == wire[:3] + wire[-2:]


def test_asks_answers_and_reasons_are_cleaned() -> None:
    key = "gh" + "p_" + "0aA1" * 9
    meta: dict[str, object] = {
        "ask": Fetch(f"/list?token={key}"), "answer": Answer(200, f'{{"text":"{key}"}}'.encode()),
        "why": [["addon", "rule", {"found": f"x {key}", "count": 3}]], "reason": f"no {key}",
    }  # fmt: skip
    clean = Redactor([]).record(Record(1, 1, 1, RecordKind.ASK, meta=meta))
    assert key not in repr(clean)
    counted = clean.meta["redactions"]
    assert isinstance(counted, dict)
    assert sum(counted.values()) == 4
    plain: dict[str, object] = {
        "ask": Fetch("/list"), "answer": Answer(200, b"{}"), "why": [["a", "b", {"n": 1}]],
    }  # fmt: skip
    record = Record(1, 1, 1, RecordKind.ASK, meta=plain)
    assert Redactor([]).record(record) is record
