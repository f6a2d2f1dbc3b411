"""A view as HTML: one element with its styles in it, to be put into a page. Everything of the view is escaped."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from typing import Any

from cru.core.base.values.oil.layout import MOST_SPACE
from cru.core.base.values.oil.model import (
    BadgeNode,
    BulletListNode,
    ColumnNode,
    DividerNode,
    EmptyNode,
    FragmentNode,
    InputNode,
    KeyValueNode,
    NumberedListNode,
    OilNode,
    OilStyle,
    PopupNode,
    ProgressNode,
    RowNode,
    RuleNode,
    SpacerNode,
    SpinnerNode,
    TextNode,
)
from cru.core.base.values.oil.wrap import clean

COLOURS = {
    "black": "#000000", "red": "#cc0000", "green": "#2e8b00", "yellow": "#b08800", "blue": "#2060c0", "magenta": "#8a3d8a",
    "cyan": "#067c8c", "white": "#ffffff", "gray": "#b0b0b0", "darkgray": "#707070", "reset": "inherit",
}  # fmt: skip
BORDERS = {
    "single": "1px solid",
    "double": "3px double",
    "rounded": "1px solid; border-radius: 0.5em",
    "heavy": "2px solid",
}
POSITIONS = {"start": "flex-start", "end": "flex-end", "center": "center", "stretch": "stretch", "space_between": "space-between",
             "space_around": "space-around", "space_evenly": "space-evenly"}  # fmt: skip


def to_html(node: OilNode) -> str:
    """The element, without line ends of its own."""
    return f'<div class="oil" style="font-family: monospace; white-space: pre-wrap">{_element(node)}</div>'


def _element(node: OilNode) -> str:
    return WRITTEN[type(node)](node)


def _children(node: OilNode) -> str:
    return "".join(map(_element, node.children))


def _tag(name: str, node: OilNode, content: str, *styles: str) -> str:
    css = "; ".join([*styles, *_style(node.style), *_box(node)])
    return f"<{name}{f' style={chr(34)}{css}{chr(34)}' if css else ''}>{content}</{name}>"


def _style(style: OilStyle) -> list[str]:
    flags = {"font-weight: bold": style.bold, "opacity: 0.6": style.dim, "font-style: italic": style.italic,
             "text-decoration: underline": style.underline}  # fmt: skip
    colours = {"color": style.fg, "background": style.bg}
    return [
        *(f"{name}: {COLOURS.get(colour, colour)}" for name, colour in colours.items() if colour),
        *(css for css, is_on in flags.items() if is_on),
    ]


def _box(node: OilNode) -> list[str]:
    sizes = {"padding": node.padding, "margin": node.margin}
    return [
        *(f"{name}: {min(size, MOST_SPACE)}lh {min(size, MOST_SPACE)}ch" for name, size in sizes.items() if size),
        *([f"border: {BORDERS[node.border]}"] if node.border in BORDERS else []),
    ]


def _container(direction: str) -> Callable[[OilNode], str]:
    def write(node: OilNode) -> str:
        unit = "lh" if direction == "column" else "ch"
        styles = ["display: flex", f"flex-direction: {direction}"]
        styles += [f"gap: {min(node.gap, MOST_SPACE)}{unit}"] if node.gap else []
        styles += [f"justify-content: {POSITIONS[node.justify]}"] if node.justify in POSITIONS else []
        styles += [f"align-items: {POSITIONS[node.align]}"] if node.align in POSITIONS else []
        return _tag("div", node, _children(node), *styles)

    return write


def _text(text: str) -> str:
    return escape(clean(text))


def _progress(node: ProgressNode) -> str:
    return _tag("span", node, f'<progress max="1" value="{node.value:g}"></progress> {node.value:.0%}')


def _divider(node: DividerNode) -> str:
    line = (clean(node.char) * min(node.width, 200))[:200]
    return _tag("div", node, escape(line), "overflow: hidden", "white-space: nowrap")


def _input(node: InputNode) -> str:
    attributes = f' value="{_text(node.value)}"' if node.value else ""
    attributes += f' placeholder="{_text(node.placeholder)}"' if node.placeholder else ""
    return _tag("span", node, f"<input readonly{attributes}>")


def _popup(node: PopupNode) -> str:
    rows = []
    for at, item in enumerate(node.items):
        kind = f" ({_text(item.kind)})" if item.kind else ""
        label = f"{_text(item.label)}{kind}"
        about = f" — {_text(item.desc)}" if item.desc else ""
        rows.append(f"<li>{f'<b>{label}</b>' if at == node.selected else label}{about}</li>")
    return _tag("ul", node, "".join(rows))


def _list(name: str) -> Callable[[Any], str]:
    def write(node: BulletListNode | NumberedListNode) -> str:
        return _tag(name, node, "".join(f"<li>{_text(item)}</li>" for item in node.items))

    return write


def _group(node: OilNode) -> str:
    return _tag("div", node, _children(node), "display: contents")


WRITTEN: dict[type[OilNode], Callable[[Any], str]] = {
    TextNode: lambda node: _tag("span", node, _text(node.text)),
    ColumnNode: _container("column"),
    RowNode: _container("row"),
    FragmentNode: _group,
    EmptyNode: lambda node: "",
    SpacerNode: lambda node: _tag("span", node, "", "flex: 1"),
    SpinnerNode: lambda node: _tag("span", node, f"… {_text(node.label)}".rstrip()),
    ProgressNode: _progress,
    BadgeNode: lambda node: _tag("span", node, f"[{_text(node.label)}]"),
    DividerNode: _divider,
    RuleNode: lambda node: _tag("hr", node, "").replace("</hr>", ""),
    InputNode: _input,
    PopupNode: _popup,
    BulletListNode: _list("ul"),
    NumberedListNode: _list("ol"),
    KeyValueNode: lambda node: _tag("div", node, f"<b>{_text(node.key)}:</b> {_text(node.value)}"),
}
