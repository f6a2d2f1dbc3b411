"""Reports of settings in a project that do not count."""

from __future__ import annotations

from collections.abc import Sequence

from cru.config.layers import MOST_SHOWN, NOT_LOCAL, Layer, SettingsProblem
from cru.config.positions import shorten, show_key

ONLY_AT_HOME = "it counts only in ~/.cru/config.toml"


def describe_untrusted(layer: Layer, paths: Sequence[tuple[str, ...]]) -> tuple[SettingsProblem, ...]:
    """Return a problem for each of these keys of a project that nobody trusts, the last one for all that are too many to list."""
    hint = f"read {layer.file}, then `cru trust`"
    problems = [
        SettingsProblem(f"`{show_key(path)}` is ignored: this project is not trusted", layer.place(path), hint)
        for path in paths[:MOST_SHOWN]
    ]
    return _with_count(problems, len(paths), layer, hint)


def describe_forbidden(layer: Layer, keys: Sequence[str], rules: Sequence[str]) -> tuple[SettingsProblem, ...]:
    """Return a problem for each of these keys and allow rules, which only the home folder may set."""
    problems = [
        SettingsProblem(f"`{key}` is ignored: {ONLY_AT_HOME}", layer.place((key,)), NOT_LOCAL[key]) for key in keys
    ]
    place, hint = layer.place(("permissions", "allow")), NOT_LOCAL["sandbox"]
    problems += [
        SettingsProblem(f"`{shorten(rule)}` is ignored: {ONLY_AT_HOME}", place, hint) for rule in rules[:MOST_SHOWN]
    ]
    return _with_count(problems, len(keys) + len(rules), layer, hint)


def _with_count(problems: list[SettingsProblem], count: int, layer: Layer, hint: str) -> tuple[SettingsProblem, ...]:
    if more := count - len(problems):
        problems.append(SettingsProblem(f"{more:,} more settings are ignored", layer.file or layer.name, hint))
    return tuple(problems)
