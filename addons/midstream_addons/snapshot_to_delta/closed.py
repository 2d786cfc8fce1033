"""What becomes of an artifact that has grown too large to be remembered: its updates pass."""

from midstream.core.addon import KEEP, Verdict
from midstream.core.frames import Frame
from midstream.dialects import a2a_write
from midstream.dialects.a2a import ArtifactUpdate
from midstream_addons.snapshot_to_delta.artifact import Artifact
from midstream_addons.snapshot_to_delta.text import Digest, units


def judge(frame: Frame, update: ArtifactUpdate, artifact: Artifact) -> Verdict:
    """Judge an update of an artifact whose text is no longer known.

    A snapshot that goes on from the last one replaces it. Another one may begin what the server
    says next: from there on all pass.
    """
    if artifact.said is None or not update.append:
        return KEEP
    text = units("".join([part.text or "" for part in update.parts]))
    is_text = all(part.text is not None for part in update.parts)
    if not is_text or not artifact.said.begins(text):
        artifact.said = None
        return KEEP
    artifact.said = Digest.of(text)
    name = artifact.new_id(update)
    out = a2a_write.changed(frame, update, append=False, artifact_id=name)
    return Verdict.replace("snapshot", out)
