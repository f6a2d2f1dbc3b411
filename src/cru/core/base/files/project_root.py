"""Where a project begins (docs/decisions/instructions.md). Loaded before the chat's first prompt: nothing but `os` is needed."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

REPOSITORIES = (".git", ".hg", ".jj")


class FoundRoot:
    """A project root. is_marked: it was chosen, or has a mark; otherwise it is only the current folder. notice: names the folder above
    that would have been the root if it did not belong to someone else."""

    def __init__(self, path: Path, is_marked: bool, notice: str = "") -> None:
        self.path, self.is_marked, self.notice = path, is_marked, notice


def find_root(cwd: Path, env: Mapping[str, str], home: Path, chosen: str | None = None) -> FoundRoot:
    """The project root: as given, else CRU_PROJECT_ROOT, else the nearest folder above under version control, else the nearest one with
    a folder .cru (a project's, not a home of cru; nor in the user's home or above it), else here. `home`: cru's, of this run."""
    named = chosen or env.get("CRU_PROJECT_ROOT")
    if named:
        return FoundRoot(Path(os.path.realpath(cwd / os.path.expanduser(named))), True)
    here = Path(os.path.realpath(cwd))
    folders = (here, *here.parents)
    notice = ""
    for folder in folders:
        mark = next((mark for mark in REPOSITORIES if os.path.exists(folder / mark)), "")
        problem = _why_not_own(folder, mark, env) if mark and folder != here else ""
        if mark and not problem:
            return FoundRoot(folder, True, notice)
        notice = notice or problem
    user = Path(os.path.realpath(env.get("HOME") or "/"))
    homes = (os.path.realpath(home), os.path.realpath(user / ".cru"))
    for folder in folders:
        if folder == user or folder in user.parents:
            break
        if os.path.isdir(folder / ".cru") and os.path.realpath(folder / ".cru") not in homes:
            problem = _why_not_own(folder, ".cru", env) if folder != here else ""
            if not problem:
                return FoundRoot(folder, True, notice)
            notice = notice or problem
    return FoundRoot(here, False, notice)


def _why_not_own(folder: Path, mark: str, env: Mapping[str, str]) -> str:
    """Why a repository above may not be the root, "" if it may (docs/decisions/permissions.md)."""
    if os.lstat(folder).st_uid == os.lstat(folder / mark).st_uid == os.geteuid():
        return ""
    from cru.core.base.files.foreign_roots import why_not_own

    return why_not_own(folder, mark, env)
