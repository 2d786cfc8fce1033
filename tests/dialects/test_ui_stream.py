"""Chunks build parts, and parts are encoded as the chunks that build them."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.addons.replay_overlap.clients import Chunk as Plain
from tests.addons.replay_overlap.clients import SdkStream, observe
from tests.addons.replay_overlap.documents import dumps, loads
from tests.addons.replay_overlap.scenes import many, paired
from tests.addons.replay_overlap.streams import Piece, segments, whole

from midstream.core import raw
from midstream.dialects import ui_stream
from midstream.dialects.ui_stream import Chunk, Fold, Part


def chunk_of(plain: Plain) -> Chunk:
    return raw.members(dumps(plain))


def fold_of(chunks: list[Plain], base: list[Any] | None = None) -> Fold:
    fold = Fold([ui_stream.read_part(dumps(part)) for part in base or []])
    for chunk in chunks:
        fold.apply(chunk_of(chunk))
    return fold


def plain(parts: list[Part]) -> list[Any]:
    found = [loads(part.json()) for part in parts]
    return [{**p, "text": paired(p["text"])} if "text" in p else p for p in found]


def reduced(chunks: list[Plain]) -> list[Any]:
    sdk = SdkStream({"id": "", "role": "assistant", "parts": []})
    for chunk in chunks:
        sdk.apply(chunk)
    return [{**p, "text": paired(p["text"])} if "text" in p else p for p in sdk.parts]


@many(0.25)
@given(segments)
def test_the_fold_makes_what_the_ai_sdk_makes(drawn: list[Piece]) -> None:
    chunks = whole(drawn)
    fold = fold_of(chunks)
    assert fold.exact
    assert plain(fold.parts) == reduced(chunks)


@many(0.25)
@given(segments)
def test_the_chunks_of_expressible_parts_build_them_again(drawn: list[Piece]) -> None:
    parts = fold_of(whole(drawn)[1:]).parts
    assert ui_stream.is_expressible(parts)
    chunks = [loads(raw.document(chunk)) for chunk in ui_stream.encode(parts)]
    sdk = SdkStream({"id": "", "role": "assistant", "parts": []})
    seen: list[Any] = []
    for chunk in chunks:
        sdk.apply(chunk)
        observe(seen, chunk)
    assert [{**p, "text": paired(p["text"])} if "text" in p else p for p in sdk.parts] == plain(
        parts
    )
    assert [{**p, "text": paired(p["text"])} if "text" in p else p for p in seen] == plain(parts)
    assert sdk.fired == []


@many(0.25)
@given(segments, st.integers(0, 30))
def test_joining_deltas_changes_no_part_and_no_length(drawn: list[Piece], at: int) -> None:
    chunks = [chunk_of(chunk) for chunk in whole(drawn)]
    joined: list[Chunk] = []
    for chunk in chunks:
        both = ui_stream.joined(joined[-1], chunk) if joined else None
        joined[-1:] = [both] if both is not None else [*joined[-1:], chunk]
    one, other = Fold(), Fold()
    for chunk in chunks:
        one.apply(chunk)
    for chunk in joined:
        other.apply(chunk)
    assert one.parts == other.parts
    assert sum(map(ui_stream.length, chunks)) == sum(map(ui_stream.length, joined))


@pytest.mark.parametrize("kind", ["text", "reasoning"])
def test_deltas_of_one_part_are_joined_and_nothing_else(kind: str) -> None:
    one = chunk_of({"type": f"{kind}-delta", "id": "t", "delta": "a\n"})
    other = chunk_of({"type": f"{kind}-delta", "id": "t", "delta": "é"})
    both = ui_stream.joined(one, other)
    assert both is not None
    assert raw.text_of(both["delta"]) == "a\né"
    signed = {**other, "providerMetadata": b"{}"}
    strange = {**other, "delta": b"7"}
    for not_joined in (
        {**other, "id": b'"u"'}, {**other, "type": b'"text-end"'}, signed, strange,
        chunk_of({"type": "tool-input-delta", "toolCallId": "t", "inputTextDelta": "{"}),
    ):  # fmt: skip
        assert ui_stream.joined(one, not_joined) is None
        assert ui_stream.joined(not_joined, one) is None


def test_inputs_of_one_tool_are_joined() -> None:
    one = chunk_of({"type": "tool-input-delta", "toolCallId": "c", "inputTextDelta": '{"a'})
    other = chunk_of({"type": "tool-input-delta", "toolCallId": "c", "inputTextDelta": '":1}'})
    both = ui_stream.joined(one, other)
    assert both is not None
    assert raw.text_of(both["inputTextDelta"]) == '{"a":1}'
    assert ui_stream.joined(one, {**other, "toolCallId": b'"d"'}) is None


def test_a_delta_can_be_cut_in_front() -> None:
    delta = chunk_of({"type": "text-delta", "id": "t", "delta": "abc"})
    assert raw.text_of(ui_stream.without_head(delta, 2)["delta"]) == "c"
    start = chunk_of({"type": "text-start", "id": "t"})
    assert ui_stream.without_head(start, 1) == start
    assert ui_stream.length(start) == 1
    assert ui_stream.length(delta) == 3


@pytest.mark.parametrize(
    "part",
    [
        {"type": "never-seen"},
        {"type": "text", "text": "a", "state": "done", "extra": 1},
        {"type": "step-start", "extra": 1},
        {"type": "file", "url": "x", "mediaType": "y", "extra": 1},
        {"type": "data-x", "data": 1, "extra": 1},
        {"type": "tool-x", "toolCallId": "c", "state": "input-available", "input": {}},
        {"type": "tool-x", "toolCallId": "c", "state": "input-streaming"},
        {"type": "tool-x", "toolCallId": "c", "state": "approval-responded", "input": {}},
        {"type": "tool-x", "toolCallId": "c", "state": "output-available", "output": 1},
        {"type": "tool-x", "toolCallId": "c", "state": "output-available", "input": {},
         "output": 1, "preliminary": True},
        {"type": "tool-x", "toolCallId": "c", "state": "output-available", "input": {},
         "output": 1, "callProviderMetadata": {}},
    ],
)  # fmt: skip
def test_a_part_that_no_chunk_can_build_exactly_is_not_expressible(part: dict[str, Any]) -> None:
    assert not ui_stream.is_expressible([ui_stream.read_part(dumps(part))])


@pytest.mark.parametrize(
    "part",
    [
        {"type": "tool-x", "toolCallId": "c", "state": "output-error", "input": {},
         "errorText": "no"},
        {"type": "dynamic-tool", "toolName": "x", "toolCallId": "c", "state": "output-available",
         "input": {"a": 1}, "output": [1], "providerExecuted": True, "title": "T"},
        {"type": "source-document", "sourceId": "s", "mediaType": "m", "title": "t"},
        {"type": "text", "text": "open", "state": "streaming"},
    ],
)  # fmt: skip
def test_a_part_built_of_its_chunks_is_the_same(part: dict[str, Any]) -> None:
    read = ui_stream.read_part(dumps(part))
    assert ui_stream.is_expressible([read])
    fold = Fold()
    inputs = []
    for chunk in ui_stream.encode([read]):
        fold.apply(chunk)
        inputs += [loads(chunk["input"])] if "input" in chunk else []
    assert fold.exact
    assert plain(fold.parts) == [{k: v for k, v in part.items() if k != "input"}]
    assert inputs == [part[k] for k in ("input",) if k in part]


def test_a_tool_with_an_outcome_never_passes_through_input_available() -> None:
    part = ui_stream.read_part(
        b'{"type":"tool-x","toolCallId":"c","state":"output-available","input":{},"output":1}'
    )
    kinds = [ui_stream.chunk_type(chunk) for chunk in ui_stream.encode([part])]
    assert kinds == ["tool-input-start", "tool-input-delta", "tool-output-available"]


@pytest.mark.parametrize("kind", ["text", "reasoning"])
def test_the_part_that_goes_on_stays_open_under_the_id_given(kind: str) -> None:
    parts = [
        ui_stream.read_part(dumps({"type": kind, "text": text, "state": state}))
        for text, state in (("a", "done"), ("b", "streaming"))
    ]
    assert ui_stream.adopted(parts, kind) == 1
    chunks = list(ui_stream.encode(parts, (kind, b'"t9"')))
    assert [raw.text_of(chunk["id"]) for chunk in chunks] == ["~b0"] * 3 + ["t9"] * 2
    assert ui_stream.adopted(parts[:1], kind) is None
    assert ui_stream.adopted([], kind) is None


def test_the_metadata_of_a_text_goes_on_its_start_and_its_end() -> None:
    part = {"type": "text", "text": "a", "state": "done", "providerMetadata": {"p": 1}}
    chunks = [loads(raw.document(c)) for c in ui_stream.encode([ui_stream.read_part(dumps(part))])]
    assert [("providerMetadata" in chunk) for chunk in chunks] == [True, False, True]


def test_an_orphan_is_the_first_delta_or_end_without_a_start() -> None:
    def orphan(*chunks: Plain) -> Any:
        return ui_stream.orphan(map(chunk_of, chunks))

    start, delta = {"type": "text-start", "id": "t"}, {"type": "text-delta", "id": "t", "delta": ""}
    assert orphan(start, delta) is None
    assert orphan(delta) == ("text", b'"t"')
    assert orphan(start, {**delta, "id": "u"}) == ("text", b'"u"')
    assert orphan({"type": "reasoning-end", "id": "t"}, start) == ("reasoning", b'"t"')
    assert orphan({"type": "text-delta"}, {"type": "file"}) is None


@pytest.mark.parametrize(
    "chunk",
    [
        {"type": "never-seen"},
        {"type": 7},
        {},
        {"type": "odd-step"},
        {"type": "text-delta", "id": "t", "delta": 7},
        {"type": "tool-output-available", "toolCallId": "c", "output": 1},
        {"type": "tool-input-start", "toolCallId": "c"},
        {"type": "tool-never-seen", "toolCallId": "c", "toolName": "x"},
    ],
)
def test_a_chunk_that_is_not_understood_leaves_the_fold_inexact(chunk: Plain) -> None:
    fold = fold_of([{"type": "text-start", "id": "t"}, chunk])
    assert not fold.exact


def test_ids_are_used_again_after_the_end() -> None:
    text = [
        {"type": "text-start", "id": "t"}, {"type": "text-delta", "id": "t", "delta": "a"},
        {"type": "text-end", "id": "t"},
    ]  # fmt: skip
    assert [part["text"] for part in plain(fold_of([*text, *text]).parts)] == ["a", "a"]


def test_a_delta_without_a_start_goes_to_the_last_part_of_its_kind() -> None:
    base = [{"type": "text", "text": "a", "state": "streaming"}]
    fold = fold_of([{"type": "text-delta", "id": "z", "delta": "b"}], base)
    assert plain(fold.parts) == [{"type": "text", "text": "ab", "state": "streaming"}]
    fold = fold_of(
        [{"type": "text-end", "id": "z"}, {"type": "text-delta", "id": "z", "delta": "b"}]
    )
    assert plain(fold.parts) == [{"type": "text", "text": "b", "state": "streaming"}]


def test_a_step_closes_open_parts_and_a_reset_takes_the_step_back() -> None:
    fold = fold_of(
        [
            {"type": "start-step"}, {"type": "text-start", "id": "t"},
            {"type": "finish-step"}, {"type": "start-step"},
            {"type": "text-start", "id": "t"}, {"type": "reset-step"},
        ]
    )  # fmt: skip
    assert [part.kind for part in fold.parts] == ["step-start", "text", "step-start"]
    assert fold.exact


def test_a_tool_goes_through_its_states_once() -> None:
    names = {"toolCallId": "c", "toolName": "x"}
    chunks: list[Plain] = [
        {"type": "tool-input-start", **names, "dynamic": True},
        {"type": "tool-input-delta", "toolCallId": "c", "inputTextDelta": "{}"},
        {"type": "tool-input-available", **names, "input": {}, "providerMetadata": {"p": 1}},
        {"type": "tool-approval-request", "toolCallId": "c", "approvalId": "ap"},
        {"type": "tool-output-available", "toolCallId": "c", "output": 1, "preliminary": True},
        {"type": "tool-output-available", "toolCallId": "c", "output": 2, "preliminary": False},
        {"type": "tool-input-start", **names},
    ]
    states = [fold_of(chunks[:n]).parts[0].state for n in range(1, len(chunks) + 1)]
    assert states == [
        "input-streaming", "input-streaming", "input-available", "approval-requested",
        "output-available", "output-available", "output-available",
    ]  # fmt: skip
    [part] = plain(fold_of(chunks).parts)
    assert part["type"] == "dynamic-tool"
    assert part["output"] == 2
    assert part["approval"] == {"id": "ap"}
    assert part["callProviderMetadata"] == {"p": 1}


def test_data_with_an_id_is_replaced_and_transient_data_is_not_kept() -> None:
    fold = fold_of(
        [
            {"type": "data-a", "id": "1", "data": 1}, {"type": "data-a", "data": 2},
            {"type": "data-a", "id": "1", "data": 3}, {"type": "data-b", "id": "1", "data": 5},
            {"type": "data-a", "data": 4, "transient": True},
        ]
    )  # fmt: skip
    assert [part.get("data") for part in plain(fold.parts)] == [3, 2, 5]


def test_metadata_is_merged_deep() -> None:
    fold = fold_of(
        [
            {"type": "start", "messageMetadata": {"a": {"b": 1, "c": 2}}},
            {"type": "message-metadata", "messageMetadata": {"a": {"c": 3}, "d": 4}},
            {"type": "finish", "messageMetadata": {"e": [1]}},
        ]
    )
    assert fold.metadata is not None
    assert json.loads(fold.metadata) == {"a": {"b": 1, "c": 3}, "d": 4, "e": [1]}
    assert ui_stream.merge(b"1", b'{"a":1}') == b'{"a":1}'
    assert ui_stream.merge(b'{"a":1}', b"null") == b"null"


@pytest.mark.parametrize("document", [b"7", b"{}", b'{"type":7}', b'{"type":"text","text":7}'])
def test_what_is_no_part_is_malformed(document: bytes) -> None:
    with pytest.raises(raw.Malformed):
        ui_stream.read_part(document)


def test_a_part_keeps_the_bytes_of_its_values() -> None:
    document = b'{"type":"tool-x","toolCallId":"c","input":{ "n" : 1e400 },"output":1.0}'
    part = ui_stream.read_part(document)
    assert part.json() == document
    copied = part.copy()
    copied.fields["output"] = b"2"
    assert part.json() == document
    assert part.size_bytes > len(document) - 60
