"""`cru plugin adopt-chibi`: cru's home under the name ~/.chibi, for plugins in which that name is written down."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from cru.core.base.files.regular import make_private_folder
from cru.core.base.values.errors import CruError
from cru.faces.cli.console import show

WRITTEN = b".chibi"
LONGEST = 1 << 20


class ForeignLink(CruError):
    """What stands at ~/.chibi is not our link."""


def make_link(home: Path) -> int:
    """Make the link, if it is not there. Raises ForeignLink and OSError."""
    link = _link()
    if _is_home(link, home):
        show(f"{link} is {home} already")
        return 0
    if link.is_symlink():
        raise ForeignLink(
            f"{link} leads to {os.readlink(link)} already", f"remove that link if nobody needs it: rm {link}"
        )
    if link.exists():
        raise ForeignLink(
            f"{link} is there already, and not ours",
            f"cru --home {link} works in it as it is; or move it away: mv {link} {link}-old",
        )
    make_private_folder(home)
    link.symlink_to(home)
    show(f"{link} leads to {home} now (`cru plugin adopt-chibi --undo` takes it away)")
    return 0


def remove_link(home: Path) -> int:
    """Remove our link, and nothing else. Raises ForeignLink and OSError."""
    link = _link()
    if not link.is_symlink() and not link.exists():
        show(f"there is no {link}")
        return 0
    if not (link.is_symlink() and _is_home(link, home)):
        raise ForeignLink(f"{link} is no link to {home}", "it stays as it is")
    link.unlink()
    show(f"{link} is gone; {home} stays")
    return 0


def check_link(home: Path, programs: Iterable[Path]) -> str:
    """What `cru plugin health` says of the link: that it is there, or that one of these programs looks for it in vain; else ""."""
    link = _link()
    if link.is_symlink() and _is_home(link, home):
        return f"{link} leads to {home} (`cru plugin adopt-chibi --undo` takes it away)"
    if _is_home(link, home):
        return ""
    names = [path.name for path in programs if _mentions(path)]
    if not names:
        return ""
    return f"{link} is not {home}, and {', '.join(names)} may look for it there: cru plugin adopt-chibi"


def _link() -> Path:
    return Path(os.path.expanduser("~"), ".chibi")


def _is_home(link: Path, home: Path) -> bool:
    return os.path.realpath(link) == os.path.realpath(home)


def _mentions(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return WRITTEN in file.read(LONGEST)
    except OSError:
        return False  # `cru plugin list` says what is wrong with it
