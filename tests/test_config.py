"""The configuration: its defaults, which source wins, and the exact words of its errors."""

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from midstream.config import Address, Config, load, parse_address
from midstream.config.layers import MAX_FILE_BYTES, flat_types
from midstream.core.errors import ConfigError

UPSTREAM = "http://127.0.0.1:8787"
ROUTE = f'[[route]]\nupstream = "{UPSTREAM}"\n'
URL = "an http:// or https:// URL with a host and no path"
ADDRESS = 'HOST:PORT such as "127.0.0.1:8080" or "[::1]:8080"'

EVERY_KEY = """
listen = "127.0.0.1:8080"
admin  = "127.0.0.1:9464"
store  = "memory:"
store_key_file = ""
workers = 1
[[route]]
name = "chat"
path = "/agents/*"
upstream = "http://127.0.0.1:8787"
addons = ["strip-compaction", "replay-overlap"]
[addon.replay-overlap]
mode = "repair"
client = "unknown"
[route.addon.replay-overlap]
client = "r3"
[addon.strip-compaction]
prefixes = ["compaction_"]
[capture]
dir = "captures"
redact = ["authorization", "cookie", "set-cookie", "x-api-key"]
[limits]
max_frame_bytes = 16777216
max_header_seconds = 10
max_connections = 10000
drain_seconds = 30
[security]
allowed_origins = []
trusted_proxies = []
[tls]
cert = ""
key  = ""
upstream_ca = ""
"""


@pytest.fixture
def file(tmp_path, monkeypatch):
    """Write a configuration and return its path, which is short: errors repeat it."""
    monkeypatch.chdir(tmp_path)

    def write(content, name="m.toml"):
        data = content if isinstance(content, bytes) else content.encode()
        (tmp_path / name).write_bytes(data)
        return name

    return write


def error_of(path: str | None = None, **kwargs: Any) -> str:
    kwargs.setdefault("environ", {})
    with pytest.raises(ConfigError) as caught:
        load(path, **kwargs)
    text = str(caught.value)
    assert "\n" not in text
    return text


def from_env(**variables: str) -> Config:
    """Load with one upstream and these variables, named without their prefix."""
    environ = {f"MIDSTREAM_{name}": value for name, value in variables.items()}
    return load(flags={"upstream": UPSTREAM}, environ=environ)


# Defaults


def test_an_upstream_is_all_that_has_to_be_said():
    config = load(flags={"upstream": UPSTREAM}, environ={})
    assert msgspec.to_builtins(config) == {
        "listen": "127.0.0.1:8080",
        "admin": "127.0.0.1:9464",
        "store": "memory:",
        "store_key_file": "",
        "store_ttl_seconds": 86400,
        "store_max_conversation_bytes": 4 << 20,
        "workers": 1,
        "route": (
            {"name": "default", "path": "/*", "upstream": UPSTREAM, "addons": None, "addon": {}},
        ),
        "addon": {},
        "capture": {
            "dir": "",
            "redact": ("authorization", "cookie", "set-cookie", "x-api-key"),
            "redact_paths": (),
            "content": "full",
            "keep": "all",
            "routes": (),
            "paths": (),
            "sample": 1.0,
            "ring_bytes": 16 << 20,
            "ring_seconds": 300,
            "segment_bytes": 64 << 20,
            "segment_seconds": 3600,
            "total_bytes": 8 << 30,
            "min_free_bytes": 512 << 20,
            "sync": "interval",
        },
        "limits": {
            "max_frame_bytes": 16777216,
            "max_header_seconds": 10,
            "max_connections": 10000,
            "drain_seconds": 30,
        },
        "security": {"allowed_origins": (), "trusted_proxies": (), "admin_token_file": ""},
        "tls": {"cert": "", "key": "", "upstream_ca": ""},
        "observe": False,
        "source": "command line",
    }


