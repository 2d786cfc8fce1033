"""What the repair costs a frame: of no interest, of a live stream, and of a replay.

    uv run python -m tests.bench.bench_replay_overlap

Prints microseconds a message and the ratio to a session without addons. It is no test: a shared
machine decides the numbers.
"""

import timeit

from tests.addons.replay_overlap.documents import dumps
from tests.support import SERVER, session_of

from midstream.core.addon import Mode
from midstream.core.engine import Engine, Route
from midstream.core.exchange import RequestHead
from midstream.core.frames import Kind
from midstream.core.session import Session
from midstream.dialects.cloudflare_chat import DIALECT
from midstream_addons.replay_overlap import ADDON

MESSAGES = 20_000
ROUNDS = 7
DELTA = '{"type":"text-delta","id":"t","delta":"some words "}'
CHUNK = {"type": "cf_agent_use_chat_response", "id": "R", "done": False}
FRAMES = {
    "rpc": b'{"type":"rpc","id":"1","success":true,"result":{"rows":[1,2,3]}}',
    "rpc of 64 KiB": b'{"type":"rpc","id":"1","success":true,"result":"' + b"x" * 65_536 + b'"}',
    "state": b'{"type":"cf_agent_state","state":{"count":1}}',
    "binary": b"\x00" * 100,
    "live chunk": dumps({**CHUNK, "body": DELTA}),
    "live chunk of an unknown stream": dumps({**CHUNK, "id": "Q", "body": DELTA}),
}


def mended() -> Session:
    """Return a session in which a stream runs."""
    route = Route("chat", "/*", "http://upstream", ((ADDON(ADDON.Options()), Mode.REPAIR),))
    engine = Engine([route], [DIALECT], secret=bytes(32))
    head = RequestHead("GET", "/agents/chat/room?_pk=1", (("Upgrade", "websocket"),))
    session = engine.open(head, route)
    session.open(0)
    start = {**CHUNK, "body": '{"type":"start","messageId":"A"}'}
    for frame in ({"type": "cf_agent_chat_messages", "messages": []}, start):
        session.receive_message(SERVER, Kind.WS_TEXT, dumps(frame), 1)
    return session


def microseconds(session: Session, kind: Kind, message: bytes) -> float:
    """Return the best time of a message through a session, in microseconds."""

    def one() -> None:
        session.receive_message(SERVER, kind, message, 1)

    return min(timeit.repeat(one, number=MESSAGES, repeat=ROUNDS)) / MESSAGES * 1e6


def main() -> None:
    for name, message in FRAMES.items():
        kind = Kind.WS_BINARY if name == "binary" else Kind.WS_TEXT
        bare_session = session_of()
        bare_session.open(0)
        bare = microseconds(bare_session, kind, message)
        cost = microseconds(mended(), kind, message)
        print(f"{name:32} {bare:7.2f} us bare {cost:7.2f} us  x{cost / bare:.2f}")


if __name__ == "__main__":
    main()
