"""Keys that `cru login` keeps: the file, the keyring, and that the environment wins."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from cru.core.models import ModelSettings
from cru.core.models.providers import key_for, own_keys
from cru.core.models.stored_keys import KeysUnusable, StoredKeys, key_environment

OPENAI_URL = "https://api.openai.com/v1"


class Keyring:
    """A backend of the library keyring, in memory."""

    name, priority = "Memory", 5.0

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], str] = {}
        self.reads = 0
        self.is_locked = False

    def set_password(self, service: str, name: str, key: str) -> None:
        self.kept[service, name] = key

    def get_password(self, service: str, name: str) -> str | None:
        self.reads += 1
        if self.is_locked:
            raise RuntimeError("it is locked")
        return self.kept.get((service, name))

    def delete_password(self, service: str, name: str) -> None:
        del self.kept[service, name]


@pytest.fixture
def ring(monkeypatch: pytest.MonkeyPatch) -> Keyring:
    backend = Keyring()
    monkeypatch.setitem(sys.modules, "keyring", SimpleNamespace(get_keyring=lambda: backend))
    return backend


def test_without_a_keyring_it_is_a_file_for_its_owner_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keyring", None)
    keys = StoredKeys(tmp_path / "home")
    assert keys.keep("openai", "k-1") == str(keys.path) == keys.place("openai")
    os.chmod(keys.path, 0o644)
    keys.keep("https://far.example", "k-2")
    assert stat.S_IMODE(keys.path.stat().st_mode) == 0o600
    assert [keys.key(name).value for name in keys.names()] == ["k-1", "k-2"]
    assert keys.forget("openai") and not keys.forget("openai") and keys.names() == ("https://far.example",)


def test_a_keyring_has_the_key_and_the_file_only_its_name(tmp_path: Path, ring: Keyring) -> None:
    keys = StoredKeys(tmp_path)
    assert keys.keep("anthropic", "k-1") == "the keyring (Memory)"
    assert "k-1" not in keys.path.read_text() and keys.key("anthropic").value == "k-1"
    assert keys.keep("openai", "k-2", in_file=True) == str(keys.path)
    assert keys.forget("anthropic") and ring.kept == {}


@pytest.mark.parametrize("priority", [0, -1, 0.5])
def test_a_keyring_that_keeps_no_secrets_is_not_used(tmp_path: Path, ring: Keyring, priority: float) -> None:
    ring.priority = priority
    assert StoredKeys(tmp_path).keep("openai", "k") == str(tmp_path / "keys.json") and not ring.kept


def test_the_environment_wins_and_the_keyring_is_asked_for_what_is_wanted_only(tmp_path: Path, ring: Keyring) -> None:
    StoredKeys(tmp_path).keep("openai", "kept")
    settings = ModelSettings(model="openai:m")
    env = key_environment({"OPENAI_API_KEY": "own", "PATH": "/bin"}, tmp_path)
    assert key_for("openai", OPENAI_URL, settings, env).value == "own" and ring.reads == 0
    env = key_environment({"PATH": "/bin"}, tmp_path)
    assert key_for("anthropic", "https://api.anthropic.com/v1", settings, env).value == "" and ring.reads == 0
    key = key_for("openai", OPENAI_URL, settings, env)
    assert (key.value, key.name) == ("kept", "the keyring (Memory)") and own_keys(settings, env) == ["kept"]
    assert set(env) == {"OPENAI_API_KEY", "PATH"} and ring.reads == 1


def test_a_kept_key_goes_to_its_own_host_only(tmp_path: Path) -> None:
    StoredKeys(tmp_path).keep("https://models.example", "kept", in_file=True)
    env = key_environment({}, tmp_path)
    for url, value in (
        ("https://models.example/v1", "kept"),
        ("https://models.example.net/v1", ""),
        ("http://models.example/v1", ""),
    ):
        assert key_for("openai_compatible", url, ModelSettings(base_url=url), env).value == value


def test_a_locked_keyring_is_a_key_that_is_missing_and_says_why(tmp_path: Path, ring: Keyring) -> None:
    StoredKeys(tmp_path).keep("openai", "kept")
    ring.is_locked = True
    env = key_environment({}, tmp_path)
    assert key_for("openai", OPENAI_URL, ModelSettings(), env).value == ""
    assert "it is locked" in getattr(env, "problem", "")


@pytest.mark.parametrize("text", ["[]", '{"openai": "k"}', '{"openai": {"kye": "k"}}', "\xff", ""])
def test_a_file_that_is_none_of_cru_is_told_and_not_overwritten(tmp_path: Path, text: str) -> None:
    path = tmp_path / "keys.json"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(KeysUnusable, match=r"keys\.json: this is no file of keys"):
        StoredKeys(tmp_path).keep("openai", "k", in_file=True)
    assert path.read_bytes() == text.encode("latin-1")
