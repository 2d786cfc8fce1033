"""What the heads of requests to model providers have in common.

Gateways put these APIs below prefixes of their own, so only the end of a path is looked at.

Source: AWS Signature Version 4 (`Authorization`, `x-amz-content-sha256`, presigned queries);
RFC 9421 4 (`Signature`).
"""

from typing import Final

from midstream.core.exchange import RequestHead, ResponseHead

LEDGER_PATH: Final = "provider-history"
"""One for all paths: the history of a conversation may come back at another path of its API.

What tells its owner apart is route, upstream and credential, and those are in the key anyway.
"""
SUCCESS: Final = range(200, 300)


def is_json_post(head: RequestHead) -> bool:
    return head.method == "POST" and is_json(head.content_type)


def is_json(content_type: str) -> bool:
    return content_type == "application/json" or content_type.endswith("+json")


def is_answer(response: ResponseHead) -> bool:
    """Tell whether a response is one that is read: of events, or one JSON document."""
    is_known = response.is_event_stream or is_json(response.content_type)
    return response.status in SUCCESS and is_known


def is_signed(head: RequestHead) -> bool:
    """Tell whether a signature covers the body, so that a changed one would be refused."""
    authorization = (head.header("authorization") or "").lstrip().upper()
    return (
        authorization.startswith("AWS4-")
        or head.header("x-amz-content-sha256") is not None
        or head.header("signature") is not None
        or "x-amz-signature=" in head.query.lower()
    )
