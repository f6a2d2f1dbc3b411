"""HTML as plain text: tags, scripts and styles dropped, links kept, one empty line between blocks."""

from __future__ import annotations

from html.parser import HTMLParser

_SILENT = {"script", "style", "noscript", "template", "svg", "head"}
_BLOCKS = {"p", "div", "br", "li", "tr", "ul", "ol", "table", "pre", "section", "article", "header", "footer", "hr"} | {
    f"h{level}" for level in range(1, 7)
}


def plain_text(html: str) -> str:
    """The text of a page, led by its title; a link as `text (address)`."""
    page = _Page()
    page.feed(html)
    page.close()
    lines = [" ".join(line.split()) for line in "".join(page.found).split("\n")]
    title = " ".join(page.title.split())
    text = [title, ""] if title else []
    for line in lines:
        if line or (text and text[-1]):
            text.append(line)
    return "\n".join(text).strip()


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.title = ""
        self._silent: list[str] = []
        self._link = ""
        self._in_title = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._in_title = tag == "title" and not self.title
        if tag in _SILENT:
            self._silent.append(tag)
        elif tag == "body":  # a head that was never closed
            self._silent.clear()
        elif tag in _BLOCKS:
            self.found.append("\n- " if tag == "li" else "\n")
        elif tag == "a":
            self._link = dict(attrs).get("href") or ""

    def handle_endtag(self, tag: str) -> None:
        if tag == "title":
            self._in_title = False
        elif tag in self._silent:
            while self._silent.pop() != tag:
                pass
        elif tag in _BLOCKS:
            self.found.append("\n")
        elif tag == "a" and self._link and not self._link.startswith(("#", "javascript:")):
            self.found.append(f" ({self._link})")
            self._link = ""

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self.title += data
        elif not self._silent:
            self.found.append(data if "\n" not in data else data.replace("\n", " "))
