"""One offer of a running stream, and the form in which its replay goes to a socket."""

from enum import StrEnum

import msgspec

from midstream.dialects.cloudflare_transcript import Stream


class Form(StrEnum):
    """How a replay is rewritten.

    BASELINE: the message is set back to its baseline, and the replay extends it. REBUILD: the
    message is emptied, and the replay builds it whole, baseline first. OBSERVED: as BASELINE, but
    the client is told that nothing is to be resumed, so that its own observer takes the replay.
    PASSED: not at all.
    """

    BASELINE = "baseline"
    REBUILD = "rebuild"
    OBSERVED = "observed"
    PASSED = "passed"


class Mended(msgspec.Struct):
    """The form in which replays of a stream go to this socket.

    `is_muted` tells that the client has let an offer of it go by: the server takes the socket for
    one that resumed, for the proxy has ACKed.
    """

    form: Form
    stream: Stream | None
    is_muted: bool = False


class Phase(StrEnum):
    """Where an offer stands. See the table in `offer.py`."""

    FETCHED = "fetched"
    SENT = "sent"


class Offer(msgspec.Struct):
    """An offer of a running stream that the proxy has taken on the client's behalf.

    The offer and every frame of the stream that came since are held by the chain, in order. Where
    the client has let the offer go by and ACKs late, there is no offer to hold, and `form` is what
    it was told in. `chats` is how many turns the client had begun by then. `least_bytes` is
    how much text the server's messages must hold at the end.
    """

    stream: str
    number: int
    chats: int
    phase: Phase = Phase.FETCHED
    form: Form | None = None
    is_late: bool = False
    is_learning: bool = False
    is_whole: bool = False
    is_due: bool = False
    is_acked: bool = False
    has_replayed: bool = False
    has_early_end: bool = False
    is_fetching: bool = False
    fetches: int = 0
    least_bytes: int = 0
    mended: Stream | None = None

    @property
    def is_waiting(self) -> bool:
        """Whether nothing is held of it yet: the client ACKed late, the replay is on its way."""
        return self.is_late and not self.has_replayed and not self.has_early_end
