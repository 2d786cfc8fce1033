"""midstream: an intercepting proxy that mends agent streams on the wire."""

__version__ = "0.1.0"
