"""A query over the graph, in whatever form it was written (parse.py)."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from msgspec import Struct

from cru.features.vault.graph.links import EDGES

LONGEST = 20
"""Links that `*` follows at the most."""


class Direction(StrEnum):
    OUT = "->"
    IN = "<-"
    BOTH = "<->"


class Operator(StrEnum):
    EQUAL = "="
    UNEQUAL = "<>"
    CONTAINS = "contains"
    STARTS_WITH = "starts with"
    ENDS_WITH = "ends with"


class NodePattern(Struct, frozen=True):
    """name: "" if it has none; properties: what must be equal; named: a link's text that leads to the note, "" for any note"""

    name: str
    properties: tuple[tuple[str, Any], ...] = ()
    named: str = ""


class EdgePattern(Struct, frozen=True):
    """kinds: of links; least, most: how many of them one after another"""

    direction: Direction
    kinds: tuple[str, ...] = EDGES
    least: int = 1
    most: int = 1


class Condition(Struct, frozen=True):
    node: str
    key: str
    operator: Operator
    value: Any


class ReturnItem(Struct, frozen=True):
    """key: "" for the whole note; name: of the column"""

    node: str
    key: str
    name: str


class GraphQuery(Struct, frozen=True):
    """nodes and the edges between them; returned: columns, () for the notes of the last node; jq: filters to run over the result"""

    nodes: tuple[NodePattern, ...]
    edges: tuple[EdgePattern, ...] = ()
    conditions: tuple[Condition, ...] = ()
    returned: tuple[ReturnItem, ...] = ()
    limit: int | None = None
    jq: str = ""
