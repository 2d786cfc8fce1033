"""Checks verdicts against the contract before anything is changed, so that none loses a frame."""

from collections.abc import Sequence
from itertools import compress

from midstream.core.addon import (
    Compared,
    Fetch,
    Note,
    Prefixed,
    Reconnected,
    Skipped,
    Verdict,
    Wait,
)
from midstream.core.errors import VerdictError
from midstream.core.frames import Frame
from midstream.core.link import Link, named
from midstream.core.metrics import PAIR_STATES, RECONNECT_RESULTS


def check_words(link: Link, verdict: Verdict) -> None:
    """Refuse words that were never declared: each becomes a metric label. Raises VerdictError."""
    if not isinstance(verdict, Verdict):
        raise VerdictError(f"answered with {type(verdict).__name__}, a Verdict was due")
    if verdict.rule and verdict.rule not in link.rules:
        raise VerdictError(f"used the undeclared rule {verdict.rule!r}")
    if verdict.repairs < 0:
        raise VerdictError(f"counts {verdict.repairs} repairs")
    for note in verdict.notes:
        if not _is_declared(note, link):
            raise VerdictError(f"used the undeclared note {note!r}")
    for ask in verdict.asks:
        if not isinstance(ask, Fetch | Wait):
            raise VerdictError(f"asks for {type(ask).__name__}, a Fetch or a Wait was due")


def check_frames(
    link: Link, verdict: Verdict, frame: Frame | None
) -> tuple[Sequence[Frame], Sequence[Frame]]:
    """Return the held frames that a verdict settles, and what leaves now. Raises VerdictError."""
    if verdict.hold and frame is None:
        raise VerdictError("holds, but there is no frame at hand")
    if verdict.hold and not verdict.frames and not verdict.settles:
        return (), ()  # nothing leaves: not to look through all that is held, frame by frame
    settled, staying = _split(link.held, verdict.settles)
    if frame is not None and verdict.hold:
        staying.append(frame)
    if verdict.frames is None:
        leaving: Sequence[Frame] = () if frame is None or verdict.hold else (frame,)
    else:
        leaving = tuple(verdict.frames)
    _check_once(staying, leaving)
    if not verdict.rule:
        _check_kept(taken_by(verdict, settled, frame), leaving)
    return settled, leaving


def taken_by(verdict: Verdict, settled: Sequence[Frame], frame: Frame | None) -> Sequence[Frame]:
    """Return all that a verdict takes: the frames it settles, and the one at hand but if held."""
    return settled if frame is None or verdict.hold else (*settled, frame)


def _split(held: list[Frame], settles: Sequence[Frame]) -> tuple[list[Frame], list[Frame]]:
    """Return the held frames that are to be settled, and those that stay, both oldest first."""
    if not settles:
        return [], held[:]
    if settles is held:
        return held[:], []
    settles = tuple(settles)
    marks = named(held, settles)
    settled = list(compress(held, marks))
    if len(settled) != len(settles):
        raise VerdictError(f"settles {len(settles)} frames, {len(settled)} of them are held")
    return settled, [frame for frame, mark in zip(held, marks, strict=True) if not mark]


def _is_declared(note: Note, link: Link) -> bool:
    match note:
        case Skipped(reason):
            return reason in link.addon.reasons
        case Reconnected(result):
            return result in RECONNECT_RESULTS
        case Compared(state, pairs):
            return state in PAIR_STATES and pairs >= 0
        case Prefixed(kept, sent):
            return 0 <= kept <= sent
    return False


def _check_once(staying: Sequence[Frame], leaving: Sequence[Frame]) -> None:
    kept = {id(frame) for frame in staying}
    for frame in leaving:
        if not isinstance(frame, Frame):
            raise VerdictError(f"sends {type(frame).__name__}, a Frame was due")
        if id(frame) in kept:
            raise VerdictError("sends a frame that is still held, so that it would leave twice")


def _check_kept(taken: Sequence[Frame], leaving: Sequence[Frame]) -> None:
    sent = {id(frame) for frame in leaving}
    for frame in taken:
        if id(frame) not in sent and frame not in leaving:
            raise VerdictError("takes a frame out without a rule to count it for")
