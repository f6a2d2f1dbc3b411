"""The pages lead to files and headings that exist, and so do code and prose that name a page."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from tests.kit.links import anchors, links, wrong_links

ROOT = Path(__file__).parents[2]


def project(root: Path, texts: dict[str, str]) -> Path:
    """Return a checkout with two pages and these files."""
    for name, text in {
        "docs/undo.md": "# Undo\n\n## What counts\n",
        "docs/decisions/undo.md": "# Why\n",
        **texts,
    }.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    return root


def test_every_link_and_every_named_page_exists() -> None:
    assert wrong_links(ROOT) == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "README.md",
            "[a](docs/undo.md) [b](docs/undo.md#what-counts) [c](docs) <https://example.com/none.md> [d](mailto:a@b)",
        ),
        ("docs/a.md", "[a](undo.md) [b](../docs/undo.md) [c](decisions/undo.md#why) [d](#here)\n\n# Here\n"),
        ("docs/a.md", "`[a](none.md)`\n\n```\n[b](none.md)\n```\n\n    [c](none.md)\n"),
        ("docs/a b.md", "[a](a%20b.md) [b](<a b.md> 'title')"),
        ("docs/a.md", '[a](#place)\n\n<a id="place"></a>\n'),
        (
            "src/a.py",
            '"""docs/undo.md, docs/undo.md#what-counts; docs/*.md, docs/**/*.md, /x/docs/none.md, docs/decisions/."""',
        ),
        ("docs/decisions/0007-old.md", "Replaces decision 7. The decision. 8 of them.\n"),
    ],
    ids=["from the top", "from a folder", "in code", "blanks", "HTML", "named", "a record"],
)
def test_right_links(tmp_path: Path, name: str, text: str) -> None:
    assert wrong_links(project(tmp_path, {name: text})) == []


@pytest.mark.parametrize(
    ("name", "text", "wrong"),
    [
        ("README.md", "[a](docs/none.md)", ["docs/none.md: no such file"] * 2),
        ("CHANGELOG.md", "[a](undo.md)", ["undo.md: no such file"]),
        ("CONTRIBUTING.md", "| [a](docs/undo.md#none) |", ["docs/undo.md#none: no such heading"] * 2),
        ("AGENTS.md", "[a](#none)", ["#none: no such heading"]),
        ("docs/a.md", "[a][b]\n\n[b]: none.md", ["none.md: no such file"]),
        ("docs/a.md", "![a](none.png)", ["none.png: no such file"]),
        ("docs/a.md", "# A\n\n[a](undo.md#What-counts)", ["undo.md#What-counts: no such heading"]),
        ("docs/decisions/a.md", "[a](../decisions/0007-old.md)", ["../decisions/0007-old.md: no such file"]),
        ("docs/a.md", '<a href="none.md">a</a>\n', ["none.md: no such file"]),
        ("docs/a.md", '# A\n\nb <img alt="" src="none.svg">', ["none.svg: no such file"]),
        ("src/a.py", "# see docs/none.md", ["docs/none.md: no such file"]),
        ("src/a.lua", "-- docs/undo.md#none.", ["docs/undo.md#none: no such heading"]),
        ("src/a.py", "# docs/decisions/0067.", ["docs/decisions/0067: name the file, with .md"]),
        ("src/a.py", "# decision 67", ["decision 67: no such record; name the page"]),
        ("docs/a.md", "`docs/none.md` (decision 0067)", ["docs/none.md: no such file", "decision 0067: no such record; name the page"]),
    ],
)  # fmt: skip
def test_wrong_links(tmp_path: Path, name: str, text: str, wrong: list[str]) -> None:
    assert wrong_links(project(tmp_path, {name: text})) == [f"{name}: {each}" for each in wrong]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# What `a.b` is, and *why*\n", {"what-ab-is-and-why"}),
        ("Title\n=====\n\n## [Undo](x.md)\n", {"title", "undo"}),
        ("# A\n## A\n# A-b_c\n", {"a", "a-1", "a-b_c"}),
        ("# Über größere Dateien\n", {"über-größere-dateien"}),
        ("```\n# no heading\n```\n", set()),
    ],
)
def test_anchors(text: str, expected: set[str]) -> None:
    assert anchors(text) == expected


def test_links_as_they_are_written() -> None:
    assert list(links("[a](b.md#c) [d](<e f.md>) `[g](h)`\n\n<!-- [i](j) -->\n")) == ["b.md#c", "e f.md"]
