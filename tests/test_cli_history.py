"""The verb `history`: what it prints, byte for byte, and its exit codes."""

import io
import json
import sys
from pathlib import Path

import pytest

from midstream.cli import main

VECTORS = Path(__file__).parent / "vectors" / "history"
EVENTS = [
    {"kind": "user", "text": "q"},
    {"kind": "text", "text": "Looking.", "step": "A"},
    {"kind": "call", "call_id": "c1", "step": "B"},
    {"kind": "result", "call_id": "c1"},
]
LEDGER = "\n".join(map(json.dumps, EVENTS))
USER = b'{"role": "user", "content": "q"}'
TEXT = b'{"role":"assistant","content":"Looking."}'
CALL = b'{"type":"function_call","call_id":"c1","name":"Read","arguments":"{ }"}'
RESULT = b'{"output":1.50,"call_id":"c1","type":"function_call_output"}'


def body(*items: bytes) -> bytes:
    return b'{ "model":"m",\n "input": [' + b",\n  ".join(items) + b"] }"


IN_ORDER, INVERTED = body(USER, TEXT, CALL, RESULT), body(USER, CALL, RESULT, TEXT)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("ledger.jsonl").write_text(LEDGER)


def run(capfdbinary, given: bytes, *arguments: str) -> tuple[int, bytes, str]:
    """Return exit code, what was printed, and the counts."""
    Path("body.json").write_bytes(given)
    code = main(["history", "body.json", "--ledger", "ledger.jsonl", *arguments])
    out, err = capfdbinary.readouterr()
    return code, out, err.decode()


@pytest.mark.parametrize("ending", [b"", b"\n", b" \r\n"])
def test_a_body_in_order_is_printed_as_the_same_bytes(capfdbinary, ending):
    code, out, err = run(capfdbinary, IN_ORDER + ending)
    assert (code, out) == (0, IN_ORDER + ending)
    assert err == (
        "openai-responses: 1 comparable pairs, 0 inverted, 0 inverted after, 0 items moved "
        "(clean)\n"
    )


def test_an_inverted_body_is_printed_in_order_and_everything_else_as_it_was(capfdbinary):
    code, out, err = run(capfdbinary, INVERTED)
    assert (code, out) == (1, IN_ORDER)
    assert err == (
        "openai-responses: 1 comparable pairs, 1 inverted, 0 inverted after, 1 items moved\n"
    )


def test_a_body_may_come_from_stdin(capfdbinary, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(INVERTED)))
    assert main(["history", "-", "--ledger", "ledger.jsonl"]) == 1
    assert capfdbinary.readouterr().out == IN_ORDER


def test_a_ledger_may_have_empty_lines_and_events_with_more_in_them(capfdbinary):
    lines = [json.dumps({**event, "ts": 1, "refs": {"a": [1]}}) for event in EVENTS]
    Path("ledger.jsonl").write_text("\n\n".join(lines) + "\r\n\n")
    assert run(capfdbinary, INVERTED)[:2] == (1, IN_ORDER)


def test_an_empty_ledger_moves_nothing(capfdbinary):
    Path("ledger.jsonl").write_bytes(b"")
    code, out, err = run(capfdbinary, INVERTED)
    assert (code, out) == (0, INVERTED)
    assert "(nothing_comparable)" in err


def test_a_body_whose_history_the_provider_holds_is_left_alone(capfdbinary):
    given = INVERTED.replace(b'"model"', b'"previous_response_id":"resp_1","model"')
    code, out, err = run(capfdbinary, given)
    assert (code, out) == (0, given)
    assert "(server_side_history)" in err


