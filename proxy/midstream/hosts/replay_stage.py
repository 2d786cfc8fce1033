"""What a recorded server has to say: what answers a request, and when each frame is due."""

from collections.abc import Iterable

import msgspec

from midstream.adapters.capture_exchanges import Gathered, Moment
from midstream.core.frames import Side

MAX_WAIT_SECONDS = 3600.0
NS_PER_S = 1_000_000_000


class Step(msgspec.Struct, frozen=True):
    """A frame of the server, or its close: when, and how much the client must have said before."""

    after_s: float
    heard: int
    moment: Moment | None


class Stage:
    """The recorded exchanges, by what asks for them."""

    def __init__(self, exchanges: Iterable[Gathered], *, is_once: bool = False) -> None:
        self.exchanges = sorted(exchanges, key=lambda exchange: exchange.number)
        self._is_once = is_once
        self._played: dict[tuple[str, str, bool], int] = {}
        self._taken: set[int] = set()

    def find(self, method: str, target: str, *, is_websocket: bool) -> Gathered | None:
        """Return the exchange that answers a request, the next of its kind each time."""
        fitting = [
            exchange
            for exchange in self.exchanges
            if exchange.head.method == method
            and exchange.head.is_websocket is is_websocket
            and exchange.number not in self._taken
        ]
        exact = [exchange for exchange in fitting if exchange.head.target == target]
        path = target.partition("?")[0]
        found = exact or [exchange for exchange in fitting if exchange.head.path == path]
        if not found:
            return None
        if self._is_once:
            self._taken.add(found[0].number)
            return found[0]
        place = (method, target if exact else path, is_websocket)
        number = self._played.get(place, 0)
        self._played[place] = number + 1
        return found[min(number, len(found) - 1)]


def steps(exchange: Gathered) -> list[Step]:
    """Return what the server sent, each with its place in time and behind the client's frames.

    On a WebSocket that the server was the first to close, its close is the last step.
    """
    heard, began_ns, found = 0, exchange.began_ns, []
    for moment in exchange.frames:
        if moment.frame.sender is Side.CLIENT:
            heard += 1
            began_ns = moment.wall_ns
        else:
            found.append(Step(_between(began_ns, moment.wall_ns), heard, moment))
    if exchange.head.is_websocket and next(iter(exchange.closes), "") == Side.SERVER.value:
        found.append(Step(_between(began_ns, exchange.closed_ns), heard, None))
    return found


def _between(began_ns: int, ended_ns: int) -> float:
    return min(max(ended_ns - began_ns, 0) / NS_PER_S, MAX_WAIT_SECONDS)


def answer_s(exchange: Gathered) -> float:
    return _between(exchange.began_ns, exchange.answered_ns)


def is_broken(exchange: Gathered) -> bool:
    """Tell whether the server broke it off; a client that left is up to the client at hand."""
    told = exchange.closes.get("", {})
    lost = told.get("broken", told.get("gone", Side.SERVER.value))
    return exchange.ending == "aborted" and lost == Side.SERVER.value
