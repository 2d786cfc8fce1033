"""`export` and `import`: HAR, mitmproxy flows, JSON lines."""

from midstream.cli.parser import Verbs


def add_verbs(verbs: Verbs) -> None:
    """Nothing yet."""
