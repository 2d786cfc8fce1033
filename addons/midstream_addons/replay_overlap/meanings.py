"""What the words of the repair mean, for people who look at what was done."""

MEANINGS = {
    "fetch_replay": "The proxy itself fetched or answered the replay of a running answer, so that "
    "it could be looked at before the client saw any of it.",
    "reset": "The message was set back to what it was before the running answer, so that the "
    "replay behind it is complete and not an addition.",
    "rebuild": "Frames of a replay were rewritten so that the client builds the true message "
    "from them.",
    "undo": "A reset was taken back, since no replay followed it.",
    "heal": "A list of messages was sent to a page that may have missed the end of an answer.",
    "relist": "The closing list of a turn was said again, so that a late write of the page does "
    "not stand.",
    "one_ack": "A second acceptance of the same offer was dropped: each would start a replay.",
    "unknown_stream": "The running answer began before the proxy saw this chat, so its beginning "
    "is not known.",
    "stream_over": "The answer that is offered has already ended, so there is nothing to rebuild.",
    "stream_failed": "The answer that is offered ended with an error.",
    "no_start": "The replay does not begin with the first chunk of the answer.",
    "no_replay": "The server offered a running answer and then did not replay it.",
    "inexact": "A chunk of the answer was not understood, so the message is not known exactly.",
    "no_ack": "The page did not accept the offer in time.",
    "fetch_failed": "The list of messages or the replay could not be fetched from the server.",
    "history_behind": "The list that the server gave is older than what the page already shows.",
    "malformed": "The frame could not be read as what it says it is.",
}
