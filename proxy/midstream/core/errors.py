"""Every error midstream raises on purpose.

    Error                      one sentence with the numbers: what was found, what was allowed
      ConfigError              a usage or configuration error: exit code 2
      WireError                bytes that cannot be read: the exchange goes on unread (BYPASS)
        FrameTooLarge
        BadEncoding
      EditError                a document that cannot be edited: the frame passes as it came
      VerdictError             a verdict that makes no sense: the frame passes as it came
      UpstreamError            the gateway could not reach its upstream: 502 or 504
      StoreError               run on without saved state
      CaptureError             a capture that cannot be read, or that stopped being written

Anything else that comes out of an addon is a fault in it: logged once in an exchange, counted, and
the frame passes.
"""


class Error(Exception):
    """Base of all errors raised on purpose."""


class ConfigError(Error):
    """A usage or configuration error: names the file, the key and what was expected."""


class WireError(Error):
    """Bytes that cannot be read as what they claim to be."""


class FrameTooLarge(WireError):
    """A frame is larger than its limit."""


class BadEncoding(WireError):
    """A body whose content coding cannot be undone."""


class EditError(Error):
    """A JSON document that cannot be edited at the place asked for."""


class VerdictError(Error):
    """A verdict that breaks the contract of `core/addon.py`, found before anything was changed."""


class UpstreamError(Error):
    """The upstream cannot be reached or broke off before it answered."""


class StoreError(Error):
    """A store that cannot be read or written."""


class CaptureError(Error):
    """A capture file that is missing, foreign, newer than this reader, or damaged."""
