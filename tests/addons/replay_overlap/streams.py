"""Random streams of chunks, as a server sends them.

A stream is drawn as a few pieces out of a fixed set, and built from them outside of hypothesis: so
a case costs little, and a failing one shrinks to few pieces.
"""

from hypothesis import strategies as st
from tests.addons.replay_overlap.clients import Chunk

type Piece = tuple[object, ...]

TEXTS: tuple[tuple[str, ...], ...] = (
    (), ("ha", "ha"), ("150", "0"), (" ", "", "a b"), ("é", "日本", "🙂"), ("\ud83d", "\ude42"),
    ("\\", '"', "\n"), ("one ", "two ", "three "), ('"start"', "x"),
)  # fmt: skip
SIGNED = {"p": {"sig": "s1"}}
VALUES: tuple[object, ...] = ({}, {"v": 1}, {"v": "start"}, {"v": [1.5, None, "\\u0041"]})

pieces = st.sampled_from(
    [
        *(("text", texts, same, None) for texts in TEXTS for same in (True, False)),
        *(("reasoning", texts, same, SIGNED) for texts in TEXTS[:5] for same in (True, False)),
        ("text", ("signed",), False, SIGNED),
        ("reasoning", ("why ", "not"), False, None),
        *(("tool", value) for value in VALUES),
        ("provider_tool", {"v": 2}),
        ("file",),
        ("source",),
        *(("data", value, name) for value in VALUES[:2] for name in (None, "id", "transient")),
        ("step",),
        ("step",),
    ]
)
segments = st.lists(pieces, max_size=5)
"""What a stream says between its steps."""


def streamed(kind: str, identifier: str, texts: tuple[str, ...], signature: object) -> list[Chunk]:
    signed: Chunk = {} if signature is None else {"providerMetadata": signature}
    return [
        {"type": f"{kind}-start", "id": identifier, **signed},
        *({"type": f"{kind}-delta", "id": identifier, "delta": text} for text in texts),
        {"type": f"{kind}-end", "id": identifier, **signed},
    ]


def server_tool(call: str, value: object, **more: object) -> list[Chunk]:
    names: Chunk = {"toolCallId": call, "toolName": "clock", **more}
    return [
        {"type": "tool-input-start", **names},
        {"type": "tool-input-delta", "toolCallId": call, "inputTextDelta": "{"},
        {"type": "tool-input-delta", "toolCallId": call, "inputTextDelta": "}"},
        {"type": "tool-input-available", **names, "input": value},
        {"type": "tool-output-available", "toolCallId": call, "output": {"was": value}},
    ]


def built(drawn: list[Piece], prefix: str) -> list[Chunk]:
    """Return the chunks of some pieces."""
    chunks: list[Chunk] = []
    for index, (kind, *more) in enumerate(drawn):
        if kind in ("text", "reasoning"):
            texts, is_same, signature = more
            identifier = "t" if is_same else f"{prefix}{index}"
            chunks += streamed(str(kind), identifier, texts, signature)  # type: ignore[arg-type]
        elif kind == "tool":
            chunks += server_tool(f"{prefix}call{index}", more[0])
        elif kind == "provider_tool":
            chunks += server_tool(f"{prefix}call{index}", more[0], providerExecuted=True)
        elif kind == "file":
            chunks.append({"type": "file", "url": "data:,x", "mediaType": "text/plain"})
        elif kind == "source":
            chunks.append({"type": "source-url", "sourceId": f"{prefix}{index}", "url": "x:y"})
        elif kind == "data":
            value, name = more
            names: dict[str, Chunk] = {"id": {"id": "d"}, "transient": {"transient": True}}
            chunks.append({"type": "data-note", "data": value, **names.get(str(name), {})})
        else:
            chunks += [{"type": "finish-step"}, {"type": "start-step"}]
    return chunks


def whole(drawn: list[Piece], prefix: str = "s", **start: str) -> list[Chunk]:
    """Return a whole stream; `start` are the members of its first chunk."""
    first = {"type": "start", **start}
    last: list[Chunk] = [{"type": "finish-step"}, {"type": "finish"}]
    return [first, {"type": "start-step"}, *built(drawn, prefix), *last]
