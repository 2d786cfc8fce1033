"""Leaves message text out of a capture, and keeps its structure.

- Text is what stands under a name for prose (`text`, `delta`, `content`, `arguments`, ...) or below
  such a name, and every string that is more than one word. JSON inside a string is gone into.
- Ids, types, roles, states and names stay, as does what is one word under any other name.
- With `hash`, equal texts stay equal; with `none`, only their length is told. Such a capture shows
  what happened and when; a replay of it need not come to the same verdicts.
"""

import re
from collections.abc import Callable
from typing import Final, Literal

import msgspec

from midstream.adapters.capture_msgpack import is_container, with_strings
from midstream.adapters.capture_splice import Splices
from midstream.core.errors import EditError
from midstream.core.json_scan import ARRAY, OBJECT, STRING, Value
from midstream.core.raw import text_of

MAX_DEPTH: Final = 64
PROSE: Final = frozenset({
    "answer", "args", "argsdelta", "argstextdelta", "arguments", "caption", "completion",
    "content", "data", "delta", "description", "error", "errormessage", "errortext", "html",
    "input", "inputtext", "inputtextdelta", "instructions", "markdown", "output", "outputtext",
    "parameters", "partialjson", "prompt", "query", "question", "quote", "rawinput", "reasoning",
    "reasoningcontent", "refusal", "snippet", "subject", "suggestion", "summary", "system", "text",
    "thinking", "thought", "title", "transcript", "value",
})  # fmt: skip
"""Names of text, in lower case and without `_`."""
STRUCTURE: Final = frozenset({
    "action", "api", "code", "encryptedcontent", "event", "finishreason", "format", "jsonrpc",
    "kind", "level", "mediatype", "method", "mimetype", "mode", "model", "name", "object",
    "operation", "phase", "protocolversion", "role", "servicetier", "signature", "state", "status",
    "stopreason", "streammode", "thoughtsignature", "timestamp", "toolname", "trigger", "type",
    "version",
})  # fmt: skip
"""Names of what is no text, also below one for prose; so are those of ids (`taskId`, `call_id`)."""
_ONE_WORD: Final = re.compile(r"[\w.,:;/+=@#%?&~-]{0,256}|\[DONE\]", re.ASCII)
_IDS: Final = re.compile(r"(?:\A|_|-)ids?\Z|(?:\A|[a-z0-9_])I[dD]s?\Z")
_INSTEAD: Final = re.compile(r"hash:[0-9a-f]{12}:\d+|\[\d+ characters\]")


class _All:
    """Every key of an object."""

    def __contains__(self, _key: object) -> bool:
        return True


_EVERY_KEY: Final = _All()


class Content(msgspec.Struct, frozen=True):
    """How text is replaced. `digest` gives the keyed hash of a text, in hexadecimal."""

    mode: Literal["hash", "none"]
    digest: Callable[[str], str]

    def instead_of(self, text: str) -> str:
        """Return what stands for a text; what does so already stays."""
        if not text or _INSTEAD.fullmatch(text):
            return text
        if self.mode == "none":
            return f"[{len(text)} characters]"
        return f"hash:{self.digest(text)[:12]}:{len(text)}"


def without_text(payload: bytes, content: Content) -> bytes:
    """Return a payload without its text."""
    if not payload:
        return payload
    if is_container(payload):
        return _without_strings(payload, content)
    try:
        splices = Splices(payload)
        _walk(splices.text.root(), "", content, splices, is_prose=False, depth=0)
        return splices.result()
    except (EditError, RecursionError):
        text = payload.decode("utf-8", "surrogateescape")
        return payload if _ONE_WORD.fullmatch(text) else content.instead_of(text).encode()


def _walk(
    value: Value, key: str, content: Content, splices: Splices, *, is_prose: bool, depth: int
) -> None:
    is_prose = _is_prose(key, is_prose=is_prose)
    if value.opening not in (OBJECT, ARRAY, STRING):
        return
    if depth > MAX_DEPTH:
        splices.put(value, content.instead_of(bytes(value.raw).decode("utf-8", "replace")))
    elif value.opening == OBJECT:
        for item in value.members(_EVERY_KEY).wanted:
            name = str(item.step)
            _walk(item.value, name, content, splices, is_prose=is_prose, depth=depth + 1)
    elif value.opening == ARRAY:
        for item in value.elements().wanted:
            _walk(item.value, key, content, splices, is_prose=is_prose, depth=depth + 1)
    elif not _is_structure(key):
        _string(value, key, content, splices, is_prose=is_prose, depth=depth)


def _string(
    value: Value, key: str, content: Content, splices: Splices, *, is_prose: bool, depth: int
) -> None:
    text = text_of(bytes(value.raw))
    if text is None or text[:1] in ("{", "["):
        try:
            inner = value.inner().root()
        except EditError:
            inner = None
        if inner is not None and inner.opening in (OBJECT, ARRAY):
            _walk(inner, key, content, splices, is_prose=is_prose, depth=depth + 1)
            return
    if text is None:
        text = bytes(value.raw).decode("utf-8", "replace")
    if text and (is_prose or not _ONE_WORD.fullmatch(text)):
        splices.put(value, content.instead_of(text))


def _without_strings(payload: bytes, content: Content) -> bytes:
    def change(string: bytes, key: str) -> bytes:
        if _is_structure(key):
            return string
        if string[:1] in (b"{", b"["):
            return without_text(string, content)
        text = string.decode("utf-8", "surrogateescape")
        if _is_prose(key, is_prose=False) or not _ONE_WORD.fullmatch(text):
            return content.instead_of(text).encode()
        return string

    return with_strings(payload, change)


def _is_prose(key: str, *, is_prose: bool) -> bool:
    return is_prose or key.lower().replace("_", "") in PROSE


def _is_structure(key: str) -> bool:
    return key.lower().replace("_", "") in STRUCTURE or _IDS.search(key) is not None
