"""Judges a task that ends a stream: by default it stays, as an option it no longer repeats."""

from midstream.core.addon import KEEP, Facts, Verdict
from midstream.core.frames import Frame
from midstream.dialects import a2a_write
from midstream.dialects.a2a import Artifact, Task
from midstream.dialects.a2a_write import ArtifactEdit
from midstream_addons.final_message_once.message import texts_of
from midstream_addons.final_message_once.options import Options
from midstream_addons.final_message_once.said import Said, repeats
from midstream_addons.final_message_once.state import Told


def judge(frame: Frame, task: Task, told: Told, options: Options) -> Verdict:
    """Judge a task in a terminal state behind other events."""
    answers = told.answers()
    if options.final_task == "pass" or task.state != "completed" or not answers[0]:
        return KEEP
    if told.is_unsure:
        return Verdict.skip("artifact_bound")
    if not all(_repeats(artifact, answers) for artifact in task.artifacts):
        return Verdict.skip("differs")
    why: Facts = {"task": task.task_id, "artifacts": len(task.artifacts), "texts": len(answers[0])}
    if options.final_task == "status":
        return Verdict.replace("final_task", a2a_write.status_of(frame, task), why=why)
    out = _emptied(frame, task)
    said = [
        index
        for index, message in enumerate(task.history)
        if message.role == "agent"
        and told.has_data_of(message)
        and any(repeats(text, answer) for text in texts_of(message) for answer in answers)
    ]
    out = a2a_write.without_history(out, task, said)
    message = task.message
    if (
        message is not None
        and told.has_data_of(message)
        and any(repeats(text, answer) for text in texts_of(message) for answer in answers)
    ):
        out = a2a_write.without_message(out, task)
    return KEEP if out is frame else Verdict.replace("final_task", out, why=why)


def _repeats(artifact: Artifact, answers: list[list[Said]]) -> bool:
    texts = [part.text for part in artifact.parts]
    spoken = [text for text in texts if text is not None]
    if len(spoken) < len(texts):
        return False
    return not "".join(spoken) or any(repeats("".join(spoken), answer) for answer in answers)


def _emptied(frame: Frame, task: Task) -> Frame:
    edits = {
        artifact.index: ArtifactEdit({0: ""}, range(1, len(artifact.parts)))
        for artifact in task.artifacts
        if any(part.text for part in artifact.parts)
    }
    return a2a_write.with_artifacts(frame, task, edits) if edits else frame
