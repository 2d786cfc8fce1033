import asyncio
import json

import pytest
from tests.hosts.gateways import gateway, until
from tests.hosts.upstreams import Head, Visit, connect, open_socket, upstream
from tests.support import FakeAddon

from midstream.core import metrics
from midstream.core.addon import Verdict
from midstream.core.errors import ConfigError
from midstream.core.exchange import Transport
from midstream.core.frames import Frame
from midstream.core.metrics import Counts
from midstream.core.ports import Record, RecordKind
from midstream.hosts.gateway_watch import STALL_SECONDS
from midstream.hosts.inspector import MAX_EVENTS, Ring

SECRET = "hunter2"


async def get(port: int, target: str, *lines: str) -> tuple[Head, bytes]:
    headers = "".join(f"{line}\r\n" for line in lines)
    async with await connect(port) as client:
        await client.send(f"GET {target} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n".encode())
        head = await client.head()
        return head, await client.body(head)


async def quiet(visit: Visit) -> None:
    await visit.accept()
    await visit.rest()


class Part:
    def __init__(self, healthy: bool) -> None:
        self.healthy = healthy


async def test_it_is_alive_and_ready():
    async with upstream(quiet) as up, gateway(up.url) as gw:
        assert [(await get(gw.admin_port, path))[1] for path in ("/livez", "/readyz")] == [
            b"alive\n",
            b"ready\n",
        ]


async def test_it_is_ready_but_degraded_while_a_part_fails():
    parts = {"capture": Part(False), "store": Part(True)}
    async with upstream(quiet) as up, gateway(up.url, health=parts) as gw:
        head, body = await get(gw.admin_port, "/readyz")
        assert (head.status, body) == (200, b"degraded: capture\n")


async def test_it_is_not_ready_while_it_drains():
    async with upstream(quiet) as up, gateway(up.url) as gw:
        await gw.gateway.drain()
        head, body = await get(gw.admin_port, "/readyz")
        assert (head.status, body) == (503, b"draining\n")
        assert (await get(gw.admin_port, "/livez"))[0].status == 200
        assert gw.counts.get(metrics.DRAINING) == 1


async def test_it_is_ready_without_its_upstream(unused_tcp_port):
    async with gateway(f"http://127.0.0.1:{unused_tcp_port}") as gw:
        assert (await get(gw.admin_port, "/readyz"))[0].status == 200


async def test_metrics_are_shown_in_either_format():
    async with upstream(quiet) as up, gateway(up.url) as gw:
        head, body = await get(gw.admin_port, "/metrics")
        assert (head.get("content-type") or "").startswith("text/plain; version=0.0.4")
        assert b'midstream_build_info{python="' in body
        head, body = await get(
            gw.admin_port, "/metrics", "Accept: application/openmetrics-text; version=1.0.0"
        )
        assert (head.get("content-type") or "").startswith("application/openmetrics-text")
        assert body.endswith(b"# EOF\n")


async def test_the_lag_of_the_event_loop_is_observed():
    async with upstream(quiet) as up, gateway(up.url) as gw:
        await until(lambda: sum(gw.counts.histograms[metrics.LOOP_LAG.name, ()][0]) >= 2)


async def test_metric_series_do_not_grow_with_traffic():
    async def behave(visit: Visit) -> None:
        await visit.respond("299 Odd", body=b"x")

    async with upstream(behave) as up, gateway(up.url, FakeAddon(), path="/chat/*") as gw:
        await get(gw.port, "/chat/first")
        await get(gw.port, "/nowhere")
        before = set(gw.counts.values), set(gw.counts.histograms)
        for number in range(50):
            await get(gw.port, f"/chat/{number}?q={number}", f"X-{number}: {number}")
            await get(gw.port, f"/no/{number}")
        assert (set(gw.counts.values), set(gw.counts.histograms)) == before


async def test_it_tells_the_open_streams_and_what_was_mended_and_no_content():
    def on_frame(frame: Frame, _ctx: object) -> Verdict:
        if b"cat" in frame.wire:
            return Verdict.drop("cut")
        return Verdict.skip("unsure") if b"dog" in frame.wire else Verdict.keep()

    ring = Ring()
    addon = FakeAddon("fake", frame=on_frame)
    async with upstream(quiet) as up, gateway(up.url, addon, ring=ring) as gw:
        client, _ = await open_socket(
            gw.port, f"/chat/{SECRET}", ("Authorization", SECRET), ("Cookie", SECRET)
        )
        async with client:
            for text in (f"cat {SECRET}", f"dog {SECRET}", SECRET):
                await client.send_text(text)
            await until(lambda: len(ring.happenings) == 2)
            await until(lambda: gw.counts.get(metrics.FRAMES, ("chat", "ws", "client")) == 3)
            _, body = await get(gw.admin_port, "/streams.json")
            shown = json.loads(body)
            assert shown["open"] == 1
            stream = shown["streams"][0]
            assert (stream["route"], stream["transport"]) == ("chat", "ws")
            assert stream["in"] == {"client": 3, "server": 0}
            assert stream["out"] == {"client": 0, "server": 2}
            assert stream["rules"] == ["fake: cut"]
            happened = [(h["addon"], h["what"], h["mended"]) for h in shown["happenings"]]
            assert happened == [("fake", "unsure", False), ("fake", "cut", True)]
            for target in ("/streams.json", "/metrics", "/"):
                assert SECRET.encode() not in (await get(gw.admin_port, target))[1]
        await gw.streams_closed()
        assert json.loads((await get(gw.admin_port, "/streams.json"))[1])["streams"] == []


async def test_a_stalled_answer_is_counted_once():
    async def behave(visit: Visit) -> None:
        await visit.begin_chunks()
        await visit.send_chunk(b"data: a\n\n")
        await visit.rest()

    async with upstream(behave) as up, gateway(up.url) as gw, await connect(gw.port) as client:
        await client.send(b"GET /chat HTTP/1.1\r\nHost: a\r\n\r\n")
        await client.head()
        await client.chunk()
        stream = next(iter(gw.gateway.streams.open.values()))
        later = stream.session.last_frame_ns + STALL_SECONDS * 1_000_000_000
        for now_ns in (later - 1, later, later + 1):
            gw.gateway.watch.sweep(now_ns)
        assert gw.counts.get(metrics.STALLS, ("chat",)) == 1
        assert stream.transport is Transport.SSE


def test_the_ring_forgets_the_oldest_and_what_has_closed():
    ring = Ring()
    for number in range(MAX_EVENTS + 10):
        rules = (("fake", f"rule-{number}"),)
        ring.write(Record(number, 1, number, RecordKind.FRAME, rules=rules))
    assert len(ring.happenings) == MAX_EVENTS
    assert ring.last_rules(1)[-1] == f"fake: rule-{MAX_EVENTS + 9}"
    assert len(ring.last_rules(1)) == 5
    ring.write(Record(0, 1, 0, RecordKind.CLOSE, meta={"ending": "complete"}))
    assert ring.last_rules(1) == []


async def test_a_taken_port_is_a_clear_error():
    async with upstream(quiet) as up, gateway(up.url) as gw:
        from midstream.config.values import Address
        from midstream.hosts.admin import Admin

        admin = Admin(Counts(), gw.gateway.streams, Ring(), lambda: (200, "ready"))
        with pytest.raises(ConfigError, match=r"admin: cannot listen on 127.0.0.1:\d+: address"):
            await admin.listen(Address("127.0.0.1", gw.admin_port))
        await admin.close()
        await asyncio.sleep(0)
