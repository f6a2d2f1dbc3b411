"""Nodes without children as lines: each takes the node, the columns there are, and the style around it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len, set_cell_size

from cru.core.base.values.oil import bar
from cru.core.base.values.oil.model import (
    BadgeNode,
    BulletListNode,
    DividerNode,
    InputNode,
    KeyValueNode,
    NumberedListNode,
    OilNode,
    OilStyle,
    PopupItem,
    PopupNode,
    ProgressNode,
    RuleNode,
    SpinnerNode,
    TextNode,
)
from cru.core.base.values.oil.wrap import Line, StyledText, clean, columns_of, wrap

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Lines = list[Line]
FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
"""A spinner, picture by picture."""
STILL = -1
"""Which picture stands where nothing moves."""
PERCENT = 5
"""Columns behind a bar."""
BOLD, DIM = OilStyle(bold=True), OilStyle(dim=True)


def draw_leaf(node: OilNode, columns: int, style: OilStyle, frame: int) -> Lines:
    """frame: which picture of a spinner"""
    if isinstance(node, SpinnerNode):
        return wrap(spinner_spans(node, style, frame), columns)
    draw = DRAWN.get(type(node))
    return [] if draw is None else draw(node, columns, style)


def inline_spans(node: OilNode, style: OilStyle, frame: int) -> list[StyledText] | None:
    """What may stand within a line of text; None of what has a place of its own."""
    style = node.style.over(style)
    if node.is_boxed:
        return None
    if isinstance(node, TextNode):
        return [StyledText(clean(node.text), style)]
    if isinstance(node, BadgeNode):
        return [StyledText(f"[{_one_line(node.label)}]", style)]
    if isinstance(node, SpinnerNode):
        return spinner_spans(node, style, frame)
    return None


def spinner_spans(node: SpinnerNode, style: OilStyle, frame: int) -> list[StyledText]:
    mark = "…" if frame == STILL else FRAMES[frame % len(FRAMES)]
    return [StyledText(mark, style), StyledText(f" {clean(node.label)}" if node.label else "", style)]


def _text(node: TextNode, columns: int, style: OilStyle) -> Lines:
    text = clean(node.text)
    return [()] if text == "\n" else wrap([StyledText(text, style)], columns) if text else []


def _badge(node: BadgeNode, columns: int, style: OilStyle) -> Lines:
    return wrap([StyledText(f"[{_one_line(node.label)}]", style)], columns)


def _progress(node: ProgressNode, columns: int, style: OilStyle) -> Lines:
    width = max(min(node.width, columns - PERCENT), 1)
    return wrap([StyledText(bar(node.value, width), style), StyledText(f" {node.value:.0%}", style)], columns)


def _divider(node: DividerNode, columns: int, style: OilStyle) -> Lines:
    return [(StyledText(repeated(node.char, min(node.width, columns)), style),)]


def _rule(_node: RuleNode, columns: int, style: OilStyle) -> Lines:
    return [(StyledText(repeated("─", columns), style),)]


def repeated(char: str, columns: int) -> str:
    """A text again and again, as often as it fits."""
    char = _one_line(char)
    width = cell_len(char)
    return char * (columns // width) if width else ""


def _input(node: InputNode, columns: int, style: OilStyle) -> Lines:
    value = _one_line(node.value)
    if not value and node.placeholder:
        return wrap([StyledText(_one_line(node.placeholder), DIM.over(style))], columns)
    if not node.focused:
        return wrap([StyledText(value, style)], columns)
    at = min(node.cursor, len(value))
    under = value[at : at + 1] or " "
    return wrap(
        [
            StyledText(value[:at], style),
            StyledText(under, OilStyle(reverse=True).over(style)),
            StyledText(value[at + 1 :], style),
        ],
        columns,
    )


def _popup(node: PopupNode, columns: int, style: OilStyle) -> Lines:
    first = max(0, min(node.selected - node.max_visible // 2, len(node.items) - node.max_visible))
    shown = node.items[first : first + node.max_visible]
    widest = min(max((cell_len(_entry_label(item)) for item in shown), default=0), max(columns // 2, 1))
    lines = [_entry(item, first + at == node.selected, widest, columns, style) for at, item in enumerate(shown)]
    rest = len(node.items) - len(shown)
    return [*lines, (StyledText(f"  … {rest} more", DIM.over(style)),)] if rest else lines


def _entry(item: PopupItem, is_selected: bool, widest: int, columns: int, style: OilStyle) -> Line:
    label = _entry_label(item)
    about = f"{' ' * max(widest - cell_len(label), 0)}  {_one_line(item.desc)}" if item.desc else ""
    look = BOLD.over(style) if is_selected else style
    return fit(
        (StyledText(f"{'> ' if is_selected else '  '}{label}", look), StyledText(about, DIM.over(style))), columns
    )


def _entry_label(item: PopupItem) -> str:
    return _one_line(item.label) + (f" ({_one_line(item.kind)})" if item.kind else "")


def fit(line: Line, columns: int) -> Line:
    """The line cut to at most that many columns."""
    if columns_of(line) <= columns:
        return line
    room = columns - 1
    kept: list[StyledText] = []
    for span in line:
        width = cell_len(span.text)
        if width > room:
            return (*kept, StyledText(set_cell_size(span.text, max(room, 0)) + "…", span.style))
        kept.append(span)
        room -= width
    return tuple(kept)


def _bullets(node: BulletListNode, columns: int, style: OilStyle) -> Lines:
    return _hanging([("• ", item) for item in node.items], columns, style)


def _numbers(node: NumberedListNode, columns: int, style: OilStyle) -> Lines:
    digits = len(str(len(node.items)))
    return _hanging([(f"{at:>{digits}}. ", item) for at, item in enumerate(node.items, 1)], columns, style)


def _hanging(items: Sequence[tuple[str, str]], columns: int, style: OilStyle) -> Lines:
    return [
        line
        for mark, item in items
        for line in hang(StyledText(mark, style), [StyledText(clean(item), style)], columns)
    ]


def hang(mark: StyledText, spans: Iterable[StyledText], columns: int) -> Lines:
    """A text behind a mark; its other lines begin below its first one."""
    indent = cell_len(mark.text)
    if indent > columns // 2:
        return wrap([mark, *spans], columns)
    first, *more = wrap(spans, columns - indent)
    return [(mark, *first), *((StyledText(" " * indent, mark.style), *line) for line in more)]


def _pair(node: KeyValueNode, columns: int, style: OilStyle) -> Lines:
    return hang(
        StyledText(f"{_one_line(node.key)}: ", BOLD.over(style)), [StyledText(clean(node.value), style)], columns
    )


def _one_line(text: str) -> str:
    return " ".join(clean(text).split("\n"))


DRAWN: dict[type[OilNode], Callable[[Any, int, OilStyle], Lines]] = {
    TextNode: _text, BadgeNode: _badge, ProgressNode: _progress, DividerNode: _divider, RuleNode: _rule, InputNode: _input,
    PopupNode: _popup, BulletListNode: _bullets, NumberedListNode: _numbers, KeyValueNode: _pair,
}  # fmt: skip
