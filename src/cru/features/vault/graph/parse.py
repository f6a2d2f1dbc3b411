"""The query forms of the graph, all read into one GraphQuery:

find("T") | ->wikilink[] | .title                       pipes; outlinks("T"), inlinks("T"), neighbors("T") begin one, too
SELECT outlinks FROM 'T'                                inlinks and neighbors too; SELECT * FROM notes WHERE title = 'T'
MATCH (a {title: 'T'})-[:wikilink*1..2]->(b) WHERE b.status = 'open' RETURN b.title AS t LIMIT 10
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from cru.features.vault import BadQuery
from cru.features.vault.graph.query import GraphQuery

LIMIT = 2000
"""Characters of a query: what the parser takes grows faster than the text."""

_GRAMMAR = r"""
start: match | select | pipe

pipe: begin ("|" step)* jq?
begin: NAME "(" value ")"
step: ARROW EDGE? "[" "]"
jq: JQ

select: "SELECT"i SHAPE "FROM"i value               -> select_links
      | "SELECT"i "*" "FROM"i "notes"i where? limit? -> select_notes

match: "MATCH"i node (edge node)* where? "RETURN"i item ("," item)* limit?
node: "(" NAME? properties? ")"
properties: "{" (NAME ":" value ("," NAME ":" value)*)? "}"
edge: LEFT? "-" ("[" NAME? types? length? "]")? "-" RIGHT?
types: ":" NAME ("|" NAME)*
length: STAR (INT? (RANGE INT?)?)? | PLUS
where: "WHERE"i condition ("AND"i condition)*
condition: field OPERATOR value
field: NAME ("." NAME)?
item: field ("AS"i NAME)?
limit: "LIMIT"i INT
value: STRING | NUMBER | INT | PARAMETER | BOOLEAN

ARROW: "<->" | "->" | "<-"
EDGE: /[a-z]+/
LEFT: "<"
RIGHT: ">"
STAR: "*"
PLUS: "+"
RANGE: ".."
SHAPE.2: /(outlinks|inlinks|neighbors)(?![\w])/i
OPERATOR.2: /=|<>|!=|(CONTAINS|STARTS\s+WITH|ENDS\s+WITH)(?!\w)/i
BOOLEAN.2: /(true|false)(?!\w)/i
PARAMETER: /\$[A-Za-z_]\w*/
STRING: /"(\\.|[^"\\])*"|'(\\.|''|[^'\\])*'/
NUMBER: /-?\d+\.\d+/
INT: /\d+/
JQ: /\|\s*(?!\s|<->|->|<-)[^\n]+/
NAME: /[^\W\d]\w*/
%ignore /\s+/
"""


def parse_graph_query(text: str, parameters: Mapping[str, Any] | None = None) -> GraphQuery:
    """Raises BadQuery, with the column.

    parameters: values for `$name`
    """
    from lark import UnexpectedInput
    from lark.exceptions import VisitError

    if not text.strip():
        raise BadQuery("the query is empty", _FORMS)
    if len(text) > LIMIT:
        raise BadQuery(f"the query has more than {LIMIT} characters", _FORMS)
    try:
        tree = _parser().parse(text)
        query = _reader()(parameters or {}).transform(tree)
    except UnexpectedInput as error:
        raise BadQuery(_explain(error, text), _FORMS, max(getattr(error, "column", 0), 0)) from error
    except VisitError as error:
        if isinstance(error.orig_exc, BadQuery):
            raise error.orig_exc from error
        raise
    assert isinstance(query, GraphQuery)
    return query


_FORMS = "forms: outlinks(\"Title\") | ->wikilink[] · SELECT inlinks FROM 'Title' · MATCH (a {title: 'Title'})-[:wikilink]->(b) RETURN b"


def _explain(error: Any, text: str) -> str:
    column = getattr(error, "column", -1)
    if column is None or column < 1:
        return "the graph query ends too early"
    return f"the graph query cannot be understood at column {column}: {text[error.pos_in_stream :][:40]!r}"


@cache
def _parser() -> Any:
    from lark import Lark

    return Lark(_GRAMMAR, parser="earley", lexer="dynamic", maybe_placeholders=False)


@cache
def _reader() -> Any:
    """The class that turns the tree into a GraphQuery; it needs the library."""
    from cru.features.vault.graph.reader import GraphReader

    return GraphReader
