"""The verbs that need no traffic: `demo` and `replay`."""

import argparse

from midstream.cli.parser import Verbs, add_verb


def add_verbs(verbs: Verbs) -> None:
    add_verb(
        verbs,
        "demo",
        demo,
        "show every fault and its repair on loopback, directly and through the proxy",
        "midstream demo",
    )
    parser = add_verb(
        verbs,
        "replay",
        replay,
        "run a capture through the addons, offline; or serve the server's side of it",
        "midstream replay captures/chat-000001.cap --diff\n"
        "midstream replay case.har --observe\n"
        "midstream replay captures --serve 127.0.0.1:8787 --speed 10\n"
        "midstream replay captures/chat-000001.cap --config midstream.toml --out mended.cap",
    )
    parser.add_argument("capture", metavar="CAPTURE", help="a capture, a HAR, or mitmproxy flows")
    parser.add_argument("--config", metavar="FILE", help="a TOML file")
    parser.add_argument("--observe", action="store_true", help="count repairs, change nothing")
    parser.add_argument("--out", metavar="CAPTURE", help="write what leaves to a new capture")
    parser.add_argument("--diff", action="store_true", help="print what changed; exit 1 if any did")
    parser.add_argument(
        "--serve",
        metavar="HOST:PORT",
        help="be the server that was recorded, for a client to try; ids in frames stay as recorded",
    )
    parser.add_argument(
        "--speed",
        metavar="X",
        type=float,
        default=1.0,
        help="with --serve: 10 is faster, 0 at once",
    )
    parser.add_argument(
        "--once",
        action="store_true",
        help="with --serve: serve every exchange one time, then end",
    )
    parser.add_argument(
        "--sent",
        action="store_true",
        help="with --serve: what midstream sent to the client, not what the server sent",
    )


def demo(args: argparse.Namespace) -> int:
    from midstream import demo

    return demo.main()


def replay(args: argparse.Namespace) -> int:
    if args.serve is not None:
        return _serve(args)
    from midstream import wiring
    from midstream.config import load

    config = load(args.config, flags={"observe": args.observe}, needs_upstream=False)
    wiring.resolve(config)  # a wrong addon is told before a capture is opened

    from midstream.hosts import replay

    return replay.main(args.capture, args.config, config.observe, args.out, args.diff)


def _serve(args: argparse.Namespace) -> int:
    import asyncio

    from midstream.adapters.capture_exchanges import gathered
    from midstream.adapters.capture_open import open_capture
    from midstream.config.values import parse_address
    from midstream.core.errors import CaptureError, ConfigError
    from midstream.core.frames import Side
    from midstream.hosts import replay_server

    try:
        address = parse_address(args.serve)
    except ValueError as error:
        raise ConfigError(f"command line: --serve: {error}") from None
    if not 0 <= args.speed < float("inf"):
        raise ConfigError(f"command line: --speed: found {args.speed}, expected 0 or more")
    seen_by = Side.CLIENT if args.sent else Side.SERVER
    exchanges = list(gathered(open_capture(args.capture), seen_by=seen_by))
    if not exchanges:
        raise CaptureError(f"{args.capture}: has no exchange to serve")
    return asyncio.run(replay_server.serve(exchanges, address, args.speed, is_once=args.once))
