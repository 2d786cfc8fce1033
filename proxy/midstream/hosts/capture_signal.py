"""Lets SIGUSR1 write what a capture keeps in memory, in either host."""

import asyncio
import contextlib
import logging
import signal

from midstream.adapters.capture_recorder import Recorder

logger = logging.getLogger(__name__)


def write_on_signal(recorder: Recorder | None) -> None:
    """Handle SIGUSR1 in the running loop; it would end a process that handles it not at all."""

    def on_signal() -> None:
        if recorder is None:
            logger.warning("SIGUSR1: nothing is captured")
        else:
            logger.info("SIGUSR1: %s records that waited are written", recorder.write_ring())

    # Only the main thread of a process can; a mitmproxy in another one goes without.
    with contextlib.suppress(ValueError, RuntimeError):
        asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, on_signal)
