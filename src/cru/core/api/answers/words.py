"""The words of an answer, and what each stands beside."""

from __future__ import annotations

DECIDING = ("cancel", "deny", "cancelled", "allow", "ask", "halt", "handled")
ADDING = ("inject", "context")
BESIDE = {"reason": "", "result": "handled", "terminate": "handled", "model": "inject", "position": "inject"}
"""Those that are true, those that hold what is added, and those that mean something beside another one ("": beside any)."""

WORDS = frozenset((*DECIDING, *ADDING, *BESIDE))
CANCEL = ("cancel", "deny", "cancelled")
REFUSING = frozenset((*CANCEL, "ask", "halt"))
"""With these a handler forbids. One that cannot be read forbids all the same, on every gate."""

LISTED = {"notes:select": "results"}
"""Events on which a list is an answer, an empty one too: it is this field."""
