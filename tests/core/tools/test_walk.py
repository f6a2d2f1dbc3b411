from __future__ import annotations

import itertools
import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from cru.core.base.files.glob import matches_search
from cru.core.tools.walk import IgnoreFile, parse_line, walk

# .gitignore, a path (a slash at its end: a folder), whether git leaves it out
IGNORED: list[tuple[str, str, bool]] = [
    ("*.log", "a.log", True),
    ("*.log", "deep/down/a.log", True),
    ("*.log", "a.log.txt", False),
    ("# *.log", "a.log", False),
    ("\\#a", "#a", True),
    ("!a", "a", False),
    ("\\!a", "!a", True),
    ("*.log\n!keep.log", "keep.log", False),
    ("!keep.log\n*.log", "keep.log", True),
    ("build", "build/x", True),
    ("build/", "build/x", True),
    ("build/", "src/build/x", True),
    ("build/", "build", False),
    ("build/\n!build/keep", "build/keep", True),
    ("build/*\n!build/keep", "build/keep", False),
    ("/build", "src/build", False),
    ("/build", "build", True),
    ("src/gen", "src/gen/x", True),
    ("src/gen", "a/src/gen", False),
    ("/*\n!/src", "src/x", False),
    ("/*\n!/src", "other/x", True),
    ("**/gen", "a/b/gen", True),
    ("**/gen", "gen", True),
    ("**/gen/x", "a/gen/x", True),
    ("gen/**", "gen/a/b", True),
    ("a/**/b", "a/b", True),
    ("a/**/b", "a/x/y/b", True),
    ("a/**/b", "x/a/b", False),
    ("a**b", "axxb", True),
    ("a*b", "a/b", False),
    ("src/*.c", "src/x.c", True),
    ("src/*.c", "src/y/x.c", False),
    ("?at", "cat", True),
    ("?at", "at", False),
    ("[a-c]at", "bat", True),
    ("[!a-c]at", "bat", False),
    ("[^a-c]at", "dat", True),
    ("trailing   ", "trailing", True),
    ("trailing\\ ", "trailing ", True),
    ("crlf\r", "crlf", True),
    ("\\*", "*", True),
    ("\\*", "x", False),
    ("*.[oa]", "x.o", True),
    ("é*", "éa", True),
    ("**", "a/b", True),
    ("/", "a", False),
    (".env", ".env", True),
    ("A", "a", False),
]


def _walked(root: Path) -> set[str]:
    return {entry.path.removeprefix(f"{root}/") for entry in walk(root, root)}


@pytest.mark.parametrize(("rules", "path", "out"), IGNORED)
def test_a_line_of_gitignore_leaves_out_what_git_leaves_out(tmp_path: Path, rules: str, path: str, out: bool) -> None:
    (tmp_path / ".gitignore").write_text(rules + "\n")
    file = tmp_path / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("")
    assert (path not in _walked(tmp_path)) is out
    if shutil.which("git") and rules != "crlf\r":  # git keeps it, editors on Windows write it
        subprocess.run(["git", "init", "-q", tmp_path], check=True)
        argv = ["git", "-C", str(tmp_path), "ls-files", "-co", "--exclude-standard", "-z"]
        listed = subprocess.run(argv, capture_output=True, text=True, check=True).stdout.split("\0")
        assert (path not in listed) is out


def test_inner_files_beat_outer_ones_and_hold_only_below_themselves(tmp_path: Path) -> None:
    for name in ("a.log", "in/a.log", "in/b.txt", "out/b.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    (tmp_path / ".gitignore").write_text("*.log\n")
    (tmp_path / "in/.gitignore").write_text("!a.log\n/b.txt\n")
    assert _walked(tmp_path) == {".gitignore", "in/.gitignore", "in/a.log", "out/b.txt"}


def test_rules_above_the_folder_hold_up_to_the_repository(tmp_path: Path) -> None:
    start = tmp_path / "repo" / "src" / "deep"
    start.mkdir(parents=True)
    for name in ("a.log", "b.tmp", "c.txt", "d.bak", "e.old"):
        (start / name).write_text("")
    (tmp_path / ".gitignore").write_text("c.txt\n")
    (tmp_path / "repo/.git/info").mkdir(parents=True)
    (tmp_path / "repo/.git/info/exclude").write_text("*.bak\n")
    (tmp_path / "repo/.gitignore").write_text("*.log\n")
    (tmp_path / "repo/src/.gitignore").write_text("/deep/b.tmp\n")
    (start / ".gitignore").write_bytes(b"\xef\xbb\xbf/e.old\n")
    assert _walked(start) == {".gitignore", "c.txt"}


def test_the_repository_itself_and_linked_folders_are_not_entered(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git/config").write_text("")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/.git").write_text("gitdir: elsewhere")
    (tmp_path / "loop").symlink_to(tmp_path)
    assert _walked(tmp_path) == {"loop"}


def test_a_gitignore_that_is_a_pipe_or_a_device_is_ignored_at_once(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    os.mkfifo(tmp_path / ".gitignore")
    (tmp_path / "below" / ".gitignore").symlink_to("/dev/zero")
    (tmp_path / "below" / "a").touch()
    assert "below/a" in _walked(tmp_path)


NAMES = ("a", "b.log", "build", "#c", "*", "é", "a.b.log")
LINES = (
    "a",
    "*.log",
    "build/",
    "/a",
    "**/build",
    "a/**",
    "**",
    "*",
    "\\*",
    "?",
    "[ab]*",
    "b*",
    "*a*",
    "build/b.log",
    "/*/a",
    "\\#c",
    "*.b.log",
    "é",
)


@pytest.mark.parametrize("seed", range(40))
def test_the_last_line_that_matches_is_found_as_by_trying_each(seed: int) -> None:
    draw = random.Random(seed)
    rules = [rule for line in draw.choices(LINES, k=4) if (rule := parse_line(draw.choice(["", "", "!"]) + line))]
    file = IgnoreFile(rules)
    for path in itertools.chain(*(itertools.product(NAMES, repeat=length) for length in (1, 2, 3))):
        for folder in (False, True):
            each = (rule for rule in reversed(rules) if folder or not rule.folders_only)
            matching = (r for r in each if (r.name(path[-1]) if r.name else matches_search(r.parts, path)))
            assert file.find_match(path, folder) is next(matching, None), (rules, path)
