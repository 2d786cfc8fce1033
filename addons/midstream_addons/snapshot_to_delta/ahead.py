"""`lastChunk` by looking ahead: an update waits until it is known whether it is the last."""

from midstream.dialects import a2a, a2a_write
from midstream.dialects.a2a import ArtifactUpdate
from midstream_addons.snapshot_to_delta.artifact import Artifact, Waiting
from midstream_addons.snapshot_to_delta.sent import Sent


def leave(waiting: Waiting, artifact: Artifact, sent: Sent) -> None:
    """Send an update, or let it wait in the place of the one before it."""
    if sent.options.last_chunk == "lookahead":
        release(artifact, sent)
        artifact.ahead = waiting
        return
    artifact.is_sealed = artifact.is_sealed or waiting.update.last
    sent.settle(waiting.frame)
    sent.add(waiting.out or waiting.frame, waiting.rule)


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
    sent.add(out, rule)
