"""Takes secrets out of records before they are queued.

- What goes: the values of named headers, what has the shape of a secret anywhere (heads, targets,
  frames, asks and their answers, close reasons), values under telling names, those at configured
  JSON paths, and message text where `content` is not `full`.
- A secret becomes a token: a hash with a key that this process alone has and forgets. Equal secrets
  have equal tokens within a capture, so exchanges of one user stay together and a replay comes to
  the same verdicts; nobody can test a guess. A token has no character that JSON escapes.
- `redactions` in the meta of a record counts what was taken out, by kind.

What cannot be seen: a secret that a model writes in several deltas, a first part that does not look
like one yet (`capture_pieces`), and a value that neither shape nor name nor path tells of.
"""

import hashlib
import re
import secrets
from collections.abc import Iterable
from typing import Any, Final, Literal
from urllib.parse import unquote_to_bytes

import msgspec

from midstream.adapters.capture_coded import CodedBodies
from midstream.adapters.capture_content import Content, without_text
from midstream.adapters.capture_format import StoredRecord
from midstream.adapters.capture_msgpack import is_container, with_strings
from midstream.adapters.capture_named import Telling, telling
from midstream.adapters.capture_paths import JsonPath, at_paths, parse_path
from midstream.adapters.capture_pieces import Pieces
from midstream.adapters.capture_secrets import may_hold, replaced
from midstream.adapters.capture_selfcheck import SelfCheck
from midstream.adapters.capture_shapes import is_credential
from midstream.config.schema import CaptureTable
from midstream.core.addon import Answer, Fetch
from midstream.core.conversation import CREDENTIAL_HEADERS
from midstream.core.frames import Frame, Kind, Side
from midstream.core.ports import Record, RecordKind

TOKEN_PREFIX: Final = "redacted:"  # noqa: S105 - it marks what is no secret
MARKER: Final = TOKEN_PREFIX.encode()
_ALWAYS: Final = frozenset({
    *CREDENTIAL_HEADERS, "proxy-authorization", "set-cookie", "x-auth-key", "private-token",
    "x-gitlab-token", "cf-access-jwt-assertion", "x-amz-security-token", "x-amzn-oidc-data",
})  # fmt: skip
_HOST_HEADERS: Final = frozenset({"host", "x-forwarded-host", "forwarded"})
_HEADS: Final = (RecordKind.OPEN, RecordKind.HEADERS)
_SCHEME: Final = re.compile(rb"(?i:bearer|basic|token|bot) +")

type Counted = dict[str, int]


