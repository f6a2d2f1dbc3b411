"""The nodes of a view as data. Whoever makes them has checked them; here is what faces and programs read."""

from __future__ import annotations

from typing import Any

from msgspec import Struct
from msgspec.structs import replace


class OilStyle(Struct, frozen=True, omit_defaults=True):
    """How characters look. fg, bg: a name of the sixteen colours of a terminal, `reset`, or #rrggbb; "" is what stands around it."""

    fg: str = ""
    bg: str = ""
    bold: bool = False
    dim: bool = False
    italic: bool = False
    underline: bool = False
    reverse: bool = False

    def over(self, base: OilStyle) -> OilStyle:
        """This style for what stands within `base`."""
        if base == PLAIN:
            return self
        if self == PLAIN:
            return base
        return OilStyle(
            self.fg or base.fg, self.bg or base.bg, self.bold or base.bold, self.dim or base.dim, self.italic or base.italic,
            self.underline or base.underline, self.reverse or base.reverse,
        )  # fmt: skip


PLAIN = OilStyle()


class PopupItem(Struct, frozen=True, omit_defaults=True):
    """One entry of a popup."""

    label: str
    desc: str = ""
    kind: str = ""


class OilNode(Struct, frozen=True, omit_defaults=True, kw_only=True, tag_field="kind"):
    """What every node may have.

    padding, margin, gap: columns to the left and right or between, rows above and below or between
    border: single, double, rounded, heavy
    justify: start, end, center, space_between, space_around, space_evenly
    align: start, end, center, stretch
    """

    style: OilStyle = PLAIN
    padding: int = 0
    margin: int = 0
    gap: int = 0
    border: str = ""
    justify: str = ""
    align: str = ""
    children: tuple[OilNode, ...] = ()

    @property
    def is_boxed(self) -> bool:
        return bool(self.padding or self.margin or self.border)


class TextNode(OilNode, frozen=True, kw_only=True, tag="text"):
    text: str = ""


class ColumnNode(OilNode, frozen=True, kw_only=True, tag="col"):
    """Children below each other."""


class RowNode(OilNode, frozen=True, kw_only=True, tag="row"):
    """Children beside each other."""


class FragmentNode(OilNode, frozen=True, kw_only=True, tag="fragment"):
    """Children as if they stood in what is around it."""


class EmptyNode(OilNode, frozen=True, kw_only=True, tag="empty"):
    """Nothing."""


class SpacerNode(OilNode, frozen=True, kw_only=True, tag="spacer"):
    """Fills what is left."""


class SpinnerNode(OilNode, frozen=True, kw_only=True, tag="spinner"):
    label: str = ""


class ProgressNode(OilNode, frozen=True, kw_only=True, tag="progress"):
    """value: 0 to 1; width: columns of the bar"""

    value: float = 0.0
    width: int = 20


class BadgeNode(OilNode, frozen=True, kw_only=True, tag="badge"):
    label: str = ""


class DividerNode(OilNode, frozen=True, kw_only=True, tag="divider"):
    """char again and again, over at most `width` columns"""

    char: str = "─"
    width: int = 80


class RuleNode(OilNode, frozen=True, kw_only=True, tag="hr"):
    """A line over the whole width."""


class InputNode(OilNode, frozen=True, kw_only=True, tag="input"):
    """A field with text. cursor: characters before it"""

    value: str = ""
    cursor: int = 0
    placeholder: str = ""
    focused: bool = True


class PopupNode(OilNode, frozen=True, kw_only=True, tag="popup"):
    """A list of entries, of which one is selected, from 0."""

    items: tuple[PopupItem, ...] = ()
    selected: int = 0
    max_visible: int = 10


class BulletListNode(OilNode, frozen=True, kw_only=True, tag="bullet_list"):
    items: tuple[str, ...] = ()


class NumberedListNode(OilNode, frozen=True, kw_only=True, tag="numbered_list"):
    items: tuple[str, ...] = ()


class KeyValueNode(OilNode, frozen=True, kw_only=True, tag="kv"):
    key: str = ""
    value: str = ""


KINDS: dict[str, type[OilNode]] = {
    str(kind.__struct_config__.tag): kind
    for kind in (
        TextNode, ColumnNode, RowNode, FragmentNode, EmptyNode, SpacerNode, SpinnerNode, ProgressNode, BadgeNode, DividerNode, RuleNode,
        InputNode, PopupNode, BulletListNode, NumberedListNode, KeyValueNode,
    )
}  # fmt: skip
"""By kind."""

MOST_NODES, MOST_DEPTH, MOST_TEXT = 10_000, 64, 200_000
"""Nodes and items, levels, and characters of one view that are looked at."""


class ViewBuilder:
    """Makes one view, within bounds. What is beyond them is left out, and a line at the end tells it."""

    def __init__(self) -> None:
        self._nodes, self._text = MOST_NODES, MOST_TEXT
        self._cut = ""

    def take_node(self, depth: int) -> bool:
        """Whether there is room for one more node, or item of a list, at that depth."""
        if depth > MOST_DEPTH:
            self._cut = self._cut or f"more than {MOST_DEPTH} levels"
            return False
        self._nodes -= 1
        if self._nodes < 0:
            self._cut = self._cut or f"more than {MOST_NODES:,} nodes"
        return self._nodes >= 0

    def take_text(self, text: str) -> str:
        """As much of it as there is room for."""
        kept = text[: max(self._text, 0)]
        self._text -= len(text)
        if len(kept) < len(text):
            self._cut = self._cut or f"more than {MOST_TEXT:,} characters"
        return kept

    def finish(self, node: OilNode) -> OilNode:
        if not self._cut:
            return node
        return ColumnNode(children=(node, TextNode(text=f"[cut here: {self._cut}]", style=OilStyle(dim=True))))


def make_node(kind: str, props: dict[str, Any], children: tuple[OilNode, ...]) -> OilNode:
    """A node of what `cru.oil` keeps of one: style in `style`, or as fields of its own."""
    fields = {name: value for name, value in props.items() if name not in _STYLE}
    own = {name: props[name] for name in _STYLE if name in props}
    own |= fields.pop("style", {})
    style = OilStyle(**own) if own else PLAIN
    return KINDS[kind](style=style, children=children, **fields)


_STYLE = ("fg", "bg", "bold")


def text_node(text: str) -> OilNode:
    return TextNode(text=text)


def beside(first: OilNode, node: OilNode) -> OilNode:
    """A view behind another one, on the same lines."""
    return RowNode(children=(first, node))


def styled(node: OilNode, style: OilStyle) -> OilNode:
    return replace(node, style=style.over(node.style))
