"""The verb `healthcheck`: is the proxy behind an admin port ready?"""

import argparse
import os
import queue
import threading

from midstream.cli.parser import COMMAND_LINE, Verbs, add_verb
from midstream.core.errors import ConfigError

DEFAULT_ADMIN = "127.0.0.1:9464"
TIMEOUT_SECONDS = 5.0
MAX_BODY_BYTES = 4096
ANYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  # compared with, not bound
OK = 200


def add_verbs(verbs: Verbs) -> None:
    parser = add_verb(
        verbs,
        "healthcheck",
        healthcheck,
        "ask a running proxy whether it is ready; exit 1 if it is not",
        "midstream healthcheck\nmidstream healthcheck --admin http://127.0.0.1:9464",
    )
    parser.add_argument(
        "--admin", metavar="URL", help="the admin port (MIDSTREAM_ADMIN, else 127.0.0.1:9464)"
    )


def healthcheck(args: argparse.Namespace) -> int:
    status, body = _ask_in_time(_readyz(args.admin))
    print(body)
    return 0 if status == OK else 1


def _readyz(admin: str | None) -> str:
    """Return the URL to ask: an address to listen on everywhere is asked on loopback."""
    from midstream.config.values import Address, parse_address

    environ = os.environ.get("MIDSTREAM_ADMIN")
    at = f"{COMMAND_LINE}: --admin" if admin else "environment: MIDSTREAM_ADMIN"
    scheme, _, rest = (admin or environ or DEFAULT_ADMIN).rpartition("://")
    try:
        host, port = parse_address(rest.removesuffix("/"))
    except ValueError as error:
        raise ConfigError(f"{at}: {error}") from None
    if scheme not in ("", "http"):
        raise ConfigError(f'{at}: found "{scheme}://", expected http:// or HOST:PORT')
    return f"http://{Address(ANYWHERE.get(host, host), port)}/readyz"


def _ask_in_time(url: str) -> tuple[int, str]:
    """Ask within a bound of the whole: a timeout of urllib counts for each read apart."""
    answers: queue.SimpleQueue[tuple[int, str]] = queue.SimpleQueue()
    threading.Thread(target=lambda: answers.put(_ask(url)), daemon=True).start()
    try:
        return answers.get(timeout=TIMEOUT_SECONDS)
    except queue.Empty:
        return 0, f"{url}: no answer within {TIMEOUT_SECONDS:g} s"


def _ask(url: str) -> tuple[int, str]:
    from http.client import HTTPException
    from urllib.error import HTTPError
    from urllib.request import ProxyHandler, build_opener

    opener = build_opener(ProxyHandler({}))  # never through the proxy of the environment
    try:
        with opener.open(url, timeout=TIMEOUT_SECONDS) as answer:
            return answer.status, _text(answer.read(MAX_BODY_BYTES))
    except HTTPError as error:
        with error:
            return error.code, _text(error.read(MAX_BODY_BYTES))
    except (OSError, HTTPException) as error:
        return 0, f"{url}: {getattr(error, 'reason', error)}"


def _text(body: bytes) -> str:
    return body.decode("utf-8", "replace").strip()
