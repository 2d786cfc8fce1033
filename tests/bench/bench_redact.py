"""What it costs to look for secrets: microseconds for a frame, with and without one.

uv run python -m tests.bench.bench_redact
"""

import json
import random
import timeit
from collections.abc import Callable
from functools import partial

from tests.planted import SECRETS

from midstream.adapters.capture_redact import redactor
from midstream.adapters.capture_secrets import found, holding
from midstream.adapters.capture_shapes import Span
from midstream.config.schema import CaptureTable
from midstream.core.frames import Frame, Kind, Side
from midstream.core.ports import Record, RecordKind

WORDS = (
    "the",
    "quick",
    "region",
    "query",
    "should",
    "answer",
    "streams",
    "tool",
    "calls",
    "results",
)
REPEATS = 5
BATCH = 64


def frame_of(size: int, secret: str = "") -> bytes:
    """Return a chat frame of about this many bytes."""
    drawn = random.Random(1)
    text = " ".join(drawn.choice(WORDS) for _ in range(max(1, (size - 190) // 7)))
    body = json.dumps({"type": "text-delta", "id": "msg_0123456789abcdef", "delta": text + secret})
    envelope = {"type": "cf_agent_use_chat_response", "id": "3f2b0b7e-6f2b-4c8e-9a52-6e3cf0a1d9b1"}
    return json.dumps({**envelope, "body": body, "done": False}).encode()


def microseconds[T](step: Callable[[T], object], given: T) -> float:
    timer = timeit.Timer(partial(step, given))
    number, _ = timer.autorange()
    return min(timer.repeat(REPEATS, number)) / number * 1e6


def spans(wire: bytes) -> list[Span]:
    return list(found(wire))


def main() -> None:
    for size in (200, 1024, 16 << 10, 1 << 20):
        wire = frame_of(size)
        print(f"{len(wire):>9} bytes without a secret   {microseconds(spans, wire):9.1f} us")
    took = microseconds(holding, [frame_of(1024)] * BATCH) / BATCH
    print(f"1 KiB without one, {BATCH} together      {took:9.1f} us each")
    wire = frame_of(1024, " " + SECRETS["openai project"])
    print(f"{len(wire):>9} bytes with a secret      {microseconds(spans, wire):9.1f} us")
    frame = Frame(Side.SERVER, Kind.WS_TEXT, frame_of(1024))
    record = Record(1, 1, 1, RecordKind.FRAME, Side.SERVER, frame)
    for table in (CaptureTable(), CaptureTable(content="hash")):
        took = microseconds(redactor(table).record, record)
        print(f"a record of 1 KiB, content {table.content}     {took:9.1f} us")


if __name__ == "__main__":
    main()
