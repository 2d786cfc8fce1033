"""Writes on mitmproxy's flows what was mended in them, so that mitmweb tells it by itself.

    flow.comment                 one short line: which rules, how often, what was left alone
    flow.metadata["midstream"]   the notes: words, reasons, before and after, as text
    flow.marked                  a wrench, where anything was mended and no mark is set

Rules of this file:
- What a person wrote into the comment, or marked, stays.
- Notes are saved with the flow, so they hold only what mitmproxy can save: text, numbers, lists.
- They are bounded for each flow, like its messages: the oldest go first, and are counted.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Callable
from hashlib import blake2b
from typing import Final

import msgspec
from mitmproxy import ctx, hooks, http

from midstream.core.frames import Frame, Side
from midstream.core.ports import Record, RecordKind
from midstream.explaining import explain

KEY: Final = "midstream"
MARK: Final = ":wrench:"
LEAD: Final = "midstream: "
MAX_NOTES = 50
MAX_NOTE_TEXT_BYTES = 16_384
"""Of the frames of one note, on each side."""
MAX_WORDS = 6
MAX_FLOWS = 10_000
REFRESH_SECONDS = 0.3

type Flow = http.HTTPFlow


class Note(msgspec.Struct):
    """What was done with one frame. `frame` and `sent` are digests (see `digest`).

    `count` is how many frames left instead, -1 where it went on as it came.
    """

    seq: int
    side: str
    rules: list[tuple[str, str]]
    skips: list[tuple[str, str]]
    why: list[str]
    frame: str
    sent: list[str]
    count: int
    before: list[str]
    after: list[str]


def notes_of(flow: Flow) -> tuple[list[Note], int]:
    """Return the notes of a flow, and how many were dropped; none where a file holds other things.

    A flow may come from a file, and a file may hold anything.
    """
    kept = flow.metadata.get(KEY)
    try:
        sheet = msgspec.convert(kept, _Kept)
    except msgspec.ValidationError:
        return [], 0
    return sheet.notes, sheet.dropped


class _Kept(msgspec.Struct):
    notes: list[Note]
    dropped: int = 0


class Notes:
    """A sink that knows which flow an exchange is, and writes on it; `told` is called after that.

    Without `told` mitmproxy is asked to show the flow anew, as it does itself with each hook.
    """

    def __init__(self, told: Callable[[Flow], None] | None = None) -> None:
        self._told = told or Refresher()
        self._flows: dict[int, tuple[Flow, _Sheet]] = {}

    def follow(self, exchange: int, flow: Flow) -> None:
        """Write on this flow what happens in an exchange from here on."""
        self._flows[exchange] = flow, _Sheet()
        while len(self._flows) > MAX_FLOWS:
            del self._flows[next(iter(self._flows))]

    def write(self, record: Record) -> None:
        if record.rules or record.skips:
            followed = self._flows.get(record.exchange)
            if followed is not None:
                flow, sheet = followed
                sheet.add(record)
                sheet.write_on(flow)
                self._told(flow)
        if record.kind is RecordKind.CLOSE and "ending" in record.meta:
            self._flows.pop(record.exchange, None)


class Refresher:
    """Has mitmproxy show changed flows anew, each at most once in REFRESH_SECONDS."""

    def __init__(self) -> None:
        self._due: set[str] = set()

    def __call__(self, flow: Flow) -> None:
        if flow.id not in self._due:
            self._due.add(flow.id)
            asyncio.get_running_loop().call_later(REFRESH_SECONDS, self._show, flow)

    def _show(self, flow: Flow) -> None:
        self._due.discard(flow.id)
        ctx.master.addons.trigger(hooks.UpdateHook([flow]))


class _Sheet:
    """What is noted of one flow."""

    def __init__(self) -> None:
        self._notes: deque[Note] = deque()
        self._dropped = 0
        self._rules: Counter[str] = Counter()
        self._skips: Counter[str] = Counter()

    def add(self, record: Record) -> None:
        self._rules.update(f"{addon}: {rule}" for addon, rule in record.rules)
        self._skips.update(f"{addon}: {reason}" for addon, reason in record.skips)
        self._notes.append(_note(record))
        while len(self._notes) > MAX_NOTES:
            # What was mended is looked for longest: notes of declined edits go before it.
            spare = next((note for note in self._notes if not note.rules), self._notes[0])
            self._notes.remove(spare)
            self._dropped += 1

    def write_on(self, flow: Flow) -> None:
        flow.metadata[KEY] = msgspec.to_builtins(_Kept(list(self._notes), self._dropped))
        own = LEAD + self._summary()
        others = [line for line in flow.comment.split("\n") if not line.startswith(LEAD)]
        flow.comment = "\n".join([*filter(None, others), own])
        if self._rules and not flow.marked:
            flow.marked = MARK

    def _summary(self) -> str:
        parts = []
        if self._rules:
            parts.append(f"mended {self._rules.total()} ({_counted(self._rules)})")
        if self._skips:
            parts.append(f"left alone {self._skips.total()} ({_counted(self._skips)})")
        return "; ".join(parts)


def digest(side: Side, payload: bytes) -> str:
    """Return what a note knows a frame by."""
    return side.value + ":" + blake2b(payload, digest_size=12).hexdigest()


def _note(record: Record) -> Note:
    frame, sent = record.frame, record.sent
    is_mended = bool(record.rules)
    return Note(
        seq=record.seq,
        side="" if record.side is None else record.side.value,
        rules=list(record.rules),
        skips=list(record.skips),
        why=explain(record.rules, record.skips, record.meta.get("why", ())),
        frame="" if frame is None else digest(frame.sender, frame.payload),
        sent=[digest(left.sender, left.payload) for left in (sent or ())[:MAX_NOTES]],
        count=-1 if sent is None else len(sent),
        before=_text(() if frame is None or not is_mended else (frame,)),
        after=_text(sent or () if is_mended else ()),
    )


def _text(frames: tuple[Frame, ...]) -> list[str]:
    """Return frames as text, within one bound for all of them."""
    left, texts = MAX_NOTE_TEXT_BYTES, []
    for frame in frames:
        if left <= 0:
            break
        payload = frame.payload
        cut = f" ... {len(payload) - left:,} bytes more" if len(payload) > left else ""
        texts.append(f"{payload[:left].decode('utf-8', 'backslashreplace')}{cut}")
        left -= len(payload)
    return texts


def _counted(words: Counter[str]) -> str:
    most = [word if count == 1 else f"{word} x{count}" for word, count in words.most_common()]
    more = [f"{len(most) - MAX_WORDS} more"] if len(most) > MAX_WORDS else []
    return ", ".join([*most[:MAX_WORDS], *more])
