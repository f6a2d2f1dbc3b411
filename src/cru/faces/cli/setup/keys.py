"""Asking for a key, checking it by listing what the provider has, and keeping it."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from cru.core.base.config.closest import did_you_mean
from cru.core.base.net import BadUrl, split_url
from cru.core.base.net.transport import Transport
from cru.core.models.listing import KeyRefused, ListedModel, list_models
from cru.core.models.providers import CUSTOM, KEYED, PROVIDERS, origin_of
from cru.core.models.stored_keys import StoredKeys
from cru.faces.cli.flags import UsageProblem
from cru.faces.cli.setup.dialog import KEY_STARTS, SetupDialog

MOST = 4096
"""Characters that a key may have."""
TRIES = 3
"""How often a key that is refused is asked for again."""


class KeyOwner(Struct, frozen=True):
    """Who takes a key.

    provider: a row of the table
    base_url: its address
    """

    provider: str
    base_url: str

    @property
    def name(self) -> str:
        """Under which its key is kept."""
        return origin_of(self.base_url) if self.provider == CUSTOM else self.provider


class CheckedKey(Struct, frozen=True):
    """A key that its owner accepts, and the models that it is good for."""

    owner: KeyOwner
    key: str
    models: tuple[ListedModel, ...]

    def __repr__(self) -> str:
        return f"CheckedKey({self.owner!r})"


def owner_of(name: str) -> KeyOwner:
    """From a provider's name or a server's address. Raises UsageProblem."""
    if name in PROVIDERS and PROVIDERS[name].key_variable:
        return KeyOwner(name, PROVIDERS[name].base_url)
    if looks_like_key(name):
        raise UsageProblem(
            "a key is not written on the command line, where others can read it", "`cru login` asks for it"
        )
    if origin_of(name):
        try:
            split_url(name)
        except BadUrl as error:
            raise UsageProblem(error.message, error.hint or "as in https://host/v1") from error
        return KeyOwner(CUSTOM, name)
    names = [row.name for row in KEYED]
    if name in PROVIDERS:
        raise UsageProblem(f"{name} needs no key", f"those that do: {', '.join(names)}, or a server's address")
    hint = did_you_mean(name, names) or f"one of: {', '.join(names)}, or a server's address (https://…/v1)"
    raise UsageProblem(f"there is no provider `{name}` that takes a key", hint)


def looks_like_key(name: str) -> bool:
    return name.startswith(tuple(start for start, _ in KEY_STARTS))


def why_no_key(key: str) -> str:
    """Why no key can be like this, "" if one can."""
    if len(key) > MOST:
        return f"this is no key: it has more than {MOST:,} characters"
    if not key.isprintable() or " " in key:
        return "this is no key: it has blanks, or characters that nobody can see"
    return ""


async def ask_key(
    dialog: SetupDialog, transport: Transport, owner: KeyOwner | None, *, checks: bool = True
) -> CheckedKey | None:
    """Ask until a key is accepted, a few times; None if the person gives up. `checks`: its owner is asked. Raises ListUnavailable."""
    for _ in range(TRIES):
        key = await dialog.key(owner.name if owner is not None else "")
        if key is None:
            return None
        if why := why_no_key(key):
            dialog.complain(KeyRefused(why))
            continue
        if owner is None:
            provider = await dialog.provider_of(key)
            if provider is None:
                return None
            named = owner_of(provider)
        else:
            named = owner
        if not checks:
            return CheckedKey(named, key, ())
        dialog.say(f"  asking {named.name} what it has …")
        try:
            return await check_key(transport, named, key)
        except KeyRefused as error:
            dialog.complain(error)
    return None


async def check_key(transport: Transport, owner: KeyOwner, key: str) -> CheckedKey:
    """Raises ListUnavailable and KeyRefused."""
    return CheckedKey(owner, key, await list_models(transport, owner.provider, owner.base_url, key))


def keep_key(home: Path, checked: KeyOwner, key: str, *, in_file: bool = False) -> str:
    """Where it is now, for people. Raises KeysUnusable."""
    address = checked.base_url.partition("?")[0] if checked.provider == CUSTOM else ""
    return StoredKeys(home).keep(checked.name, key, in_file=in_file, address=address)
