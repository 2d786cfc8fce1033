"""The shapes of secrets that can be told by themselves: keys of known vendors, tokens, key blocks.

Each shape has stems without one of which it cannot be there, so that a search for all stems at once
finds every place worth a closer look. A key has to begin where no word goes on, and to look drawn
by lot where its stem could begin a word: ids (`msg_...`, `call_...`, a UUID), signatures and
encrypted reasoning are needed to explain and to replay, and are no secrets.

Source: the vendors' own descriptions of their key formats.
"""

import base64
import binascii
import re
from collections.abc import Callable, Iterator
from typing import Final

import msgspec

type Span = tuple[int, int, str]
"""Where a secret starts and ends, and what kind it is."""
type Look = Callable[[bytes, int, int], tuple[int, int] | None]
"""Given the data and where a stem starts and ends, return where the secret does."""

EDGE: Final = rb"(?:(?<![A-Za-z0-9_-])|(?<=\\[nrtbf])|(?<=\\u[0-9A-Fa-f]{4})|(?<=%[0-9A-Fa-f]{2}))"
"""Where a word may begin: behind no part of one, or behind an escape that ends in a letter."""
_END: Final = rb"(?![A-Za-z0-9])"
_NO_WORDS: Final = re.compile(rb"[A-Z]|[0-9][^0-9]*[0-9]")
_CREDENTIAL: Final = re.compile(rb"(?=.*[0-9])(?=.*[A-Za-z])[\x21-\x7e]{8,}|[\x21-\x7e]{20,}")


class Shape(msgspec.Struct, frozen=True):
    """One kind of secret. `stems` are in lower case; `is_key`: it goes on while letters do."""

    name: str
    stems: tuple[bytes, ...]
    look: Look
    is_key: bool = False


def looks_random(value: bytes) -> bool:
    """Tell a key from words of lower case, such as the names of CSS classes."""
    return _NO_WORDS.search(value) is not None


def is_credential(value: bytes) -> bool:
    """Tell whether a value may prove who somebody is; a word of a language does not."""
    return _CREDENTIAL.fullmatch(value) is not None


def _key(name: str, body: bytes, *prefixes: bytes) -> list[Shape]:
    """Return the shapes of a key: one of some prefixes, and a body."""
    return [_one_key(name, body, prefix) for prefix in prefixes]


def _one_key(name: str, body: bytes, prefix: bytes) -> Shape:
    match = re.compile(EDGE + re.escape(prefix) + rb"(" + body + rb")" + _END).match

    def look(data: bytes, start: int, _end: int) -> tuple[int, int] | None:
        found = match(data, start)
        return found.span() if found and looks_random(found[1]) else None

    return Shape(name, (prefix.lower(),), look, is_key=True)


def _pattern(name: str, stem: bytes, pattern: bytes, before: int = 0) -> Shape:
    """Return a shape that begins at its stem, or up to `before` bytes in front of it."""
    compiled = re.compile(pattern, re.DOTALL)

    def look(data: bytes, start: int, end: int) -> tuple[int, int] | None:
        if not before:
            found = compiled.match(data, start)
        else:
            found = compiled.search(data, max(0, start - before), end + MAX_SECRET_BYTES)
        if found is None or not found.start() <= start < found.end():
            return None
        return found.span("secret") if "secret" in compiled.groupindex else found.span()

    return Shape(name, (stem,), look)


MAX_SECRET_BYTES: Final = 16 << 10
"""A longer one is taken out this far."""


def _bearer(data: bytes, start: int, end: int) -> tuple[int, int] | None:
    found = _BEARER.match(data, start)
    return found.span(1) if found and is_credential(found[1]) else None


def _basic(data: bytes, start: int, end: int) -> tuple[int, int] | None:
    found = _BASIC.match(data, start)
    if found is None:
        return None
    try:
        return found.span(1) if b":" in base64.b64decode(found[1], validate=True) else None
    except binascii.Error:
        return None


def _userinfo(data: bytes, start: int, end: int) -> tuple[int, int] | None:
    found = _USERINFO.match(data, start)
    if found is None:
        return None
    if found[2] is not None:
        return found.span(2)
    return found.span(1) if is_credential(found[1]) and len(found[1]) >= 20 else None


