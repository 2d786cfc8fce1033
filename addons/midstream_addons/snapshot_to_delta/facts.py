"""By what an update was judged: the artifact it belongs to, and how its texts are read."""

from midstream.core.addon import Facts
from midstream.dialects.a2a import ArtifactUpdate
from midstream_addons.snapshot_to_delta.artifact import Artifact


def facts(update: ArtifactUpdate, artifact: Artifact) -> Facts:
    """Return the facts; the reading is that of the first text where there are several."""
    known: dict[str, str | int | bool] = {
        "artifact": update.artifact_id,
        "append": update.append,
        "last": update.last,
        "update_chars": sum(len(part.text or "") for part in update.parts),
    }
    lane = next(iter(artifact.lanes.values()), None)
    if lane is not None:
        known["read_as"] = lane.reading.value
        known["declared"] = lane.is_declared
        known["text_bytes"] = len(lane.text)
    return known