def test_a_file_may_hold_every_key(file):
    config = load(file(EVERY_KEY), environ={})
    (route,) = config.routes
    assert (route.name, route.path, route.upstream) == ("chat", "/agents/*", UPSTREAM)
    assert route.addons == ("strip-compaction", "replay-overlap")
    assert route.addon == {"replay-overlap": {"client": "r3"}}
    assert config.addon == {
        "replay-overlap": {"mode": "repair", "client": "unknown"},
        "strip-compaction": {"prefixes": ["compaction_"]},
    }
    assert config.capture.dir == "captures"
    assert config.source == "m.toml"


def test_every_value_of_that_file_but_routes_addons_and_the_capture_is_the_default(file):
    config = load(file(EVERY_KEY), environ={})
    default = Config()
    for name in ("listen", "admin", "store", "store_key_file", "workers"):
        assert getattr(config, name) == getattr(default, name)
    assert config.limits == default.limits
    assert config.security == default.security
    assert config.tls == default.tls
    assert config.capture.redact == default.capture.redact


def test_options_of_a_route_belong_to_the_route_above_them(file):
    config = load(
        file(
            '[[route]]\nname = "a"\nupstream = "http://a"\n[route.addon.x]\nk = 1\n'
            '[[route]]\nname = "b"\nupstream = "http://b"\n[route.addon.x]\nk = 2\n'
        ),
        environ={},
    )
    assert [route.addon for route in config.routes] == [{"x": {"k": 1}}, {"x": {"k": 2}}]


# Precedence

SAMPLES: dict[str, list[Any]] = {
    "listen": [f"127.0.0.1:{port}" for port in range(1, 4)],
    "admin": [f"[::1]:{port}" for port in range(1, 4)],
    "store_key_file": ["a", "b", "c"],
    "workers": [1, 1, 1],
    "capture.dir": ["a", "b", "c"],
    "store_ttl_seconds": [1, 2.5, 3],
    "store_max_conversation_bytes": [1024, 2048, 4096],
    "capture.redact": [["a"], ["b", "c"], ["d"]],
    "capture.redact_paths": [["a"], ["b.c", "d[*]"], ["e[0].f"]],
    "capture.content": ["full", "hash", "none"],
    "capture.keep": ["mended", "errors", "ring"],
    "capture.paths": [["/a"], ["/b", "/c/*"], ["/*"]],
    "capture.sample": [0.25, 0.5, 1.0],
    "capture.ring_bytes": [65536, 65537, 65538],
    "capture.ring_seconds": [1, 2.5, 3],
    "capture.segment_bytes": [65536, 65537, 65538],
    "capture.segment_seconds": [1, 2.5, 3],
    "capture.total_bytes": [65536, 65537, 65538],
    "capture.min_free_bytes": [0, 1, 2],
    "capture.sync": ["none", "interval", "segment"],
    "security.admin_token_file": ["a", "b", "c"],
    "limits.max_frame_bytes": [1, 2, 3],
    "limits.max_header_seconds": [1, 2.5, 3],
    "limits.max_connections": [1, 2, 3],
    "limits.drain_seconds": [0, 2.5, 3],
    "security.allowed_origins": [["http://a"], ["http://b", "null"], ["https://c:1"]],
    "security.trusted_proxies": [["10.0.0.1"], ["10.0.0.0/8", "::1"], ["::/0"]],
    "tls.upstream_ca": ["a", "b", "c"],
}
FLAGS = ("listen", "admin", "workers", "upstream", "observe")


def toml(values: Mapping[str, object]) -> str:
    """Write a file of flat keys; a string in JSON is a string in TOML."""
    lines = [f"{key} = {msgspec.json.encode(value).decode()}\n" for key, value in values.items()]
    return "".join(lines) + ROUTE


def value_at(config: Config, key: str) -> object:
    section, _, name = key.rpartition(".")
    value = getattr(getattr(config, section) if section else config, name)
    return list(value) if isinstance(value, tuple) else value


