"""A server that sends what AgentScope sent: POST /VERSION/VARIANT plays that capture."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

from midstream.adapters.capture_format import read
from midstream.adapters.capture_heads import response_head
from midstream.core.frames import Side
from midstream.core.ports import RecordKind

CAPTURES = Path(__file__).parents[3] / "captures" / "a2a"
BETWEEN_EVENTS_S = 0.005


def body(version: str, variant: str) -> bytes:
    """Return the body of a recorded answer."""
    return b"".join(events(version, variant))


def events(version: str, variant: str) -> list[bytes]:
    return [
        record.data
        for record in read(capture(version, variant))
        if record.kind is RecordKind.FRAME and record.side is Side.SERVER
    ]


def capture(version: str, variant: str) -> Path:
    return CAPTURES / f"agentscope-java-{version}.{variant}-000001.cap"


class Player(BaseHTTPRequestHandler):
    """One request; chunked, as AgentScope sends."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        _, version, variant = self.path.split("/")
        records = read(capture(version, variant))
        head = response_head(next(each for each in records if each.kind is RecordKind.HEADERS))
        self.send_response_only(head.status)
        for name, value in head.headers:
            self.send_header(name, value)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for event in events(version, variant):
            self.wfile.write(b"%x\r\n%b\r\n" % (len(event), event))
            self.wfile.flush()
            time.sleep(BETWEEN_EVENTS_S)
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def playing() -> Iterator[str]:
    """Serve on a free port, and return the address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Player) as server:
        server.daemon_threads = True
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()
