"""Settings of a project that do not count: what is left out of its layer, and the reports of that."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

from cru.core.base.config.layers import MOST_SHOWN, NOT_LOCAL, Layer, SettingsProblem
from cru.core.base.config.positions import shorten, show_key

ONLY_AT_HOME = "it counts only in ~/.cru/config.toml"
# What an untrusted project may set: table -> its keys. Both lists can only make things stricter.
UNTRUSTED = {"permissions": ("ask", "deny")}
# What it may hold all the same: a person judges each entry by itself (`cru hooks review`), and nothing is read from here.
JUDGED_ALONE = {"hooks": ("entries",)}


def restrict_untrusted(layer: Layer) -> tuple[Layer, tuple[SettingsProblem, ...]]:
    """Return what a project's layer may say before its file is trusted, and problems for the parts that are left out."""
    kept: dict[str, object] = {}
    ignored: list[tuple[str, ...]] = []
    for key, value in layer.data.items():
        allowed, alone = UNTRUSTED.get(key, ()), JUDGED_ALONE.get(key, ())
        if alone and isinstance(value, list):
            continue
        if allowed and not isinstance(value, dict):
            kept[key] = value  # rules are meant: their room reports what it cannot read
            continue
        if not (allowed or alone) or not isinstance(value, dict):
            ignored.append((key,))
            continue
        if allowed:
            kept[key] = {inner: value[inner] for inner in value if inner in allowed}
        ignored += [(key, inner) for inner in value if inner not in (*allowed, *alone)]
    if not ignored:
        return Layer(layer.name, kept, layer.file, layer.text), ()
    return Layer(layer.name, kept, layer.file, layer.text), tuple(_describe_untrusted(layer, ignored))


def drop_forbidden(layer: Layer) -> tuple[Layer, tuple[SettingsProblem, ...]]:
    """Return a project's layer without what only the home folder may set, trusted or not, and problems for what is left out."""
    forbidden = [key for key in layer.data if key in NOT_LOCAL]
    rules = _rules_outside(layer)
    if not forbidden and not rules:
        return layer, ()
    kept = {key: value for key, value in layer.data.items() if key not in NOT_LOCAL}
    if rules:
        table = cast(dict[str, object], kept["permissions"])
        allowed = [rule for rule in cast(list[object], table["allow"]) if not _leads_outside(rule)]
        kept["permissions"] = {**table, "allow": allowed}
    return Layer(layer.name, kept, layer.file, layer.text), tuple(_describe_forbidden(layer, forbidden, rules))


def _rules_outside(layer: Layer) -> list[str]:
    """Return the rules that let commands out of the sandbox."""
    table = layer.data.get("permissions")
    rules = table.get("allow") if isinstance(table, dict) else None
    if not isinstance(rules, list):
        return []
    return [rule for rule in rules if _leads_outside(rule)]


def _leads_outside(rule: object) -> bool:
    return isinstance(rule, str) and rule.strip().startswith("outside_sandbox")


def _describe_untrusted(layer: Layer, paths: Sequence[tuple[str, ...]]) -> Iterator[SettingsProblem]:
    hint = f"read {layer.file}, then `cru trust`"
    for path in paths[:MOST_SHOWN]:
        yield SettingsProblem(f"`{show_key(path)}` is ignored: this project is not trusted", layer.place(path), hint)
    if more := len(paths[MOST_SHOWN:]):
        yield SettingsProblem(f"{more:,} more settings are ignored", layer.file or layer.name, hint)


def _describe_forbidden(layer: Layer, keys: Sequence[str], rules: Sequence[str]) -> Iterator[SettingsProblem]:
    for key in keys:
        yield SettingsProblem(f"`{key}` is ignored: {ONLY_AT_HOME}", layer.place((key,)), NOT_LOCAL[key])
    place, hint = layer.place(("permissions", "allow")), NOT_LOCAL["sandbox"]
    for rule in rules[:MOST_SHOWN]:
        yield SettingsProblem(f"`{shorten(rule)}` is ignored: {ONLY_AT_HOME}", place, hint)
    if more := len(rules[MOST_SHOWN:]):
        yield SettingsProblem(f"{more:,} more rules are ignored", layer.file or layer.name, hint)
