"""The tree of a graph query as a GraphQuery. Only imported with the parser's library (parse.py)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from lark import Token, Transformer

from cru.features.vault import BadQuery
from cru.features.vault.graph.links import EDGES
from cru.features.vault.graph.query import (
    LONGEST,
    Condition,
    Direction,
    EdgePattern,
    GraphQuery,
    NodePattern,
    Operator,
    ReturnItem,
)

_BEGINS = {"find": None, "outlinks": Direction.OUT, "inlinks": Direction.IN, "neighbors": Direction.BOTH}
_ESCAPE = re.compile(r"\\(.)|''")


class GraphReader(Transformer[Token, Any]):
    """Called from the leaves up, a method a rule of the grammar."""

    def __init__(self, parameters: Mapping[str, Any]) -> None:
        super().__init__()
        self._parameters = parameters

    def start(self, parts: list[GraphQuery]) -> GraphQuery:
        return parts[0]

    def pipe(self, parts: list[Any]) -> GraphQuery:
        (name, title), *steps = parts
        jq = steps.pop() if steps and isinstance(steps[-1], str) else ""
        begin = _BEGINS[name]
        edges = ([EdgePattern(begin)] if begin else []) + steps
        return _from_note(title, tuple(edges), jq)

    def begin(self, parts: list[Any]) -> tuple[str, str]:
        name, title = parts
        if name not in _BEGINS:
            raise BadQuery(f"there is no `{name}(…)`", f"one of {', '.join(_BEGINS)}", name.column)
        return str(name), str(title)

    def step(self, parts: list[Token]) -> EdgePattern:
        return EdgePattern(Direction(str(parts[0])), _kinds(parts[1:]))

    def jq(self, parts: list[Token]) -> str:
        return str(parts[0])[1:].strip()

    def select_links(self, parts: list[Any]) -> GraphQuery:
        shape, title = parts
        direction = _BEGINS[str(shape).lower()]
        return _from_note(str(title), (EdgePattern(direction),) if direction else (), "")

    def select_notes(self, parts: list[Any]) -> GraphQuery:
        conditions = next((part for part in parts if isinstance(part, tuple)), ())
        limit = next((part for part in parts if isinstance(part, int)), None)
        unnamed = tuple(Condition("", each.key or each.node, each.operator, each.value) for each in conditions)
        return GraphQuery((NodePattern(""),), conditions=unnamed, limit=limit)

    def match(self, parts: list[Any]) -> GraphQuery:
        nodes = tuple(part for part in parts if isinstance(part, NodePattern))
        edges = tuple(part for part in parts if isinstance(part, EdgePattern))
        items = tuple(part for part in parts if isinstance(part, ReturnItem))
        conditions = next((part for part in parts if isinstance(part, tuple)), ())
        limit = next((part for part in parts if isinstance(part, int)), None)
        known = {node.name for node in nodes if node.name}
        for name in [each.node for each in conditions] + [item.node for item in items]:
            if name not in known:
                raise BadQuery(f"the query names no note `{name}`", f"it names: {', '.join(sorted(known)) or 'none'}")
        return GraphQuery(nodes, edges, conditions, items, limit)

    def node(self, parts: list[Any]) -> NodePattern:
        name = next((str(part) for part in parts if isinstance(part, Token)), "")
        properties = next((part for part in parts if isinstance(part, tuple)), ())
        return NodePattern(name, properties)

    def properties(self, parts: list[Any]) -> tuple[tuple[str, Any], ...]:
        return tuple((str(key), value) for key, value in zip(parts[::2], parts[1::2], strict=True))

    def edge(self, parts: list[Any]) -> EdgePattern:
        ends = {part.type for part in parts if isinstance(part, Token)} & {"LEFT", "RIGHT"}
        direction = {frozenset(("LEFT",)): Direction.IN, frozenset(("RIGHT",)): Direction.OUT}.get(
            frozenset(ends), Direction.BOTH
        )
        kinds = next((part for part in parts if isinstance(part, list)), list(EDGES))
        least, most = next((part for part in parts if isinstance(part, tuple)), (1, 1))
        return EdgePattern(direction, tuple(kinds), least, most)

    def types(self, parts: list[Token]) -> list[str]:
        return list(_kinds(parts))

    def length(self, parts: list[Token]) -> tuple[int, int]:
        numbers = [int(part) for part in parts if part.type == "INT"]
        ranges = [at for at, part in enumerate(parts) if part.type == "RANGE"]
        if not ranges:
            least, most = (numbers[0], numbers[0]) if numbers else (1, LONGEST)
        else:
            least = next((int(part) for part in parts[: ranges[0]] if part.type == "INT"), 1)
            most = next((int(part) for part in parts[ranges[0] :] if part.type == "INT"), LONGEST)
        if least > most or most > LONGEST:
            raise BadQuery(f"a way of {least} to {most} links cannot be followed", f"at most {LONGEST}: *1..3")
        return least, most

    def where(self, parts: list[Condition]) -> tuple[Condition, ...]:
        return tuple(parts)

    def condition(self, parts: list[Any]) -> Condition:
        (node, key), operator, value = parts
        words = " ".join(str(operator).lower().split())
        return Condition(node, key, Operator("<>" if words == "!=" else words), value)

    def field(self, parts: list[Token]) -> tuple[str, str]:
        return str(parts[0]), str(parts[1]) if len(parts) > 1 else ""

    def item(self, parts: list[Any]) -> ReturnItem:
        node, key = parts[0]
        return ReturnItem(node, key, str(parts[1]) if len(parts) > 1 else f"{node}.{key}" if key else node)

    def limit(self, parts: list[Token]) -> int:
        return int(parts[0])

    def value(self, parts: list[Token]) -> Any:
        [token] = parts
        if token.type == "PARAMETER":
            if token[1:] not in self._parameters:
                raise BadQuery(f"there is no value for `{token}`", "give it with the query", token.column or 0)
            return self._parameters[token[1:]]
        if token.type == "STRING":
            return _ESCAPE.sub(lambda match: match[1] or "'", token[1:-1])
        return {"BOOLEAN": lambda: token.lower() == "true", "INT": lambda: int(token)}.get(
            token.type, lambda: float(token)
        )()


def _from_note(title: str, edges: tuple[EdgePattern, ...], jq: str) -> GraphQuery:
    return GraphQuery((NodePattern("", named=title), *(NodePattern("") for _ in edges)), edges, jq=jq)


def _kinds(names: list[Token]) -> tuple[str, ...]:
    for name in names:
        if str(name) not in EDGES:
            raise BadQuery(f"there is no link of kind `{name}`", f"one of {', '.join(EDGES)}", name.column or 0)
    return tuple(map(str, names)) or EDGES
