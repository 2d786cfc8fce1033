import copy
import json
import random
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from midstream.core import edit
from midstream.core.edit import INNER, Delete, Path, Set
from midstream.core.errors import EditError

# The documents are written piece by piece, with odd spellings that no encoder mixes like that. A
# random generator writes them, not hypothesis itself, which would be fifty times slower.

RANDOM = st.randoms(use_true_random=True)
SPACES = ["", "", "", " ", "\n  ", "\t", "\r\n"]
SCALARS = ["true", "null", "0", "-1", "1.50", "1e400", "-0.0", "2E-7", "12345678901234567890123"]
PIECES = (
    *("a", "x ", ",", "{", "]", "\x7f", "\u00e9", "\U0001f600", r"\n", r"\"", r"\\", r"\/", r"\t"),
    *(r"\u00e9", r"\u00E9", r"\u0041", r"\u0022", r"\u005c", r"\u0000"),
    *(r"\ud83d\ude00", r"\ud800", r"\udC00x"),
)
KEYS = ["a", "b", "c d", r"\u0061", r"\u00E9", "\u00e9", r"\ud800", "", r"\""]
NEW = ["0", "1.50", '"x"', r'"\ud800\/\u00e9\""', "null", '{ "k" : [] }', "[1,\n2]", '"\u00e9"']


@cache
def spellings(char: str, ascii_only: bool) -> tuple[str, str]:
    units = char.encode("utf-16-be", "surrogatepass").hex()
    long = "".join(rf"\u{units[i : i + 4]}" for i in range(0, len(units), 4))
    return json.dumps(char, ensure_ascii=ascii_only)[1:-1], long


def spelled(text: str, rnd: random.Random) -> str:
    """Write a text as a JSON string in one of many ways."""
    style = rnd.choice(["JSON.stringify", "json_encode", ".NET", ".net", "odd"])
    shown = []
    for char in text:
        plain, long = spellings(char, style == "json_encode")
        if style.lower() == ".net" and char in '"<&+\u00e9\U0001f600':
            shown.append(long.upper().replace("U", "u") if style == ".NET" else long)
        elif style == "json_encode" and char == "/":
            shown.append(r"\/")
        elif style == "odd" and rnd.random() < 0.2:
            shown.append(long)
        else:
            shown.append(plain)
    return '"' + "".join(shown) + '"'


def written(rnd: random.Random, depth: int = 4) -> str:
    """Write a random value."""
    kind = rnd.choice(["scalar", "string"] if depth == 0 else ["scalar", "string", *"[[{{["])
    if kind == "scalar":
        return rnd.choice(SCALARS)
    if kind == "string":
        return '"' + "".join(rnd.choices(PIECES, k=rnd.randrange(4))) + '"'
    space = SPACES if rnd.random() < 0.6 else [""]
    items = []
    for _ in range(rnd.randrange(5)):
        key = f'"{rnd.choice(KEYS)}"{rnd.choice(space)}:{rnd.choice(space)}' if kind == "{" else ""
        items.append(rnd.choice(space) + key + written(rnd, depth - 1) + rnd.choice(space))
    text = kind + rnd.choice(space) + ",".join(items) + ("}" if kind == "{" else "]")
    return spelled(text, rnd) if rnd.random() < 0.2 and len(text) < 500 else text


def document_by(rnd: random.Random) -> bytes:
    around = rnd.choice(["", "", "\ufeff"]), rnd.choice(SPACES), rnd.choice(SPACES)
    return (around[0] + around[1] + written(rnd) + around[2]).encode()


def held(value: object) -> Any:
    """What a string holds, if that is an object or array; else None."""
    if not isinstance(value, str) or value.strip(" \t\n\r")[:1] not in ("{", "["):
        return None
    try:
        return json.loads(value)
    except ValueError:
        return None


def same(left: Any, right: Any) -> bool:
    """Compare values, where strings that hold JSON text are compared by what they hold."""
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same, left, right))
    if left == right:
        return True
    return held(left) is not None and held(right) is not None and same(held(left), held(right))


