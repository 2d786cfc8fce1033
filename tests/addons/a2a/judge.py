"""Judges what left for one stream: right, wrong, or wrong where nobody could have known.

A lane is **irreducible** when its frames carry no hint and are, letter for letter, what another
kind of server would have sent for another text, and the repair reads them by the rule that errs
least often. Excused is only that reading, in that direction:

`two_frames`    Two frames with text, the second begins with the first, and nothing in the stream
                tells the whole text. They are read as snapshots; two deltas are then misread.
                (`ha` `haha`; `1` `10`) But two equal frames under 4 bits are read as deltas
                (`a` `a`), so that a snapshot sent twice is misread.
`short_chain`   Three or more frames, each begins with the one before, and all that they share
                carries under 8 bits (about 2 a letter, 4 a wide character). They are read as
                snapshots; deltas are then misread. (`a` `a` `ab`)
`short_repeat`  The last frame repeats all of the text before, which has under 16 characters. It is
                read as a delta; the whole text once more is then misread. (`a` `b` `ab`)
`joined_chain`  Each frame begins with the one before, all that they share carries under 24 bits,
                and the final message is all of them joined: what deltas would have, and what
                servers send that join their snapshots. It is taken at its word. (`|` `|-` `||-`)
"""

import unicodedata
from collections.abc import Sequence
from itertools import pairwise

import msgspec
from tests.addons.a2a.client import Client, read
from tests.addons.a2a.events import Update, units, whole
from tests.addons.a2a.lanes import AGGREGATE_CHARS, Lane, starts_with
from tests.addons.a2a.rig import GAP_MS, Line, Rig
from tests.addons.a2a.streams import Stream

from midstream.core.frames import Frame, Side

MIN_BITS, MIN_ECHO_BITS, FIRM_BITS = 8.0, 4.0, 24.0
JOINED_ENDINGS = ("emitted", "emitted_whole")


class Outcome(msgspec.Struct, frozen=True):
    """What became of one stream. `problems` are outright faults, `unknowable` excused lanes."""

    stream: Stream
    client: Client
    left: list[Frame]
    problems: tuple[str, ...] = ()
    unknowable: tuple[str, ...] = ()
    is_lossy: bool = False

    def __str__(self) -> str:
        what = "\n    ".join(self.problems or self.unknowable)
        return f"{self.stream}\n  leaves {' '.join(self.client.log)}\n    {what}"


def judged(rig: Rig, stream: Stream, gap_ms: int = GAP_MS) -> Outcome:
    """Stream through a proxy and judge what the client has."""
    line = rig.stream(stream.form)
    problems = _streamed(line, stream, gap_ms)
    client = Client().takes(line.left)
    if rig.errors:
        problems.append(f"an addon failed {rig.errors:g} times")
    problems += _violations(client, stream)
    problems += _compared(client, stream)
    unknowable: list[str] = []
    is_lossy = False
    for lane in stream.lanes:
        name = lane.updates[0].artifact
        truth, found = stream.truth[name], client.texts.get(name, "")
        if found == truth:
            continue
        why = irreducible(lane, found, is_decided=stream.is_decided)
        if not why and stream.ending in JOINED_ENDINGS:
            why = joined_chain(lane, found)
        if why:
            unknowable.append(f"{name}: {why}, shows {found!r} and not {truth!r}")
            continue
        is_lossy = is_lossy or not holds(found + client.final, truth)
        problems.append(f"{name}: shows {_short(found)} and not {_short(truth)}")
    if client.final != stream.final and not unknowable:
        problems.append(f"the final message is {client.final!r} and not {stream.final!r}")
        is_lossy = is_lossy or bool(stream.final)
    return Outcome(stream, client, line.left, tuple(problems), tuple(unknowable), is_lossy)


