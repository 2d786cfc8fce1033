"""Runs the frames of one exchange through its addons, in order, and fails open.

Rules of this file:
- An addon that raises, or answers with what it never declared, is skipped for that frame: whatever
  it held leaves as it came, then the frame. Three failures in one exchange bench it for the rest.
- A verdict is checked before anything is changed, so that a bad one cannot lose a frame.
- Held frames stay in order and within bounds of bytes and time. A bound reached first asks the
  addon (`on_overdue`), then lets the rest go.
- Frames that an addon sends paced leave in slices; what it sends later to the same side waits
  behind them, so that pacing never reorders. Over the bound of bytes they all leave at once.
- In observe mode the original goes on whatever the verdict says, and no ask or hold is carried out.
- What leaves one addon is shown to the ones behind it, whichever side it goes to; of an HTTP
  response, to those whose dialect reads it.
"""

import logging
import traceback
from collections.abc import Callable, Collection, Iterable, Sequence

import msgspec

from midstream.core import metrics
from midstream.core.addon import (
    KEEP,
    Answer,
    AnyAddon,
    Ask,
    Compared,
    Context,
    Ending,
    Facts,
    Mode,
    Pace,
    Reconnected,
    Skipped,
    Verdict,
)
from midstream.core.errors import Error, VerdictError
from midstream.core.exchange import Exchange, ResponseHead
from midstream.core.frames import Frame, Side
from midstream.core.link import NS_PER_MS, Link
from midstream.core.metrics import Counts
from midstream.core.verdicts import check_frames, check_words, taken_by

logger = logging.getLogger(__name__)

MAX_FAILURES = 3
MAX_LOGGED_CALLS = 6
MAX_PENDING_ASKS = 64
"""How many asks of one addon may be without an answer in one exchange."""


class Bounds(msgspec.Struct, frozen=True):
    """How much and how long an addon may hold, and how paced frames leave.

    `max_hold_bytes` bounds the held and the paced frames of one addon, each for itself; every frame
    counts 128 bytes beside its own.
    """

    max_hold_bytes: int = 16 << 20
    max_hold_ms: int = 10_000
    pace: Pace = Pace()


class Pending(msgspec.Struct, frozen=True):
    """An ask on its way to the host; `number` names it in the answer."""

    number: int
    ask: Ask


type Hook = Callable[[AnyAddon, Context[object, object]], Verdict]


