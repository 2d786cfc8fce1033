"""How the time of the SSE splitter grows: eight times the bytes, how often the time?

    uv run python -m tests.bench.bench_sse

A linear splitter shows about 8, one that searches its buffer again from the front about 64.
"""

import time

from midstream.core.sse import SseSplitter

SHAPES = {
    "one long line": (b"data: ", b"x" * 1000, b"\n\n", 1460),
    "one event of many lines": (b"", b"data: x\n" * 100, b"\n", 97),
    "many events in one chunk": (b"", b"data: x\n\n" * 100, b"", 1 << 30),
    "empty lines": (b"", b"\n" * 200, b"", 1 << 30),
    "bare CR": (b"data: x", b"\r" * 200, b"", 1460),
}


def seconds(stream: bytes, size: int) -> float:
    """Return how long a stream takes in chunks of this size."""
    chunks = [stream[i : i + size] for i in range(0, len(stream), size)]
    splitter = SseSplitter(1 << 30)
    started = time.perf_counter()
    for chunk in chunks:
        splitter.receive(chunk)
    return time.perf_counter() - started


def main() -> None:
    for name, (before, repeated, after, size) in SHAPES.items():
        once = min(seconds(before + repeated * 100 + after, size) for _ in range(5))
        eightfold = min(seconds(before + repeated * 800 + after, size) for _ in range(5))
        print(f"{name:26} {eightfold / once:5.1f} times the time for 8 times the bytes")


if __name__ == "__main__":
    main()
