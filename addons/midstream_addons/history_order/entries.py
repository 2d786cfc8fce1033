"""An entry: one thing that the provider said, with its place in the order in which it was said."""

import msgspec

from midstream.dialects.provider_history import Kind


class Entry(msgspec.Struct, eq=False, gc=False):
    """`seq` is its place on the path of its conversation.

    `step` names what was said in one step; in what was learned every output is a step of its own.
    None is a ledger's entry without a step: its order is not known well enough to judge by.
    `response` is the number of the response it came in, 0 where nobody knows.
    """

    seq: int
    kind: Kind
    keys: tuple[bytes, ...] = ()
    text: bytes | None = None
    step: object = None
    turn: object = None
    is_hosted: bool = False
    is_complete: bool = True
    response: int = 0
