"""A changed configuration: for new exchanges only, and never a broken one."""

import signal
from pathlib import Path

from tests.hosts.test_gateway_process import GET, Process, config, hello, run
from tests.hosts.upstreams import TEXT, Visit, connect, open_socket, upstream


async def other(visit: Visit) -> None:
    await visit.respond(body=b"other")


async def echo_or_hello(visit: Visit) -> None:
    if not visit.request.get("upgrade"):
        await hello(visit)
        return
    await visit.accept()
    for _ in range(2):
        await visit.send_frame(*await visit.frame())


async def body_of(port: int, target: str = "/") -> bytes:
    async with await connect(port) as client:
        await client.send(GET.replace(b" / ", f" {target} ".encode()))
        return await client.body(await client.head())


async def reload(gw: Process) -> str:
    gw.process.send_signal(signal.SIGHUP)
    return await gw.line()


async def test_a_reload_counts_for_new_exchanges_and_leaves_open_streams_alone(tmp_path: Path):
    async with upstream(echo_or_hello) as first, upstream(other) as second:
        path = config(tmp_path, first.url)
        async with run(path) as gw:
            await gw.listening()
            client, _ = await open_socket(gw.port)
            async with client:
                await client.send_frame(TEXT, b"one")
                assert await client.frame() == (TEXT, b"one")
                config(tmp_path, second.url)
                assert "configuration reloaded: 1 routes\n" in await reload(gw)
                assert await body_of(gw.port) == b"other"
                await client.send_frame(TEXT, b"two")
                assert await client.frame() == (TEXT, b"two")
            metrics = (await body_of(gw.admin_port, "/metrics")).decode()
            assert 'midstream_config_reloads_total{result="taken"} 1.0' in metrics
            gw.process.send_signal(signal.SIGTERM)
            assert (await gw.end())[0] == 0


async def test_a_bad_file_keeps_the_old_configuration_and_says_why(tmp_path: Path):
    async with upstream(hello) as up:
        path = config(tmp_path, up.url)
        async with run(path) as gw:
            await gw.listening()
            path.write_text('[[route]]\nupstream = "nowhere"\n')
            line = await reload(gw)
            assert f"the old configuration runs on: {path}: route 1: upstream: found " in line
            assert await body_of(gw.port) == b"hello"
            metrics = (await body_of(gw.admin_port, "/metrics")).decode()
            assert "midstream_config_last_reload_successful 0.0" in metrics
            config(tmp_path, up.url)
            assert "reloaded" in await reload(gw)
            metrics = (await body_of(gw.admin_port, "/metrics")).decode()
            assert "midstream_config_last_reload_successful 1.0" in metrics


async def test_what_only_a_restart_can_change_is_named(tmp_path: Path):
    async with upstream(hello) as up:
        path = config(tmp_path, up.url)
        async with run(path) as gw:
            await gw.listening()
            config(tmp_path, up.url, 'store = "sqlite:other.db"')
            assert "a restart is needed for: store\n" in await reload(gw)
