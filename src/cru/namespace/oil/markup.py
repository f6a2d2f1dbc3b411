"""`cru.oil.markup`: nodes out of a small set of HTML tags."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

from cru.namespace.arguments import text
from cru.namespace.host import BadArgument
from cru.namespace.oil import style as oil_style
from cru.namespace.oil.nodes import Node

COLUMNS = ("div", "section", "col", "article", "main", "aside")
ROWS = ("span", "row")
STYLES: dict[str, dict[str, Any]] = {
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
        given = {name: value or "true" for name, value in attrs}
        if tag in EMPTY_TAGS:
            self._add(_made(tag, given, []))
        elif len(self._open) > 100:
            raise BadArgument("cru.oil.markup: more than 100 tags deep")
        else:
            self._open.append((tag, given, []))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in EMPTY_TAGS:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in EMPTY_TAGS:
            return
        name, given, children = self._open[-1]
        if name != tag:
            raise BadArgument(f"cru.oil.markup: </{tag}> closes " + (f"<{name}>" if name else "nothing"))
        self._open.pop()
        self._add(_made(tag, given, children))

    def handle_data(self, data: str) -> None:
        said = " ".join(data.split())
        if said:
            before, after = data[0].isspace(), data[-1].isspace()
            inline = self._open[-1][0] in (*STYLES, *ROWS, "li")
            self._add(Node("text", {"text": f"{' ' * (before and inline)}{said}{' ' * (after and inline)}"}))

    def result(self) -> Node:
        if len(self._open) > 1:
            raise BadArgument(f"cru.oil.markup: <{self._open[-1][0]}> is not closed")
        children = self._open[0][2]
        return children[0] if len(children) == 1 else Node("fragment", {}, tuple(children))

    def _add(self, node: Node) -> None:
        self._open[-1][2].append(node)


def _made(tag: str, given: dict[str, str], children: list[Node]) -> Node:
    if tag in COLUMNS or tag in ROWS:
        return Node(
            "col" if tag in COLUMNS else "row", oil_style.container("cru.oil.markup", _props(given)), tuple(children)
        )
    if tag in STYLES:
        return _styled(tag, {**STYLES[tag], **_style(given)}, children)
    if tag in ("ul", "ol"):
        items = [_words(one) for one in children]
        return Node("bullet_list" if tag == "ul" else "numbered_list", {"items": items})
    if tag == "spinner":
        return Node("spinner", {"label": given["label"]} if "label" in given else {})
    if tag == "br":
        return Node("text", {"text": ""})
    return Node(tag) if tag in EMPTY_TAGS else Node("fragment", {}, tuple(children))


def _styled(tag: str, style: dict[str, Any], children: list[Node]) -> Node:
    if tag == "badge":
        style = {"bold": True, **style}
        return Node("badge", {"label": "".join(map(_words, children)), "style": style})
    inner = [
        one.with_style({**style, **one.props.get("style", {})}) if style and one.kind == "text" else one
        for one in children
    ]
    return inner[0] if len(inner) == 1 else Node("row", {}, tuple(inner))


def _props(given: dict[str, str]) -> dict[str, Any]:
    known: dict[str, Any] = {name: int(given[name]) for name in _SIZES if given.get(name, "").isdigit()}
    return {**known, **{name: given[name] for name in ("border", "justify", "align") if name in given}}


def _style(given: dict[str, str]) -> dict[str, Any]:
    flags: dict[str, Any] = {name: given[name] != "false" for name in _FLAGS if name in given}
    return {**flags, **({"fg": given["color"]} if "color" in given else {})}


def _words(node: Node) -> str:
    return str(node.props.get("text", "")) + "".join(map(_words, node.children))