@given(data=st.data())
def test_flags_win_over_the_environment_over_the_file_over_defaults(data, tmp_path_factory):
    subset = st.sets(st.sampled_from(sorted(SAMPLES)))
    in_file, in_env = data.draw(subset), data.draw(subset)
    in_flags = data.draw(subset) & set(FLAGS)
    path = tmp_path_factory.mktemp("config") / "m.toml"
    path.write_text(toml({key: SAMPLES[key][0] for key in in_file}))
    environ = {}
    for key in in_env:
        value = SAMPLES[key][1]
        text = ",".join(value) if isinstance(value, list) else str(value)
        environ["MIDSTREAM_" + key.upper().replace(".", "_")] = text

    config = load(str(path), flags={key: SAMPLES[key][2] for key in in_flags}, environ=environ)

    default = load(flags={"upstream": UPSTREAM}, environ={})
    for key, (file_value, env_value, flag_value) in SAMPLES.items():
        wanted = value_at(default, key)
        wanted = file_value if key in in_file else wanted
        wanted = env_value if key in in_env else wanted
        wanted = flag_value if key in in_flags else wanted
        assert value_at(config, key) == wanted


def test_every_key_but_tables_of_addons_can_be_set_from_the_environment():
    untested = set(flat_types()) - set(SAMPLES)
    assert untested == {
        "store", "route", "addon", "capture.routes", "tls.cert", "tls.key", "observe",
    }  # fmt: skip
    config = from_env(
        STORE="sqlite:a.db", CAPTURE_ROUTES="default", TLS_CERT="c.pem", TLS_KEY="k.pem",
        OBSERVE="true",
    )  # fmt: skip
    assert (config.store, config.capture.routes) == ("sqlite:a.db", ("default",))
    assert (config.tls.cert, config.tls.key, config.observe) == ("c.pem", "k.pem", True)


@pytest.mark.parametrize(
    ("flag", "variable", "observe"),
    [(True, "false", True), (True, "", True), (False, "1", True), (False, "0", False)],
)
def test_observe_comes_from_the_flag_or_the_environment(flag, variable, observe):
    config = load(
        flags={"upstream": UPSTREAM, "observe": flag}, environ={"MIDSTREAM_OBSERVE": variable}
    )
    assert config.observe is observe


def test_an_upstream_from_outside_points_the_single_route_of_a_file_elsewhere(file):
    path = file('[[route]]\nname = "chat"\npath = "/agents/*"\nupstream = "http://old"\n')
    environ = {"MIDSTREAM_UPSTREAM": "http://env"}
    (route,) = load(path, environ=environ).routes
    assert (route.name, route.path, route.upstream) == ("chat", "/agents/*", "http://env")
    (route,) = load(path, flags={"upstream": "http://flag"}, environ=environ).routes
    assert route.upstream == "http://flag"


def test_an_upstream_from_outside_makes_the_default_route_of_a_file_without_routes(file):
    config = load(file("workers = 1\n"), flags={"upstream": UPSTREAM}, environ={})
    assert [(r.name, r.path, r.upstream) for r in config.routes] == [("default", "/*", UPSTREAM)]


def test_variables_of_other_programs_are_left_alone():
    kubernetes = {
        "MIDSTREAM_SERVICE_HOST": "10.0.0.1",
        "MIDSTREAM_SERVICE_PORT": "8080",
        "MIDSTREAM_SERVICE_PORT_ADMIN": "9464",
        "MIDSTREAM_PORT": "tcp://10.0.0.1:8080",
        "MIDSTREAM_PORT_8080_TCP_ADDR": "10.0.0.1",
        "MIDSTREAM_ADMIN_PORT": "tcp://10.0.0.1:9464",
        "MIDSTREAM_STORE_PORT": "tcp://10.0.0.1:1",
        "PATH": "/bin",
    }
    assert load(flags={"upstream": UPSTREAM}, environ=kubernetes).listen == "127.0.0.1:8080"


def test_an_empty_variable_counts_as_not_set():
    assert from_env(LISTEN="", LIMITS_MAX_FRAME_BYTES="").listen == "127.0.0.1:8080"


def test_the_environment_of_the_process_is_the_default(monkeypatch):
    monkeypatch.setenv("MIDSTREAM_LISTEN", "127.0.0.1:1")
    assert load(flags={"upstream": UPSTREAM}).listen == "127.0.0.1:1"


