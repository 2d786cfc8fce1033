"""Opens the store that a configuration names."""

import logging
from typing import Final

from midstream.adapters.store_seal import Seal
from midstream.adapters.store_sqlite import SqliteStore
from midstream.adapters.store_valkey import ValkeyStore
from midstream.core.ports import Store

logger = logging.getLogger(__name__)

MEMORY: Final = "memory:"


def open_store(url: str, key: bytes | None = None) -> Store | None:
    """Return a store; None for `memory:`. Nothing is connected yet. Raises ConfigError.

    With a `key` of 32 bytes, whatever is stored is encrypted.
    """
    if url == MEMORY:
        return None
    store: Store = (
        SqliteStore(url.removeprefix("sqlite:")) if url.startswith("sqlite:") else ValkeyStore(url)
    )
    return store if key is None else Sealed(store, Seal(key))


class Sealed:
    """A store whose values only the holders of a key can read."""

    def __init__(self, store: Store, seal: Seal) -> None:
        self._store = store
        self._seal = seal
        self._is_told = False

    async def load(self, key: bytes) -> tuple[bytes, int] | None:
        found = await self._store.load(key)
        if found is None:
            return None
        value = self._seal.opened(key, found[0])
        if value is None:  # another key was in use: as good as nothing, and written over
            if not self._is_told:
                logger.warning("the store holds values that store_key_file does not open")
            self._is_told = True
            return None
        return value, found[1]

    async def save(self, key: bytes, value: bytes, version: int, ttl_s: float) -> bool:
        return await self._store.save(key, self._seal.closed(key, value), version, ttl_s)

    async def close(self) -> None:
        await self._store.close()
