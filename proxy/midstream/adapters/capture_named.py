"""Finds secrets by the name beside them: `"password": "..."`, `?api_key=...`, `TOKEN=...`.

- A name says what its end says: `OPENAI_API_KEY` and `userPassword` are as telling as `api_key`.
- Names that also stand for other things (`token`: a word of a vocabulary, a cursor) tell only
  together with a value that looks like a credential; so do assignments in running text.
- JSON inside JSON is as good as JSON: quotes may be escaped to any depth, in any spelling.
"""

import re
from collections.abc import Iterator
from enum import Enum
from typing import Final

from midstream.adapters.capture_shapes import MAX_SECRET_BYTES, is_credential


class Telling(Enum):
    """How much a name tells about its value."""

    NO = 0
    MAYBE = 1
    YES = 2


_ALWAYS: Final = (
    "password", "passwd", "passphrase", "secret", "secretkey", "secretaccesskey", "apikey",
    "accesskey", "privatekey", "appkey", "applicationkey", "accountkey", "subscriptionkey",
    "signingkey", "encryptionkey", "masterkey", "authkey", "accesstoken", "refreshtoken",
    "idtoken", "authtoken", "apitoken", "bearertoken", "sessiontoken", "securitytoken",
    "bottoken", "csrftoken", "xsrftoken", "authorization", "cookie", "credential", "credentials",
    "clientassertion", "codeverifier", "connectionstring", "sastoken",
)  # fmt: skip
_URL: Final = frozenset({
    "sig", "signature", "xamzsignature", "xamzcredential", "xgoogsignature", "xgoogcredential",
    "token", "jwt", "pwd",
})  # fmt: skip
"""Parameters of an URL that are secrets whatever they hold."""
_URL_MAYBE: Final = frozenset({
    "key", "auth", "pass", "code", "session", "sessionid", "sid", "ticket",
})  # fmt: skip
_MAYBE: Final = ("token", "jwt", "pwd", "webhookurl")
_OTHERWISE: Final = (
    "pagetoken", "nexttoken", "continuationtoken", "canceltoken", "cancellationtoken",
    "progresstoken", "stoptoken", "eostoken", "bostoken", "padtoken", "unktoken", "cursortoken",
    "allowcredentials", "synctoken", "resumetoken", "publickey", "tokenizer",
)  # fmt: skip

_TAILS: Final = (
    "password", "passwd", "passphrase", "secret", "key", "token", "authorization", "cookie",
    "credential", "credentials", "assertion", "verifier", "string", "signature", "sig", "jwt",
    "auth", "pwd", "pass", "code", "session", "id", "sid", "ticket", "url",
)  # fmt: skip
_IN_JSON: Final = frozenset({"sig", "signature", "auth", "pass", "code", "session", "sid", "ticket",
                             "id", "url", "string"})  # fmt: skip
"""Tails that tell nothing in front of the quote that ends a key (but see `_STEMS_IN_JSON`)."""
_STEMS_IN_JSON: Final = ("connectionstring", "connection_string", "webhook_url", "webhookurl")
_BEHIND: Final = ('"', "\\", ":", "'", " =", " :")

TAILS: Final = (*(tail for tail in _TAILS if tail not in _IN_JSON), *_STEMS_IN_JSON)
"""What a telling name of a member ends in, in lower case."""
STEMS: Final = tuple(
    sorted({
        *((tail + behind).encode() for tail in _TAILS for behind in ("=", "%3d")),
        *(
            (tail + behind).encode()
            for tail in (*_TAILS, *_STEMS_IN_JSON)
            for behind in _BEHIND
            if tail not in _IN_JSON
        ),
    })
)  # fmt: skip
"""What a telling name ends in, in lower case, with what stands behind it."""

