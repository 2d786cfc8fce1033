"""What an edit by path costs, beside decoding and encoding the whole document.

    uv run python -m tests.bench.bench_edit

Prints microseconds and the ratio. It is no test: a shared machine decides the numbers.
"""

import json
from collections.abc import Callable
from time import perf_counter

from midstream.core import edit
from midstream.core.edit import INNER, Delete, Set


def compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def best_us(work: Callable[[], object], rounds: int, repeat: int) -> float:
    best = float("inf")
    for _ in range(rounds):
        started = perf_counter()
        for _ in range(repeat):
            work()
        best = min(best, perf_counter() - started)
    return best / repeat * 1e6


def compare(name: str, document: bytes, *edits: edit.Edit, rounds: int, repeat: int) -> None:
    def decode_and_encode() -> None:
        decoded = json.loads(document)
        inner = decoded.get("body") or decoded["init"]["body"]
        compact(json.loads(inner))
        compact(decoded)

    by_path = best_us(lambda: edit.apply(document, *edits), rounds, repeat)
    whole = best_us(decode_and_encode, rounds, repeat)
    print(f"{name:<32} {by_path:>12.1f} us  {whole:>12.1f} us  {by_path / whole:>6.2f}")


def main() -> None:
    chunk = compact({"type": "text-delta", "id": "t1", "delta": "hello"})
    frame = {"type": "cf_agent_use_chat_response", "id": "r1", "body": chunk, "done": False}
    top = (Set(("done",), b"true"), Delete(("id",)))
    inside = (Set(("body", INNER, "id"), b'"t2"'), *top)
    messages = [
        {"id": f"m{i}", "role": "user", "parts": [{"type": "text", "text": 'a "b"\n\u00e9 ' * 12}]}
        for i in range(20_000)
    ]
    upload = compact({"init": {"method": "POST", "body": compact({"messages": messages})}}).encode()
    gone = [Delete(("init", "body", INNER, "messages", i)) for i in (3, 7_000, 19_990)]

    print(f"{'':<32} {'by path':>15} {'whole':>15} {'ratio':>8}")
    compare("frame, 2 edits", compact(frame).encode(), *top, rounds=300, repeat=50)
    compare(
        "frame, 3 edits, 1 of them inside", compact(frame).encode(), *inside, rounds=300, repeat=50
    )
    compare(
        "frame with spaces, 3 edits", json.dumps(frame).encode(), *inside, rounds=300, repeat=50
    )
    name = f"upload of {len(upload) / 1e6:.1f} MB, 3 deletes"
    compare(name, upload, *gone, rounds=7, repeat=1)


if __name__ == "__main__":
    main()
