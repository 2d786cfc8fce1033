"""From what becomes of the lanes of an update to the frame that leaves for it."""

from collections.abc import Mapping, Sequence

import msgspec

from midstream.core.frames import Frame
from midstream.dialects import a2a, a2a_write
from midstream.dialects.a2a import ArtifactUpdate
from midstream_addons.snapshot_to_delta.artifact import Model
from midstream_addons.snapshot_to_delta.step import Step, Way
from midstream_addons.snapshot_to_delta.text import text_of, units


class Cut(msgspec.Struct):
    """What is taken out of an update: texts by part, parts left out, and whether it replaces."""

    texts: dict[int, str] = {}
    removed: set[int] = set()
    resets: bool = False

    @property
    def is_nothing(self) -> bool:
        return not (self.texts or self.removed or self.resets)


def lanes_of(update: ArtifactUpdate) -> dict[str, list[int]]:
    """Return the text parts of each lane in an update, by their places."""
    lanes: dict[str, list[int]] = {}
    for index, part in enumerate(update.parts):
        if part.text is not None:
            lanes.setdefault(part.block, []).append(index)
    return lanes


def cut(update: ArtifactUpdate, steps: Mapping[str, Step]) -> Cut:
    """Return what becomes of the parts of an update, by what becomes of its lanes."""
    found = Cut()
    groups = lanes_of(update)
    for block, step in steps.items():
        indexes = groups[block]
        if step.way is Way.NOTHING:
            found.removed.update(indexes)
        elif step.way is Way.RESET:
            found.resets = True
            found.texts[indexes[0]] = text_of(step.text)
            found.removed.update(indexes[1:])
        elif step.way is Way.TAIL:
            _cut_tail(update, indexes, step, found)
    return found


def _cut_tail(update: ArtifactUpdate, indexes: Sequence[int], step: Step, found: Cut) -> None:
    at = 0
    for index in indexes:
        part = units(update.parts[index].text or "")
        start, end = max(step.start - at, 0), min(step.end - at, len(part))
        at += len(part)
        if start >= end:
            found.removed.add(index)
        elif (start, end) != (0, len(part)):
            found.texts[index] = text_of(part[start:end])


def is_as_it_came(update: ArtifactUpdate, found: Cut, *, append: bool) -> bool:
    """Tell whether an update leaves unchanged."""
    changes = any(update.parts[index].text != text for index, text in found.texts.items())
    return not changes and not found.removed and append == update.append


def is_empty(update: ArtifactUpdate, found: Cut) -> bool:
    """Tell whether nothing is left of an update that had parts."""
    return bool(update.parts) and len(found.removed) == len(update.parts)


def emptied(frame: Frame, update: ArtifactUpdate, artifact_id: str = "") -> Frame:
    """Return an update without text: its metadata, and whether its artifact is complete, stay."""
    first = next(i for i, part in enumerate(update.parts) if part.text is not None)
    others = set(range(len(update.parts))) - {first}
    return a2a_write.changed(
        frame, update, texts={first: ""}, removed=others, append=True, artifact_id=artifact_id
    )


def model(frame: Frame, update: ArtifactUpdate, artifact_id: str = "") -> Model | None:
    """Return an empty update of the same artifact, or of one like it: small enough to keep."""
    made = a2a_write.inserted(frame, update, "", append=True, last=True)
    read = a2a.read(made)
    if artifact_id and isinstance(read, ArtifactUpdate):
        made = a2a_write.changed(made, read, artifact_id=artifact_id)
        read = a2a.read(made)
    return Model(made, read) if isinstance(read, ArtifactUpdate) else None


def made(after: Model, text: str, *, append: bool, last: bool = False) -> Frame:
    """Return an update after a model."""
    return a2a_write.inserted(after.frame, after.update, text, append=append, last=last)
