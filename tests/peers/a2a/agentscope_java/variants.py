"""What the server in `server/` can be asked for, and what a page must end up showing."""

FULL = "Hi Mira, which region should I query?"
CHINESE = "👋 你好 米拉。请先告诉我要查询哪个区域"
THOUGHT = "The user is looking for a region. Hi Mira, which region?"
TOOL = "Let me look. There are two: north and south."

CUT = "你好?? 米拉。哪个区域"
"""AgentScope writes each half of a cut surrogate pair as `?`; so it must arrive, too."""

CUT_THEN_WHOLE = CUT + "你好👋 米拉。哪个区域"
"""No repeat of what was sent, character for character; likeness is no proof, so both stay."""

VARIANTS = {
    "constant_id": FULL,
    "constant_id_message": FULL,
    "last_chunk_without_id": FULL,
    "last_chunk_without_id_message": FULL,
    "no_ids": FULL,
    "no_ids_message": FULL,
    "ollama": FULL,
    "ollama_message": FULL,
    "snapshots": FULL,
    "snapshots_message": FULL,
    "chinese_ollama_message": CHINESE,
    "chinese_snapshots": CHINESE,
    "cut_emoji": CUT,
    "cut_emoji_ollama": CUT_THEN_WHOLE,
    "thinking_ollama": THOUGHT,
    "react_message": TOOL,
    "react_ollama_message": TOOL,
    "react_snapshots_message": TOOL,
    "react_inner_message": TOOL,
}
"""Paths of the server; `server/src/main/java/peer/Variant.java` says what they are."""

CLEAN = {"constant_id", "no_ids", "cut_emoji", "cut_emoji_ollama"}
"""Nothing to mend: these must pass byte for byte."""
