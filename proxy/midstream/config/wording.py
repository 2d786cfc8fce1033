"""The words of configuration errors: what was found, what was expected, what was perhaps meant."""

import difflib
import json
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any

import msgspec
from msgspec import inspect

MAX_SHOWN_CHARS = 80
MAX_SHOWN_BITS = 256


def shown(value: object) -> str:
    """Return a value as the file would write it, cut to a bounded length."""
    if isinstance(value, Mapping):
        return "a table"
    if isinstance(value, Enum):
        value = value.value
    if isinstance(value, list | tuple | set | frozenset):
        text = f"[{', '.join(shown(item) for item in value)}]"
    elif isinstance(value, str):
        text = json.dumps(value, ensure_ascii=False)
    elif isinstance(value, bool):
        text = str(value).lower()
    elif isinstance(value, int) and value.bit_length() > MAX_SHOWN_BITS:
        text = "an integer too long to print"  # and too long for `str`, which refuses it
    elif isinstance(value, float) and value.is_integer():
        text = str(int(value))
    else:
        text = str(value)
    return text if len(text) <= MAX_SHOWN_CHARS else f"{text[:MAX_SHOWN_CHARS]}…"


def nearest(word: str, known: Iterable[str], *, cutoff: float = 0.6) -> str | None:
    """Return the known word most like a word; `cutoff` is how alike it must be, from 0 to 1."""
    return next(iter(difflib.get_close_matches(word, list(known), n=1, cutoff=cutoff)), None)


def near(word: str, known: Iterable[str]) -> str:
    """Return `, did you mean "x"` for the nearest known word, or nothing."""
    meant = nearest(word, known)
    return f', did you mean "{meant}"' if meant else ""


def near_or_all(word: str, known: Iterable[str]) -> str:
    """Return the nearest known word, else all of them."""
    known = list(known)
    return near(word, known) or f", expected {_one_of(known)}"


def expected(type_: object) -> str:
    """Say in words what values a type takes."""
    return _in_words(inspect.type_info(type_))


def is_list(type_: object) -> bool:
    """Tell whether a type takes a list."""
    return isinstance(_bare(inspect.type_info(type_)), inspect.CollectionType)


def choices(type_: object) -> tuple[str, ...]:
    """Return the words that a type is limited to; empty if it is not."""
    info = _bare(inspect.type_info(type_))
    if isinstance(info, inspect.EnumType):
        return tuple(str(member.value) for member in info.cls)
    if isinstance(info, inspect.LiteralType):
        return tuple(str(value) for value in info.values)
    return ()


def description(type_: object) -> str:
    """Return the description that a type is annotated with."""
    info = inspect.type_info(type_)
    if isinstance(info, inspect.Metadata) and info.extra_json_schema:
        return str(info.extra_json_schema.get("description", ""))
    return ""


def default_of(field: msgspec.structs.FieldInfo) -> object:
    """Return a field's default; `msgspec.NODEFAULT` if it has none."""
    if field.default_factory is not msgspec.NODEFAULT:
        return field.default_factory()
    return field.default


def _bare(info: inspect.Type) -> inspect.Type:
    return info.type if isinstance(info, inspect.Metadata) else info


def _one_of(words: Iterable[str]) -> str:
    words = [f'"{word}"' for word in words]
    return words[0] if len(words) == 1 else f"one of {', '.join(words)}"


def _in_words(info: inspect.Type) -> str:
    match _bare(info):
        case inspect.BoolType():
            return "true or false"
        case inspect.IntType() as number:
            return "an integer" + _bounds(number)
        case inspect.FloatType() as number:
            return "a number" + _bounds(number)
        case inspect.StrType():
            return "a string"
        case inspect.CollectionType(item_type=item):
            words = _in_words(item)
            return "a list of strings" if words == "a string" else f"a list, each {words}"
        case inspect.EnumType(cls=cls):
            return _one_of(str(member.value) for member in cls)
        case inspect.LiteralType(values=values):
            return _one_of(str(value) for value in values)
        case inspect.UnionType(types=types):
            return " or ".join(_in_words(t) for t in types if not isinstance(t, inspect.NoneType))
        case inspect.StructType() | inspect.DictType():
            return "a table"
    return "another value"


def _bounds(info: Any) -> str:
    """Say the bounds of a number. `info` is an IntType or a FloatType: they share no base."""
    low = f"at least {info.ge}" if info.ge is not None else ""
    low = f"greater than {info.gt}" if info.gt is not None else low
    high = f"at most {info.le}" if info.le is not None else ""
    high = f"less than {info.lt}" if info.lt is not None else high
    return "".join(f" {part}" for part in (low, "and" if low and high else "", high) if part)
