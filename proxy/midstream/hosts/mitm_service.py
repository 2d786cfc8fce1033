"""What runs beside the flows inside mitmproxy: capture, admin port, and the sweep for stalls.

mitmproxy calls an addon's start and end synchronously, so what has to be awaited is left to tasks.
A port that is taken costs the metrics and not the traffic: it is a warning.
"""

import asyncio
import logging
import platform
from collections.abc import Coroutine

from midstream import __version__, wiring
from midstream.adapters.capture_recorder import Recorder
from midstream.adapters.capture_recorder import recorder as recorder_of
from midstream.adapters.capture_redact import Redactor, redactor
from midstream.config import Address, Config, parse_address
from midstream.core import metrics
from midstream.core.engine import Engine
from midstream.core.errors import ConfigError
from midstream.core.metrics import Counts
from midstream.core.ports import Sink
from midstream.hosts.admin import Admin
from midstream.hosts.capture_signal import write_on_signal
from midstream.hosts.gateway import Fan
from midstream.hosts.gateway_call import Streams
from midstream.hosts.gateway_watch import Watch
from midstream.hosts.inspector import Ring
from midstream.hosts.inspector_access import admin_token
from midstream.hosts.inspector_routes import Writer
from midstream.hosts.mitm_notes import Notes

logger = logging.getLogger(__name__)


class Service:
    """An engine and what looks after it. Without an address there is no admin port."""

    def __init__(
        self,
        engine: Engine,
        *,
        ring: Ring | None = None,
        recorder: Recorder | None = None,
        admin: Address | None = None,
        notes: Notes | None = None,
        token: str = "",
        redactor: Redactor | None = None,
        on_write: Writer | None = None,
    ) -> None:
        self.engine = engine
        self.streams = Streams(engine)
        self.notes = notes or Notes()
        self._recorder = recorder
        self._address = admin
        self._watch = Watch(engine.counts, self.streams)
        self._admin = Admin(
            engine.counts,
            self.streams,
            ring or Ring(),
            self.readiness,
            token=token,
            redactor=redactor,
            on_write=on_write,
        )
        self._tasks: set[asyncio.Task[None]] = set()
        self.admin_port = 0

    @classmethod
    def of(cls, config: Config) -> "Service":
        """Return what a configuration asks for. Raises ConfigError."""
        counts, ring, notes = Counts(), Ring(), Notes()
        recorder = recorder_of(config.capture, "mitm", counts)
        sinks: tuple[Sink, ...] = (ring, notes)
        sink = Fan(*sinks, *(() if recorder is None else (recorder,)))
        engine = wiring.engine(config, counts=counts, sink=sink, observe=config.observe)
        counts.set(metrics.BUILD_INFO, (__version__, platform.python_version()), 1)
        counts.set(metrics.RELOADED, (), 1)
        return cls(
            engine,
            ring=ring,
            recorder=recorder,
            notes=notes,
            admin=parse_address(config.admin),
            token=admin_token(config),
            redactor=redactor(config.capture),
            on_write=None if recorder is None else recorder.write_ring,
        )

    def start(self) -> None:
        """Begin, in the running loop."""
        if self._recorder is not None:
            self._recorder.start()
            write_on_signal(self._recorder)
        self._watch.start()
        if self._address is not None:
            self._spawn(self._listen(self._address))

    def stop(self) -> None:
        """End. The admin port closes as soon as the loop comes to it."""
        self.streams.is_draining = True
        self._watch.stop()
        if self._recorder is not None:
            self._recorder.stop()
        if self._address is not None:
            self._spawn(self._admin.close())

    def readiness(self) -> tuple[int, str]:
        """Return status and text of `/readyz`."""
        if self.streams.is_draining:
            return 503, "draining"
        if self._recorder is not None and not self._recorder.healthy:
            return 200, "degraded: capture"
        return 200, "ready"

    async def _listen(self, address: Address) -> None:
        try:
            self.admin_port = await self._admin.listen(address)
        except ConfigError as error:
            logger.warning("%s; going on without it", error)
        else:
            logger.info("midstream admin on http://%s", Address(address.host, self.admin_port))

    def _spawn(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
