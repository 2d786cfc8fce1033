"""Judges the message of a completed status: does it repeat the answer?"""

from midstream.core.addon import KEEP, Facts, Verdict
from midstream.core.frames import Frame
from midstream.dialects import a2a_write
from midstream.dialects.a2a import Event, Message, StatusUpdate, Task, Unreadable
from midstream_addons.final_message_once.options import Options
from midstream_addons.final_message_once.said import Said, beyond, repeats
from midstream_addons.final_message_once.state import Told


def judge(frame: Frame, status: StatusUpdate, told: Told, options: Options) -> Verdict:
    """Judge the status that completes a task."""
    message, mode = status.message, options.final_message
    if message is None or mode == "keep":
        return KEEP
    texts = texts_of(message)
    if not texts:
        return Verdict.skip("no_text")
    if not told.has_data_of(message):
        return Verdict.skip("data")
    answers = told.answers()
    if told.is_unsure and mode != "drop":
        return Verdict.skip("artifact_bound")
    is_said = any(repeats(text, answer) for text in texts for answer in answers)
    why = facts(texts[0], answers)
    if is_said or mode == "drop" or (mode == "fallback_only" and answers[0]):
        out = a2a_write.without_message(frame, status)
        return Verdict.replace("final_message", out, why=why)
    if not answers[0]:
        return Verdict.skip("nothing_streamed")
    is_text = all(part.text is not None for part in message.parts)
    more = _extended(frame, status, texts[0], told) if is_text else None
    return more or Verdict.skip("differs", why=why)


def judge_whole(frame: Frame, event: Event | Unreadable, options: Options) -> Verdict:
    """Judge a task that is the whole answer: its message may repeat its own artifacts."""
    if not isinstance(event, Task) or event.state != "completed" or event.message is None:
        return KEEP
    told = Told()
    told.begin(event, options.max_artifacts)
    texts, answers = texts_of(event.message), told.answers()
    if options.final_message != "dedupe" or told.is_unsure or not told.has_data_of(event.message):
        return KEEP
    if any(repeats(text, answer) for text in texts for answer in answers):
        out = a2a_write.without_message(frame, event)
        return Verdict.replace("final_message", out, why=facts(texts[0], answers))
    return KEEP


def facts(text: str, answers: list[list[Said]]) -> Facts:
    """Return what was compared: how long the message is, and how long what was streamed."""
    whole = answers[0]
    streamed = sum(said.length for said in whole)
    return {"message_chars": len(text), "streamed_chars": streamed, "texts": len(whole)}


def texts_of(message: Message) -> list[str]:
    """Return what a message may say: its texts joined, or one below the other."""
    spoken = [part.text for part in message.parts if part.text is not None]
    return ["".join(spoken), "\n".join(spoken)] if spoken else []


def _extended(frame: Frame, status: StatusUpdate, text: str, told: Told) -> Verdict | None:
    """Say what a message says beyond the one artifact there is, where it belongs."""
    whole = told.answers()[0]
    if len(whole) != 1 or told.last is None:
        return None
    rest = beyond(text, whole[0])
    if not rest:
        return None
    model, update = told.last
    if not any(told.texts.get((update.artifact_id, p.block)) is whole[0] for p in update.parts):
        return None  # what came last was taken back
    is_last = update.artifact_id not in told.sealed
    more = a2a_write.inserted(model, update, rest, append=True, last=is_last)
    without = a2a_write.without_message(frame, status)
    why: Facts = {"message_chars": len(text), "said_on": len(rest), "artifact": update.artifact_id}
    return Verdict.replace("final_message", more, without, why=why)
