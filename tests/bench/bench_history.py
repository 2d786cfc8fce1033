"""What history-order costs: judging and mending a request, learning an event, remembering.

    uv run python -m tests.bench.bench_history

Each request has its texts behind the calls of its turn, so that the whole way is measured; the
plain parse of its JSON stands beside it, and so do the checksums by which the prefix of the next
request is compared. It is no test: a shared machine decides the numbers.
"""

import tracemalloc
from collections.abc import Callable
from time import process_time
from typing import Any

import msgspec
from tests.addons.history_order.ledgers import BOUNDS, Observed, written

from midstream.core.frames import Frame, Kind, Side
from midstream.dialects.provider_history import Digests, Learned, Output
from midstream.dialects.provider_history import Kind as ItemKind
from midstream_addons.history_order.ledger import Begun, Ledger
from midstream_addons.history_order.prefix import sums_of

type Fields = dict[str, Any]

ROUNDS = 7
TURN = 20
"""How many responses a turn has."""
TEXT = "Looking at the next file, since the last one only re-exports what is defined here. " * 14
OUTPUT = "def answer(question: str) -> str:\n    return lookup(question)\n" * 17
DELTAS = 2_000
REMEMBERED = 100_000


def best_ms(work: Callable[[], object]) -> float:
    best = float("inf")
    for _ in range(ROUNDS):
        started = process_time()
        work()
        best = min(best, process_time() - started)
    return best * 1e3


def events(number: int) -> list[Fields]:
    """Return the stream of one response: a text and a call."""
    content = [{"type": "output_text", "text": f"{number} {TEXT}", "annotations": []}]
    message = {"type": "message", "role": "assistant", "id": f"msg_{number:040x}"}
    call = {"type": "function_call", "id": f"fc_{number:040x}", "call_id": f"call_{number:024x}"}
    return [
        {"type": "response.created", "response": {"id": f"resp_{number:040x}"}},
        {
            "type": "response.output_item.done",
            "output_index": 0,
            "item": {**message, "content": content},
        },
        {"type": "response.output_item.done", "output_index": 1, "item": call},
        {"type": "response.completed", "response": {"id": f"resp_{number:040x}"}},
    ]


def said(number: int) -> tuple[Fields, Fields, Fields]:
    """Return what a client sends of a response: its text, its call, and the call's result."""
    call_id = f"call_{number:024x}"
    call = {"type": "function_call", "call_id": call_id, "name": "Read", "arguments": "{}"}
    text = {"role": "assistant", "content": f"{number} {TEXT}"}
    return text, call, {"type": "function_call_output", "call_id": call_id, "output": OUTPUT}


def conversation(count: int, *, is_inverted: bool) -> tuple[Observed, bytes]:
    """Return a ledger of so many responses, and a request that quotes all of them."""
    ledger = Observed("openai-responses")
    sent: list[Fields] = []
    late: list[Fields] = []
    begun = Begun()
    for number in range(count):
        if number % TURN == 0:
            sent += [*late, {"role": "user", "content": "go on"}]
            late = []
            begun = Begun(begun.parent, 0)
        parent = ledger.answers(begun, events(number))
        begun = Begun(parent, ledger.ledger.head(parent).turn)
        text, *rest = said(number)
        if is_inverted:
            late.append(text)
        else:
            sent.append(text)
        sent += rest
    sent += [*late, {"role": "user", "content": "go on"}]
    return ledger, written({"model": "gpt-5.5", "store": False, "input": sent})


