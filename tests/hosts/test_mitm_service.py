"""What runs beside the flows inside mitmproxy: admin port, capture, readiness."""

import asyncio

import aiohttp
from tests.hosts.mitm_master import comes_true

from midstream.config import load
from midstream.hosts.mitm_service import Service


def service(tmp_path, text: str = "") -> Service:
    path = tmp_path / "midstream.toml"
    path.write_text(f'admin = "127.0.0.1:0"\n{text}')
    return Service.of(load(str(path), environ={}, needs_upstream=False))


async def got(port: int, path: str) -> tuple[int, str]:
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"http://127.0.0.1:{port}{path}") as response,
    ):
        return response.status, await response.text()


async def refuses(port: int) -> bool:
    for _ in range(500):
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except ConnectionError:
            return True
        writer.close()
        await asyncio.sleep(0.01)
    return False


async def test_the_admin_port_serves_metrics_and_readiness_and_closes(tmp_path):
    running = service(tmp_path)
    running.start()
    assert await comes_true(lambda: running.admin_port)
    port = running.admin_port
    assert await got(port, "/readyz") == (200, "ready\n")
    assert "midstream_build_info" in (await got(port, "/metrics"))[1]
    running.stop()
    assert running.readiness() == (503, "draining")
    assert await refuses(port)


async def test_a_capture_that_cannot_be_written_makes_readiness_degraded(tmp_path):
    (tmp_path / "captures").write_text("a file where a folder should be")
    running = service(tmp_path, f'[capture]\ndir = "{tmp_path / "captures"}"\n')
    running.start()
    assert await comes_true(lambda: running.readiness() == (200, "degraded: capture"))
    running.stop()
    await asyncio.sleep(0.1)
