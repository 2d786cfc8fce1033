"""The command line that `midstream mitm` gives to mitmproxy."""

import pytest

from midstream.config import Config, load
from midstream.core.errors import ConfigError
from midstream.hosts.mitm_entry import SCRIPT, command_line

ROUTE = '[[route]]\nname = "{0}"\npath = "/{0}/*"\nupstream = "{1}"\n'


def config(text: str = "", tmp_path=None, **flags: object) -> Config:
    path = None
    if text:
        path = tmp_path / "midstream.toml"
        path.write_text(text)
    return load(path and str(path), flags=flags, environ={}, needs_upstream=False)


def arguments(settings: Config, *options: str, web: bool = False) -> list[str]:
    return command_line(settings, None, web=web, options=options)


def test_without_anything_the_script_runs_at_the_default_address():
    assert arguments(config()) == [
        "-s", str(SCRIPT), "--listen-host", "127.0.0.1", "--listen-port", "8080",
    ]  # fmt: skip
    assert SCRIPT.is_file()


def test_the_upstream_of_the_configuration_becomes_the_mode(tmp_path):
    text = 'listen = "127.0.0.2:81"\n' + ROUTE.format("a", "http://127.0.0.1:1")
    assert arguments(config(text, tmp_path))[2:] == [
        "--mode", "reverse:http://127.0.0.1:1",
        "--listen-host", "127.0.0.2", "--listen-port", "81",
    ]  # fmt: skip


def test_routes_to_one_upstream_share_it_and_to_several_need_a_choice(tmp_path):
    one = ROUTE.format("a", "http://127.0.0.1:1") + ROUTE.format("b", "http://127.0.0.1:1")
    assert arguments(config(one, tmp_path)).count("--mode") == 1
    two = config(one + ROUTE.format("c", "http://127.0.0.1:2"), tmp_path)
    with pytest.raises(ConfigError, match="found 2 upstreams"):
        arguments(two)
    assert "--mode" not in arguments(two, "-m", "regular")[:-2]


@pytest.mark.parametrize(
    "given",
    [
        ["--mode", "regular"],
        ["--mode=regular"],
        ["-m", "regular"],
        ["--set", "mode=regular"],
        ["--set=mode=regular"],
    ],
)
def test_a_mode_among_the_options_wins(given, tmp_path):
    settings = config(ROUTE.format("a", "http://127.0.0.1:1"), tmp_path)
    built = arguments(settings, *given)
    assert built[-len(given) :] == given
    assert "reverse:http://127.0.0.1:1" not in built


@pytest.mark.parametrize("given", [["-p", "1"], ["-p1"], ["--listen-port=1"]])
def test_a_port_among_the_options_wins(given):
    built = arguments(config(), *given)
    assert "8080" not in built
    assert built[-len(given) :] == given


def test_what_the_addon_has_to_know_becomes_options(tmp_path):
    settings = config('[tls]\nupstream_ca = "ca.pem"\n', tmp_path, observe=True)
    built = command_line(settings, str(tmp_path / "midstream.toml"), web=True, options=())
    assert f"midstream_config={tmp_path / 'midstream.toml'}" in built
    assert "midstream_observe=true" in built
    assert "store_streamed_bodies=true" in built
    assert "ssl_verify_upstream_trusted_ca=ca.pem" in built
    assert "store_streamed_bodies=true" not in arguments(
        settings, "--set", "store_streamed_bodies=false", web=True
    )