def edited(value: Any, path: Path, new: Any, *, delete: bool = False) -> Any:
    """Make one edit on a parsed value: what `apply` must come to."""
    if not path:
        return new
    step, *rest = path
    if step is INNER:
        return json.dumps(edited(json.loads(value), tuple(rest), new, delete=delete))
    changed = copy.copy(value)
    if delete and not rest:
        del changed[step]
    else:
        changed[step] = edited(value[step], tuple(rest), new, delete=delete) if rest else new
    return changed


def paths_of(value: Any, way: Path = ()) -> list[Path]:
    """List every path of a parsed value, arrays counted from both ends."""
    found: list[Path] = [way]
    if isinstance(value, dict):
        for key in value:
            found += paths_of(value[key], (*way, key))
    elif isinstance(value, list):
        for index in range(len(value)):
            found += paths_of(value[index], (*way, index))
            found += paths_of(value[index], (*way, index - len(value)))
    elif held(value) is not None:
        found += paths_of(held(value), (*way, INNER))
    return found


def parsed(document: bytes) -> Any:
    return json.loads(document)


def removed(before: bytes, after: bytes) -> bytes:
    """Return the one stretch that has to be cut from `before` to make `after`."""
    pairs = enumerate(zip(before, after, strict=False))
    start = next((i for i, (old, new) in pairs if old != new), len(after))
    stop = start + len(before) - len(after)
    assert before[:start] + before[stop:] == after
    return before[start:stop]


@settings(max_examples=1000)
@given(RANDOM)
def test_set_changes_that_value_and_nothing_else(rnd: random.Random) -> None:
    document = document_by(rnd)
    path = rnd.choice(paths_of(parsed(document)))
    new = rnd.choice(NEW)
    result = edit.apply(document, Set(path, new.encode()))
    if not path or path[-1] is not INNER:
        assert same(parsed(result), edited(parsed(document), path, json.loads(new)))
    assert edit.get(result, path) == new.encode()

    old = edit.get(document, path)
    assert old is not None
    assert edit.apply(document, Set(path, old)) == document

    marked = edit.apply(document, Set(path, b"123454321"))
    front, _, back = marked.partition(b"123454321")
    assert document.startswith(front)
    assert document.endswith(back)
    if INNER not in path:
        assert document[len(front) : len(document) - len(back)] == old


@settings(max_examples=1000)
@given(RANDOM)
def test_delete_removes_that_item_with_one_comma(rnd: random.Random) -> None:
    document = document_by(rnd)
    paths = [path for path in paths_of(parsed(document)) if path and path[-1] is not INNER]
    if not paths:
        return
    path = rnd.choice(paths)
    result = edit.apply(document, Delete(path))
    assert same(parsed(result), edited(parsed(document), path, None, delete=True))
    assert edit.apply(result, Delete(path)) == result or isinstance(path[-1], int)
    if isinstance(path[-1], int):  # a key may stand there more than once
        assert removed(document, result).strip(b" \t\r\n,")


@settings(max_examples=1000)
@given(RANDOM)
def test_several_edits_at_once_are_those_edits_one_by_one(rnd: random.Random) -> None:
    """Indices mean the original: so one by one they are made from the back."""
    document = document_by(rnd)
    paths = [
        path
        for path in paths_of(parsed(document))
        if path and path[-1] is not INNER and not any(isinstance(s, int) and s < 0 for s in path)
    ]
    chosen: list[Path] = []
    for path in rnd.sample(paths, min(len(paths), 6)):
        if all(path[: len(other)] != other and other[: len(path)] != path for other in chosen):
            chosen.append(path)
    edits: list[edit.Edit] = [Delete(path) for path in chosen[::2]]
    edits += [Set(path, b'"new"') for path in chosen[1::2]]
    expected = parsed(document)
    order = sorted(edits, key=lambda one: [repr(s).zfill(9) for s in one.path], reverse=True)
    for one in order:
        expected = edited(expected, one.path, "new", delete=isinstance(one, Delete))
    assert same(parsed(edit.apply(document, *edits)), expected)


