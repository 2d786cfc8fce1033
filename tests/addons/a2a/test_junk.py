"""What is no A2A, and what is broken: it passes byte for byte, and the stream goes on."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.addons.a2a import forms
from tests.addons.a2a.client import Client
from tests.addons.a2a.events import Update
from tests.addons.a2a.forms import RPC03
from tests.addons.a2a.judge import updates_of
from tests.addons.a2a.lanes import so_far
from tests.addons.a2a.rig import Rig, run
from tests.addons.a2a.say import ANSWER, DONE, PIECES, octets, updates, wires
from tests.addons.a2a.streams import short

from midstream.core.frames import Frame, Kind, Side

SEEDS = st.integers(min_value=0, max_value=1 << 32)
chosen = settings(max_examples=40)


UPDATE = {"kind": "artifact-update", "taskId": "t", "contextId": "c", "append": True}
JUNK = [
    b"not json at all",
    b"{",
    b"",
    b"[]",
    b"null",
    b"1e400",
    b'"artifact-update"',
    b"\xff\xfe artifactId",
    b"[DONE]",
    b"<html><body>502 artifactUpdate</body></html>",
    b'{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"artifact broke"}}',
    b'{"jsonrpc":"2.0","id":1,"error":"artifactUpdate"}',
    b'{"jsonrpc":"2.0","id":1,"result":null}',
    b'{"jsonrpc":"2.0","id":1,"result":{"kind":"artifact-update"}}',
    b'{"jsonrpc":"2.0","id":1,"result":{"kind":"something-new","artifact":{}}}',
    b'{"jsonrpc":"2.0","id":1,"result":{"artifactUpdate":[]}}',
    b'{"jsonrpc":"2.0","id":1,"result":{"artifactUpdate":null,"statusUpdate":null}}',
    b'{"jsonrpc":"2.0","id":1,"result":{"statusUpdate":{"status":"completed"}}}',
    b'{"jsonrpc":"2.0","id":1,"result":{"statusUpdate":{"status":{"state":7}}}}',
    json.dumps({**UPDATE, "artifact": {"parts": [{"kind": "text", "text": "x"}]}}).encode(),
    json.dumps({**UPDATE, "artifact": {"artifactId": "a1", "parts": "x"}}).encode(),
    json.dumps({**UPDATE, "artifact": {"artifactId": 7, "parts": []}}).encode(),
    json.dumps({**UPDATE, "artifact": {"artifactId": "a1", "parts": [7]}}).encode(),
    json.dumps({**UPDATE, "artifact": {"artifactId": "a1", "parts": [{"text": 7}]}}).encode(),
    json.dumps({**UPDATE, "artifact": [], "append": "yes"}).encode(),
]


@pytest.mark.parametrize("payload", JUNK, ids=range(len(JUNK)))
@pytest.mark.parametrize(
    "form", [RPC03, forms.AGENTSCOPE, forms.WS_TEXT, forms.WS_BINARY], ids=lambda form: form.name
)
def test_junk_passes_byte_for_byte_and_the_stream_goes_on(form, payload):
    rig = Rig()
    made = short(form, *so_far(PIECES)).wires()
    sent = [*made[:3], form.framed(payload), *made[3:]]
    left = run(rig, sent, form)
    assert form.framed(payload) in [frame.wire for frame in left]
    assert Client().takes(left).texts["a1"] == ANSWER
    assert rig.errors == 0


@chosen
@given(st.binary(max_size=300))
def test_any_bytes_pass_as_they_came(junk):
    for form in (RPC03, forms.WS_TEXT, forms.WS_BINARY):
        assert octets(run(Rig(), [junk], form)) == junk


KEYS = (
    "kind", "result", "artifactUpdate", "statusUpdate", "task", "artifact", "parts", "artifactId",
    "text", "status", "state", "message", "append", "metadata", "id",
)  # fmt: skip
WORDS = st.sampled_from(["artifact-update", "status-update", "task", "a1", "completed"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(KEYS), inner | WORDS, max_size=5)
    ),
    max_leaves=12,
)


@chosen
@given(VALUES)
def test_values_of_any_shape_pass_without_a_failure(value):
    rig = Rig()
    wire = RPC03.framed(json.dumps(value).encode())
    left = run(rig, [wire])
    assert rig.errors == 0
    if not updates_of([Frame(Side.SERVER, Kind.SSE, wire)]):
        assert octets(left) == wire


def test_an_update_without_parts_passes():
    made = wires(
        [*updates(("Hello, ", False)), Update("a1", (), True), *updates(("Mira.", True)), DONE]
    )
    assert [frame.wire for frame in run(Rig(), made)] == made


def test_odd_numbers_and_half_characters_in_clean_deltas_pass():
    made = short(forms.RPC03, "a\ud83d", "\ude00b", "\ud83d", "c").wires()
    made = [
        wire.replace(b'"contextId"', b'"n":1e400,"m":12345678901234567890123,"n":1.50,"contextId"')
        for wire in made
    ]
    rig = Rig()
    assert [frame.wire for frame in run(rig, made)] == made
    assert rig.errors == 0


def test_an_event_over_the_limit_passes_and_all_behind_it():
    made = short(RPC03, *PIECES, "x" * 5000, *so_far(PIECES)).wires()
    left = run(Rig(max_frame_bytes=2000), made)
    assert octets(left) == b"".join(made)


def test_a_held_frame_leaves_before_an_event_over_the_limit():
    made = short(RPC03, "ha", "haha", "x" * 5000).wires()
    left = octets(run(Rig(max_frame_bytes=2000), made, gap_ms=0))
    events = [Frame(Side.SERVER, Kind.SSE, wire) for wire in left.splitlines(keepends=True)]
    assert Client().takes(events).texts["a1"].endswith("haha" + "x" * 5000)


def test_a_page_of_errors_that_calls_itself_an_event_stream_passes():
    page = b"<html>\n<head><title>502</title></head>\n\n<body>artifactUpdate</body>\n</html>\n"
    assert octets(run(Rig(), [page])) == page


def test_comments_and_keepalives_pass_where_they_were():
    made = short(RPC03, *so_far(PIECES)).wires()
    pings = [b": ping\r\n\r\n", b"\r\n", b"retry: 3000\r\n\r\n", b"id: 7\r\n\r\n"]
    sent = [wire for pair in zip(made, pings * 2, strict=False) for wire in pair]
    left = [frame.wire for frame in run(Rig(), sent)]
    assert [wire for wire in left if wire in pings] == [wire for wire in sent if wire in pings]
    assert Client().takes(run(Rig(), sent)).texts == {"a1": ANSWER}


def test_lines_of_an_event_beside_its_data_stay():
    form = forms.AGENTSCOPE
    left = run(Rig(), short(form, *so_far(PIECES)).wires(), form)
    for frame in left[:5]:
        assert frame.wire.startswith(b"event: jsonrpc\nid: 1\ndata: ")
        assert frame.wire.endswith(b"\n\n")
