"""Folders under version control that belong to somebody else: as git, cru lets nobody put rules above a person's own work (git-config(1),
`safe.directory`)."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from cru.core.base.files.search_path import own_path

SECONDS = 5.0


def why_not_own(folder: Path, mark: str, env: Mapping[str, str]) -> str:
    """Why a folder with this mark (`.git`) may not be the project root of who stands below it, in words for a person; "" if it may: it
    and its mark belong to who runs cru (or to who called sudo), or git is told that it is safe."""
    owners = {os.lstat(folder).st_uid, os.lstat(folder / mark).st_uid}
    if owners <= _own_ids(os.geteuid(), env) or (mark == ".git" and is_listed(str(folder), _safe_folders(env, folder))):
        return ""
    way = f"trust it with `git config --global --add safe.directory {folder}`, or " if mark == ".git" else ""
    return f"{folder} belongs to another user, so it is not taken for the project; to take it, {way}name it with --project-root"


def is_listed(folder: str, listed: list[str]) -> bool:
    """Whether the values of `safe.directory`, in their order, name this folder: an empty one forgets those before."""
    named = False
    for value in listed:
        if not value:
            named = False
        elif value == "*" or value.rstrip("/") == folder or (value.endswith("/*") and folder.startswith(value[:-1])):
            named = True
    return named


def _own_ids(user: int, env: Mapping[str, str]) -> set[int]:
    caller = env.get("SUDO_UID", "")
    return {user, int(caller)} if user == 0 and caller.isascii() and caller.isdigit() else {user}


def _safe_folders(env: Mapping[str, str], folder: Path) -> list[str]:
    """From the settings of the user and the machine, not from the repository's own."""
    own = {**env, "PATH": own_path(env.get("PATH", os.defpath), str(folder))}
    command = ("git", "config", "--null", "--get-all", "safe.directory")
    try:
        ended = subprocess.run(
            command, env=own, cwd="/", stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    return ended.stdout.decode("utf-8", "surrogateescape").split("\0")[:-1]
