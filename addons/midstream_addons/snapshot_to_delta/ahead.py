"""`lastChunk` by looking ahead: an update waits until it is known whether it is the last."""

from midstream.core.frames import Frame
from midstream.dialects import a2a, a2a_write
from midstream.dialects.a2a import ArtifactUpdate
from midstream_addons.snapshot_to_delta.artifact import Artifact, Waiting
from midstream_addons.snapshot_to_delta.sent import Sent
from midstream_addons.snapshot_to_delta.text import text_of


def leave(waiting: Waiting, artifact: Artifact, sent: Sent) -> None:
    """Send an update, or let it wait in the place of the one before it."""
    if sent.options.last_chunk == "lookahead":
        release(artifact, sent)
        artifact.ahead = waiting
        return
    artifact.is_sealed = artifact.is_sealed or waiting.update.last
    sent.settle(waiting.frame)
    sent.add(*_closing(waiting.frame, waiting.out or waiting.frame, waiting.rule, artifact))


def release(artifact: Artifact, sent: Sent, *, is_last: bool = False) -> None:
    """Send the update that waited to learn whether it is the last."""
    waited, artifact.ahead = artifact.ahead, None
    if waited is None:
        return
    out, rule = waited.out or waited.frame, waited.rule
    update = a2a.read(out)
    if isinstance(update, ArtifactUpdate) and update.last is not is_last:
        out, rule = a2a_write.changed(out, update, last=is_last), rule or "last_chunk"
    artifact.is_sealed = artifact.is_sealed or is_last
    sent.settle(waited.frame)
    sent.add(*_closing(waited.frame, out, rule, artifact))


def _closing(frame: Frame, out: Frame, rule: str, artifact: Artifact) -> tuple[Frame, str]:
    """Return what leaves with `lastChunk` for a client that keeps only that: the whole text."""
    if not (artifact.ends_whole and artifact.model and artifact.text):
        return out, rule
    came, update = a2a.read(frame), a2a.read(out)
    if not (isinstance(came, ArtifactUpdate) and isinstance(update, ArtifactUpdate)):
        return out, rule
    whole = text_of(artifact.text)
    if not update.last or not update.parts or (not update.append and _text(update) == whole):
        return out, rule
    if came.last and not came.append and _text(came) == whole:
        return frame, ""
    removed = range(1, len(update.parts))
    out = a2a_write.changed(out, update, texts={0: whole}, removed=removed, append=False)
    return out, rule or "last_chunk"


def _text(update: ArtifactUpdate) -> str:
    return "".join([part.text or "" for part in update.parts])