def test_a_value_that_is_overridden_is_not_checked(file):
    path = file("workers = 4\n" + ROUTE)
    assert load(path, flags={"workers": "1"}, environ={}).workers == 1


# Routes without an upstream


def test_a_route_may_do_without_an_upstream_where_none_is_needed(file):
    assert load(environ={}, needs_upstream=False).routes[0].upstream == ""
    path = file('[[route]]\nname = "a"\n')
    assert [r.name for r in load(path, environ={}, needs_upstream=False).routes] == ["a"]


def test_thirty_two_routes_are_taken(file):
    tables = "".join(f'[[route]]\nname = "r{n}"\nupstream = "http://h"\n' for n in range(32))
    assert len(load(file(tables), environ={}).routes) == 32


# Values


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:8080", ("127.0.0.1", 8080)),
        ("localhost:0", ("localhost", 0)),
        ("0.0.0.0:65535", ("0.0.0.0", 65535)),
        ("[::1]:8080", ("::1", 8080)),
        ("[::]:0", ("::", 0)),
        ("my_service:1", ("my_service", 1)),
    ],
)
def test_an_address_is_a_host_and_a_port(text, address):
    assert parse_address(text) == address
    assert str(Address(*address)) == text


@pytest.mark.parametrize(
    "text",
    ["", ":", ":8080", "8080", "host", "host:", "host:x", "host:-1", "host:65536", "host:99999",
     "::1:8080", "[::1]", "[nonsense]:1", "[]:1", "ho st:1", "h:\uff11", "http://host:1", "a/b:1"],
)  # fmt: skip
def test_anything_else_is_no_address(text):
    with pytest.raises(ValueError, match="expected HOST:PORT"):
        parse_address(text)


@pytest.mark.parametrize(
    ("given", "upstream"),
    [
        ("http://127.0.0.1:8787", "http://127.0.0.1:8787"),
        ("https://api.example.com", "https://api.example.com"),
        ("https://api.example.com/", "https://api.example.com"),
        ("HTTP://Agents", "http://Agents"),
        ("http://[::1]:8787/", "http://[::1]:8787"),
        ("http://agent_server:1", "http://agent_server:1"),
    ],
)
def test_an_upstream_is_a_scheme_a_host_and_perhaps_a_port(given, upstream):
    assert load(flags={"upstream": given}, environ={}).routes[0].upstream == upstream


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ("", f'found "", expected {URL}'),
        ("127.0.0.1:8787", f'found "127.0.0.1:8787", expected {URL}'),
        ("ftp://host", f'found "ftp://host", expected {URL}'),
        ("ws://host:1", f'found "ws://host:1", expected {URL}, did you mean "http://host:1"'),
        ("wss://host", f'found "wss://host", expected {URL}, did you mean "https://host"'),
        ("http://", f'found "http://", expected {URL}'),
        ("http://host:", f'found "http://host:", expected {URL}'),
        ("http://host:0", f'found "http://host:0", expected {URL}'),
        ("http://host:99999", f'found "http://host:99999", expected {URL}'),
        ("http://[::1", f'found "http://[::1", expected {URL}'),
        ("http://[x]", f'found "http://[x]", expected {URL}'),
        ("http://a b", f'found "http://a b", expected {URL}'),
        ("http://a\nb", f'found "http://a\\nb", expected {URL}'),
        ("http://höst", f'found "http://höst", expected {URL}'),
        (
            "http://host/api",
            f'found "http://host/api", expected {URL}: '
            'request targets go upstream as they came, did you mean "http://host"',
        ),
        (
            "http://host/?a",
            f'found "http://host/?a", expected {URL}: '
            'request targets go upstream as they came, did you mean "http://host"',
        ),
        ("http://user:secret@host", f"found credentials in the URL, expected {URL}"),
        ("user:secret@host", f"found credentials in the URL, expected {URL}"),
    ],
)
def test_any_other_upstream_is_refused(given, complaint):
    text = error_of(flags={"upstream": given})
    assert text == f"command line: --upstream: {complaint}"
    assert "secret" not in text


