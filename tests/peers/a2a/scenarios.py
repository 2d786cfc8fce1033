"""What the scripted a2a-sdk servers send, step by step, and what it should come to.

Runs inside the environments of the peers too: standard library only. All texts are invented.
"""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Art:
    """One artifact update. A flag that is None is left out where the wire can tell."""

    text: str
    append: bool | None = None
    last: bool | None = None
    id: str = "a1"


@dataclass(frozen=True)
class Status:
    """One status update, with a message where `texts` are given, one part each."""

    state: str
    texts: tuple[str, ...] = ()
    message_id: str = "m1"


@dataclass(frozen=True)
class Final:
    """A whole Task as the last event: its artifacts, and the answer in its history."""

    artifacts: tuple[tuple[str, str], ...]
    history: tuple[str, ...] = ()


@dataclass(frozen=True)
class Pause:
    ms: int


type Step = Art | Status | Final | Pause


@dataclass(frozen=True)
class Scenario:
    steps: tuple[Step, ...]
    truth: dict[str, str] = field(default_factory=dict)
    """The text of each artifact, in the order in which they appear."""
    message: str = ""
    """What the message of the last status tells beside the artifacts."""
    kind: str = "stream"
    """stream, interleaved (two artifacts at once), cut (the server breaks the connection), lost
    (the client does, and subscribes again)."""

    @property
    def whole(self) -> str:
        """All that a person should have read in the end."""
        return "".join(self.truth.values()) + self.message


WORDS = ("Dear Noor, ", "the night train to Oslo ", "leaves at 21:40 ", "from platform 7.")
ANSWER = "".join(WORDS)
SO_FAR = tuple("".join(WORDS[: count + 1]) for count in range(len(WORDS)))
DONE = Status("completed")
AWAY = Pause(1500)
"""Time enough to subscribe again: a2a-sdk 0.3 does not repeat what was sent before that."""
CUT_AFTER_UPDATES = 2
"""How many artifact updates of a `cut` scenario arrive before its connection breaks."""


def deltas(*texts: str, last: bool = True) -> tuple[Art, ...]:
    end = len(texts) - 1
    return tuple(Art(text, at > 0, last and at == end) for at, text in enumerate(texts))


def snapshots(*texts: str, append: bool = True, last: bool = False) -> tuple[Art, ...]:
    end = len(texts) - 1
    return tuple(Art(text, append and at > 0, last and at == end) for at, text in enumerate(texts))


def one(*steps: Step, text: str = ANSWER, message: str = "", kind: str = "stream") -> Scenario:
    """A scenario with one artifact."""
    return Scenario(steps, {"a1": text}, message, kind)


LAUGH = ("ha", "haha", "no", "no")
REPEATS = ("It is ", "very ", "very ", "very ", "far, ", "very ", "far.")
UNICODE = ("\U0001f469\u200d", "\U0001f680 re", "\u0301sume\u0301 ", "\u51fa\u53d1", "\u51fa\u53d1")

