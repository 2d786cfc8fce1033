"""Lets aiohttp write headers whose bytes are not UTF-8.

aiohttp reads such bytes as surrogate escapes, and its compiled writer leaves them out without a
word. Both of its ends look the writer of heads up in one place, where this one is put in front.
"""

from aiohttp import http_writer
from multidict import CIMultiDict

_compiled = http_writer._serialize_headers


def write_header_bytes_as_they_came() -> None:
    """Put our writer of heads in place, for this process."""
    http_writer._serialize_headers = _serialize


def _serialize(status_line: str, headers: "CIMultiDict[str]") -> bytes:
    if status_line.isascii() and "".join(headers.values()).isascii():
        return _compiled(status_line, headers)
    safe = http_writer._safe_header  # refuses control characters, as the compiled writer does
    lines = [safe(status_line)]
    lines += [f"{safe(name)}: {safe(value)}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("utf-8", "surrogateescape")
