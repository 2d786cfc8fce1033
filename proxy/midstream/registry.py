"""Finds addons and dialects by name, at run time.

A new repair is one module in `midstream_addons` that binds `ADDON`, a new dialect one module in
`midstream.dialects` that binds `DIALECT`; there is no list to edit. A foreign addon is written
`package.module:Class` and has to be importable. Errors here say what is wrong; the caller adds
where it was asked for.
"""

import importlib
import pkgutil
import re
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import msgspec

from midstream.config.wording import near, near_or_all
from midstream.core.addon import Addon, AnyAddon
from midstream.core.dialect import Dialect
from midstream.core.errors import ConfigError

ADDONS = "midstream_addons"
DIALECTS = "midstream.dialects"
DEFAULT_ORDER = (
    "strip-compaction",  # before replay-overlap: it judges a server by what that really sends
    "replay-overlap",
    "snapshot-to-delta",
    "final-message-once",
    "history-order",
)
"""The order in which addons run where a route names none, as far as they exist; any other follows
by name."""

FOREIGN = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
LABELS = ("rules", "reasons", "dialects")


def addon_names() -> tuple[str, ...]:
    """Return the names of the known addons in their default order."""
    found = {name.replace("_", "-") for name, _ in _bound(ADDONS, "ADDON")}
    return (*(n for n in DEFAULT_ORDER if n in found), *sorted(found.difference(DEFAULT_ORDER)))


def load_addon(reference: str) -> type[AnyAddon]:
    """Return the class of an addon: `replay-overlap`, or `package.module:Class`.

    Raises ConfigError.
    """
    if ":" in reference:
        return _checked(_foreign(reference), reference)
    module = reference.replace("-", "_")
    if "_" not in reference and module in _modules(ADDONS):  # one that is broken breaks no other
        addon = getattr(_imported(f"{ADDONS}.{module}"), "ADDON", None)
        if addon is not None:
            return _checked(addon, reference)
    raise ConfigError(f'unknown addon "{reference}"{near_or_all(reference, addon_names())}')


def dialects() -> tuple[Dialect, ...]:
    """Return every known dialect, by the name of its module."""
    return tuple(dialect for _, dialect in _bound(DIALECTS, "DIALECT"))


def _modules(package: str) -> list[str]:
    """Return the names of the modules of a package, sorted, without importing them."""
    return sorted(m.name for m in pkgutil.iter_modules(importlib.import_module(package).__path__))


def _bound(package: str, attribute: str) -> Iterator[tuple[str, Any]]:
    """Return the modules of a package that bind an attribute, by name, and what they bind."""
    for name in _modules(package):
        module = _imported(f"{package}.{name}")
        if hasattr(module, attribute):
            yield name, getattr(module, attribute)


def _imported(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ConfigError(f'cannot import "{name}": {error}') from error


def _foreign(reference: str) -> object:
    if not FOREIGN.fullmatch(reference):
        raise ConfigError(f'found "{reference}", expected "package.module:Class"')
    module, _, name = reference.partition(":")
    names = vars(_imported(module))
    if name not in names:
        raise ConfigError(f'"{module}" has no "{name}"{near(name, names)}')
    return names[name]


def _checked(addon: object, reference: str) -> type[AnyAddon]:
    """Refuse what does not keep the contract: every word it declares becomes a metric label."""
    if not (isinstance(addon, type) and issubclass(addon, Addon)):
        raise ConfigError(f'"{reference}" is no addon, expected a subclass of Addon')
    if not isinstance(getattr(addon, "name", None), str):
        raise ConfigError(f'addon "{reference}" has no name, expected a string')
    for label in LABELS:
        words = getattr(addon, label, None)
        if not (isinstance(words, tuple) and all(isinstance(word, str) for word in words)):
            raise ConfigError(f'addon "{reference}" has no {label}, expected a tuple of strings')
    options = getattr(addon, "Options", None)
    if not (isinstance(options, type) and issubclass(options, msgspec.Struct)):
        raise ConfigError(f'addon "{reference}" has no Options, expected a msgspec.Struct')
    known = [dialect.name for dialect in dialects()]
    for name in addon.dialects:
        if name not in known:
            raise ConfigError(
                f'addon "{reference}": unknown dialect "{name}"{near_or_all(name, known)}'
            )
    return addon
