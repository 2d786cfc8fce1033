"""Settings of the repair."""

from enum import StrEnum
from typing import Annotated

import msgspec
from msgspec import Meta


class Server(StrEnum):
    """What the server is: `unknown` leaves it to what the server shows."""

    UNKNOWN = "unknown"
    THINK = "think"
    AICHAT = "aichat"


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which ids are the server's own, and how much is remembered of a chat."""

    prefixes: Annotated[
        tuple[Annotated[str, Meta(min_length=1)], ...],
        Meta(description="how the ids of messages begin that the server makes up"),
    ] = ("compaction_",)
    server: Annotated[
        Server,
        Meta(
            description="think: makes such messages up; aichat: stores whatever is uploaded, and "
            "deletes what is missing, so nothing is touched; unknown: what it shows decides"
        ),
    ] = Server.UNKNOWN
    max_remembered_bytes: Annotated[
        int, Meta(ge=0, description="of a chat's last list, and of the messages learned from it")
    ] = 262_144
    max_remembered_ids: Annotated[
        int, Meta(ge=1, description="ids with such a prefix that are remembered of a chat")
    ] = 1024
