"""The verbs that tell what there is: `check` and `addons`."""

import argparse
from typing import TYPE_CHECKING

from midstream.cli.parser import Verbs, add_verb
from midstream.cli.terminal import bold

if TYPE_CHECKING:
    from midstream.config import Config
    from midstream.wiring import ResolvedRoute

MODES = (
    ("off", "the addon does not run"),
    ("observe", "it counts what it would do, and every frame passes"),
    ("repair", "it mends"),
)
PLAIN_KEYS = (
    "listen", "admin", "store", "store_key_file", "store_ttl_seconds",
    "store_max_conversation_bytes", "workers", "observe",
)  # fmt: skip
TABLES = ("limits", "capture", "security", "tls")


def add_verbs(verbs: Verbs) -> None:
    parser = add_verb(
        verbs,
        "check",
        check,
        "validate a configuration and print what it amounts to",
        "midstream check --config midstream.toml",
    )
    parser.add_argument("--config", metavar="FILE", required=True, help="a TOML file")
    add_verb(
        verbs,
        "addons",
        addons,
        "list the addons with their rules, reasons and options",
        "midstream addons",
    )


def check(args: argparse.Namespace) -> int:
    from midstream import wiring
    from midstream.config import load

    config = load(args.config)
    routes = wiring.resolve(config)
    print(f"{config.source}: ok\n")
    _print_settings(config)
    for number, route in enumerate(routes):
        _print_route(route, routes[:number])
    _print_tables(config)
    return 0


def addons(args: argparse.Namespace) -> int:
    from midstream import registry

    print(bold("modes"))
    for mode, meaning in MODES:
        print(f"  {mode:<9}{meaning}")
    for name in registry.addon_names():
        print_addon(name)
    return 0


def print_addon(name: str) -> None:
    """Print what an addon is, what it counts, and what can be set."""
    import msgspec

    from midstream.config.wording import default_of, description, expected, shown
    from midstream.registry import load_addon

    addon = load_addon(name)
    print(f"\n{bold(name)}")
    for line in (addon.__doc__ or "").strip().splitlines()[:1]:
        print(f"  {line}")
    print(f"  dialects: {', '.join(addon.dialects)}")
    for label in ("rules", "reasons"):
        declared: tuple[str, ...] = getattr(addon, label)
        print(f"  {label}:" + ("" if declared else " none"))
        for word in declared:
            print(f"    {word:<18}{addon.meanings.get(word, '')}".rstrip())
    print("  options:")
    words = [f'"{mode}"' for mode, _ in MODES]
    print(f'    mode: one of {", ".join(words)} = "repair"')
    for field in msgspec.structs.fields(addon.Options):
        default = default_of(field)
        ending = "" if default is msgspec.NODEFAULT else f" = {shown(default)}"
        print(f"    {field.encode_name}: {expected(field.type)}{ending}")
        if text := description(field.type):
            print(f"        {text}")


def _print_settings(config: "Config") -> None:
    from midstream.config.wording import shown

    for key in PLAIN_KEYS:
        print(f"{key} = {shown(getattr(config, key))}")


def _print_route(route: "ResolvedRoute", earlier: tuple["ResolvedRoute", ...]) -> None:
    from midstream.config.wording import shown

    table = route.table
    print(f"\n{bold(f'route {table.name}')}: {table.path} -> {table.upstream}")
    for other in earlier:
        if _covers(other.table.path, table.path):
            print(
                f"  note: never reached, route {other.table.name} "
                f"matches {other.table.path} before it"
            )
            break
    if not route.repairs:
        print("  no addons: everything passes as it came")
    width = max((len(repair.reference) for repair in route.repairs), default=0)
    for number, repair in enumerate(route.repairs, 1):
        print(f"  {number}. {repair.reference:<{width}}  {repair.mode}")
        for key, value in _values(repair.options):
            print(f"       {key} = {shown(value)}")


def _print_tables(config: "Config") -> None:
    from midstream.config.wording import shown

    for name in TABLES:
        print(f"\n{bold(name)}")
        for key, value in _values(getattr(config, name)):
            print(f"  {key} = {shown(value)}")


def _values(table: object) -> list[tuple[str, object]]:
    import msgspec

    fields = msgspec.structs.fields(table)  # type: ignore[arg-type]  # a Struct, named at run time
    return [(field.encode_name, getattr(table, field.name)) for field in fields]


def _covers(pattern: str, later: str) -> bool:
    """Tell whether all that a later pattern matches is matched by an earlier one."""
    if pattern.endswith("*"):
        return later.removesuffix("*").startswith(pattern[:-1])
    return later == pattern
