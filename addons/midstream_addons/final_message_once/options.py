"""The settings of `final-message-once`."""

from typing import Annotated, Literal

from msgspec import Meta, Struct


class Options(Struct, frozen=True, forbid_unknown_fields=True):
    """What becomes of a message, and of a task, that ends a stream and repeats the answer."""

    final_message: Annotated[
        Literal["dedupe", "keep", "drop", "fallback_only"],
        Meta(
            description="the message of a completed status: goes if it repeats the answer, stays,"
            " goes always, or goes if any answer was streamed"
        ),
    ] = "dedupe"
    final_task: Annotated[
        Literal["pass", "status", "dedupe"],
        Meta(
            description="a task that ends the stream: passes, leaves as its bare status, or leaves"
            " without what was streamed"
        ),
    ] = "pass"
    max_artifacts: Annotated[
        int, Meta(ge=1, description="texts remembered of one task; with more, its end passes")
    ] = 256
    max_tasks: Annotated[
        int, Meta(ge=1, description="tasks remembered of one exchange that are not over")
    ] = 64
