"""Patterns of handlers that fit no tool: a guard that never looks at anything is told, with what it may have meant."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cru.core.base.config.closest import closest
from cru.core.base.files.glob import BadGlob, expand_braces, matches_identifier
from cru.core.events.catalog import BY_NAME
from cru.core.events.registry import Handler, HandlerRegistry

ABOUT_TOOLS = ("tool:", "permission:", "output:")
LATER = "mcp"
"""Tools whose names begin so arrive when they like."""
WILD = "*?["


def find_unfitting(registry: HandlerRegistry, owners: Iterable[str], tools: Iterable[str]) -> Iterator[tuple[str, str]]:
    """(owner, what is wrong) of each handler of these owners whose pattern fits no tool."""
    chosen, known = frozenset(owners), tuple(tools)
    for event, handlers in registry.by_event.items():
        if is_about_tools(event):
            for handler in handlers:
                if handler.pattern and handler.owner in chosen:
                    yield from (
                        (handler.owner, f"{_place(handler)}{text}") for text in describe(handler.pattern, known)
                    )


def is_about_tools(event: str) -> bool:
    """Whether patterns of an event are tried on names of tools."""
    row = BY_NAME.get(event)
    return row is not None and row.ident in ("name", "tool") and event.startswith(ABOUT_TOOLS)


def describe(pattern: str, tools: tuple[str, ...]) -> Iterator[str]:
    """What is wrong with each part of a pattern that fits no tool. One with wildcards is told only if a tool's name is near: it may be
    meant for tools that are not there."""
    try:
        parts = expand_braces(pattern)
    except BadGlob:
        return  # told when it was registered
    for part in parts:
        if part in ("", "*", "**") or part.startswith(LATER) or any(matches_identifier(part, tool) for tool in tools):
            continue
        near = closest(part.strip("*^$"), tools)
        if near is not None or not any(char in part for char in WILD):
            yield f"the pattern `{part}` fits no tool{_suggest(part, near)}"


def _suggest(part: str, near: str | None) -> str:
    if "|" in part:
        return f"; patterns are globs: {{{part.replace('|', ',')}}}"
    return f"; did you mean `{near}`?" if near else ""


def _place(handler: Handler) -> str:
    return f"{handler.where}: " if handler.where else ""
