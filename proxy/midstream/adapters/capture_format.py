"""The capture format: records and the segment files that hold them.

A capture called NAME is a row of append-only files NAME-000001.cap, NAME-000002.cap and so on. All
numbers are little-endian.

    header   8 bytes  magic 89 4D 53 43 41 50 0D 0A (a file mangled as text is foreign at once)
             u16      version, 1
             u16      byte order mark, 0x0102 (a big-endian file would read 0x0201)
             u32      flags, 0; a reader refuses flags it does not know, as it does newer versions
    record   u32      length of the map in bytes, never 0 (a tail of zeros is damage, not records)
             u32      CRC-32 of the map
             map      msgpack, the fields of `StoredRecord`; those at their default are left out

A reader stops at the first record that is cut, fails its checksum or cannot be decoded, and tells
the byte where that record starts; everything before it is whole. Unknown keys are passed over, so
that fields can be added without a new version.
"""

import re
import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final

import msgspec

from midstream.core.errors import CaptureError
from midstream.core.frames import Frame, Kind, Side
from midstream.core.ports import Record, RecordKind

MAGIC: Final = b"\x89MSCAP\r\n"
VERSION: Final = 1
SUFFIX: Final = ".cap"
MAX_RECORD_BYTES: Final = 256 << 20
"""A longer record is never written, and a longer length is read as damage."""

_HEADER: Final = struct.Struct("<8sHHI")
_PREFIX: Final = struct.Struct("<II")
_BYTE_ORDER: Final = 0x0102
HEADER_BYTES: Final = _HEADER.size
PREFIX_BYTES: Final = _PREFIX.size
HEADER: Final = _HEADER.pack(MAGIC, VERSION, _BYTE_ORDER, 0)

type SentFrame = tuple[Side, Kind, bytes]


class StoredRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """A record as a capture holds it.

    `wall_ns` is nanoseconds since 1970, `mono_ns` the monotonic time of the recording process.
    `frame` and `data` are the kind and bytes of the frame as received; `sent` is None where it went
    on as it came, else [side, kind, bytes] of each frame that left instead. The other fields are
    those of `Record`. Text in `meta` that is not UTF-8 is kept as bytes.
    """

    wall_ns: int
    mono_ns: int
    exchange: int
    seq: int
    kind: RecordKind
    side: Side | None = None
    route: str = ""
    frame: Kind | None = None
    data: bytes = b""
    sent: tuple[SentFrame, ...] | None = None
    rules: tuple[tuple[str, str], ...] = ()
    skips: tuple[tuple[str, str], ...] = ()
    meta: dict[str, Any] = {}

    @classmethod
    def of(cls, record: Record, wall_ns: int, route: str = "") -> "StoredRecord":
        frame, sent = record.frame, record.sent
        return cls(
            wall_ns,
            record.mono_ns,
            record.exchange,
            record.seq,
            record.kind,
            record.side,
            route,
            None if frame is None else frame.kind,
            b"" if frame is None else frame.wire,
            None if sent is None else tuple((f.sender, f.kind, f.wire) for f in sent),
            record.rules,
            record.skips,
            {key: storable(value) for key, value in record.meta.items()} if record.meta else {},
        )

    @property
    def received(self) -> Frame | None:
        """The frame as received; None where the record has none."""
        if self.frame is None or self.side is None:
            return None
        return Frame(self.side, self.frame, self.data)

    @property
    def left(self) -> tuple[Frame, ...]:
        """What left at this record: the frame as it came, what was sent instead, or nothing."""
        if self.sent is not None:
            return tuple(Frame(*sent) for sent in self.sent)
        received = self.received
        return () if received is None else (received,)


class _Passed(msgspec.Struct, frozen=True, gc=False):
    """The fields of a frame that left as it came: most records are one, and this encodes faster."""

    wall_ns: int
    mono_ns: int
    exchange: int
    seq: int
    kind: str
    side: str
    route: str
    frame: str
    data: bytes


