"""Origins: as the client wrote them, or none."""

import pytest

from midstream.hosts.origins import authority, claimed, origin

HOST = ("Host", "inside:8080")


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1:8080", "Chat.Example.COM", "a.example:443", "localhost:1", "[::1]:8080",
     "[2001:DB8::1]", "[::ffff:10.0.0.1]:65535", "my_host-1", "xn--bcher-kva.example"],
)  # fmt: skip
def test_a_plausible_authority_stays_as_it_came(host):
    assert origin("http", host) == f"http://{host}"
    assert origin("https", host) == f"https://{host}"


@pytest.mark.parametrize(
    "host",
    ["", None, " ", "a b", "a ", "user@a", "user:pw@a:1", "a/b", "a:1/", "http://a", "a:", ":80",
     "a:b", "a:65536", "a:123456", "a,b", "::1", "[::1", "::1]", "[::1]x", "[evil.example]",
     "a\n", "a?b", "a#b", "a\\b", "b\N{LATIN SMALL LETTER U WITH DIAERESIS}cher", "a\udcff",
     "a:\N{ARABIC-INDIC DIGIT EIGHT}", "a" * 256],
)  # fmt: skip
def test_what_is_no_plausible_authority_makes_no_origin(host):
    assert origin("http", host) == ""


@pytest.mark.parametrize(
    ("scheme", "expected"),
    [("HTTPS", "https://a"), ("ws", "http://a"), ("wss", "https://a"), ("ftp", ""), ("", "")],
)
def test_a_scheme_is_that_of_http_in_lower_case(scheme, expected):
    assert origin(scheme, "a") == expected


@pytest.mark.parametrize(
    ("headers", "elements", "expected"),
    [
        ((), (), "http://inside:8080"),
        ((("X-Forwarded-Host", "out.example"),), (), "http://out.example"),
        ((("X-Forwarded-Proto", "https"),), (), "https://inside:8080"),
        ((("x-forwarded-proto", "HTTPS , http"), ("X-Forwarded-Host", " one:1 ,two:2")), (),
         "https://one:1"),
        ((("X-Forwarded-Proto", "wss"), ("X-Forwarded-Host", "[::1]:8")), (), "https://[::1]:8"),
        ((("X-Forwarded-Host", "user@evil"),), (), ""),
        ((("X-Forwarded-Proto", "gopher"),), (), ""),
        ((("X-Forwarded-Host", ""), ("X-Forwarded-Proto", " ,https")), (), "http://inside:8080"),
        ((), ({"host": "out.example:9", "proto": "https"}, {"host": "mid"}),
         "https://out.example:9"),
        ((), ({"for": "1.2.3.4"}, {"host": "mid", "proto": "https"}), "http://inside:8080"),
        ((("X-Forwarded-Host", "x.example"),), ({"host": "f.example", "proto": "https"},),
         "https://x.example"),
    ],
)  # fmt: skip
def test_a_trusted_proxy_tells_the_outermost_host_and_scheme(headers, elements, expected):
    assert claimed((HOST, *headers), "http", elements) == expected


def test_a_request_without_any_host_has_no_origin():
    assert claimed((), "https", ()) == ""


@pytest.mark.parametrize(
    ("scheme", "host", "port", "expected"),
    [
        ("http", "a", 80, "a"),
        ("https", "a", 443, "a"),
        ("https", "a", 80, "a:80"),
        ("http", "127.0.0.1", 8080, "127.0.0.1:8080"),
        ("http", "::1", 8080, "[::1]:8080"),
        ("http", "fe80::1%eth0", 80, "[fe80::1]"),
    ],
)
def test_an_address_is_written_as_clients_write_it(scheme, host, port, expected):
    assert authority(scheme, host, port) == expected
