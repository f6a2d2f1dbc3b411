from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.core.tools.box import Box, in_child, unprivileged

from cru.core.tools import search


@pytest.fixture
def box(tmp_path: Path) -> Box:
    return Box(tmp_path)


def test_a_folder_is_listed_sorted_with_sizes_slashes_and_links(box: Box) -> None:
    box.file("b.txt", "12345")
    box.file("a/x")
    box.file(".hidden")
    (box.root / "link").symlink_to("nowhere")
    assert box.text("ls") == ".hidden\t0\na/\nb.txt\t5\nlink -> nowhere"
    assert box.text("ls", path="a") == "x\t0"


def test_an_empty_folder_is_said_to_be_empty(box: Box) -> None:
    assert box.text("ls") == "(empty folder)"


def test_a_listing_ends_at_a_thousand(box: Box) -> None:
    for i in range(1003):
        box.file(f"{i:04}")
    lines = box.text("ls").splitlines()
    assert lines[-2:] == ["0999\t0", "[3 more; `glob` finds some of them]"]


def test_a_name_that_is_not_utf8_is_shown_replaced(box: Box) -> None:
    (Path(os.fsdecode(os.fsencode(box.root) + b"/caf\xe9"))).write_text("")
    assert box.text("ls") == "caf\ufffd\t0"
    assert box.text("glob", pattern="*") == "caf\ufffd"


def test_what_is_no_folder_is_refused(box: Box) -> None:
    box.file("file")
    for tool, more in (("ls", {}), ("glob", {"pattern": "*"})):
        assert box.error(tool, path="file", **more) == "`file` is not a folder"
        assert box.error(tool, path="fil", **more).endswith("did you mean `file`?")


@pytest.mark.slow
def test_a_folder_that_may_not_be_read_says_so(tmp_path: Path) -> None:
    box = Box(tmp_path)
    box.file("closed/x").parent.chmod(0)
    assert in_child(unprivileged(), tmp_path, "ls", path="closed")[0] == (
        "ToolError: cannot list `closed`: Permission denied"
    )


def test_files_are_found_newest_first_without_what_git_ignores(box: Box) -> None:
    for age, name in enumerate(["new.py", "src/middle.py", "src/old.py", "build/out.py"]):
        os.utime(box.file(name), (1_000_000 - age, 1_000_000 - age))
    box.file(".gitignore", "build/\n")
    assert box.text("glob", pattern="**/*.py").splitlines() == ["new.py", "src/middle.py", "src/old.py"]
    assert box.text("glob", pattern="*.py", path="src").splitlines() == ["src/middle.py", "src/old.py"]
    assert box.text("glob", pattern="*.rs") == "(no files)"


def test_files_outside_the_project_are_named_by_their_whole_path(box: Box, tmp_path: Path) -> None:
    (tmp_path / "project-two").mkdir()
    (tmp_path / "project-two/a").write_text("")
    assert box.text("glob", pattern="*", path="../project-two") == f"{tmp_path.resolve()}/project-two/a"


def test_at_most_a_hundred_files_are_shown(box: Box) -> None:
    for i in range(105):
        box.file(f"{i}.py")
    lines = box.text("glob", pattern="*.py").splitlines()
    assert len(lines) == 101
    assert lines[-1] == "[5 more; only the newest 100 are shown]"


def test_only_the_files_that_are_shown_are_put_into_words(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    relative: list[str] = []
    relpath = os.path.relpath

    def noting(path: str, start: Path) -> str:
        relative.append(path)
        return relpath(path, start)

    monkeypatch.setattr(os.path, "relpath", noting)
    for i in range(300):
        os.utime(box.file(f"{i}.py"), (1_000_000 - i, 1_000_000 - i))
    lines = box.text("glob", pattern="*.py").splitlines()
    assert lines == [*(f"{i}.py" for i in range(100)), "[200 more; only the newest 100 are shown]"]
    assert len(relative) == 100


@pytest.mark.slow
def test_a_folder_that_may_not_be_read_is_passed_over(tmp_path: Path) -> None:
    box = Box(tmp_path)
    box.file("closed/x").parent.chmod(0)
    box.file("open/y")
    assert in_child(unprivileged(), tmp_path, "glob", pattern="**/*")[0] == "open/y"


def test_a_search_that_takes_too_long_gives_what_it_has(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    box.file("a/b")
    monkeypatch.setattr(search, "SECONDS", -1.0)
    assert "is not complete" in box.text("glob", pattern="**")


def test_a_cancelled_search_stops(box: Box) -> None:
    async def main() -> None:
        task = asyncio.create_task(box.acall("glob", pattern="**", path="/usr"))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    box.file("x")
    asyncio.run(main())  # it would wait for the thread to end


@pytest.mark.parametrize("pattern", ["../*", "/etc/*"])
def test_a_pattern_may_not_lead_out_of_its_folder(box: Box, pattern: str) -> None:
    assert "must stay inside `path`" in box.error("glob", pattern=pattern)


def test_what_may_not_be_read_is_not_found_and_of_a_listing_s_entries_only_the_name_is_shown(
    box: Box, tmp_path: Path
) -> None:
    box.file(".env", "x")
    box.file("src/ask", "x")
    box.file("src/a", "x")
    (box.root / "link").symlink_to("src/ask")
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "id").write_text("x")
    box.forbid(".env", ask=("src/ask",))
    unasked = "not shown: reading them needs a question; to ask it, give the file or its folder as the path]"
    denied = "[1 file left out: rules forbid to read them]"
    assert box.text("glob", pattern="**") == f"src/a\n{denied}\n[2 files {unasked}"
    assert box.text("glob", pattern="*.py") == "(no files)"
    assert box.text("glob", pattern="*", path="src") == f"src/a\n[1 file {unasked}"
    assert box.text("glob", pattern="**/i*", path="..") == f"(no files)\n[1 file {unasked}"
    assert box.text("glob", pattern="*", path="../.ssh") == f"{tmp_path.resolve()}/.ssh/id"
    listed = [line.split("\t") for line in box.text("ls").splitlines()]
    assert listed == [
        [".env", "[rules forbid to read it]"],
        ["link", "[reading it needs a question]"],
        ["src/"],
    ]
    assert [".ssh", "[reading it needs a question]"] in [
        line.split("\t") for line in box.text("ls", path="..").splitlines()
    ]
    assert box.text("ls", path="../.ssh") == "id\t1"


def test_folders_in_which_nothing_can_match_are_not_looked_into(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    for i in range(50):
        box.file(f"{i}/in/a.py")
    box.file("src/in/a.py")
    box.file("src/a.py")
    looked_into: list[str] = []
    scandir = os.scandir

    def noting(path: str) -> Iterator[os.DirEntry[str]]:
        looked_into.append(os.path.relpath(path, box.root))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", noting)
    assert box.text("glob", pattern="{src,doc}/*.py") == "src/a.py"
    assert looked_into == [".", "src"]
    looked_into.clear()
    assert box.text("glob", pattern="*.md") == "(no files)"
    assert looked_into == ["."]
    looked_into.clear()
    assert box.text("glob", pattern="src/**/in/*") == "src/in/a.py"
    assert looked_into == [".", "src", "src/in"]