SCENARIOS: dict[str, Scenario] = {
    # new text in every update: nothing to mend
    "deltas": one(*deltas(*WORDS), DONE),
    "laugh": one(*deltas(*LAUGH), DONE, text="".join(LAUGH)),
    "ok_ok": one(*deltas("OK", "OK"), DONE, text="OKOK"),
    "repeats": one(*deltas(*REPEATS), DONE, text="".join(REPEATS)),
    "unicode": one(*deltas(*UNICODE), DONE, text="".join(UNICODE)),
    "fresh_ids": Scenario(
        (*(Art(text, id=f"c{at}") for at, text in enumerate(WORDS)), DONE),
        {f"c{at}": text for at, text in enumerate(WORDS)},
    ),
    "input_required": Scenario(
        (Art("I found 3 trains. ", last=True), Status("input-required", ("Which one?",))),
        {"a1": "I found 3 trains. "},
        "Which one?",
    ),
    "message_only": Scenario((Status("completed", (ANSWER,)),), {}, ANSWER),
    "message_other": one(
        *deltas(*WORDS), Status("completed", (" Have a good trip!",)), message=" Have a good trip!"
    ),
    # the text so far in every update
    "snapshots_append": one(*snapshots(*SO_FAR), DONE),
    "snapshots_replace": one(*snapshots(*SO_FAR, append=False, last=True), DONE),
    "snapshots_slow": one(*snapshots(*SO_FAR[:2]), Pause(700), *snapshots(*SO_FAR)[2:], DONE),
    "rewrite": one(*snapshots("Dear Noor, the nite train", *SO_FAR[1:]), DONE),
    "rewrite_early": one(*snapshots("Dear Nora, the", *SO_FAR[1:]), DONE),
    # the whole text once more at the end
    "whole_append": one(*deltas(*WORDS, last=False), Art(ANSWER, True, False), DONE),
    "whole_replace": one(*deltas(*WORDS, last=False), Art(ANSWER, False, True), DONE),
    "append_first": one(*(Art(text, True, at == 3) for at, text in enumerate(WORDS)), DONE),
    "append_first_whole": one(
        *(Art(text, True, False) for text in WORDS), Art(ANSWER, False, True), DONE
    ),
    # the answer again on another channel
    "report": one(
        Art("Dear", False, False), Art(ANSWER, True, False), Status("completed", (ANSWER,))
    ),
    "message_whole": one(*deltas(*WORDS), Status("completed", (ANSWER,))),
    "message_parts": one(*deltas(*WORDS, last=False), Status("completed", WORDS)),
    "final_task": one(*deltas(*WORDS), Final((("a1", ANSWER),), (ANSWER,))),
    "snapshots_task": one(*snapshots(*SO_FAR), Final((("a1", ANSWER),), (ANSWER,))),
    # text in status messages, which replace each other by the protocol
    "status_deltas": Scenario(
        (*(Status("working", (text,), f"m{at}") for at, text in enumerate(WORDS)), DONE),
        {},
        ANSWER,
    ),
    "status_snapshots": one(
        *(Status("working", (text,), "m1") for text in SO_FAR), Art(ANSWER, None, True), DONE
    ),
    # two artifacts at once, one in deltas and one in snapshots
    "interleaved": Scenario(
        (
            Art("one, ", False),
            Art("Alpha", False, id="b1"),
            Art("two, ", True),
            Art("Alpha Bravo", True, id="b1"),
            Art("three. ", True, True),
            Art("Alpha Bravo Charlie", True, id="b1"),
            DONE,
        ),
        {"a1": "one, two, three. ", "b1": "Alpha Bravo Charlie"},
        kind="interleaved",
    ),
    # connections that break
    "cut": one(*deltas(*WORDS), DONE, text=SO_FAR[CUT_AFTER_UPDATES - 1], kind="cut"),
    "cut_snapshots": one(*snapshots(*SO_FAR), DONE, text=SO_FAR[CUT_AFTER_UPDATES - 1], kind="cut"),
    "lost": one(*deltas(*WORDS)[:2], AWAY, *deltas(*WORDS)[2:], DONE, kind="lost"),
    "lost_snapshots": one(
        *snapshots(*SO_FAR)[:2], AWAY, *snapshots(*SO_FAR)[2:], DONE, kind="lost"
    ),
}

# what the scripted models of the agent frameworks write, chunk by chunk
SCRIPTS: dict[str, tuple[str, ...]] = {
    "words": WORDS,
    "one_chunk": (ANSWER,),
    "laughing": LAUGH,
    "repeating": REPEATS,
    "unicode_words": UNICODE,
    "code": ("for", " i", " in", " range", "(", "3", "):", "\n", "   ", " print", "(i", ")"),
}

STEP_MS = 25
FAST = " at once"
"""Behind the name of a scenario in a request: play it without pauses."""


def asked(text: str) -> tuple[Scenario, float]:
    """Return the scenario that a request names, and the seconds between its steps."""
    fast = text.endswith(FAST)
    scenario = SCENARIOS[text.removesuffix(FAST)]
    return scenario, 0 if fast else STEP_MS / 1000
