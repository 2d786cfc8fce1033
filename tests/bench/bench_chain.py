"""What a chain costs: the time of a message with addons that keep it, and without any.

    uv run python -m tests.bench.bench_chain

Prints microseconds a message and the ratio. It is no test: a shared machine decides the numbers.
"""

import timeit

from tests.support import SERVER, FakeAddon, FakeSink, Seen, session_of

from midstream.core.addon import KEEP, Context, Verdict
from midstream.core.frames import Frame, Kind
from midstream.core.session import Session

MESSAGES = 20_000
ROUNDS = 7
MESSAGE = b'{"type":"cf_agent_use_chat_response","id":"1","body":"{}","done":false}'


class Keeper(FakeAddon):
    """Keeps every frame."""

    def on_frame(self, frame: Frame, ctx: Context[Seen, Seen]) -> Verdict:
        return KEEP


def microseconds(session: Session) -> float:
    """Return the best time of a message through a session, in microseconds."""
    session.open(0)

    def one() -> None:
        session.receive_message(SERVER, Kind.WS_TEXT, MESSAGE, 1)

    return min(timeit.repeat(one, number=MESSAGES, repeat=ROUNDS)) / MESSAGES * 1e6


def main() -> None:
    bare = microseconds(session_of())
    print(f"no chain         {bare:6.2f} us")
    for count in (1, 2, 5):
        cost = microseconds(session_of(*[Keeper(f"keeper-{i}") for i in range(count)]))
        print(f"{count} addons keep    {cost:6.2f} us  x{cost / bare:.2f}")
    cost = microseconds(session_of(Keeper("a"), Keeper("b"), sink=FakeSink()))
    print(f"2 and a sink     {cost:6.2f} us  x{cost / bare:.2f}")


if __name__ == "__main__":
    main()