class Damage(msgspec.Struct, frozen=True):
    """Where the first bad record of a segment starts, in bytes from the start of the file.

    `whole` is how many records stand before it in that segment.
    """

    offset: int
    reason: str
    path: Path
    whole: int = 0


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(StoredRecord)
_encode, _pack, _crc32 = _encoder.encode, _PREFIX.pack, zlib.crc32


def encode(record: StoredRecord) -> bytes:
    """Return a record as its bytes in a segment. Raises CaptureError over MAX_RECORD_BYTES."""
    body = _encoder.encode(record)
    if len(body) > MAX_RECORD_BYTES:
        raise CaptureError(f"record is {len(body)} bytes, limit is {MAX_RECORD_BYTES}")
    return _PREFIX.pack(len(body), zlib.crc32(body)) + body


def encode_passed(
    buffer: bytearray, records: Iterable[Record], offset_ns: int, routes: Iterable[str]
) -> None:
    """Append records of frames that left as they came, in half the time that `encode` takes.

    `offset_ns` is what a monotonic time lacks to wall time, `routes` has the route of each record.
    """
    for record, route in zip(records, routes, strict=True):
        frame, mono_ns = record.frame, record.mono_ns
        if frame is not None:
            body = _encode(
                _Passed(
                    mono_ns + offset_ns, mono_ns, record.exchange, record.seq, "frame",
                    frame.sender._value_, route, frame.kind._value_, frame.wire,
                )
            )  # fmt: skip
            buffer += _pack(len(body), _crc32(body))
            buffer += body  # and its memory is used again for the next one


def split(records: bytes) -> Iterator[bytes]:
    """Return the records of some whole ones, each as its bytes in a segment."""
    at = 0
    while at < len(records):
        length, _ = _PREFIX.unpack_from(records, at)
        end = at + PREFIX_BYTES + length
        yield records[at:end]
        at = end


def segment_name(name: str, number: int) -> str:
    return f"{name}-{number:06d}{SUFFIX}"


def segments(path: Path) -> list[Path]:
    """Return the segments of a capture in order.

    `path` is a segment, DIR/NAME, or a directory that holds one capture. Raises CaptureError where
    there is none, or more than one.
    """
    if path.is_file():
        return [path]
    if path.is_dir():
        names = sorted({file.name[:-11] for file in segments_in(path)})
        if not names:
            raise CaptureError(f"{path}: the directory holds no capture")
        if len(names) > 1:
            raise CaptureError(
                f"{path}: the directory holds {len(names)} captures, name one: "
                + ", ".join(str(path / name) for name in names)
            )
        path = path / names[0]
    found = [file for file in segments_in(path.parent) if file.name[:-11] == path.name]
    if not found:
        raise CaptureError(f"{path}: no such capture")
    return found


def segments_in(directory: Path) -> list[Path]:
    """Return the segments of all captures of a directory, in order."""
    if not directory.is_dir():
        return []
    return sorted(file for file in directory.iterdir() if re.search(r".-\d{6}\.cap\Z", file.name))


class Reader:
    """Iterates over the records of a capture; after that, `damage` tells why it ended early.

    `over_damage` goes on with the next segment where one is damaged, and `damages` tells of all.
    Raises CaptureError where a segment is foreign or newer, or the first one has no header.
    """

    def __init__(self, paths: Sequence[Path], *, over_damage: bool = False) -> None:
        self.paths = tuple(paths)
        self.damages: list[Damage] = []
        self._over_damage = over_damage
        self._torn = {path: size for path in self.paths if (size := _torn_header(path)) is not None}
        for path in self.paths:
            if path not in self._torn or path == self.paths[0]:
                _check_header(path)

    @property
    def damage(self) -> Damage | None:
        return self.damages[0] if self.damages else None

    def __iter__(self) -> Iterator[StoredRecord]:
        self.damages = []
        for path in self.paths:
            if path in self._torn:  # its writer was ended, or the disk was full, just then
                reason = f"header is cut at {self._torn[path]} of {HEADER_BYTES} bytes"
                self.damages.append(Damage(0, reason, path))
            else:
                with path.open("rb") as file:
                    yield from self._records(path, file)
            if self.damages and not self._over_damage:
                return

    def _records(self, path: Path, file: BinaryIO) -> Iterator[StoredRecord]:
        offset, whole = file.seek(HEADER_BYTES), 0
        while prefix := file.read(PREFIX_BYTES):
            found = _read_record(prefix, file)
            if isinstance(found, str):
                self.damages.append(Damage(offset, found, path, whole))
                return
            yield found
            offset, whole = file.tell(), whole + 1


