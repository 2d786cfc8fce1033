"""`redact`: take secrets out of a capture that is there already."""

from midstream.cli.parser import Verbs


def add_verbs(verbs: Verbs) -> None:
    """Nothing yet."""
