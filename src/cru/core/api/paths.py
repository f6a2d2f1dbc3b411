"""`cru.paths`: where things are."""

from __future__ import annotations

import os

from cru.core.api.arguments import text
from cru.core.api.host import BadArgument, NamespaceError, host
from cru.core.base.files.regular import make_private_folder


def session() -> str:
    """paths.session() -> the folder of this context.

    Example: cru.fs.is_dir(cru.paths.session()) --> true
    """
    return str(host().session.parts.store.folder)


def workspace() -> str:
    """paths.workspace() -> the project root; in a call or an event of a sub-agent in a worktree, that worktree.

    Example: cru.fs.is_dir(cru.paths.workspace()) --> true
    """
    return str(host().parts.place.root)


def state(plugin: str) -> str:
    """paths.state(plugin) -> a folder for that plugin's own files in cru's home, made if it is missing. Raises BadArgument for a
    name that is not one plain path component, NamespaceError if it cannot be made.

    Example: cru.fs.is_dir(cru.paths.state("demo")) --> true
    """
    name = component("cru.paths.state", plugin)
    folder = host().session.home / "plugin-state" / name
    try:
        make_private_folder(folder)
    except OSError as error:
        raise NamespaceError(f"paths.state: {folder} cannot be made: {error.strerror}") from error
    return str(folder)


def join(*parts: str) -> str:
    """paths.join(a, b, ...) -> the path; an absolute part starts anew. Raises BadArgument.

    Example: cru.paths.join("a", "b", "c.md") --> "a/b/c.md"
    """
    return os.path.join(*[text("cru.paths.join", "every part", part) for part in parts]) if parts else ""


def component(where: str, name: str) -> str:
    """A name that is safe as one component of a path. Raises BadArgument."""
    if text(where, "plugin", name) in ("", ".", "..") or any(c in name for c in "/\\\0") or len(name.encode()) > 200:
        raise BadArgument(f"{where}: not the name of a plugin: {name!r}", "use one plain name without slashes")
    return name
