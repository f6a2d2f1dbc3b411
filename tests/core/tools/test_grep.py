from __future__ import annotations

import asyncio
import contextlib
import os
import random
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.core.tools.box import Box, use_ripgrep
from tests.kit.waiting import ends_soon

from cru.core.guard.rules.gate import Gate
from cru.core.tools import grep as grep_module
from cru.core.tools.protocol import ToolTimeout


@pytest.fixture(params=["python", "ripgrep"])
def box(tmp_path: Path, request: pytest.FixtureRequest) -> Box:
    """Either with ripgrep on its PATH or without any."""
    box = Box(tmp_path)
    box.env["PATH"] = str(tmp_path / "bin")
    (tmp_path / "bin").mkdir()
    if request.param == "ripgrep":
        use_ripgrep(box)
    return box


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


@pytest.mark.sample(4)
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


@pytest.mark.slow
@pytest.mark.parametrize("box", ["python"], indirect=True)  # ripgrep's expressions always end
def test_an_expression_that_never_ends_is_ended(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    box.file("a", "a" * 60 + "\n")
    monkeypatch.setattr(grep_module, "SECONDS", 0.4)
    with pytest.raises(ToolTimeout, match=r"took longer than 0\.4 s"):
        box.call("grep", pattern="(a+)+b")


@pytest.mark.parametrize("box", ["python"], indirect=True)  # ripgrep's expressions always end
def test_a_cancelled_search_ends_at_once(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grep_module, "SECONDS", 600)

    async def main() -> None:
        task = asyncio.create_task(box.acall("grep", pattern="(a+)+b"))
        await asyncio.sleep(0.2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    box.file("a", "a" * 60 + "\n")
    with ends_soon():
        asyncio.run(main())


@pytest.mark.sample(1)
def test_lines_of_files_that_may_not_be_read_are_not_shown(box: Box) -> None:
    box.file("a", "hit\n")
    box.file("src/.env", "KEY=hit\n")
    box.forbid("src/.env")
    note = "[1 file left out: rules forbid to read them]"
    assert box.text("grep", pattern="hit") == f"a:1:hit\n{note}"
    assert box.text("grep", pattern="hit", path="src") == f"(no matches)\n{note}"
    assert box.text("grep", pattern="hit", include="a") == "a:1:hit"


def test_what_stands_in_a_file_that_may_not_be_read_changes_nothing(box: Box) -> None:
    box.file(".env", "KEY=hit\n" * 500)
    box.forbid(".env")
    assert box.text("grep", pattern="KEY=h", context=1) == box.text("grep", pattern="KEY=x", context=1)


def test_a_file_that_may_not_be_read_is_hidden_when_it_is_searched_alone(box: Box) -> None:
    box.file("a", "hit\n")
    (box.root / "link").symlink_to("a")
    box.forbid("a")
    for path in ("a", "link"):
        assert "hit" not in box.text("grep", pattern="hit", path=path)


@pytest.mark.slow
def test_a_file_that_may_not_be_read_is_hidden_whatever_way_leads_to_it(box: Box, tmp_path: Path) -> None:
    box.file("src/keys/id", "KEY=hit\n")
    box.file("src/keys/two\nlines", "KEY=hit\n")
    box.file("src/--\nkeys", "KEY=hit\n")
    box.file("keys", "KEY=hit\n")
    (box.root / "way").symlink_to("src/keys")
    (tmp_path / "project-way").symlink_to("project")
    box.forbid("src/keys/", "keys", "--*")
    for path in (
        ".",
        "src",
        "src/keys",
        "way",
        "way/id",
        "way/../keys",
        "src/../src/keys/id",
        str(tmp_path / "project-way"),
        "..",
    ):
        assert "KEY" not in box.text("grep", pattern="KEY=", path=path), path
    assert box.text("grep", pattern="hit").endswith("(no matches)\n[4 files left out: rules forbid to read them]")


def test_a_rule_with_a_link_in_it_hides_what_it_leads_to(box: Box) -> None:
    box.file("vault/key", "KEY=hit\n")
    (box.root / "way").symlink_to("vault")
    box.forbid("way/*")
    assert box.text("grep", pattern="hit") == "(no matches)\n[1 file left out: rules forbid to read them]"


def test_a_file_name_with_a_line_end_is_shown_on_one_line(box: Box) -> None:
    box.file("two\nlines", "hit\n")
    assert box.text("grep", pattern="hit") == "two\\nlines:1:hit"


def test_a_path_that_is_not_utf8_can_be_searched(box: Box) -> None:
    path = os.fsencode(box.root) + b"/caf\xe9"
    os.mkdir(path)
    Path(os.fsdecode(path + b"/a")).write_text("hit\n")
    assert box.text("grep", pattern="hit") == "caf\ufffd/a:1:hit"
    running = msgspec.structs.replace(box.running, root=Path(os.fsdecode(path)))
    tool = box.tool("grep")
    result = asyncio.run(tool.run(tool.check('{"pattern": "hit"}'), running))
    assert result.content == "a:1:hit"


def test_much_that_may_not_be_read_takes_no_room_from_the_rest(box: Box) -> None:
    for i in range(40):
        box.file(f"a/{i}", f"hit {'x' * 400}\n" * 200)
    box.file("z", "hit\n")
    box.forbid("a/**")
    assert box.text("grep", pattern="hit") == "z:1:hit\n[40 files left out: rules forbid to read them]"


@pytest.mark.sample(1)
def test_of_very_many_matches_the_first_by_path_are_shown(box: Box) -> None:
    for i in range(300):
        box.file(f"{i:03}/a", "a hit that is long enough to make a large output\n" * 150)
    box.forbid("000/a")
    lines = box.text("grep", pattern="hit").splitlines()
    assert [line.partition(":")[0] for line in lines[:200]] == ["001/a"] * 150 + ["002/a"] * 50
    assert [line[:14] for line in lines[200:]] == ["[there is more", "[1 file left o"]


NAMES = ("a", "b", ".env", "x.pem", "keys", "ab")
PIECES = (*NAMES, "*", "**", "*.pem", "a*", ".*")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_what_is_shown_and_counted_is_what_the_verdict_on_each_file_says(box: Box, seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(30):
        path = "/".join(draw.choices(NAMES, k=draw.randint(1, 4)))
        with contextlib.suppress(OSError):
            box.file(path, "hit\n")
    base = draw.choice(["", "", f"{box.root}/", "way/", "~/project/", "../project/"])
    (box.root / "way").symlink_to(draw.choice(NAMES))
    rules = [base + "/".join(draw.choices(PIECES, k=draw.randint(1, 3))) for _ in range(3)]
    gate = box.forbid(*rules)
    files = [path for path in box.root.rglob("*") if path.is_file() and not path.is_symlink()]
    denied = {path for path in files if gate.judge("read", "read", "", [("read", str(path))]).decision == "deny"}
    for start in (".", "a", "way", ".."):
        real = (box.root / start).resolve()
        if not real.is_dir():
            continue
        below = {path for path in files if path.resolve().is_relative_to(real)}
        lines = box.text("grep", pattern="hit", path=start).splitlines()
        assert {(box.root / line.partition(":")[0]) for line in lines if line.endswith(":1:hit")} == below - denied, (
            rules
        )
        count = len(below & denied)
        files_ = "file" if count == 1 else "files"
        notes = [f"[{count} {files_} left out: rules forbid to read them]"] if count else []
        assert [line for line in lines if "left out" in line] == notes, rules


class Calls:
    """How often functions are called, in all threads."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.numbers: Counter[str] = Counter()
        self._monkeypatch = monkeypatch

    def count(self, owner: object, name: str) -> None:
        real = getattr(owner, name)

        def counting(*args: Any, **more: Any) -> Any:
            self.numbers[name] += 1
            return real(*args, **more)

        self._monkeypatch.setattr(owner, name, counting)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    calls = Calls(monkeypatch)
    for owner, name in ((Gate, "judge"), (os.path, "realpath"), (os, "lstat"), (os, "stat"), (os, "scandir")):
        calls.count(owner, name)
    return calls


@pytest.mark.slow
def test_a_rule_costs_no_verdict_and_no_system_call_a_file(box: Box, calls: Calls) -> None:
    box.file("7/7", "hit\n")
    box.forbid(".env", "*.pem", "~/other/**", "secrets/**")
    box.text("grep", pattern="hit")  # where ripgrep lies is looked up once
    numbers: list[Counter[str]] = []
    for names in (range(1), range(1, 31)):
        for folder in range(20):
            for name in names:
                box.file(f"{folder}/file-{name}")
        calls.numbers.clear()
        assert box.text("grep", pattern="hit") == "7/7:1:hit"
        numbers.append(Counter(calls.numbers))
    assert numbers[0] == numbers[1]  # thirty times as many files
    assert numbers[0]["judge"] == 0
    assert numbers[0]["scandir"] == 21 + 3  # each folder once, and for links each folder before a rule's star


def test_only_folders_in_which_a_rule_can_match_are_looked_through_for_files_left_out(box: Box, calls: Calls) -> None:
    for i in range(200):
        box.file(f"{i}/in/a", "hit\n" if i == 7 else "")
    box.file("secrets/in/a", "hit\n")
    box.forbid("secrets/**")
    calls.numbers.clear()
    assert box.text("grep", pattern="hit") == "7/in/a:1:hit\n[1 file left out: rules forbid to read them]"
    assert calls.numbers["scandir"] <= 4


def test_without_a_rule_on_reading_nothing_is_judged(box: Box, calls: Calls) -> None:
    for i in range(50):
        box.file(f"{i}/a", "hit\n")
    box.forbid()
    calls.numbers.clear()
    assert len(box.text("grep", pattern="hit").splitlines()) == 50
    assert (calls.numbers["judge"], calls.numbers["scandir"]) == (0, 0)


@pytest.mark.slow
def test_what_a_question_guards_is_not_shown_unless_the_question_was_about_it(box: Box, tmp_path: Path) -> None:
    box.file("a", "hit\n")
    box.file("src/.env", "KEY=hit\n")
    for path in (".ssh/id_rsa", ".config/gh/hosts.yml", ".kube/config", ".docker/config.json", ".codex/auth.json"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("KEY=hit\n")
    (tmp_path / "bin" / "x").write_text("hit\n")
    box.forbid(ask=(".env",))
    note = "needs a question; to ask it, give the file or its folder as the path]"
    assert box.text("grep", pattern="hit") == f"a:1:hit\n[1 file not shown: reading them {note}"
    assert box.text("grep", pattern="hit", path="src/.env") == "src/.env:1:KEY=hit"
    home = str(tmp_path.resolve())
    lines = box.text("grep", pattern="hit", path="..").splitlines()
    assert lines[:2] == [f"{home}/bin/x:1:hit", f"{home}/project/a:1:hit"]
    assert lines[2:] == [f"[6 files not shown: reading them {note}"]
    assert "KEY=hit" in box.text("grep", pattern="hit", path="../.ssh")
    assert "KEY=hit" not in box.text("grep", pattern="KEY", path="../.config")
    box.forbid(ask=(".env",), mode="trust")
    assert box.text("grep", pattern="hit", path="..").count("KEY=hit") == 5


@pytest.mark.slow
def test_a_rule_on_a_link_s_name_holds_for_where_it_leads(box: Box) -> None:
    box.file("config/real", "hit\n")
    box.file("config/other", "hit\n")
    (box.root / ".env").symlink_to("config/real")
    box.file("keys/x")
    (box.root / "keys" / "a.pem").symlink_to("../config/other")
    for rules, shown in (
        ((".env",), ["other"]),
        ((".e*",), ["other"]),
        (("keys/*.pem",), ["real"]),
        (("keys/**",), ["real"]),
    ):
        box.forbid(*rules)
        lines = box.text("grep", pattern="hit", path="config").splitlines()
        assert lines[:-1] == [f"config/{name}:1:hit" for name in shown], rules
        assert lines[-1].startswith("[1 file left out"), rules
