"""A view as lines of so many columns. Columns stretch over all that there are, rows share them; what does not fit beside each other stands
below each other. It ends for every view: what a node asks for is bounded by what there is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from msgspec.structs import replace

from cru.core.base.values.oil.leaves import DIM, PERCENT, STILL, Lines, draw_leaf, fit, inline_spans, repeated
from cru.core.base.values.oil.model import (
    PLAIN,
    ColumnNode,
    DividerNode,
    EmptyNode,
    FragmentNode,
    OilNode,
    OilStyle,
    ProgressNode,
    RowNode,
    RuleNode,
    SpacerNode,
    SpinnerNode,
    TextNode,
)
from cru.core.base.values.oil.wrap import Line, StyledText, columns_of, wrap

MOST_LINES = 5_000
"""Of one view."""
MOST_SPACE = 16
"""Of a gap, a padding, a margin."""
LEAST_SHARE = 8
"""Columns below which what stands beside each other is moved below each other."""
BORDERS = {"single": "┌─┐│└┘", "double": "╔═╗║╚╝", "rounded": "╭─╮│╰╯", "heavy": "┏━┓┃┗┛"}
GROWING = (SpacerNode, RuleNode)
_VAST = 100_000


def lay_out(node: OilNode, columns: int, rows: int | None = None, frame: int = STILL) -> Lines:
    """The lines of a view, none wider than `columns` (at least 1). rows: how many there are to be, if spacers are
    to fill them; frame: which picture of a spinner."""
    lines = _Layout(frame).draw(node, max(columns, 1), PLAIN, rows)
    if len(lines) <= MOST_LINES:
        return lines
    return [
        *lines[:MOST_LINES],
        *wrap([StyledText(f"[cut here: more than {MOST_LINES:,} lines]", DIM)], max(columns, 1)),
    ]


def is_moving(node: OilNode) -> bool:
    """Whether it has a spinner."""
    return isinstance(node, SpinnerNode) or any(map(is_moving, node.children))


class _Layout:
    """One drawing. Widths are measured once."""

    def __init__(self, frame: int) -> None:
        self._frame = frame
        self._widths: dict[int, int] = {}

    def draw(self, node: OilNode, columns: int, around: OilStyle, rows: int | None = None) -> Lines:
        style = node.style.over(around)
        if not node.is_boxed:
            lines = self._content(node, columns, style, rows)
            return _filled(lines, columns, style) if node.children and style.bg else lines
        return self._boxed(node, columns, style, around, rows)

    def _boxed(self, node: OilNode, columns: int, style: OilStyle, around: OilStyle, rows: int | None) -> Lines:
        edges = _edges(node)
        inner = columns - edges
        if inner < 1:  # there is no room for a frame
            return self._content(node, columns, style, rows)
        if not node.children and not node.border:
            inner = min(inner, max(self.measure(node) - edges, 1))
        lines = self._content(node, inner, style, None if rows is None else max(rows - edges, 0))
        if rows is not None:
            lines += [()] * (rows - edges - len(lines))
        return _enclosed(lines, node, inner, style, around)

    def _content(self, node: OilNode, columns: int, style: OilStyle, rows: int | None) -> Lines:
        if isinstance(node, RowNode):
            return self._row(node, columns, style, rows)
        if isinstance(node, (ColumnNode, FragmentNode)):
            return self._column(node, columns, style, rows)
        return draw_leaf(node, columns, style, self._frame)

    def measure(self, node: OilNode) -> int:
        """How many columns it takes if there is room."""
        width = self._widths.get(id(node))
        if width is None:
            width = self._widths[id(node)] = min(self._measure(node), _VAST)
        return width

    def _measure(self, node: OilNode) -> int:
        frame = _edges(node)
        if isinstance(node, RowNode):
            parts = list(_flat(node))
            return frame + sum(map(self.measure, parts)) + max(len(parts) - 1, 0) * min(node.gap, MOST_SPACE)
        if isinstance(node, (ColumnNode, FragmentNode)):
            return frame + max((self.measure(child) for child in _flat(node)), default=0)
        if isinstance(node, ProgressNode):
            return frame + node.width + PERCENT
        if isinstance(node, DividerNode):
            return frame + node.width
        if isinstance(node, RuleNode):
            return frame + 1
        return frame + max(map(columns_of, draw_leaf(node, _VAST, PLAIN, STILL)), default=0)

    # below each other -----------------------------------------------------------------------------------------------------------------

    def _column(self, node: OilNode, columns: int, style: OilStyle, rows: int | None) -> Lines:
        parts = list(_flat(node))
        gap = min(node.gap, MOST_SPACE)
        blocks = [self._aligned(part, columns, style, node.align) for part in parts]
        free = 0 if rows is None else max(rows - sum(map(len, blocks)) - gap * max(len(blocks) - 1, 0), 0)
        spaces = _spaces(parts, free, node.justify)
        lines: Lines = [()] * spaces[0]
        for at, block in enumerate(blocks):
            lines += block
            lines += [()] * (spaces[at + 1] + (gap if at + 1 < len(blocks) else 0))
            if len(lines) > MOST_LINES:
                break
        return lines[: MOST_LINES + 1]  # what is too long is told at the end

    def _aligned(self, part: OilNode, columns: int, style: OilStyle, align: str) -> Lines:
        if align not in ("start", "center", "end"):
            return self.draw(part, columns, style)
        width = max(min(self.measure(part), columns), 1)
        indent = {"start": 0, "center": (columns - width) // 2, "end": columns - width}[align]
        lines = self.draw(part, width, style)
        return [(StyledText(" " * indent, style), *line) if line else line for line in lines] if indent else lines

    # beside each other ----------------------------------------------------------------------------------------------------------------

    def _row(self, node: OilNode, columns: int, style: OilStyle, rows: int | None) -> Lines:
        parts = list(_flat(node))
        if not parts:
            return []
        gap = min(node.gap, MOST_SPACE)
        widths = [self.measure(part) for part in parts]
        free = columns - sum(widths) - gap * (len(parts) - 1)
        if free < 0 or any(isinstance(part, TextNode) and "\n" in part.text for part in parts):
            flowing = self._flowing(parts, columns, style, gap)
            if flowing is not None:
                return flowing
        if free < 0:
            widths, free = _shares(widths, columns - gap * (len(parts) - 1)), 0
        if not widths:
            return self._column(replace(node, gap=0), columns, style, rows)
        for at, share in enumerate(_spread(free, [isinstance(part, GROWING) for part in parts])):
            widths[at] += share
            free -= share
        return self._beside(node, parts, widths, _spaces((), free, node.justify, len(parts)), (style, rows))

    def _flowing(self, parts: Sequence[OilNode], columns: int, style: OilStyle, gap: int) -> Lines | None:
        """As one text, if nothing in it has a place of its own."""
        spans: list[StyledText] = []
        for part in parts:
            inline = inline_spans(part, style, self._frame)
            if inline is None:
                return None
            spans += [StyledText(" " * gap, style)] if spans and gap else []
            spans += inline
        return wrap(spans, columns)

    def _beside(
        self,
        node: OilNode,
        parts: Sequence[OilNode],
        widths: Sequence[int],
        spaces: Sequence[int],
        around: tuple[OilStyle, int | None],
    ) -> Lines:
        style, rows = around
        blocks = [
            self.draw(part, max(width, 1), style) if width else [] for part, width in zip(parts, widths, strict=True)
        ]
        height = max(rows or 0, *map(len, blocks))
        gap = min(node.gap, MOST_SPACE)
        for at, part in enumerate(parts):
            if (
                part.is_boxed
                and node.align in ("", "stretch")
                and len(blocks[at]) < height
                and widths[at] > _edges(part)
            ):
                blocks[at] = _stretched(blocks[at], part, height)
            blocks[at] = _lowered(blocks[at], height, node.align)
        lines: Lines = []
        for row in range(height):
            line: list[StyledText] = [StyledText(" " * spaces[0], style)] if spaces[0] else []
            for at, block in enumerate(blocks):
                line += block[row]
                behind = spaces[at + 1] + (gap if at + 1 < len(blocks) else 0)
                rest = widths[at] - columns_of(block[row]) + behind
                line += [StyledText(" " * rest, style)] if rest > 0 else []
            lines.append(tuple(line))
        return lines


def _edges(node: OilNode) -> int:
    """Columns, and rows, that its frame takes."""
    return 2 * (min(node.margin, MOST_SPACE) + min(node.padding, MOST_SPACE) + bool(node.border))


def _enclosed(lines: Lines, node: OilNode, inner: int, style: OilStyle, around: OilStyle) -> Lines:
    """Lines of `inner` columns with what stands around them."""
    margin, padding = min(node.margin, MOST_SPACE), min(node.padding, MOST_SPACE)
    empty = [(StyledText(" " * (inner + 2 * padding), style),)] * padding
    lines = [*empty, *(_padded(line, inner, padding, style) for line in lines), *empty]
    if node.border:
        lines = _framed(lines, BORDERS[node.border], inner + 2 * padding, style)
    side = (StyledText(" " * margin, around),) if margin else ()
    return [*[()] * margin, *((*side, *line) for line in lines), *[()] * margin]


def _stretched(block: Lines, node: OilNode, height: int) -> Lines:
    """What was drawn of it, with empty lines within its frame."""
    below = min(node.margin, MOST_SPACE) + bool(node.border)
    last = block[len(block) - 1 - below]
    edges = (int(node.margin > 0), len(last) - 1) if node.border else ()
    empty = tuple(
        span if at in edges else StyledText(" " * columns_of((span,)), span.style) for at, span in enumerate(last)
    )
    cut = len(block) - below
    return [*block[:cut], *[empty] * (height - len(block)), *block[cut:]]


def _flat(node: OilNode) -> Iterator[OilNode]:
    """Its children, those of fragments among them."""
    for child in node.children:
        if isinstance(child, FragmentNode) and not child.is_boxed and child.style == PLAIN:
            yield from _flat(child)
        elif not isinstance(child, EmptyNode):
            yield child


def _shares(widths: Sequence[int], columns: int) -> list[int]:
    """What each gets of too few columns: the narrow ones what they take, the others the same; none if that is too little."""
    shares, left, rest = list(widths), columns, len(widths)
    for at in sorted(range(len(widths)), key=lambda at: widths[at]):
        share = max(left, 0) // rest
        if share < min(widths[at], LEAST_SHARE):
            return []
        shares[at] = min(widths[at], share)
        left, rest = left - shares[at], rest - 1
    return shares


def _spread(free: int, growing: Sequence[bool]) -> list[int]:
    """The columns, or rows, that are left, among those that grow."""
    count = sum(growing)
    shares, at = [], 0
    for grows in growing:
        shares.append((free * (at + 1) // count - free * at // count) if grows else 0)
        at += grows
    return shares


def _spaces(parts: Sequence[OilNode], free: int, justify: str, count: int = 0) -> list[int]:
    """What is left free before, between and behind."""
    count = count or len(parts)
    growing = _spread(free, [isinstance(part, SpacerNode) for part in parts])
    if any(growing):
        return [0, *growing]
    weights = _WEIGHTS.get(justify, _WEIGHTS["start"])(count)
    total = sum(weights)
    edges = [0]
    for weight in weights:
        edges.append(edges[-1] + weight)
    return (
        [free * after // total - free * before // total for before, after in pairwise(edges)]
        if total
        else [0] * (count + 1)
    )


_WEIGHTS = {
    "start": lambda count: [0] * count + [1], "end": lambda count: [1] + [0] * count, "center": lambda count: [1] + [0] * (count - 1) + [1],
    "space_between": lambda count: [0] + [1] * (count - 1) + [0], "space_around": lambda count: [1] + [2] * (count - 1) + [1],
    "space_evenly": lambda count: [1] * (count + 1),
}  # fmt: skip


def _lowered(block: Lines, height: int, align: str) -> Lines:
    free = height - len(block)
    above = {"end": free, "center": free // 2}.get(align, 0)
    return [*[()] * above, *block, *[()] * (free - above)]


def _filled(lines: Lines, columns: int, style: OilStyle) -> Lines:
    return [_padded(line, columns, 0, style) for line in lines]


def _padded(line: Line, columns: int, padding: int, style: OilStyle) -> Line:
    line = fit(line, columns)
    rest = columns - columns_of(line) + padding
    return (
        *((StyledText(" " * padding, style),) if padding else ()),
        *line,
        *((StyledText(" " * rest, style),) if rest else ()),
    )


def _framed(lines: Lines, border: str, columns: int, style: OilStyle) -> Lines:
    top_left, across, top_right, side, bottom_left, bottom_right = tuple(border)
    bar = repeated(across, columns)
    edge = StyledText(side, style)
    return [
        (StyledText(f"{top_left}{bar}{top_right}", style),),
        *((edge, *line, edge) for line in lines),
        (StyledText(f"{bottom_left}{bar}{bottom_right}", style),),
    ]


COLUMNS = 80


def plain_text(node: OilNode, columns: int = COLUMNS) -> str:
    """Its lines, without blanks at their ends."""
    lines = ("".join(span.text for span in line).rstrip() for line in lay_out(node, columns))
    return "\n".join(lines).strip("\n")
