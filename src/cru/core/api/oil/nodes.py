"""`cru.oil`: what a view consists of, as plain data. Faces draw it; nothing is drawn here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cru.core.api.arguments import array, function, lua_type, number, options, table, tostring, whole
from cru.core.api.arguments import text as a_text
from cru.core.api.host import BadArgument, Object, call
from cru.core.api.oil import style as oil_style
from cru.core.api.oil.groups import group_style
from cru.core.api.oil.view import view_of

CONTAINER = ("gap", "padding", "border", "justify", "align", "fg", "bg", "bold", "margin")
_HINTS = {"table": "wrap data in a node, as in cru.oil.text(...)", "function": "call it, and pass what it returns"}


class Node(Object):
    """One node of a view. Its methods give a new one.

    kind: text, col, row, …
    props: by name, what the kind takes
    children: the nodes in it
    """

    METHODS = (
        "with_style", "with_padding", "with_border", "with_margin", "gap", "justify", "align", "as_data", "to_text", "to_html",
    )  # fmt: skip

    def __init__(self, kind: str, props: dict[str, Any] | None = None, children: tuple[Node, ...] = ()) -> None:
        self.kind, self.props, self.children = kind, props or {}, children

    def as_data(self) -> dict[str, object]:
        """The node and all below it as plain data."""
        return {"kind": self.kind, "props": self.props, "children": [child.as_data() for child in self.children]}

    def as_text(self) -> str:
        return self.to_text()

    def to_text(self, columns: int | None = None) -> str:
        """The node and all below it as plain text, at most that many columns wide (80). Raises BadArgument."""
        from cru.core.base.values.oil.layout import COLUMNS, plain_text

        return plain_text(view_of(self), COLUMNS if columns is None else whole("node:to_text", "columns", columns, 1))

    def to_html(self) -> str:
        """The same as one element of HTML, with its styles; everything in it is escaped."""
        from cru.core.base.values.oil.html import to_html

        return to_html(view_of(self))

    def with_style(self, style: dict[str, object] | str) -> Node:
        """Raises BadArgument for an unknown colour or a flag that is no boolean."""
        return self._with(style={**self.props.get("style", {}), **_check_style("node:with_style", style)})

    def with_padding(self, n: int) -> Node:
        return self._with(padding=whole("node:with_padding", "n", n, 0))

    def with_border(self, kind: str | bool | None = None) -> Node:
        return self._with(border=oil_style.border(True if kind is None else kind))

    def with_margin(self, n: int) -> Node:
        return self._with(margin=whole("node:with_margin", "n", n, 0))

    def gap(self, n: int) -> Node:
        return self._with(gap=whole("node:gap", "n", n, 0))

    def justify(self, how: str) -> Node:
        return self._with(justify=oil_style.justify("node:justify", how))

    def align(self, how: str) -> Node:
        return self._with(align=oil_style.align("node:align", how))

    def _with(self, **props: object) -> Node:
        return Node(self.kind, {**self.props, **props}, self.children)


EMPTY = Node("empty")


def text(content: object = None, style: dict[str, object] | str | None = None) -> Node:
    """oil.text(content, style?) -> node; content is text, a number or nil. Style: fg, bg, bold, dim, italic, underline, or
    the name of a group of cru.hl.set. node:to_text(columns=80) and node:to_html() are what it looks like. Raises BadArgument.

    Example: cru.oil.text("hi", {fg="red"}) ~= nil --> true
    """
    where = "cru.oil.text"
    if content is not None and lua_type(content) not in ("string", "number"):
        raise BadArgument(f"{where}: content must be text or a number, got {lua_type(content)}")
    return Node("text", _styled(where, {"text": "" if content is None else tostring(content)}, style))


def col(*children: object) -> Node:
    """oil.col(props?, ...) -> node: children below each other; props: gap, padding, border, justify, align, fg, bg, bold, margin. A text
    is a child, nil is none. Raises BadArgument for a table, number, boolean or function as a child.

    Example: cru.oil.col({gap=1}, "a", "b") ~= nil --> true
    """
    return _container("col", children)


def row(*children: object) -> Node:
    """oil.row(props?, ...) -> node: children beside each other, as col.

    Example: cru.oil.row("a", cru.oil.spacer(), "b") ~= nil --> true
    """
    return _container("row", children)


def fragment(*children: object) -> Node:
    """oil.fragment(...) -> node: an invisible group; what is no node and no text is dropped.

    Example: cru.oil.fragment("a", 1) ~= nil --> true
    """
    nodes = [child for child in children if isinstance(child, (Node, str))]
    return Node("fragment", {}, tuple(to_node("cru.oil.fragment", child) for child in nodes))


def scrollback(_key: object = None, *children: object) -> Node:
    """oil.scrollback(key, ...) -> the same as fragment.

    Example: cru.oil.scrollback("log", "a") ~= nil --> true
    """
    return fragment(*children)


def spacer() -> Node:
    """oil.spacer() -> node: fills what is left.

    Example: cru.oil.spacer() ~= nil --> true
    """
    return Node("spacer")


def spinner(label: str | None = None) -> Node:
    """oil.spinner(label?) -> node

    Example: cru.oil.spinner("working") ~= nil --> true
    """
    return Node("spinner", {} if label is None else {"label": tostring(label)})


def progress(value: float, width: int | None = None) -> Node:
    """oil.progress(value, width=20) -> node; value is 0 to 1, and is kept within it. Raises BadArgument.

    Example: cru.oil.progress(0.5) ~= nil --> true
    """
    where = "cru.oil.progress"
    part = min(1.0, max(0.0, number(where, "value", value)))
    return Node("progress", {"value": part, "width": 20 if width is None else whole(where, "width", width, 1)})


def badge(label: str, style: dict[str, object] | str | None = None) -> Node:
    """oil.badge(label, style?) -> node. Raises BadArgument.

    Example: cru.oil.badge("new", {fg="green"}) ~= nil --> true
    """
    return Node("badge", _styled("cru.oil.badge", {"label": tostring(label)}, style))


def divider(char: str | None = None, width: int | None = None) -> Node:
    """oil.divider(char="─", width=80) -> node

    Example: cru.oil.divider("=", 10) ~= nil --> true
    """
    where = "cru.oil.divider"
    drawn = "─" if char is None else a_text(where, "char", char)
    return Node("divider", {"char": drawn, "width": 80 if width is None else whole(where, "width", width, 0)})


def hr() -> Node:
    """oil.hr() -> node: a line over the whole width.

    Example: cru.oil.hr() ~= nil --> true
    """
    return Node("hr")


def input(opts: dict[str, object] | None = None) -> Node:
    """oil.input{value="", cursor=0, placeholder?, focused=true} -> node. Raises BadArgument.

    Example: cru.oil.input({value="x"}) ~= nil --> true
    """
    where = "cru.oil.input"
    fields = options(where, opts, ("value", "cursor", "placeholder", "focused"))
    props = {
        "value": tostring(fields.get("value") or ""),
        "cursor": whole(where, "cursor", fields.get("cursor", 0), 0),
        "focused": fields.get("focused") is not False,
    }
    placeholder = fields.get("placeholder")
    return Node("input", props if placeholder is None else {**props, "placeholder": tostring(placeholder)})


def popup(items: list[object], selected: int | None = None, max_visible: int | None = None) -> Node:
    """oil.popup(items, selected=0, max_visible=10) -> node; items are texts or {label, desc, kind}, selected counts from 0.

    Example: cru.oil.popup({"a", {label="b"}}) ~= nil --> true
    """
    where = "cru.oil.popup"
    entries = [item if isinstance(item, dict) else {"label": tostring(item)} for item in array(where, "items", items)]
    chosen = 0 if selected is None else whole(where, "selected", selected, 0)
    most = 10 if max_visible is None else whole(where, "max_visible", max_visible, 1)
    return Node("popup", {"items": entries, "selected": chosen, "max_visible": most})


def bullet_list(items: list[object]) -> Node:
    """oil.bullet_list(texts) -> node

    Example: cru.oil.bullet_list({"a", "b"}) ~= nil --> true
    """
    return Node("bullet_list", {"items": [tostring(item) for item in array("cru.oil.bullet_list", "items", items)]})


def numbered_list(items: list[object]) -> Node:
    """oil.numbered_list(texts) -> node

    Example: cru.oil.numbered_list({"a", "b"}) ~= nil --> true
    """
    return Node("numbered_list", {"items": [tostring(item) for item in array("cru.oil.numbered_list", "items", items)]})


def kv(key: object, value: object) -> Node:
    """oil.kv(key, value) -> node

    Example: cru.oil.kv("name", "x") ~= nil --> true
    """
    return Node("kv", {"key": tostring(key), "value": tostring(value)})


def when(condition: object, child: object) -> Node:
    """oil.when(condition, node) -> the node, or nothing

    Example: cru.oil.when(false, "a") ~= nil --> true
    """
    return to_node("cru.oil.when", child) if _check_condition("cru.oil.when", condition) else EMPTY


def either(condition: object, yes: object, no: object = None) -> Node:
    """oil.either(condition, a, b) -> a or b; if_else is another word for it

    Example: cru.oil.either(true, "a", "b") ~= nil --> true
    """
    return to_node("cru.oil.either", yes if _check_condition("cru.oil.either", condition) else no)


async def each(items: list[object], work: Callable[[object, int], object]) -> Node:
    """oil.each(items, fn(item, index)) -> a fragment of what fn returns; the index counts from 1. Raises BadArgument.

    Example: cru.oil.each({"a"}, function(item, i) return item end) ~= nil --> true
    """
    where = "cru.oil.each"
    function(where, "fn", work)
    nodes = [to_node(where, await call(work, item, n)) for n, item in enumerate(array(where, "items", items), 1)]
    return Node("fragment", {}, tuple(nodes))


async def maybe(value: object, work: Callable[[object], object]) -> Node:
    """oil.maybe(value, fn(value)) -> what fn returns; nothing for nil, and only for nil

    Example: cru.oil.maybe(nil, function() error("never") end) ~= nil --> true
    """
    function("cru.oil.maybe", "fn", work)
    return EMPTY if value is None else to_node("cru.oil.maybe", await call(work, value))


async def match_state(key: object, cases: dict[object, object]) -> Node:
    """oil.match_state(key, {key = node or fn, _ = default}) -> the node of that key, else of `_`, else nothing

    Example: cru.oil.match_state("on", {on="yes", _="no"}) ~= nil --> true
    """
    where = "cru.oil.match_state"
    known = table(where, "cases", cases)
    case = known.get(key, known.get("_"))
    return to_node(where, await call(case) if callable(case) else case)


def component(base: Callable[..., object], defaults: dict[str, object] | None = None) -> Callable[..., object]:
    """oil.component(fn(props, ...), defaults) -> a function; its first table is merged over the defaults and handed on as props

    Example: type(cru.oil.component(function(props) return props.label end, {label="x"})) --> "function"
    """
    function("cru.oil.component", "fn", base)
    start = table("cru.oil.component", "defaults", defaults)

    async def made(*args: Any) -> Any:
        own = bool(args) and isinstance(args[0], dict)
        props = {**start, **(args[0] if own else {})}
        return await call(base, props, *(args[1:] if own else args))

    return made


def to_node(where: str, value: object) -> Node:
    """A node; a text becomes one, nil is nothing. Raises BadArgument."""
    if value is None:
        return EMPTY
    if isinstance(value, Node):
        return value
    if isinstance(value, str):
        return Node("text", {"text": value})
    raise BadArgument(f"{where}: a node or a text is wanted, got {lua_type(value)}")


def _container(kind: str, children: tuple[object, ...]) -> Node:
    where = f"cru.oil.{kind}"
    props: dict[str, object] = {}
    first = 1
    if children and isinstance(children[0], dict) and (not children[0] or any(key in CONTAINER for key in children[0])):
        props, children, first = oil_style.container(where, children[0]), children[1:], 2
    nodes: list[Node] = []
    for position, child in enumerate(children, first):
        if child is None:
            continue
        if not isinstance(child, (Node, str)):
            hint = _HINTS.get(lua_type(child), "turn it into text with tostring(...)")
            raise BadArgument(f"{where}: child at position {position} has type '{lua_type(child)}'. {hint}")
        nodes.append(to_node(where, child))
    return Node(kind, props, tuple(nodes))


def _styled(where: str, props: dict[str, object], style: object) -> dict[str, object]:
    checked = _check_style(where, style)
    return {**props, "style": checked} if checked else props


def _check_style(where: str, style: object) -> dict[str, object]:
    """A style that is all right; a text is the name of a group. Raises BadArgument."""
    return group_style(where, style) if isinstance(style, str) else oil_style.style(where, style)


def _check_condition(where: str, condition: object) -> bool:
    if condition is not None and not isinstance(condition, bool):
        raise BadArgument(f"{where}: the condition must be a boolean, got {lua_type(condition)}")
    return bool(condition)
