"""What providers stream and clients send, on each API, from one description.

A response is a list of outputs: `("text", "Looking.")`, `("call", "c1")`, `("reasoning", "E1")`,
`("hosted", "w1")`. A history is a list of the same, with `("user", "q")` and `("result", "c1")`.
"""

from typing import Any, ClassVar, Protocol

type Fields = dict[str, Any]
type Said = tuple[str, str]


class Talk(Protocol):
    """An API. `events` is the stream of a response; where it is cut, `cut` outputs are done."""

    api: ClassVar[str]
    path: ClassVar[str]

    @classmethod
    def request(cls, *history: Said, **more: Any) -> Fields: ...

    @classmethod
    def events(
        cls, *outputs: Said, response: str = "r", cut: int | None = None
    ) -> list[Fields]: ...

    @classmethod
    def whole(cls, *outputs: Said) -> Fields: ...


class Responses(Talk):
    api = "openai-responses"
    path = "/v1/responses"

    @staticmethod
    def item(kind: str, value: str) -> Fields:
        """Return an item as a client sends it."""
        match kind:
            case "user":
                return {"role": "user", "content": [{"type": "input_text", "text": value}]}
            case "text":
                return {"role": "assistant", "content": value}
            case "call":
                return {
                    "type": "function_call", "call_id": value, "name": "Read", "arguments": "{}",
                }  # fmt: skip
            case "result":
                return {"type": "function_call_output", "call_id": value, "output": f"of {value}"}
            case "reasoning":
                return {"type": "reasoning", "summary": [], "encrypted_content": value}
        return {"type": "web_search_call", "id": f"ws_{value}", "status": "completed"}

    @classmethod
    def request(cls, *history: Said, **more: Any) -> Fields:
        return {"model": "m", "input": [cls.item(*said) for said in history], **more}

    @classmethod
    def output(cls, kind: str, value: str) -> Fields:
        """Return an item as the provider says it."""
        item = cls.item(kind, value)
        if kind == "text":
            part = {"type": "output_text", "text": value, "annotations": []}
            item = {"type": "message", "role": "assistant", "content": [part]}
        return {"id": f"{kind}_{value}", **item}

    @classmethod
    def events(cls, *outputs: Said, response: str = "r", cut: int | None = None) -> list[Fields]:
        """Return the stream of a response; only `cut` outputs are done where it is cut."""
        head = {"id": response}
        found: list[Fields] = [{"type": "response.created", "response": head}]
        for index, said in enumerate(outputs):
            item = cls.output(*said)
            at = {"output_index": index}
            found.append({"type": "response.output_item.added", **at, "item": item})
            if cut is not None and index >= cut:
                return found
            found.append({"type": "response.output_item.done", **at, "item": item})
        done = {**head, "status": "completed", "output": []}
        return [*found, {"type": "response.completed", "response": done}]

    @classmethod
    def whole(cls, *outputs: Said) -> Fields:
        items = [cls.output(*said) for said in outputs]
        return {"id": "r", "object": "response", "status": "completed", "output": items}


class Chat(Talk):
    api = "openai-chat"
    path = "/openai/v1/chat/completions"

    @staticmethod
    def call(value: str) -> Fields:
        return {
            "id": value, "type": "function", "function": {"name": "Read", "arguments": "{}"},
        }  # fmt: skip

    @classmethod
    def request(cls, *history: Said, **more: Any) -> Fields:
        """Return a request as a client sends it that fuses what follows each other."""
        messages: list[Fields] = []
        for kind, value in history:
            last: Fields = messages[-1] if messages else {"role": ""}
            if kind == "user":
                messages.append({"role": "user", "content": value})
            elif kind == "result":
                messages.append({"role": "tool", "tool_call_id": value, "content": f"of {value}"})
            elif kind == "text":
                messages.append({"role": "assistant", "content": value})
            elif last["role"] == "assistant":
                last.setdefault("tool_calls", []).append(cls.call(value))
            else:
                call = [cls.call(value)]
                messages.append({"role": "assistant", "content": None, "tool_calls": call})
        return {"model": "m", "messages": messages, **more}

    @classmethod
    def events(cls, *outputs: Said, response: str = "r", cut: int | None = None) -> list[Fields]:
        deltas: list[Fields] = [{"role": "assistant", "content": ""}]
        calls = 0
        for kind, value in outputs[:cut]:
            if kind == "text":
                deltas += [{"content": value[:3]}, {"content": value[3:]}]
            else:
                deltas.append({"tool_calls": [{"index": calls, **cls.call(value)}]})
                calls += 1
        found = [cls._chunk(response, delta, None) for delta in deltas]
        return found if cut is not None else [*found, cls._chunk(response, {}, "stop")]

    @classmethod
    def whole(cls, *outputs: Said) -> Fields:
        texts = [value for kind, value in outputs if kind == "text"]
        calls = [cls.call(value) for kind, value in outputs if kind == "call"]
        message = {"role": "assistant", "content": "".join(texts) or None, "tool_calls": calls}
        return {"id": "r", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}

    @staticmethod
    def _chunk(response: str, delta: Fields, reason: str | None) -> Fields:
        return {"id": response, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}


