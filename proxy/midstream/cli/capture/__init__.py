"""`midstream capture`: one file for each of its verbs."""

from midstream.cli.capture import export, listing, look, redact, search, why
from midstream.cli.parser import Verbs, add_group

GROUP = "capture"


def add_verbs(verbs: Verbs) -> None:
    inner = add_group(verbs, GROUP, "read, explain and convert captures")
    for module in (listing, look, why, search, redact, export):
        module.add_verbs(inner)
