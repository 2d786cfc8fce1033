"""What is found in random trees, and what a repair makes of them."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from tests.sessions.stores import Record, Row, Store, links
from tests.sessions.verbs import Captured, made, said

from midstream.sessions.findings import Finding, find
from midstream.sessions.layouts import layouts_of
from midstream.sessions.repair import repair


@st.composite
def trees(draw: st.DrawFn) -> tuple[list[Row], list[Record], set[str]]:
    """Rows, compaction records, and which of the rows are filed: any tree, any ranges."""
    names = [f"m{number}" for number in range(draw(st.integers(1, 14)))]
    filed = draw(st.sets(st.sampled_from(names), max_size=6))
    foreign = draw(st.sets(st.sampled_from(names), max_size=3)) - filed
    identifier = {n: f"compaction_{n}" if n in filed | foreign else n for n in names}
    parents = [
        draw(st.sampled_from([None, "gone", *names[:number]])) for number in range(len(names))
    ]
    rows = [
        (identifier[n], identifier.get(p, p) if p else None)
        for n, p in zip(names, parents, strict=True)
    ]
    ends = st.sampled_from(list(identifier.values()))
    records = [(name, draw(ends), draw(ends)) for name in sorted(filed)]
    records += [(f"extra{n}", draw(ends), draw(ends)) for n in range(draw(st.integers(0, 2)))]
    return rows, records, {identifier[name] for name in filed}


TREES = given(tree=trees(), layout=st.sampled_from(["old", "new"]))


@TREES
def test_no_row_is_lost_but_the_filed_ones_and_every_path_stays_in_order(tree, layout: str):
    rows, records, removed = tree
    store = _repaired(layout, rows, records)
    before, after = dict(rows), store.links()
    assert set(after) == set(before) - removed
    for row in after:
        assert _path(after, row) == [name for name in _path(before, row) if name not in removed]
    store.close()


@TREES
def test_a_record_covers_the_rows_that_stay_of_its_range_and_no_others(tree, layout: str):
    rows, records, removed = tree
    store = _repaired(layout, rows, records)
    after, pointed = store.links(), store.ranges()
    for record, first, last in records:
        staying = [name for name in _range(dict(rows), first, last) if name not in removed]
        assert _range(after, *pointed[record]) == staying
        if not {first, last} & removed:
            assert pointed[record] == (first, last)
    store.close()


@TREES
def test_nothing_is_found_in_what_was_repaired(tree, layout: str):
    rows, records, _ = tree
    store = _repaired(layout, rows, records)
    assert _found(store) == []
    store.close()


def test_a_circle_of_parents_ends_the_search(tmp_path: Path, capsys: Captured):
    rows = [("compaction_r1", "compaction_r2"), ("compaction_r2", "compaction_r1"),
            ("u1", "compaction_r1"), ("x", "y"), ("y", "x")]  # fmt: skip
    records = [("r1", "u1", "compaction_r2"), ("r2", "x", "compaction_r1")]
    path = made(tmp_path, rows=rows, records=records)
    assert said(capsys, "repair", path, "--write")[0] == 0
    assert links(path) == {"u1": None, "x": "y", "y": "x"}


def _repaired(layout: str, rows: list[Row], records: list[Record]) -> Store:
    store = Store(":memory:", layout)
    store.fill(rows, records)
    repair(store.database, _found(store), "a database")
    return store


def _found(store: Store) -> list[Finding]:
    layouts = layouts_of(store.database, "a database")
    return [finding for layout in layouts for finding in find(store.database, layout)]


def _path(parents: dict[str, str | None], row: str) -> list[str]:
    """The row and its ancestors, and where the last one's parent should be."""
    found = [row]
    while (parent := parents.get(found[-1])) is not None:
        found.append(parent)
    return found


def _range(parents: dict[str, str | None], first: str, last: str) -> list[str]:
    """The rows that the server replaces by a summary: none unless both ends are on one branch."""
    path = _path(parents, last) if last in parents else []
    return path[: path.index(first) + 1] if first in path and first in parents else []
