"""Lets the final status of an A2A stream say once more only what was not said.

When an answer was streamed as artifacts, many agents send it whole again with the status that
completes the task, and clients that add that message to what they show, show the answer twice. The
message goes where it repeats the answer, by position and by digest of all that was streamed; what
it says beyond is said first. A message that asks for something, or tells why a task failed, is
never touched, nor one that holds a file or data that was not streamed.

Source: agentscope-ai/agentscope-java#1378; what else may stand there:
strands-agents/harness-sdk#3923.
"""

from typing import ClassVar

from midstream.core.addon import KEEP, Addon, Context, Verdict
from midstream.core.errors import EditError
from midstream.core.exchange import ResponseHead
from midstream.core.frames import Frame, Kind, Side
from midstream.dialects import a2a
from midstream.dialects.a2a import ArtifactUpdate, Asked, StatusUpdate, Task
from midstream_addons.final_message_once import message, task
from midstream_addons.final_message_once.meanings import MEANINGS
from midstream_addons.final_message_once.options import Options as _Options
from midstream_addons.final_message_once.state import Tasks

type Ctx = Context[Tasks, None]


class FinalMessageOnce(Addon[Tasks, None]):
    """One exchange at a time. It reads what earlier addons let through, as the client will."""

    name: ClassVar = "final-message-once"
    dialects: ClassVar = ("a2a",)
    rules: ClassVar = ("final_message", "final_task")
    reasons: ClassVar = (
        "client_keeps_last", "no_text", "data", "nothing_streamed", "differs", "artifact_bound",
        "malformed", "not_editable",
    )  # fmt: skip
    meanings: ClassVar = MEANINGS
    Options: ClassVar = _Options

    def __init__(self, options: _Options) -> None:
        self.options = options

    def new_state(self) -> Tasks:
        return Tasks()

    def new_conversation(self) -> None:
        return None

    def on_open(self, ctx: Ctx) -> Verdict:
        ctx.state.asked = a2a.asked_by_path(ctx.exchange.head)
        return KEEP

    def wants(self, response: ResponseHead, ctx: Ctx) -> bool:
        return response.is_event_stream or ctx.state.asked in (Asked.SEND, Asked.GET)

    def on_frame(self, frame: Frame, ctx: Ctx) -> Verdict:
        tasks, head = ctx.state, ctx.exchange.head
        if frame.sender is Side.CLIENT:
            tasks.asked = a2a.read_request(frame, head) or tasks.asked
            tasks.keeps_last = tasks.keeps_last or a2a.keeps_only_last(frame, head)
            return KEEP
        event = a2a.read(frame)
        if event is None:
            return KEEP
        try:
            if frame.kind is Kind.BODY:
                return message.judge_whole(frame, event, self.options)
            return self._judge(frame, event, tasks)
        except EditError:
            return Verdict.skip("not_editable")

    def _judge(self, frame: Frame, event: a2a.Event | a2a.Unreadable, tasks: Tasks) -> Verdict:
        options = self.options
        if isinstance(event, a2a.Unreadable):
            tasks.is_unsure = tasks.is_unsure or b"rtifact" in frame.wire
            return Verdict.skip("malformed")
        if isinstance(event, a2a.Failure):
            return KEEP
        told = tasks.of(event.task_id, options.max_tasks)
        told.is_over = told.is_over or a2a.ends_turn(event)
        if isinstance(event, ArtifactUpdate):
            told.update(frame, event, options.max_artifacts)
        elif isinstance(event, StatusUpdate) and event.state == "completed":
            if tasks.keeps_last and not told.is_whole_at_end:
                return Verdict.skip("client_keeps_last")
            return message.judge(frame, event, told, options)
        elif isinstance(event, Task):
            if a2a.ends_turn(event):
                return task.judge(frame, event, told, options)
            told.begin(event, options.max_artifacts)
        return KEEP
