"""HTML as plain text: tags, scripts and styles dropped, links kept, one empty line between blocks.

A reader of our own: that of the standard library takes minutes for a mebibyte of `<a ` and fails on `<![`. It looks at each character a
fixed number of times: whatever is not closed ends at the end of the page.
"""

from __future__ import annotations

import re
from collections import Counter
from html import unescape

_SILENT = {"script", "style", "noscript", "template", "svg", "head"}
_RAW = {"script", "style"}
"""Their content is no HTML."""
_BLOCKS = {"p", "div", "br", "li", "tr", "ul", "ol", "table", "pre", "section", "article", "header", "footer", "hr"} | {
    f"h{level}" for level in range(1, 7)
}
_MARK = re.compile(r"<(?=[/!?]|[^\W\d_])")
"""Where markup may begin; any other `<` is text."""
_TAG = re.compile(
    r"""<(?P<end>/?)(?P<name>[a-zA-Z][^\s/>]*+)(?P<more>(?:=\s*+(?:"[^"]*+"|'[^']*+')|[^>])*+)>""",
)
_HREF = re.compile(r"""(?:^|[\s/"'])href\s*+=\s*+(?:"([^"]*+)"|'([^']*+)'|([^\s>]++))""", re.IGNORECASE)
_LONGEST_TAG = 8192
"""Characters of a tag in which an address is looked for."""


def plain_text(html: str) -> str:
    """The text of a page, led by its title; a link as `text (address)`."""
    page = _Page(html)
    page.read()
    lines = [" ".join(line.split()) for line in "".join(page.pieces).split("\n")]
    title = " ".join("".join(page.title).split())
    text = [title, ""] if title else []
    for line in lines:
        if line or (text and text[-1]):
            text.append(line)
    return "\n".join(text).strip()


class _Page:
    """pieces: the text so far; title: that of the page, in pieces."""

    def __init__(self, html: str) -> None:
        self.pieces: list[str] = []
        self.title: list[str] = []
        self._html = html
        self._silent: list[str] = []
        self._depth: Counter[str] = Counter()
        self._link = ""
        self._in_title = False

    def read(self) -> None:
        at, html = 0, self._html
        while at < len(html):
            match = _MARK.search(html, at)
            mark = match.start() if match else len(html)
            self._text(html[at:mark])
            at = self._markup(mark) if mark < len(html) else mark

    def _markup(self, at: int) -> int:
        """What stands at a `<`; where it ends."""
        html = self._html
        if html.startswith("<!--", at):
            return self._behind("-->", at + 4)
        if html.startswith(("<!", "<?"), at):
            return self._behind(">", at)
        tag = _TAG.match(html, at)
        if tag is None:
            if html.startswith("</", at) or html[at + 1 : at + 2].isalpha():
                return self._behind(">", at)  # no tag, or one that never ends
            self._text("<")
            return at + 1
        name = tag["name"].lower()
        if tag["end"]:
            self._close(name)
            return tag.end()
        self._open(name, tag["more"])
        if name in _RAW:
            end = re.compile(f"</{name}", re.IGNORECASE).search(html, tag.end())
            return end.start() if end else len(html)
        return tag.end()

    def _behind(self, mark: str, start: int) -> int:
        at = self._html.find(mark, start)
        return len(self._html) if at < 0 else at + len(mark)

    def _open(self, tag: str, more: str) -> None:
        self._in_title = tag == "title" and not self.title
        if tag in _SILENT:
            self._silent.append(tag)
            self._depth[tag] += 1
        elif tag == "body":  # a head that was never closed
            self._silent.clear()
            self._depth.clear()
        elif tag in _BLOCKS:
            self.pieces.append("\n- " if tag == "li" else "\n")
        elif tag == "a":
            address = _HREF.search(more[:_LONGEST_TAG])
            self._link = unescape(address[1] or address[2] or address[3] or "") if address else ""

    def _close(self, tag: str) -> None:
        if tag == "title":
            self._in_title = False
        elif self._depth[tag]:
            closed = ""
            while closed != tag:
                closed = self._silent.pop()
                self._depth[closed] -= 1
        elif tag in _BLOCKS:
            self.pieces.append("\n")
        elif tag == "a" and self._link and not self._link.startswith(("#", "javascript:")):
            self.pieces.append(f" ({self._link})")
            self._link = ""

    def _text(self, text: str) -> None:
        if self._in_title:
            self.title.append(unescape(text))
        elif text and not self._silent:
            self.pieces.append(unescape(text).replace("\n", " "))
