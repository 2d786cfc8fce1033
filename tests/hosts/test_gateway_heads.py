import pytest

from midstream.hosts import gateway_heads as heads

PAIRS = (("Host", "a"), ("X-A", "1"), ("x-a", "2"), ("Cookie", "c"))


def test_end_to_end_headers_keep_order_case_and_repetitions():
    assert heads.end_to_end(PAIRS) == PAIRS


def test_what_connection_names_ends_here_whatever_its_case():
    pairs = (*PAIRS, ("Connection", "keep-alive, X-a"), ("connection", "Foo"), ("FOO", "1"))
    assert heads.end_to_end(pairs) == (("Host", "a"), ("Cookie", "c"))


def test_more_headers_can_be_left_out():
    assert heads.end_to_end(PAIRS, frozenset({"host"})) == PAIRS[1:]


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("X-A", "9", (("Host", "a"), ("X-A", "9"), ("Cookie", "c"))),
        ("x-a", None, (("Host", "a"), ("Cookie", "c"))),
        ("X-New", "9", (*PAIRS, ("X-New", "9"))),
        ("X-New", None, PAIRS),
    ],
)
def test_a_header_is_replaced_where_its_first_stood(name, value, expected):
    assert heads.replaced(PAIRS, name, value) == expected


def test_bytes_that_are_not_utf8_survive_as_escapes():
    ((name, value),) = heads.decoded([(b"X-A", b"caf\xe9 \xc3\xa9")])
    assert name == "X-A"
    assert value.encode("utf-8", "surrogateescape") == b"caf\xe9 \xc3\xa9"


@pytest.mark.parametrize(
    ("peer", "trusted"),
    [
        ("10.1.2.3", True),
        ("11.1.2.3", False),
        ("::1", True),
        ("::ffff:10.0.0.1", True),
        ("fe80::1%eth0", False),
        ("", False),
        ("not an address", False),
    ],
)
def test_a_proxy_is_trusted_by_its_address(peer, trusted):
    networks = heads.parse_networks(["10.0.0.0/8", "::1"])
    assert heads.is_trusted(peer, networks) is trusted


def test_nobody_is_trusted_by_default():
    assert not heads.is_trusted("127.0.0.1", ())


def test_a_network_that_is_none_is_an_error():
    with pytest.raises(ValueError, match="does not appear to be"):
        heads.parse_networks(["10.0.0.0/99"])


def test_a_trusted_proxy_that_says_nothing_is_told_for():
    told = heads.forwarded((("Host", "a"),), "10.0.0.1", "https", trusted=True)
    assert told == (
        ("Host", "a"),
        ("X-Forwarded-For", "10.0.0.1"),
        ("X-Forwarded-Host", "a"),
        ("X-Forwarded-Proto", "https"),
    )


@pytest.mark.parametrize(
    ("value", "expected"),
    [("a, b ,c", ("a", "b", "c")), (" a,", ("a",)), ("", ())],
)
def test_subprotocols_are_listed_in_order(value, expected):
    assert heads.subprotocols((("Sec-WebSocket-Protocol", value),)) == expected


def test_an_offer_of_compression_is_seen():
    offer = ("sec-websocket-extensions", "x-other, Permessage-Deflate; client_max_window_bits")
    assert heads.offers_deflate((offer,))
    assert not heads.offers_deflate((("Sec-WebSocket-Extensions", "x-other"),))
