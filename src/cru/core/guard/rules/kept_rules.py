"""The rule that an answer keeps. For runs outside of the sandbox only if nothing of the command is decided by files that commands inside
can change: the project's code, and hooks of git that lie elsewhere than in its own folder, which is read-only inside."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence

from cru.core.base.files.glob import escape
from cru.core.base.files.regular import read_regular
from cru.core.guard.places.git_remotes import leads_elsewhere
from cru.core.guard.places.gitlinks import find_gitlinks
from cru.core.guard.rules.edited_rules import propose_prefix
from cru.core.guard.rules.paths import JudgedCall, PathRoots
from cru.core.guard.rules.rules import LONGEST, OUTSIDE, suggest_rule
from cru.core.guard.shell.programs import names

OVER_THE_NETWORK = names("fetch ls-remote pull push")
"""What git cannot do inside, and what runs hooks."""
WHY = "what it would run, or read, is decided by files that commands in the sandbox can change"
LARGEST = 1 << 20
"""Bytes of git's settings."""
_HOOKS_ELSEWHERE = re.compile(rb"hooks\s*path|^[ \t\r\f\v]*\[\s*include", re.IGNORECASE | re.MULTILINE)


def suggest_kept_rule(call: JudgedCall, places: PathRoots) -> str:
    """The rule in the writing of `parse_rule`, "" if none should be stored."""
    if call.tool != OUTSIDE:
        return suggest_rule(call, places)
    text, command = call.detail.strip(), call.command
    if command.opaque or len(command.parts) != 1 or any(command.uses) or "\n" in text or len(text) > LONGEST:
        return ""
    words = command.parts[0]
    is_network = words[0] == "git" and len(words) > 1 and words[1] in OVER_THE_NETWORK
    if not (propose_prefix(call) or is_network) or (
        words[0] == "git" and (_has_hooks_elsewhere(places) or _has_submodules(places))
    ):
        return ""
    if is_network and not _leads_elsewhere(words, places):
        return ""
    return f"{OUTSIDE}:{escape(text)}"


def is_decided_by_files(call: JudgedCall) -> bool:
    """Whether files that commands inside can change may decide what this command does: all but what only shows what is elsewhere."""
    return runs_hooks(call) or propose_prefix(call) == ""


def runs_hooks(call: JudgedCall) -> bool:
    """Whether git is part of it, or may be: what it runs is decided as it goes on, too."""
    return bool(call.command.opaque) or any("git" in words for words in call.command.parts)


def _has_hooks_elsewhere(places: PathRoots) -> bool:
    """Whether git may run hooks from another place than its folder, or nobody can tell."""
    for path in _git_settings(places):
        try:
            if _HOOKS_ELSEWHERE.search(read_regular(path, LARGEST)):
                return True
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError:
            return True
    return not os.path.isdir(os.path.join(places.root, ".git"))


def _has_submodules(places: PathRoots) -> bool:
    """Whether git may go into a repository below, whose settings decide what runs."""
    try:
        return bool(find_gitlinks(places.root))
    except OSError:
        return True


def _leads_elsewhere(words: Sequence[str], places: PathRoots) -> bool:
    """Hooks of a repository on this machine may be written by commands inside, if it lies where they write."""
    try:
        return leads_elsewhere(words, _git_settings(places))
    except OSError:
        return False


def _git_settings(places: PathRoots) -> Iterator[str]:
    yield os.path.join(places.root, ".git", "config")
    yield os.path.join(places.root, ".git", "config.worktree")
    yield os.environ.get("GIT_CONFIG_GLOBAL") or os.path.join(places.user_home, ".gitconfig")
    yield os.path.join(os.environ.get("XDG_CONFIG_HOME") or os.path.join(places.user_home, ".config"), "git", "config")
    yield "/etc/gitconfig"
