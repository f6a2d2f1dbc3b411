"""How `grep` uses ripgrep: what it asks of it, and what it makes of its answers."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.core.tools.box import Box, use_ripgrep


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


@pytest.mark.slow
def test_ripgrep_with_too_much_to_say_is_ended_and_asked_for_the_first_files(
    box: Box, ripgrep: Callable[[str], None], tmp_path: Path
) -> None:
    ripgrep(r"""case "$*" in
        *--files-with-matches*) printf 'c\000b/z\000b\000' ;;
        *--threads=1*) printf 'b\0001:hit\n' ;;
        *) while :; do printf 'c\0001:hit\n'; done ;;
    esac""")
    box.env["PATH"] += f":{os.environ['PATH']}"
    assert box.text("grep", pattern="hit") == "b:1:hit"
    assert (tmp_path / "argv").read_text().splitlines()[-4:] == ["--", "b", "b/z", "c"]


def test_ripgrep_is_not_asked_to_sort(box: Box, ripgrep: Callable[[str], None], tmp_path: Path) -> None:
    ripgrep(r"printf 'b\0001:hit\nB\0002:hit\nB\0003:hit\na/b\0001:hit\na\0001:hit\na-b\0001:hit\n'")
    lines = box.text("grep", pattern="hit").splitlines()
    assert lines == ["B:2:hit", "B:3:hit", "a:1:hit", "a/b:1:hit", "a-b:1:hit", "b:1:hit"]
    argv = (tmp_path / "argv").read_text()
    assert "--sort" not in argv and "--threads" not in argv


def test_files_come_in_the_order_of_ripgreps_own_sorting(box: Box) -> None:
    use_ripgrep(box)
    for name in ("b", "a/b", "a-b/c", "a.b", "a/b-", "a/B", "Z", "é", "a/a/a", "a b", "10", "9", "a0"):
        box.file(name, "hit\nbeside\n\n\n\nhit\n")
    argv = [f"{box.env['PATH']}/rg", "--sort=path", "--files", "--hidden"]
    listed = subprocess.run(argv, cwd=box.root, capture_output=True, text=True, check=True).stdout.splitlines()
    lines = box.text("grep", pattern="hit").splitlines()
    assert [line.removesuffix(":1:hit") for line in lines if line.endswith(":1:hit")] == listed
    apart = box.text("grep", pattern="hit", context=1).split("\n--\n")
    assert len(apart) == 2 * len(listed)
    assert apart[:2] == ["10:1:hit\n10-2-beside", "10-5-\n10:6:hit"]


def test_ripgreps_lines_are_held_back_too(box: Box, ripgrep: Callable[[str], None]) -> None:
    for name in ("a", ".env", "b", "src/.env"):
        box.file(name, "hit\n")
    box.forbid(".env", "src/.env")
    ripgrep(
        r"printf './.env\0001:hit\n--\na\0001:hit\n--\nsrc/../.env\0001:hit\n--\nb\0001:hit\n--\nsrc/.env\0001:hit\n'"
    )
    lines = box.text("grep", pattern="hit", context=1).splitlines()
    assert lines == ["a:1:hit", "--", "b:1:hit", "[2 files left out: rules forbid to read them]"]


def test_what_is_made_or_moved_while_it_searches_is_judged_where_it_leads_then(
    box: Box, ripgrep: Callable[[str], None]
) -> None:
    box.file(".env", "KEY=hit\n")
    box.file("a", "hit\n")
    box.file("b/c", "hit\n")
    box.file("keys/c", "KEY=hit\n")
    box.forbid(".env", "keys/**")
    ripgrep(r"""printf 'a\0001:KEY=hit\nb/c\0001:KEY=hit\nnew/.env\0001:KEY=hit\nc\0001:hit\n'
        /bin/mkdir new; echo KEY=hit >new/.env; /bin/ln -sf .env a; /bin/rm -r b; /bin/ln -s keys b""")
    lines = box.text("grep", pattern="hit").splitlines()
    assert lines[0] == "c:1:hit" and len(lines) == 2 and "left out: rules forbid" in lines[1]
