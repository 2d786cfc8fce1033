"""An admin port in a thread of its own, whose ring a test fills, and a browser that looks at it."""

import asyncio
import json
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from tests.support import FakeDialect

from midstream.adapters.capture_redact import Redactor
from midstream.config.values import Address
from midstream.core.engine import Engine
from midstream.core.frames import Frame, Kind, Side
from midstream.core.metrics import Counts
from midstream.core.ports import Record, RecordKind
from midstream.hosts.admin import Admin
from midstream.hosts.gateway_call import Streams
from midstream.hosts.inspector import Ring, RingBounds

SECONDS = 20
CHROMIUM = shutil.which("chromium")


class Site:
    """A running admin port. `write` puts records into its ring as a stream would."""

    def __init__(self, loop: asyncio.AbstractEventLoop, ring: Ring, port: int) -> None:
        self.loop = loop
        self.ring = ring
        self.port = port
        self.url = f"http://127.0.0.1:{port}/"
        self._seqs: dict[int, int] = {}

    def run[T](self, call: Callable[[], T]) -> T:
        """Call something on the loop of the site, and wait for it."""

        async def work() -> T:
            return call()

        return asyncio.run_coroutine_threadsafe(work(), self.loop).result(SECONDS)

    def write(self, *records: Record) -> None:
        def put() -> None:
            for record in records:
                self.ring.write(record)

        self.run(put)

    def record(
        self,
        exchange: int,
        kind: RecordKind,
        side: Side | None = None,
        frame: Frame | None = None,
        sent: tuple[Frame, ...] | None = None,
        rules: tuple[tuple[str, str], ...] = (),
        skips: tuple[tuple[str, str], ...] = (),
        **meta: object,
    ) -> Record:
        """Return the next record of an exchange."""
        seq = self._seqs[exchange] = self._seqs.get(exchange, 0) + 1
        now_ns = time.monotonic_ns()
        return Record(now_ns, exchange, seq, kind, side, frame, sent, rules, skips, meta)

    def open(self, exchange: int, target: str = "/chat/room", *headers: tuple[str, str]) -> None:
        """Open a WebSocket."""
        given = (("Upgrade", "websocket"), *headers)
        self.write(
            self.record(
                exchange,
                RecordKind.OPEN,
                route="chat",
                upstream="http://127.0.0.1:9",
                method="GET",
                target=target,
                headers=given,
            ),
            self.record(exchange, RecordKind.HEADERS, Side.SERVER, status=101, headers=()),
        )

    def message(self, exchange: int, value: object, side: Side = Side.SERVER) -> Record:
        """Return the record of a WebSocket message."""
        text = value if isinstance(value, str) else json.dumps(value)
        return self.record(
            exchange, RecordKind.FRAME, side, Frame(side, Kind.WS_TEXT, text.encode())
        )


@contextmanager
def site(
    token: str = "",
    bounds: RingBounds | None = None,
    on_write: Callable[[], int] | None = None,
    redact: Mapping[str, object] | tuple[str, ...] = ("authorization", "cookie"),
) -> Iterator[Site]:
    """Run an admin port until the block ends."""
    ring = Ring(bounds)
    engine = Engine([], [FakeDialect()], secret=b"secret", counts=Counts())
    ports: list[int] = []
    ready, over = threading.Event(), asyncio.Event()
    loops: list[asyncio.AbstractEventLoop] = []

    async def serve() -> None:
        admin = Admin(
            engine.counts,
            Streams(engine),
            ring,
            lambda: (200, "ready"),
            token=token,
            redactor=Redactor(tuple(redact)),
            on_write=on_write,
        )
        ports.append(await admin.listen(Address("127.0.0.1", 0)))
        loops.append(asyncio.get_running_loop())
        ready.set()
        await over.wait()
        await admin.close()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    assert ready.wait(SECONDS)
    try:
        yield Site(loops[0], ring, ports[0])
    finally:
        loops[0].call_soon_threadsafe(over.set)
        thread.join(SECONDS)
