"""Chrome's own importer of its network panel reads what is exported as HAR."""

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from midstream.adapters.capture_exchanges import gathered
from midstream.adapters.capture_format import read
from midstream.cli import main
from midstream.core.frames import Side

pytestmark = pytest.mark.peers  # a browser, some seconds each; CI runs it, too

CAPTURES = Path(__file__).parents[1] / "captures"
FILES = [
    CAPTURES / "cloudflare" / "aichat-03-midcontinuation-reconnect-000001.cap",
    *sorted((CAPTURES / "a2a").rglob("*.cap"))[:2],
    *sorted((CAPTURES / "history").rglob("*.cap"))[:2],
]
DEVTOOLS = "devtools://devtools/bundled"
IMPORT = """async ([devtools, har]) => {
  const { HARFormat, Importer } = await import(devtools + "/models/har/har.js");
  const { log } = new HARFormat.HARRoot(JSON.parse(har));
  return Promise.all(Importer.Importer.requestsFromHARLog(log).map(async (request) => ({
    method: request.requestMethod, url: request.url(), status: request.statusCode,
    type: request.resourceType().name(),
    frames: request.frames().map(({ type, opCode, text }) => [type, opCode, text]),
    body: (await request.requestContentData()).text ?? "",
  })));
}"""


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_network_panel_of_chrome_imports_it(
    path: Path, tmp_path: Path, browser: Browser
) -> None:
    out = tmp_path / "x.har"
    assert main(["capture", "export", "har", str(path), "--out", str(out)]) == 0
    page = browser.new_page()
    page.goto(f"{DEVTOOLS}/devtools_app.html")
    requests: list[dict[str, Any]] = page.evaluate(IMPORT, [DEVTOOLS, out.read_text()])
    page.close()

    exchanges = sorted(gathered(read(path), seen_by=Side.CLIENT), key=lambda e: e.began_ns)
    assert [request["method"] for request in requests] == [e.head.method for e in exchanges]
    for request, exchange in zip(requests, exchanges, strict=True):
        is_socket = exchange.head.is_websocket
        assert (request["type"] == "websocket") is (request["status"] == 101) is is_socket
        assert request["url"].startswith("ws:" if is_socket else "http:")
        assert request["frames"] == [
            ["send" if m.frame.sender is Side.CLIENT else "receive", 1, m.frame.wire.decode()]
            for m in exchange.messages
        ]
        assert request["body"] == ("" if is_socket else exchange.body(Side.SERVER).decode())
