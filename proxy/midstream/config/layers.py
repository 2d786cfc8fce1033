"""Reads the three places a setting can come from into flat keys: file, environment and flags.

A flat key is `listen` or `limits.max_frame_bytes`. Each value keeps the words that name its place
in an error. Nothing is checked here but that the keys are known.
"""

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from midstream.config.schema import Config, Tables
from midstream.config.wording import near_or_all, nearest, shown
from midstream.core.errors import ConfigError

MAX_FILE_BYTES = 1 << 20
PREFIX = "MIDSTREAM_"
ENVIRONMENT = "environment"
COMMAND_LINE = "command line"
ONLY_IN_FILES = ("route", "addon")
TYPO = 0.8
"""How alike a variable must be to count as misspelt (0 to 1); others are another program's, as
those that Kubernetes sets for a service called `midstream`."""


class Found(NamedTuple):
    """A value and where it stands. A `text` value is a string that still has to be converted."""

    value: object
    at: str
    text: bool = False


type Layer = dict[str, Found]


def flat_types() -> dict[str, object]:
    """Return the type of every flat key, with `observe`, which no file holds."""
    types = dict(_flat_types(Config))
    del types["source"]
    return types


def file_layer(path: str) -> Layer:
    """Read a TOML file."""
    return dict(_flatten(_document(path), path))


def environment_layer(environ: Mapping[str, str]) -> Layer:
    """Read the variables that begin with `MIDSTREAM_`. An empty one counts as not set."""
    keys = [*(key for key in flat_types() if key not in ONLY_IN_FILES), "upstream"]
    names = {key.upper().replace(".", "_"): key for key in keys}
    layer: Layer = {}
    for variable, text in environ.items():
        name = variable.removeprefix(PREFIX)
        if name == variable or not text:
            continue
        at = f"{ENVIRONMENT}: {variable}"
        if name in names:
            layer[names[name]] = Found(text, at, text=True)
        elif (meant := nearest(name, names, cutoff=TYPO)) is not None:
            raise ConfigError(f'{at}: unknown variable, did you mean "{PREFIX}{meant}"')
    return layer


FLAGS = {"capture.dir": "capture", "capture.keep": "capture-keep", "capture.content": "content"}
"""The flags that have another name than their key."""


def flag_layer(flags: Mapping[str, object]) -> Layer:
    """Read flags by key; None and False stand for a flag that was not given."""
    return {
        key: Found(value, f"{COMMAND_LINE}: --{FLAGS.get(key, key)}", text=isinstance(value, str))
        for key, value in flags.items()
        if value is not None and value is not False
    }


def unknown_key(at: str, key: str, known: Iterable[str]) -> ConfigError:
    """Return the error of a key that is not known in a table."""
    if key in _keys(Tables):
        return ConfigError(
            f"{at}: unknown key in this table, "
            f"did you mean the top-level `{key}`: it stands above the first [table]"
        )
    return ConfigError(f"{at}: unknown key{near_or_all(key, known)}")


def _document(path: str) -> dict[str, object]:
    try:
        with Path(path).open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ConfigError(f"{path}: {reason}, expected a readable TOML file") from None
    if len(content) > MAX_FILE_BYTES:
        raise ConfigError(f"{path}: more than {MAX_FILE_BYTES} bytes, expected a TOML file")
    try:
        return tomllib.loads(content.decode())
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: byte {error.start} is not UTF-8, expected TOML") from None
    except ValueError as error:  # TOMLDecodeError, and integers of thousands of digits
        text = str(error)
        raise ConfigError(f"{path}: {text[:1].lower()}{text[1:]}, expected TOML") from None
    except RecursionError:
        raise ConfigError(f"{path}: nested too deeply, expected TOML") from None


def _flatten(document: Mapping[str, object], path: str) -> Iterator[tuple[str, Found]]:
    sections = _sections(Tables)
    for key, value in document.items():
        at = f"{path}: {key}"
        if key in sections:
            yield from _flatten_section(key, _keys(sections[key]), value, at)
        elif key in _keys(Tables):
            yield key, Found(value, at)
        else:
            meant = nearest(key, [*sections, *dict(_flat_types(Tables))])
            hint = f', did you mean "{meant}"' if meant else near_or_all(key, _keys(Tables))
            raise ConfigError(f"{at}: unknown key{hint}")


def _flatten_section(
    section: str, keys: list[str], table: object, at: str
) -> Iterator[tuple[str, Found]]:
    if not isinstance(table, dict):
        raise ConfigError(f"{at}: found {shown(table)}, expected a table")
    for key, value in table.items():
        if key not in keys:
            raise unknown_key(f"{at}.{key}", key, keys)
        yield f"{section}.{key}", Found(value, f"{at}.{key}")


def _sections(cls: type[msgspec.Struct]) -> dict[str, type[msgspec.Struct]]:
    return {
        field.encode_name: field.type
        for field in msgspec.structs.fields(cls)
        if isinstance(field.type, type) and issubclass(field.type, msgspec.Struct)
    }


def _flat_types(cls: type[msgspec.Struct], prefix: str = "") -> Iterator[tuple[str, object]]:
    sections = _sections(cls)
    for field in msgspec.structs.fields(cls):
        if field.encode_name in sections:
            yield from _flat_types(sections[field.encode_name], f"{field.encode_name}.")
        else:
            yield prefix + field.encode_name, field.type


def _keys(cls: type[msgspec.Struct]) -> list[str]:
    return [field.encode_name for field in msgspec.structs.fields(cls)]
