from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.tools.box import Box

from cru.tools import grep as grep_module
from cru.tools.protocol import ToolTimeout


@pytest.fixture
def box(tmp_path: Path) -> Box:
    """No ripgrep on its PATH."""
    box = Box(tmp_path)
    box.env["PATH"] = str(tmp_path / "bin")
    (tmp_path / "bin").mkdir()
    return box


@pytest.fixture
def ripgrep(box: Box, tmp_path: Path) -> Callable[[str], None]:
    """Puts a script on the PATH in ripgrep's place; its arguments go to the file `argv`."""

    def install(body: str) -> None:
        script = tmp_path / "bin/rg"
        script.write_text(f"#!/bin/sh\nprintf '%s\\n' \"$@\" >'{tmp_path}/argv'\n{body}\n")
        script.chmod(0o755)

    return install


def test_matches_come_as_path_line_and_text(box: Box) -> None:
    box.file("a.py", "import os\nx = 1\n")
    box.file("src/b.py", "import sys\r\n")
    assert box.text("grep", pattern="^import").splitlines() == ["a.py:1:import os", "src/b.py:1:import sys"]


def test_nothing_found_is_no_error(box: Box) -> None:
    box.file("a", "x\n")
    assert box.text("grep", pattern="y") == "(no matches)"
    box.file("empty")
    assert box.text("grep", pattern="y", path="empty") == "(no matches)"


def test_a_file_may_be_searched_alone_even_if_git_ignores_it(box: Box) -> None:
    box.file(".gitignore", "*.log\n")
    box.file("a.log", "hit\n")
    assert box.text("grep", pattern="hit") == "(no matches)"
    assert box.text("grep", pattern="hit", path="a.log") == "a.log:1:hit"


def test_a_file_outside_the_project_is_named_by_its_whole_path(box: Box, tmp_path: Path) -> None:
    (tmp_path / "other").write_text("hit\n")
    assert box.text("grep", pattern="hit", path="../other") == f"{tmp_path.resolve()}/other:1:hit"


def test_context_stands_around_the_matches_and_apart(box: Box) -> None:
    box.file("a", "".join(f"{i}\n" for i in range(1, 12)))
    text = box.text("grep", pattern="^(2|4|9)$", context=1)
    assert text == "a-1-1\na:2:2\na-3-3\na:4:4\na-5-5\n--\na-8-8\na:9:9\na-10-10"


def test_case_counts_unless_told_otherwise(box: Box) -> None:
    box.file("a", "Hit\n")
    assert box.text("grep", pattern="hit") == "(no matches)"
    assert box.text("grep", pattern="hit", ignore_case=True) == "a:1:Hit"


@pytest.mark.parametrize(
    ("include", "found"),
    [
        ("*.py", ["a.py", "src/b.py"]),
        ("*.{ts,py}", ["a.py", "src/b.py", "src/c.ts"]),
        ("src/*.py", ["src/b.py"]),
        ("/src/**", ["src/b.py", "src/c.ts"]),
        ("*.md", []),
    ],
)
def test_only_the_files_asked_for_are_searched(box: Box, include: str, found: list[str]) -> None:
    for name in ("a.py", "src/b.py", "src/c.ts"):
        box.file(name, "hit\n")
    lines = [line for line in box.text("grep", pattern="hit", include=include).splitlines() if ":" in line]
    assert [line.partition(":")[0] for line in lines] == found


def test_a_folder_in_include_is_meant_from_the_project_root(box: Box) -> None:
    box.file("src/in/a.py", "hit\n")
    assert box.text("grep", pattern="hit", path="src", include="src/**/*.py") == "src/in/a.py:1:hit"
    assert box.text("grep", pattern="hit", path="src", include="in/*.py") == "(no matches)"


@pytest.mark.parametrize("include", ["../*.py", "{a,b}" * 40])
def test_a_wrong_include_is_an_argument_error(box: Box, include: str) -> None:
    assert box.error("grep", pattern="x", include=include).startswith("`include`: ")


def test_binary_files_links_and_the_repository_are_passed_over(box: Box) -> None:
    box.file("a.bin", b"hit\0\n")
    box.file(".git/config", "hit\n")
    (box.root / "link").symlink_to("/etc/passwd")
    assert box.text("grep", pattern="hit|root") == "(no matches)"


def test_text_that_is_not_utf8_is_searched(box: Box) -> None:
    box.file("a", b"caf\xe9 hit\n")
    assert box.text("grep", pattern="hit") == "a:1:caf\ufffd hit"


def test_a_line_with_colons_and_numbers_stays_whole(box: Box) -> None:
    box.file("a:1:b", "12:34-56\n")
    assert box.text("grep", pattern="34") == "a:1:b:1:12:34-56"


def test_at_most_two_hundred_matches_are_shown(box: Box) -> None:
    box.file("a", "hit\n" * 500)
    lines = box.text("grep", pattern="hit").splitlines()
    assert len(lines) == 201
    assert lines[-1] == "[there is more; give a narrower `pattern`, `path` or `include`]"
    box.file("a", "hit\n" * 200)
    assert len(box.text("grep", pattern="hit").splitlines()) == 200


def test_a_long_line_is_cut(box: Box) -> None:
    box.file("a", "x" * 10_000 + "\n")
    assert box.text("grep", pattern="x") == "a:1:" + "x" * 500 + " [line cut]"


