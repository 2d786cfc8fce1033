"""The command line: its verbs, what they print, and their exit codes."""

import io
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from urllib.request import ProxyHandler, build_opener

import pytest

from midstream import __version__, registry
from midstream.adapters.capture_format import HEADER
from midstream.cli import health, main

PACKS = str(Path(__file__).parent / "packs")
MASK = "acme_pack.mask:MaskSecrets"
ROUTE = '[[route]]\nname = "chat"\npath = "/chat/*"\nupstream = "http://127.0.0.1:8787"\n'
VERBS = (
    "run", "mitm", "demo", "replay", "capture", "doctor", "sessions", "history", "check", "addons",
    "healthcheck",
)  # fmt: skip
RUN_SECONDS = 60
LISTENING = re.compile(r"listening on http://(?P<listen>\S+) -> .* admin http://(?P<admin>\S+)")


@pytest.fixture(autouse=True)
def surroundings(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(PACKS)
    monkeypatch.chdir(tmp_path)
    for name in list(os.environ):
        if name.startswith("MIDSTREAM_"):
            monkeypatch.delenv(name)


def written(content: str) -> str:
    Path("m.toml").write_text(content)
    return "m.toml"


def python(*arguments: str, stdout: int = subprocess.PIPE) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        timeout=RUN_SECONDS,
        check=False,
    )


# Usage


def test_help_names_every_verb_and_every_source_of_settings(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["--help"])
    assert caught.value.code == 0
    out = capsys.readouterr().out
    for word in (*VERBS, "examples:", "exit codes:", "MIDSTREAM_SECTION_KEY"):
        assert word in out


@pytest.mark.parametrize("verb", VERBS)
def test_help_of_a_verb_has_an_example(capsys, verb):
    with pytest.raises(SystemExit) as caught:
        main([verb, "--help"])
    assert caught.value.code == 0
    assert f"examples:\n  midstream {verb}" in capsys.readouterr().out


