"""Real traffic: what leaves is what was tried live, and every page ends with the true messages."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.addons.replay_overlap.clients import Page, SdkStream
from tests.addons.replay_overlap.documents import loads
from tests.addons.replay_overlap.tape import Player

from midstream.adapters.capture_format import StoredRecord, read
from midstream.core import metrics
from midstream.core.addon import Answer
from midstream.core.exchange import ResponseHead
from midstream.core.frames import Frame, Kind, Side
from midstream.core.ports import RecordKind

CAPTURES = Path(__file__).parents[2] / "captures" / "cloudflare"
GOLDEN = CAPTURES / "golden"
LISTS = b'"cf_agent_chat_messages"'
JSON = ResponseHead(200, (("Content-Type", "application/json"),))


# --- what was tried live --------------------------------------------------------------------------


def value_of(wire: bytes | str) -> Any:
    """Return a frame as a JSON value, the chunk inside of it, too."""
    value = json.loads(wire)
    if value.get("body", "").startswith("{"):
        value["body"] = json.loads(value["body"])
        if value["body"].get("preliminary") is False:
            del value["body"]["preliminary"]  # said or not, a client takes it for the same
    return value


def lines(name: str) -> list[dict[str, Any]]:
    text = next(GOLDEN.glob(f"{name}-*.jsonl")).read_text()
    return [json.loads(line) for line in text.splitlines()]


class Golden(Player):
    """Plays the two legs that came of a recording made with the tried code in between."""

    def __init__(self, name: str, client: str) -> None:
        self.lines = lines(name)
        healed = [line for line in self.lines if line["dir"] == "p2c" and "_messages" in str(line)]
        body = json.dumps(value_of(healed[-1]["data"])["messages"]).encode()
        super().__init__(Answer(200, body), client=client)

    def play_lines(self) -> None:
        for line in self.lines:
            self.pass_time(line["t"] - self.now_ms)
            number, data = line["conn"], line["data"]
            if line["kind"] == "open":
                self.open_at(number, line["path"])
            elif line["kind"] == "close" and number in self.sessions:
                self.end(number, "abort")
            elif line["dir"] in ("c2p", "u2p"):
                side = Side.CLIENT if line["dir"] == "c2p" else Side.SERVER
                self.take(number, Frame(side, Kind.WS_TEXT, data.encode()))
        self.pass_time(5_000)


@pytest.mark.parametrize(
    ("name", "client"),
    [
        ("g1", "r2"),
        ("g3", "unknown"),
        ("g3", "r2"),
        ("g4", "unknown"),
        ("g5", "unknown"),
        ("g5", "r3"),
    ],
)
def test_what_leaves_is_what_was_tried_live(name: str, client: str) -> None:
    golden = Golden(name, client)
    golden.play_lines()
    last = max(golden.sessions)
    for side, leg in ((Side.SERVER, "p2c"), (Side.CLIENT, "p2u")):
        left = [value_of(f.wire) for f in golden.left[last] if f.sender is side]
        tried = [
            value_of(line["data"])
            for line in golden.lines
            if line["conn"] == last and line["dir"] == leg
        ]
        assert left == tried
    assert golden.count(metrics.ERRORS) == 0


# --- every page ends with the true messages -------------------------------------------------------


class Rerun(Player):
    """Plays a capture made without the product; its pages get what leaves.

    With `withholds` no list of messages reaches a page once it has come back, so that what it shows
    is the repair's doing alone. What the pages send is in the capture.
    """

    def __init__(self, name: str, *, kind: str = "r2", withholds: bool = False) -> None:
        super().__init__(Answer())
        self.records = list(read(next(CAPTURES.glob(f"{name}*.cap"))))
        self.final = json.loads(next(CAPTURES.glob(f"{name}*.final.json")).read_text())
        self.kind, self.withholds = kind, withholds
        self.pages: dict[str, Page] = {}
        self.page_of: dict[int, Page] = {}
        self.shown = dict[int, int]()

    def rerun(self) -> None:
        start_ms = self.records[0].mono_ns // 1_000_000
        for record in self.records:
            self.pass_time(record.mono_ns // 1_000_000 - start_ms - self.now_ms)
            self.show()
            self.feed(record)
            self.show()
        self.pass_time(5_000)
        self.show()

    def feed(self, record: StoredRecord) -> None:
        number, frame = record.exchange, record.received
        if record.kind is RecordKind.OPEN:
            self.open_at(number, str(record.meta["target"]))
            self.shown[number] = 0
            label = self.label(str(record.meta["target"]))
            if label:
                page = self.pages.setdefault(label, Page(self.kind, []))
                self.page_of[number] = page
                page.connect()
                page.awaits = False
        elif record.kind is RecordKind.HEADERS and number not in self.page_of:
            self.sessions[number].respond(JSON, self.now_ms * 1_000_000)
        elif frame is not None:
            if frame.sender is Side.CLIENT and number in self.page_of:
                self.act(self.page_of[number], loads(frame.wire))
            self.receive(number, frame)
        elif record.kind is RecordKind.CLOSE and record.side is not None:
            session = self.sessions[number]
            self.left[number] += session.end(record.side, self.now_ms * 1_000_000)

    def receive(self, number: int, frame: Frame) -> None:
        if frame.kind is Kind.BODY:
            now_ns = self.now_ms * 1_000_000
            self.left[number] += self.sessions[number].receive(frame.sender, frame.wire, now_ns)
        else:
            self.take(number, frame)

    def label(self, target: str) -> str:
        tabs = self.final["tabs"]
        return next((t["label"] for t in tabs if any(pk in target for pk in t["pks"])), "")

    def act(self, page: Page, sent: dict[str, Any]) -> None:
        """Let the page do what it did in the capture."""
        if sent["type"] == "cf_agent_stream_resume_request":
            page.ask()
        elif sent["type"] == "cf_agent_use_chat_request":
            page.messages = loads(sent["init"]["body"])["messages"]
            empty = {"id": f"made-{sent['id']}", "role": "assistant", "parts": []}
            page.own[sent["id"]] = SdkStream(empty)
        elif sent["type"] == "cf_agent_tool_result":
            page.answer_tool(sent["toolCallId"], sent["output"])
            page.awaits = False
        page.sent.clear()

    def show(self) -> None:
        """Show the pages what has left since."""
        for number, page in self.page_of.items():
            fresh = self.left[number][self.shown[number] :]
            self.shown[number] += len(fresh)
            for frame in fresh:
                is_reset = self.count(metrics.REPAIRS, "reset") > 0
                is_closing = LISTS in frame.wire and frame in self.received[number]
                if frame.sender is Side.SERVER and not (self.withholds and is_reset and is_closing):
                    page.take(loads(frame.wire))
                    page.sent.clear()


def in_short(messages: list[dict[str, Any]]) -> list[tuple[str, list[str]]]:
    """Return messages as the captures' own summaries give them."""
    return [(message["id"], [_in_short(part) for part in message["parts"]]) for message in messages]


