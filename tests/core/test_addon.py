"""The contract: what an addon is that says no more than it has to."""

import pytest
from tests.support import CLIENT, Nothing, upgrade, ws

from midstream.core.addon import KEEP, Addon, Answer, Context, Ending, Skipped, Verdict, Wait
from midstream.core.exchange import Exchange
from midstream.core.frames import Frame


class Least(Addon[Nothing, Nothing]):
    """Declares its words and nothing else."""

    name = "least"
    dialects = ("fake",)
    rules = ()
    Options = Nothing


def test_hooks_that_are_not_written_keep_everything():
    least, nothing = Least(), Nothing()
    ctx = Context(Exchange.of(upgrade()), nothing, nothing, (), observe=False, now_ns=0)
    assert least.on_open(ctx) is KEEP
    assert least.on_answer(Wait(1), Answer(), ctx) is KEEP
    assert least.on_overdue(ctx) is KEEP
    assert least.on_end(CLIENT, ctx) is KEEP
    least.on_close(Ending.COMPLETE, ctx)
    assert least.conversation_bytes(Nothing()) == 0


@pytest.mark.parametrize("hook", ["new_state", "new_conversation", "on_frame"])
def test_what_every_addon_has_to_write_says_so(hook):
    arguments = (ws("a"), None) if hook == "on_frame" else ()
    with pytest.raises(NotImplementedError):
        getattr(Least(), hook)(*arguments)


def test_verdicts_say_what_becomes_of_a_frame():
    frame: Frame = ws("a")
    assert Verdict.drop("cut") == Verdict((), "cut")
    assert Verdict.replace("swap", frame, frame) == Verdict((frame, frame), "swap")
    assert Verdict.skip("unsure") == Verdict(notes=(Skipped("unsure"),))
    assert Verdict.keep(asks=(Wait(1),)) == Verdict(asks=(Wait(1),))
    assert Verdict() == KEEP