@pytest.mark.parametrize("pattern", ["(", "[a", "a{2,1}", "*"])
def test_a_wrong_expression_is_an_argument_error(box: Box, pattern: str) -> None:
    box.file("a", "x\n")
    assert box.error("grep", pattern=pattern).startswith("`pattern`: not a regular expression: ")


def test_a_pattern_of_several_lines_is_refused(box: Box) -> None:
    assert "matched line by line" in box.error("grep", pattern="a\nb")


def test_a_missing_path_hints_at_the_closest(box: Box) -> None:
    box.file("src/a")
    assert box.error("grep", pattern="a", path="scr").endswith("did you mean `src`?")


def test_an_expression_that_never_ends_is_ended(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    box.file("a", "a" * 60 + "\n")
    monkeypatch.setattr(grep_module, "SECONDS", 0.4)
    with pytest.raises(ToolTimeout, match=r"took longer than 0\.4 s"):
        box.call("grep", pattern="(a+)+b")


def test_a_cancelled_search_ends_at_once(box: Box) -> None:
    async def main() -> None:
        task = asyncio.create_task(box.acall("grep", pattern="(a+)+b"))
        await asyncio.sleep(0.2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    box.file("a", "a" * 60 + "\n")
    start = time.monotonic()
    asyncio.run(main())
    assert time.monotonic() - start < 1.0


def test_ripgrep_is_used_where_there_is_one(box: Box, ripgrep: Callable[[str], None], tmp_path: Path) -> None:
    ripgrep(r"printf './a.py\0003:hit\n--\nsrc/b.py\00010-near\nsrc/b.py\00011:hit:1\n'")
    text = box.text("grep", pattern="-hit", path=".", include="*.{py,ts}", ignore_case=True, context=1)
    assert text == "a.py:3:hit\n--\nsrc/b.py-10-near\nsrc/b.py:11:hit:1"
    argv = (tmp_path / "argv").read_text().splitlines()
    assert argv[-3:] == ["--regexp=-hit", "--", "."]
    assert {"--ignore-case", "--context=1", "--type-add=included:*.py", "--type-add=included:*.ts"} <= set(argv)
    assert {"--no-config", "--hidden", "--glob=!.git"} <= set(argv)


def test_ripgrep_finding_nothing_is_believed(box: Box, ripgrep: Callable[[str], None]) -> None:
    box.file("a", "hit\n")
    ripgrep("exit 1")
    assert box.text("grep", pattern="hit") == "(no matches)"


def test_ripgreps_complaint_about_the_expression_is_passed_on(box: Box, ripgrep: Callable[[str], None]) -> None:
    ripgrep("printf 'rg: regex parse error:\\n    (\\nerror: unclosed group\\n' >&2; exit 2")
    assert box.error("grep", pattern="(") == "`pattern`: not a regular expression: ( error: unclosed group"


def test_a_ripgrep_that_does_not_know_the_options_is_done_without(box: Box, ripgrep: Callable[[str], None]) -> None:
    box.file("a", "hit\n")
    ripgrep("echo 'error: unrecognized flag --no-ignore-dot' >&2; exit 2")
    assert box.text("grep", pattern="hit") == "a:1:hit"


def test_ripgrep_with_too_much_to_say_is_ended(box: Box, ripgrep: Callable[[str], None]) -> None:
    ripgrep(r"while :; do printf 'a\0001:hit\n'; done")
    box.env["PATH"] += f":{os.environ['PATH']}"
    lines = box.text("grep", pattern="hit").splitlines()
    assert len(lines) == 201
    assert lines[-1].startswith("[there is more")


def _forbid(box: Box, *names: str) -> None:
    forbidden = {str(box.root.resolve() / name) for name in names}
    box.services.why_not_read = lambda path: "a rule" if path in forbidden else ""


def test_lines_of_files_that_may_not_be_read_are_not_shown(box: Box) -> None:
    box.file("a", "hit\n")
    box.file("src/.env", "KEY=hit\n")
    _forbid(box, "src/.env")
    note = "[1 file left out: rules forbid to read them]"
    assert box.text("grep", pattern="hit") == f"a:1:hit\n{note}"
    assert box.text("grep", pattern="hit", path="src") == f"(no matches)\n{note}"
    assert box.text("grep", pattern="hit", include="a") == "a:1:hit"


def test_what_stands_in_a_file_that_may_not_be_read_changes_nothing(box: Box) -> None:
    box.file(".env", "KEY=hit\n" * 500)
    _forbid(box, ".env")
    assert box.text("grep", pattern="KEY=h", context=1) == box.text("grep", pattern="KEY=x", context=1)


def test_ripgreps_lines_are_held_back_too(box: Box, ripgrep: Callable[[str], None]) -> None:
    for name in ("a", ".env", "b", "src/.env"):
        box.file(name, "hit\n")
    _forbid(box, ".env", "src/.env")
    ripgrep(
        r"printf './.env\0001:hit\n--\na\0001:hit\n--\nsrc/../.env\0001:hit\n--\nb\0001:hit\n--\nsrc/.env\0001:hit\n'"
    )
    lines = box.text("grep", pattern="hit", context=1).splitlines()
    assert lines == ["a:1:hit", "--", "b:1:hit", "[2 files left out: rules forbid to read them]"]


def test_a_file_that_may_not_be_read_is_hidden_when_it_is_searched_alone(box: Box) -> None:
    box.file("a", "hit\n")
    (box.root / "link").symlink_to("a")
    _forbid(box, "a")
    for path in ("a", "link"):
        assert "hit" not in box.text("grep", pattern="hit", path=path)
