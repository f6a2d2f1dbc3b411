"""`cru.oil.markup`: nodes out of a small set of HTML tags."""

from __future__ import annotations

from html.parser import HTMLParser

from cru.core.api.arguments import text
from cru.core.api.host import BadArgument
from cru.core.api.oil import style as oil_style
from cru.core.api.oil.nodes import Node

COLUMNS = ("div", "section", "col", "article", "main", "aside")
ROWS = ("span", "row")
STYLES: dict[str, dict[str, object]] = {
    "p": {},
    "text": {},
    "b": {"bold": True},
    "strong": {"bold": True},
    "i": {"italic": True},
    "em": {"italic": True},
    "u": {"underline": True},
    "code": {"fg": "cyan"},
    "badge": {},
}
EMPTY_TAGS = ("hr", "br", "spacer", "spinner")
_FLAGS = ("bold", "italic", "underline")
_SIZES = ("gap", "padding", "margin")


def markup(source: str) -> Node:
    """oil.markup(text) -> node. Tags: div, section, article, main, aside, col; span, row; p, text, b, strong, i, em, u, code, badge; ul,
    ol, li; hr, br, spacer, spinner. Containers take gap, padding, margin, border, justify, align; p, text and badge take color, bold,
    italic, underline; spinner takes label. Unknown tags are groups. Raises BadArgument for tags that do not match.

    Example: cru.oil.markup("<b>hi</b>") ~= nil --> true
    """
    reader = _MarkupParser()
    reader.feed(text("cru.oil.markup", "text", source))
    reader.close()
    return reader.result()


class _MarkupParser(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._open: list[tuple[str, dict[str, str], list[Node]]] = [("", {}, [])]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "true" for name, value in attrs}
        if tag in EMPTY_TAGS:
            self._add(_make_node(tag, attributes, []))
        elif len(self._open) > 100:
            raise BadArgument("cru.oil.markup: more than 100 tags deep")
        else:
            self._open.append((tag, attributes, []))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in EMPTY_TAGS:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in EMPTY_TAGS:
            return
        name, attributes, children = self._open[-1]
        if name != tag:
            raise BadArgument(f"cru.oil.markup: </{tag}> closes " + (f"<{name}>" if name else "nothing"))
        self._open.pop()
        self._add(_make_node(tag, attributes, children))

    def handle_data(self, data: str) -> None:
        words = " ".join(data.split())
        if words:
            before, after = data[0].isspace(), data[-1].isspace()
            inline = self._open[-1][0] in (*STYLES, *ROWS, "li")
            self._add(Node("text", {"text": f"{' ' * (before and inline)}{words}{' ' * (after and inline)}"}))

    def result(self) -> Node:
        if len(self._open) > 1:
            raise BadArgument(f"cru.oil.markup: <{self._open[-1][0]}> is not closed")
        children = self._open[0][2]
        return children[0] if len(children) == 1 else Node("fragment", {}, tuple(children))

    def _add(self, node: Node) -> None:
        self._open[-1][2].append(node)


def _make_node(tag: str, attributes: dict[str, str], children: list[Node]) -> Node:
    if tag in COLUMNS or tag in ROWS:
        return Node(
            "col" if tag in COLUMNS else "row",
            oil_style.container("cru.oil.markup", _container_props(attributes)),
            tuple(children),
        )
    if tag in STYLES:
        return _styled(tag, {**STYLES[tag], **_style(attributes)}, children)
    if tag in ("ul", "ol"):
        items = [_node_text(child) for child in children]
        return Node("bullet_list" if tag == "ul" else "numbered_list", {"items": items})
    if tag == "spinner":
        return Node("spinner", {"label": attributes["label"]} if "label" in attributes else {})
    if tag == "br":
        return Node("text", {"text": "\n"})
    return Node(tag) if tag in EMPTY_TAGS else Node("fragment", {}, tuple(children))


def _styled(tag: str, style: dict[str, object], children: list[Node]) -> Node:
    if tag == "badge":
        style = {"bold": True, **style}
        return Node("badge", {"label": "".join(map(_node_text, children)), "style": style})
    inner = [
        child.with_style({**style, **child.props.get("style", {})}) if style and child.kind == "text" else child
        for child in children
    ]
    return inner[0] if len(inner) == 1 else Node("row", {}, tuple(inner))


def _container_props(attributes: dict[str, str]) -> dict[str, object]:
    known: dict[str, object] = {name: int(attributes[name]) for name in _SIZES if attributes.get(name, "").isdigit()}
    return {**known, **{name: attributes[name] for name in ("border", "justify", "align") if name in attributes}}


def _style(attributes: dict[str, str]) -> dict[str, object]:
    flags: dict[str, object] = {name: attributes[name] != "false" for name in _FLAGS if name in attributes}
    return {**flags, **({"fg": attributes["color"]} if "color" in attributes else {})}


def _node_text(node: Node) -> str:
    return str(node.props.get("text", "")) + "".join(map(_node_text, node.children))
