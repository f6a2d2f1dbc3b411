"""Markdown for a terminal: it changes how a text looks and takes no word of it away. Loads rich, with the first block."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.markdown import CodeBlock, ListItem, Markdown, MarkdownElement, TableElement, TextElement
from rich.segment import Segment, Segments
from rich.table import Table
from rich.text import Text

from cru.faces.cli.console import printable


class LineConsole(Console):
    """No segment that it renders goes on behind a newline: rich would copy what is left of it for each of its lines."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            text, style, control = segment
            if 0 <= text.find("\n") < len(text) - 1 and not control:
                yield from (Segment(line, style) for line in _lines(text))
            else:
                yield segment


def _lines(text: str) -> Iterator[str]:
    """Its lines, with their newlines. Nothing else ends one."""
    *whole, rest = text.split("\n")
    yield from (f"{line}\n" for line in whole)
    if rest:
        yield rest


def print_markdown(console: Console, text: str) -> None:
    """Print a block of Markdown. What rendering would hide (cells beyond a table's head, columns for which the terminal is too narrow,
    lists nested too deep) is a reason to print the block as it was written."""
    lines = console.render_lines(_MarkdownBlock(text), pad=False, new_lines=True)
    segments = [segment for line in lines for segment in line]
    hidden = _weight(text) - _weight("".join(segment.text for segment in segments))
    console.print(Text(text) if hidden else Segments(segments))


def _weight(text: str) -> Counter[str]:
    """How often each character stands there that is no mark of Markdown: words may be broken into lines anywhere."""
    return Counter(char for char in text if char.isalnum() or char in "<&")


class _VerbatimParser(MarkdownIt):
    """Addresses stay as they were written."""

    def normalizeLink(self, url: str) -> str:
        return url

    def normalizeLinkText(self, link: str) -> str:
        return link


class _Code(CodeBlock):
    """Its first line, the language, stands above."""

    about = ""

    @classmethod
    def create(cls, markdown: Markdown, token: Token) -> CodeBlock:
        code = cls(token.info.partition(" ")[0] or "text", markdown.code_theme)
        code.about = token.info.strip()
        return code

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if self.about:
            yield Text(self.about, "dim")
        yield from super().__rich_console__(console, options)


class _Literal(TextElement):
    """Line by line as it was written."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        self.text.rstrip()
        yield self.text


class _ListItemElement(ListItem):
    """Numbered as it was written."""

    number = 0

    @classmethod
    def create(cls, markdown: Markdown, token: Token) -> MarkdownElement:
        item = cls()
        item.number = int(token.info or 0)
        return item

    def render_number(self, console: Console, options: ConsoleOptions, number: int, last_number: int) -> RenderResult:
        return super().render_number(console, options, self.number, max(self.number, last_number))


class _Table(TableElement):
    """Long words are broken, not cut."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for table in super().__rich_console__(console, options):
            if isinstance(table, Table):
                for column in table.columns:
                    column.overflow = "fold"
            yield table


class _MarkdownBlock(Markdown):
    elements = {
        **Markdown.elements,
        "fence": _Code,
        "html_block": _Literal,
        "list_item_open": _ListItemElement,
        "table_open": _Table,
    }

    def __init__(self, text: str) -> None:
        super().__init__("")
        # Both would put something else in the place of what was written.
        parser = _VerbatimParser().enable(["strikethrough", "table"]).disable(["entity", "reference"])
        self.parsed = parser.parse(text)
        for token in self.parsed:
            if token.children:
                token.children = list(_spelled_out(token.children))


def _spelled_out(tokens: list[Token]) -> Iterator[Token]:
    """HTML as text; links and images with their addresses. Lines with HTML in them stay lines."""
    kept = any(token.type == "html_inline" for token in tokens)
    link = Token("", "", 0)
    for token in tokens:
        if token.type == "html_inline":
            yield _text(token.content)
        elif token.type == "image":
            yield _text(f"🌆 {token.content}{_address(token, 'src')}")
        elif token.type == "softbreak" and kept:
            yield Token("hardbreak", "br", 0)
        elif token.type == "link_open":
            link = token
            yield token
            yield _text("<" if token.info == "auto" else "")
        elif token.type == "link_close":
            yield _text(">" if link.info == "auto" else "")
            yield token
            yield _text("" if link.info == "auto" else _address(link, "href"))
        else:
            yield token


def _address(token: Token, key: str) -> str:
    """Where it leads, and its title; in what the terminal follows, too, nothing invisible is left."""
    token.attrs[key] = address = printable(str(token.attrs.get(key, "")))
    title = f' "{printable(str(token.attrs["title"]))}"' if "title" in token.attrs else ""
    return f" ({address}{title})"


def _text(content: str) -> Token:
    return Token("text", "", 0, content=content)