@settings(max_examples=1000)
@given(RANDOM)
def test_a_missing_key_is_added_to_its_object(rnd: random.Random) -> None:
    document = document_by(rnd)
    path = rnd.choice(paths_of(parsed(document)))
    key = json.loads(f'"{rnd.choice(KEYS)}"')
    inside = edit.get(document, path)
    assert inside is not None
    value = json.loads(inside)
    if not isinstance(value, dict):
        assert edit.apply(document, Delete((*path, "new"))) == document
        with pytest.raises(EditError):
            edit.apply(document, Set((*path, "new"), b"1"))
        return
    result = edit.apply(document, Set((*path, key), b"{}"), Set((*path, "new"), b"1"))
    assert json.loads(edit.get(result, path) or b"") == {**value, key: {}, "new": 1}
    assert edit.apply(result, Delete((*path, "new"))) == edit.apply(
        document, Set((*path, key), b"{}")
    )


@given(RANDOM)
def test_no_edits_change_nothing(rnd: random.Random) -> None:
    document = document_by(rnd)
    assert edit.apply(document) is document


@settings(max_examples=500)
@given(RANDOM)
def test_spans_are_where_the_elements_stand(rnd: random.Random) -> None:
    document = document_by(rnd)
    path = rnd.choice(paths_of(parsed(document)))
    value = json.loads(edit.get(document, path) or b"")
    found = edit.spans(document, path)
    if not isinstance(value, list):
        assert found == []
        return
    texts = [document[start:end] for start, end in found]
    if INNER not in path:
        assert texts == [edit.get(document, (*path, i)) for i in range(len(value))]
    cut = edit.apply(document, *(Delete((*path, i)) for i in range(len(value))))
    assert json.loads(edit.get(cut, path) or b"") == []
    assert len(texts) == len(value)


@settings(max_examples=1000)
@given(RANDOM)
def test_text_in_a_string_in_a_string(rnd: random.Random) -> None:
    text = written(rnd)
    middle = '{"n":1.50, "t" : ' + spelled('["A\u0410/", ' + text + "]", rnd) + "}"
    document = ('{"x":"\u00e9","m":' + spelled(middle, rnd) + "}").encode()
    way: Path = ("m", INNER, "t", INNER)
    assert json.loads(edit.get(document, (*way, -1)) or b"") == json.loads(text)

    changed = edit.apply(document, Set((*way, 0), b'"\\n"'), Set(("x",), b"2"))
    outer = json.loads(changed)
    assert outer["x"] == 2
    assert json.loads(json.loads(outer["m"])["t"]) == ["\n", json.loads(text)]

    cut = edit.apply(document, Delete((*way, 0)), Delete(("m", INNER, "n")), Delete(("x",)))
    assert json.loads(json.loads(json.loads(cut)["m"])["t"]) == [json.loads(text)]