def test_the_module_runs_as_the_command_and_tells_its_version():
    done = python("-m", "midstream", "--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"midstream {__version__}\n", "")


def test_help_imports_nothing_heavy():
    code = (
        "import sys\nfrom midstream.cli import main\n"
        "try:\n    main(['run', '--help'])\nexcept SystemExit:\n    pass\n"
        "heavy = {'msgspec', 'aiohttp', 'mitmproxy', 'asyncio', 'prometheus_client', 'urllib'}\n"
        "print('heavy:', sorted(heavy & set(sys.modules)))\n"
    )
    assert python("-c", code).stdout.endswith("heavy: []\n")


@pytest.mark.parametrize(
    ("argv", "error"),
    [
        ([], f"no verb found, expected one of {', '.join(VERBS)}, see midstream -h"),
        (
            ["chekc"],
            f'found "chekc", expected one of {", ".join(VERBS)}, did you mean "check", '
            "see midstream -h",
        ),
        (
            ["run", "--upstrem", "http://h"],
            'unknown argument "--upstrem", did you mean "--upstream", see midstream run -h',
        ),
        (
            ["run", "--upstrem=http://user:secret@h"],
            'unknown argument "--upstrem", did you mean "--upstream", see midstream run -h',
        ),
        (["run", "--up", "http://h"], 'unknown argument "--up", see midstream run -h'),
        (["run", "--config"], "--config: expected one argument, see midstream run -h"),
        (
            ["mitm", "--set", "x=1"],
            'unknown argument "--set", put options of mitmproxy behind --, see midstream mitm -h',
        ),
        (
            ["check"],
            "the following arguments are required: --config, see midstream check -h",
        ),
        (
            ["replay"],
            "the following arguments are required: CAPTURE, see midstream replay -h",
        ),
        (["--versoin"], 'unknown argument "--versoin", did you mean "--version", see midstream -h'),
        (["--"], 'unknown argument "--", see midstream -h'),
        (["--verbose"], 'unknown argument "--verbose", see midstream -h'),
        (["run"], "--upstream: not set, expected --upstream URL or --config FILE"),
        (
            ["run", "--upstream", "h"],
            '--upstream: found "h", expected an http:// or https:// URL with a host and no path',
        ),
        (
            ["run", "--upstream", "http://h", "--listen", "1"],
            '--listen: found "1", expected HOST:PORT such as "127.0.0.1:8080" or "[::1]:8080"',
        ),
        (
            ["run", "--upstream", "http://h", "--admin", "1"],
            '--admin: found "1", expected HOST:PORT such as "127.0.0.1:8080" or "[::1]:8080"',
        ),
        (
            ["run", "--upstream", "http://h", "--workers", "2"],
            "--workers: found 2, expected 1: more than one worker is not available in this version",
        ),
        (
            ["healthcheck", "--admin", "https://h:1"],
            '--admin: found "https://", expected http:// or HOST:PORT',
        ),
        (
            ["healthcheck", "--admin", "h"],
            '--admin: found "h", expected HOST:PORT such as "127.0.0.1:8080" or "[::1]:8080"',
        ),
    ],
)
def test_a_usage_error_is_one_line_and_exit_code_2(capsys, argv, error):
    assert main(argv) == 2
    out, err = capsys.readouterr()
    assert (out, err) == ("", f"command line: {error}\n")


@pytest.mark.parametrize(
    "argv",
    [
        ["run", "--config", "m.toml"],
        ["run", "--config", "m.toml", "--upstream", "http://h"],
        ["mitm", "--config", "m.toml"],
        ["mitm", "--config", "m.toml", "--", "--set", "x=1"],
        ["replay", "none.cap", "--config", "m.toml"],
        ["check", "--config", "m.toml"],
    ],
)
@pytest.mark.parametrize(
    ("content", "error"),
    [
        ('listne = "127.0.0.1:1"\n', 'm.toml: listne: unknown key, did you mean "listen"'),
        (
            '[[route]]\nupstream = "http://h"\naddons = ["replay-overlp"]\n',
            'm.toml: route 1: addons: unknown addon "replay-overlp", did you mean "replay-overlap"',
        ),
    ],
)
def test_every_verb_with_a_file_tells_what_is_wrong_in_it(capsys, argv, content, error):
    written(content)
    assert main(argv) == 2
    assert capsys.readouterr() == ("", f"{error}\n")


def test_flags_of_run_win_over_the_file(capsys):
    """The flag is what the error complains of, so the flag is what was taken."""
    written('listen = "127.0.0.1:1"\nadmin = "127.0.0.1:2"\n' + ROUTE)
    assert main(["run", "--config", "m.toml", "--listen", "127.0.0.1:2"]) == 2
    assert capsys.readouterr().err == (
        'm.toml: admin: found "127.0.0.1:2", expected another address than `listen`\n'
    )


def test_mitm_without_mitmproxy_says_what_to_install(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "mitmproxy", None)
    assert main(["mitm"]) == 2
    assert capsys.readouterr().err == (
        "mitm: mitmproxy is not installed, expected the extra: pip install 'midstream[mitm]'\n"
    )


def test_options_behind_the_dashes_go_to_mitmproxy():
    done = python("-m", "midstream", "mitm", "--", "--version")
    assert done.returncode == 0
    assert done.stdout.startswith("Mitmproxy: ")


def test_replay_plays_a_capture_into_another_and_tells_what_it_saw(capsys):
    Path("empty.cap").write_bytes(HEADER)
    assert main(["replay", "empty.cap", "--observe", "--diff", "--out", "new.cap"]) == 0
    assert capsys.readouterr().out.startswith("0 records")
    assert Path("new.cap").read_bytes() == HEADER


def test_a_capture_that_is_missing_is_exit_code_2(capsys):
    assert main(["replay", "none.cap"]) == 2
    err = capsys.readouterr().err
    assert "none.cap" in err
    assert err.count("\n") == 1


def test_a_reader_that_has_had_enough_is_no_error():
    read_end, write_end = os.pipe()
    os.close(read_end)
    try:
        done = python("-m", "midstream", "addons", stdout=write_end)
    finally:
        os.close(write_end)
    assert (done.returncode, done.stderr) == (0, "")


def test_an_interrupted_verb_leaves_without_a_traceback(capsys, monkeypatch):
    def interrupted(url: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(health, "_ask_in_time", interrupted)
    assert main(["healthcheck"]) == 130
    assert capsys.readouterr() == ("", "")


# run


@contextmanager
def running(*arguments: str) -> Iterator[tuple[str, str]]:
    """Serve on free ports, and return where: the clients' address and the admin port's."""
    argv = [sys.executable, "-m", "midstream", "run", *arguments]
    with subprocess.Popen(argv, stderr=subprocess.PIPE, text=True) as process:
        watchdog = threading.Timer(RUN_SECONDS, process.kill)
        watchdog.start()
        try:
            assert process.stderr is not None
            found = next(filter(None, map(LISTENING.search, process.stderr)), None)
            assert found is not None
            yield found["listen"], found["admin"]
            process.send_signal(signal.SIGTERM)
            process.stderr.read()
            assert process.wait() == 0
        finally:
            process.kill()
            watchdog.cancel()


def test_run_serves_an_upstream_until_it_is_told_to_stop(capsys):
    with (
        admin_port(200, b"from the upstream") as upstream,
        running(
            *("--upstream", f"http://{upstream}", "--observe"),
            *("--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"),
        ) as (listen, admin),
    ):
        with build_opener(ProxyHandler({})).open(f"http://{listen}/readyz", timeout=30) as answer:
            assert answer.read() == b"from the upstream"
        assert main(["healthcheck", "--admin", admin]) == 0
    assert capsys.readouterr().out == "ready\n"


def test_run_tells_in_one_line_that_a_port_is_taken(capsys):
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        done = python("-m", "midstream", "run", "--upstream", "http://h", "--listen", address)
    assert done.returncode == 2
    assert address in done.stderr
    assert done.stderr.count("\n") == 1


# check and addons


def test_check_prints_what_a_configuration_amounts_to(capsys):
    written(
        f"{ROUTE}addons = ['{MASK}']\n"
        f"[route.addon.'{MASK}']\nmode = 'observe'\nwords = ['a', 'b']\n"
        "[[route]]\nname = 'late'\npath = '/chat/late'\nupstream = 'https://h'\naddons = []\n"
        "[[route]]\nupstream = 'https://h'\naddons = []\n"
        "[limits]\nmax_connections = 5\n[capture]\ndir = 'none/such'\n"
    )
    assert main(["check", "--config", "m.toml"]) == 0
    assert capsys.readouterr().out == (
        "m.toml: ok\n"
        "\n"
        'listen = "127.0.0.1:8080"\n'
        'admin = "127.0.0.1:9464"\n'
        'store = "memory:"\n'
        'store_key_file = ""\n'
        "store_ttl_seconds = 86400\n"
        "store_max_conversation_bytes = 4194304\n"
        "workers = 1\n"
        "observe = false\n"
        "\n"
        "route chat: /chat/* -> http://127.0.0.1:8787\n"
        f"  1. {MASK}  observe\n"
        '       words = ["a", "b"]\n'
        "       strength = 1\n"
        '       style = "stars"\n'
        "\n"
        "route late: /chat/late -> https://h\n"
        "  note: never reached, route chat matches /chat/* before it\n"
        "  no addons: everything passes as it came\n"
        "\n"
        "route default: /* -> https://h\n"
        "  no addons: everything passes as it came\n"
        "\n"
        "limits\n"
        "  max_frame_bytes = 16777216\n"
        "  max_header_seconds = 10\n"
        "  max_connections = 5\n"
        "  drain_seconds = 30\n"
        "\n"
        "capture\n"
        '  dir = "none/such"\n'
        '  redact = ["authorization", "cookie", "set-cookie", "x-api-key"]\n'
        "  redact_paths = []\n"
        '  content = "full"\n'
        '  keep = "all"\n'
        "  routes = []\n"
        "  paths = []\n"
        "  sample = 1\n"
        "  ring_bytes = 16777216\n"
        "  ring_seconds = 300\n"
        "  segment_bytes = 67108864\n"
        "  segment_seconds = 3600\n"
        "  total_bytes = 8589934592\n"
        "  min_free_bytes = 536870912\n"
        '  sync = "interval"\n'
        "\n"
        "security\n"
        "  allowed_origins = []\n"
        "  trusted_proxies = []\n"
        '  admin_token_file = ""\n'
        "\n"
        "tls\n"
        '  cert = ""\n'
        '  key = ""\n'
        '  upstream_ca = ""\n'
    )


def test_check_lists_all_known_addons_in_their_order_where_a_route_names_none(capsys):
    written(ROUTE)
    assert main(["check", "--config", "m.toml"]) == 0
    lines = capsys.readouterr().out.splitlines()
    numbered = [line.split()[1:] for line in lines if line.startswith("  ") and ". " in line[:5]]
    assert numbered == [[name, "repair"] for name in registry.addon_names()]


def test_check_opens_no_file_but_the_configuration(capsys):
    written(
        'store_key_file = "no/key"\n'
        '[tls]\ncert = "no/cert"\nkey = "no/key"\nupstream_ca = "no/ca"\n'
        '[capture]\ndir = "no/dir"\n' + ROUTE
    )
    assert main(["check", "--config", "m.toml"]) == 0
    assert not Path("no").exists()
    assert capsys.readouterr().err == ""


def test_addons_prints_each_known_one_with_its_words_and_options(capsys):
    assert main(["addons"]) == 0
    out = capsys.readouterr().out
    assert out.startswith(
        "modes\n"
        "  off      the addon does not run\n"
        "  observe  it counts what it would do, and every frame passes\n"
        "  repair   it mends\n"
    )
    titles = [line for line in out.splitlines()[1:] if line and not line.startswith(" ")]
    assert titles == list(registry.addon_names())
    for name in registry.addon_names():
        for rule in registry.load_addon(name).rules:
            assert rule in out


def test_an_addon_is_shown_with_types_defaults_and_descriptions(capsys):
    from midstream.cli.describe import print_addon

    print_addon(MASK)
    chat = registry.load_addon(MASK).dialects[0]
    assert capsys.readouterr().out == (
        f"\n{MASK}\n"
        "  Masks secrets.\n"
        f"  dialects: {chat}\n"
        "  rules:\n    masked\n"
        "  reasons:\n    no_words\n"
        "  options:\n"
        '    mode: one of "off", "observe", "repair" = "repair"\n'
        '    words: a list of strings = ["token"]\n'
        "        what is masked\n"
        "    strength: an integer at least 1 and at most 9 = 1\n"
        '    style: one of "blank", "stars" = "stars"\n'
    )


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("no_colour", "bold"), [(None, True), ("", True), ("1", False)])
def test_colour_is_for_terminals_that_want_it(monkeypatch, no_colour, bold):
    if no_colour is None:
        monkeypatch.delenv("NO_COLOR", raising=False)
    else:
        monkeypatch.setenv("NO_COLOR", no_colour)
    monkeypatch.setattr(sys, "stdout", terminal := Terminal())
    assert main(["addons"]) == 0
    assert ("\x1b[1mmodes\x1b[0m" in terminal.getvalue()) is bold


def test_there_is_no_colour_in_a_pipe(capsys, monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert main(["addons"]) == 0
    assert "\x1b" not in capsys.readouterr().out


# healthcheck


@contextmanager
def admin_port(status: int, body: bytes) -> Iterator[str]:
    """Answer /readyz, and nothing else, with a status and a body."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status if self.path == "/readyz" else 404)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def peer(answer: bytes) -> Iterator[str]:
    """Accept one connection, send some bytes, and keep it open."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        accepted: list[socket.socket] = []

        def accept() -> None:
            connection, _ = server.accept()
            accepted.append(connection)
            connection.sendall(answer)

        thread = threading.Thread(target=accept)
        thread.start()
        try:
            yield f"127.0.0.1:{server.getsockname()[1]}"
        finally:
            thread.join()
            for connection in accepted:
                connection.close()


@pytest.mark.parametrize(
    ("status", "body", "code"),
    [(200, b"ready\n", 0), (200, b"degraded: capture\n", 0), (503, b"draining\n", 1)],
)
def test_healthcheck_prints_the_answer_and_tells_readiness_by_its_exit_code(
    capsys, status, body, code
):
    with admin_port(status, body) as address:
        assert main(["healthcheck", "--admin", f"http://{address}"]) == code
    assert capsys.readouterr().out == body.decode()


def test_healthcheck_takes_a_bare_address_and_a_trailing_slash(capsys):
    with admin_port(200, b"ready") as address:
        assert main(["healthcheck", "--admin", address]) == 0
        assert main(["healthcheck", "--admin", f"http://{address}/"]) == 0


def test_healthcheck_asks_where_the_environment_says_the_admin_port_is(capsys, monkeypatch):
    with admin_port(200, b"ready") as address:
        monkeypatch.setenv("MIDSTREAM_ADMIN", address.replace("127.0.0.1", "0.0.0.0"))
        assert main(["healthcheck"]) == 0
    assert capsys.readouterr().out == "ready\n"


def test_healthcheck_never_asks_through_a_proxy(capsys, monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    with admin_port(200, b"ready") as address:
        assert main(["healthcheck", "--admin", address]) == 0


def test_healthcheck_of_a_wrong_variable_is_a_usage_error(capsys, monkeypatch):
    monkeypatch.setenv("MIDSTREAM_ADMIN", "nonsense")
    assert main(["healthcheck"]) == 2
    assert capsys.readouterr().err.startswith('environment: MIDSTREAM_ADMIN: found "nonsense"')


def test_healthcheck_of_nobody_is_not_ready(capsys):
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
    assert main(["healthcheck", "--admin", address]) == 1
    assert capsys.readouterr().out.startswith(f"http://{address}/readyz: ")


def test_healthcheck_of_what_speaks_no_http_is_not_ready(capsys):
    with peer(b"220 mail ready\r\n") as address:
        assert main(["healthcheck", "--admin", address]) == 1
    assert capsys.readouterr().out.startswith(f"http://{address}/readyz: ")


def test_healthcheck_of_an_answer_that_never_ends_is_bounded(capsys, monkeypatch):
    monkeypatch.setattr(health, "TIMEOUT_SECONDS", 0.2)
    with peer(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nrea") as address:
        assert main(["healthcheck", "--admin", address]) == 1
