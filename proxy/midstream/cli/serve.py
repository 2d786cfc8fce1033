"""The verbs that serve traffic: `run` and `mitm`."""

import argparse
import importlib.util
import logging

from midstream.cli.parser import Verbs, add_verb
from midstream.core.errors import ConfigError

LOG_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


def add_verbs(verbs: Verbs) -> None:
    parser = add_verb(
        verbs,
        "run",
        run,
        "serve traffic between clients and upstreams, and mend it",
        "midstream run --upstream http://127.0.0.1:8787\n"
        "midstream run --upstream http://127.0.0.1:8787 --listen 0.0.0.0:8080 --observe\n"
        "midstream run --upstream http://127.0.0.1:8787 --capture captures\n"
        "midstream run --config midstream.toml --admin 127.0.0.1:0",
    )
    parser.add_argument(
        "--upstream", metavar="URL", help="where requests go; sets the single route of a --config"
    )
    parser.add_argument("--config", metavar="FILE", help="a TOML file; flags win over it")
    parser.add_argument(
        "--listen", metavar="HOST:PORT", help="where clients connect (127.0.0.1:8080)"
    )
    parser.add_argument(
        "--admin", metavar="HOST:PORT", help="where metrics and health are (127.0.0.1:9464)"
    )
    parser.add_argument("--observe", action="store_true", help="count repairs, change nothing")
    parser.add_argument("--workers", metavar="N", help="processes (1)")
    parser.add_argument("--capture", metavar="DIR", help="record traffic into this folder (off)")
    parser.add_argument(
        "--capture-keep",
        metavar="WHAT",
        help="all, mended, errors, or ring: only what is asked for with SIGUSR1 (all)",
    )
    parser.add_argument(
        "--content", metavar="HOW", help="message text in captures: full, hash or none (full)"
    )

    parser = add_verb(
        verbs,
        "mitm",
        mitm,
        "run the same addons inside mitmproxy",
        "midstream mitm -- --mode reverse:http://127.0.0.1:8787 --listen-port 8080\n"
        "midstream mitm --web --observe\n"
        "midstream mitm --config midstream.toml -- --set console_eventlog_verbosity=debug",
    )
    parser.usage = "%(prog)s [--config FILE] [--observe] [--web] -- [mitmdump or mitmweb options]"
    parser.add_argument("--config", metavar="FILE", help="a TOML file")
    parser.add_argument("--observe", action="store_true", help="count repairs, change nothing")
    parser.add_argument("--web", action="store_true", help="start mitmweb instead of mitmdump")


def run(args: argparse.Namespace) -> int:
    from midstream import wiring
    from midstream.config import load

    keys = ("upstream", "listen", "admin", "observe", "workers")
    flags = {key: getattr(args, key) for key in keys} | {
        "capture.dir": args.capture,
        "capture.keep": args.capture_keep,
        "capture.content": args.content,
    }
    config = load(args.config, flags=flags)
    wiring.resolve(config)  # a wrong addon is told before anything is opened
    logging.basicConfig(level=logging.INFO, format=LOG_FORMAT)

    from midstream.hosts import gateway

    return gateway.serve(
        config, observe=config.observe, load=lambda: load(args.config, flags=flags)
    )


def mitm(args: argparse.Namespace) -> int:
    from midstream import wiring
    from midstream.config import load

    config = load(args.config, flags={"observe": args.observe}, needs_upstream=False)
    wiring.resolve(config)
    if importlib.util.find_spec("mitmproxy") is None:
        raise ConfigError(
            "mitm: mitmproxy is not installed, expected the extra: pip install 'midstream[mitm]'"
        )

    from midstream.hosts import mitm_entry

    return mitm_entry.main(
        config_path=args.config, observe=config.observe, web=args.web, options=args.options
    )
