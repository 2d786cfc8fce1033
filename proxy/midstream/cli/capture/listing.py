"""`ls`, `verify` and `stats`: what there is, whether it is whole, and how much of what."""

from midstream.cli.parser import Verbs


def add_verbs(verbs: Verbs) -> None:
    """Nothing yet."""
