"""Keys that `cru login` keeps: in the system's keyring, or in a file of cru's home that only its owner can read
(docs/decisions/keys.md). What the environment has wins."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from cru.core.base.files import read_json
from cru.core.base.files.atomic import file_lock, replace_file
from cru.core.base.files.regular import make_private_folder
from cru.core.models.protocol import ModelError
from cru.core.models.providers import KEYED, ApiKey, KeyEnvironment, origin_of

FILE = "keys.json"
"""In cru's home."""
SERVICE = "cru"
"""What keys belong to in a keyring."""
INSTALL = "pip install 'cru[keyring]'"
_USABLE = 1
"""Priority from which a backend of keyring keeps secrets well; those below keep plain text, or nothing."""


class KeysUnusable(ModelError):
    """Kept keys cannot be read or written."""


class _KeptKey(Struct, omit_defaults=True, forbid_unknown_fields=True):
    """A line of the file. key: the key itself; keyring: it is in the keyring of that name instead; address: of a server, its base_url"""

    key: str = ""
    keyring: str = ""
    address: str = ""


class StoredKeys:
    """Those of one home. A name is a provider's, or scheme, host and port of a server (`https://models.example`)."""

    def __init__(self, home: Path) -> None:
        self.path = home / FILE

    def names(self) -> tuple[str, ...]:
        """Raises KeysUnusable."""
        return tuple(self._read())

    def servers(self) -> dict[str, str]:
        """The base_url of each server that a key is kept for, by its name. Raises KeysUnusable."""
        return {name: kept.address or f"{name}/v1" for name, kept in self._read().items() if "://" in name}

    def place(self, name: str) -> str:
        """Where a key is kept, for people; "" if it is not. Raises KeysUnusable."""
        kept = self._read().get(name)
        if kept is None:
            return ""
        return f"the keyring ({kept.keyring})" if kept.keyring else str(self.path)

    def key(self, name: str) -> ApiKey:
        """Raises KeysUnusable."""
        kept = self._read().get(name)
        if kept is None:
            return ApiKey()
        if not kept.keyring:
            return ApiKey(kept.key, str(self.path))
        return ApiKey(_read_keyring(name), f"the keyring ({kept.keyring})")

    def keep(self, name: str, key: str, *, in_file: bool = False, address: str = "") -> str:
        """Keep it in the keyring, if there is a usable one and the file is not asked for; where it is now. address: of a server, its
        base_url. Raises KeysUnusable."""
        backend = None if in_file else find_keyring()[0]
        if backend is not None:
            _call_keyring("set_password", name, key)
        label = "" if backend is None else backend_label(backend)
        self._change(name, _KeptKey("" if label else key, label, address))
        return self.place(name)

    def forget(self, name: str) -> bool:
        """Whether there was one. Raises KeysUnusable; it is still there then."""
        kept = self._read().get(name)
        if kept is None:
            return False
        if kept.keyring and _read_keyring(name):
            _call_keyring("delete_password", name)
        self._change(name, None)
        return True

    def _change(self, name: str, kept: _KeptKey | None) -> None:
        try:
            make_private_folder(self.path.parent)
            with file_lock(self.path):
                keys = self._read()
                keys.pop(name, None)
                if kept is not None:
                    keys[name] = kept
                data = msgspec.json.format(msgspec.json.encode(keys), indent=2)
                replace_file(self.path, data + b"\n", keep_mode=False, follow=False)
        except OSError as error:
            raise KeysUnusable(f"{self.path}: the key cannot be kept: {error.strerror or error}") from error

    def _read(self) -> dict[str, _KeptKey]:
        try:
            return read_json(self.path, dict[str, _KeptKey], limit_bytes=1 << 20)
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise KeysUnusable(f"{self.path}: kept keys cannot be read: {error.strerror or error}") from error
        except msgspec.DecodeError as error:
            hint = "move it away, then `cru login` for each provider"
            raise KeysUnusable(f"{self.path}: this is no file of keys", hint) from error


def backend_label(backend: Any) -> str:
    """A keyring's name, for people."""
    return str(getattr(backend, "name", "") or type(backend).__name__)


def find_keyring() -> tuple[Any, str]:
    """The system's keyring; None, and why there is none that keeps secrets."""
    try:
        import keyring
    except ImportError:
        return None, f"the library keyring is not installed: {INSTALL}"
    try:
        backend = keyring.get_keyring()
        usable = float(getattr(backend, "priority", 0)) >= _USABLE
    except Exception as error:  # noqa: BLE001  the boundary around a library and a system's service
        return None, f"the keyring does not work: {type(error).__name__}: {error}"
    return (backend, "") if usable else (None, "this system has no keyring that keeps secrets")


def _read_keyring(name: str) -> str:
    key = _call_keyring("get_password", name)
    if not key:
        raise KeysUnusable(f"the keyring has no key for {name} any more", f"`cru login {name}`")
    return str(key)


def _call_keyring(function: str, name: str, *more: str) -> Any:
    """Raises KeysUnusable."""
    backend, why = find_keyring()
    if backend is None:
        raise KeysUnusable(f"the key for {name} is in the keyring, but {why}", f"`cru login {name} --file`")
    try:
        return getattr(backend, function)(SERVICE, name, *more)
    except Exception as error:
        text = f"the keyring refuses: {type(error).__name__}: {error}"
        raise KeysUnusable(text, f"unlock it, or `cru login {name} --file`") from error


class EnvironmentWithKeys(KeyEnvironment):
    """An environment, and the kept keys under the variables of their providers. A keyring is asked for what is wanted only."""

    def __init__(self, env: Mapping[str, str], keys: StoredKeys) -> None:
        self._env, self._keys = env, keys
        self._known: dict[str, ApiKey] = {}
        self._variables = {row.key_variable: row.name for row in KEYED}

    def __getitem__(self, variable: str) -> str:
        if value := self._env.get(variable):
            return value
        if key := self._key(self._variables.get(variable, "")).value:
            return key
        return self._env[variable]

    def __iter__(self) -> Iterator[str]:
        kept = (variable for variable in self._variables if variable not in self._env and self.get(variable))
        return iter((*self._env, *kept))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def source(self, variable: str) -> str:
        if self._env.get(variable):
            return variable
        return self._key(self._variables.get(variable, "")).name or variable

    def key_at(self, base_url: str) -> ApiKey:
        return self._key(origin_of(base_url))

    def servers(self) -> Mapping[str, str]:
        try:
            return self._keys.servers()
        except KeysUnusable as error:
            self.problem = error.message
            return {}

    def renew(self) -> None:
        """What is kept has changed."""
        self._known.clear()
        self.problem = ""

    def _key(self, name: str) -> ApiKey:
        if not name:
            return ApiKey()
        if name not in self._known:
            try:
                self._known[name] = self._keys.key(name)
            except KeysUnusable as error:
                self.problem = error.message
                self._known[name] = ApiKey()
        return self._known[name]


def key_environment(env: Mapping[str, str], home: Path) -> Mapping[str, str]:
    """The environment, with the keys that are kept in that home if any are."""
    return EnvironmentWithKeys(env, StoredKeys(home)) if os.path.lexists(home / FILE) else env
