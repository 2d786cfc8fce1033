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
        "run a capture through the addons, offline",
        "midstream replay captures/chat-000001.cap --diff\n"
        "midstream replay captures/chat-000001.cap --config midstream.toml --out mended.cap",
    )
    parser.add_argument("capture", metavar="CAPTURE", help="a capture file")
    parser.add_argument("--config", metavar="FILE", help="a TOML file")
    parser.add_argument("--observe", action="store_true", help="count repairs, change nothing")
    parser.add_argument("--out", metavar="CAPTURE", help="write what leaves to a new capture")
    parser.add_argument("--diff", action="store_true", help="print what changed; exit 1 if any did")


def demo(args: argparse.Namespace) -> int:
    from midstream import demo

    return demo.main()


def replay(args: argparse.Namespace) -> int:
    from midstream import wiring
    from midstream.config import load

    config = load(args.config, flags={"observe": args.observe}, needs_upstream=False)
    wiring.resolve(config)  # a wrong addon is told before a capture is opened

    from midstream.hosts import replay

    return replay.main(args.capture, args.config, config.observe, args.out, args.diff)