class Claude(Talk):
    api = "anthropic"
    path = "/anthropic/v1/messages"

    @staticmethod
    def block(kind: str, value: str) -> Fields:
        match kind:
            case "user" | "text":
                return {"type": "text", "text": value}
            case "call":
                return {"type": "tool_use", "id": value, "name": "Read", "input": {}}
            case "result":
                return {"type": "tool_result", "tool_use_id": value, "content": f"of {value}"}
            case "reasoning":
                return {"type": "thinking", "thinking": "hm", "signature": value}
        return {"type": "server_tool_use", "id": value, "name": "web_search", "input": {}}

    @classmethod
    def request(cls, *history: Said, **more: Any) -> Fields:
        messages: list[Fields] = []
        for kind, value in history:
            role = "user" if kind in ("user", "result") else "assistant"
            if not messages or messages[-1]["role"] != role:
                messages.append({"role": role, "content": []})
            messages[-1]["content"].append(cls.block(kind, value))
        return {"model": "m", "messages": messages, **more}

    @classmethod
    def events(cls, *outputs: Said, response: str = "r", cut: int | None = None) -> list[Fields]:
        found: list[Fields] = [{"type": "message_start", "message": {"id": response}}]
        for index, (kind, value) in enumerate(outputs):
            block = cls.block(kind, value)
            deltas: list[Fields] = []
            if kind == "text":
                block = {"type": "text", "text": ""}
                deltas = [{"type": "text_delta", "text": part} for part in (value[:3], value[3:])]
            elif kind == "reasoning":
                block = {"type": "thinking", "thinking": "", "signature": ""}
                deltas = [{"type": "signature_delta", "signature": value}]
            found.append({"type": "content_block_start", "index": index, "content_block": block})
            for delta in deltas:
                found.append({"type": "content_block_delta", "index": index, "delta": delta})  # noqa: PERF401  # clearer
            if cut is not None and index >= cut:
                return found
            found.append({"type": "content_block_stop", "index": index})
        return [*found, {"type": "message_delta", "delta": {}}, {"type": "message_stop"}]

    @classmethod
    def whole(cls, *outputs: Said) -> Fields:
        blocks = [cls.block(*said) for said in outputs]
        return {"id": "r", "type": "message", "role": "assistant", "content": blocks}


class GeminiTalk(Talk):
    api = "gemini"
    path = "/v1beta/models/gemini-3:streamGenerateContent"

    @staticmethod
    def part(kind: str, value: str) -> Fields:
        match kind:
            case "user" | "text":
                return {"text": value}
            case "call":
                return {"functionCall": {"id": value, "name": "Read", "args": {}}}
            case "result":
                return {"functionResponse": {"id": value, "name": "Read", "response": {}}}
        return {"text": "hm", "thought": True, "thoughtSignature": value}

    @classmethod
    def request(cls, *history: Said, **more: Any) -> Fields:
        contents: list[Fields] = []
        for kind, value in history:
            role = "user" if kind in ("user", "result") else "model"
            if not contents or contents[-1]["role"] != role:
                contents.append({"role": role, "parts": []})
            contents[-1]["parts"].append(cls.part(kind, value))
        return {"contents": contents, **more}

    @classmethod
    def events(cls, *outputs: Said, response: str = "r", cut: int | None = None) -> list[Fields]:
        parts: list[Fields] = []
        for kind, value in outputs[:cut]:
            is_text = kind == "text"
            values = (value[:3], value[3:]) if is_text else (value,)
            parts += [cls.part(kind, one) for one in values]
        found = [cls._chunk([part], response, None) for part in parts]
        return found if cut is not None else [*found, cls._chunk([], response, "STOP")]

    @classmethod
    def whole(cls, *outputs: Said) -> Fields:
        return cls._chunk([cls.part(*said) for said in outputs], "r", "STOP")

    @staticmethod
    def _chunk(parts: list[Fields], response: str, reason: str | None) -> Fields:
        candidate: Fields = {"content": {"role": "model", "parts": parts}}
        if reason is not None:
            candidate["finishReason"] = reason
        return {"candidates": [candidate], "responseId": response}


APIS: tuple[type[Talk], ...] = (Responses, Chat, Claude, GeminiTalk)
MENDED: tuple[type[Talk], ...] = (Responses, Chat, Claude)
