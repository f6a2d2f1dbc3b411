"""Slips of the pen in what plugins hand over: keys that are nearly known, told with the closest name."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from cru.core.api.arguments import warn
from cru.core.api.host import Host
from cru.core.base.config.closest import closest, did_you_mean, distance

TABLES = ("tools", "commands", "services", "views")
FUNCTIONS = ("setup", "on_load", "on_unload", "teardown")
HANDLER_TABLES = ("handlers", "hooks", "events", "on")
"""Names under which people look for handlers; nothing reads them."""
SYNONYMS = {
    "func": "fn",
    "function": "fn",
    "handler": "fn",
    "run": "fn",
    "call": "fn",
    "parameters": "params",
    "args": "params",
}
"""Words of other systems that no counting of letters leads to ours."""


def check_entry(host: Host, what: str, spec: Mapping[str, object], known: Collection[str]) -> None:
    """Every key of a tool, a command or a service must be known."""
    for key in sorted(map(str, spec)):
        if key not in known:
            synonym = SYNONYMS.get(key.lower(), "")
            hint = f"did you mean `{synonym}`?" if synonym in known else did_you_mean(key, known)
            host.problem(f"{what}: unknown key `{key}`; {hint or 'known: ' + ', '.join(known)}")


def check_result(what: str, result: Mapping[str, object], known: Collection[str]) -> None:
    """What a function returned may hold anything: only keys that are nearly known are told."""
    for key in sorted(map(str, result)):
        if key not in known and (near := did_you_mean(key, known)):
            warn(f"{what} returned `{key}`, which means nothing; {near}")


def check_type_word(host: Host, what: str, word: str, known: Iterable[str]) -> None:
    """A type word that is nearly known; all others mean anything."""
    known = tuple(known)
    near = "" if word in known else did_you_mean(word, known)
    if near:
        host.problem(f"{what}: unknown type `{word}`; {near}")


def check_plugin_table(host: Host, table: Mapping[str, object], spell: Callable[[str], str] = str) -> None:
    """The table that a plugin returned, or its module: it may hold anything, so only what is nearly a known name and of its kind is
    told. `table` has values, or the names of their types in Lua."""
    for key in sorted(map(str, table)):
        kind = _type_name(table[key])
        known = TABLES if kind == "table" else FUNCTIONS if kind == "function" else ()
        if kind == "table" and key.lower() in HANDLER_TABLES:
            host.problem(
                f"`{key}` is not read: a handler is registered with `cru.on(event, function)` or an annotation `@handler`"
            )
        elif key.lower() not in known and _is_misspelled(key.lower(), near := closest(key, known) or ""):
            host.problem(f"`{key}` is not read; did you mean `{spell(near)}`?")


def _is_misspelled(key: str, name: str) -> bool:
    """Nearer than a beginning of the name (`set`, `on`) that means something else."""
    return bool(name) and distance(key, name) <= max(1, len(key) // 3)


def _type_name(value: object) -> str:
    if isinstance(value, str):
        return value
    return "table" if isinstance(value, Mapping) else "function" if callable(value) else ""
