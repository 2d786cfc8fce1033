"""The configuration: one struct for each table of the file, and one for the result.

The keys are fixed: keys may be added, never renamed. `Tables` is exactly what a file may hold;
`Config` is what comes out of file, environment and flags. Each description says what the key is
for and in which unit.
"""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

MAX_ROUTES = 32
MAX_SECONDS = 86_400

type AddonTables = dict[str, dict[str, object]]
"""The tables `[addon.NAME]` as written: their options belong to the addon, which types them."""


class RouteTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One `[[route]]`. `addons` is None where the file names none: then every known repair runs."""

    name: Annotated[str, Meta(description="a metric label, unique")] = "default"
    path: Annotated[str, Meta(description="a path; `*` at its end stands for anything")] = "/*"
    upstream: Annotated[str, Meta(description="an http:// or https:// URL without a path")] = ""
    addons: Annotated[
        tuple[str, ...] | None, Meta(description="the addons, in order of running")
    ] = None
    addon: Annotated[AddonTables, Meta(description="addon options for this route only")] = (
        msgspec.field(default_factory=dict)
    )


class CaptureTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[capture]`: nothing is captured while `dir` is empty."""

    dir: Annotated[str, Meta(description="the folder of the capture files")] = ""
    redact: Annotated[
        tuple[str, ...], Meta(description="headers whose values are removed before recording")
    ] = ("authorization", "cookie", "set-cookie", "x-api-key")
    redact_paths: Annotated[
        tuple[str, ...],
        Meta(
            description="JSON paths whose values are removed, such as `user.email`, `items[*].key`"
        ),
    ] = ()
    content: Annotated[
        Literal["full", "hash", "none"],
        Meta(description="message text: kept, replaced by a keyed hash, or left out"),
    ] = "full"
    keep: Annotated[
        Literal["all", "mended", "errors", "ring"],
        Meta(
            description=(
                "what is written: everything, exchanges that were mended, those that failed, "
                "or only what is asked for"
            )
        ),
    ] = "all"
    routes: Annotated[tuple[str, ...], Meta(description="only these routes; empty: all")] = ()
    paths: Annotated[
        tuple[str, ...], Meta(description="only these paths, `*` at the end; empty: all")
    ] = ()
    sample: Annotated[
        float, Meta(gt=0, le=1, description="the share of exchanges that is looked at")
    ] = 1.0
    ring_bytes: Annotated[
        int, Meta(ge=1 << 16, le=1 << 32, description="what may wait in memory to be written")
    ] = 16 << 20
    ring_seconds: Annotated[
        float, Meta(gt=0, le=MAX_SECONDS, description="how long it may wait there")
    ] = 300
    segment_bytes: Annotated[
        int, Meta(ge=1 << 16, le=1 << 40, description="a segment file grows to about this size")
    ] = 64 << 20
    segment_seconds: Annotated[
        float, Meta(gt=0, le=30 * MAX_SECONDS, description="and for at most this long")
    ] = 3600
    total_bytes: Annotated[
        int, Meta(ge=1 << 16, le=1 << 50, description="the oldest segments go over this size")
    ] = 8 << 30
    min_free_bytes: Annotated[
        int, Meta(ge=0, le=1 << 50, description="nothing is written with less free disk")
    ] = 512 << 20
    sync: Annotated[
        Literal["none", "interval", "segment"],
        Meta(description="when data is forced to the disk: never, every second, with each segment"),
    ] = "interval"


class LimitsTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[limits]`."""

    max_frame_bytes: Annotated[
        int, Meta(ge=1, le=1 << 30, description="the largest frame that is read, in bytes")
    ] = 16_777_216
    max_header_seconds: Annotated[
        float, Meta(gt=0, le=MAX_SECONDS, description="how long a request head may take")
    ] = 10
    max_connections: Annotated[
        int, Meta(ge=1, le=1_000_000, description="client connections at once")
    ] = 10_000
    drain_seconds: Annotated[
        float, Meta(ge=0, le=MAX_SECONDS, description="from the signal to the end of the process")
    ] = 30


class SecurityTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[security]`: without `allowed_origins` the Origin passes untouched, nothing is refused."""

    allowed_origins: Annotated[
        tuple[str, ...], Meta(description="origins that may connect; empty: any")
    ] = ()
    trusted_proxies: Annotated[
        tuple[str, ...], Meta(description="addresses whose X-Forwarded-* is believed")
    ] = ()
    admin_token_file: Annotated[
        str, Meta(description="a file with the token that opens the inspector page")
    ] = ""


class TlsTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[tls]`: PEM files. Upstreams are always verified: against `upstream_ca`, or the system's."""

    cert: Annotated[str, Meta(description="listen with TLS: the certificate chain")] = ""
    key: Annotated[str, Meta(description="listen with TLS: the private key")] = ""
    upstream_ca: Annotated[str, Meta(description="the CA that upstreams are verified against")] = ""


class Tables(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a configuration file may hold."""

    listen: Annotated[str, Meta(description="where clients connect")] = "127.0.0.1:8080"
    admin: Annotated[str, Meta(description="where metrics and health are served")] = (
        "127.0.0.1:9464"
    )
    store: Annotated[str, Meta(description="where conversations are kept")] = "memory:"
    store_key_file: Annotated[
        str,
        Meta(description="a file of 64 hex digits that stored conversations are encrypted with"),
    ] = ""
    store_ttl_seconds: Annotated[
        float, Meta(ge=1, le=365 * MAX_SECONDS, description="how long an idle conversation is kept")
    ] = MAX_SECONDS
    store_max_conversation_bytes: Annotated[
        int, Meta(ge=1 << 10, le=1 << 28, description="a larger conversation is not stored")
    ] = 4 << 20
    workers: Annotated[int, Meta(ge=1, le=1024, description="processes")] = 1
    routes: Annotated[
        tuple[RouteTable, ...], Meta(description="where paths lead, first match first")
    ] = msgspec.field(default=(), name="route")
    addon: Annotated[AddonTables, Meta(description="addon options for every route")] = (
        msgspec.field(default_factory=dict)
    )
    capture: CaptureTable = CaptureTable()
    limits: LimitsTable = LimitsTable()
    security: SecurityTable = SecurityTable()
    tls: TlsTable = TlsTable()


class Config(Tables, frozen=True, forbid_unknown_fields=True):
    """The configuration of a process.

    `observe` turns every addon to observe mode. `source` names the file in errors that are found
    later than here.
    """

    observe: Annotated[bool, Meta(description="count repairs, change nothing")] = False
    source: str = "configuration"
