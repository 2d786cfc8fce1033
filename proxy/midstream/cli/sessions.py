"""`sessions`: session databases that hold compaction rows."""

from midstream.cli.parser import Verbs


def add_verbs(verbs: Verbs) -> None:
    """Nothing yet."""