class Redactor:
    """Cleans records. `names` are headers, in any case; `paths` those of `redact_paths`.

    With `known`, what that knows is taken out wherever it stands: for captures, not for traffic.
    """

    def __init__(
        self,
        names: Iterable[str],
        key: bytes | None = None,
        *,
        paths: Iterable[JsonPath] = (),
        content: Literal["full", "hash", "none"] = "full",
        known: SelfCheck | None = None,
    ) -> None:
        self._names = frozenset(name.lower() for name in names) | _ALWAYS
        self._hides_host = bool(self._names & _HOST_HEADERS)
        self._key = key or secrets.token_bytes(32)
        self._paths = tuple(paths)
        self._content = None if content == "full" else Content(content, self._hash)
        self._pieces = Pieces()
        self._coded = CodedBodies()
        self._known = known
        self.check = known or SelfCheck()
        """What a writer asks before it writes."""

    def record(self, record: Record) -> Record:
        """Return the record without secrets; one that holds none as it is."""
        counted: Counted = {}
        frame, sent = record.frame, record.sent
        if frame is not None:
            frame = self._frame(frame, record, counted)
        if sent:
            cleaned = tuple([self._frame(each, None, counted) for each in sent])
            sent = sent if _same(cleaned, sent) else cleaned
        meta = self._meta(record, counted) if record.meta else record.meta
        if record.kind is RecordKind.CLOSE and record.side is None:
            self._pieces.forget(record.exchange)
            self._coded.forget(record.exchange)
        if counted:
            meta = {**meta, "redactions": counted}
        if frame is record.frame and sent is record.sent and meta is record.meta:
            return record
        return msgspec.structs.replace(record, frame=frame, sent=sent, meta=meta)

    def stored(self, record: StoredRecord) -> StoredRecord:
        """Return a record of a capture without secrets."""
        sent = None if record.sent is None else tuple(Frame(*each) for each in record.sent)
        before = Record(
            record.mono_ns, record.exchange, record.seq, record.kind, record.side, record.received,
            sent, record.rules, record.skips, record.meta,
        )  # fmt: skip
        clean = self.record(before)
        earlier, now = record.meta.get("redactions"), clean.meta.get("redactions")
        if earlier != now and isinstance(earlier, dict) and isinstance(now, dict):
            kinds = {kind: earlier.get(kind, 0) + now.get(kind, 0) for kind in {**earlier, **now}}
            clean.meta["redactions"] = kinds
        return StoredRecord.of(clean, record.wall_ns, record.route)

    def token(self, value: str) -> str:
        """Return what stands for a secret."""
        return self._token(value.encode("utf-8", "surrogateescape")).decode()

    # --- frames -----------------------------------------------------------------------------------

    def _frame(self, frame: Frame, record: Record | None, counted: Counted) -> Frame:
        wire = frame.wire
        if record is not None and ("unread" in record.meta or "cut" in record.meta):
            clean = self._piece(record, frame, counted)
            if self._content is not None and wire:
                text = clean.decode("utf-8", "surrogateescape")
                clean = self._content.instead_of(text).encode()
        else:
            clean = self._whole(wire, frame.kind, counted)
            if self._paths or self._content is not None:
                clean = self._inside(frame, clean, counted)
        return frame if clean == wire else Frame(frame.sender, frame.kind, clean)

    def _whole(self, wire: bytes, kind: Kind, counted: Counted) -> bytes:
        is_text = kind in (Kind.SSE, Kind.WS_TEXT) or (kind is Kind.BODY and wire[:1] < b"\x80")
        if is_text:
            return self._bytes(wire, counted)
        if is_container(wire):
            return self._msgpack(wire, counted) if may_hold(wire) else wire
        return self._bytes(wire, counted, is_fixed=True)

    def _inside(self, frame: Frame, wire: bytes, counted: Counted) -> bytes:
        """Clean what is known by its place in the document of a frame."""
        payload = before = Frame(frame.sender, frame.kind, wire).payload
        if self._paths:
            payload, count = at_paths(payload, self._paths, self.token)
            if count:
                counted["path"] = counted.get("path", 0) + count
        if self._content is not None:
            payload = without_text(payload, self._content)
        if payload == before:
            return wire
        return Frame(frame.sender, frame.kind, wire).with_payload(payload).wire

    def _msgpack(self, wire: bytes, counted: Counted) -> bytes:
        def change(string: bytes, key: str) -> bytes:
            says = telling(key) if key else Telling.NO
            is_secret = says is Telling.YES or (says is Telling.MAYBE and is_credential(string))
            if not is_secret or not string:
                return self._bytes(string, counted)
            if not string.startswith(MARKER):
                counted["named"] = counted.get("named", 0) + 1
            return self._token(string)

        return with_strings(wire, change)

    def _piece(self, record: Record, frame: Frame, counted: Counted) -> bytes:
        """Clean a piece of a body, cut anywhere."""
        wire = frame.wire
        leaves_out = self._coded.leaves_out(record.exchange, frame.sender, record.seq, wire)
        if leaves_out:
            counted["coded"] = counted.get("coded", 0) + 1
            return MARKER + self._digest(wire).hex().encode()
        if leaves_out is not None:
            return wire
        pieces: list[bytes] = []
        at = 0
        for start, end, secret, kind in self._pieces.spans(
            record.exchange, frame.sender, record.seq, wire, MARKER
        ):
            pieces += (wire[at:start], self._token(secret))
            counted[kind] = counted.get(kind, 0) + 1
            at = end
        return b"".join((*pieces, wire[at:])) if pieces else wire

    # --- heads and the rest -----------------------------------------------------------------------

    def _meta(self, record: Record, counted: Counted) -> dict[str, object]:
        meta = record.meta
        changed: dict[str, object] = {}
        for name, value in meta.items():
            clean = self._value(name, value, counted)
            if clean is not value:
                changed[name] = clean
        if record.kind in _HEADS:
            self._note_coding(record)
        if self._hides_host and meta.get("origin"):
            changed["origin"] = ""  # it says what they say
        if record.kind is RecordKind.OPEN and self._content is not None:
            changed["redacted"] = {"content": self._content.mode}
        return {**meta, **changed} if changed else meta

    def _note_coding(self, record: Record) -> None:
        side = Side.CLIENT if record.kind is RecordKind.OPEN else Side.SERVER
        pairs = record.meta.get("headers")
        for name, value in pairs if isinstance(pairs, list | tuple) else ():
            if name.lower() == "content-encoding" and isinstance(value, str):
                self._coded.open(record.exchange, side, value)

    def _value(self, name: str, value: Any, counted: Counted) -> Any:
        match value:
            case str():
                return self._text(value, counted)
            case bytes() if name == "body" and value:
                return self._answer(value, counted)
            case bytes():
                return self._bytes(value, counted)
            case list() | tuple() if name == "headers":
                clean = [(key, self._header(key, each, counted)) for key, each in value]
                return value if clean == [tuple(pair) for pair in value] else tuple(clean)
            case list() | tuple():
                items = [self._value(name, each, counted) for each in value]
                return value if _same(items, value) else type(value)(items)
            case dict():
                members = {key: self._value(key, each, counted) for key, each in value.items()}
                return value if _same(members.values(), value.values()) else members
            case Fetch():
                target = self._text(value.target, counted)
                return value if target is value.target else Fetch(target)
            case Answer():
                body = self._answer(value.body, counted)
                return value if body is value.body else Answer(value.status, body)
        return value

    def _answer(self, body: bytes, counted: Counted) -> bytes:
        clean = self._frame(Frame(Side.SERVER, Kind.BODY, body), None, counted).wire
        return body if clean == body else clean

    def _header(self, name: Any, value: Any, counted: Counted) -> Any:
        if not isinstance(name, str) or not isinstance(value, str | bytes):
            return value
        if name.lower() not in self._names and telling(name) is not Telling.YES:
            return self._value("", value, counted)
        data = value if isinstance(value, bytes) else value.encode("utf-8", "surrogateescape")
        if not data or data.startswith(MARKER):
            return value
        counted["header"] = counted.get("header", 0) + 1
        return self._token(data).decode()

    def _text(self, value: str, counted: Counted) -> str:
        data = value.encode("utf-8", "surrogateescape")
        clean = self._bytes(data, counted)
        return value if clean is data else clean.decode("utf-8", "surrogateescape")

    # --- tokens -----------------------------------------------------------------------------------

    def _bytes(self, data: bytes, counted: Counted, *, is_fixed: bool = False) -> bytes:
        token = self._fixed if is_fixed else self._token
        more = self._known.spans(data) if self._known is not None else ()
        clean, kinds = replaced(data, token, MARKER, more)
        for kind, count in kinds.items():
            counted[kind] = counted.get(kind, 0) + count
        return clean if kinds else data

    def _token(self, secret: bytes) -> bytes:
        if secret.startswith(MARKER):
            return secret
        self.check.remember(secret)
        return MARKER + self._digest(_plain(secret)).hex().encode()

    def _fixed(self, secret: bytes) -> bytes:
        """Return a token as long as the secret: in bytes that nobody reads, lengths may count."""
        token = self._token(secret)
        return (token * (len(secret) // len(token) + 1))[: len(secret)]

    def _hash(self, text: str) -> str:
        return self._digest(text.encode("utf-8", "surrogatepass")).hex()

    def _digest(self, value: bytes) -> bytes:
        return hashlib.blake2b(value, digest_size=16, key=self._key).digest()


def redactor(table: CaptureTable) -> Redactor:
    """Return the redactor that a configuration asks for."""
    paths = [parse_path(path) for path in table.redact_paths]
    return Redactor(table.redact, paths=paths, content=table.content)


def _plain(secret: bytes) -> bytes:
    """Return a secret without what depends on where it stands: scheme and escapes."""
    if b"%" in secret:
        secret = unquote_to_bytes(secret)
    return _SCHEME.sub(b"", secret, count=1).replace(b"\\", b"")


def _same(these: Iterable[object], those: Iterable[object]) -> bool:
    return all(this is that for this, that in zip(these, those, strict=True))
