"""What the answers of an agent so far say about its next one.

After three decided answers of one kind in a row the next one starts with some evidence that way, so
that nothing needs to wait. One that turns out otherwise makes the agent unknown again, and so does
a card with another name or version.
"""

from typing import Final

from midstream.dialects.a2a import ArtifactUpdate
from midstream_addons.snapshot_to_delta.artifact import Artifact
from midstream_addons.snapshot_to_delta.lane import Lane
from midstream_addons.snapshot_to_delta.state import MAX_DIGESTS, Agent, Stream
from midstream_addons.snapshot_to_delta.step import Reading
from midstream_addons.snapshot_to_delta.text import digest

STREAK: Final = 3
PRIOR_BITS: Final = 6.0
LEAST_UPDATES: Final = 3
"""A lane with fewer updates decides nothing about its agent."""


def bits(agent: Agent) -> float:
    """Return the evidence that a new lane starts with, above 0 for snapshots."""
    if agent.streak < STREAK:
        return 0.0
    return PRIOR_BITS if agent.reading == Reading.SNAPSHOT else -PRIOR_BITS


def learn(agent: Agent, lane: Lane) -> None:
    """Note how a lane that is over was to be read."""
    if lane.is_declared or lane.doubt is not None or len(lane.bounds) < LEAST_UPDATES:
        return
    if lane.reading is Reading.UNKNOWN:
        return
    if agent.reading == lane.reading:
        agent.streak += 1
    else:
        agent.streak = 1 if agent.streak < STREAK else 0
        agent.reading = lane.reading.value


def forget(agent: Agent) -> None:
    agent.streak, agent.reading = 0, ""


def meet(agent: Agent, card: str) -> None:
    """Note the name and version of the agent's card."""
    if agent.card and agent.card != card:
        forget(agent)
    agent.card = card


def key_of(task_id: str, artifact_id: str) -> str:
    """Return the name under which a digest is kept."""
    return f"{task_id} {artifact_id}"


def knows(agent: Agent, update: ArtifactUpdate) -> bool:
    """Tell whether an artifact was there before this exchange; without a task no one can know."""
    return bool(update.task_id) and key_of(update.task_id, update.artifact_id) in agent.digests


def note(agent: Agent, stream: Stream, update: ArtifactUpdate) -> None:
    """Keep at once that an artifact comes as snapshots: the rest may be asked for elsewhere."""
    artifact = stream.artifacts.get((update.task_id, update.artifact_id))
    if artifact is None or not artifact.has_snapshots or not update.task_id:
        return
    key = key_of(update.task_id, update.artifact_id)
    if key not in agent.snapshots:
        remember(agent, key, artifact)


def remember(agent: Agent, key: str, artifact: Artifact) -> None:
    """Keep what an artifact has come to; without a known text only that there was one."""
    agent.digests.pop(key, None)  # the newest stands last
    agent.digests[key] = digest(artifact.text) if artifact.text else b""
    if artifact.has_snapshots:
        agent.snapshots.add(key)
    while len(agent.digests) > MAX_DIGESTS:
        oldest = next(iter(agent.digests))
        del agent.digests[oldest]
        agent.snapshots.discard(oldest)
