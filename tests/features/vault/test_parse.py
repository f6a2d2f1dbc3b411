"""What is read of one note."""

from __future__ import annotations

import pytest

from cru.features.vault.notes import BlockKind, LinkKind, Note
from cru.features.vault.parse import parse_note


def read(text: str) -> Note:
    return parse_note("folder/A note.md", text.encode())


@pytest.mark.parametrize(
    ("text", "links"),
    [
        ("[[A]]", [("wikilink", "A", "", "", "")]),
        ("![[A]]", [("embed", "A", "", "", "")]),
        ("[[A|b c]]", [("wikilink", "A", "", "", "b c")]),
        ("[[A#B]]", [("wikilink", "A", "B", "", "")]),
        ("[[A#B#C]]", [("wikilink", "A", "B#C", "", "")]),
        ("[[A#^b]]", [("wikilink", "A", "", "b", "")]),
        ("[[#B]] [[#^b]]", [("wikilink", "", "B", "", ""), ("wikilink", "", "", "b", "")]),
        ("[[a/b/c]]", [("wikilink", "a/b/c", "", "", "")]),
        ("[[ A  B ]]", [("wikilink", "A B", "", "", "")]),
        ("[[A\nB]]", [("wikilink", "A B", "", "", "")]),
        ("[[]] [[ ]] [[|x]] [A] [A]]", []),
        ("`[[A]]` ``[[B]] ` [[C]]``", []),
        ("    [[A]]", []),
        ("```\n[[A]]\n```\n[[B]]", [("wikilink", "B", "", "", "")]),
        ("```\n[[A]]", []),
        ("- [[A]]\n\n      [[B]]", [("wikilink", "A", "", "", "")]),
        ("$[[A]]$ $$\n[[B]]\n$$", []),
        ("<!-- [[A]] -->", []),
        ("[x](b.md)", [("markdown", "b.md", "", "", "")]),
        ("[x](<b c.md#d>) [x](b%20c.MD)", [("markdown", "b c.md", "d", "", ""), ("markdown", "b c.MD", "", "", "")]),
        ("[x](https://a.b/c.md) [x](//a/c.md) [x](file:c.md) <c.md> ![x](c.md) [x](c.png)", []),
        ("| a |\n|---|\n| [[A\\|b]] |", [("wikilink", "A", "", "", "b")]),
        ("# [[A]]\n> [[B]]\n- [ ] [[C]]", [("wikilink", name, "", "", "") for name in "ABC"]),
    ],
)
def test_links(text: str, links: list[tuple[str, str, str, str, str]]) -> None:
    note = read(text)
    assert [(str(link.kind), link.target, link.heading, link.block, link.alias) for link in note.links] == links


def test_positions_are_those_of_the_file() -> None:
    data = "\ufeff---\r\ntitle: Ü\r\n---\r\nÄö 😀 [[Ziel|ß]]\r\n\r\n# Kopf\r\n".encode()
    note = parse_note("a.md", data)
    [link] = note.links
    assert data[link.start : link.end] == "[[Ziel|ß]]".encode() and link.line == 4
    [heading] = note.headings
    assert data[heading.start :].startswith(b"# Kopf") and (heading.line, heading.text) == (6, "Kopf")
    assert data[note.body :].startswith("Äö".encode()) and note.title == "Ü"


@pytest.mark.parametrize(
    ("text", "tags"),
    [
        ("#a #b/c #d-e #f_g", ["a", "b/c", "d-e", "f_g"]),
        ("x#a &#35; /#b \\#c ##d", []),
        ("(#a), '#b'. [#c]", ["a", "b", "c"]),
        ("`#a` [x #b](c) [[d#e]]\n\n    #f\n", []),
        ("#a #A #a/", ["a"]),
        ("#größe #日本", ["größe", "日本"]),
        ("# heading\n#no-heading", ["no-heading"]),
        ("#/ #- https://a/#b", ["-"]),
    ],
)
def test_tags(text: str, tags: list[str]) -> None:
    assert list(read(text).tags) == tags


