"""Texts as agents write them, and how models and servers cut them into pieces.

All texts are invented or generated; the code is the Python standard library's own source, read when
the tests run.
"""

import re
import sysconfig
from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random

from tests.addons.a2a.events import units

MAX_FILES = 60
MAX_FILE_BYTES = 40_000
TOPICS = ("the order", "your booking", "the invoice", "region north", "Mira", "the second report")
VERBS = ("is ready", "was found twice", "needs a very, very careful look", "has changed", "waits")
ENDS = ("today", "for now", "in 10 or 100 minutes", "(see the table)", "- no, no", "at 12:00")
CHINESE = (
    "你好", "请先告诉我", "要查询的区域", "华东", "和华北", "订单", "已经", "准备好了",
    "谢谢谢谢", "一二三", "哈哈", "\uff0c", "。", "\uff1a", "\n",
)  # fmt: skip
EMOJI = (
    "👋 ",
    "👨\u200d👩\u200d👧",
    "👍🏽",
    "🇩🇪",
    "cafe\u0301 ",
    "e\u0301\u0301",
    "n\u0303o ",
    "😀😀",
    "ok ",
    "\n",
)
MARKS = (
    "# Title\n", "## Part\n", "### Part\n", "* one\n", "** two\n", "**bold** ", "- a\n", "- a\n",
    "| a | b |\n", "|---|---|\n", "```\n", "    x = 1\n", "    x = 1\n", "1. ", "10. ", "\n\n",
    "some words ",
)  # fmt: skip
LICENCE = "# Copyright of nobody.\n# All of it may be used.\n#\n#\n# No warranty.\n"
ECHOES = (
    "ha",
    "haha",
    "no",
    "no ",
    " very",
    "1",
    "10",
    "100",
    "a",
    "ab",
    "OK",
    "##",
    "#",
    "\n",
    " ",
)
TOKEN = re.compile(r" ?[^\W_]+|\s+|[^\w\s]+|_+")


def english(rng: Random, length: int) -> str:
    found = ""
    while len(found) < length:
        found += f"{rng.choice(TOPICS).capitalize()} {rng.choice(VERBS)} {rng.choice(ENDS)}. "
    return found


def chinese(rng: Random, length: int) -> str:
    return _some(rng, CHINESE, length)


def emoji(rng: Random, length: int) -> str:
    return _some(rng, EMOJI, length)


def markdown(rng: Random, length: int) -> str:
    return (LICENCE if rng.random() < 0.3 else "") + _some(rng, MARKS, length)


def code(rng: Random, length: int) -> str:
    """Return lines of a file of the standard library, from its beginning or from the middle."""
    lines = rng.choice(_files()).splitlines(keepends=True)
    start = rng.choice((0, rng.randrange(len(lines))))
    found = ""
    for line in lines[start:]:
        found += line
        if len(found) >= length:
            break
    return found


def echoes(rng: Random, length: int) -> str:
    """Return a text that is made of repeats, the hardest kind."""
    return _some(rng, ECHOES, length)


SOURCES: tuple[Callable[[Random, int], str], ...] = (english, chinese, code, code, markdown, emoji)


def tokens(text: str, rng: Random) -> list[str]:
    """Cut as a byte-pair encoder does: words with their space, long ones in pieces."""
    found: list[str] = []
    for match in TOKEN.finditer(text):
        rest = match[0]
        wide = not rest.isascii()
        while rest:
            size = rng.randint(1, 2) if wide else rng.randint(3, 7)
            found.append(rest[:size])
            rest = rest[size:]
    return found


def words(text: str, _rng: Random) -> list[str]:
    return re.findall(r"\s*\S+|\s+", text)


def chars(text: str, _rng: Random) -> list[str]:
    return list(text)


def fours(text: str, _rng: Random) -> list[str]:
    return [text[i : i + 4] for i in range(0, len(text), 4)]


def twenties(text: str, _rng: Random) -> list[str]:
    return [text[i : i + 20] for i in range(0, len(text), 20)]


def lines(text: str, _rng: Random) -> list[str]:
    return text.splitlines(keepends=True)


def code_units(text: str, rng: Random) -> list[str]:
    """Cut as a Java server may: in UTF-16, also inside a pair."""
    octets = units(text)
    found = []
    at = 0
    while at < len(octets):
        size = 2 * rng.randint(1, 6)
        found.append(octets[at : at + size].decode("utf-16-le", "surrogatepass"))
        at += size
    return found


GRAINS: tuple[Callable[[str, Random], list[str]], ...] = (
    tokens, tokens, tokens, words, chars, fours, twenties, lines, code_units,
)  # fmt: skip


def _some(rng: Random, stock: tuple[str, ...], length: int) -> str:
    found = ""
    while len(found) < length:
        found += rng.choice(stock)
    return found


@cache
def _files() -> tuple[str, ...]:
    folder = Path(sysconfig.get_path("stdlib"))
    found = []
    for path in sorted(folder.glob("*.py"))[: MAX_FILES * 2]:
        text = path.read_text(encoding="utf-8", errors="replace")[:MAX_FILE_BYTES]
        if text.strip():
            found.append(text)
    return tuple(found[:MAX_FILES])
