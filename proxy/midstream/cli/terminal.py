"""Colour: only in a terminal, and never where NO_COLOR is set."""

import os
import sys


def bold(text: str) -> str:
    """Return a text set in bold where the output shows it."""
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR"):
        return text
    return f"\x1b[1m{text}\x1b[0m"