class Tail:
    """Reads one segment while it grows: a record that is cut at the end is read when it is whole.

    `unread` tells where and why it stopped short of the end of the file. Raises CaptureError where
    the file is no capture.
    """

    def __init__(self, path: Path) -> None:
        _check_header(path)
        self._path = path
        self._file = path.open("rb")
        self._offset = HEADER_BYTES
        self.unread: Damage | None = None

    def records(self) -> Iterator[StoredRecord]:
        """Return the records that are whole by now and were not returned before."""
        while True:
            self.unread = None
            self._file.seek(self._offset)
            prefix = self._file.read(PREFIX_BYTES)
            found = _read_record(prefix, self._file) if prefix else ""
            if isinstance(found, str):
                self.unread = Damage(self._offset, found, self._path) if found else None
                return
            self._offset = self._file.tell()
            yield found

    def close(self) -> None:
        self._file.close()


def read(path: Path | str) -> Reader:
    """Open a capture (see `segments`). Raises CaptureError if it is missing, foreign or newer."""
    return Reader(segments(Path(path)))


def _torn_header(path: Path) -> int | None:
    """Return how many bytes of a header a file has that ends within it; None for any other."""
    try:
        with path.open("rb") as file:
            start = file.read(HEADER_BYTES)
    except OSError:
        return None
    return len(start) if len(start) < HEADER_BYTES and HEADER.startswith(start) else None


def is_begun(path: Path) -> bool:
    """Tell whether the header of a segment is written by now. Raises CaptureError."""
    return _torn_header(path) is None


def _check_header(path: Path) -> None:
    try:
        with path.open("rb") as file:
            header = file.read(HEADER_BYTES)
    except OSError as error:
        raise CaptureError(f"{path}: cannot be read: {error.strerror}") from None
    if len(header) < HEADER_BYTES:
        raise CaptureError(
            f"{path}: not a capture: {len(header)} bytes, a header has {HEADER_BYTES}"
        )
    magic, version, byte_order, flags = _HEADER.unpack(header)
    if magic != MAGIC or byte_order != _BYTE_ORDER:
        raise CaptureError(f"{path}: not a capture: it starts with {header[:8].hex(' ')}")
    if version != VERSION or flags:
        raise CaptureError(
            f"{path}: a capture of version {version} with flags {flags:#x}, "
            f"this reader knows version {VERSION} without flags"
        )


def _read_record(prefix: bytes, file: BinaryIO) -> StoredRecord | str:
    """Return the record behind a prefix, or the reason why there is none."""
    if len(prefix) < PREFIX_BYTES:
        return f"record prefix is cut at {len(prefix)} of {PREFIX_BYTES} bytes"
    length, checksum = _PREFIX.unpack(prefix)
    if not 0 < length <= MAX_RECORD_BYTES:
        return f"record length is {length}, allowed are 1 to {MAX_RECORD_BYTES}"
    body = file.read(length)
    if len(body) < length:
        return f"record is cut at {len(body)} of {length} bytes"
    if zlib.crc32(body) != checksum:
        return f"checksum is {zlib.crc32(body):08x}, the record says {checksum:08x}"
    try:
        return _decoder.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        return f"record cannot be decoded: {error}"


def storable(value: object) -> object:
    """Return a value of `meta` that msgpack can hold: text that is not UTF-8 becomes bytes."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            return value.encode("utf-8", "surrogateescape")
        return value
    if isinstance(value, list | tuple):
        return [storable(item) for item in value]
    return value
