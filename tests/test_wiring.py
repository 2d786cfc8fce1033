"""Routes get their addons in order, with the options and modes of the configuration."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import midstream_addons
from midstream import registry, wiring
from midstream.config import Config, load
from midstream.core.addon import Mode
from midstream.core.errors import ConfigError
from midstream.core.exchange import RequestHead
from midstream.core.metrics import Counts

MASK = "acme_pack.mask:MaskSecrets"
LIMIT = "acme_pack.mask:LimitWords"
ROUTE = '[[route]]\nname = "chat"\npath = "/chat"\nupstream = "http://127.0.0.1:1"\n'
OTHER = '[[route]]\nname = "rest"\nupstream = "http://127.0.0.1:2"\n'


@pytest.fixture(autouse=True)
def packs(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parent / "packs"))


@pytest.fixture
def config(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def loaded(content):
        (tmp_path / "m.toml").write_text(content)
        return load("m.toml", environ={})

    return loaded


def with_mask(options: str) -> str:
    """Return a file with the addon on its one route; `options` are tables behind it."""
    return f'{ROUTE}addons = ["{MASK}"]\n{options}'


def shared(options: str) -> str:
    return with_mask(f'[addon."{MASK}"]\n{options}\n')


def own(options: str) -> str:
    return with_mask(f'[route.addon."{MASK}"]\n{options}\n')


def error_of(config: Callable[[str], Config], content: str) -> str:
    with pytest.raises(ConfigError) as caught:
        wiring.resolve(config(content))
    text = str(caught.value)
    assert "\n" not in text
    return text


def test_a_route_that_names_no_addons_has_all_known_ones_in_repair_mode():
    (route,) = wiring.resolve(load(flags={"upstream": "http://h"}, environ={}))
    assert tuple(repair.reference for repair in route.repairs) == registry.addon_names()
    assert {repair.mode for repair in route.repairs} <= {Mode.REPAIR}


def test_a_known_addon_that_is_broken_is_told_where_it_would_run(config, tmp_path, monkeypatch):
    (tmp_path / "broken_for_wiring.py").write_text("import no_such_module_anywhere\n")
    monkeypatch.setattr(midstream_addons, "__path__", [str(tmp_path)])
    assert error_of(config, ROUTE) == (
        'm.toml: route 1: addons: cannot import "midstream_addons.broken_for_wiring": '
        "No module named 'no_such_module_anywhere'"
    )


def test_a_route_with_an_empty_list_has_none(config):
    (route,) = wiring.resolve(config(ROUTE + "addons = []\n"))
    assert route.repairs == ()


def test_the_order_of_the_list_is_the_order_of_running(config):
    content = f'{ROUTE}addons = ["{LIMIT}", "{MASK}"]\n[addon."{LIMIT}"]\nmax_words = 3\n'
    (route,) = wiring.resolve(config(content))
    assert [repair.addon.name for repair in route.repairs] == ["limit-words", "mask-secrets"]


def test_options_of_a_route_win_key_by_key_over_the_shared_ones(config):
    content = (
        f'{ROUTE}addons = ["{MASK}"]\n'
        f'[route.addon."{MASK}"]\nstrength = 9\n'
        f'{OTHER}addons = ["{MASK}"]\n'
        f'[addon."{MASK}"]\nmode = "observe"\nstrength = 5\nwords = ["a", "b"]\n'
    )
    chat, rest = (route.repairs[0] for route in wiring.resolve(config(content)))
    options: list[Any] = [chat.options, rest.options]
    assert [given.strength for given in options] == [9, 5]
    assert [given.words for given in options] == [("a", "b"), ("a", "b")]
    assert chat.mode is rest.mode is Mode.OBSERVE
    assert vars(chat.addon)["options"] == chat.options


@pytest.mark.parametrize(
    ("mode", "observed"), [("repair", "observe"), ("observe", "observe"), ("off", "off")]
)
def test_observe_turns_repair_into_observe_and_leaves_off_alone(config, mode, observed):
    settings = config(shared(f'mode = "{mode}"'))
    (plain,), (observing,) = (
        wiring.resolve(settings, observe=observe)[0].repairs for observe in (False, True)
    )
    assert (plain.mode, observing.mode) == (mode, observed)


def test_observe_counts_from_the_configuration_too():
    flags = {"upstream": "http://h", "observe": True}
    (route,) = wiring.resolve(load(flags=flags, environ={}))
    assert {repair.mode for repair in route.repairs} <= {Mode.OBSERVE}


def test_the_engine_has_the_routes_limits_and_counts_it_was_given(config):
    counts = Counts()
    content = with_mask("[limits]\nmax_frame_bytes = 4096\n") + OTHER + "addons = []\n"
    engine = wiring.engine(config(content), counts=counts)
    assert engine.counts is counts
    assert engine.limits.max_frame_bytes == 4096
    chat, rest = engine.routes
    assert [(addon.name, mode) for addon, mode in chat.addons] == [("mask-secrets", Mode.REPAIR)]
    assert rest.addons == ()
    assert engine.route(RequestHead("GET", "/chat?x=1")) is chat
    assert engine.route(RequestHead("GET", "/other")) is rest
    assert (chat.upstream, rest.upstream) == ("http://127.0.0.1:1", "http://127.0.0.1:2")


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (
            ROUTE + 'addons = ["replay-overlp"]',
            'route 1: addons: unknown addon "replay-overlp", did you mean "replay-overlap"',
        ),
        (
            ROUTE + 'addons = ["acme_pack.msk:X"]',
            'route 1: addons: cannot import "acme_pack.msk": No module named \'acme_pack.msk\'',
        ),
        (
            ROUTE + "[addon.replay-overlp]\n",
            'addon.replay-overlp: unknown addon "replay-overlp", did you mean "replay-overlap"',
        ),
        (
            ROUTE + OTHER + "[route.addon.replay-overlp]\n",
            "route 2: addon.replay-overlp: "
            'unknown addon "replay-overlp", did you mean "replay-overlap"',
        ),
        (
            with_mask("[route.addon.replay-overlap]\n"),
            "route 1: addon.replay-overlap: not an addon of this route, "
            f'expected "{MASK}"',
        ),
        (
            ROUTE + f'addons = ["{MASK}", "{MASK}"]',
            'route 1: addons: found "mask-secrets" twice, expected it once',
        ),
        (
            ROUTE + f'addons = ["{MASK}", "acme_pack.mask:SameName"]',
            'route 1: addons: found "mask-secrets" twice, expected it once',
        ),
        (
            shared("strenth = 2"),
            f'addon.{MASK}.strenth: unknown key, did you mean "strength"',
        ),
        (
            shared("zzz = 2"),
            f'addon.{MASK}.zzz: unknown key, '
            'expected one of "mode", "words", "strength", "style"',
        ),
        (
            shared('mode = "repiar"'),
            f'addon.{MASK}.mode: found "repiar", '
            'expected one of "off", "observe", "repair", did you mean "repair"',
        ),
        (
            shared("mode = 1"),
            f'addon.{MASK}.mode: found 1, expected one of "off", "observe", "repair"',
        ),
        (
            shared('style = "starz"'),
            f'addon.{MASK}.style: found "starz", '
            'expected one of "blank", "stars", did you mean "stars"',
        ),
        (
            shared("strength = 10"),
            f"addon.{MASK}.strength: found 10, expected an integer at least 1 and at most 9",
        ),
        (
            own('words = "a"'),
            f'route 1: addon.{MASK}.words: found "a", expected a list of strings',
        ),
        (
            own('mode = "of"'),
            f'route 1: addon.{MASK}.mode: found "of", '
            'expected one of "off", "observe", "repair", did you mean "off"',
        ),
        (
            ROUTE + f'addons = ["{LIMIT}"]',
            f"route 1: addon.{LIMIT}: object missing required field `max_words`",
        ),
        (
            ROUTE + f'addons = ["{LIMIT}"]\n[addon."{LIMIT}"]\nmax_words = 0',
            f"route 1: addon.{LIMIT}: max_words is 0, at least 1 is needed",
        ),
    ],
)  # fmt: skip
def test_an_error_names_the_file_the_route_the_addon_and_the_key(config, content, error):
    assert error_of(config, content) == f"m.toml: {error}"
