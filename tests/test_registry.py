"""Addons and dialects are found by name; what does not keep the contract is refused."""

import importlib
import sys
from pathlib import Path

import pytest

import midstream.dialects
import midstream_addons
from midstream import registry
from midstream.core.addon import Addon
from midstream.core.errors import ConfigError
from midstream.dialects.cloudflare_chat import DIALECT

MODULE = "ADDON = 1\n"
CHAT = DIALECT.name


@pytest.fixture(autouse=True)
def packs(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parent / "packs"))


@pytest.fixture
def modules(tmp_path, monkeypatch):
    """Put these modules, and only these, into a package; forget them afterwards."""

    def put(package, **contents):
        for name, content in contents.items():
            (tmp_path / f"{name}.py").write_text(content)
        monkeypatch.setattr(package, "__path__", [str(tmp_path)])
        for name in list(sys.modules):
            if name.startswith(f"{package.__name__}."):
                monkeypatch.delitem(sys.modules, name)

    before = set(sys.modules)
    yield put
    for name in set(sys.modules) - before:
        if name.startswith(("midstream_addons.", "midstream.dialects.")):
            del sys.modules[name]


def error_of(reference: str) -> str:
    with pytest.raises(ConfigError) as caught:
        registry.load_addon(reference)
    return str(caught.value)


def test_known_addons_come_in_their_default_order_and_others_by_name(modules):
    modules(
        midstream_addons,
        history_order=MODULE,
        zebra=MODULE,
        replay_overlap=MODULE,
        strip_compaction=MODULE,
        aardvark=MODULE,
    )
    assert registry.addon_names() == (
        "strip-compaction",
        "replay-overlap",
        "history-order",
        "aardvark",
        "zebra",
    )


def test_a_module_that_binds_no_addon_is_none(modules):
    modules(midstream_addons, replay_overlap=MODULE, shared_words="X = 1\n")
    assert registry.addon_names() == ("replay-overlap",)


def test_an_addon_that_cannot_be_imported_is_told_and_not_forgotten(modules):
    modules(midstream_addons, replay_overlap="import no_such_module_anywhere\n")
    with pytest.raises(ConfigError) as caught:
        registry.addon_names()
    assert str(caught.value) == (
        'cannot import "midstream_addons.replay_overlap": '
        "No module named 'no_such_module_anywhere'"
    )


def test_an_addon_that_is_broken_breaks_no_other(modules):
    modules(
        midstream_addons,
        broken="import no_such_module_anywhere\n",
        sound="from acme_pack.mask import MaskSecrets\nADDON = MaskSecrets\n",
    )
    assert registry.load_addon("sound").name == "mask-secrets"
    assert error_of("broken") == (
        "cannot import \"midstream_addons.broken\": No module named 'no_such_module_anywhere'"
    )


def test_a_module_that_is_no_addon_is_unknown(modules):
    modules(midstream_addons, replay_overlap=MODULE, words="X = 1\n")
    assert error_of("words") == 'unknown addon "words", expected "replay-overlap"'


def test_a_new_repair_is_one_module(modules):
    modules(
        midstream_addons,
        new_repair="from acme_pack.mask import MaskSecrets\nADDON = MaskSecrets\n",
    )
    pack = importlib.import_module("acme_pack.mask")
    assert registry.load_addon("new-repair") is pack.MaskSecrets


def test_every_addon_of_ours_keeps_the_contract_under_its_own_name():
    for name in registry.addon_names():
        addon = registry.load_addon(name)
        assert issubclass(addon, Addon)
        assert addon.name == name


def test_a_foreign_addon_is_a_module_and_a_class():
    addon = registry.load_addon("acme_pack.mask:MaskSecrets")
    assert addon.name == "mask-secrets"


def test_every_dialect_of_ours_is_found_once():
    names = [dialect.name for dialect in registry.dialects()]
    assert CHAT in names
    assert len(names) == len(set(names))


def test_a_new_dialect_is_one_module(modules):
    modules(
        midstream.dialects,
        words="X = 1\n",
        second='class B:\n    name = "b"\nDIALECT = B()\n',
        first='class A:\n    name = "a"\nDIALECT = A()\n',
    )
    assert [dialect.name for dialect in registry.dialects()] == ["a", "b"]


@pytest.mark.parametrize(
    ("reference", "error"),
    [
        ("replay-overlp", 'unknown addon "replay-overlp", did you mean "replay-overlap"'),
        ("zzz", 'unknown addon "zzz", expected one of "strip-compaction", "replay-overlap"'),
        ("replay_overlap", 'unknown addon "replay_overlap", did you mean "replay-overlap"'),
    ],
)
def test_an_unknown_addon_is_refused_with_what_was_meant(modules, reference, error):
    modules(midstream_addons, replay_overlap=MODULE, strip_compaction=MODULE)
    assert error_of(reference) == error


@pytest.mark.parametrize(
    ("reference", "error"),
    [
        ("acme pack:X", 'found "acme pack:X", expected "package.module:Class"'),
        ("acme_pack.mask:", 'found "acme_pack.mask:", expected "package.module:Class"'),
        (".mask:X", 'found ".mask:X", expected "package.module:Class"'),
        ("acme_pack.msk:X", "cannot import \"acme_pack.msk\": No module named 'acme_pack.msk'"),
        (
            "acme_pack.mask:MaskSecret",
            '"acme_pack.mask" has no "MaskSecret", did you mean "MaskSecrets"',
        ),
        ("acme_pack.mask:Zzzzzzzz", '"acme_pack.mask" has no "Zzzzzzzz"'),
        (
            "acme_pack.mask:NO_ADDON",
            '"acme_pack.mask:NO_ADDON" is no addon, expected a subclass of Addon',
        ),
        (
            "acme_pack.mask:MaskOptions",
            '"acme_pack.mask:MaskOptions" is no addon, expected a subclass of Addon',
        ),
        (
            "acme_pack.mask:Nameless",
            'addon "acme_pack.mask:Nameless" has no name, expected a string',
        ),
        (
            "acme_pack.mask:WordsInList",
            'addon "acme_pack.mask:WordsInList" has no rules, expected a tuple of strings',
        ),
        (
            "acme_pack.mask:Optionless",
            'addon "acme_pack.mask:Optionless" has no Options, expected a msgspec.Struct',
        ),
        (
            "acme_pack.mask:WrongDialect",
            f'addon "acme_pack.mask:WrongDialect": unknown dialect "{CHAT[:-1]}", '
            f'did you mean "{CHAT}"',
        ),
    ],
)
def test_what_is_no_addon_is_refused_in_words(reference, error):
    assert error_of(reference) == error


@pytest.mark.parametrize("name", registry.addon_names())
def test_every_word_of_a_repair_has_a_plain_sentence(name):
    addon = registry.load_addon(name)
    assert set(addon.meanings) == {*addon.rules, *addon.reasons}
    for sentence in addon.meanings.values():
        assert sentence[0].isupper()
        assert sentence.endswith(".")
        assert len(sentence.split()) > 4