EXACT: list[tuple[str, list[edit.Edit], str]] = [
    ("[1,2,3]", [Delete((0,))], "[2,3]"),
    ("[1,2,3]", [Delete((1,))], "[1,3]"),
    ("[1,2,3]", [Delete((-1,))], "[1,2]"),
    ("[1,2,3]", [Delete((0,)), Delete((1,))], "[3]"),
    ("[1,2,3]", [Delete((0,)), Delete((2,))], "[2]"),
    ("[1,2,3]", [Delete((2,)), Delete((0,)), Delete((1,))], "[]"),
    ("[ 1 , 2 ]", [Delete((0,))], "[ 2 ]"),
    ("[ 1 , 2 ]", [Delete((1,))], "[ 1 ]"),
    ("[\n  1,\n  2,\n  3\n]", [Delete((1,)), Set((2,), b"4")], "[\n  1,\n  4\n]"),
    ("[1,2]", [Delete((7,)), Delete(("a",)), Delete((0, "a"))], "[1,2]"),
    ("{}", [Set(("a",), b"1"), Set(("b",), b"2")], '{"a":1,"b":2}'),
    ('{ "a" : 1 }', [Set(("b",), b"2")], '{ "a" : 1,"b":2 }'),
    ('{"a":1}', [Delete(("a",)), Set(("b",), b"2")], '{"b":2}'),
    ('{"a":1,"b":2}', [Delete(("b",)), Set(("c",), b"3")], '{"a":1,"c":3}'),
    ('{"a":1,"b":2}', [Delete(("a",)), Set(("b",), b"3")], '{"b":3}'),
    ('{"a":1,"b":2,"a":3}', [Set(("a",), b"4")], '{"a":1,"b":2,"a":4}'),
    ('{"a":1,"b":2,"a":3}', [Delete(("a",))], '{"b":2}'),
    (r'{"a":1,"\u0061":2}', [Delete(("a",))], "{}"),
    ('{"a":{"x":1},"a":{"x":2}}', [Set(("a", "x"), b"3")], '{"a":{"x":1},"a":{"x":3}}'),
    (r'{"b":"{\"k\":\"\/\",\"n\":1}"}', [Set(("b", INNER, "n"), b'"\xc3\xa9\\n"')],
     r'{"b":"{\"k\":\"\/\",\"n\":\"' + "\u00e9" + r'\\n\"}"}'),
    (r'{"b":"{\"k\":1}"}', [Set(("b", INNER, "k"), rb'"\ud800"')], r'{"b":"{\"k\":\"\\ud800\"}"}'),
    (r'{"b":"[1]"}', [Set(("b", INNER), b"{\n}")], r'{"b":"{\n}"}'),
    (r'{"b":"{}"}', [Set(("b", INNER, "k"), b"\t1")], r'{"b":"{\"k\":\t1}"}'),
    (r'{"b":"{\u0022k\u0022:1}"}', [Delete(("b", INNER, "k"))], '{"b":"{}"}'),
    (r'{"b":"\u007b\"k\"\u003A1,\n\u0020\"l\":2}"}', [Delete(("b", INNER, "k"))],
     r'{"b":"\u007b\"l\":2}"}'),
    ('"[1,2]"', [Delete((INNER, 0))], '"[2]"'),
    (" 1 ", [Set((), b"[]")], " [] "),
    ('{"\U0001f600":1}', [Set(("\U0001f600",), b"2")], '{"\U0001f600":2}'),
]  # fmt: skip


@pytest.mark.parametrize(("document", "edits", "expected"), EXACT)
def test_exact_bytes(document: str, edits: list[edit.Edit], expected: str) -> None:
    assert edit.apply(document.encode(), *edits).decode() == expected


@pytest.mark.parametrize(
    "sibling",
    [
        b"1e400", b"12345678901234567890123", b"1.50", rb'"\u00e9\/\ud800"', rb'{"\udfff":[ ]}',
        b'"\xff\xfe"', b'"\xed\xa0\x80"', b'{"\xff":1,"\xff":2}', b'"' + b"x" * 100_000 + b'"',
    ],
)  # fmt: skip
def test_siblings_keep_bytes_that_no_encoder_would_write(sibling: bytes) -> None:
    document = b'\xef\xbb\xbf{"o":%b,"a":[%b,1,%b],"\xff":0}' % (sibling, sibling, sibling)
    expected = b'\xef\xbb\xbf{"o":%b,"a":[%b,{"n":2}],"\xff":0}' % (sibling, sibling)
    assert edit.apply(document, Delete(("a", -1)), Set(("a", 1), b'{"n":2}')) == expected


def test_paths_into_siblings_that_msgspec_cannot_read() -> None:
    document = b'{"\xff":{"\xc3\xa9":1,"k\xff":2},"s":"\\ud800","\\ud800":{"a":3}}'
    assert edit.get(document, ("\ufffd", "\u00e9")) == b"1"
    assert edit.get(document, ("\ud800", "a")) == b"3"
    changed = edit.apply(document, Set(("\ufffd", "\u00e9"), b"[]"), Delete(("\ud800", "a")))
    assert changed == b'{"\xff":{"\xc3\xa9":[],"k\xff":2},"s":"\\ud800","\\ud800":{}}'


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "{", "nul", "[1", "[1,]", "[1}", "[1 2]", "[NaN]", "[tru]", "[01]", "[1.]", "[1e]",
        "{'a':1}", "{1:2}", '{"a"', '{"a":1', '{"a":1}}', '{"a":1,}', '{"a":1 "b":2}', "\x00",
        r'{"a":"\x"}', r'{"a":"\u12"}', '{"a":"\n"}', '\ufeff\ufeff{"a":1}',
    ],
)  # fmt: skip
def test_malformed_text_is_refused(text: str) -> None:
    refuse(text.encode())


