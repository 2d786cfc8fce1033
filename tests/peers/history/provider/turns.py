"""What the provider says: two questions, four answers, three tool calls."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Turn:
    """One answer. `calls` are the paths that the tool Read is called with."""

    thought: str
    text: str
    calls: tuple[str, ...] = ()

    @property
    def phase(self) -> str:
        return "commentary" if self.calls else "final_answer"


TURNS = (
    Turn("The package comes first.", "I will read package.json first.", ("package.json",)),
    Turn(
        "Two files are left.",
        'Now "README" \N{EN DASH} and the licence:\n\N{PAGE FACING UP} both at once.',
        ("README.md", "LICENSE"),
    ),
    Turn("That was all.", "All three files are read."),
    Turn("It stands in LICENSE.", "It is the MIT licence."),
)


@dataclass(frozen=True)
class Place:
    """Which answer of which conversation: what its ids are made of."""

    token: str
    """Tells conversations apart; all are of one length."""
    number: int
    """Counted from 1."""

    def id(self, kind: str, index: int) -> str:
        return f"{kind}_{self.token}{self.number:03}{index}"


def pieces(text: str) -> list[str]:
    """Cut a text as a model would: some letters at a time."""
    return [text[at : at + 7] for at in range(0, len(text), 7)]
