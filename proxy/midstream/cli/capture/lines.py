"""One line for each record of a capture, and the records that were asked for."""

import argparse
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from midstream.core.errors import ConfigError

if TYPE_CHECKING:
    from midstream.adapters.capture_format import SentFrame, StoredRecord

NS_PER_S = 1_000_000_000
ARROWS = {"client": "->", "server": "<-"}
MIN_WIDTH = 60
MIN_MEANING = 30
"""So much of a meaning is printed however narrow a line may be."""


_TIME = "seconds since the first record, or a date and time"


def add_choices(parser: argparse.ArgumentParser) -> None:
    """Add the flags that choose records."""
    parser.add_argument(
        "--exchange", metavar="N", action="append", type=int, help="only this exchange; repeatable"
    )
    parser.add_argument("--seq", metavar="N[-M]", help="only these sequence numbers")
    parser.add_argument("--side", choices=("client", "server"), help="only what this side sent")
    parser.add_argument("--kind", metavar="KIND", help="only records of this kind (frame, open, …)")
    parser.add_argument("--route", metavar="NAME", help="only exchanges of this route")
    parser.add_argument("--from", metavar="TIME", dest="first", help=f"only from here on: {_TIME}")
    parser.add_argument("--to", metavar="TIME", dest="last", help=f"only up to here: {_TIME}")
    parser.add_argument("--mended", action="store_true", help="only what was mended or declined")


class Moment(NamedTuple):
    """A time: nanoseconds since 1970, or since the first record."""

    ns: int
    is_wall: bool

    @classmethod
    def of(cls, text: str, flag: str) -> "Moment":
        """Return what stands on the command line; without a zone it is UTC. Raises ConfigError."""
        try:
            return cls(round(float(text) * NS_PER_S), is_wall=False)
        except (ValueError, OverflowError):
            pass
        try:
            time = datetime.fromisoformat(text.removesuffix(" UTC"))
        except ValueError:
            raise ConfigError(
                f'command line: {flag}: found "{text}", expected seconds such as 12.5 '
                "or a time such as 2026-11-30T00:53:20"
            ) from None
        time = time if time.tzinfo is not None else time.replace(tzinfo=UTC)
        return cls(round(time.timestamp() * NS_PER_S), is_wall=True)

    def wall_ns(self, began_ns: int) -> int:
        return self.ns if self.is_wall else began_ns + self.ns


class Choice(NamedTuple):
    """Which records are wanted."""

    exchanges: frozenset[int] = frozenset()
    first_seq: int = 0
    last_seq: int = 1 << 62
    side: str | None = None
    kind: str | None = None
    route: str | None = None
    mended: bool = False
    first: Moment | None = None
    last: Moment | None = None

    @classmethod
    def of(cls, args: argparse.Namespace) -> "Choice":
        """Return what the flags ask for. Raises ConfigError."""
        first, last = _range(args.seq)
        kinds = ("open", "headers", "frame", "repair", "ask", "close", "gap")
        if args.kind is not None and args.kind not in kinds:
            raise ConfigError(
                f'command line: --kind: found "{args.kind}", expected one of {", ".join(kinds)}'
            )
        numbers = frozenset(args.exchange or ())
        begin = None if args.first is None else Moment.of(args.first, "--from")
        end = None if args.last is None else Moment.of(args.last, "--to")
        return cls(numbers, first, last, args.side, args.kind, args.route, args.mended, begin, end)

    def takes(self, record: "StoredRecord", began_ns: int) -> bool:
        """Tell whether a record is wanted; `began_ns` is the wall time of the first one."""
        if self.first is not None and record.wall_ns < self.first.wall_ns(began_ns):
            return False
        if self.last is not None and record.wall_ns > self.last.wall_ns(began_ns):
            return False
        if self.exchanges and record.exchange not in self.exchanges:
            return False
        if not self.first_seq <= record.seq <= self.last_seq:
            return False
        if self.side is not None and (record.side is None or record.side.value != self.side):
            return False
        if self.kind is not None and record.kind.value != self.kind:
            return False
        if self.route is not None and record.route != self.route:
            return False
        return not self.mended or is_mended(record)


def is_mended(record: "StoredRecord") -> bool:
    """Tell whether an addon did, or declined to do, something at this record."""
    return record.sent is not None or bool(record.rules or record.skips)


def is_changed(record: "StoredRecord") -> bool:
    """Tell whether an addon changed what left at this record, or would have in observe mode."""
    return record.sent is not None or bool(record.rules)


def _range(text: str | None) -> tuple[int, int]:
    if text is None:
        return 0, 1 << 62
    first, dash, last = text.partition("-")
    try:
        return int(first), int(last) if dash and last else (1 << 62 if dash else int(first))
    except ValueError:
        raise ConfigError(
            f'command line: --seq: found "{text}", expected a number or a range such as 10-20'
        ) from None


