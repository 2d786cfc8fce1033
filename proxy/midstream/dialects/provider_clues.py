"""Tells by a request body alone which API it is for, where no path says so.

Chat Completions and Messages both keep `messages`. One has results as messages of their own, the
other has them as blocks; a body with neither reads the same either way.
"""

from typing import Any, Final

import msgspec

from midstream.core import raw
from midstream.dialects.provider_json import Messages

CHAT: Final = "openai-chat"
CLAUDE: Final = "anthropic"
_CHAT_ROLES: Final = frozenset({"system", "developer", "tool", "function"})
_CLAUDE_MEMBERS: Final = frozenset({"system", "anthropic_version"})
_CLAUDE_BLOCKS: Final = frozenset({
    "tool_use", "tool_result", "thinking", "redacted_thinking", "server_tool_use",
})  # fmt: skip


class _Message(msgspec.Struct):
    role: str = ""
    content: Any = None
    tool_calls: Any = None


_MESSAGES: Final = Messages("messages", _Message)


def api_of(body: bytes) -> str | None:
    """Return the name of the API, or None where nothing or too much speaks for one."""
    try:
        members = raw.members(body)
    except raw.Malformed:
        return None
    if "input" in members:
        return "openai-responses"
    if "contents" in members:
        return "gemini"
    messages = [message for message in _MESSAGES.read(body) or () if message is not None]
    if not messages:
        return None
    is_chat = any(message.role in _CHAT_ROLES or message.tool_calls for message in messages)
    is_claude = not _CLAUDE_MEMBERS.isdisjoint(members) or any(map(_has_blocks, messages))
    if is_chat and is_claude:
        return None
    return CLAUDE if is_claude else CHAT


def _has_blocks(message: _Message) -> bool:
    blocks = message.content if isinstance(message.content, list) else ()
    return any(isinstance(block, dict) and block.get("type") in _CLAUDE_BLOCKS for block in blocks)
