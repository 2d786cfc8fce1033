"""`why`: what was done to one frame, on which evidence, or why it was left alone."""

from midstream.cli.parser import Verbs


def add_verbs(verbs: Verbs) -> None:
    """Nothing yet."""
