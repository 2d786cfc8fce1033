"""Heads: read without decoding anything."""

import pytest
from tests.support import request

from midstream.core.exchange import Exchange, RequestHead, ResponseHead, header, media_type


def test_a_header_is_found_in_any_case_and_the_first_value_counts():
    headers = (("X-Id", "1"), ("x-id", "2"))
    assert header(headers, "x-id") == "1"
    assert header(headers, "x-other") is None
    assert RequestHead("GET", "/", headers).header("x-id") == "1"
    assert ResponseHead(200, headers).header("x-id") == "1"


@pytest.mark.parametrize(
    ("target", "path", "query"),
    [
        ("/a/b?x=1&y=2", "/a/b", "x=1&y=2"),
        ("/a", "/a", ""),
        ("/a?", "/a", ""),
        ("/a?x?y", "/a", "x?y"),
        ("/a%2Fb/../c//d?%3F", "/a%2Fb/../c//d", "%3F"),
        ("*", "*", ""),
    ],
)
def test_a_target_is_cut_at_its_query_and_not_decoded(target, path, query):
    head = RequestHead("GET", target)
    assert (head.path, head.query) == (path, query)


@pytest.mark.parametrize(
    ("value", "expected"),
    [("websocket", True), (" WebSocket ", True), ("h2c", False), ("", False)],
)
def test_an_upgrade_to_websocket_is_recognised(value, expected):
    assert request(Upgrade=value).is_websocket is expected
    assert not request().is_websocket


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("application/json", "application/json"),
        ("Text/Event-Stream; charset=utf-8", "text/event-stream"),
        (" text/html ;x", "text/html"),
        ("", ""),
    ],
)
def test_a_media_type_has_no_parameters_and_no_capitals(value, expected):
    headers = (("Content-Type", value),)
    assert media_type(headers) == expected
    assert RequestHead("GET", "/", headers).content_type == expected
    assert ResponseHead(200, headers).content_type == expected
    assert ResponseHead(200, headers).is_event_stream is (expected == "text/event-stream")


def test_a_head_without_a_content_type_has_an_empty_one():
    assert ResponseHead(204).content_type == ""
    assert not ResponseHead(204).is_event_stream


def test_an_exchange_can_be_made_of_a_head_alone():
    head = request("/a")
    assert Exchange.of(head) == Exchange(1, "default", "", head)
    assert Exchange.of(head, number=3, route="r", upstream="u") == Exchange(3, "r", "u", head)
    made = Exchange.of(head, origin="http://a", pattern="/a/*")
    assert made == Exchange(1, "default", "", head, "http://a", "/a/*")
    assert (Exchange.of(head).origin, Exchange.of(head).pattern) == ("", "/*")
