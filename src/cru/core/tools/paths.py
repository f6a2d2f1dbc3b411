"""From a path as the model wrote it to a file, its content replaced whole, and back to words."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from cru.core.tools.protocol import ArgumentError, ToolError


def resolve(root: Path, text: str) -> Path:
    """The file meant: absolute, `~` expanded, links followed, whether it exists or not. Raises ToolError."""
    if "\0" in text:
        raise ArgumentError("a path cannot hold a NUL character")
    try:
        return Path(os.path.realpath(root / os.path.expanduser(text)))
    except (OSError, UnicodeEncodeError) as error:
        raise ToolError(f"`{text!a}` is not a usable path: {error}") from error


def normalize_path(text: str, root: str) -> str:
    """Return the one spelling of a path that guards read and the tool opens: `~` expanded, without `.`, `..`, doubled and trailing
    slashes. Links are not followed. A relative path stays relative to `root`, unless it leads out of it."""
    text = os.path.expanduser(text)
    if not text or "\0" in text:  # no path at all; the tool says so
        return text
    whole = "/" + os.path.normpath(os.path.join(root, text)).lstrip("/")  # POSIX keeps two slashes at the beginning
    top = root.rstrip("/") + "/"
    if text.startswith("/") or not f"{whole}/".startswith(top):
        return whole
    inside = whole[len(top) :] or "."
    return whole if inside.startswith("~") else inside  # a folder of that name, which the tool would take for a home


def require_status(path: Path, text: str) -> os.stat_result:
    """Its status. Raises ToolError; for a missing file it names the closest one there is."""
    try:
        return path.stat()
    except (FileNotFoundError, NotADirectoryError):
        raise ToolError(f"`{text}` does not exist", hint_for_missing(path)) from None
    except OSError as error:
        raise os_failure("read", text, error) from error


def require_regular(path: Path, text: str) -> os.stat_result:
    """The status of a regular file. Raises ToolError for everything else."""
    result = require_status(path, text)
    if stat.S_ISDIR(result.st_mode):
        raise ToolError(f"`{text}` is a folder", "list it with `ls`")
    if not stat.S_ISREG(result.st_mode):
        raise ToolError(f"`{text}` is not a regular file")
    return result


def require_folder(path: Path, text: str) -> None:
    if not stat.S_ISDIR(require_status(path, text).st_mode):
        raise ToolError(f"`{text}` is not a folder")


def hint_for_missing(path: Path) -> str:
    """A hint: the closest name beside a missing file, or the folder that is missing above it."""
    parent = path.parent
    if not parent.is_dir():
        while not parent.exists():
            parent = parent.parent
        return f"the folder {path.parent} does not exist; {parent} does"
    from cru.core.base.config.closest import closest

    try:
        near = closest(path.name, sorted(file.name for file in parent.iterdir()))
    except OSError:
        return ""
    return f"did you mean `{printable(near)}`?" if near else ""


def os_failure(action: str, text: str, error: OSError) -> ToolError:
    return ToolError(f"cannot {action} `{text}`: {error.strerror or error}")


def printable(name: str) -> str:
    """A file name as text that can be sent: bytes that are not UTF-8 are replaced."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def encode_text(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise ToolError("the content holds half a surrogate pair, which no file can hold as UTF-8") from error


def write_file(path: Path, text: str, data: bytes) -> bool:
    """Write `data` to `path` (resolved; `text` is what the model called it); True if the file is new.

    Makes missing folders, keeps mode and owner of an existing file. Raises ToolError; the file is then unchanged, unless it
    could only be written in place.
    """
    from cru.core.base.files.atomic import replace_file

    old = require_replaceable(path, text)
    try:
        replace_file(path, data, new_mode=0o666, make_folders=True, in_place=True, no_links=True, follow=False)
    except OSError as error:
        raise os_failure("write", text, error) from error
    return old is None


def require_replaceable(path: Path, text: str) -> os.stat_result | None:
    """The status of the existing file, None if there is none. Raises ToolError if it cannot be written."""
    try:
        old = path.stat()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise os_failure("write", text, error) from error
    if stat.S_ISDIR(old.st_mode):
        raise ToolError(f"`{text}` is a folder")
    if not stat.S_ISREG(old.st_mode):
        raise ToolError(f"`{text}` is not a regular file")
    if not os.access(path, os.W_OK):  # the rename would not ask
        raise ToolError(f"cannot write `{text}`: it is read-only")
    return old
