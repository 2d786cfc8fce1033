"""The verb `midstream mitm`: builds the command line of mitmdump or mitmweb, and runs it.

mitmproxy owns the process from there: its loop, its signals, its log. What is given behind `--`
wins over what the configuration says.
"""

from collections.abc import Sequence
from pathlib import Path

from mitmproxy.tools import main as mitmproxy

from midstream.config import Config, load, parse_address
from midstream.core.errors import ConfigError

SCRIPT = Path(__file__).with_name("mitm_script.py")
USAGE_ERROR = 2


def main(config_path: str | None, observe: bool, web: bool, options: Sequence[str]) -> int:
    """Run mitmdump or mitmweb until it ends, and return its exit code. Raises ConfigError."""
    config = load(config_path, flags={"observe": observe}, needs_upstream=False)
    arguments = command_line(config, config_path, web=web, options=options)
    try:
        (mitmproxy.mitmweb if web else mitmproxy.mitmdump)(arguments)
    except SystemExit as leaving:
        # mitmproxy leaves with 1 for a wrong option or a taken port, which midstream calls 2.
        return USAGE_ERROR if leaving.code else 0
    return 0


def command_line(
    config: Config, config_path: str | None, *, web: bool, options: Sequence[str]
) -> list[str]:
    """Return the arguments for mitmproxy: the script, what the configuration says, the options."""
    arguments = ["-s", str(SCRIPT)]
    if config_path is not None:
        arguments += ["--set", f"midstream_config={Path(config_path).absolute()}"]
    if config.observe:
        arguments += ["--set", "midstream_observe=true"]
    if web and not _given(options, "store_streamed_bodies"):
        arguments += ["--set", "store_streamed_bodies=true"]  # what streams is shown afterwards
    if config.tls.upstream_ca and not _given(options, "ssl_verify_upstream_trusted_ca"):
        arguments += ["--set", f"ssl_verify_upstream_trusted_ca={config.tls.upstream_ca}"]
    if not _given(options, "mode", "m"):
        arguments += _mode(config)
    listen = parse_address(config.listen)
    if not _given(options, "listen_host"):
        arguments += ["--listen-host", listen.host]
    if not _given(options, "listen_port", "p"):
        arguments += ["--listen-port", str(listen.port)]
    return [*arguments, *options]


def _mode(config: Config) -> list[str]:
    upstreams = {route.upstream for route in config.routes if route.upstream}
    if len(upstreams) > 1:
        raise ConfigError(
            f"{config.source}: route: found {len(upstreams)} upstreams, mitmproxy has room for "
            "one: choose with `midstream mitm -- --mode reverse:URL`"
        )
    return [argument for url in upstreams for argument in ("--mode", f"reverse:{url}")]


def _given(options: Sequence[str], name: str, short: str = "") -> bool:
    """Tell whether mitmproxy's options hold this one: as a flag of its own, or behind `--set`."""
    flag = "--" + name.replace("_", "-")
    for at, option in enumerate(options):
        if option == flag or option.startswith((f"{flag}=", f"--set={name}=")):
            return True
        if short and option.startswith(f"-{short}") and not option.startswith("--"):
            return True
        if option == "--set" and "".join(options[at + 1 : at + 2]).startswith(f"{name}="):
            return True
    return False
