"""What leaves for updates once their lanes are judged."""

import hashlib
from collections.abc import Mapping

from midstream.core.addon import Skipped
from midstream.core.frames import Frame
from midstream.dialects import a2a_write
from midstream.dialects.a2a import ArtifactUpdate
from midstream_addons.snapshot_to_delta import ahead, render
from midstream_addons.snapshot_to_delta.artifact import Artifact, Waiting
from midstream_addons.snapshot_to_delta.facts import facts
from midstream_addons.snapshot_to_delta.options import Options
from midstream_addons.snapshot_to_delta.render import Cut
from midstream_addons.snapshot_to_delta.sent import Sent
from midstream_addons.snapshot_to_delta.step import Reading, Step
from midstream_addons.snapshot_to_delta.text import text_of

MAX_DATA_PARTS = 256


def settle_held(artifact: Artifact, step: Step, sent: Sent) -> None:
    """Send what becomes of the update that waited."""
    held, artifact.held = artifact.held, None
    if held is None:
        return
    steps = {held.block: step}
    add(held.frame, held.update, artifact, steps, sent, since_ns=held.since_ns)


def add(
    frame: Frame,
    update: ArtifactUpdate,
    artifact: Artifact,
    steps: Mapping[str, Step],
    sent: Sent,
    *,
    creates: bool = False,
    since_ns: int | None = None,
) -> None:
    """Send what becomes of one update. `creates`: it is the first of its artifact."""
    options = sent.options
    if options.output == "annotate":
        _annotate(frame, update, artifact, sent)
        return
    found = render.cut(update, steps)
    if _has_snapshots(artifact, options):
        found.removed |= _repeated_data(update, artifact)
    rule = next((step.rule for step in steps.values() if step.rule), "")
    sent.why = facts(update, artifact) if rule else sent.why
    if rule == "correction" and found.resets and options.rewrite == "error":
        _give_up(frame, artifact, sent)
        return
    if rule == "correction" and found.resets and options.rewrite == "new_artifact":
        rule = _rename(artifact, sent)
    if not found.is_nothing:
        artifact.model = artifact.model or render.model(frame, update, artifact.new_id(update))
    if render.is_empty(update, found):
        if not update.last or artifact.is_sealed:
            sent.settle(frame)
            sent.add(None, rule or "snapshot")
            return
        out: Frame = render.emptied(frame, update, artifact.new_id(update))
    else:
        out = _rendered(frame, update, artifact, found, creates=creates, options=options)
    if out is frame:
        rule = ""
    elif not rule:
        rule = "first_append" if creates and update.append else "annotate"
    since_ns = sent.now_ns if since_ns is None else since_ns
    ahead.leave(Waiting(frame, update, since_ns, out=out, rule=rule), artifact, sent)


def _rendered(
    frame: Frame,
    update: ArtifactUpdate,
    artifact: Artifact,
    found: Cut,
    *,
    creates: bool,
    options: Options,
) -> Frame:
    lanes = list(artifact.lanes.values())
    append = update.append and not creates
    if found.resets:
        append = False
    elif not found.is_nothing or (options.append_false == "ignore" and not creates):
        append = True
    mode = "delta" if options.stamp and options.output == "delta" else ""
    if options.output == "snapshot" and artifact.is_plain and len(lanes) == 1 and update.parts:
        whole = text_of(lanes[0].text)
        found = Cut({0: whole}, set(range(1, len(update.parts))))
        append, mode = False, "snapshot"
    name = artifact.new_id(update)
    if not mode and not name and render.is_as_it_came(update, found, append=append):
        return frame
    return a2a_write.changed(
        frame,
        update,
        texts=found.texts,
        removed=found.removed,
        append=append,
        stream_mode=mode,
        artifact_id=name,
    )


def _annotate(frame: Frame, update: ArtifactUpdate, artifact: Artifact, sent: Sent) -> None:
    """Say what the artifact's lanes are read as, if they agree; nothing else changes."""
    readings = {lane.reading for lane in artifact.lanes.values()} - {Reading.UNKNOWN}
    mode = readings.pop().value if len(readings) == 1 else ""
    out = a2a_write.changed(frame, update, stream_mode=mode)
    sent.add(out, "" if out is frame else "annotate")


def _give_up(frame: Frame, artifact: Artifact, sent: Sent) -> None:
    """Let a snapshot pass that takes back what was said, and all behind it."""
    ahead.release(artifact, sent)
    artifact.close()
    artifact.said = None
    sent.notes.append(Skipped("rewrite"))
    sent.add(frame, "")


def _rename(artifact: Artifact, sent: Sent) -> str:
    """Let a snapshot that takes back what was said, and all behind it, be another artifact."""
    ahead.release(artifact, sent)
    artifact.renamed += 1
    artifact.model, artifact.is_sealed = None, False
    return "new_artifact"


def _has_snapshots(artifact: Artifact, options: Options) -> bool:
    return options.stream == "snapshot" or any(
        lane.reading is Reading.SNAPSHOT and lane.doubt is None for lane in artifact.lanes.values()
    )


def _repeated_data(update: ArtifactUpdate, artifact: Artifact) -> set[int]:
    """Return the parts without text that stood at the same place of the snapshot before."""
    repeated = set()
    places = [index for index, part in enumerate(update.parts) if part.text is None]
    for place, index in enumerate(places[:MAX_DATA_PARTS]):
        digest = hashlib.blake2b(update.parts[index].raw, digest_size=16).digest()
        if place < len(artifact.data) and artifact.data[place] == digest:
            repeated.add(index)
        else:
            artifact.data[place:] = [digest]
    return repeated
