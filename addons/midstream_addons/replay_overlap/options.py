"""Settings of the repair."""

from typing import Annotated, Literal

import msgspec


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The times were tried live with real servers and clients, at 0 and 40 ms of latency."""

    client: Annotated[
        Literal["r1", "r2", "r3", "observer", "unknown"],
        msgspec.Meta(
            description="how the chat client resumes: r1 (ai < 6.0.90), r2 (ai 6.0.90 - 6.0.249), "
            "r3 (ai >= 6.0.250 and 7.0.62), observer (the client never asks), or unknown"
        ),
    ] = "unknown"
    ask_wait_ms: Annotated[
        int,
        msgspec.Meta(ge=0, description="how long an offer waits for the client to ask for it"),
    ] = 250
    ack_wait_ms: Annotated[
        int,
        msgspec.Meta(ge=0, description="how long a reset may stand before it is undone"),
    ] = 400
    burst_wait_ms: Annotated[
        int,
        msgspec.Meta(ge=0, description="how long a replay may take to arrive whole"),
    ] = 5_000
    heal_wait_ms: Annotated[
        int,
        msgspec.Meta(ge=0, description="how long a reconnected socket may stay quiet unhealed"),
    ] = 30
    unproven_end_ms: Annotated[
        int,
        msgspec.Meta(
            ge=0, description="how long after a stream's end a lost socket may have missed it"
        ),
    ] = 60_000
    relist_wait_ms: Annotated[
        int,
        msgspec.Meta(ge=0, description="when the closing list is said again after the end"),
    ] = 200
    refetch_wait_ms: Annotated[
        int,
        msgspec.Meta(ge=0, description="when the server's messages are asked for again"),
    ] = 120
    max_fetches: Annotated[
        int,
        msgspec.Meta(ge=1, description="how often they are asked for while they lag behind"),
    ] = 6
    max_transcript_bytes: Annotated[
        int,
        msgspec.Meta(ge=0, description="how much of one chat is remembered"),
    ] = 8 << 20