@pytest.mark.parametrize(
    ("front", "title", "tags", "problem"),
    [
        ("---\ntitle: T\ntags: [b, '#a']\n---\n", "T", ["a", "b"], ""),
        ("---\ntags: a, b  c\n---\n", "A note", ["a", "b", "c"], ""),
        ("---\ntitle: 5\ntags: [1, x, null, [y]]\n---\n", "A note", ["1", "x"], ""),
        ("---\n---\n", "A note", [], ""),
        ("---\ntitle: T\n...\n", "T", [], ""),
        ("+++\ntitle = 'T'\ntags = ['a']\n+++\n", "T", ["a"], ""),
        (" ---\ntitle: T\n---\n", "A note", [], ""),
        ("text\n---\ntitle: T\n---\n", "A note", [], ""),
        ("---\ntitle: T\n", "A note", [], ""),
        ("---\n- a\n---\n", "A note", [], "its front matter has no keys"),
        ("---\na: [\n---\n", "A note", [], "its front matter is not YAML: line 3"),
        ("+++\na = \n+++\n", "A note", [], "its front matter is not TOML"),
        ("---\na: !!python/object:os.system x\n---\n", "A note", [], "its front matter is not YAML"),
        ("---\na: " + "x" * 70_000 + "\n---\n", "A note", [], "its front matter is larger than 64 kB"),
    ],
)
def test_front_matter(front: str, title: str, tags: list[str], problem: str) -> None:
    note = read(front + "the text [[A]]")
    assert (note.title, list(note.tags)) == (title, tags)
    assert "".join(note.problems).startswith(problem) and bool(note.problems) == bool(problem)
    assert [link.target for link in note.links] == ["A"]


def test_what_aliases_repeat_is_bounded() -> None:
    doubled = "\n".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9) if n else 'x'}]" for n in range(12))
    assert read(f"---\n{doubled}\n---\ntext").problems == ("its front matter has more than 10,000 values",)


def test_front_matter_is_in_types_of_json() -> None:
    note = read(
        "---\nd: 2026-01-02\nt: 2026-01-02T03:04:05Z\ninf: .inf\nbig: 99999999999999999999\nb: !!binary eA==\n1: {2: 3}\n---\n"
    )
    assert note.properties == {
        "d": "2026-01-02", "t": "2026-01-02T03:04:05Z", "inf": "inf", "big": "99999999999999999999", "b": "b'x'",
        "1": {"2": 3},
    }  # fmt: skip


def test_blocks_and_their_ids() -> None:
    note = read("One ^a\n\ntwo\n^b\n\n| x |\n|---|\n\n^c\n\n```\n^d\n```\n\n- item ^e\n\nnot^f\n")
    assert [(block.kind, block.id) for block in note.blocks] == [
        (BlockKind.PARAGRAPH, "a"),
        (BlockKind.PARAGRAPH, "b"),
        (BlockKind.TABLE, "c"),
        (BlockKind.CODE, ""),
        (BlockKind.LIST, "e"),
        (BlockKind.PARAGRAPH, ""),
    ]


def test_a_note_that_is_no_utf8_is_read_as_far_as_it_can_be() -> None:
    note = parse_note("a.md", b"---\ntitle: T\n---\n[[A]] \xff\xfe #tag\n")
    assert note.problems == ("it is not UTF-8 (byte 23)",)
    assert [link.target for link in note.links] == ["A"] and note.tags == ("tag",)


@pytest.mark.parametrize(
    "text", ["[" * 100_000, "[[" * 50_000, "> " * 20_000 + "x", "- " * 20_000 + "x", "*" * 100_000, "#" * 100_000]
)
def test_hostile_text_is_read(text: str) -> None:
    note = read(text)
    assert note.title == "A note" and not note.links


def test_a_link_kind_is_one_of_the_graph() -> None:
    assert [str(kind) for kind in LinkKind] == ["wikilink", "embed", "markdown"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "count"),
    [("[a:: " * 50_000, 0), ("(a:: " * 50_000, 0), ("x:: a\n" * 30_000 + "[b:: c]\n" * 30_000, 60_000)],
)
def test_fields_without_end_or_in_masses_take_no_longer_than_the_note_is_long(text: str, count: int) -> None:
    assert len(parse_note("a.md", text.encode()).fields) == count


@pytest.mark.parametrize(
    "head",
    [
        "---\na: 0x{0}\n---\n", "---\n? 0x{0}\n: a\n---\n", "---\na: [1:{1}]\n---\n", "+++\na = 0x{0}\n+++\n",
        "+++\n{2}.a = 1\n+++\n", "+++\n[{2}.a]\n+++\n", "+++\nx = {{{2}.a = 1}}\n+++\n",
    ],
)  # fmt: skip
def test_no_number_and_no_key_of_a_note_stops_the_index(head: str) -> None:
    note = parse_note(
        "a.md", (head.format("f" * 20_000, ":".join(["59"] * 9000), ".".join("a" * 20_000)) + "text [[b]]").encode()
    )
    assert [link.target for link in note.links] == ["b"]
    assert note.problems == (() if "{2}" not in head else ("its front matter has a key that is too long",))
