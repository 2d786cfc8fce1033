"""One addon at work in one exchange: its states, the frames it holds, and those it sends paced.

Nothing here judges or counts. Every frame that comes in by `hold` or `leave` comes out once, and
frames of one sender that were put behind each other stay behind each other.
"""

from collections import Counter, deque
from collections.abc import Collection, Sequence
from itertools import compress

from midstream.core.addon import AnyAddon, Context, Mode, Pace
from midstream.core.exchange import Exchange
from midstream.core.frames import Frame, Side

NS_PER_MS = 1_000_000
FRAME_BYTES = 128
"""What a frame takes beside its wire bytes: without it a flood of empty frames has no bound."""


def size_of(frame: Frame) -> int:
    return len(frame.wire) + FRAME_BYTES


def named(held: Sequence[Frame], frames: Sequence[Frame]) -> list[bool]:
    """Tell of each held frame whether `frames` names it: the very object, each as often as named.

    Equal is not enough, for two messages may say the same. One object may be held twice, though.
    """
    left = Counter(map(id, frames))
    marks = []
    for frame in held:
        is_named = left.get(id(frame), 0) > 0
        if is_named:
            left[id(frame)] -= 1
        marks.append(is_named)
    return marks


class Outbox:
    """Frames of one sender that leave in slices. `due_ns`: before then no further slice leaves."""

    __slots__ = ("due_ns", "frames")

    def __init__(self) -> None:
        self.frames: deque[Frame] = deque()
        self.due_ns = 0

    def slice(self, pace: Pace, now_ns: int) -> list[Frame]:
        self.due_ns = now_ns + pace.every_ms * NS_PER_MS
        return [self.frames.popleft() for _ in range(min(pace.frames, len(self.frames)))]


class Link:
    """One addon at work in one exchange."""

    __slots__ = (
        "addon", "asking", "benched", "context", "deaf_to", "failures", "held", "held_bytes",
        "held_since", "mode", "outboxes", "queued_bytes", "rules",
    )  # fmt: skip

    def __init__(
        self, addon: AnyAddon, mode: Mode, conversation: object, exchange: Exchange
    ) -> None:
        self.addon = addon
        self.mode = mode
        self.rules = frozenset(addon.rules)
        self.failures = 0
        self.benched = False
        self.deaf_to: Side | None = None
        self.asking = 0
        self.held: list[Frame] = []
        self.held_since: list[int] = []
        self.held_bytes = 0
        self.outboxes = {side: Outbox() for side in Side}
        self.queued_bytes = 0
        self.context: Context[object, object] = Context(
            exchange, addon.new_state(), conversation, self.held, mode is Mode.OBSERVE, 0
        )

    def hold(self, frame: Frame, now_ns: int) -> None:
        self.held.append(frame)
        self.held_since.append(now_ns)
        self.held_bytes += size_of(frame)

    def settle(self, frames: Sequence[Frame]) -> list[Frame]:
        """Give up these held frames, oldest first; the others keep their order and their time.

        All of them must be held.
        """
        if not frames:
            return []
        is_all = len(frames) == len(self.held)
        marks = [True] * len(self.held) if is_all else named(self.held, frames)
        settled = list(compress(self.held, marks))
        stays = [not mark for mark in marks]
        self.held[:] = compress(self.held, stays)  # in place: the context shows this list
        self.held_since[:] = compress(self.held_since, stays)
        self.held_bytes -= sum(map(size_of, settled))
        return settled

    def leave(
        self, frames: Sequence[Frame], pace: Pace, now_ns: int, *, paced: bool = False
    ) -> list[Frame]:
        """Return what leaves now. Paced frames wait for a slice, and others behind paced ones."""
        if not paced and not self.queued_bytes:
            return list(frames)
        now: list[Frame] = []
        for frame in frames:
            outbox = self.outboxes[frame.sender]
            if paced or outbox.frames:
                outbox.frames.append(frame)
                self.queued_bytes += size_of(frame)
            else:
                now.append(frame)
        return now + self.slices(pace, now_ns)

    def slices(self, pace: Pace, now_ns: int) -> list[Frame]:
        """Return the paced frames whose time has come."""
        out: list[Frame] = []
        for outbox in self.outboxes.values():
            if outbox.frames and outbox.due_ns <= now_ns:
                out += outbox.slice(pace, now_ns)
        self.queued_bytes -= sum(map(size_of, out))
        return out

    def hurry(self) -> list[Frame]:
        """Give up all that is paced at once."""
        out: list[Frame] = []
        for outbox in self.outboxes.values():
            out += outbox.frames
            outbox.frames.clear()
        self.queued_bytes = 0
        return out

    def release(self, senders: Collection[Side] = tuple(Side)) -> list[Frame]:
        """Give up all that waits from these senders: first what was on its way, then what is held.

        A side that sent none of it loses none of it.
        """
        freed: list[Frame] = []
        for side, outbox in self.outboxes.items():
            if side in senders:
                freed += outbox.frames
                outbox.frames.clear()
        self.queued_bytes -= sum(map(size_of, freed))
        waiting = list(zip(self.held, self.held_since, strict=True))
        self.settle(self.held)
        for frame, since_ns in waiting:
            if frame.sender in senders:
                freed.append(frame)
            else:
                self.hold(frame, since_ns)
        return freed

    def due_ns(self, max_hold_ms: int) -> int:
        """Return when what waits here is next due: a slice, or the end of a hold."""
        due = [outbox.due_ns for outbox in self.outboxes.values() if outbox.frames]
        if self.held_since:
            due.append(self.held_since[0] + max_hold_ms * NS_PER_MS)
        return min(due)
