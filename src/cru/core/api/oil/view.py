"""What nodes of `cru.oil` say, as the records that faces draw."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from cru.core.api.arguments import tostring
from cru.core.base.values.oil.model import OilNode, PopupItem, TextNode, ViewBuilder, make_node

TEXTS = ("text", "label", "char", "value", "placeholder", "key")


class Drawable(Protocol):
    """What is looked at of a node."""

    kind: str
    props: dict[str, Any]

    @property
    def children(self) -> Iterable[Drawable]: ...


def view_of(node: Drawable) -> OilNode:
    """The node and all below it, within bounds: a line at its end tells what was left out."""
    builder = ViewBuilder()
    view = _view(node, builder, 0)
    return builder.finish(view if view is not None else TextNode())


def _view(node: Drawable, builder: ViewBuilder, depth: int) -> OilNode | None:
    if not builder.take_node(depth):
        return None
    children = []
    for child in node.children:
        view = _view(child, builder, depth + 1)
        if view is None:
            break
        children.append(view)
    props: dict[str, Any] = {
        name: builder.take_text(value) if name in TEXTS and isinstance(value, str) else value
        for name, value in node.props.items()
    }
    if "items" in props:
        props["items"] = _items(node.kind, props["items"], builder, depth)
    return make_node(node.kind, props, tuple(children))


def _items(kind: str, items: Iterable[Any], builder: ViewBuilder, depth: int) -> tuple[str | PopupItem, ...]:
    kept: list[str | PopupItem] = []
    for item in items:
        if not builder.take_node(depth):
            break
        kept.append(_popup_item(item, builder) if kind == "popup" else builder.take_text(item))
    return tuple(kept)


def _popup_item(item: Mapping[str, object], builder: ViewBuilder) -> PopupItem:
    fields = {"label": item.get("label"), "desc": item.get("desc", item.get("description")), "kind": item.get("kind")}
    texts = {name: builder.take_text(tostring(value)) for name, value in fields.items() if value is not None}
    return PopupItem(**{"label": "", **texts})
