"""Models of the chat clients: what a page does with the frames it gets.

Own models of observed behaviour. A page resumes in one of these ways when it takes an offer:
- `r1`: the AI SDK goes on with the last message of the list, as it was when it asked.
- `r2`: the AI SDK goes on with the last message of the list, as it is when the offer is taken; that
  of a tool's continuation as it was when the tool was answered.
- `r3`: the AI SDK begins with an empty message; a `start` that names a message replaces that one.
- `r4`: as r3, and the message is found by its id anywhere in the list.
- `observer`: the chat hook folds the frames itself, into the last assistant message if they say
  `continuation`; a page of the other kinds does so, too, where it has not asked.
"""

import contextlib
from typing import Any

from tests.addons.replay_overlap.documents import clone, dumps, loads

type Chunk = dict[str, Any]
type Part = dict[str, Any]
type Message = dict[str, Any]
type Fields = dict[str, Any]

KINDS = ("r2", "r3", "r4", "observer")


class StreamError(Exception):
    """What the AI SDK raises on a chunk whose part it does not know."""


class SdkStream:
    """One message being streamed, as `processUIMessageStream` builds it."""

    def __init__(self, seed: Message) -> None:
        self.message = clone(seed)
        self.open: dict[tuple[str, str], Part] = {}
        self.inputs: dict[str, str] = {}
        self.fired: list[str] = []
        self.is_written = False

    @property
    def parts(self) -> list[Part]:
        return self.message["parts"]  # type: ignore[no-any-return]

    def tool(self, call: str) -> Part | None:
        return next((p for p in self.parts if p.get("toolCallId") == call), None)

    def apply(self, chunk: Chunk) -> bool:
        """Apply a chunk; tell whether the message is written to the list now."""
        kind = chunk["type"]
        stem, _, step = kind.rpartition("-")
        if stem in ("text", "reasoning"):
            return self._stream(stem, step, chunk)
        if kind.startswith("tool-"):
            return self._tool(kind, chunk)
        if kind in ("start-step", "finish-step"):
            if kind == "start-step":
                self.parts.append({"type": "step-start"})
            else:
                self.open.clear()
            return False
        if kind == "start":
            if "messageId" in chunk:
                self.message["id"] = chunk["messageId"]
            return "messageId" in chunk
        if kind in ("file", "source-url"):
            self.parts.append(dict(chunk))
            return True
        if kind.startswith("data-"):
            return put_data(self.parts, chunk)
        return False

    def _stream(self, stem: str, step: str, chunk: Chunk) -> bool:
        key = (stem, chunk["id"])
        if step == "start":
            part = {"type": stem, "text": "", "state": "streaming", **metadata(chunk)}
            self.open[key] = part
            self.parts.append(part)
            return True
        if key not in self.open:
            raise StreamError(f"{chunk['type']} for a part never started: {chunk['id']}")
        part = self.open[key]
        part.update(metadata(chunk))
        if step == "delta":
            part["text"] += chunk["delta"]
        else:
            part["state"] = "done"
            del self.open[key]
        return True

    def _tool(self, kind: str, chunk: Chunk) -> bool:
        call = chunk["toolCallId"]
        part = self.tool(call)
        if kind in ("tool-input-start", "tool-input-available") and part is None:
            part = {"type": f"tool-{chunk['toolName']}", "toolCallId": call}
            self.parts.append(part)
        if part is None:
            raise StreamError(f"{kind} for an unknown tool {call}")
        if chunk.get("providerExecuted"):
            part["providerExecuted"] = True
        if kind == "tool-input-start":
            self.inputs[call] = ""
            part.pop("output", None)
            part["state"] = "input-streaming"
        elif kind == "tool-input-delta":
            return self._input(call, part, chunk)
        elif kind == "tool-input-available":
            if not chunk.get("providerExecuted"):
                self.fired.append(call)
            part.pop("output", None)
            part.update(state="input-available", input=chunk["input"])
        elif kind == "tool-output-error":
            part.update(state="output-error", errorText=chunk["errorText"])
        else:
            part.update(state="output-available", output=chunk["output"])
        return True

    def _input(self, call: str, part: Part, chunk: Chunk) -> bool:
        if call not in self.inputs:
            raise StreamError(f"input of a tool that never started: {call}")
        self.inputs[call] += chunk["inputTextDelta"]
        with contextlib.suppress(ValueError):  # not whole yet
            part["input"] = loads(self.inputs[call])
        return True


