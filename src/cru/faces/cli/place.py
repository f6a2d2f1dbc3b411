"""Where a command line works: home folder, project root, context, settings of the command line."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from cru.app import Start, project_root
from cru.contexts.home import Home
from cru.faces.cli.flags import Parsed, UsageProblem


def home_path(parsed: Parsed) -> Path:
    """--home, else CRU_HOME, else ~/.cru."""
    named = parsed.last("home") or os.environ.get("CRU_HOME")
    return Path(os.path.abspath(os.path.expanduser(named or "~/.cru")))


def working_directory() -> Path:
    """Where the user stands. Raises UsageProblem if that folder was deleted."""
    try:
        return Path.cwd()
    except FileNotFoundError as error:
        raise UsageProblem("the working directory does not exist any more", "cd to a folder that does") from error


def context_name(parsed: Parsed, home: Home) -> str:
    """The context of this run: -C, else -c, else the current one. Checked, not created."""
    name = parsed.last("transient-context") or parsed.last("switch-context")
    return home.resolve(name) if name is not None else home.current


def overrides(parsed: Parsed) -> dict[str, Any]:
    """Settings that flags give for this run."""
    given: dict[str, Any] = {}
    for flag, key in (("model", "model"), ("mode", "mode"), ("transient-username", "username")):
        value = parsed.last(flag)
        if value is not None:
            given[key] = value
    if parsed.has("trust"):
        given["mode"] = "trust"
    return given


def start_of(parsed: Parsed, context: str) -> Start:
    """What the composition root needs to know."""
    cwd = working_directory()
    root = project_root(cwd, os.environ, parsed.last("project-root"))
    if parsed.last("project-root") and not root.is_dir():
        raise UsageProblem(f"--project-root {root}: no such folder")
    return Start(home_path(parsed), context, dict(os.environ), cwd, root, overrides(parsed))
