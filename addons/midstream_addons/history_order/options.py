"""Settings of the repair."""

from typing import Annotated

import msgspec
from msgspec import Meta

from midstream_addons.history_order.ledger import Bounds

HOUR_S = 3600


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How much of what providers said is remembered under one credential."""

    max_responses: Annotated[
        int,
        Meta(ge=1, description="of a provider that are remembered, the longest unused go first"),
    ] = 16_384
    max_ledger_bytes: Annotated[
        int, Meta(ge=0, description="that they may take, some 300 each; no content is kept")
    ] = 16_777_216
    max_age_hours: Annotated[
        int, Meta(ge=1, description="after which a response that no request quoted is forgotten")
    ] = 24

    @property
    def bounds(self) -> Bounds:
        return Bounds(self.max_responses, self.max_ledger_bytes, self.max_age_hours * HOUR_S)
