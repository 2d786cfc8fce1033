"""Cases that chance finds too seldom, played as the made-up conversations are."""

import random

from tests.addons.history_order.model import CALL, RESULT, TEXT, USER, Said, Style
from tests.addons.history_order.model_proxy import Proxy, Talk
from tests.addons.history_order.model_responses import Responses

WIRE = Responses()
STYLE = Style()


def said(kind: str, word: str, order: int, answer: int = 0) -> Said:
    return Said(kind, order, word, f"{kind}_{order}", answer=answer)


def played(rounds: list[tuple[list[Said], list[Said]]]) -> Talk:
    """Play requests and their answers."""
    talk = Talk(Proxy(), WIRE.path, "secret", random.Random(0), is_socket=False)
    for request, answer in rounds:
        talk.ask(WIRE.body(request, STYLE))
        talk.answer(WIRE.events(answer, STYLE, random.Random(0)))
    return talk


def test_no_text_passes_a_call_whose_id_the_provider_used_twice() -> None:
    asked, result = said(USER, "go", 1), said(RESULT, "call_1", 4)
    text, call = said(TEXT, "first", 2, 1), said(CALL, "call_1", 3, 1)
    second = [said(CALL, "call_1", 5, 2), said(CALL, "call_2", 6, 2)]
    talk = played([([asked], [text, call]), ([asked, text, call, result], second)])
    known = [second[1], said(RESULT, "call_2", 7)]
    left = talk.ask(WIRE.body([asked, call, result, *known, text], STYLE))
    assert left == WIRE.body([asked, call, result, text, *known], STYLE)


def test_a_call_id_that_the_provider_used_once_decides() -> None:
    asked, result = said(USER, "go", 1), said(RESULT, "call_1", 4)
    first = [said(TEXT, "first", 2, 1), said(CALL, "call_1", 3, 1)]
    talk = played([([asked], first)])
    last = said(USER, "on", 7)
    left = talk.ask(WIRE.body([asked, first[1], result, first[0], last], STYLE))
    assert left == WIRE.body([asked, *first, result, last], STYLE)


def test_a_text_that_may_be_the_last_answer_is_not_taken_for_an_earlier_one() -> None:
    asked, result = said(USER, "go", 1), said(RESULT, "call_1", 4)
    first = [said(TEXT, "ok", 2, 1), said(CALL, "call_1", 3, 1)]
    second = [said(TEXT, "ok", 5, 2)]
    talk = played([([asked], first), ([asked, *first, result], second)])
    body = WIRE.body([asked, first[1], result, second[0], said(USER, "on", 6)], STYLE)
    assert talk.ask(body) == body


def test_two_answers_to_one_request_that_are_both_quoted_are_not_chosen_from() -> None:
    asked, result, last = said(USER, "go", 1), said(RESULT, "call_1", 4), said(USER, "on", 7)
    text, call = said(TEXT, "first", 2, 1), said(CALL, "call_1", 3, 1)
    one, other = said(TEXT, "one", 5, 2), said(TEXT, "other", 6, 3)
    again = [asked, text, call, result]
    talk = played([([asked], [text, call]), (again, [one]), (again, [other])])
    body = WIRE.body([asked, call, result, one, text, other, last], STYLE)
    assert talk.ask(body) == body
