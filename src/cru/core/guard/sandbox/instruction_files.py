"""Texts that agents obey and that git tracks: commands may change them, as branches do, and the person is told."""

from __future__ import annotations

import os
from collections.abc import Iterable

from cru.core.guard.places.gitlinks import is_tracked
from cru.core.guard.sandbox.profile import GUIDES


def is_tracked_guide(path: str) -> bool:
    """Return whether this is such a file, in any folder that is a work tree."""
    name = next((name for name in GUIDES if path.endswith(f"/{name}")), "")
    return bool(name) and is_tracked(path[: -len(name) - 1], name)


def look_at_guides(roots: Iterable[str]) -> dict[str, str]:
    """Return the state of each of these files below these roots, whether or not git tracks it; "" if it is missing."""
    return {path: _describe(path) for root in roots for name in GUIDES for path in [f"{root}/{name}"]}


def changed_guides(before: dict[str, str]) -> list[str]:
    """Return the tracked ones that have changed since then."""
    return [
        path for path, state in before.items() if (now := _describe(path)) and now != state and is_tracked_guide(path)
    ]


def _describe(path: str) -> str:
    try:
        status = os.lstat(path)
    except OSError:
        return ""
    return f"{status.st_ino} {status.st_size} {status.st_ctime_ns}"
