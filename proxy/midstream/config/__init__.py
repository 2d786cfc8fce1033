"""Configuration: flags over environment over file over defaults. Start with `load`."""

from midstream.config.load import load
from midstream.config.schema import (
    CaptureTable,
    Config,
    LimitsTable,
    RouteTable,
    SecurityTable,
    TlsTable,
)
from midstream.config.values import Address, parse_address

__all__ = [
    "Address",
    "CaptureTable",
    "Config",
    "LimitsTable",
    "RouteTable",
    "SecurityTable",
    "TlsTable",
    "load",
    "parse_address",
]
