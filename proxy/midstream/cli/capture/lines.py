"""One line for each record of a capture, and the records that were asked for."""

import argparse
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import msgspec

from midstream.core.errors import ConfigError

if TYPE_CHECKING:
    from midstream.adapters.capture_format import StoredRecord

NS_PER_S = 1_000_000_000
ARROWS = {"client": "->", "server": "<-"}
MIN_WIDTH = 60


def add_choices(parser: argparse.ArgumentParser) -> None:
    """Add the flags that choose records."""
    parser.add_argument(
        "--exchange", metavar="N", action="append", type=int, help="only this exchange; repeatable"
    )
    parser.add_argument("--seq", metavar="N[-M]", help="only these sequence numbers")
    parser.add_argument("--side", choices=("client", "server"), help="only what this side sent")
    parser.add_argument("--kind", metavar="KIND", help="only records of this kind (frame, open, …)")
    parser.add_argument("--route", metavar="NAME", help="only exchanges of this route")
    parser.add_argument("--mended", action="store_true", help="only what was mended or declined")


class Choice(msgspec.Struct, frozen=True):
    """Which records are wanted."""

    exchanges: frozenset[int] = frozenset()
    first_seq: int = 0
    last_seq: int = 1 << 62
    side: str | None = None
    kind: str | None = None
    route: str | None = None
    mended: bool = False

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
        return cls(numbers, first, last, args.side, args.kind, args.route, args.mended)

    def takes(self, record: "StoredRecord") -> bool:
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

    def __init__(self) -> None:
        self._dialects: dict[int, list[str]] = {}
        self._began_ns: int | None = None

    def follow(self, records: Iterable["StoredRecord"]) -> Iterator["StoredRecord"]:
        """Learn the exchanges while records pass."""
        for record in records:
            self.note(record)
            yield record

    def note(self, record: "StoredRecord") -> None:
        from midstream.adapters.capture_heads import request_head
        from midstream.core.errors import CaptureError
        from midstream.describing import dialects_of

        if self._began_ns is None:
            self._began_ns = record.mono_ns
        if record.kind.value == "open":
            try:
                self._dialects[record.exchange] = dialects_of(request_head(record))
            except CaptureError:
                self._dialects[record.exchange] = []

    def time(self, record: "StoredRecord") -> str:
        """Return the seconds since the first record."""
        return f"{(record.mono_ns - (self._began_ns or 0)) / NS_PER_S:.3f}"

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


def done(record: "StoredRecord") -> str:
    """Return what was done at a record: what left instead, the rules, the reasons."""
    words = [f"{addon} {rule}" for addon, rule in record.rules]
    words += [f"{addon} declined: {reason}" for addon, reason in record.skips]
    if record.sent is not None:
        count, size = len(record.sent), sum(len(wire) for _, _, wire in record.sent)
        words.insert(0, f"sent {count} frame{'' if count == 1 else 's'}, {size:,} bytes")
    return "; ".join(words)


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
