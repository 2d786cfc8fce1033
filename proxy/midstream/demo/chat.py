"""The faults of a chat, and how to show each: play it against a server and look what came out."""

from aiohttp import web

from midstream.demo.chat_client import ChatClient
from midstream.demo.chat_server import SUMMARY, WORDS, ChatServer, text_message
from midstream.demo.fault import Fault, Outcome


class LostConnection:
    """Lose the connection in the middle of a continuation, and come back."""

    def __init__(self) -> None:
        self._server = ChatServer()

    def app(self) -> web.Application:
        return self._server.app()

    async def play(self, base_url: str) -> Outcome:
        page = ChatClient(base_url)
        async with page:
            said = text_message("a1", "assistant", "before")
            await page.send(text_message("u1", "user", "go on"), said)
            await page.until(WORDS[4].strip())
            await page.disconnect()
            await page.connect()
            await page.until_done()
        want = "before | " + "".join(WORDS).strip()
        return Outcome(page.screen(), page.screen() == want)


class Compaction:
    """Compact a chat, then send one more message."""

    def __init__(self) -> None:
        self._server = ChatServer()

    def app(self) -> web.Application:
        return self._server.app()

    async def play(self, base_url: str) -> Outcome:
        async with ChatClient(base_url) as page:
            await page.send(text_message("u1", "user", "first"))
            await page.until("an answer")
            await self._server.compact()
            await page.until(str(SUMMARY["parts"][0]["text"]))
            await page.send(text_message("u2", "user", "second"))
            await page.until("an answer")
        rows = ", ".join(str(row["id"]) for row in self._server.rows)
        return Outcome(f"stored rows: {rows}", str(SUMMARY["id"]) not in rows)


FAULTS = (
    Fault(
        "replay-overlap",
        "a chat loses its connection in the middle of an answer, and reconnects",
        LostConnection,
    ),
    Fault(
        "strip-compaction",
        "after a compaction the client uploads the server's own summary, and it is stored",
        Compaction,
    ),
)
