"""The folders and files that `[sandbox]` names: which of them mean something, and what is wrong with the others."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from cru.core.base.files import is_inside, login_home
from cru.core.conversations.home import private_parents
from cru.core.guard.rules.paths import SECRET_AT_HOME, PathRoots
from cru.core.guard.sandbox import SandboxSettings

SECRET_FILES = ("/etc/gshadow", "/etc/shadow")
OF_THE_SANDBOX = ("/", "/dev", "/proc", "/run", "/sys", "/tmp")
"""What the sandbox has in its own way; a mount there would undo it."""

SHAPES = 16
"""Agents and states of their projects for which what follows from the names of paths is kept."""

AGENTS_AT_HOME = (
    ".1password/agent.sock",
    ".bitwarden-ssh-agent.sock",
    ".colima",
    ".emacs.d/server",
    ".lima",
    ".local/share/containers/podman/machine",
    ".orbstack/run",
    ".rd/docker.sock",
    ".var/app/com.bitwarden.desktop/data/.bitwarden-ssh-agent.sock",
    "library/containers/com.bitwarden.desktop/data/.bitwarden-ssh-agent.sock",
)
"""Sockets in the user's home, or folders of them, of what logs in or starts programs for whoever connects. Others lie in /run or in what is
hidden."""
SOCKET_VARIABLES = (
    "CONTAINER_HOST",
    "DBUS_SESSION_BUS_ADDRESS",
    "DOCKER_HOST",
    "GNOME_KEYRING_CONTROL",
    "I3SOCK",
    "NVIM",
    "PODMAN_HOST",
    "SSH_AUTH_SOCK",
    "SWAYSOCK",
)
"""Variables that name such a socket, or a folder of them, as a path or an address."""
_ADDRESS = re.compile(r"unix:(?:path=|//)?(/[^,;]+)")


@lru_cache(maxsize=64 * SHAPES)
def lies_in(path: str, folders: tuple[str, ...]) -> bool:
    """Return whether the path is one of these folders or lies in one, by their names."""
    return any(is_inside(path, folder) for folder in folders)


def agent_sockets(env: Mapping[str, str], user_home: str) -> list[str]:
    """Return where agents listen."""
    named = [value for name in SOCKET_VARIABLES if (value := env.get(name))]
    paths = [match[1] if (match := _ADDRESS.match(value)) else value for value in named]
    paths += [os.path.join(user_home, name) for name in AGENTS_AT_HOME]
    real = (os.path.realpath(path) for path in paths if path.startswith("/"))
    return [path for path in real if not is_inside(user_home, path)]


def session_folders(env: Mapping[str, str], opened: Sequence[str]) -> list[str]:
    """Return where sessions keep their /tmp, caches and runs without a record: a command that could change these would choose what is
    mounted. opened: what commands see of the sandbox's own /tmp and /dev, where there is none of it"""
    real = (os.path.realpath(path) for path in private_parents(env))
    return [path for path in real if is_visible(path, opened)]


def is_visible(path: str, opened: Sequence[str]) -> bool:
    """Return whether a command sees this place of the machine, and not only what the sandbox has there. opened: what is mounted in that"""
    if not lies_in(path, OF_THE_SANDBOX[1:]):
        return True
    return lies_in(path, tuple(folder for folder in opened if folder != "/"))


def always_hidden(places: PathRoots) -> list[str]:
    """Of the user's home, and of that which the system has for the user, if HOME names another one."""
    homes = dict.fromkeys((places.user_home, login_home()))
    secrets = [os.path.join(home, name.rstrip("/")) for home in homes for name in SECRET_AT_HOME]
    return [*secrets, *places.secrets, *SECRET_FILES, places.home]


def writable_folders(settings: SandboxSettings, places: PathRoots) -> list[str]:
    """Resolved."""
    return [path for text in settings.writable if not _why_not_writable(path := resolved(text, places), places)]


def hidden_paths(settings: SandboxSettings, places: PathRoots) -> list[str]:
    """Resolved."""
    return [path for text in settings.hidden if not _why_not_hidden(path := resolved(text, places))]


def readable_paths(settings: SandboxSettings, places: PathRoots) -> list[str]:
    """Resolved."""
    return [path for text in settings.readable if not _why_not_readable(path := resolved(text, places), places)]


def problems(settings: SandboxSettings, places: PathRoots) -> Iterator[str]:
    """What a person should know of the places that are named, and of a project that is most of the disk."""
    if is_inside(places.user_home, places.root):
        whole = "the whole disk" if places.root == "/" else "your home, or holds it"
        yield f"the project is {whole} ({places.root}): confined commands may change all of it but what is protected"
    for text in settings.writable:
        if why := _why_not_writable(resolved(text, places), places):
            yield f"[sandbox] writable: `{text}` {why}"
    for text in settings.readable:
        if why := _why_not_readable(resolved(text, places), places):
            yield f"[sandbox] readable: `{text}` {why}"
    for text in settings.hidden:
        path = resolved(text, places)
        if why := _why_not_hidden(path):
            yield f"[sandbox] hidden: `{text}` {why}"
        elif path in places.roots:
            yield f"[sandbox] hidden: `{text}` is the project, so that commands find it empty"


def resolved(text: str, places: PathRoots) -> str:
    """A path of the settings: `~` is the user's home, and what is relative lies in the project."""
    expanded = places.user_home + text[1:] if text == "~" or text.startswith("~/") else text
    return os.path.realpath(os.path.join(places.root, expanded))


def _why_not_writable(path: str, places: PathRoots) -> str:
    if path in OF_THE_SANDBOX:
        return "cannot be writable: the sandbox has its own there; name folders in it"
    if not os.path.isdir(path):
        return (
            "is a file: only folders can be writable"
            if os.path.exists(path)
            else "is not there, so nothing can be written there"
        )
    return _why_hidden(path, places)


def _why_hidden(path: str, places: PathRoots) -> str:
    hidden = next((place for place in always_hidden(places) if is_inside(path, os.path.realpath(place))), "")
    return f"stays hidden, since {hidden} always is" if hidden else ""


def _why_not_readable(path: str, places: PathRoots) -> str:
    if path in OF_THE_SANDBOX or is_inside(places.user_home, path):
        return "cannot be shown as a whole: name folders in it"
    return _why_hidden(path, places) if os.path.exists(path) else "is not there, so nothing can be read there"


def _why_not_hidden(path: str) -> str:
    if path in OF_THE_SANDBOX:
        return "cannot be hidden: the sandbox has its own there"
    return "" if os.path.exists(path) else "is not there, so nothing is hidden"
