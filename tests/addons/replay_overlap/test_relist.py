"""The closing list is said again where a late write of the client's SDK may follow it."""

import json

import pytest
from tests.addons.replay_overlap.clients import Page
from tests.addons.replay_overlap.scenes import asked, continued, emit
from tests.addons.replay_overlap.world import World

START = {"type": "start"}
CHUNKS = [
    {"type": "text-start", "id": "t"},
    {"type": "text-delta", "id": "t", "delta": "and so on"},
    {"type": "text-end", "id": "t"},
]


def closing_lists(client: str, *, drops: bool, regime: str = "observer") -> int:
    """Play a continuation to its end and return how many lists of messages came after that."""
    world = World(asked([]), server={"closing": "after"}, client=client)
    page = Page(regime, world.server.messages)
    number = continued(world, page, START)
    emit(world, CHUNKS[:1])
    if drops:
        world.drop(number)
        number = world.connect(page, "pk")
        world.run(1_000)
    emit(world, CHUNKS[1:])
    before = len(world.delivered[number])
    world.server.finish()
    world.run(2_000)
    frames = [json.loads(frame.wire) for frame in world.delivered[number][before:]]
    assert page.messages == world.server.messages
    return sum(frame["type"] == "cf_agent_chat_messages" for frame in frames)


def test_it_is_said_again_behind_a_baseline_that_a_replay_has_extended() -> None:
    assert closing_lists("unknown", drops=True) == 2


@pytest.mark.parametrize("client", ["r2", "observer"])
def test_a_declared_client_needs_no_second_list(client: str) -> None:
    assert closing_lists(client, drops=True) == 1


def test_a_message_that_was_rebuilt_has_nothing_beside_it() -> None:
    assert closing_lists("unknown", drops=True, regime="r3") == 1


def test_a_stream_that_nobody_lost_ends_as_the_server_ends_it() -> None:
    assert closing_lists("unknown", drops=False) == 1
