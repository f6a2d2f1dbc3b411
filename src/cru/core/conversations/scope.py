"""`[contexts]`: whose the current context is, each project's or the home's (docs/decisions/conversations.md)."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct


class ScopeSettings(Struct, frozen=True):
    """`[contexts]`. scope: "" = global in a home of chibi, else project"""

    scope: Literal["project", "global", ""] = ""


class ContextsTable(Struct, frozen=True):
    """The settings of this table."""

    contexts: ScopeSettings = ScopeSettings()


DOCS: dict[str, str] = {
    "contexts": "which context is [current](contexts.md#contexts-of-a-project)",
    "contexts.scope": '`project`: each project has its own; `global`: one for all; "": global in a home of chibi, else project',
}
