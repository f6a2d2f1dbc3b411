"""`cru.state`: values that belong to a context and survive a restart, in `plugin-state.json` beside its log."""

from __future__ import annotations

import re
from pathlib import Path

from cru.core.api import json_file, plain_data
from cru.core.api.arguments import text
from cru.core.api.host import host

FILE = "plugin-state.json"
WORKFLOW = "fsm:"
"""What stands before a workflow's name in its key."""


def set_(key: str, value: object = None) -> None:
    """state.set(key, value). Any JSON value; nil removes the key. Raises BadArgument for what is not data, NamespaceError if the
    file cannot be written.

    Example: cru.state.set("loop", {active=true}) --> nil
    """
    text("cru.state.set", "key", key)
    plain_data.encode("cru.state.set", value)
    if value is None:
        clear(key)
        return
    json_file.update(_path(), lambda all: all.__setitem__(key, value), workflows)


def get(key: str) -> object:
    """state.get(key) -> the value, or nil. A table is a copy: changing it changes nothing until it is set again.

    Example: cru.state.get("never set") --> nil
    """
    return everything().get(text("cru.state.get", "key", key))


def clear(key: str) -> None:
    """state.clear(key) removes a value; no error if there is none.

    Example: cru.state.clear("loop") --> nil
    """
    text("cru.state.clear", "key", key)
    if (path := _path()).exists():
        json_file.update(path, lambda all: all.pop(key, None), workflows)


def everything() -> dict[str, object]:
    """All values by key. Raises NamespaceError."""
    return json_file.load(_path(), workflows)


def workflows(damaged: bytes) -> dict[str, object]:
    """Of a damaged file, the workflows that it named, each in a state that nobody knows: a rule must not end because a file broke."""
    names = re.findall(rb'"(fsm:[A-Za-z][\w-]*)"', damaged)
    return {name.decode(): {"state": ""} for name in names}


def _path() -> Path:
    return host().session.parts.store.folder / FILE