class Chain:
    """The addons of one exchange with their states. Frames in, frames out.

    `rules` and `skips` are the (addon, word) pairs counted since they were last cleared, `why` the
    facts of those that have any.
    """

    def __init__(
        self,
        exchange: Exchange,
        addons: Iterable[tuple[AnyAddon, Mode, object]],
        counts: Counts,
        bounds: Bounds | None = None,
    ) -> None:
        self._exchange = exchange
        self._counts = counts
        self._bounds = bounds or Bounds()
        self._links: list[Link] = []
        self._waiting: dict[int, tuple[int, Ask]] = {}
        self._asked = 0
        self._ended: set[Side] = set()
        self.asks: list[Pending] = []
        self.rules: list[tuple[str, str]] = []
        self.skips: list[tuple[str, str]] = []
        self.why: list[tuple[str, str, Facts]] = []
        for addon, mode, conversation in addons:
            self._add(addon, mode, conversation)

    @property
    def addons(self) -> list[str]:
        """The names of the addons, in their order."""
        return [link.addon.name for link in self._links]

    @property
    def modes(self) -> list[tuple[str, str]]:
        """The names and modes of the addons, in their order."""
        return [(link.addon.name, link.mode.value) for link in self._links]

    @property
    def deadline_ns(self) -> int | None:
        """When `wake` is next due, or None."""
        waiting = [link for link in self._links if link.held_bytes or link.queued_bytes]
        if not waiting:
            return None
        return min(link.due_ns(self._bounds.max_hold_ms) for link in waiting)

    def open(self, now_ns: int) -> list[Frame]:
        """Show the exchange to every addon before its first frame."""
        left: list[Frame] = []
        for index, link in enumerate(self._links):
            out = self._call(link, lambda addon, context: addon.on_open(context), now_ns)
            left += self._onward(index + 1, out, now_ns)
        return left

    def listen(self, names: Collection[str], response: ResponseHead, now_ns: int) -> bool:
        """Show what the server sends from here on to those of these addons only that want it.

        Tell whether there are any.
        """
        for link in self._links:
            listens = link.addon.name in names and self._wants(link, response, now_ns)
            link.deaf_to = None if listens else Side.SERVER
        return any(link.deaf_to is None for link in self._links)

    def run(self, frame: Frame, now_ns: int) -> list[Frame]:
        """Run one received frame through the addons and return what leaves now, in order."""
        return self._onward(0, [frame], now_ns)

    def answer(self, number: int, answer: Answer, now_ns: int) -> list[Frame]:
        """Bring the answer to an ask to the addon that asked; an unknown number is no one's."""
        index, ask = self._waiting.pop(number, (0, None))
        if ask is None:
            return []
        link = self._links[index]
        link.asking -= 1
        out = self._call(link, lambda addon, context: addon.on_answer(ask, answer, context), now_ns)
        return self._onward(index + 1, out, now_ns)

    def wake(self, now_ns: int) -> list[Frame]:
        """Let the next slice of paced frames leave, and look after holds that took too long."""
        oldest_ns = now_ns - self._bounds.max_hold_ms * NS_PER_MS
        left: list[Frame] = []
        for index, link in enumerate(self._links):
            out = link.slices(self._bounds.pace, now_ns)
            if link.held_since and link.held_since[0] <= oldest_ns:
                out += self._overdue(link, now_ns)
            left += self._onward(index + 1, out, now_ns)
        return left

    def end(self, side: Side, now_ns: int) -> list[Frame]:
        """Take the end of what `side` sends: nothing of it stays here. Once for each side."""
        if side in self._ended:
            return []
        ended = self._ended | {side}
        left: list[Frame] = []
        for index, link in enumerate(self._links):
            out = self._call(link, lambda addon, context: addon.on_end(side, context), now_ns)
            out += link.release(ended)
            left += self._onward(index + 1, out, now_ns)
        self._ended = ended
        return left

    def close(self, ending: Ending, now_ns: int) -> None:
        """Tell every addon that the exchange is over."""
        for link in self._links:
            link.context.now_ns = now_ns
            try:
                link.addon.on_close(ending, link.context)
            except Exception as error:  # noqa: BLE001 - fail open
                self._failed(link, error)

    def skip(self, name: str, reason: str) -> None:
        """Count that an addon did not act, for one of its own reasons or one of the core's."""
        self.skips.append((name, reason))
        self._counts.add(metrics.SKIPPED, (name, reason))

    # --- running the addons ---------------------------------------------------------------------

    def _add(self, addon: AnyAddon, mode: Mode, conversation: object) -> None:
        if mode is Mode.OFF:
            return
        try:
            self._links.append(Link(addon, mode, conversation, self._exchange))
        except Exception as error:  # noqa: BLE001 - fail open: it is left out
            self._counts.add(metrics.ERRORS, (addon.name,))
            log_failure(addon.name, error)

    def _wants(self, link: Link, response: ResponseHead, now_ns: int) -> bool:
        link.context.now_ns = now_ns
        try:
            return link.addon.wants(response, link.context)
        except Exception as error:  # noqa: BLE001 - fail open
            self._failed(link, error)
            return False

    def _onward(self, start: int, frames: list[Frame], now_ns: int) -> list[Frame]:
        """Run frames through the addons from `start` on. This is the path of every frame."""
        for link in self._links[start:] if start else self._links:
            if not frames:
                break
            context, judge = link.context, link.addon.on_frame
            context.now_ns = now_ns
            out: list[Frame] = []
            for frame in frames:
                if link.benched or frame.sender is link.deaf_to:
                    out.append(frame)
                    continue
                try:
                    verdict = judge(frame, context)
                    if verdict is KEEP and not link.queued_bytes:
                        out.append(frame)
                    else:
                        out += self._apply(link, verdict, frame, now_ns)
                except Exception as error:  # noqa: BLE001 - fail open
                    out += self._fail_open(link, error)
                    out.append(frame)
            frames = out
        return frames

    def _call(self, link: Link, hook: Hook, now_ns: int) -> list[Frame]:
        """Call a hook that has no frame at hand."""
        if link.benched:
            return []
        link.context.now_ns = now_ns
        try:
            return self._apply(link, hook(link.addon, link.context), None, now_ns)
        except Exception as error:  # noqa: BLE001 - fail open
            return self._fail_open(link, error)

    def _overdue(self, link: Link, now_ns: int) -> list[Frame]:
        self.skip(link.addon.name, "hold_bound")
        out = self._call(link, lambda addon, context: addon.on_overdue(context), now_ns)
        return out + link.leave(link.settle(link.held), self._bounds.pace, now_ns)

    def _fail_open(self, link: Link, error: Exception) -> list[Frame]:
        self._failed(link, error)
        return link.release()

    def _failed(self, link: Link, error: Exception) -> None:
        link.failures += 1
        self._counts.add(metrics.ERRORS, (link.addon.name,))
        if link.failures == 1:
            log_failure(link.addon.name, error)
        if link.failures == MAX_FAILURES:
            link.benched = True
            logger.warning("addon %s is benched for the rest of an exchange", link.addon.name)

    # --- carrying out a verdict -----------------------------------------------------------------

    def _apply(self, link: Link, verdict: Verdict, frame: Frame | None, now_ns: int) -> list[Frame]:
        """Carry out a verdict. Raises before anything is changed if the verdict makes no sense."""
        check_words(link, verdict)
        if link.mode is Mode.OBSERVE:
            self._count(link, verdict)
            return [] if frame is None else [frame]
        settled, leaving = check_frames(link, verdict, frame)
        if link.asking + len(verdict.asks) > MAX_PENDING_ASKS:
            raise VerdictError(f"asks too much, {MAX_PENDING_ASKS} asks may be pending")
        self._count(link, verdict)
        link.settle(settled)
        if frame is not None and verdict.hold:
            link.hold(frame, now_ns)
        if verdict.rule:
            self._count_removed(link, taken_by(verdict, settled, frame), leaving)
        self._ask(link, verdict.asks)
        out = link.leave(leaving, self._bounds.pace, now_ns, paced=verdict.paced)
        if link.queued_bytes > self._bounds.max_hold_bytes:
            out += link.hurry()
        if verdict.hold and link.held_bytes > self._bounds.max_hold_bytes:
            out += self._overdue(link, now_ns)
        return out

    def _count(self, link: Link, verdict: Verdict) -> None:
        name = link.addon.name
        if verdict.rule:
            self.rules.append((name, verdict.rule))
            if verdict.why:
                self.why.append((name, verdict.rule, verdict.why))
            words = (self._exchange.route, name, verdict.rule, link.mode.value)
            self._counts.add(metrics.REPAIRS, words, verdict.repairs)
        for note in verdict.notes:
            if isinstance(note, Skipped):
                self.skip(name, note.reason)
                if verdict.why:
                    self.why.append((name, note.reason, verdict.why))
            elif isinstance(note, Reconnected):
                self._counts.add(metrics.RECONNECTS, (self._exchange.route, note.result))
            elif isinstance(note, Compared):
                labels = (self._exchange.route, note.state)
                self._counts.add(metrics.HISTORY_PAIRS, labels, note.pairs)
            else:
                for state, items in zip(metrics.PREFIX_STATES, (note.kept, note.sent), strict=True):
                    labels = (self._exchange.route, state)
                    self._counts.add(metrics.HISTORY_PREFIX, labels, items)

    def _count_removed(self, link: Link, taken: Sequence[Frame], leaving: Sequence[Frame]) -> None:
        left = dict.fromkeys(Side, 0)
        for frame in taken:
            left[frame.sender] += len(frame.wire)
        for frame in leaving:
            left[frame.sender] -= len(frame.wire)
        removed = sum(size for size in left.values() if size > 0)
        if removed:
            labels = (self._exchange.route, link.addon.name)
            self._counts.add(metrics.REMOVED_BYTES, labels, removed)

    def _ask(self, link: Link, asks: Sequence[Ask]) -> None:
        for ask in asks:
            self._asked += 1
            link.asking += 1
            self._waiting[self._asked] = (self._links.index(link), ask)
            self.asks.append(Pending(self._asked, ask))


def log_failure(name: str, error: Exception) -> None:
    """Log where an addon failed, without the text of a foreign error: it may quote a payload.

    No traceback: formatting one takes 1.4 ms, this 8 us, and a broken addon fails in each exchange.
    """
    what = f"{error}" if isinstance(error, Error) else type(error).__name__
    where = [
        f"{frame.f_globals.get('__name__')}:{line}"
        for frame, line in traceback.walk_tb(error.__traceback__)
    ]
    logger.error("addon %s failed: %s at %s", name, what, " > ".join(where[-MAX_LOGGED_CALLS:]))
