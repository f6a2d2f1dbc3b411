"""Why bubblewrap is there and cannot start, and what a person does about it.

Errors are those of bubblewrap 0.8 to 0.11; the settings are files of the kernel, of which a distribution has only some.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

CONTAINER_MARKS = (".dockerenv", "run/.containerenv", "run/systemd/container")
"""Files that Docker, Podman and systemd put into a container."""
GENERIC = "run cru on a machine, or in a container, that permits user namespaces"


class Cause(Struct, frozen=True):
    """One reason why namespaces cannot be made.

    holds: whether it is this one, by the error and the file system from `/`
    hint: what to do
    """

    holds: Callable[[str, Path], bool]
    hint: str


def _setting(name: str) -> Callable[[Path], str]:
    """Return what reads a setting of the kernel; "" if this kernel has none of that name."""

    def read(root: Path) -> str:
        try:
            return (root / "proc/sys" / name).read_text().strip()
        except OSError:
            return ""

    return read


_clone = _setting("kernel/unprivileged_userns_clone")
_apparmor = _setting("kernel/apparmor_restrict_unprivileged_userns")
_most = _setting("user/max_user_namespaces")


def _is_container(root: Path) -> bool:
    return any((root / mark).exists() for mark in CONTAINER_MARKS)


CAUSES = (
    Cause(
        lambda error, root: "mount proc" in error,
        "the container masks parts of /proc: start it with `--security-opt systempaths=unconfined` (Docker) or "
        "`--security-opt unmask=ALL` (Podman)",
    ),
    Cause(
        lambda error, root: _most(root) == "0",
        "user namespaces are switched off; as root: `sysctl user.max_user_namespaces=15000`",
    ),
    Cause(
        lambda error, root: _clone(root) == "0",
        "user namespaces are switched off; as root: `sysctl kernel.unprivileged_userns_clone=1`",
    ),
    Cause(
        lambda error, root: _is_container(root),
        "the container forbids user namespaces: start it with `--security-opt seccomp=unconfined`, and with "
        "`--security-opt apparmor=unconfined` where AppArmor is used",
    ),
    Cause(
        lambda error, root: _apparmor(root) == "1",
        "AppArmor forbids it: give bwrap a profile (Ubuntu: `apt install apparmor-profiles`, then "
        "`ln -s /usr/share/apparmor/extra-profiles/bwrap-userns-restrict /etc/apparmor.d/` and reload it), or as root: "
        "`sysctl kernel.apparmor_restrict_unprivileged_userns=0`",
    ),
    Cause(
        lambda error, root: "No space left" in error or "exceeded" in error,
        "too many namespaces are in use; as root: raise `sysctl user.max_user_namespaces`",
    ),
)
"""Looked through in this order: what the error itself says, then what is certain, then what is likely."""


def advise(error: str, root: Path = Path("/")) -> str:
    """Return what a person does about this error of bubblewrap.

    error: its first line
    root: where the file system begins
    """
    return next((cause.hint for cause in CAUSES if cause.holds(error, root)), GENERIC)