def _in_short(part: dict[str, Any] | str) -> str:
    if isinstance(part, str):
        return part
    if "text" in part:
        return f"{part['type']}:{part['text']}"
    return f"{part['type']}:{part['state']}" if "state" in part else str(part["type"])


WITH_A_DROP = ["aichat-02b", "aichat-03", "aichat-04", "aichat-06", "think-03"]
WITHOUT = ["aichat-01", "aichat-07", "think-01", "think-02", "think-06"]


@pytest.mark.parametrize("name", [*WITH_A_DROP, *WITHOUT])
def test_a_page_ends_with_the_true_messages(name: str) -> None:
    rerun = Rerun(name)
    rerun.rerun()
    for page in rerun.pages.values():
        assert page.errors == []
        assert in_short(page.messages) == in_short(rerun.final["server"])
    assert rerun.count(metrics.ERRORS) == 0
    assert (rerun.count(metrics.REPAIRS, "reset") > 0) == (name in WITH_A_DROP)


@pytest.mark.parametrize("name", WITH_A_DROP)
@pytest.mark.parametrize("kind", ["r2", "r3", "r4"])
def test_a_page_is_right_before_any_closing_list(name: str, kind: str) -> None:
    rerun = Rerun(name, kind=kind, withholds=True)
    rerun.rerun()
    true = in_short(rerun.final["server"])
    if name.startswith("think"):  # it files a continuation as a message of its own
        [user, (identifier, first), (_, second)] = true
        true = [user, (identifier, first + second)]
    for page in rerun.pages.values():
        assert page.errors == []
        assert in_short(page.messages) == true


@pytest.mark.parametrize("name", WITHOUT)
def test_where_nothing_is_resumed_every_frame_leaves_as_it_came(name: str) -> None:
    rerun = Rerun(name)
    rerun.rerun()
    for number, came in rerun.received.items():
        if number in rerun.page_of:
            assert rerun.left[number] == came


def test_a_client_that_is_no_page_is_mended_by_its_acceptance() -> None:
    """A bare client, its capture holding one ACK and one replay."""
    player = Player(Answer())
    records = list(read(next(CAPTURES.glob("raw-01*.cap"))))
    for record in records:
        if record.kind is RecordKind.OPEN:
            player.open_at(record.exchange, str(record.meta["target"]))
        elif record.received is not None:
            player.take(record.exchange, record.received)
        elif record.kind is RecordKind.CLOSE and record.meta.get("ending") == "aborted":
            player.end(record.exchange, "abort")
        player.pass_time(5)
    player.pass_time(5_000)
    assert player.count(metrics.ERRORS) == 0
    last = max(player.sessions)
    replayed = [f for f in player.left[last] if b'"replay":true' in f.wire]
    assert replayed
