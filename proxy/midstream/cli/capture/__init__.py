"""`midstream capture`: one file for each of its verbs."""

from midstream.cli.capture import (
    counting,
    export,
    following,
    listing,
    look,
    redact,
    search,
    why,
)
from midstream.cli.parser import Verbs, add_group

GROUP = "capture"


def add_verbs(verbs: Verbs) -> None:
    inner = add_group(
        verbs,
        GROUP,
        "read, explain and convert captures",
        "midstream capture ls captures\n"
        "midstream capture show captures/run-000001.cap --mended --diff\n"
        "midstream capture why captures/run-000001.cap 3:17",
    )
    for module in (listing, counting, look, why, search, following, redact, export):
        module.add_verbs(inner)