_NAME: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-."
_MAX_NAME_BYTES: Final = 80
_SEPARATOR: Final = re.compile(
    rb"(\\*+(?:[\"']|u0022))?[ \t\r\n]{0,8}+(?:=>|=|:|%3[dD])[ \t\r\n]{0,8}+"
    rb"(\\*+(?:[\"']|u0022))?"
)
_QUOTE: Final = re.compile(rb"(\\*+)(?:\"|'|u0022)")
_BARE: Final = re.compile(rb"(?:(?!%26|%22|%20)[^\s\"'\\&;,<>(){}\[\]#])+")
_IN_URL: Final = (b"?", b"&", b";", b"#")


def telling(name: str) -> Telling:
    """Tell what a name of a header or a member says about its value."""
    plain = name.lower().replace("_", "").replace("-", "").replace(".", "").replace(" ", "")
    if plain.endswith(_OTHERWISE):
        return Telling.NO
    if plain.endswith(_ALWAYS):
        return Telling.YES
    return Telling.MAYBE if plain.endswith(_MAYBE) else Telling.NO


def look(data: bytes, start: int, end: int) -> tuple[int, int] | None:
    """Return where the value of a telling name stands whose last part is at a stem."""
    while data[end - 1 : end] not in _LETTERS:  # the stem has a part of what is behind the name
        end -= 1
    separator = _SEPARATOR.match(data, end)
    if separator is None:
        stop = data.rfind(b"%", start, end)  # name%3d: the 3d belongs to no name
        end = stop if stop > 0 else end
        separator = _SEPARATOR.match(data, end)
    if separator is None:
        return None
    before = data[max(0, end - _MAX_NAME_BYTES) : end]
    name = before[len(before.rstrip(_NAME)) :]
    at = end - len(name)
    says = telling(name.decode())
    if separator[1]:
        return _quoted(data, separator, says) if separator[2] else None
    if separator[2]:
        found = _quoted(data, separator, says)
        return found if found and is_credential(data[slice(*found)]) else None
    return _bare(data, separator, says, name, data[at - 1 : at])


def _quoted(data: bytes, separator: re.Match[bytes], says: Telling) -> tuple[int, int] | None:
    """Return a value in quotes; one whose end is missing goes as far as there is data."""
    if says is Telling.NO:
        return None
    start = separator.end()
    limit = min(len(data), start + MAX_SECRET_BYTES)
    end = limit
    for quote in _ends(data, separator[2], start, limit):
        end = quote
        break
    if end == start or (says is Telling.MAYBE and not is_credential(data[start:end])):
        return None
    return start, end


def _ends(data: bytes, quote: bytes, start: int, limit: int) -> Iterator[int]:
    """Return where quotes as deeply escaped as this one stand: a multiple of escapes more is text.

    At a depth of n backslashes, each backslash of the text is 2 * (n + 1) of them before a quote.
    """
    depth = quote.count(b"\\")
    spelled = quote.lstrip(b"\\")
    if spelled == b"u0022":
        depth, step = depth - 1, 2 * depth
    else:
        step = 2 * (depth + 1)
    for found in _QUOTE.finditer(data, start, limit):
        if found[0].endswith(spelled) and len(found[1]) % step == depth + (spelled == b"u0022"):
            yield found.start()


def _bare(
    data: bytes, separator: re.Match[bytes], says: Telling, name: bytes, before: bytes
) -> tuple[int, int] | None:
    """Return a value without quotes: a parameter of an URL, or an assignment."""
    value = _BARE.match(data, separator.end(), separator.end() + MAX_SECRET_BYTES)
    if value is None:
        return None
    plain = name.lower().replace(b"_", b"").replace(b"-", b"").decode()
    if before in _IN_URL and b":" not in separator[0] and before:
        if plain in _URL_MAYBE and is_credential(value[0]):
            return value.span()
        return value.span() if says is not Telling.NO or plain in _URL else None
    if data[value.end() : value.end() + 1] in (b"(", b"["):  # a call or a lookup
        return None
    return value.span() if says is not Telling.NO and is_credential(value[0]) else None


_LETTERS: Final = frozenset(bytes([code]) for code in _NAME)
