"""What the core needs to know of a wire format.

A dialect is one file in `midstream/dialects/`: an object with these members, and beside it pure
functions that read frames. It recognises its traffic from heads; from frames, its readers return
None for whatever is not theirs.
"""

from typing import Protocol

from midstream.core.exchange import RequestHead, ResponseHead


class Dialect(Protocol):
    """A wire format."""

    @property
    def name(self) -> str: ...

    def reads(self, head: RequestHead) -> bool:
        """Tell whether this exchange may carry frames of the dialect.

        If so, its WebSocket messages are read, or its request body is collected up to the frame
        limit and read.
        """

    def reads_response(self, head: RequestHead, response: ResponseHead) -> bool:
        """Tell whether the response of such an exchange is read: event by event, or collected."""

    def conversation_path(self, head: RequestHead) -> str:
        """Return the path that names the conversation of this exchange, without a query."""
