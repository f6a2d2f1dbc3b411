"""`cru.storage`: texts by entity and key, kept for each plugin over all contexts in `plugin-state/NAME/storage.json`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cru.core.api import json_file
from cru.core.api.arguments import text, tostring
from cru.core.api.host import host
from cru.core.api.paths import component


def set_(entity: str, key: str, value: str) -> bool:
    """storage.set(entity, key, text) -> true. Numbers and booleans become text. Raises BadArgument, NamespaceError.

    Example: cru.storage.set("user:1", "name", "Ada") --> true
    """
    where = "cru.storage.set"
    text(where, "entity", entity)
    text(where, "key", key)
    content = tostring(value) if isinstance(value, (int, float)) else text(where, "value", value)
    text(where, "value", content)
    json_file.update(_path(), lambda all: _entity(all, entity).__setitem__(key, content))
    return True


def get(entity: str, key: str) -> str | None:
    """storage.get(entity, key) -> text or nil.

    Example: cru.storage.get("user:1", "no such key") --> nil
    """
    return list_(entity).get(key)


def list_(entity: str) -> dict[str, str]:
    """storage.list(entity) -> {key = text}, empty if there is nothing.

    Example: next(cru.storage.list("nobody")) --> nil
    """
    pairs: dict[str, str] = _all_pairs().get(text("cru.storage.list", "entity", entity), {})
    return pairs


def find(key: str, value: str) -> list[str]:
    """storage.find(key, text) -> the entities that have this text under this key, in the order in which they were made.

    Example: #cru.storage.find("name", "nobody at all") --> 0
    """
    content = tostring(value)
    return [entity for entity, pairs in _all_pairs().items() if pairs.get(key) == content]


def delete(entity: str, key: str) -> bool:
    """storage.delete(entity, key) -> true if there was one.

    Example: cru.storage.delete("nobody", "name") --> false
    """
    if key not in list_(entity):
        return False

    def drop(all: dict[str, Any]) -> bool:
        pairs = all.get(entity, {})
        existed = pairs.pop(key, None) is not None
        if not pairs:
            all.pop(entity, None)
        return existed

    return json_file.update(_path(), drop)


def _all_pairs() -> dict[str, dict[str, str]]:
    """Everything that this plugin keeps; what is not of this shape does not count."""
    return {entity: pairs for entity, pairs in json_file.load(_path()).items() if isinstance(pairs, dict)}


def _entity(all: dict[str, Any], entity: str) -> dict[str, str]:
    if not isinstance(all.get(entity), dict):
        all[entity] = {}
    pairs: dict[str, str] = all[entity]
    return pairs


def _path() -> Path:
    here = host()
    name = component("cru.storage", here.plugin.name)
    return here.session.home / "plugin-state" / name / "storage.json"
