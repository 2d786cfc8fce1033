"""What the inspector costs: a message with and without its ring, and a page under load.

    uv run python -m tests.bench.bench_inspector

Prints microseconds a message, then how long a browser takes for its frames while 10,000 records
come in (chromium needed), and how many nodes the document has. It is no test: a shared machine
decides the numbers.
"""

import statistics
import time
import timeit

from tests.bench.bench_chain import MESSAGE, MESSAGES, ROUNDS, Keeper
from tests.browser.site import CHROMIUM, Site, site
from tests.support import SERVER, session_of

from midstream.core.frames import Kind
from midstream.core.ports import Sink
from midstream.hosts.inspector import Ring

RECORDS = 10_000
BATCH = 100
PROBE = """() => {
  window.spans = []; let last = performance.now();
  const tick = now => { window.spans.push(now - last); last = now; requestAnimationFrame(tick); };
  requestAnimationFrame(tick);
}"""


def microseconds(sink: Sink | None) -> float:
    """Return the best time of a message through a session with two addons, in microseconds."""
    session = session_of(Keeper("a"), Keeper("b"), sink=sink)
    session.open(0)

    def one() -> None:
        session.receive_message(SERVER, Kind.WS_TEXT, MESSAGE, 1)

    return min(timeit.repeat(one, number=MESSAGES, repeat=ROUNDS)) / MESSAGES * 1e6


def page_under_load(at: Site) -> None:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 760})
        at.open(1)
        page.goto(f"{at.url}#1")
        page.wait_for_selector(".record")
        page.evaluate(PROBE)
        began = time.perf_counter()
        for start in range(0, RECORDS, BATCH):
            at.write(*(at.message(1, {"n": n, "z": "z" * 99}) for n in range(start, start + BATCH)))
            page.wait_for_timeout(20)
        page.wait_for_selector(f"[aria-posinset='{RECORDS + 2}']")
        took = time.perf_counter() - began
        spans = sorted(page.evaluate("window.spans"))
        nodes = page.evaluate("document.getElementsByTagName('*').length")
        late = sum(span > 50 for span in spans)
        print(
            f"page: {RECORDS} records in {took:.1f} s, frames of the screen: median "
            f"{statistics.median(spans):.1f} ms, 95 % {spans[int(len(spans) * 0.95)]:.1f} ms, "
            f"longest {spans[-1]:.1f} ms, {late} over 50 ms of {len(spans)}; {nodes} nodes"
        )
        browser.close()


def main() -> None:
    bare = microseconds(None)
    print(f"2 addons, no sink    {bare:6.2f} us")
    cost = microseconds(Ring())
    print(f"the inspector's ring {cost:6.2f} us  x{cost / bare:.2f}")
    if CHROMIUM is None:
        print("page: there is no chromium on the path")
        return
    with site() as at:
        page_under_load(at)


if __name__ == "__main__":
    main()
