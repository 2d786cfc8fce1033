"""What a delta frame costs as the text before it grows: N frames beside 2N, in one run.

    uv run python -m tests.bench.bench_snapshot_to_delta

Prints microseconds a frame and the ratio: near 1 where work does not depend on the text so far.
It is no test: a shared machine decides the numbers.
"""

import time

from tests.addons.a2a.events import Part, Update
from tests.addons.a2a.forms import RPC03
from tests.addons.a2a.rig import Rig

FRAMES = 5_000
ROUNDS = 3
KINDS = ("deltas", "snapshots", "no addon")


def wires(kind: str, count: int) -> list[bytes]:
    """Return the frames of one artifact. The bytes of snapshots grow, so there are fewer."""
    found, text = [], ""
    for number in range(count // 20 if kind == "snapshots" else count):
        piece = f"word{number} "
        text += piece
        sent = text if kind == "snapshots" else piece
        found.append(RPC03.wire(Update("a1", (Part(sent),), number > 0)))
    return found


def microseconds(kind: str, count: int) -> float:
    """Return the best time of a frame, in microseconds."""
    frames = wires(kind, count)
    best = float("inf")
    for _ in range(ROUNDS):
        line = (Rig(()) if kind == "no addon" else Rig()).stream()
        began = time.perf_counter()
        for wire in frames:
            line.send(wire, 0)
        best = min(best, time.perf_counter() - began)
    return best / len(frames) * 1e6


def main() -> None:
    for kind in KINDS:
        once, twice = microseconds(kind, FRAMES), microseconds(kind, 2 * FRAMES)
        print(f"{kind:10} N {once:7.2f} us  2N {twice:7.2f} us  x{twice / once:.2f}")


if __name__ == "__main__":
    main()
