"""The stores behind their port: SQLite files, and a real server that speaks Valkey's protocol."""

import asyncio
import os
import shutil
import socket
import sqlite3
import stat
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from midstream.adapters.store_seal import Seal, read_key
from midstream.adapters.store_sqlite import SqliteStore
from midstream.adapters.store_valkey import ValkeyStore
from midstream.adapters.stores import open_store
from midstream.core.errors import ConfigError, StoreError
from midstream.core.ports import Store

KEY = b"k" * 32
SERVER = shutil.which("valkey-server") or shutil.which("redis-server")
NEEDS_SERVER = pytest.mark.skipif(SERVER is None, reason="needs Debian's redis-server")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Server:
    """A server process of its own, without a file."""

    def __init__(self) -> None:
        self.port = free_port()
        self.process: subprocess.Popen[bytes] | None = None
        self.start()

    @property
    def url(self) -> str:
        return f"valkey://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        arguments = ["--port", str(self.port), "--bind", "127.0.0.1", "--save", ""]
        self.process = subprocess.Popen(
            [str(SERVER), *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        for _ in range(200):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.02)
        raise AssertionError("the server did not start")

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    running = Server()
    yield running
    running.kill()


@pytest.fixture(params=["sqlite", "valkey"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    if request.param == "valkey":
        if SERVER is None:
            pytest.skip("needs Debian's redis-server")
        made: Store = ValkeyStore(request.getfixturevalue("server").url)
    else:
        made = SqliteStore(str(tmp_path / "store.db"))
    yield made
    await made.close()


def new_key() -> bytes:
    return os.urandom(32)


async def test_a_key_that_nobody_saved_is_not_there(store: Store):
    assert await store.load(new_key()) is None


async def test_what_is_saved_is_loaded_with_its_version(store: Store):
    key = new_key()
    assert await store.save(key, b"\x00value\xff", 7, 60)
    assert await store.load(key) == (b"\x00value\xff", 7)


async def test_a_lost_race_keeps_the_newer(store: Store):
    key = new_key()
    assert await store.save(key, b"newer", 1_800_000_000_001, 60)
    assert not await store.save(key, b"older", 1_800_000_000_000, 60)
    assert not await store.save(key, b"as new", 1_800_000_000_001, 60)
    assert await store.load(key) == (b"newer", 1_800_000_000_001)


async def test_of_many_saves_at_once_the_newest_stays(store: Store):
    key = new_key()
    saves = [store.save(key, str(version).encode(), version, 60) for version in range(1, 60)]
    await asyncio.gather(*saves)
    assert await store.load(key) == (b"59", 59)


async def test_what_is_idle_too_long_is_gone(store: Store):
    key = new_key()
    await store.save(key, b"value", 1, 0.05)
    await asyncio.sleep(0.2)
    assert await store.load(key) is None
    assert await store.save(key, b"anew", 1, 60)  # its version counts no more


async def test_a_value_of_megabytes_is_kept(store: Store):
    key, value = new_key(), os.urandom(4 << 20)
    await store.save(key, value, 1, 60)
    assert await store.load(key) == (value, 1)


def test_several_processes_share_a_file(tmp_path: Path):
    path = tmp_path / "shared.db"
    program = (
        "import asyncio, sys\n"
        "from midstream.adapters.store_sqlite import SqliteStore\n"
        "async def main():\n"
        "    store = SqliteStore(sys.argv[1])\n"
        "    for version in range(1, 40):\n"
        "        version = version * 2 + int(sys.argv[2])\n"
        "        await store.save(b'k' * 32, sys.argv[2].encode(), version, 60)\n"
        "    await store.close()\n"
        "asyncio.run(main())\n"
    )
    workers = [
        subprocess.Popen([sys.executable, "-c", program, str(path), str(number)])
        for number in range(2)
    ]
    assert [worker.wait(60) for worker in workers] == [0, 0]
    with closing(sqlite3.connect(path)) as file:
        assert file.execute("SELECT value, version FROM conversations").fetchall() == [(b"1", 79)]


async def test_a_file_belongs_to_its_owner_alone(tmp_path: Path):
    path = tmp_path / "store.db"
    store = SqliteStore(str(path))
    await store.save(KEY, b"value", 1, 60)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    await store.close()


async def test_the_expired_are_taken_out_of_the_file(tmp_path: Path):
    now = [1_000_000]
    store = SqliteStore(str(tmp_path / "store.db"), wall_ms=lambda: now[0])
    await store.save(KEY, b"value", 1, 1)
    now[0] += 120_000
    await store.save(new_key(), b"value", 1, 60)
    with closing(sqlite3.connect(tmp_path / "store.db")) as file:
        assert file.execute("SELECT count(*) FROM conversations").fetchone() == (1,)
    await store.close()


@pytest.mark.parametrize(
    "spoil",
    [lambda path: path.write_bytes(b"no database" * 100), lambda path: path.mkdir()],
    ids=["not SQLite", "a directory"],
)
async def test_a_file_that_is_no_store_is_an_error_of_the_store(
    tmp_path: Path, spoil: Callable[[Path], object]
):
    spoil(tmp_path / "store.db")
    store = SqliteStore(str(tmp_path / "store.db"))
    with pytest.raises(StoreError, match="sqlite: "):
        await store.load(KEY)
    await store.close()


async def test_nobody_listening_is_an_error_of_the_store():
    store = ValkeyStore(f"valkey://127.0.0.1:{free_port()}/0")
    with pytest.raises(StoreError, match="valkey: ConnectionError"):
        await store.load(KEY)
    with pytest.raises(StoreError, match="valkey: ConnectionError"):
        await store.save(KEY, b"value", 1, 60)
    await store.close()


@NEEDS_SERVER
async def test_a_server_that_comes_back_is_used_again():
    server = Server()
    try:
        store = ValkeyStore(server.url)
        await store.save(KEY, b"value", 1, 60)
        server.kill()
        with pytest.raises(StoreError):
            await store.load(KEY)
        server.start()
        assert await store.load(KEY) is None
        assert await store.save(KEY, b"value", 2, 60)
        await store.close()
    finally:
        server.kill()


async def test_sealed_values_are_unreadable_in_the_store_and_whole_outside(tmp_path: Path):
    url = f"sqlite:{tmp_path / 'store.db'}"
    store = open_store(url, b"s" * 32)
    assert store is not None
    await store.save(KEY, b"a private matter", 3, 60)
    assert await store.load(KEY) == (b"a private matter", 3)
    await store.close()
    assert not any(b"private" in path.read_bytes() for path in tmp_path.iterdir())  # noqa: ASYNC240


async def test_a_value_under_another_key_or_name_is_none_at_all(tmp_path: Path):
    url = f"sqlite:{tmp_path / 'store.db'}"
    first, second = open_store(url, b"s" * 32), open_store(url, b"t" * 32)
    plain = open_store(url)
    assert first is not None
    assert second is not None
    assert plain is not None
    await first.save(KEY, b"mine", 1, 60)
    assert await second.load(KEY) is None
    moved = await plain.load(KEY)
    assert moved is not None
    await plain.save(b"o" * 32, moved[0], 1, 60)
    assert await first.load(b"o" * 32) is None
    await plain.save(KEY, b"plain", 2, 60)
    assert await first.load(KEY) is None
    for store in (first, second, plain):
        await store.close()


def test_the_same_value_is_sealed_differently_each_time():
    seal = Seal(b"s" * 32)
    assert seal.closed(KEY, b"value") != seal.closed(KEY, b"value")


def test_a_key_file_holds_64_hex_digits_and_may_end_its_line(tmp_path: Path):
    path = tmp_path / "key"
    path.write_text("0f" * 32 + "\n")
    assert read_key(str(path)) == b"\x0f" * 32


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("0f" * 31, "found 62 characters, expected 64 hex digits"),
        ("0g" * 32, "found 64 characters, expected 64 hex digits"),
        ("", "found 0 characters"),
    ],
)
def test_another_key_file_is_an_error_that_does_not_repeat_it(tmp_path: Path, text: str, said: str):
    path = tmp_path / "key"
    path.write_text(text)
    with pytest.raises(ConfigError, match=said) as raised:
        read_key(str(path))
    assert not text or text not in str(raised.value)


def test_a_key_file_that_is_not_there_is_named(tmp_path: Path):
    with pytest.raises(ConfigError, match=r"store_key_file: .*none: cannot be read: No such file"):
        read_key(str(tmp_path / "none"))


def test_memory_is_no_store():
    assert open_store("memory:") is None