# Errors: in a file

PATH = 'expected a path such as "/chat", or "/agents/*" with "*" only at its end'
NAME = "expected 1 to 32 characters of a-z, 0-9, underscore and hyphen"


@pytest.mark.parametrize(
    ("content", "error"),
    [
        # unknown keys
        ("listne = 1", 'listne: unknown key, did you mean "listen"'),
        ("limit = {}", 'limit: unknown key, did you mean "limits"'),
        ("max_frame_bytes = 1",
         'max_frame_bytes: unknown key, did you mean "limits.max_frame_bytes"'),
        (
            "zzz = 1",
            'zzz: unknown key, expected one of "listen", "admin", "store", "store_key_file", '
            '"store_ttl_seconds", "store_max_conversation_bytes", "workers", "route", "addon", '
            '"capture", "limits", "security", "tls"',
        ),
        ("observe = true", 'observe: unknown key, expected one of "listen", "admin", "store", '
         '"store_key_file", "store_ttl_seconds", "store_max_conversation_bytes", "workers", '
         '"route", "addon", "capture", "limits", "security", "tls"'),
        ("[limits]\nmax_frame = 1",
         'limits.max_frame: unknown key, did you mean "max_frame_bytes"'),
        ("[tls]\nzzz = 1", 'tls.zzz: unknown key, expected one of "cert", "key", "upstream_ca"'),
        (
            "[limits]\nworkers = 1",
            "limits.workers: unknown key in this table, did you mean the top-level `workers`: "
            "it stands above the first [table]",
        ),
        ("[[route]]\nupsteam = 1", 'route 1: upsteam: unknown key, did you mean "upstream"'),
        (
            ROUTE + 'listen = "h:1"',
            "route 1: listen: unknown key in this table, did you mean the top-level `listen`: "
            "it stands above the first [table]",
        ),
        # types
        ("listen = 8080", "listen: found 8080, expected a string"),
        ('workers = "2"', 'workers: found "2", expected an integer at least 1 and at most 1024'),
        ("workers = 0", "workers: found 0, expected an integer at least 1 and at most 1024"),
        ("workers = true", "workers: found true, expected an integer at least 1 and at most 1024"),
        ("limits = 3", "limits: found 3, expected a table"),
        (
            "limits.max_frame_bytes = 1.5",
            "limits.max_frame_bytes: found 1.5, "
            "expected an integer at least 1 and at most 1073741824",
        ),
        (
            "limits.max_frame_bytes = 0x" + "f" * 5000,
            "limits.max_frame_bytes: found an integer too long to print, "
            "expected an integer at least 1 and at most 1073741824",
        ),
        (
            "limits.drain_seconds = nan",
            "limits.drain_seconds: found nan, expected a number at least 0 and at most 86400",
        ),
        (
            "limits.max_header_seconds = 0",
            "limits.max_header_seconds: found 0, "
            "expected a number greater than 0 and at most 86400",
        ),
        ('capture.redact = "cookie"', 'capture.redact: found "cookie", expected a list of strings'),
        ("capture.redact = [1, true]",
         "capture.redact: found [1, true], expected a list of strings"),
        ("addon = 3", "addon: found 3, expected a table"),
        ("addon.x = 3", "addon.x: found 3, expected a table"),
        (ROUTE + "addon.x = 3", "route 1: addon.x: found 3, expected a table"),
        (ROUTE + "addons = 3", "route 1: addons: found 3, expected a list of strings"),
        ("[route]\nname = 'a'", "route: found a table, expected [[route]] tables"),
        ("route = [1]", "route: found [1], expected [[route]] tables"),
        # values
        ('listen = "x"', f'listen: found "x", expected {ADDRESS}'),
        ('admin = ":1"', f'admin: found ":1", expected {ADDRESS}'),
        ('store = "sqlite:"',
         'store: found "sqlite:", expected a path such as "sqlite:/var/lib/midstream/store.db"'),
        ('store = "valkey://:secret@h:1/x"',
         'store: found another form, expected "valkey://[USER:PASSWORD@]HOST[:PORT][/DB]"'),
        ('store = "valkey:h"',
         'store: found another form, expected "valkey://[USER:PASSWORD@]HOST[:PORT][/DB]"'),
        ('store = "memry:"',
         'store: found "memry:", expected "memory:", "sqlite:PATH" or '
         '"valkey://HOST:PORT/DB", did you mean "memory:"'),
        ('capture.routes = ["chta"]\n' + ROUTE,
         'capture.routes: found "chta", expected the name of a route, expected "default"'),
        ('capture.paths = ["x"]', 'capture.paths: found "x", expected a path such as "/chat", '
         'or "/agents/*" with "*" only at its end'),
        ('capture.redact_paths = ["a..b"]',
         'capture.redact_paths: found "a..b", expected a path such as "user.email" or '
         '"items[*].key"'),
        ('capture.keep = "mendet"',
         'capture.keep: found "mendet", expected one of "all", "errors", "mended", "ring", '
         'did you mean "mended"'),
        ('store = "memory:x"',
         'store: found "memory:x", expected "memory:" with nothing behind it'),
        ("workers = 2",
         "workers: found 2, expected 1: more than one worker is not available in this version"),
        ('security.allowed_origins = ["chat.example.com"]',
         'security.allowed_origins: found "chat.example.com", '
         'expected an origin such as "https://chat.example.com"'),
        ('security.allowed_origins = ["https://a/b"]',
         'security.allowed_origins: found "https://a/b", '
         'expected an origin such as "https://chat.example.com"'),
        ('security.trusted_proxies = ["10.0.0.0/8", "proxy"]',
         'security.trusted_proxies: found "proxy", '
         'expected an IP address or network such as "10.0.0.1" or "10.0.0.0/8"'),
        (ROUTE + 'name = "Chat"', f'route 1: name: found "Chat", {NAME}'),
        (ROUTE + 'name = ""', f'route 1: name: found "", {NAME}'),
        (ROUTE + f'name = "{"a" * 33}"', f'route 1: name: found "{"a" * 33}", {NAME}'),
        (ROUTE + 'path = "agents"', f'route 1: path: found "agents", {PATH}'),
        (ROUTE + 'path = "/a*b"', f'route 1: path: found "/a*b", {PATH}'),
        (ROUTE + 'path = "/a?b=1"', f'route 1: path: found "/a?b=1", {PATH}'),
        (ROUTE + 'path = "/ä"', f'route 1: path: found "/ä", {PATH}'),
        ('[[route]]\nupstream = "h"', f'route 1: upstream: found "h", expected {URL}'),
        # values that depend on each other
        ("", "route: none found, expected a [[route]] with an upstream, or --upstream URL"),
        ("[[route]]", "route 1: upstream: not set, expected an http:// or https:// URL"),
        (ROUTE + '[[route]]\nname = "b"',
         "route 2: upstream: not set, expected an http:// or https:// URL"),
        (ROUTE * 2,
         'route 2: name: found "default" again, expected another name than that of route 1'),
        ("[[route]]\n" * 33, "route: found 33 routes, expected at most 32"),
        ('admin = "127.0.0.1:8080"\n' + ROUTE,
         'admin: found "127.0.0.1:8080", expected another address than `listen`'),
        ('tls.cert = "c"\n' + ROUTE,
         "tls.key: not set, expected a PEM file because `tls.cert` is set"),
        ('tls.key = "k"\n' + ROUTE,
         "tls.cert: not set, expected a PEM file because `tls.key` is set"),
    ],
)  # fmt: skip
def test_an_error_names_the_file_the_key_what_was_found_and_what_was_expected(file, content, error):
    assert error_of(file(content)) == f"m.toml: {error}"


