"""`grep` and `cut`: find frames, and keep a part of a capture."""

from midstream.cli.parser import Verbs


def add_verbs(verbs: Verbs) -> None:
    """Nothing yet."""
