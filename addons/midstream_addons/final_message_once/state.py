"""What a client has been told in one exchange, task by task."""

import hashlib
from collections.abc import Iterable

from midstream.core.frames import Frame
from midstream.dialects.a2a import ArtifactUpdate, Asked, Message, Part, Task, essence
from midstream_addons.final_message_once.said import Said

THINKING = ("thinking", "thought")


class Told:
    """The texts of one task by artifact and kind of text, as far as they are remembered.

    `last` is the last update with text, after whose model more can be said; `is_over` tells that
    the task's turn has ended, `is_unsure` that something was not remembered or not understood.
    """

    __slots__ = ("_began", "data", "is_over", "is_unsure", "last", "sealed", "texts", "whole")

    def __init__(self) -> None:
        self.texts: dict[tuple[str, str], Said] = {}
        self.data: set[bytes] = set()
        self.sealed: set[str] = set()
        self.whole: set[str] = set()
        self.last: tuple[Frame, ArtifactUpdate] | None = None
        self._began = 0
        self.is_over = False
        self.is_unsure = False

    def update(self, frame: Frame, update: ArtifactUpdate, max_texts: int) -> None:
        """Take over an artifact update as a client does: append, or replace."""
        self._tell(update.artifact_id, update.parts, update.append, max_texts)
        if update.last:
            self.sealed.add(update.artifact_id)
        if update.last and not update.append:
            self.whole.add(update.artifact_id)
        else:
            self.whole.discard(update.artifact_id)
        if any(part.text for part in update.parts):
            self.last = (frame, update)

    def begin(self, task: Task, max_texts: int) -> None:
        """Take over the task as it stands."""
        for artifact in task.artifacts:
            self._tell(artifact.artifact_id, artifact.parts, False, max_texts)

    def answers(self) -> list[list[Said]]:
        """Return what the answer may be.

        All texts, in the order their artifacts came or spoke; all but what was only thought; each
        alone.
        """
        mine = [(block, said) for (_, block), said in self.texts.items() if said.length]
        spoken = [said for block, said in mine if block not in THINKING]
        by_first_word = sorted([said for _, said in mine], key=lambda said: said.began)
        return [[said for _, said in mine], by_first_word, spoken, *([said] for _, said in mine)]

    @property
    def is_whole_at_end(self) -> bool:
        """Tell whether each artifact ended with an update that holds all of it."""
        return all(name in self.whole for (name, _), said in self.texts.items() if said.length)

    def has_data_of(self, message: Message) -> bool:
        """Tell whether all parts of a message that are not text were streamed, too."""
        return all(part.text is not None or _digest(part) in self.data for part in message.parts)

    def _tell(self, artifact_id: str, parts: Iterable[Part], append: bool, max_texts: int) -> None:
        if not append:  # each keeps its place: an answer is said in the order it began
            for lane in self.texts:
                if lane[0] == artifact_id:
                    self.texts[lane] = Said()
        for part in parts:
            if part.text is None:
                if len(self.data) < max_texts:
                    self.data.add(_digest(part))
                continue
            lane = (artifact_id, part.block)
            said = self.texts.get(lane)
            if said is None and len(self.texts) >= max_texts:
                self.is_unsure = True
                return
            if said is None:
                said = self.texts[lane] = Said()
            if not said.length:
                self._began += 1
                said.began = self._began
            said.add(part.text)


class Tasks:
    """The tasks of one exchange. Those that are over make room for new ones.

    `keeps_last`: the client keeps of an artifact only what comes with `lastChunk`.
    """

    __slots__ = ("_tasks", "asked", "is_unsure", "keeps_last")

    def __init__(self) -> None:
        self.asked: Asked | None = None
        self.keeps_last = False
        self._tasks: dict[str, Told] = {}
        self.is_unsure = False

    def of(self, task_id: str, max_tasks: int) -> Told:
        """Return what was told of a task; nothing sure where there is no room for it."""
        told = self._tasks.get(task_id)
        if told is None:
            told = Told()
            if len(self._tasks) >= max_tasks:
                self._tasks = {key: old for key, old in self._tasks.items() if not old.is_over}
            if len(self._tasks) < max_tasks:
                self._tasks[task_id] = told
            else:
                told.is_unsure = True
        told.is_unsure = told.is_unsure or self.is_unsure
        return told


def _digest(part: Part) -> bytes:
    return hashlib.blake2b(essence(part), digest_size=16).digest()
