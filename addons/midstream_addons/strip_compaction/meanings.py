"""What the words of the repair mean, for people who look at what was done."""

MEANINGS = {
    "synthetic_message": "Messages that the server made up after a compaction were cut out "
    "of an upload.",
    "range_end": "A made-up last message of a regenerate was replaced by the last "
    "real message of its range.",
    "repeated_message": "Stored copies of a made-up message were left out of a list; its "
    "first stands.",
    "stale_message": "A stored copy of a made-up message that stands alone was left out of a list.",
    "undelivered": "The id looks made up, but no list of this server has shown it first.",
    "client_made": "A client showed this id before any list of the server did.",
    "stores_uploads": "This server is declared or seen to store what is uploaded, so "
    "cutting would destroy.",
    "no_transcript": "On this WebSocket the server has not pushed a list that only Think pushes.",
    "other_form": "The id begins with a known prefix, but the message has not the "
    "form of a made-up one.",
    "unknown_range_end": "The real message that a regenerate should name instead is not known.",
    "nothing_left": "Nothing would be left of the upload.",
    "unreadable": "The frame names such an id, but its list of messages could not be read.",
    "not_editable": "The frame could not be edited without touching other bytes.",
}
