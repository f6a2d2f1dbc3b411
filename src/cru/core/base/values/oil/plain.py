"""A view as plain text: for pipes and files, for terminals without styles, and for the model."""

from __future__ import annotations

from cru.core.base.values.oil.layout import lay_out
from cru.core.base.values.oil.model import OilNode

COLUMNS = 80


def plain_text(node: OilNode, columns: int = COLUMNS) -> str:
    """Its lines, without blanks at their ends."""
    lines = ("".join(span.text for span in line).rstrip() for line in lay_out(node, columns))
    return "\n".join(lines).strip("\n")
