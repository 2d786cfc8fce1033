"""What the words of the repair mean, for people who look at what was done."""

MEANINGS = {
    "reordered": "Texts or reasoning that stood behind a later tool call were moved "
    "back in front of it.",
    "clean": "What can be compared stands in the order in which the provider said it.",
    "nothing_comparable": "The request quotes no text and call whose order the provider has shown.",
    "no_anchor": "Nothing in the request ties it to one response that the provider gave.",
    "ambiguous": "A text or call may stand for more than one place in the history.",
    "ambiguous_fork": "The request fits several branches of what the provider said.",
    "blocked": "The items in the wrong place cannot be moved past what stands between.",
    "would_break_api": "The provider would refuse the new order.",
    "thinking_locked": "Signed thinking binds the items to their places.",
    "gemini_cross_turn": "The move would cross a turn, where Gemini binds parts to their content.",
    "server_side_history": "The request only adds to a history that the provider itself holds.",
    "partial": "Only some of the items in the wrong place could be moved.",
    "no_improvement": "The new order would be no better than the one received.",
    "not_editable": "The body could not be edited without touching other bytes.",
    "signed": "The request is signed, so its body must stay as it is.",
    "unreadable": "The body could not be read as a request with a history.",
}
