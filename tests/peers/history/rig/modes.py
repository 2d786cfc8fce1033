"""What is played: which API, with what on, by which clients, and how it should come out."""

from dataclasses import asdict, dataclass
from hashlib import blake2b

VIAS = ("direct", "gateway", "mitm")
ORDERS = ("plain", "inverted")


@dataclass(frozen=True)
class Mode:
    """One way to talk to a provider."""

    name: str
    api: str
    """responses, chat or anthropic."""
    reasoning: bool = False
    store: bool = True
    """Of Responses: whether the provider keeps the items. If not, reasoning travels encrypted."""
    rotating: bool = False
    """The provider names an item anew in every event, as some gateways to Responses do."""


MODES = {
    mode.name: mode
    for mode in (
        Mode("store", "responses"),
        Mode("store-reasoning", "responses", reasoning=True),
        Mode("store-rotating", "responses", reasoning=True, rotating=True),
        Mode("nostore-reasoning", "responses", reasoning=True, store=False),
        Mode("nostore-rotating", "responses", reasoning=True, store=False, rotating=True),
        Mode("chat", "chat"),
        Mode("anthropic", "anthropic"),
        Mode("anthropic-thinking", "anthropic", reasoning=True),
    )
}

OPENAI = tuple(name for name, mode in MODES.items() if mode.api != "anthropic")
ANTHROPIC = tuple(name for name, mode in MODES.items() if mode.api == "anthropic")

CLIENTS = {
    "ai7": tuple(MODES),
    # ai 6 gives up on reasoning whose item id rotates ("reasoning part … not found"), directly too
    "ai6": tuple(name for name, mode in MODES.items() if not mode.rotating),
    "openai": OPENAI,
    "anthropic": ANTHROPIC,
}


@dataclass(frozen=True)
class Cell:
    """One conversation. All of a client's have one credential, as those of a real agent."""

    client: str
    mode: str
    order: str
    via: str

    @property
    def key(self) -> str:
        return f"{self.client}.{self.mode}.{self.order}.{self.via}"

    @property
    def token(self) -> str:
        """What stands in the ids of this conversation: 8 letters, as in every other."""
        return blake2b(self.key.encode(), digest_size=4).hexdigest()

    def job(self, base: str) -> dict[str, object]:
        """What the client program is told."""
        inverted = self.order == "inverted"
        told = {
            "key": self.key,
            "credential": f"sk-{self.client}",
            "base": base,
            "inverted": inverted,
        }
        return {**told, **asdict(MODES[self.mode])}


def cells() -> list[Cell]:
    """Every conversation, those of one client together."""
    return [
        Cell(client, mode, order, via)
        for client, modes in CLIENTS.items()
        for mode in modes
        for order in ORDERS
        for via in VIAS
    ]


def goals(cell: Cell) -> tuple[str, ...]:
    """The words of `judge.verdict` that are right for this cell."""
    if cell.order == "plain":
        return ("bytes",)
    if cell.via == "direct":
        return ("differs",)
    mode = MODES[cell.mode]
    quoted = cell.client == "ai6" or (cell.client == "ai7" and mode.store)
    if quoted and mode.api == "responses" and mode.reasoning:
        # The AI SDK quotes a message beside its reasoning by reference, or with its id if nothing
        # is stored (ai 6), and one away from it as bare text: what it was cannot be known.
        return ("bytes", "value", "order")
    return ("bytes", "value")
