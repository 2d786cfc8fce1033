"""Encrypts what a store keeps, with a key that only the processes have.

AES-256-GCM with a random nonce of 96 bits in front. The conversation's key is authenticated beside
the value, so that nobody who can write to the store can give one conversation the value of another.
"""

import os
from hashlib import blake2b
from pathlib import Path
from typing import Final

from midstream.core.errors import ConfigError

KEY_BYTES: Final = 32
NONCE_BYTES: Final = 12


def read_key(path: str) -> bytes:
    """Return the key of a file of 64 hex digits. Raises ConfigError."""
    place = f"store_key_file: {path}"
    try:
        text = Path(path).read_text("ascii").strip()
    except OSError as error:
        raise ConfigError(f"{place}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{place}: found other characters, expected 64 hex digits") from None
    if len(text) != 2 * KEY_BYTES or not all(digit in "0123456789abcdefABCDEF" for digit in text):
        raise ConfigError(f"{place}: found {len(text)} characters, expected 64 hex digits")
    return bytes.fromhex(text)


def derived(key: bytes, purpose: bytes) -> bytes:
    """Return a key of its own for one purpose, a word of at most 16 bytes."""
    return blake2b(digest_size=KEY_BYTES, key=key, person=purpose).digest()


class Seal:
    """Encrypts values. Raises ConfigError where the library for it is not installed."""

    def __init__(self, key: bytes) -> None:
        try:
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM
        except ImportError:
            raise ConfigError(
                "store_key_file: cryptography is not installed, expected the extra: "
                "pip install 'midstream[encryption]'"
            ) from None
        self._cipher = AESGCM(derived(key, b"seal"))

    def closed(self, name: bytes, value: bytes) -> bytes:
        """Return a value encrypted for the conversation `name`."""
        nonce = os.urandom(NONCE_BYTES)
        return nonce + self._cipher.encrypt(nonce, value, name)

    def opened(self, name: bytes, sealed: bytes) -> bytes | None:
        """Return the value; None if it was not sealed with this key for this name."""
        from cryptography.exceptions import InvalidTag

        try:
            return self._cipher.decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], name)
        except (InvalidTag, ValueError):
            return None