def bench_requests() -> None:
    print(f"{'a request with':<34}{'size':>10}{'judged':>12}{'prefix':>12}{'JSON parse':>12}")
    for count in (50, 200, 1000):
        for is_inverted in (False, True):
            ledger, body = conversation(count, is_inverted=is_inverted)
            outcome = ledger.judge(body)
            assert (outcome.body is not None) is is_inverted
            assert not outcome.inverted_out
            judged = best_ms(lambda body=body, ledger=ledger: ledger.judge(body))  # type: ignore[misc]  # bound per round
            prefix = best_ms(lambda body=body, ledger=ledger: sums(ledger, body))  # type: ignore[misc]  # the same
            parsed = best_ms(lambda body=body: msgspec.json.decode(body))  # type: ignore[misc]  # the same
            what = f"{count} responses, {'inverted' if is_inverted else 'in order'}"
            times = f"{judged:>9.2f} ms{prefix:>9.2f} ms{parsed:>9.2f} ms"
            print(f"{what:<34}{len(body) / 1024:>6.0f} KiB{times}")


def sums(ledger: Observed, body: bytes) -> bytes:
    return sums_of(ledger.provider.elements(body), ledger.digests)


def bench_learning() -> None:
    """Follow one long text of every API, event by event, from the wire bytes of its frames."""
    deltas: dict[str, Fields] = {
        "openai-responses": {
            "type": "response.output_text.delta", "sequence_number": 7, "output_index": 0,
            "item_id": f"msg_{0:040x}", "content_index": 0, "delta": " word",
            "logprobs": [], "obfuscation": "k3hZ1tQ0w",
        },
        "openai-chat": {
            "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1,
            "model": "gpt-5.5", "choices": [
                {"index": 0, "delta": {"content": " word"}, "finish_reason": None}
            ],
        },
        "anthropic": {
            "type": "content_block_delta", "index": 0,
            "delta": {"type": "text_delta", "text": " word"},
        },
        "gemini": {
            "candidates": [{"content": {"role": "model", "parts": [{"text": " word"}]}}],
        },
    }  # fmt: skip
    print(f"\n{'learning':<34}{'per event':>10}")
    for api, delta in deltas.items():
        wire = b"data: " + written(delta) + b"\n\n"
        frame = Frame(Side.SERVER, Kind.SSE, wire)
        listener = Observed(api).provider.listen(Digests(b"secret"))
        if api == "anthropic":
            block = {"type": "content_block_start", "index": 0, "content_block": {"type": "text"}}
            listener.receive(written(block))

        def follow(frame: Frame = frame, listener: Any = listener) -> None:
            for _ in range(DELTAS):
                listener.receive(frame.payload)

        print(f"{api:<34}{best_ms(follow) / DELTAS * 1e3:>7.2f} us")


def bench_memory() -> None:
    print(f"\n{'remembering 100,000 outputs':<34}{'an output':>10}")
    for size, kinds in (("1 a response", 1), ("2 a response", 2), ("3 a response", 3)):
        tracemalloc.start()
        ledger = Ledger()
        digests = Digests(b"secret")
        begun = Begun()
        for number in range(REMEMBERED // kinds):
            outputs = [output(ItemKind.TEXT, number, digests)]
            if kinds > 1:
                outputs.append(output(ItemKind.CALL, number, digests))
            if kinds > 2:
                outputs.insert(0, output(ItemKind.REASONING, number, digests))
            learned = Learned(digests.of_key(f"response:{number}"), outputs, is_complete=True)
            begun = Begun(ledger.commit(begun, learned, 0, BOUNDS), 0)
        used, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        estimate = ledger.size_bytes / REMEMBERED
        print(f"{size:<34}{used / REMEMBERED:>4.0f} bytes (counted as {estimate:.0f})")


def output(kind: ItemKind, number: int, digests: Digests) -> Output:
    """Return an output with the keys that its kind has: an id, and one more but for a text."""
    keys = [digests.of_key(f"id:{kind}{number}")]
    if kind is not ItemKind.TEXT:
        keys.append(digests.of_key(f"{kind}:{number}"))
    return Output(
        kind, tuple(keys), digests.of_text(f"{number}") if kind is ItemKind.TEXT else None
    )


def main() -> None:
    print(f"msgspec {msgspec.__version__}, CPU time, best of {ROUNDS}\n")
    bench_requests()
    bench_learning()
    bench_memory()


if __name__ == "__main__":
    main()
