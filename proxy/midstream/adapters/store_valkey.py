"""A store in Valkey, or whatever speaks its protocol: replicas on many hosts share it.

A conversation is a hash with the fields `d` (the value) and `v` (its version), which expires. A
save is one script, so that of two processes that save at once the newer version stays.
"""

from typing import Final
from urllib.parse import unquote, urlsplit

from midstream.core.errors import ConfigError, StoreError

PREFIX: Final = b"midstream:conversation:"
TIMEOUT_SECONDS: Final = 0.25
MAX_SOCKETS: Final = 16
DEFAULT_PORT: Final = 6379

_LOAD: Final = "return redis.call('HMGET', KEYS[1], 'd', 'v')"
_SAVE: Final = """
local version = redis.call('HGET', KEYS[1], 'v')
if version and tonumber(version) >= tonumber(ARGV[2]) then return 0 end
redis.call('HSET', KEYS[1], 'd', ARGV[1], 'v', ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1
"""


class ValkeyStore:
    """Conversations by key. `url` is `valkey://[USER:PASSWORD@]HOST[:PORT][/DB]`."""

    def __init__(self, url: str) -> None:
        try:
            from valkey.asyncio import BlockingConnectionPool, Valkey
            from valkey.exceptions import ValkeyError
        except ImportError:
            raise ConfigError(
                "store: valkey is not installed, expected the extra: "
                "pip install 'midstream[valkey]'"
            ) from None
        parts = urlsplit(url)
        pool = BlockingConnectionPool(
            host=parts.hostname or "",
            port=parts.port or DEFAULT_PORT,
            db=int(parts.path.strip("/") or 0),
            username=unquote(parts.username) if parts.username else None,
            password=unquote(parts.password) if parts.password else None,
            max_connections=MAX_SOCKETS,
            timeout=None,  # for a free one; the caller gives up by himself
            socket_timeout=TIMEOUT_SECONDS,
            socket_connect_timeout=TIMEOUT_SECONDS,
        )
        self._errors = (ValkeyError, OSError, TimeoutError)
        self._valkey: Valkey = Valkey.from_pool(pool)
        self._read = self._valkey.register_script(_LOAD)
        self._write = self._valkey.register_script(_SAVE)

    async def load(self, key: bytes) -> tuple[bytes, int] | None:
        try:
            value, version = await self._read(keys=[PREFIX + key])
        except self._errors as error:
            raise StoreError(f"valkey: {type(error).__name__}") from error
        return None if value is None or version is None else (value, int(version))

    async def save(self, key: bytes, value: bytes, version: int, ttl_s: float) -> bool:
        try:
            args = (value, version, int(ttl_s * 1000))
            return bool(await self._write(keys=[PREFIX + key], args=args))
        except self._errors as error:
            raise StoreError(f"valkey: {type(error).__name__}") from error

    async def close(self) -> None:
        await self._valkey.aclose()
