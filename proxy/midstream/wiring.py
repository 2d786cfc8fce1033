"""Builds what the hosts run from a configuration: routes with their addons, and the engine.

The options of an addon are converted here, one table at a time, so that an error names the file,
the addon and the key: `[addon.NAME]` counts for every route, `[route.addon.NAME]` for its own.
"""

import os
from collections.abc import Mapping

import msgspec

from midstream import registry
from midstream.config.load import checked, checked_table
from midstream.config.schema import Config, RouteTable
from midstream.config.wording import near_or_all
from midstream.core.addon import AnyAddon, Mode
from midstream.core.engine import Engine, Limits, Route
from midstream.core.errors import ConfigError
from midstream.core.metrics import Counts
from midstream.core.ports import Sink

SECRET_BYTES = 32


class Repair(msgspec.Struct, frozen=True):
    """An addon as it is set up for one route. `reference` is what the configuration calls it."""

    reference: str
    addon: AnyAddon
    mode: Mode
    options: msgspec.Struct


class ResolvedRoute(msgspec.Struct, frozen=True):
    """A route with its addons in order of running, those that are off included."""

    table: RouteTable
    repairs: tuple[Repair, ...]


def resolve(config: Config, *, observe: bool = False) -> tuple[ResolvedRoute, ...]:
    """Return the routes with their addons. Raises ConfigError.

    With `observe`, here or in the configuration, an addon in mode `repair` runs in `observe`.
    """
    shared = {
        reference: _settings(reference, table, f"{config.source}: addon.{reference}")
        for reference, table in config.addon.items()
    }
    return tuple(
        _resolved(route, f"{config.source}: route {number}: ", shared, observe or config.observe)
        for number, route in enumerate(config.routes, 1)
    )


def engine(
    config: Config,
    *,
    counts: Counts | None = None,
    sink: Sink | None = None,
    observe: bool = False,
    secret: bytes = b"",
) -> Engine:
    """Return the engine of a process. Raises ConfigError.

    `secret` keys the names of conversations. Processes that share a store share it; without one it
    is new for each process.
    """
    return Engine(
        routes(config, observe=observe),
        registry.dialects(),
        secret=secret or os.urandom(SECRET_BYTES),
        counts=counts,
        sink=sink,
        limits=limits(config),
    )


def routes(config: Config, *, observe: bool = False) -> list[Route]:
    """Return the routes as an engine takes them. Raises ConfigError."""
    return [
        Route(
            name=route.table.name,
            path=route.table.path,
            upstream=route.table.upstream,
            addons=tuple((repair.addon, repair.mode) for repair in route.repairs),
        )
        for route in resolve(config, observe=observe)
    ]


def limits(config: Config) -> Limits:
    """Return the bounds of an engine."""
    return Limits(max_frame_bytes=config.limits.max_frame_bytes)


def _resolved(
    route: RouteTable, place: str, shared: Mapping[str, dict[str, object]], observe: bool
) -> ResolvedRoute:
    references = _default_addons(f"{place}addons") if route.addons is None else route.addons
    for reference in route.addon:
        if reference not in references:
            _load(reference, f"{place}addon.{reference}")
            raise ConfigError(
                f"{place}addon.{reference}: not an addon of this route"
                f"{near_or_all(reference, references)}"
            )
    repairs: list[Repair] = []
    for reference in references:
        addon = _load(reference, f"{place}addons")
        if any(repair.addon.name == addon.name for repair in repairs):
            raise ConfigError(f'{place}addons: found "{addon.name}" twice, expected it once')
        own = route.addon.get(reference, {})
        at = f"{place}addon.{reference}"
        settings = shared.get(reference, {}) | _settings(reference, own, at)
        repairs.append(_repair(reference, addon, settings, at, observe))
    return ResolvedRoute(route, tuple(repairs))


def _default_addons(at: str) -> tuple[str, ...]:
    try:
        return registry.addon_names()
    except ConfigError as error:
        raise ConfigError(f"{at}: {error}") from error


def _load(reference: str, at: str) -> type[AnyAddon]:
    try:
        return registry.load_addon(reference)
    except ConfigError as error:
        raise ConfigError(f"{at}: {error}") from error


def _settings(reference: str, table: Mapping[str, object], at: str) -> dict[str, object]:
    """Check one table of an addon: its mode, and the options the addon declares."""
    addon = _load(reference, at)
    options = {key: value for key, value in table.items() if key != "mode"}
    settings = checked_table(options, addon.Options, f"{at}.", also=("mode",))
    if "mode" in table:
        settings["mode"] = checked(table["mode"], Mode, f"{at}.mode")
    return settings


def _repair(
    reference: str,
    addon: type[AnyAddon],
    settings: dict[str, object],
    at: str,
    observe: bool,
) -> Repair:
    mode = Mode(str(settings.pop("mode", Mode.REPAIR)))
    try:
        options = msgspec.convert(settings, addon.Options)
        instance = addon(options)  # type: ignore[call-arg]  # the contract of an addon's class
    except (msgspec.ValidationError, ValueError) as error:
        text = str(error)
        raise ConfigError(f"{at}: {text[:1].lower()}{text[1:]}") from error
    if observe and mode is Mode.REPAIR:
        mode = Mode.OBSERVE
    return Repair(reference, instance, mode, options)