def metadata(chunk: Chunk) -> Part:
    return {k: chunk[k] for k in ("providerMetadata",) if k in chunk}


def put_data(parts: list[Part], chunk: Chunk) -> bool:
    if chunk.get("transient"):
        return False
    fields = {k: v for k, v in chunk.items() if k in ("type", "id", "data")}
    for part in parts:
        if "id" in fields and part["type"] == fields["type"] and part.get("id") == fields["id"]:
            part["data"] = fields["data"]
            return True
    parts.append(fields)
    return True


def observe(parts: list[Part], chunk: Chunk) -> None:
    """Apply a chunk as the hook's own observer does: first write of a tool wins, deltas go last."""
    kind = chunk["type"]
    stem, _, step = kind.rpartition("-")
    if stem in ("text", "reasoning"):
        _observe_text(parts, stem, step, chunk)
    elif kind.startswith("tool-"):
        _observe_tool(parts, kind, chunk)
    elif kind == "start-step":
        parts.append({"type": "step-start"})
    elif kind in ("file", "source-url"):
        parts.append(dict(chunk))
    elif kind.startswith("data-"):
        put_data(parts, chunk)


def _observe_text(parts: list[Part], stem: str, step: str, chunk: Chunk) -> None:
    last = next((p for p in reversed(parts) if p["type"] == stem), None)
    if step == "start":
        parts.append({"type": stem, "text": "", "state": "streaming", **metadata(chunk)})
    elif step == "delta" and last is None:
        parts.append({"type": stem, "text": chunk["delta"], "state": "streaming"})
    elif last is not None:
        last.update(metadata(chunk))
        last["text"] += chunk.get("delta", "")
        last["state"] = "done" if step == "end" else last["state"]


def _observe_tool(parts: list[Part], kind: str, chunk: Chunk) -> None:
    tool = next((p for p in parts if p.get("toolCallId", 0) == chunk.get("toolCallId")), None)
    if kind in ("tool-input-start", "tool-input-available") and tool is None:
        state = "input-streaming" if kind == "tool-input-start" else "input-available"
        part = {"type": f"tool-{chunk['toolName']}", "toolCallId": chunk["toolCallId"]}
        part |= {"state": state} | ({"input": chunk["input"]} if "input" in chunk else {})
        part |= {"providerExecuted": True} if chunk.get("providerExecuted") else {}
        parts.append(part)
    elif kind in ("tool-input-delta", "tool-input-available") and tool is not None:
        if tool["state"] == "input-streaming" and "input" in chunk:
            tool["input"] = chunk["input"]
            if kind == "tool-input-available":
                tool["state"] = "input-available"
    elif kind == "tool-output-available" and tool is not None:
        tool.update(state="output-available", output=chunk["output"])
    elif kind == "tool-output-error" and tool is not None:
        tool.update(state="output-error", errorText=chunk["errorText"])


class Observation:
    """The message the hook's observer is folding."""

    def __init__(self, identifier: str, parts: list[Part], continues: bool) -> None:
        self.id = identifier
        self.parts = clone(parts)
        self.continues = continues


class Ledger:
    """What a client of agents 0.32 keeps: the highest `seq` applied of each stream.

    It skips replayed chunks of a continuation up to there, but for the start of a part still open.
    """

    def __init__(self) -> None:
        self.highest: dict[str, int] = {}
        self.open: set[str] = set()

    def takes(self, frame: Fields, chunk: Chunk | None) -> bool:
        seq = frame.get("seq")
        if chunk is None or seq is None:
            return True
        kind, _, step = chunk["type"].rpartition("-")
        name = f"{kind}{chunk.get('id', '')}"
        is_known = seq <= self.highest.get(frame["id"], -1)
        if is_known and frame.get("replay") and frame.get("continuation"):
            return step == "start" and name in self.open
        self.highest[frame["id"]] = max(seq, self.highest.get(frame["id"], -1))
        if step == "start":
            self.open.add(name)
        elif step == "end":
            self.open.discard(name)
        return True


