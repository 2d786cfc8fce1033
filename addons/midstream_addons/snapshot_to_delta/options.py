"""The settings of `snapshot-to-delta`."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

Milliseconds = Annotated[int, Meta(ge=0, le=10_000)]
Bits = Annotated[float, Meta(gt=0, le=40)]
Count = Annotated[int, Meta(ge=1)]


class Options(Struct, frozen=True, forbid_unknown_fields=True):
    """What the server sends, what the client shall get, and the bounds."""

    stream: Annotated[
        Literal["auto", "snapshot", "delta"],
        Meta(description="what the server sends: the text so far, new text, or to be found out"),
    ] = "auto"
    output: Annotated[
        Literal["delta", "snapshot", "annotate"],
        Meta(
            description="what the client gets: new text, whole texts to replace the last one, or"
            " the updates as they came with the finding in metadata.streamMode"
        ),
    ] = "delta"
    append_false: Annotated[
        Literal["replace", "ignore"],
        Meta(description="an update of a known artifact without `append` replaces it, or appends"),
    ] = "replace"
    last_chunk: Annotated[
        Literal["pass", "trailer", "lookahead"],
        Meta(
            description="`lastChunk` as it came, on an empty update at the end of a mended"
            " artifact, or on the last update (each then waits for the next one)"
        ),
    ] = "trailer"
    status_text: Annotated[
        Literal["pass", "dedupe", "lift"],
        Meta(
            description="text in working statuses: passes; is said once, for clients that show it"
            " (an artifact that repeats it is emptied); or becomes an artifact, for all clients"
        ),
    ] = "pass"
    rewrite: Annotated[
        Literal["replace", "tail", "new_artifact", "error"],
        Meta(
            description="a snapshot that corrects what was said: replaces it, goes on from where"
            " they part, becomes an artifact of its own, or ends all edits of the artifact"
        ),
    ] = "replace"
    compact_task: Annotated[
        Literal["auto", "off"],
        Meta(description="whether repeated parts are taken out of tasks that are read whole"),
    ] = "auto"
    stamp: Annotated[
        bool, Meta(description="say metadata.streamMode=delta, for a second proxy behind this one")
    ] = False
    card: Annotated[
        Literal["rewrite", "pass"],
        Meta(description="whether the addresses in agent cards lead through the proxy"),
    ] = "rewrite"
    card_origins: Annotated[
        tuple[str, ...],
        Meta(description="other addresses that cards give for this upstream: https://host[:port]"),
    ] = ()
    card_grpc: Annotated[
        Literal["keep", "drop"],
        Meta(description="whether cards keep their gRPC interfaces, which pass by the proxy"),
    ] = "keep"
    hold_ms: Annotated[Milliseconds, Meta(description="how long an undecided update waits")] = 250
    lock_bits: Annotated[
        Bits, Meta(description="how much evidence decides that a server sends snapshots")
    ] = 8.0
    agg_min_chars: Annotated[
        Count, Meta(description="how long a repeat in a stream of new text is at least")
    ] = 16
    max_lane_bytes: Annotated[
        Count, Meta(description="text remembered of one artifact; a longer one passes")
    ] = 8 << 20
    max_artifacts: Annotated[
        Count, Meta(description="artifacts remembered of one exchange; further ones pass")
    ] = 256
    max_text_bytes: Annotated[
        Count, Meta(description="text remembered of one exchange; what is beyond it passes")
    ] = 32 << 20
