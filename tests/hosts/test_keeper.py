"""Conversations in a store: what one gateway knew, another knows."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from tests.hosts.gateways import Running, gateway, until
from tests.hosts.test_gateway_ws import echo
from tests.hosts.upstreams import upstream
from tests.support import FakeAddon, Seen

from midstream.adapters.store_sqlite import SqliteStore
from midstream.core import metrics
from midstream.core.addon import Context, Verdict
from midstream.core.errors import StoreError
from midstream.core.frames import Frame, Side
from midstream.core.ports import Store
from midstream.hosts import keeper


def remembering() -> FakeAddon:
    """An addon that answers each message of the client with all it was told in this chat."""

    def on_frame(frame: Frame, ctx: Context[Seen, Seen]) -> Verdict:
        if frame.sender is Side.CLIENT:
            ctx.conversation.frames.append(frame.payload.decode())
            return Verdict.keep()
        told = ",".join(ctx.conversation.frames)
        return Verdict.replace("swap", frame.with_payload(told.encode()))

    return FakeAddon(frame=on_frame)


@asynccontextmanager
async def replicas(*stores: Store | None) -> AsyncIterator[list[Running]]:
    """Gateways in front of one echoing server, each with a store of its own or none."""
    async with upstream(echo) as server, AsyncExitStack() as stack:
        yield [
            await stack.enter_async_context(gateway(server.url, remembering(), store=store))
            for store in stores
        ]


async def say(at: Running, word: str, *, target: str = "/chat", **headers: str) -> str:
    """Open a socket, say one word, and return what comes back."""
    url = f"ws://127.0.0.1:{at.port}{target}"
    connected = aiohttp.ClientSession()
    async with connected, connected.ws_connect(url, headers=headers, max_msg_size=0) as ws:
        await ws.send_str(word)
        return str(await ws.receive_str(timeout=10))


async def saved(at: Running) -> None:
    """Wait until nothing is left to be saved."""
    await at.streams_closed()
    keeping = at.gateway.keeper
    assert keeping is not None
    await until(lambda: not keeping.unsaved)


class Faulty:
    """A store in memory that can be down, slow, or watched. `store` may be shared by several."""

    def __init__(self, values: dict[bytes, tuple[bytes, int]] | None = None) -> None:
        self.values = {} if values is None else values
        self.is_down = False
        self.delay_s = 0.0
        self.loads = self.saves = 0

    async def load(self, key: bytes) -> tuple[bytes, int] | None:
        self.loads += 1
        await self._answer()
        return self.values.get(key)

    async def save(self, key: bytes, value: bytes, version: int, ttl_s: float) -> bool:
        self.saves += 1
        await self._answer()
        if key in self.values and self.values[key][1] >= version:
            return False
        self.values[key] = (value, version)
        return True

    async def close(self) -> None:
        pass

    async def _answer(self) -> None:
        if self.delay_s:
            await asyncio.sleep(self.delay_s)
        if self.is_down:
            raise StoreError("down")


async def test_what_one_replica_was_told_another_knows(tmp_path: Path):
    path = str(tmp_path / "store.db")
    async with replicas(SqliteStore(path), SqliteStore(path)) as (first, second):
        assert await say(first, "one") == "one"
        await saved(first)
        assert await say(second, "two") == "one,two"
        await saved(second)
        assert await say(first, "three") == "one,two,three"  # the newer one, not its own memory


async def test_without_a_store_each_knows_its_own():
    async with replicas(None, None) as (first, second):
        await say(first, "one")
        assert await say(second, "two") == "two"


async def test_a_restart_finds_what_was_saved(tmp_path: Path):
    path = str(tmp_path / "store.db")
    async with replicas(SqliteStore(path)) as (first,):
        await say(first, "one")
    async with replicas(SqliteStore(path)) as (second,):
        pass  # another upstream is another conversation
    async with upstream(echo) as server:
        for word, known in (("one", "one"), ("two", "one,two")):
            store = SqliteStore(path)
            async with gateway(server.url, remembering(), store=store) as running:
                assert await say(running, word) == known
    assert second.counts.get(metrics.STORE_ERRORS, ("load",)) == 0


async def test_nobody_gets_the_conversation_of_another_credential(tmp_path: Path):
    path = str(tmp_path / "store.db")
    async with replicas(SqliteStore(path), SqliteStore(path)) as (first, second):
        await say(first, "mine", Authorization="Bearer a")
        await saved(first)
        assert await say(second, "other", Authorization="Bearer b") == "other"
        assert await say(second, "yours", target="/chat?token=x") == "yours"
        assert await say(second, "again", Authorization="Bearer a") == "mine,again"


async def test_a_running_stream_is_saved_while_it_runs():
    store = Faulty()
    async with replicas(store) as (running,):
        url = f"ws://127.0.0.1:{running.port}/chat"
        async with aiohttp.ClientSession() as session, session.ws_connect(url) as ws:
            await ws.send_str("one")
            await ws.receive_str()
            await until(lambda: store.saves == 1)
            await asyncio.sleep(3 * keeper.SAVE_SECONDS)
            assert store.saves == 1  # nothing came since
            await ws.send_str("two")
            await until(lambda: store.saves == 2)


async def test_a_running_stream_is_saved_however_many_others_end():
    store = Faulty()
    async with replicas(store) as (running,):
        url = f"ws://127.0.0.1:{running.port}/chat"
        async with aiohttp.ClientSession() as client, client.ws_connect(url) as ws:
            await ws.send_str("one")
            await ws.receive_str(timeout=10)
            for count in range(100):
                await say(running, str(count), Authorization="Bearer b")
                if len(store.values) == 2:
                    break
                await asyncio.sleep(0.02)
            assert len(store.values) == 2


async def test_a_store_that_is_down_stops_nothing_and_is_used_when_it_is_back():
    store = Faulty()
    store.is_down = True
    async with replicas(store) as (running,):
        for number in range(20):
            assert (await say(running, "x")).count("x") == number + 1
        assert running.gateway.readiness() == (200, "degraded: store")
        assert running.counts.get(metrics.STORE_ERRORS, ("load",)) >= 1
        assert store.loads < 20  # most did not even ask
        store.is_down = False
        await until(lambda: running.gateway.readiness() == (200, "ready"))
        await saved(running)
        (value, _version) = next(iter(store.values.values()))
        assert value.count(b"\xa1x") == 20


async def test_a_store_that_hangs_delays_one_exchange_for_a_bounded_time(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(keeper, "LOAD_SECONDS", 0.05)
    store = Faulty()
    store.delay_s = 30
    async with replicas(store) as (running,):
        began = time.monotonic()
        assert await say(running, "one") == "one"
        assert await say(running, "two") == "one,two"
        assert time.monotonic() - began < 20  # far from the 30 s, whatever else runs here
        assert running.counts.get(metrics.STORE_ERRORS, ("load",)) >= 1


async def test_a_conversation_that_is_too_large_is_not_stored():
    store = Faulty()
    async with replicas(store) as (running,):
        for _ in range(6):
            await say(running, "x" * 800_000)
        await until(lambda: running.counts.get(metrics.STORE_ERRORS, ("size",)) >= 1)
        await saved(running)
        assert max(len(value) for value, _ in store.values.values()) <= 4 << 20


@pytest.mark.parametrize(
    "spoilt", [b"", b"\xc1", b"\x92\x01\x80", b"\x92\x63\x80", b"\x92\x01\x81\xa4fake\x01"]
)
async def test_what_cannot_be_read_begins_anew_and_stops_nothing(spoilt: bytes):
    values: dict[bytes, tuple[bytes, int]] = {}
    async with replicas(Faulty(values), Faulty(values)) as (first, second):
        await say(first, "one")
        await saved(first)
        (key,) = values
        values[key] = (spoilt, values[key][1] + 1)
        assert await say(second, "two") == "two"


async def test_a_conversation_in_use_here_is_not_replaced():
    store = Faulty()
    async with replicas(store) as (running,):
        url = f"ws://127.0.0.1:{running.port}/chat"
        async with aiohttp.ClientSession() as session, session.ws_connect(url) as ws:
            await ws.send_str("one")
            await ws.receive_str()
            await until(lambda: store.values)
            loads = store.loads
            assert await say(running, "two") == "one,two"
            assert store.loads == loads