def stemless(data: bytes) -> Iterator[Span]:
    """Find what begins like many words, and so has no stem: keys of Twilio, tokens of Discord."""
    for found in _DISCORD.finditer(data):
        before = data[max(0, found.start() - 40) : found.start()]
        number = _NUMBER.search(before)
        if number:
            yield found.start() - len(number[0]), found.end(), "discord"
    for twilio in _TWILIO:
        for found in twilio.finditer(data):
            if _AT_EDGE.match(data, found.start()):
                yield found.start(), found.end(), "twilio"


_BEARER: Final = re.compile(rb"(?i:bearer)(?: +|%20|\+)([A-Za-z0-9._~+/=-]{8,})")
_BASIC: Final = re.compile(rb"(?i:basic)(?: +|%20|\+)([A-Za-z0-9+/]{8,}={0,2})(?![A-Za-z0-9+/=])")
_USERINFO: Final = re.compile(rb"://([^\s/?#@\"'\\:<>]{0,256})(?::([^\s/?#@\"'\\<>]{1,1024}))?@")
_DISCORD: Final = re.compile(rb"\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}")
_TWILIO: Final = (
    re.compile(rb"S(?=K)K[0-9a-f]{32}(?![A-Za-z0-9])"),
    re.compile(rb"A(?=C)C[0-9a-f]{32}(?![A-Za-z0-9])"),
)
"""The look ahead leaves one letter to begin with: that is found ten times as fast as two."""
_NUMBER: Final = re.compile(EDGE + rb"[MNO][A-Za-z0-9_-]{22,27}\Z")
"""A number of 17 digits or more in base64."""
_AT_EDGE: Final = re.compile(EDGE)
_WORDS: Final = rb"[A-Za-z0-9_-]"
_LONG: Final = rb"[A-Za-z0-9]"

