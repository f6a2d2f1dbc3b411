"""`cru vault graph`: the notes and their links as one HTML file that needs no network, or as an SVG."""

from __future__ import annotations

from html import escape
from pathlib import Path

import msgspec
from msgspec import Struct

from cru.core.base.files.atomic import replace_file
from cru.faces.cli.vault.layout import lay_out
from cru.features.vault import VaultError
from cru.features.vault.vault import Vault

PAGE = Path(__file__).with_name("graph.html")
MOST = {"html": 5_000, "svg": 1_000}
"""Notes that are drawn; of more, those with the most links."""
COLOURS = ("#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#76b7b2", "#edc948", "#b07aa1", "#9c755f")
LABELLED = 150
"""Notes of an SVG that have their title beside them: those with the most links."""


class DrawnNote(Struct, frozen=True):
    """title: "#name" of a tag; group: the folder of a note, "#" for tags; links: how many"""

    title: str
    path: str
    group: str
    links: int


class Drawing(Struct, frozen=True):
    """links: pairs of places in `notes`; left_out: notes that are not drawn"""

    name: str
    notes: list[DrawnNote]
    links: list[tuple[int, int]]
    left_out: int


def write_graph(vault: Vault, file: Path, *, is_svg: bool) -> dict[str, int]:
    """Write the file; how many notes and links it shows. Raises VaultError."""
    drawing = draw(vault, MOST["svg" if is_svg else "html"])
    text = as_svg(drawing) if is_svg else as_page(drawing)
    try:
        replace_file(file, text.encode("utf-8", "replace"), make_folders=True, in_place=True)
    except OSError as error:
        raise VaultError(
            f"{file} cannot be written: {error.strerror or error}", "-o FILE chooses another one"
        ) from error
    notes = sum(not note.title.startswith("#") or bool(note.path) for note in drawing.notes)
    links = sum(bool(drawing.notes[end].path) for _, end in drawing.links)  # the others lead to tags
    return {"notes": notes, "links": links, "left_out": drawing.left_out}


def draw(vault: Vault, most: int) -> Drawing:
    """Notes with their links, and tags as notes of their own."""
    notes = vault.notes()
    linked = vault.linked(note.id for note in notes)
    degree = {note.id: len(linked[note.id]) for note in notes}
    for others in linked.values():
        for other in others:
            degree[other] += 1
    kept = sorted(notes, key=lambda note: (-degree[note.id], note.path))[:most]
    place = {note.id: at for at, note in enumerate(kept)}
    drawn = [DrawnNote(note.title, note.path, note.path.rpartition("/")[0], degree[note.id]) for note in kept]
    links = [(place[id], place[other]) for id in place for other in sorted(linked[id]) if other in place]
    for tag, ids in vault.tags().items():
        here = [place[id] for id in ids if id in place]
        if here:
            links += [(at, len(drawn)) for at in here]
            drawn.append(DrawnNote(f"#{tag}", "", "#", len(here)))
    return Drawing(vault.name, drawn, links, len(notes) - len(kept))


def as_page(drawing: Drawing) -> str:
    """What notes say is data in it, never markup."""
    data = msgspec.json.encode(drawing).decode()
    for char in "<>&\u2028\u2029":
        data = data.replace(char, f"\\u{ord(char):04x}")
    head, _, rest = PAGE.read_text(encoding="utf-8").partition("@DATA@")
    return head.replace("@TITLE@", escape(drawing.name)) + data + rest


def as_svg(drawing: Drawing) -> str:
    places = lay_out(len(drawing.notes), drawing.links)
    width = max((x for x, _ in places), default=0) + 120
    height = max((y for _, y in places), default=0) + 40
    groups = {name: at for at, name in enumerate(sorted({note.group for note in drawing.notes}))}
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" font-family="sans-serif" font-size="9">',
        f"<title>{_xml(drawing.name)}</title>",
        f'<rect width="{width:.0f}" height="{height:.0f}" fill="white"/>',
        '<g stroke="#bbb" stroke-width="0.7">',
    ]
    for start, end in drawing.links:
        (x1, y1), (x2, y2) = places[start], places[end]
        lines.append(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>')
    lines.append("</g>")
    for at, (note, (x, y)) in enumerate(zip(drawing.notes, places, strict=True)):
        radius = 3 + min(note.links, 50) ** 0.5
        colour = COLOURS[groups[note.group] % len(COLOURS)]
        lines.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" fill="{colour}"><title>{_xml(note.path or note.title)}</title></circle>'
        )
        if at < LABELLED:
            lines.append(f'<text x="{x + radius + 2:.1f}" y="{y + 3:.1f}">{_xml(note.title[:40])}</text>')
    return "\n".join([*lines, "</svg>", ""])


def _xml(text: str) -> str:
    """Control characters are not allowed in XML at all."""
    return escape("".join(char if char >= " " and char not in "\ufffe\uffff" else "\ufffd" for char in text))
