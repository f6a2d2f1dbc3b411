"""What a context may be called."""

from __future__ import annotations

from cru.contexts.errors import BadName

DEFAULT = "default"
_LONGEST = 200


def is_name(name: str) -> bool:
    """ASCII letters, digits, - and _; no - in front; not "system" in any case; at most 200 characters."""
    plain = name.replace("-", "a").replace("_", "a")
    return (
        plain.isalnum()
        and name.isascii()
        and not name.startswith("-")
        and name.lower() != "system"
        and len(name) <= _LONGEST
    )


def checked(name: str) -> str:
    """The name itself. Raises BadName."""
    if is_name(name):
        return name
    if name.lower() == "system":
        raise BadName(f"a context cannot be called '{name}'", "the name belongs to the program; choose another one")
    hint = f"use ASCII letters, digits, - and _ (no - in front, at most {_LONGEST} characters)"
    raise BadName(f"not a name for a context: {name!r}", hint)