class Page:
    """A page with its messages. Frames in through `take`; what it sends goes to `self.sent`.

    A page that does not resume takes no offer. One that shields keeps its own copy of an assistant
    message it has seen streaming when a list of messages arrives. One with a ledger is of 0.32.
    """

    def __init__(
        self,
        kind: str,
        messages: list[Message],
        *,
        resumes: bool = True,
        shields: bool = False,
        has_ledger: bool = False,
    ) -> None:
        self.kind = kind
        self.messages: list[Message] = clone(messages)
        self.resumes, self.shields = resumes, shields
        self.ledger = Ledger() if has_ledger else None
        self.sent: list[Fields] = []
        self.errors: list[str] = []
        self.fired: list[str] = []
        self.outcomes: set[str] = set()
        self.shielded = ""
        self.awaits = False
        self.seed: Message | None = None
        self.early: Message | None = None
        self.own: dict[str, SdkStream] = {}
        self.observed: dict[str, Observation] = {}
        self.acked: set[str] = set()
        self.acks = 0

    # --- what the page does ---------------------------------------------------------------------

    def connect(self) -> None:
        """Open a socket: whatever streamed on the old one is over."""
        self.own.clear()
        self.observed.clear()
        self.acked.clear()
        self.ask()

    def ask(self) -> None:
        if self.resumes and self.kind != "observer":
            self.awaits = True
            self.acked.clear()
            self.seed = clone(self._last_assistant())
            self.sent.append({"type": "cf_agent_stream_resume_request"})

    def answer_tool(self, call: str, output: object) -> None:
        for part in (part for message in self.messages for part in message["parts"]):
            if part.get("toolCallId") == call:
                part.update(state="output-available", output=output)
        names = {"toolCallId": call, "toolName": "place", "output": output, "autoContinue": True}
        self.sent.append({"type": "cf_agent_tool_result", **names})
        self.ask()
        self.early = self.seed

    def say(self, identifier: str, text: str, stream: str, *, regenerates: bool = False) -> None:
        """Send a turn: a message, or the wish for another answer to the last one."""
        if regenerates:
            self.messages.pop()
        else:
            parts = [{"type": "text", "text": text}]
            self.messages.append({"id": identifier, "role": "user", "parts": parts})
        trigger = "regenerate-message" if regenerates else "submit-message"
        body = dumps({"messages": self.messages, "trigger": trigger}).decode()
        init = {"method": "POST", "body": body}
        self.sent.append({"type": "cf_agent_use_chat_request", "id": stream, "init": init})
        self.own[stream] = SdkStream({"id": f"made-{stream}", "role": "assistant", "parts": []})

    def clear(self) -> None:
        self.messages = []
        self.own.clear()
        self.observed.clear()
        self.sent.append({"type": "cf_agent_chat_clear"})

    def stop(self, stream: str) -> None:
        self.sent.append({"type": "cf_agent_chat_request_cancel", "id": stream})

    # --- what the page gets ---------------------------------------------------------------------

    def take(self, frame: Fields) -> None:
        kind = frame.get("type")
        if kind == "cf_agent_chat_messages":
            self._list(frame["messages"])
        elif kind == "cf_agent_message_updated":
            self._update(frame["message"])
        elif kind == "cf_agent_chat_clear":
            self.messages = []
            self.own.clear()
            self.observed.clear()
        elif kind == "cf_agent_stream_resume_none":
            self.awaits, self.early = False, None
        elif kind == "cf_agent_stream_resuming":
            self._offered(frame["id"])
        elif kind == "cf_agent_use_chat_response":
            self._respond(frame)

    def _last_assistant(self) -> Message | None:
        return next((m for m in reversed(self.messages) if m["role"] == "assistant"), None)

    def _list(self, messages: list[Message]) -> None:
        mine = next((m for m in self.messages if m["id"] == self.shielded), None)
        self.messages = clone(messages)
        for index, message in enumerate(self.messages):
            if mine is not None and message["id"] == self.shielded:
                self.messages[index] = mine

    def _update(self, message: Message) -> None:
        for index, known in enumerate(self.messages):
            if known["id"] == message["id"]:
                self.messages[index] = clone(message)
                return

    def _offered(self, stream: str) -> None:
        if not self.resumes or stream in self.acked:
            return
        self.acked.add(stream)
        self.acks += 1
        self.own.pop(stream, None)
        if self.awaits:
            self.awaits = False
            last = self.messages[-1] if self.messages else None
            if last is not None and last["role"] != "assistant":
                last = None
            seed = {"r1": self.seed, "r2": self.early or last}.get(self.kind)
            self.early = None
            empty: Message = {"id": f"made-{stream}", "role": "assistant", "parts": []}
            self.own[stream] = SdkStream(seed or empty)
        self.sent.append({"type": "cf_agent_stream_resume_ack", "id": stream})

    def _respond(self, frame: Fields) -> None:
        stream = frame["id"]
        chunk = loads(frame["body"]) if frame["body"] and not frame.get("error") else None
        if self.ledger is not None and not self.ledger.takes(frame, chunk):
            return
        self._shield(frame, chunk)
        if stream in self.own:
            self._stream(stream, chunk)
            if frame.get("done") and self.own[stream].is_written:
                self._write(self.own[stream])  # a throttled write comes late
        else:
            self._observe(stream, chunk, frame)
        if frame.get("done"):
            self.own.pop(stream, None)
            self.observed.pop(stream, None)
        if chunk is not None and chunk["type"].startswith("tool-output"):
            self.outcomes.add(chunk["toolCallId"])

    def _shield(self, frame: Fields, chunk: Chunk | None) -> None:
        if chunk is None or chunk["type"] != "start" or frame.get("continuation"):
            return
        if "messageId" not in chunk:
            return
        if self.shields:
            self.shielded = chunk["messageId"]
        last = self.messages[-1] if self.messages else None
        if frame.get("replay") and last is not None and last["id"] == chunk["messageId"]:
            last["parts"] = []  # the hook empties what a replay is about to build

    def _stream(self, stream: str, chunk: Chunk | None) -> None:
        if chunk is None:
            return
        sdk = self.own[stream]
        try:
            writes = sdk.apply(chunk)
        except StreamError as error:
            self.errors.append(str(error))
            return
        for call in sdk.fired:
            if call in self.outcomes:
                self.errors.append(f"a finished tool runs again: {call}")
        self.fired += sdk.fired
        sdk.fired.clear()
        if writes:
            self._write(sdk)

    def _write(self, sdk: SdkStream) -> None:
        sdk.is_written = True
        message = clone(sdk.message)
        where = range(len(self.messages)) if self.kind == "r4" else range(-1, 0)
        for index in where:
            if self.messages and self.messages[index]["id"] == message["id"]:
                self.messages[index] = message
                return
        self.messages.append(message)

    def _observe(self, stream: str, chunk: Chunk | None, frame: Fields) -> None:
        replayed, continues = bool(frame.get("replay")), bool(frame.get("continuation"))
        is_start = chunk is not None and chunk["type"] == "start"
        if stream not in self.observed or (replayed and is_start):
            if chunk is None:
                return
            seen = Observation(f"made-{stream}", [], continues)
            last = self._last_assistant()
            if continues and last is not None:
                seen = Observation(last["id"], last["parts"], continues)
            self.observed[stream] = seen
        seen = self.observed[stream]
        if chunk is not None and is_start and "messageId" in chunk and not seen.continues:
            seen.id = chunk["messageId"]
        elif chunk is not None and not is_start:
            observe(seen.parts, chunk)
        if not replayed or chunk is None:
            self._merge(seen)

    def _merge(self, seen: Observation) -> None:
        if not seen.parts:
            return
        parts = clone(seen.parts)
        for index, known in enumerate(self.messages):
            if known["id"] == seen.id:
                self.messages[index] = {**known, "parts": parts}
                return
        self.messages.append({"id": seen.id, "role": "assistant", "parts": parts})
