"""`show` and `tail`: the frames of a capture, one line each."""

from midstream.cli.parser import Verbs


def add_verbs(verbs: Verbs) -> None:
    """Nothing yet."""