class Telling:
    """Says what records mean, in the words of the dialects of their exchange."""

    def __init__(self, *, wall: bool = False) -> None:
        self.began_ns = 0
        self._wall = wall
        self._dialects: dict[int, list[str]] = {}
        self._known: dict[tuple[str, ...], list[str]] = {}

    def follow(self, records: Iterable["StoredRecord"]) -> Iterator["StoredRecord"]:
        """Learn the exchanges while records pass."""
        for record in records:
            self.note(record)
            yield record

    def note(self, record: "StoredRecord") -> None:
        from midstream.adapters.capture_heads import request_head
        from midstream.core.errors import CaptureError
        from midstream.describing import dialects_of

        self.began_ns = self.began_ns or record.wall_ns
        if record.kind.value == "open":
            try:
                names = dialects_of(request_head(record))
            except CaptureError:
                names = []
            # one list for all exchanges alike: there may be a million of them
            self._dialects[record.exchange] = self._known.setdefault(tuple(names), names)

    def time(self, record: "StoredRecord") -> str:
        """Return when a record was made: seconds since the first one, or the date and time.

        By the wall clock: the monotonic one starts anew with the machine, and captures go on.
        """
        if self._wall:
            return when(record.wall_ns, of_ms=True)
        return f"{(record.wall_ns - self.began_ns) / NS_PER_S:.3f}"

    def meaning(self, record: "StoredRecord") -> str:
        """Return what a record means."""
        from midstream.describing import in_words

        frame = record.received
        if frame is not None:
            words = in_words(self._dialects.get(record.exchange, []), frame)
            return f"{words} (broken off)" if record.meta.get("cut") else words
        return _MEANINGS.get(record.kind.value, _nothing)(record.meta)

    def dialects(self, exchange: int) -> list[str]:
        return self._dialects.get(exchange, [])


def when(wall_ns: int, *, of_ms: bool = False) -> str:
    """Return a time as people read it, in UTC."""
    try:
        time = datetime.fromtimestamp(wall_ns / NS_PER_S, UTC)
    except (ValueError, OverflowError, OSError):
        return f"{wall_ns} ns"
    text = time.isoformat(" ", "milliseconds" if of_ms else "seconds").removesuffix("+00:00")
    return text if of_ms else f"{text} UTC"


def done(record: "StoredRecord") -> str:
    """Return what was done at a record: what left instead, the rules, the reasons."""
    words = [f"{addon} {rule}" for addon, rule in record.rules]
    words += [f"{addon} declined: {reason}" for addon, reason in record.skips]
    if record.sent is not None:
        words.insert(0, _sent(record.sent, is_frame=record.frame is not None))
    return "; ".join(words)


def _sent(sent: "tuple[SentFrame, ...]", *, is_frame: bool) -> str:
    if not sent:
        return "not sent on"
    count, size = len(sent), sum(len(wire) for _, _, wire in sent)
    frames = "" if is_frame and count == 1 else f"{count} frame{'' if count == 1 else 's'}, "
    return f"sent {frames}{size:,} bytes{' instead' if is_frame else ''}"


def size_of(record: "StoredRecord") -> int:
    return len(record.data)


def _open(meta: dict[str, object]) -> str:
    return f"{meta.get('method', '?')} {_text(meta.get('target', '?'))}"


def _headers(meta: dict[str, object]) -> str:
    return f"status {meta.get('status', '?')}"


def _close(meta: dict[str, object]) -> str:
    words = [f"{key} {_text(value)}" for key, value in meta.items() if value not in ("", None)]
    return ", ".join(words) or "end"


def _ask(meta: dict[str, object]) -> str:
    ask, answer = meta.get("ask"), meta.get("answer")
    asked = ", ".join(f"{k} {_text(v)}" for k, v in ask.items()) if isinstance(ask, dict) else "?"
    status = answer.get("status", "") if isinstance(answer, dict) else ""
    return f"asked: {asked}; answered {status}".rstrip()


def _gap(meta: dict[str, object]) -> str:
    return f"{meta.get('count', '?')} records are missing: {meta.get('reason', '?')}"


def _repair(meta: dict[str, object]) -> str:
    return f"reads no further: {meta['gave_up']}" if "gave_up" in meta else "by a timer"


def _nothing(_meta: dict[str, object]) -> str:
    return ""


_MEANINGS = {
    "open": _open, "headers": _headers, "close": _close,
    "ask": _ask, "gap": _gap, "repair": _repair,
}  # fmt: skip


def _text(value: object) -> str:
    if isinstance(value, bytes):
        value = value.decode("utf-8", "backslashreplace")
    text = str(value)
    return text if text.isprintable() else ascii(text)