SHAPES: Final[tuple[Shape, ...]] = (
    *_key("anthropic", _WORDS + rb"{16,}", b"sk-ant-"),
    *_key("openai", rb"(?!ecdsa-|ssh-)" + _WORDS + rb"{16,}", b"sk-"),  # names of SSH keys
    *_key("google", _WORDS + rb"{30,}", b"AIza"),
    *_key("google_client", _WORDS + rb"{20,}", b"GOCSPX-"),
    *_key("google_oauth", rb"[A-Za-z0-9_.-]{16,}", b"ya29."),
    *_key("aws", rb"[A-Z0-9]{16,}", b"AKIA", b"ASIA", b"ABIA", b"ACCA"),
    *_key("github", _LONG + rb"{20,}", b"ghp_", b"gho_", b"ghu_", b"ghs_", b"ghr_"),
    *_key("github", rb"[A-Za-z0-9_]{20,}", b"github_pat_"),
    *_key(
        "gitlab", rb"[A-Za-z0-9_.-]{16,}",
        b"glpat-", b"gldt-", b"glrt-", b"glptt-", b"glagent-", b"gloas-", b"glcbt-", b"glsoat-",
    ),
    *_key(
        "slack", rb"[A-Za-z0-9-]{10,}",
        b"xoxb-", b"xoxp-", b"xoxa-", b"xoxr-", b"xoxs-", b"xoxo-", b"xoxc-", b"xoxd-", b"xapp-",
        b"xoxe-", b"xoxe.",
    ),
    *_key(
        "stripe", _LONG + rb"{16,}",
        b"sk_live_", b"sk_test_", b"rk_live_", b"rk_test_", b"whsec_",
    ),
    *_key("clerk_or_elevenlabs", rb"[0-9a-f]{32,}", b"sk_"),
    *_key("mailgun", rb"[0-9a-f]{32}", b"key-"),
    *_key("npm", _LONG + rb"{30,}", b"npm_"),
    *_key("pypi", _WORDS + rb"{32,}", b"pypi-"),
    *_key("rubygems", rb"[0-9a-f]{40,}", b"rubygems_"),
    *_key("hugging_face", _LONG + rb"{20,}", b"hf_", b"api_org_"),
    *_key("groq", _LONG + rb"{20,}", b"gsk_"),
    *_key("xai", _WORDS + rb"{20,}", b"xai-"),
    *_key("replicate", _LONG + rb"{20,}", b"r8_"),
    *_key("perplexity", _LONG + rb"{20,}", b"pplx-"),
    *_key("fireworks", _LONG + rb"{20,}", b"fw_"),
    *_key("tavily", _WORDS + rb"{20,}", b"tvly-"),
    *_key("e2b", rb"[0-9a-f]{32,}", b"e2b_"),
    *_key("langsmith", rb"[A-Za-z0-9_]{30,}", b"lsv2_"),
    *_key("pinecone", rb"[A-Za-z0-9_]{30,}", b"pcsk_"),
    *_key("cloudflare", _LONG + rb"{40,}", b"cfk_", b"cfut_", b"cfat_"),
    *_key("cloudflare", rb"[0-9a-f]{24}-[0-9a-f]{100,}", b"v1.0-"),
    *_key("digitalocean", rb"[0-9a-f]{40,}", b"dop_v1_", b"doo_v1_", b"dor_v1_"),
    *_key("databricks", rb"[0-9a-f]{32}(?:-[0-9])?", b"dapi"),
    *_key("supabase", rb"[A-Za-z0-9_-]{20,}", b"sbp_", b"sb_secret_"),
    *_key("planetscale", rb"[A-Za-z0-9_.=-]{30,}", b"pscale_tkn_", b"pscale_pw_", b"pscale_oauth_"),
    *_key("netlify", _LONG + rb"{30,}", b"nfp_"),
    *_key("linear", _LONG + rb"{20,}", b"lin_api_", b"lin_oauth_"),
    *_key("notion", _LONG + rb"{30,}", b"ntn_"),
    *_key("notion", _LONG + rb"{40,}", b"secret_"),
    *_key("shopify", rb"[0-9a-fA-F]{32}", b"shpat_", b"shpca_", b"shppa_", b"shpss_"),
    *_key("square", _WORDS + rb"{20,}", b"sq0atp-", b"sq0csp-"),
    *_key("square", _WORDS + rb"{56,}", b"EAAA"),
    *_key("atlassian", rb"[A-Za-z0-9_=-]{40,}", b"ATATT3"),
    *_key("figma", _WORDS + rb"{30,}", b"figd_"),
    *_key("new_relic", rb"[A-Z0-9]{20,}", b"NRAK-"),
    *_key("sentry", rb"[A-Za-z0-9_=+/-]{20,}", b"sntrys_", b"sntryu_"),
    *_key("postman", rb"[A-Za-z0-9-]{30,}", b"PMAK-"),
    *_key("grafana", rb"[A-Za-z0-9_]{30,}", b"glsa_"),
    *_key("grafana", rb"[A-Za-z0-9+/=]{30,}", b"glc_"),
    *_key("age", rb"[A-Z0-9]{50,}", b"AGE-SECRET-KEY-1"),
    *_key("sendgrid", _WORDS + rb"{16,}\." + _WORDS + rb"{16,}", b"SG."),
    *_key("dropbox", rb"[A-Za-z0-9_.-]{60,}", b"sl."),
    *_key("vault", rb"[A-Za-z0-9_-]{20,}", b"hvs.", b"hvb."),
    *_key("doppler", _LONG + rb"{30,}", b"dp.pt.", b"dp.st.", b"dp.ct.", b"dp.sa."),
    *_key("jwt", rb"[\w-]{6,}\.[\w-]{4,}\.[\w-]*(?:\.[\w-]+){0,2}", b"eyJ"),
    _pattern(
        "terraform", b".atlasv1.", EDGE + rb"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{40,}", 14
    ),
    _pattern("telegram", b":aa", EDGE + rb"[0-9]{8,10}:AA[A-Za-z0-9_-]{30,}" + _END, 10),
    _pattern(
        "private_key", b"-----begin",
        rb"-----BEGIN(?:[ +]|%20)(?:[A-Z0-9]+(?:[ +]|%20))*PRIVATE(?:[ +]|%20)KEY[A-Z +]*-----"
        rb".{0,16384}?(?:-----END[A-Z0-9 +%]*-----|(?=\")|\Z)",
    ),
    _pattern(
        "webhook", b"hooks.slack.com/",
        rb"(?i:hooks\.slack\.com/)(?:services|workflows|triggers)/"
        rb"(?P<secret>[A-Za-z0-9_+/-]{20,})",
    ),
    _pattern(
        "webhook", b"/api/webhooks/", rb"/api/webhooks/[0-9]{15,}/(?P<secret>[A-Za-z0-9_-]{50,})"
    ),
    Shape("bearer", (b"bearer ", b"bearer%20", b"bearer+"), _bearer),
    Shape("basic", (b"basic ", b"basic%20", b"basic+"), _basic),
    Shape("userinfo", (b"://",), _userinfo),
)  # fmt: skip
