"""`cru login`, `cru logout` and /login: keys of providers, checked by asking what they have, and kept."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from cru.core.base.net.transport import Transport
from cru.core.commands.errors import NotHere
from cru.core.compose import load_settings
from cru.core.models import ModelSettings
from cru.core.models.providers import CUSTOM, PROVIDERS
from cru.core.models.stored_keys import StoredKeys, find_keyring
from cru.faces.cli.arguments import CommandArguments
from cru.faces.cli.console import await_input, say, show
from cru.faces.cli.dialogs.asker import TerminalAsker
from cru.faces.cli.event_loop import run_interruptible
from cru.faces.cli.flags import Parsed, UsageProblem
from cru.faces.cli.run_options import home_path, start_of
from cru.faces.cli.setup.dialog import SetupDialog, provider_by_key
from cru.faces.cli.setup.keys import MOST, CheckedKey, KeyOwner, ask_key, check_key, keep_key, owner_of, why_no_key
from cru.faces.cli.terminal.keyboard import input_mode

HELP = """\
cru login [PROVIDER | URL]   keep a key for openrouter, openai, anthropic or a server, once the provider accepts it
                             it is asked for on the terminal and not shown; without a terminal it is read from standard input
    --file                   in ~/.cru/keys.json (readable by you alone), not in the system's keyring
    --no-check               do not ask the provider whether it accepts the key
cru logout [PROVIDER | URL]  forget it; --all: every kept key
A key in the environment (OPENAI_API_KEY, …) is used before a kept one.
"""


def command(parsed: Parsed, words: tuple[str, ...]) -> int:
    """The management command; raises UsageProblem, KeysUnusable, ListUnavailable."""
    args = CommandArguments("login", words, help=HELP, switches=("--file", "--no-check"), most=1)
    if args.show_help():
        return 0
    owner = _owner(parsed, args.words[0]) if args.words else None
    take = _from_terminal if sys.stdin.isatty() else _from_input
    checked = take(owner, not args.has("--no-check"))
    if checked is None:
        say("cru: no key is kept")
        return 1
    _keep(home_path(parsed), checked.owner, checked.key, args.has("--file"))
    settings = load_settings(start_of(parsed, "default"))[0].of(ModelSettings)
    if step := _next_step(checked, settings):
        show(f"  {step}")
    return 0


def _next_step(checked: CheckedKey, settings: ModelSettings) -> str:
    """What uses the key; "" if the next request does by itself."""
    count = len(checked.models)
    which = f"one of its {count} models" if count > 1 else "its model" if count else "one of its models"
    if not settings.model:
        return f"next: `cru` in a terminal lets you choose {which}"
    asked = settings.base_url if checked.owner.provider == CUSTOM else settings.model
    is_used = asked and (
        KeyOwner(CUSTOM, asked).name == checked.owner.name or asked.startswith(f"{checked.owner.name}:")
    )
    return "" if is_used else f"{settings.model} answers as before; `/model` in the chat lets you choose {which}"


def logout(parsed: Parsed, words: tuple[str, ...]) -> int:
    """The management command; raises UsageProblem and KeysUnusable."""
    args = CommandArguments("logout", words, help=HELP, switches=("--all",), most=1)
    if args.show_help():
        return 0
    keys = StoredKeys(home_path(parsed))
    names = keys.names() if args.has("--all") else tuple(_owner(parsed, word).name for word in args.words)
    if not names and not args.has("--all"):
        kept = keys.names()
        raise UsageProblem(
            "`cru logout` needs a provider", f"kept are keys for: {', '.join(kept)}" if kept else "no key is kept"
        )
    for name in names:
        show(f"the key for {name} is forgotten" if keys.forget(name) else f"there was no kept key for {name}")
        variable = PROVIDERS[name].key_variable if name in PROVIDERS else ""
        if os.environ.get(variable):
            show(f"  {variable} is set all the same, and is used")
    return 0


def _owner(parsed: Parsed, name: str) -> KeyOwner:
    """Raises UsageProblem; an address needs no path if the settings have it whole."""
    owner = owner_of(name)
    if owner.name not in PROVIDERS:
        base_url = load_settings(start_of(parsed, "default"))[0].of(ModelSettings).base_url
        if KeyOwner(owner.provider, base_url).name == owner.name:
            return KeyOwner(owner.provider, base_url)
    return owner


def _from_terminal(owner: KeyOwner | None, checks: bool) -> CheckedKey | None:
    try:
        fd = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY)
    except OSError as error:
        raise UsageProblem("there is no terminal to ask for a key", "cru login PROVIDER < file") from error
    try:
        with input_mode(fd, "kept"):
            return run_interruptible(_ask(fd, owner, checks))
    finally:
        os.close(fd)


async def _ask(fd: int, owner: KeyOwner | None, checks: bool = True) -> CheckedKey | None:
    transport = Transport()
    try:
        return await ask_key(SetupDialog(fd), transport, owner, checks=checks)
    finally:
        await transport.close()


def _from_input(owner: KeyOwner | None, checks: bool) -> CheckedKey | None:
    await_input("a key", "cru login PROVIDER < file, or on a terminal: cru login")
    key = sys.stdin.readline(MOST + 2).strip()
    if not key:
        raise UsageProblem(
            "there is no key on standard input", "cru login PROVIDER < file, or on a terminal: cru login"
        )
    if why := why_no_key(key):
        raise UsageProblem(why, "cru login PROVIDER < file")
    if owner is None:
        provider = provider_by_key(key)
        if not provider:
            raise UsageProblem("whose key is it?", "cru login PROVIDER < file")
        owner = owner_of(provider)
    return run_interruptible(_check(owner, key)) if checks else CheckedKey(owner, key, ())


async def _check(owner: KeyOwner, key: str) -> CheckedKey:
    transport = Transport()
    try:
        return await check_key(transport, owner, key)
    finally:
        await transport.close()


def _keep(home: Path, owner: KeyOwner, key: str, in_file: bool) -> None:
    place = keep_key(home, owner, key, in_file=in_file)
    show(f"the key for {owner.name} is kept in {place}")
    if not in_file and place == str(StoredKeys(home).path):
        say(f"  not in a keyring: {find_keyring()[1]}")
    variable = PROVIDERS[owner.name].key_variable if owner.name in PROVIDERS else ""
    if os.environ.get(variable):
        say(f"  {variable} is set, and is used before it")


async def login_here(asker: object, home: Path, words: str) -> str:
    """/login: what came of it. Raises NotHere, ListUnavailable and KeysUnusable."""
    try:
        owner = owner_of(words) if words else None
    except UsageProblem as error:
        raise NotHere(error.message, error.hint) from error
    if not isinstance(asker, TerminalAsker):
        raise NotHere("there is no terminal to ask for a key", "use `cru login`")
    checked = await asker.converse(lambda fd: _ask(fd, owner))
    if checked is None:
        return "no key is kept"
    place = keep_key(home, checked.owner, checked.key)
    provider = checked.owner.provider
    if provider == CUSTOM:
        return (
            f"the key for {checked.owner.name} is kept in {place}; it is used where the setting base_url is that server"
        )
    return f"the key for {checked.owner.name} is kept in {place}; `/model {provider}:NAME` chooses one of {len(checked.models)} models"
