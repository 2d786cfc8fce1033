"""The words of configuration errors, for the types that options of addons may have."""

from enum import StrEnum
from typing import Annotated, Any, Literal

import msgspec
import pytest
from msgspec import Meta

from midstream.config.wording import choices, default_of, description, expected, is_list, shown


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


class Options(msgspec.Struct):
    needed: int
    plain: int = 1
    made: list[int] = msgspec.field(default_factory=lambda: [1])


@pytest.mark.parametrize(
    ("type_", "words"),
    [
        (bool, "true or false"),
        (int, "an integer"),
        (Annotated[int, Meta(ge=1)], "an integer at least 1"),
        (Annotated[int, Meta(gt=0, lt=9)], "an integer greater than 0 and less than 9"),
        (Annotated[float, Meta(le=0.5)], "a number at most 0.5"),
        (str, "a string"),
        (list[str], "a list of strings"),
        (frozenset[str], "a list of strings"),
        (tuple[Annotated[int, Meta(ge=0)], ...], "a list, each an integer at least 0"),
        (Colour, 'one of "red", "blue"'),
        (Literal["only"], '"only"'),
        (int | None, "an integer"),
        (int | str, "an integer or a string"),
        (dict[str, int], "a table"),
        (Options, "a table"),
        (Any, "another value"),
    ],
)
def test_a_type_is_told_in_words(type_, words):
    assert expected(type_) == words


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (16777216, "16777216"),
        pytest.param(1 << 20_000, "an integer too long to print", id="huge"),
        (0.5, "0.5"),
        (30.0, "30"),
        ('a "b"\n', '"a \\"b\\"\\n"'),
        ("ä", '"ä"'),
        (Colour.RED, '"red"'),
        (("a", 1), '["a", 1]'),
        ({"a": 1}, "a table"),
        ("x" * 200, '"' + "x" * 79 + "…"),
    ],
)
def test_a_value_is_shown_as_the_file_writes_it_on_one_bounded_line(value, text):
    assert shown(value) == text


def test_the_words_a_type_is_limited_to():
    assert choices(Colour) == ("red", "blue")
    assert set(choices(Literal["a", "b"])) == {"a", "b"}
    assert choices(str) == ()


def test_lists_are_told_from_other_types():
    assert is_list(Annotated[tuple[str, ...], Meta(description="x")])
    assert not is_list(str)


def test_the_description_is_that_of_the_annotation():
    assert description(Annotated[int, Meta(description="in bytes")]) == "in bytes"
    assert description(Annotated[int, Meta(ge=1)]) == ""
    assert description(int) == ""


def test_a_default_is_found_however_it_is_made():
    needed, plain, made = msgspec.structs.fields(Options)
    assert default_of(needed) is msgspec.NODEFAULT
    assert default_of(plain) == 1
    assert default_of(made) == [1]
