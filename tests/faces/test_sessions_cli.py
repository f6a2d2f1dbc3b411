"""`cru sessions`, `cru fork` and `/tree` as people use them (docs/contexts.md)."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.kit import HomeDir, cru, kill_at, pty, start, wait_until
from tests.kit.pty import Terminal

from cru.core.base.values.messages import Entry
from cru.core.conversations.forks import ForkOrigin, create_fork
from cru.core.conversations.glance import HEAD, TAIL, glance
from cru.core.conversations.home import Home
from cru.core.conversations.identity import read_meta

SCRIPT = "loop: yes\n---\ntext: fine\n"


@pytest.fixture
def desk(home: HomeDir) -> HomeDir:
    home.configure('model = "scripted:script.txt"\n')
    (home.project / "script.txt").write_text(SCRIPT)
    return home


def said(home: HomeDir, name: str) -> list[str]:
    done = cru("-G", name, "0", home=home)
    assert done.code == 0
    return [line.removeprefix("[USER]: ") for line in done.out.splitlines() if line.startswith("[USER]")]


def log_bytes(home: HomeDir, name: str = "default") -> bytes:
    return (home.context(name) / "context.jsonl").read_bytes()


@pytest.mark.slow
def test_a_fork_begins_as_a_copy_and_leaves_the_original_alone(desk: HomeDir) -> None:
    for words in ("first", "second", "/undo", "third"):
        assert cru(words, home=desk).code == 0
    (desk.context() / "goals.md").write_text("of the end\n")
    (desk.context() / "local.toml").write_text('username = "ada"\n')
    before = log_bytes(desk)
    assert (
        cru("fork", home=desk).out
        == "default is forked behind turn 3: default-fork; `cru -c default-fork` goes on there\n"
    )
    assert cru("fork", "2", "--name", "other", home=desk).code == 0
    assert cru("/fork 1", home=desk).out.startswith("default is forked behind turn 1: default-fork-2;")
    assert said(desk, "default-fork") == ["first", "second", "third"]
    assert said(desk, "other") == ["first", "second"] and said(desk, "default-fork-2") == ["first"]
    assert (desk.context("default-fork") / "goals.md").exists() and not (desk.context("other") / "goals.md").exists()
    assert (desk.context("other") / "local.toml").exists()
    assert cru("-C", "other", "more", home=desk).code == 0
    assert cru("-C", "other", "/undo 2", home=desk).out.startswith("2 turns are taken back: “second”, “more”")
    assert log_bytes(desk) == before
    assert read_meta(desk.context("other"))["session_id"] != read_meta(desk.context())["session_id"]
    assert not list(desk.cru.glob("contexts/.*"))


def test_what_was_compacted_or_cleared_since_is_in_a_fork_as_it_was(desk: HomeDir) -> None:
    for words in ("first", "second", "/clear", "third"):
        assert cru(words, home=desk).code == 0
    assert cru("fork", "2", home=desk).code == 0 and cru("fork", home=desk).code == 0
    shown = cru("-G", "default-fork", "9", home=desk).out
    assert "first" in shown and "second" in shown and "third" not in shown
    now = cru("-G", "default-fork-2", "9", home=desk)
    assert "third" in now.out and "first" not in now.out


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (("fork", "3"), 1, "cru: default has no turn 3\n  it has the turns 1 to 1;"),
        (("fork", "0"), 1, "cru: default has no turn 0"),
        (("fork", "some"), 2, "cru: `cru fork` needs the number of a turn, not some"),
        (("fork", "--name", "default"), 1, "cru: there is a context 'default' already"),
        (("fork", "--name", "../x"), 2, "cru: not a name for a context: '../x'"),
        (("-C", "nobody", "fork"), 1, "cru: there is no context 'nobody'"),
        (("/fork 1 a b",), 2, "cru: /fork does not know what 'b' is"),
        (("sessions", "--tree", "word"), 2, "cru: `cru sessions --tree` takes nothing else"),
        (("-C", "nobody", "sessions", "--tree"), 1, "cru: there is no context 'nobody'"),
    ],
)
def test_what_cannot_be_forked_is_told(desk: HomeDir, words: tuple[str, ...], code: int, text: str) -> None:
    cru("first", home=desk)
    done = cru(*words, home=desk)
    assert (done.code, done.out) == (code, "") and text in done.err and "Traceback" not in done.err
    assert [path.name for path in (desk.cru / "contexts").iterdir()] == ["default"]


def test_a_held_context_and_a_damaged_one_are_told(desk: HomeDir) -> None:
    cru("first", home=desk)
    with (desk.context() / "context.jsonl").open("ab") as log:
        log.write(b"{torn\n")
    done = cru("fork", home=desk)
    assert done.code == 0 and "not copied: " in done.out and "context.jsonl:" in done.out
    assert b"torn" not in log_bytes(desk, "default-fork")
    with Home(desk.cru).find("default").lock("a test"):
        held = cru("fork", home=desk)
        assert held.code == 4 and "a test" in held.err
        listed = cru("sessions", home=desk).out
        assert "[held]" in listed
    (desk.context() / "context.jsonl").unlink()
    (desk.context() / "context.jsonl").mkdir()
    broken = cru("fork", home=desk)
    assert broken.code == 1 and "cannot read" in broken.err
    assert "cannot read" in cru("sessions", home=desk).out


def test_a_fork_that_is_killed_leaves_no_half_context(desk: HomeDir) -> None:
    cru("first", home=desk)
    (desk.context() / "tool_cache").mkdir()
    for number in range(400):
        (desk.context() / "tool_cache" / f"{number}.txt").write_text("x" * 1000)
    with start("fork", "--name", "half", home=desk) as run:
        assert kill_at(run, lambda: any(desk.cru.glob("contexts/.forking-*/tool_cache/*")))
    assert cru("-L", home=desk).out == "* default [stale]\n"
    assert not list(desk.cru.glob("contexts/.forking-*"))
    assert cru("fork", "--name", "half", home=desk).code == 0 and said(desk, "half") == ["first"]


def test_a_fork_under_way_is_not_cleared_away(desk: HomeDir) -> None:
    cru("first", home=desk)
    store = Home(desk.cru).find("default")
    origin = ForkOrigin(store.session_id, "default", 1)

    def entries_while_another_run_looks() -> Iterator[Entry]:
        yield from store.streamed()
        assert cru("-L", home=desk).out == "* default\n"

    assert (
        create_fork(desk.cru, store.folder, "", origin, entries_while_another_run_looks(), is_whole=True)
        == "default-fork"
    )
    assert said(desk, "default-fork") == ["first"]


@pytest.mark.slow
def test_the_tree_shows_turns_what_was_undone_and_forks(desk: HomeDir) -> None:
    for words in ("first\x1b[31m", "second", "/undo", "third"):
        cru(words, home=desk)
    cru("fork", "2", "--name", "way", home=desk)
    cru("-C", "way", "elsewhere", home=desk)
    cru("-C", "way", "fork", "1", "--name", "back", home=desk)
    tree = (
        "* default\n    1  first\\x1b[31m\n    2  second  [taken back]\n       - way  (forked behind turn 2)\n"
        "           - back  (forked behind turn 1)\n             (no turns of its own yet)\n"
        "           3  elsewhere\n    3  third\n"
    )
    assert cru("sessions", "--tree", home=desk).out == tree == cru("/tree", home=desk).out
    assert (
        "- default" in cru("-C", "way", "/tree", home=desk).out and "* way" in cru("-C", "way", "/tree", home=desk).out
    )
    cru("-D", "default", home=desk)
    assert cru("-C", "way", "/tree", home=desk).out.startswith(
        "* way  (forked from default behind turn 2, which is gone)\n"
    )


def test_the_list_has_this_projects_conversations_the_last_first(desk: HomeDir) -> None:
    root = desk.path / "app"
    (root / ".git").mkdir(parents=True)
    (root / "script.txt").write_text(SCRIPT)
    assert cru("about\x1b[2J apples", home=desk, cwd=root).code == 0
    assert cru("-C", "pears", "about pears", home=desk, cwd=root).code == 0
    assert cru("outside", home=desk).code == 0
    os.utime(desk.context("pears"), (0, 0))
    rows = [json.loads(line) for line in cru("sessions", "--json", home=desk, cwd=root).out.splitlines()]
    assert {row["name"]: (row["current"], row["messages"], row["project"]) for row in rows} == {
        "app": (True, 2, str(root)), "pears": (False, 2, str(root)),
    }  # fmt: skip
    listed = cru("sessions", "apples", home=desk, cwd=root)
    assert listed.out.startswith("* app") and "about\\x1b[2J apples" in listed.out and listed.err == ""
    assert cru("sessions", home=desk, cwd=root).err == "cru: 1 more elsewhere: cru sessions --all\n"
    assert [line.split()[0] for line in cru("sessions", "outside", "--all", home=desk, cwd=root).out.splitlines()] == [
        "default"
    ]
    (root / "script.txt").write_text("fail: 400 no\n")
    cru("again", home=desk, cwd=root)
    assert "[unfinished]" in cru("sessions", "apples", home=desk, cwd=root).out


def test_a_long_conversation_is_not_read_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    line = b'{"id":"%d","timestamp":5,"from":"user","to":"x","content":"%s","entry_type":"message","role":"user"}\n'
    log = tmp_path / "context.jsonl"
    log.write_bytes(
        line % (0, b"begin \\u00e4 " + b"w" * 2 * HEAD) + b"".join(line % (n, b"x" * 400) for n in range(4000))
    )
    read: list[int] = []
    whole = os.pread

    def counted(fd: int, count: int, offset: int) -> bytes:
        read.append(count)
        return whole(fd, count, offset)

    monkeypatch.setattr(os, "pread", counted)
    seen = glance(tmp_path)
    assert 0 < sum(read) <= HEAD + TAIL
    assert seen.first.startswith("begin ä www") and not seen.is_exact and 3000 < seen.messages < 5000


def act(terminal: Terminal, name: str, key: str, question: str, answer: str, outcome: str) -> None:
    """Point at a conversation by typing, press the key, answer its question."""
    terminal.expect_screen("^X deletes")
    terminal.send(name)
    terminal.expect_screen(f"> about {name}")
    terminal.key(key)
    terminal.expect(question)
    terminal.line(answer)
    terminal.expect(outcome)


def test_on_a_terminal_one_looks_through_them_and_opens_one(desk: HomeDir) -> None:
    for name, words in (("apples", "about apples\x1b[2J"), ("pears", "about pears"), ("plums", "about plums")):
        assert cru("-C", name, words, home=desk).code == 0
    with pty("sessions", "--all", home=desk) as terminal:
        terminal.expect_screen("^X deletes")
        terminal.send("apples")
        terminal.expect_screen("> about apples\\x1b[2J")
        wait_until(lambda: "pears" not in terminal.screen())
        terminal.send("\x15")
        terminal.expect_screen("pears")
        terminal.send("nothing like that\r")
        terminal.expect_screen("nothing like that is none of them")
        act(terminal, "apples", "c-f", "behind turn (Enter: the last one)", "7", "apples has no turn 7")
        act(
            terminal,
            "apples",
            "c-f",
            "behind turn (Enter: the last one)",
            "1 copy",
            "apples is forked behind turn 1: copy",
        )
        act(terminal, "pears", "c-x", "delete pears with all its files? y/N", "n", "nothing was changed")
        act(terminal, "pears", "c-x", "delete pears with all its files? y/N", "y", "pears is deleted")
        act(terminal, "apples", "c-a", "archive apples", "y", "Archived apples")
        act(terminal, "plums", "c-r", "rename plums to", "\x15figs", "plums is called figs now")
        terminal.expect_screen("^X deletes")
        terminal.send("figs\r")
        terminal.expect("the end of this conversation")
        terminal.expect_screen("figs · ask")
        terminal.line("and more")
        terminal.expect("> and more")
        terminal.expect("fine")
        assert terminal.eof() == 0
    assert said(desk, "figs") == ["about plums", "and more"]
    assert cru("-L", home=desk).out == "  apples\n  copy\n* figs\n"


def test_leaving_the_list_changes_nothing(desk: HomeDir) -> None:
    cru("-c", "apples", "about apples", home=desk)
    with pty("sessions", home=desk) as terminal:
        terminal.expect_screen("^X deletes")
        terminal.key("esc")
        assert terminal.wait() == 0
    assert cru("-L", home=desk).out == "* apples\n"


@pytest.mark.parametrize(
    ("words", "code", "text", "left"),
    [
        (("delete", "apples"), 0, "Deleted apples", "* default  pears"),
        (("delete", "aples"), 1, "there is no context 'aples'", ""),
        (("delete",), 2, "`cru sessions delete` needs NAME", ""),
        (("delete", "the", "cache"), 2, "`cru sessions delete` needs NAME", ""),
        (("rename", "apples", "figs"), 0, "Renamed apples to figs", "* default  figs  pears"),
        (("rename", "apples"), 2, "`cru sessions rename` needs OLD NEW", ""),
        (("rename", "apples", "pears"), 1, "there is a context 'pears' already", ""),
        (("fork", "apples"), 0, "apples is forked behind turn 1: apples-fork", "apples  apples-fork * default  pears"),
        (("fork", "apples", "1", "copy"), 0, "apples is forked behind turn 1: copy", "apples  copy * default  pears"),
        (("fork", "apples", "7"), 1, "apples has no turn 7", ""),
        (("fork", "nobody"), 1, "there is no context 'nobody'", ""),
        (("open", "nobody"), 1, "there is no context 'nobody'", ""),
        (("open", "pears"), 0, "pears is the current conversation now", "apples  default * pears"),
        (("list",), 0, "apples", ""),
        (("search", "about", "pears"), 0, "pears", ""),
        (("about", "pears"), 0, "pears", ""),
        (("delete", "--json"), 2, "does not take --json", ""),
        (("plums", "delete"), 1, "no conversation has these words: plums, delete", ""),
        (("--all", "plums"), 1, "no conversation has these words: plums", ""),
    ],
)
def test_the_verbs_of_sessions(desk: HomeDir, words: tuple[str, ...], code: int, text: str, left: str) -> None:
    for name in ("apples", "pears"):
        assert cru("-C", name, f"about {name}", home=desk).code == 0
    assert cru("one", home=desk).code == 0
    done = cru("sessions", *words, home=desk)
    assert done.code == code and text in f"{done.out}{done.err}"
    assert " ".join(cru("-L", home=desk).out.split()) == " ".join((left or "apples * default pears").split())


def test_on_a_terminal_deleting_asks(desk: HomeDir) -> None:
    assert cru("-C", "apples", "about apples", home=desk).code == 0
    for answer, end in (("n", "Aborted"), ("y", "Deleted apples")):
        with pty("sessions", "delete", "apples", home=desk) as terminal:
            terminal.expect("Delete apples with all its files? [y/N]")
            terminal.line(answer)
            terminal.expect(end)
            assert terminal.wait() == 0
