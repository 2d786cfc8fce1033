"""What AgentScope Java's A2A server sends, read by a page, directly and through midstream.

No registry need have AgentScope: its answers were recorded (`a2a/agentscope_java/README.md` says
how) and are played here. AGENTSCOPE_JAVA_1_0_12 and AGENTSCOPE_JAVA_2_0_2 name running servers that
are to be asked in their place.
"""

import os
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from tests.peers.a2a.agentscope_java import client, proxies, recordings
from tests.peers.a2a.agentscope_java.client import Page
from tests.peers.a2a.agentscope_java.variants import CLEAN, VARIANTS

pytestmark = pytest.mark.peers

VERSIONS = ["1.0.12", "2.0.2"]
HOSTS = {"gateway": proxies.gateway, "mitm": proxies.mitm}


class Places:
    """Where a server is reached: itself, or a midstream in front, started when asked for."""

    def __init__(self, stack: ExitStack, played: str, folders: pytest.TempPathFactory) -> None:
        self._stack = stack
        self._played = played
        self._folders = folders
        self._known: dict[tuple[str, str], str] = {}

    def server(self, version: str, via: str) -> str:
        """Return where a running server is reached, or its recording."""
        live = os.environ.get(f"AGENTSCOPE_JAVA_{version.replace('.', '_')}")
        return self._reached(live, via) if live else self.recording(version, via)

    def recording(self, version: str, via: str) -> str:
        return f"{self._reached(self._played, via)}/{version}"

    def _reached(self, upstream: str, via: str) -> str:
        if via == "direct":
            return upstream
        if (upstream, via) not in self._known:
            host = HOSTS[via](upstream, self._folders.mktemp(via))
            self._known[upstream, via] = self._stack.enter_context(host)
        return self._known[upstream, via]


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Places]:
    with ExitStack() as stack:
        played = stack.enter_context(recordings.playing())
        yield Places(stack, played, tmp_path_factory)


@pytest.mark.parametrize("via", ["gateway", "mitm"])
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("version", VERSIONS)
def test_the_page_shows_the_true_text_once(
    places: Places, version: str, variant: str, via: str
) -> None:
    _, _, body = client.ask(f"{places.server(version, via)}/{variant}")
    page = Page.of(body)
    assert page.text == VARIANTS[variant]
    assert page.states == ["submitted", "working", "completed"]


@pytest.mark.parametrize("via", ["gateway", "mitm"])
@pytest.mark.parametrize("variant", sorted(CLEAN))
@pytest.mark.parametrize("version", VERSIONS)
def test_an_answer_with_nothing_to_mend_passes_byte_for_byte(
    places: Places, version: str, variant: str, via: str
) -> None:
    _, _, body = client.ask(f"{places.recording(version, via)}/{variant}")
    assert body == recordings.body(version, variant)


@pytest.mark.parametrize("via", ["gateway", "mitm"])
@pytest.mark.parametrize("variant", [name for name in VARIANTS if name.startswith("react")])
@pytest.mark.parametrize("version", VERSIONS)
def test_no_tool_call_and_no_result_is_lost(
    places: Places, version: str, variant: str, via: str
) -> None:
    _, _, direct = client.ask(f"{places.server(version, 'direct')}/{variant}")
    _, _, body = client.ask(f"{places.server(version, via)}/{variant}")
    assert Page.of(direct).tools
    assert len(Page.of(body).tools) == len(Page.of(direct).tools)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("version", VERSIONS)
def test_without_midstream_all_but_clean_answers_show_text_twice(
    places: Places, version: str, variant: str
) -> None:
    _, _, body = client.ask(f"{places.server(version, 'direct')}/{variant}")
    text, true = Page.of(body).text, VARIANTS[variant]
    assert (text == true) == (variant in CLEAN)
    assert len(text) >= len(true)
