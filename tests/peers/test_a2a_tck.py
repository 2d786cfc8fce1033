"""The A2A kit against an agent, directly and through midstream: the same result for each test.

The kit and what it needs: `a2a/tck/README.md`. The streams with faults need no kit.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from tests.peers.a2a.tck.kits import KITS, Kit, Results, differences, summary
from tests.peers.a2a.tck.rig import SDKS, Stand, Via, standing
from tests.peers.a2a.tck.steps import OWN, PIECES, WHOLE
from tests.peers.a2a.tck.streams import TRANSPORTS, alike, ask, shown

pytestmark = pytest.mark.peers

DIRECT = Via()
PASSES = Via("gateway")
MENDS = Via("gateway", mends=True)
MITM = Via("mitm", mends=True)

MIN_PASSED = {"10": 150, "03": 60}
"""So many tests pass directly: a kit that found no agent also has no differences."""

TWICE = {"own-growing", "own-pieces-then-whole", "own-growing-with-answer"}
"""What a page that honours `append` shows twice, without midstream."""


@pytest.fixture(scope="module")
def direct() -> Callable[[Kit], Results]:
    """What the kit says without midstream, found out once."""
    known: dict[str, Results] = {}

    def results(kit: Kit) -> Results:
        if kit.name not in known:
            name = f"{kit.name}-direct"
            with standing(kit.sut, DIRECT, name) as stand:
                known[kit.name] = kit.results(stand.url, name)
            print(f"{name}: {summary(known[kit.name])}")
        return known[kit.name]

    return results


@pytest.mark.parametrize("via", [PASSES, MENDS, MITM], ids=str)
@pytest.mark.parametrize("kit", KITS, ids=lambda kit: kit.name)
def test_a_kit_says_of_each_requirement_what_it_says_without_midstream(
    kit: Kit, via: Via, direct: Callable[[Kit], Results]
) -> None:
    if kit.checkout() is None:
        pytest.skip(f"the kit is in no registry: {kit.variable} names no checkout of it")
    expected = direct(kit)
    assert list(expected.values()).count("PASS") >= MIN_PASSED[kit.name]
    name = f"{kit.name}-{via}"
    with standing(kit.sut, via, name) as stand:
        found = kit.results(stand.url, name)
        print(f"{name}: {summary(found)}; {stand.passed()} requests, {stand.asked()} reached it")
        assert 0 < stand.asked() <= stand.passed(), "requests went past midstream"
    different = differences(expected, found)
    print("\n".join(different))
    assert not different


@pytest.fixture(scope="module")
def stands() -> Iterator[Callable[[str, Via], Stand]]:
    """The agents, each started when it is first asked for."""
    with ExitStack() as stack:
        running: dict[tuple[str, Via], Stand] = {}

        def stand(sut: str, via: Via) -> Stand:
            if (sut, via) not in running:
                context = standing(sut, via, f"streams-{sut}-{via}")
                running[sut, via] = stack.enter_context(context)
            return running[sut, via]

        yield stand


@pytest.mark.parametrize("script", OWN)
@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("sut", SDKS)
def test_a_stream_passes_unchanged_where_no_addon_runs(
    sut: str, transport: str, script: str, stands: Callable[[str, Via], Stand]
) -> None:
    plain = ask(sut, transport, stands(sut, DIRECT).url, f"{script}-1")
    passed = ask(sut, transport, stands(sut, PASSES).url, f"{script}-1")
    assert PIECES[0] in plain.decode()
    assert alike(passed) == alike(plain)


@pytest.mark.parametrize("script", OWN)
@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("sut", SDKS)
def test_only_these_streams_show_text_twice_without_midstream(
    sut: str, transport: str, script: str, stands: Callable[[str, Via], Stand]
) -> None:
    page = shown(ask(sut, transport, stands(sut, DIRECT).url, f"{script}-1"), appends=False)
    assert (page != WHOLE) == (script in TWICE)


@pytest.mark.parametrize("via", [MENDS, MITM], ids=str)
@pytest.mark.parametrize("script", OWN)
@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("sut", SDKS)
def test_with_midstream_every_page_shows_the_answer_once(
    sut: str, transport: str, script: str, via: Via, stands: Callable[[str, Via], Stand]
) -> None:
    stream = ask(sut, transport, stands(sut, via).url, f"{script}-1")
    assert shown(stream, appends=False) == WHOLE
    assert shown(stream, appends=True) == WHOLE
