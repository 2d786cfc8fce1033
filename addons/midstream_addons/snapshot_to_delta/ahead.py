"""`lastChunk` by looking ahead: an update waits until it is known whether it is the last."""

from midstream.dialects import a2a, a2a_write
from midstream.dialects.a2a import ArtifactUpdate
from midstream_addons.snapshot_to_delta.sent import Sent
from midstream_addons.snapshot_to_delta.state import Artifact, Waiting


def leave(waiting: Waiting, artifact: Artifact, sent: Sent) -> None:
    """Send an update, or let it wait in the place of the one before it."""
    out = waiting.out or waiting.frame
    artifact.is_sealed = artifact.is_sealed or waiting.update.last
    if sent.options.last_chunk != "lookahead":
        sent.add(out, waiting.rule)
        return
    release(artifact, sent)
    artifact.ahead = waiting


def release(artifact: Artifact, sent: Sent, *, is_last: bool = False) -> None:
    """Send the update that waited to learn whether it is the last."""
    waited, artifact.ahead = artifact.ahead, None
    if waited is None:
        return
    out, rule = waited.out or waited.frame, waited.rule
    update = a2a.read(out)
    if isinstance(update, ArtifactUpdate) and update.last is not is_last:
        out, rule = a2a_write.changed(out, update, last=is_last), rule or "last_chunk"
    artifact.is_sealed = is_last
    sent.settled.append(waited.frame)
    sent.add(out, rule)