@pytest.mark.parametrize(
    ("content", "error"),
    [
        ("listen = ", "invalid value (at end of document), expected TOML"),
        ("a = 1\na = 2\n", "cannot overwrite a value (at line 2, column 6), expected TOML"),
        (b"a = '\xff'", "byte 5 is not UTF-8, expected TOML"),
        ("a = " + "[" * 100_000, "nested too deeply, expected TOML"),
        (b" " * (MAX_FILE_BYTES + 1), f"more than {MAX_FILE_BYTES} bytes, expected a TOML file"),
    ],
    ids=["syntax", "twice", "encoding", "depth", "size"],
)
def test_a_file_that_is_no_toml_is_refused(file, content, error):
    assert error_of(file(content)) == f"m.toml: {error}"


def test_an_integer_of_thousands_of_digits_is_refused(file):
    text = error_of(file("workers = " + "9" * 5000))
    assert text.startswith("m.toml: exceeds the limit")


def test_a_file_that_cannot_be_read_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    expected = "expected a readable TOML file"
    assert error_of("none.toml") == f"none.toml: no such file or directory, {expected}"
    assert error_of(".") == f".: is a directory, {expected}"


def test_a_long_value_is_cut_in_an_error(file):
    text = error_of(file(f'listen = "{"x" * 10_000}"'))
    assert len(text) < 200
    assert "xxx…, expected HOST:PORT" in text


