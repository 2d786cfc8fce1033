"""Opens the store that a configuration names, with the secret that goes with it."""

from midstream.adapters.store_seal import derived, read_key
from midstream.adapters.stores import MEMORY, open_store
from midstream.config.schema import Config
from midstream.core.engine import Engine
from midstream.core.ports import Store
from midstream.hosts.keeper import Keeper, Streams

PUBLIC_SECRET = b"midstream conversations"
"""Without a key file whoever reads the store could read a key kept beside it, too."""


def opened(config: Config) -> tuple[Store | None, bytes]:
    """Return the store, None for memory, and the secret that names conversations in it.

    Raises ConfigError. Nothing is connected yet.
    """
    if config.store == MEMORY:
        return None, b""
    key = read_key(config.store_key_file) if config.store_key_file else None
    secret = PUBLIC_SECRET if key is None else derived(key, b"names")
    return open_store(config.store, key), secret


def keeper(engine: Engine, streams: Streams, store: Store, config: Config) -> Keeper:
    """Return what keeps the conversations of an engine in a store."""
    return Keeper(
        engine,
        streams,
        store,
        ttl_s=config.store_ttl_seconds,
        max_conversation_bytes=config.store_max_conversation_bytes,
    )
