import pytest

from midstream.hosts.gateway_upstream import exact_url


@pytest.mark.parametrize(
    ("upstream", "host", "port"),
    [
        ("http://127.0.0.1:8787", "127.0.0.1", 8787),
        ("http://[::1]:8787", "::1", 8787),
        ("http://agents.test", "agents.test", 80),
        ("https://agents.test", "agents.test", 443),
    ],
)
def test_requests_at_the_same_time_keep_their_own_targets(upstream, host, port):
    targets = ["/a", "/b?", "/c%2Fd?e=1", "/a#f"]

    urls = [exact_url(upstream, target) for target in targets]

    assert [url.raw_path_qs for url in urls] == targets
    assert {(url.raw_host, url.port) for url in urls} == {(host, port)}