# Errors: in the environment and on the command line


@pytest.mark.parametrize(
    ("variable", "text", "error"),
    [
        ("MIDSTREAM_LISTEN", "x", f'found "x", expected {ADDRESS}'),
        ("MIDSTREAM_WORKERS", "two",
         'found "two", expected an integer at least 1 and at most 1024'),
        ("MIDSTREAM_OBSERVE", "yes", 'found "yes", expected true or false'),
        ("MIDSTREAM_UPSTREAM", "x", f'found "x", expected {URL}'),
        ("MIDSTREAM_LISTN", "x", 'unknown variable, did you mean "MIDSTREAM_LISTEN"'),
        ("MIDSTREAM_MAX_FRAME_BYTES", "1",
         'unknown variable, did you mean "MIDSTREAM_LIMITS_MAX_FRAME_BYTES"'),
        ("MIDSTREAM_LIMITS_MAX_FRAME_BYTE", "1",
         'unknown variable, did you mean "MIDSTREAM_LIMITS_MAX_FRAME_BYTES"'),
    ],
)  # fmt: skip
def test_an_error_names_the_variable(variable, text, error):
    assert error_of(environ={variable: text}) == f"environment: {variable}: {error}"


def test_an_error_names_the_flag():
    flags = {"upstream": UPSTREAM, "listen": "8080"}
    assert error_of(flags=flags) == f'command line: --listen: found "8080", expected {ADDRESS}'


def test_without_an_upstream_and_a_file_both_are_offered():
    assert (
        error_of() == "command line: --upstream: not set, expected --upstream URL or --config FILE"
    )


def test_an_upstream_from_outside_does_not_fit_several_routes(file):
    path = file(ROUTE + '[[route]]\nname = "b"\nupstream = "http://b"\n')
    ending = (
        "found 2 routes in m.toml, expected at most one: set `upstream` in each [[route]] instead"
    )
    assert error_of(path, flags={"upstream": UPSTREAM}) == f"command line: --upstream: {ending}"
    environ = {"MIDSTREAM_UPSTREAM": UPSTREAM}
    assert error_of(path, environ=environ) == f"environment: MIDSTREAM_UPSTREAM: {ending}"


def test_an_address_taken_twice_names_the_place_of_the_second():
    flags = {"upstream": UPSTREAM, "admin": "[::1]:1"}
    text = error_of(flags=flags, environ={"MIDSTREAM_LISTEN": "[::1]:1"})
    assert text == 'command line: --admin: found "[::1]:1", expected another address than `listen`'


def test_two_free_ports_of_one_host_are_two_addresses():
    flags = {"upstream": UPSTREAM, "listen": "127.0.0.1:0", "admin": "127.0.0.1:0"}
    assert load(flags=flags, environ={}).admin == "127.0.0.1:0"