@pytest.mark.parametrize("is_whole", [False, True])
def test_a_ledger_may_be_what_a_proxy_saw(capfdbinary, is_whole):
    message = {"type": "message", "role": "assistant", "content": [{"text": "Looking."}]}
    items = [{**message, "id": "m1"}, {"type": "function_call", "id": "f1", "call_id": "c1"}]
    events = [
        {"type": "response.output_item.done", "output_index": index, "item": item}
        for index, item in enumerate(items)
    ]
    response = {"id": "r1", "status": "completed", "output": items}
    events.append({"type": "response.completed", "response": {"id": "r1"}})
    answer = {"response": response} if is_whole else {"events": events}
    line = {"request": {"input": [{"role": "user", "content": "q"}]}, **answer}
    Path("ledger.jsonl").write_text(json.dumps(line))
    assert run(capfdbinary, INVERTED)[:2] == (1, IN_ORDER)


@pytest.mark.parametrize("path", sorted(VECTORS.glob("*.json")), ids=lambda path: path.stem)
def test_every_vector_gives_the_body_it_expects(capfdbinary, path):
    vector = json.loads(path.read_text())
    ledger, expected = vector["ledger"], vector["expect"]
    lines = ledger["events"] if ledger["mode"] == "explicit" else ledger["responses"]
    Path("ledger.jsonl").write_text("\n".join(map(json.dumps, lines)))
    given = json.dumps(vector["request"]).encode()
    code, out, _ = run(capfdbinary, given, "--api", vector["api"])
    assert code == (expected["action"] == "repair")
    assert json.loads(out) == (expected["request"] or vector["request"])
    assert (out == given) == (code == 0)
    assert run(capfdbinary, given)[:2] == (code, out)  # the API is recognised, too


def test_a_body_that_may_be_of_two_apis_needs_to_be_told(capfdbinary):
    blocks = [{"type": "tool_use", "id": "c1"}]
    messages = [{"role": "tool", "content": "x"}, {"role": "assistant", "content": blocks}]
    given = json.dumps({"messages": messages}).encode()
    code, out, err = run(capfdbinary, given)
    assert (code, out) == (2, b"")
    assert err == "body.json: cannot tell which API it is for, expected --api\n"
    assert run(capfdbinary, given, "--api", "anthropic")[:2] == (0, given)


@pytest.mark.parametrize(
    ("given", "ledger", "arguments", "error"),
    [
        (b"{", LEDGER, (), "body.json: cannot tell which API it is for, expected --api"),
        (
            b"{",
            LEDGER,
            ("--api", "openai-chat"),
            "body.json: found no history of openai-chat, expected a request body of it",
        ),
        (
            IN_ORDER,
            f"{LEDGER}\n{{",
            (),
            "ledger.jsonl: line 5: input data was truncated",
        ),
        (
            IN_ORDER,
            '{"kind": "txet"}',
            (),
            "ledger.jsonl: line 1: invalid enum value 'txet' - at `$.kind`",
        ),
        (
            IN_ORDER,
            '{"request": {"input": 7}, "events": []}',
            (),
            "ledger.jsonl: line 1: found no exchange of openai-responses",
        ),
    ],
)
def test_a_usage_error_is_one_line_and_exit_code_2(capfdbinary, given, ledger, arguments, error):
    Path("ledger.jsonl").write_text(ledger)
    assert run(capfdbinary, given, *arguments) == (2, b"", f"{error}\n")


@pytest.mark.parametrize("missing", ["body.json", "ledger.jsonl"])
def test_a_file_that_is_missing_is_named(capfdbinary, missing):
    Path("body.json").write_bytes(IN_ORDER)
    Path(missing).unlink()
    assert main(["history", "body.json", "--ledger", "ledger.jsonl"]) == 2
    out, err = capfdbinary.readouterr()
    assert (out, err) == (b"", f"{missing}: cannot be read: No such file or directory\n".encode())


def test_an_unknown_api_is_told_with_the_known_ones(capfdbinary):
    code, out, err = run(capfdbinary, IN_ORDER, "--api", "openai")
    assert (code, out, err.count("\n")) == (2, b"", 1)
    for api in ("openai-responses", "openai-chat", "anthropic"):
        assert api in err


def test_a_ledger_is_required(capfdbinary):
    assert main(["history", "body.json"]) == 2
    assert b"--ledger" in capfdbinary.readouterr().err
