"""Merges flags over environment over file over defaults, and checks what wins.

Every error is one line: `FILE: KEY: what was found, what was expected`. For a variable or a flag,
FILE is `environment` or `command line`. Addon tables are only merged as tables here: their options
belong to the addons, which `midstream.wiring` knows.
"""

import os
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from midstream.config.layers import (
    COMMAND_LINE,
    Found,
    Layer,
    environment_layer,
    file_layer,
    flag_layer,
    flat_types,
    unknown_key,
)
from midstream.config.schema import MAX_ROUTES, Config, RouteTable
from midstream.config.values import CHECKS, ROUTE_CHECKS, check_upstream
from midstream.config.wording import choices, expected, is_list, near, near_or_all, shown
from midstream.core.errors import ConfigError


def load(
    path: str | None = None,
    *,
    flags: Mapping[str, object] | None = None,
    environ: Mapping[str, str] | None = None,
    needs_upstream: bool = True,
) -> Config:
    """Return the configuration of this process. Raises ConfigError.

    `flags` has the keys `listen`, `admin`, `workers`, `observe`, `upstream` and those of `capture`
    that have a flag; `environ` defaults to the environment of the process. Without `needs_upstream`
    (mitmproxy, a capture) a route may do without one, and a default route is made where the file
    has none.
    """
    found: Layer = file_layer(path) if path is not None else {}
    found |= environment_layer(os.environ if environ is None else environ)
    found |= flag_layer(flags or {})
    source = path or COMMAND_LINE
    upstream = found.pop("upstream", None)
    values = _checked_values(found)
    routes = _with_upstream(values.pop("route", ()), upstream, source)
    if needs_upstream:
        _need_upstreams(routes, source, has_file=path is not None)
    config = msgspec.convert(
        _nested(values) | {"route": routes or (RouteTable(),), "source": source}, Config
    )
    _check_together(config, found)
    return config


def checked(value: object, type_: Any, at: str, *, text: bool = False) -> object:
    """Return a value converted to its type. Raises ConfigError.

    `text` tells that the value is a string from outside a file: numbers are read from it, and a
    list is split at its commas.
    """
    if text and isinstance(value, str) and is_list(type_):
        value = [part.strip() for part in value.split(",") if part.strip()]
    try:
        return msgspec.convert(value, type_, strict=not text)
    except msgspec.ValidationError:
        if isinstance(value, dict):  # a table of tables: name the one that is none
            at, value = next(
                ((f"{at}.{key}", v) for key, v in value.items() if not isinstance(v, dict)),
                (at, value),
            )
        hint = near(value, choices(type_)) if isinstance(value, str) else ""
        raise ConfigError(f"{at}: found {shown(value)}, expected {expected(type_)}{hint}") from None


def checked_table(
    table: Mapping[str, object],
    cls: type[msgspec.Struct],
    place: str,
    *,
    also: tuple[str, ...] = (),
) -> dict[str, object]:
    """Check the keys and values of a table against a struct, and return the values by key.

    `place` is put before a key in an error; `also` are keys that the caller checks itself.
    """
    types = {field.encode_name: field.type for field in msgspec.structs.fields(cls)}
    for key in table:
        if key not in types:
            raise unknown_key(f"{place}{key}", key, (*also, *types))
    return {key: checked(value, types[key], f"{place}{key}") for key, value in table.items()}


def _checked_values(found: Layer) -> dict[str, Any]:
    types = flat_types()
    values: dict[str, Any] = {}
    for key, (value, at, text) in found.items():
        if key == "route":
            values[key] = _routes(value, at)
        else:
            converted = checked(value, types[key], at, text=text)
            values[key] = _apply(CHECKS.get(key), converted, at)
    return values


def _apply(check: Callable[[Any], object] | None, value: object, at: str) -> object:
    if check is None:
        return value
    try:
        return check(value)
    except ValueError as error:
        raise ConfigError(f"{at}: {error}") from None


def _routes(tables: object, at: str) -> tuple[RouteTable, ...]:
    source = at.rpartition(": ")[0]
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise ConfigError(f"{at}: found {shown(tables)}, expected [[route]] tables")
    if len(tables) > MAX_ROUTES:
        raise ConfigError(f"{at}: found {len(tables)} routes, expected at most {MAX_ROUTES}")
    routes: list[RouteTable] = []
    for number, table in enumerate(tables, 1):
        place = f"{source}: route {number}: "
        values = checked_table(table, RouteTable, place)
        for key, check in ROUTE_CHECKS.items():
            if key in values:
                values[key] = _apply(check, values[key], f"{place}{key}")
        route = msgspec.convert(values, RouteTable)
        for other, earlier in enumerate(routes, 1):
            if earlier.name == route.name:
                raise ConfigError(
                    f'{place}name: found "{route.name}" again, '
                    f"expected another name than that of route {other}"
                )
        routes.append(route)
    return tuple(routes)


def _with_upstream(
    routes: tuple[RouteTable, ...], upstream: Found | None, source: str
) -> tuple[RouteTable, ...]:
    """Point the single route, or a default route, at an upstream given outside the file."""
    if upstream is None:
        return routes
    value = _apply(check_upstream, upstream.value, upstream.at)
    if len(routes) > 1:
        raise ConfigError(
            f"{upstream.at}: found {len(routes)} routes in {source}, expected at most one: "
            "set `upstream` in each [[route]] instead"
        )
    return (msgspec.structs.replace(routes[0] if routes else RouteTable(), upstream=value),)


def _need_upstreams(routes: tuple[RouteTable, ...], source: str, *, has_file: bool) -> None:
    if not routes and not has_file:
        raise ConfigError(
            f"{source}: --upstream: not set, expected --upstream URL or --config FILE"
        )
    if not routes:
        raise ConfigError(
            f"{source}: route: none found, expected a [[route]] with an upstream, or --upstream URL"
        )
    for number, route in enumerate(routes, 1):
        if not route.upstream:
            raise ConfigError(
                f"{source}: route {number}: upstream: not set, expected an http:// or https:// URL"
            )


def _nested(values: Mapping[str, object]) -> dict[str, object]:
    nested: dict[str, Any] = {}
    for key, value in values.items():
        section, _, name = key.rpartition(".")
        (nested.setdefault(section, {}) if section else nested)[name] = value
    return nested


def _check_together(config: Config, found: Layer) -> None:
    """Check the values that depend on each other."""

    def at(key: str) -> str:
        return found[key].at if key in found else f"{config.source}: {key}"

    if config.listen == config.admin and not config.listen.endswith(":0"):
        raise ConfigError(
            f"{at('admin')}: found {shown(config.admin)}, expected another address than `listen`"
        )
    names = [route.name for route in config.routes]
    for name in config.capture.routes:
        if name not in names:
            raise ConfigError(
                f"{at('capture.routes')}: found {shown(name)}, expected the name of a route"
                f"{near_or_all(name, names)}"
            )
    if bool(config.tls.cert) != bool(config.tls.key):
        unset, other = ("key", "cert") if config.tls.cert else ("cert", "key")
        raise ConfigError(
            f"{at(f'tls.{unset}')}: not set, expected a PEM file because `tls.{other}` is set"
        )
