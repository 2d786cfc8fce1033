"""What the words of the repair mean, for people who look at what was done."""

MEANINGS = {
    "first_append": "The first update of an artifact asked to be appended to nothing, and now "
    "creates it.",
    "snapshot": "The update carried all the text so far; only what is new in it was sent on.",
    "stale": "The update carried less than was already said, or the same again; it was left out.",
    "correction": "A snapshot took back some of the text; the whole text was sent in its place.",
    "contradiction": "What had been taken for snapshots was new text after all; the true text was "
    "sent in the place of what stood there.",
    "new_artifact": "A snapshot that took back what was said goes on as another artifact.",
    "aggregate": "The update repeated a run of updates as one; it was left out, or cut to what is "
    "new in it.",
    "replace": "The update that takes the place of all text was written as the client needs it.",
    "replay": "Text that was put in the place of all was then sent again piece by piece, which was "
    "left out.",
    "trailer": "An update with the whole text was added at the end, for clients that keep only "
    "that.",
    "last_chunk": "The mark of the last chunk was moved to the update that is now the last.",
    "annotate": "The update says from now on how its text is to be read; the text is unchanged.",
    "status_text": "Text in a working status was shown once instead of each time.",
    "compact_task": "The text of a task that repeats streamed updates was reduced to the answer.",
    "compact_message": "The message of a status that repeats streamed updates was reduced.",
    "card_url": "An address of the server in an agent card was replaced by that of the proxy.",
    "malformed": "The frame could not be read as an event of A2A.",
    "artifact_bound": "More artifacts or tasks are open than are remembered.",
    "text_bound": "The text of the artifact is longer than what is remembered of it.",
    "rewrite": "A snapshot took back text, and the options say not to rewrite what was said.",
    "foreign_url": "The agent card names addresses that are not known to be this server's.",
    "not_editable": "The frame could not be edited without touching other bytes.",
}