def irreducible(lane: Lane, found: str, *, is_decided: bool) -> str:
    """Return the class of a lane that nobody can read for sure, if `found` is its other reading."""
    frames = [update.text for update in lane.updates if update.text]
    if lane.is_hinted or not all(update.append for update in lane.updates[1:]):
        return ""
    as_deltas, last = whole("".join(frames)), frames[-1]
    is_delta = lane.truth == as_deltas
    if len(frames) == 2 and starts_with(last, frames[0]):
        is_echo = last == frames[0] and bits(last) < MIN_ECHO_BITS
        expected = as_deltas if is_echo else last
        return "two_frames" if not is_decided and found == expected != lane.truth else ""
    if is_delta:
        return "short_chain" if found in _chain_readings(frames) else ""
    before = whole("".join(frames[:-1]))
    is_repeat = len(before) < AGGREGATE_CHARS and before.strip() == last.strip()
    return "short_repeat" if is_repeat and found == as_deltas else ""


def joined_chain(lane: Lane, found: str) -> str:
    """Return the class of a lane whose frames joined are the final message, and short snapshots."""
    frames = [update.text for update in lane.updates if update.text]
    is_chain = all(starts_with(after, before) for before, after in pairwise(frames))
    is_weak = sum(map(bits, frames[:-1])) < FIRM_BITS
    is_read = found == whole("".join(frames)) != lane.truth
    return "joined_chain" if is_chain and is_weak and is_read and not lane.is_hinted else ""


def begins_like_snapshots(lane: Lane) -> bool:
    """Tell whether a lane is, or begins as, a `short_chain`: it may be mended, and mended back."""
    return bool(_chain_readings([update.text for update in lane.updates if update.text]))


def _chain_readings(frames: Sequence[str]) -> set[str]:
    """Return what deltas are taken for that begin like snapshots of a short text."""
    chained = 1
    while chained < len(frames) and starts_with(frames[chained], frames[chained - 1]):
        chained += 1
    if chained < 3 or sum(map(bits, frames[: chained - 1])) >= MIN_BITS:
        return set()
    return {whole("".join(frames[start:])) for start in range(1, chained)}


def bits(text: str) -> float:
    """Return how unlikely it is that new text begins with this one by chance."""
    total, before = 0.0, ""
    for char in text:
        if char == before:
            total += 0.3
        elif char.isspace():
            total += 0.5
        elif unicodedata.east_asian_width(char) in "WF":
            total += 4
        else:
            total += 2 if char.isalnum() else 1
        before = char
    return total


def holds(text: str, truth: str) -> bool:
    """Tell whether every character of the truth is in a text, in its order."""
    rest = iter(text)
    return all(char in rest for char in truth)


def updates_of(frames: Sequence[Frame]) -> list[Frame]:
    """Return the frames that are artifact updates."""
    return [f for f in frames if (found := read(f)) is not None and found[0] == "artifact-update"]


def _streamed(line: Line, stream: Stream, gap_ms: int) -> list[str]:
    problems = []
    waits = stream.form.ending == "\r"  # an event that ends in a bare CR waits for one byte more
    for event, wire in zip(stream.events, stream.wires(), strict=True):
        out = line.send(wire, gap_ms)
        if not waits and not isinstance(event, Update) and len(out) == len(updates_of(out)):
            problems.append(f"the {type(event).__name__} did not leave at once")
    line.ends()
    return problems


def _violations(client: Client, stream: Stream) -> list[str]:
    if stream.ending != "longer":  # what it has more than the stream comes when it comes
        return client.violations
    return [text for text in client.violations if "lastChunk" not in text]


def _compared(client: Client, stream: Stream) -> list[str]:
    """Compare the events that are no updates, in their order, and every name."""
    others = [event for event in stream.events if not isinstance(event, Update)]
    frames = [Frame(Side.SERVER, stream.form.kind, stream.form.wire(event)) for event in others]
    model = Client().takes(frames)
    problems = []
    if model.others != client.others:
        problems.append(f"other events were {model.others} and are {client.others}")
    names = model.names | {("artifact", lane.updates[0].artifact) for lane in stream.lanes}
    if not client.names <= names:
        problems.append(f"names were {names} and are {client.names}")
    return problems


def _short(text: str) -> str:
    return repr(text) if len(units(text)) < 400 else f"{text[:150]!r} ... {text[-40:]!r}"
