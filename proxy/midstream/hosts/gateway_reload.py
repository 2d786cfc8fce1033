"""Takes over a changed configuration while streams are open.

Only exchanges that open afterwards see it; no stream is touched. A file that is not valid changes
nothing, and what only a restart can change is named in the log.
"""

import logging
from collections.abc import Callable

from midstream import wiring
from midstream.config.schema import Config
from midstream.core import metrics
from midstream.core.engine import Engine
from midstream.core.errors import ConfigError
from midstream.hosts.gateway_service import Gateway

logger = logging.getLogger(__name__)

FIXED = (
    "listen", "admin", "store", "store_key_file", "store_ttl_seconds",
    "store_max_conversation_bytes", "workers", "capture", "tls",
)  # fmt: skip
"""What a process opens once, when it starts."""


class Reload:
    """Reloads the configuration of a gateway. `load` reads it anew, and raises ConfigError."""

    def __init__(self, gateway: Gateway, engine: Engine, load: Callable[[], Config]) -> None:
        self._gateway = gateway
        self._engine = engine
        self._load = load

    def __call__(self) -> str:
        """Reload, and return what came of it. Raises ConfigError; the old one then runs on."""
        counts = self._engine.counts
        try:
            config = self._load()
            routes = wiring.routes(config, observe=config.observe)
        except ConfigError as error:
            counts.add(metrics.RELOADS, ("refused",))
            counts.set(metrics.RELOADED, (), 0)
            logger.error("the old configuration runs on: %s", error)
            raise
        unchanged = self._unchanged(config)
        self._engine.reroute(routes, wiring.limits(config))
        self._gateway.take(config)
        counts.add(metrics.RELOADS, ("taken",))
        counts.set(metrics.RELOADED, (), 1)
        text = f"configuration reloaded: {len(routes)} routes"
        if unchanged:
            text += f"; a restart is needed for: {', '.join(unchanged)}"
        logger.info("%s", text)
        return text

    def _unchanged(self, config: Config) -> list[str]:
        running = self._gateway.started_with
        return [key for key in FIXED if getattr(config, key) != getattr(running, key)]