@pytest.mark.parametrize(("opening", "closing"), [("[", ""), ("[", "]"), ('{"a":', "}")])
def test_text_nested_too_deeply_is_refused(opening: str, closing: str) -> None:
    refuse(b"%b1%b" % (opening.encode() * 100_000, closing.encode() * 100_000))


def refuse(text: bytes) -> None:
    inner = json.dumps({"b": text.decode()}).encode()
    for document, way in ((text, ()), (inner, ("b", INNER))):
        for one in (Set((*way, "a"), b"1"), Delete((*way, "a")), Delete((*way, 0)), Set(way, b"1")):
            with pytest.raises(EditError):
                edit.apply(document, one)
        with pytest.raises(EditError):
            edit.get(document, way)
    with pytest.raises(EditError):
        edit.apply(b"{}", Set(("a",), text))


def test_depth_beside_the_path_is_no_problem_up_to_the_limit_of_recursion() -> None:
    deep = b"[" * 400 + b"]" * 400
    assert edit.apply(b'{"d":%b,"a":1}' % deep, Delete(("a",))) == b'{"d":%b}' % deep


@pytest.mark.parametrize(
    "edits",
    [
        [Set(("a",), b"1"), Set(("a",), b"2")],
        [Set(("a",), b"1"), Delete(("a",))],
        [Set(("a",), b"1"), Set(("a", "b"), b"2")],
        [Delete(("a", "b")), Delete(("a",))],
        [Delete(("l", 0)), Delete(("l", -2))],
        [Set(("l", -1), b"1"), Set(("l", 1, "x"), b"1")],
        [Set(("new",), b"1"), Set(("new",), b"1")],
        [Set((), b"1"), Delete(("a",))],
        [Delete(("a",)), Set((), b"1")],
    ],
)
def test_overlapping_edits_are_refused(edits: list[edit.Edit]) -> None:
    with pytest.raises(EditError, match="overlap"):
        edit.apply(b'{"a":{"b":1},"l":[1,{"x":2}]}', *edits)


@pytest.mark.parametrize(
    "path",
    [
        ("l", 2), ("l", -3), ("l", "a"), (0,), ("no", "a"), ("n", "a"), ("l", INNER),
        ("s", INNER, "a"), ("a", INNER, 1),
    ],
)  # fmt: skip
def test_where_a_path_leads_nowhere_set_is_refused_and_delete_does_nothing(path: Path) -> None:
    document = rb'{"a":{"b":1},"l":[1,2],"s":"[1]","n":null}'
    with pytest.raises(EditError, match="nothing to set"):
        edit.apply(document, Set(path, b"1"))
    if path[-1] is not INNER:
        assert edit.apply(document, Delete(path)) == document
    assert edit.get(document, path) is None
    assert edit.spans(document, path) == []


@pytest.mark.parametrize("path", [(), ("s", INNER)])
def test_a_whole_text_cannot_be_deleted(path: Path) -> None:
    with pytest.raises(EditError, match="cannot delete"):
        edit.apply(b'{"s":"1"}', Delete(path))


def test_a_string_that_holds_no_json_is_refused() -> None:
    for content in (b"hello", rb"[\b]", rb"\"\u0001\"", rb"[1\u00e9]", b"\xef\xbb\xbf[]", b""):
        with pytest.raises(EditError, match="no JSON text"):
            edit.apply(b'{"s":"%b"}' % content, Delete(("s", INNER, 0)))


def test_deletes_in_an_uploaded_body_keep_the_other_messages() -> None:
    messages = [{"id": f"m{i}", "text": 'say "h\u00e9llo"\n'} for i in range(500)]
    body = json.dumps({"messages": messages}, ensure_ascii=False, separators=(",", ":"))
    document = json.dumps({"init": {"body": body}}, ensure_ascii=False).encode()
    way: Path = ("init", "body", INNER, "messages")
    gone = [0, 1, 250, 499]
    result = edit.apply(document, *(Delete((*way, i)) for i in gone))
    left = [message for i, message in enumerate(messages) if i not in gone]
    expected = json.dumps({"messages": left}, ensure_ascii=False, separators=(",", ":"))
    assert result == json.dumps({"init": {"body": expected}}, ensure_ascii=False).encode()
