"""What the words of the repair mean, for people who look at what was done."""

MEANINGS = {
    "final_message": "The message of the completed status repeats the streamed answer, "
    "so only what is new in it leaves.",
    "final_task": "The task that ends the stream repeats what was streamed, so it "
    "leaves without it.",
    "client_keeps_last": "The client shows only the last thing it gets, so the message has "
    "to stay.",
    "no_text": "The message of the completed status holds no text.",
    "data": "The message holds a file or data that was not streamed.",
    "nothing_streamed": "No text was streamed before, so the message is the answer itself.",
    "differs": "What ends the stream is not what was streamed.",
    "artifact_bound": "More was streamed than is remembered, or some of it was not understood.",
    "malformed": "The event could not be read as one of A2A.",
    "not_editable": "The event could not be edited without touching other bytes.",
}
