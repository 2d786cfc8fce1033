"""What a capture of everything costs: the same load through two gateways, with and without one.

    uv run python -m tests.bench.bench_capture

Both gateways are processes of their own, on loopback, with every addon on. Rounds alternate between
them, so that both see the same machine. Prints for each kind of stream frames a second without and
with the capture, and the median over the pairs of rounds of what the capture costs: in throughput,
and in processor time a frame (of the loop, the writer and the kernel). It is no test: a shared
machine decides the numbers.
"""

import asyncio
import contextlib
import json
import re
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import psutil
import uvloop
from tests.addons.a2a.events import Part, Update
from tests.addons.a2a.forms import RPC03
from tests.hosts.upstreams import Visit, Wire, connect, open_socket, upstream

FRAMES = 4_000
"""Of each stream."""
STREAMS = 8
ROUNDS = 12
EVENTS_A_WRITE = 4
"""How many frames the upstream hands to its socket at a time."""
READ_BYTES = 1 << 20
LISTENING = re.compile(r"listening on http://127\.0\.0\.1:(\d+) ")
KINDS = ("sse a2a", "sse openai", "ws chat")


class Cost(msgspec.Struct, frozen=True):
    """What one round took: frames a second, and microseconds of processor time a frame."""

    frames_a_second: float
    cpu_us: float


def a2a_events() -> list[bytes]:
    return [RPC03.wire(Update("a1", (Part(f"word{n} "),), n > 0)) for n in range(FRAMES)]


def openai_events() -> list[bytes]:
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": "m"}
    return [
        b"data: "
        + json.dumps(head | {"choices": [{"index": 0, "delta": {"content": f"word{n} "}}]}).encode()
        + b"\n\n"
        for n in range(FRAMES)
    ]


def chat_messages() -> list[bytes]:
    found = []
    for number in range(FRAMES):
        part = json.dumps({"type": "text-delta", "id": "t", "delta": f"word{number} "})
        message = {"type": "cf_agent_use_chat_response", "id": "r", "body": part, "done": False}
        wire = json.dumps(message).encode()
        found.append(b"\x81\x7e" + len(wire).to_bytes(2) + wire)
    return found


def writes(frames: list[bytes]) -> list[bytes]:
    return [b"".join(frames[i : i + EVENTS_A_WRITE]) for i in range(0, len(frames), EVENTS_A_WRITE)]


TARGETS = {"sse a2a": "/a2a", "sse openai": "/v1/chat/completions"}
REQUESTS = {
    "sse a2a": json.dumps({
        "jsonrpc": "2.0", "id": "1", "method": "message/stream",
        "params": {"message": {"kind": "message", "role": "user", "messageId": "m", "parts": []}},
    }).encode(),
    "sse openai": b'{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}',
}  # fmt: skip
WRITES = {
    "/a2a": writes(a2a_events()),
    "/v1/chat/completions": writes(openai_events()),
    "/agents/chat/a": writes(chat_messages()),
}


async def talkative(visit: Visit) -> None:
    """Send all frames of a kind as fast as they are taken."""
    target = visit.request.target
    if target.startswith("/agents/"):
        await visit.accept()
        for data in WRITES["/agents/chat/a"]:
            await visit.send(data)
        await visit.send_close(1000)
        await visit.close_code()
        return
    await visit.body(visit.request)
    await visit.begin_chunks()
    for data in WRITES[target]:
        await visit.send_chunk(data)
    await visit.send_chunk(b"")


async def sse(port: int, kind: str) -> int:
    """Read one event stream to its end, and return how many events came."""
    client, body = await connect(port), REQUESTS[kind]
    async with client:
        await client.send(
            f"POST {TARGETS[kind]} HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\n"
            f"Accept: text/event-stream\r\nAuthorization: Bearer abcdefghijklmnop\r\n"
            f"Connection: close\r\nContent-Length: {len(body)}\r\n\r\n".encode()
            + body
        )
        return await counted(client, b"data: ")


async def chat(port: int, number: int) -> int:
    """Read the messages of one socket, and return how many came."""
    client, _ = await open_socket(port, f"/agents/chat/a?_pk={number}")
    async with client:
        count = await counted(client, b'"done": false')
        await client.send_close(1000)
    return count


async def counted(client: Wire, mark: bytes) -> int:
    """Read until all frames have come, and return how many did: each holds `mark` once."""
    count, tail = 0, b""
    while count < FRAMES and (data := await client.reader.read(READ_BYTES)):
        data = tail + data
        count += data.count(mark)
        tail = data[1 - len(mark) :]
    return count


async def round_of(kind: str, port: int, process: psutil.Process) -> Cost:
    """Let every stream of a round run at once, and return what it cost the gateway."""
    before, began = process.cpu_times(), time.perf_counter()
    async with asyncio.timeout(120), asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(chat(port, n) if kind == "ws chat" else sse(port, kind))
            for n in range(STREAMS)
        ]
    took, after = time.perf_counter() - began, process.cpu_times()
    frames = sum(task.result() for task in tasks)
    assert frames == STREAMS * FRAMES, (kind, [task.result() for task in tasks])
    cpu_s = after.user + after.system - before.user - before.system
    return Cost(frames / took, cpu_s / frames * 1e6)


@asynccontextmanager
async def gateway(url: str, *flags: str) -> AsyncIterator[tuple[int, psutil.Process]]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "midstream", "run", "--upstream", url, "--listen", "127.0.0.1:0",
        "--admin", "127.0.0.1:0", *flags, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        assert process.stderr is not None
        async with asyncio.timeout(30):
            found = LISTENING.search((await process.stderr.readline()).decode())
        assert found
        yield int(found[1]), psutil.Process(process.pid)
    finally:
        process.terminate()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(20):
                await process.communicate()


def percent(plain: list[float], captured: list[float]) -> float:
    """Return the median over the pairs of how much more the second is, in percent."""
    return statistics.median((b / a - 1) * 100 for a, b in zip(plain, captured, strict=True))


def report(kind: str, plain: list[Cost], captured: list[Cost]) -> str:
    rates = [[cost.frames_a_second for cost in costs] for costs in (plain, captured)]
    cpu = [[cost.cpu_us for cost in costs] for costs in (plain, captured)]
    best = (max(rates[1]) / max(rates[0]) - 1) * 100
    return (
        f"{kind:11} {statistics.median(rates[0]):9,.0f} frames/s without, "
        f"{statistics.median(rates[1]):9,.0f} with: {percent(*rates):+6.1f} % "
        f"(best of each {best:+.1f} %); "
        f"cpu {statistics.median(cpu[0]):5.1f} and {statistics.median(cpu[1]):5.1f} us a frame"
    )


async def compared(
    kind: str, bare: tuple[int, psutil.Process], recording: tuple[int, psutil.Process]
) -> str:
    costs: dict[int, list[Cost]] = {bare[0]: [], recording[0]: []}
    for number in range(ROUNDS + 1):
        for at in (bare, recording) if number % 2 else (recording, bare):
            cost = await round_of(kind, *at)
            if number:  # the first one warms up
                costs[at[0]].append(cost)
    return report(kind, *costs.values())


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with (
            upstream(talkative) as up,
            gateway(up.url) as bare,
            gateway(up.url, "--capture", folder) as recording,
        ):
            for kind in KINDS:
                print(await compared(kind, bare, recording), flush=True)
        captures = Path(folder).glob("*.cap")  # noqa: ASYNC240 - nothing else runs by now
        size = sum(path.stat().st_size for path in captures)
        print(f"captured: {size:,} bytes")


if __name__ == "__main__":
    uvloop.run(main())
